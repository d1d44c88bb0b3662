"""Training in this process: `train` and `segment` start runs, `Run` is one."""

from __future__ import annotations

import atexit
import contextlib
import json
import os
import shutil
import tempfile
import warnings
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

from . import _lib, corpora, progress
from .corpora import Corpus
from .result import Result, Segmentation

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from ._keys import Keys

# Runs that go on when the interpreter ends are stopped, so that each leaves a checkpoint.
atexit.register(_lib.stop_all)

StrPath = str | os.PathLike[str]


class Folder:
    """The output folder of a run: the user's, or a temporary one that is removed with the last object that reads it."""

    def __init__(self, dir: StrPath | None) -> None:
        if dir is not None and not os.fspath(dir):
            raise ValueError("dir must be the path of a folder, found an empty one")
        self.is_temporary = dir is None
        self.path = Path(tempfile.mkdtemp(prefix="grammaton-") if dir is None else dir)
        self._pid = os.getpid()

    def __del__(self) -> None:
        # A forked process has a copy of this object, but not of the folder.
        if getattr(self, "is_temporary", False) and os is not None and os.getpid() == self._pid:
            shutil.rmtree(self.path, ignore_errors=True)

    def __deepcopy__(self, memo: dict[int, Any]) -> Folder:
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        # Another object would remove the folder of this one, or find it removed.
        if self.is_temporary:
            raise TypeError("results in a temporary folder cannot be pickled; train with dir=..., or pickle the model: result.model")
        return Folder, (self.path,)


class Run:
    """A run that trains in the background. `train` makes one.

    Iterating gives each round as a dictionary, with the fields of `metrics.jsonl`, when it ends; a second loop goes on where the first left off. A
    loop ends when the run is over, stopped or paused. Ctrl-C in any call that waits stops the run, which writes a checkpoint, and raises
    `KeyboardInterrupt`; `resume` goes on from there. As a context manager it stops the run at the end of the block.
    """

    def __init__(self, run: _lib.Run, folder: Folder) -> None:
        self._run = run
        self._folder = folder
        self._seen = 0

    def __iter__(self) -> Iterator[dict[str, Any]]:
        while (found := self._run.round(self._seen)) is not None:
            self._seen += 1
            yield json.loads(found)

    def __enter__(self) -> Run:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._run.stop()

    @property
    def state(self) -> str:
        """`reading`, `training`, `paused`, `finished`, `stopped` or `failed`."""
        return self._run.state

    @property
    def dir(self) -> Path:
        """The output folder; a temporary one is removed with the run and its results."""
        return self._folder.path

    @property
    def job(self) -> str:
        """The job as the text of a job file."""
        return self._run.job

    @property
    def notices(self) -> list[str]:
        """What there is to know about the run, so far. They also go to the logger `grammaton.run`, at level INFO."""
        return self._run.notices

    @property
    def metrics(self) -> list[dict[str, Any]]:
        """The rounds so far, with the fields of `metrics.jsonl`."""
        return [json.loads(line) for line in self._run.rounds(0)]

    def progress(self) -> None:
        """Shows rounds until the run is over or paused: as a bar with the time left, on a terminal or in a notebook."""
        progress.show(self._run)

    def pause(self) -> None:
        """Lets the run wait after its present round, with its memory."""
        self._run.pause()

    def resume(self) -> None:
        """Lets a paused run go on, or a stopped one, from its checkpoint."""
        self._run.resume()

    def stop(self) -> None:
        """Stops the run and waits until its checkpoint is written; in a callback, only asks for it. Does nothing if it is over."""
        self._run.stop()

    def result(self, *, progress: bool | None = None) -> Result:
        """Waits for the end, and returns the result.

        `progress` shows the rounds: by default on a terminal and in a notebook. `Stopped` if the run was stopped, `RuntimeError` if it is paused; a run
        that failed raises its error.
        """
        _show(self._run, progress)
        self._run.summary()
        return Result(self._folder.path, _keep=self._folder)

    def __repr__(self) -> str:
        rounds = len(self._run.rounds(0))
        return f"<grammaton.Run {self.state}, {rounds} of at most {self._run.max_rounds} rounds, {self.dir}>"


def train(
    corpus: Corpus,
    grammar: StrPath | None = None,
    method: str | None = None,
    *,
    dir: StrPath | None = None,
    overwrite: bool = False,
    resume: bool = False,
    workers: int | None = None,
    memory: int | None = None,
    callback: Callable[[dict[str, Any]], None] | None = None,
    **keys: Unpack[Keys],
) -> Run:
    """Starts to train, and returns the `Run` once corpus and grammar are read.

    `corpus` is a path, plain, .gz or .zst, or a URL; or an iterable of sentences, which is written to a file one by one: texts, lists of tokens, lists of
    rows `(word, tag)` or `(word, tag, head)`, or trees. `grammar` is a path, the text of a grammar, or the name of one that is made from the corpus,
    as `"auto:colloc"`. Every other key of a job file is an argument of the same name, without its table: `kind="pcfg"`, `max_rounds=20`,
    `decoders=["mbr"]`, `sweep={"alpha": [0.1, 1.0]}`.

    `dir` is the folder of the results, by default a temporary one. `overwrite` replaces what an earlier run left there, `resume` goes on from its
    checkpoint. `workers` is the number of threads, by default that of the cores, `memory` that of mebibytes for forests. `callback` is called with each
    round on the thread of the run, which waits for it; if it raises, the run stops, and the exception is that of the run. It may stop or pause the run.

    Raises `ValueError` (`GrammarError` with line and column) for bad input, `OSError` for files that cannot be read, `TypeError` for unknown keys.

    >>> run = train(["ab ba", "ba ab", "ab"], "auto:unigram", max_rounds=3)
    >>> [round["round"] for round in run]
    [1, 2, 3]
    >>> len(run.result().parameters_sha256)
    64
    """
    if resume and overwrite:
        raise ValueError("give resume or overwrite, not both")
    if callback is not None and not callable(callback):
        raise TypeError(f"callback must be a function, found {callback!r}")
    folder = Folder(dir)
    wrapped = None if callback is None else _Callback(callback)
    earlier = "resume" if resume else "overwrite" if overwrite else "refuse"
    with _new_files_go_on_failure(folder.path, "corpus.txt", "grammar.gr"):
        all_keys = job_keys(corpus, grammar, {"method": method, **keys}, folder.path, earlier)
        return Run(_lib.Run.start(all_keys, earlier=earlier, workers=workers, memory=memory, callback=wrapped, folder=folder), folder)


def segment(
    text: Corpus,
    *,
    unit: str | None = None,
    layout: str | None = None,
    column: int | str | None = None,
    counts: str | None = None,
    phone_separator: str | None = None,
    syllable_separator: str | None = None,
    word_separator: str | None = None,
    normalise: str | None = None,
    lowercase: bool = False,
    punctuation: str | None = None,
    digraphs: Iterable[str] | None = None,
    gold: StrPath | None = None,
    annotated: StrPath | None = None,
    boundary_mark: str | None = None,
    joined_mark: str | None = None,
    set: dict[str, Any] | None = None,
    grammar: str | Iterable[str] = "auto",
    vowels: str = "",
    words: StrPath | None = None,
    chains: int | None = None,
    sweeps: int | None = None,
    seconds: float | None = None,
    seed: int = 1,
    workers: int | None = None,
    dir: StrPath | None = None,
    overwrite: bool = False,
    progress: bool | None = None,
) -> Segmentation:
    """Finds the words of a text by sampling, as the command `grammaton segment` does, with the same options and defaults.

    `text` is a path or an iterable of utterances. Spaces in them (with `unit="token"`: `|` between phonemes) are gold word boundaries, which are
    scored against and otherwise ignored. `unit` is `"char"`, `"grapheme"`, `"ipa"` or `"token"`. The format of the text is looked at: what is found is a warning,
    and a text with two readings a `ValueError` that names the arguments to choose from, of `layout` to `word_separator`; `layout="plain"` takes
    the lines as they are. `normalise` to `digraphs` clean the text. `gold` is a file to score against in place of the spaces: segmented lines of the text, or
    words with their analyses. `annotated` is a file of such lines to learn from, of the text or not; `boundary_mark` and `joined_mark` mark single positions in it or in the text. `words` is a file of known words, one per line. `set` has further keys of the job, as in `set={"inference.seed": 2}`. Ctrl-C stops
    within a second.

    >>> found = segment(["thedog", "adog", "thecat", "acat"], grammar="unigram", chains=1, sweeps=4)
    >>> [line.replace(" ", "") for line in found.segmented]
    ['thedog', 'adog', 'thecat', 'acat']
    """
    names = [grammar] if isinstance(grammar, str) else list(grammar)
    reading = dict(
        unit=unit, layout=layout, column=column, counts=counts, phone_separator=phone_separator, syllable_separator=syllable_separator,
        word_separator=word_separator, normalise=normalise, lowercase=lowercase, punctuation=punctuation, digraphs=digraphs, gold=gold,
        annotated=annotated, boundary_mark=boundary_mark, joined_mark=joined_mark,
    )

    known = None if words is None else corpora.path("words", words)

    def job(path: Path, dir: Path, assignments: list[str]) -> tuple[Path, list[str]]:
        return _lib.segment_job(
            path, dir, set=assignments, grammar=names, vowels=vowels, words=known, chains=chains, sweeps=sweeps, seconds=seconds, seed=seed, workers=workers
        )

    return _segmented(text, job, False, reading, set, workers, dir, overwrite, progress)


def morphemes(
    words: Corpus,
    *,
    unit: str | None = None,
    layout: str | None = None,
    column: int | str | None = None,
    counts: str | None = None,
    normalise: str | None = None,
    lowercase: bool = False,
    digraphs: Iterable[str] | None = None,
    gold: StrPath | None = None,
    annotated: StrPath | None = None,
    boundary_mark: str | None = None,
    joined_mark: str | None = None,
    set: dict[str, Any] | None = None,
    grammar: str = "auto",
    prefixes: StrPath | None = None,
    suffixes: StrPath | None = None,
    stems: StrPath | None = None,
    cascade: int | None = None,
    threshold: float | None = None,
    chains: int | None = None,
    sweeps: int | None = None,
    seconds: float | None = None,
    seed: int = 1,
    workers: int | None = None,
    dir: StrPath | None = None,
    overwrite: bool = False,
    progress: bool | None = None,
) -> Segmentation:
    """Finds the morphemes of words, as the command `grammaton morphemes` does, with the same options and defaults.

    `words` is a path or an iterable of words. `prefixes`, `suffixes` and `stems` are files of known ones, one per line; with `cascade`, a first run finds as many
    prefixes and suffixes (40 in lists of 40,000 words or more, unless it is 0). A boundary is in the result if its probability is at least `threshold` (.35 by default); 0: as the models vote. The other options
    are those of `segment`.

    >>> found = morphemes(["undo", "redo", "unread", "reread"], chains=1, sweeps=4)
    >>> [line.replace(" ", "") for line in found.segmented]
    ['undo', 'redo', 'unread', 'reread']
    """
    reading = dict(
        unit=unit, layout=layout, column=column, counts=counts, normalise=normalise, lowercase=lowercase, digraphs=digraphs, gold=gold,
        annotated=annotated, boundary_mark=boundary_mark, joined_mark=joined_mark,
    )

    files = {"prefixes": prefixes, "suffixes": suffixes, "stems": stems}
    known: list[StrPath | None] = [None if file is None else corpora.path(name, file) for name, file in files.items()]

    def job(path: Path, dir: Path, assignments: list[str]) -> tuple[Path, list[str]]:
        return _lib.morphemes_job(
            path, dir, set=assignments, grammar=grammar, known=known, cascade=cascade, threshold=threshold,
            chains=chains, sweeps=sweeps, seconds=seconds, seed=seed, workers=workers,
        )

    return _segmented(words, job, True, reading, set, workers, dir, overwrite, progress)


def _segmented(
    text: Corpus,
    job: Callable[[Path, Path, list[str]], tuple[Path, list[str]]],
    words: bool,
    reading: dict[str, Any],
    set: dict[str, Any] | None,
    workers: int | None,
    dir: StrPath | None,
    overwrite: bool,
    progress: bool | None,
) -> Segmentation:
    """Runs the `job` of a text that is read as these keys say; `words`: each line is a word."""
    folder = Folder(dir)
    if not overwrite and (folder.path / "summary.json").exists():
        raise FileExistsError(f"{folder.path}: the folder has a finished result; use overwrite=True, or choose another dir")
    with _new_files_go_on_failure(folder.path, "text.txt", "corpus.txt", "job.toml"):
        if corpora.is_path(text):
            path = Path(os.fspath(text))  # type: ignore[arg-type]
        else:
            path = _new_file(folder.path, "text.txt", overwrite)
            if corpora.write(text, path) and reading["unit"] != "token":  # type: ignore[arg-type]
                raise ValueError('lists of tokens need unit="token"')
        convert: dict[str, Callable[[Any], Any]] = {"column": str, "digraphs": list}
        convert |= {name: partial(corpora.path, name) for name in ("gold", "annotated")}
        given = {key: value for key, value in reading.items() if value is not None and value is not False}
        keys = {f"corpus.{key}": convert[key](value) if key in convert else value for key, value in given.items()} | (set or {})
        # Strings, numbers, lists, true and false are written alike in JSON and TOML.
        assignments = [f"{key}={json.dumps(value, ensure_ascii=False)}" for key, value in keys.items()]
        file, notices = job(path, folder.path, assignments)
        run = _lib.Run.start({}, file=file, earlier="overwrite" if overwrite else "refuse", workers=workers, folder=folder)
    for notice in notices:
        warnings.warn(notice, stacklevel=3)
    _show(run, progress)
    run.summary()
    segmented = _lib.segmented(path, assignments, words, folder.path).splitlines()
    return Segmentation(folder.path, segmented, _keep=folder)


def dependencies(
    sentences: Corpus,
    *,
    tags: str | None = None,
    rules: str | list[dict[str, Any]] | None = None,
    constrain: bool = False,
    workers: int | None = None,
    dir: StrPath | None = None,
    overwrite: bool = False,
    progress: bool | None = None,
) -> Result:
    """Finds the heads of words, as the command `grammaton dependencies` does, with the same options and defaults; they are the `trees` of the result.

    `sentences` is the path of a file in CoNLL-U, or an iterable of sentences, lists of rows `(word, tag)` or `(word, tag, head)`. Heads that all words have are scored
    against. `tags` is the column of the tags, `"upos"` or `"xpos"`, or with `"induce"`
    they are classes of words that are learned from the text; the file may then be a text with one sentence a line, and rows may have `"_"` for tags. `rules` say which trees are probable: `"ud"`, the default for universal tags, `"none"`, with
    which counts of the text say which universal tags govern, or a list, as in `[{"leaf": ["DET"], "weight": -1}]`. With `constrain` trees have the heads that are given.

    >>> rows = [("the", "DET"), ("dog", "NOUN"), ("barks", "VERB")]
    >>> found = dependencies([rows, rows[1:]])
    >>> found.trees[0].heads
    (2, 3, 0)
    """
    folder = Folder(dir)
    if not overwrite and (folder.path / "summary.json").exists():
        raise FileExistsError(f"{folder.path}: the folder has a finished result; use overwrite=True, or choose another dir")
    with _new_files_go_on_failure(folder.path, "sentences.conllu", "corpus.conllu", "job.toml"):
        if corpora.is_path(sentences):
            path = Path(os.fspath(sentences))  # type: ignore[arg-type]
        else:
            path = _new_file(folder.path, "sentences.conllu", overwrite)
            corpora.write(sentences, path, "dmv")  # type: ignore[arg-type]
        as_json = None if rules is None else json.dumps(rules)
        job, notices = _lib.dependencies_job(path, folder.path, tags=tags, rules=as_json, constrain=constrain, overwrite=overwrite)
        run = _lib.Run.start({}, file=job, earlier="overwrite" if overwrite else "refuse", workers=workers, folder=folder)
    for notice in notices:
        warnings.warn(notice, stacklevel=2)
    _show(run, progress)
    run.summary()
    return Result(folder.path, _keep=folder)


def _show(run: _lib.Run, wanted: bool | None) -> None:
    """Shows progress until the run is over or paused, if it is wanted."""
    if wanted or (wanted is None and progress.is_wanted()):
        progress.show(run)


def job_keys(corpus: Corpus, grammar: StrPath | None, keys: dict[str, Any], dir: Path, earlier: str = "refuse") -> dict[str, Any]:
    """The keys of a job with its results in `dir`. What is no file yet, a corpus of Python values or the text of a grammar, is written there."""
    if "path" in keys:
        raise TypeError("the corpus is the first argument; leave out path")
    keys = {**keys, "dir": dir}
    if isinstance(grammar, str) and "-->" in grammar:
        keys["grammar"] = _new_file(dir, "grammar.gr", earlier != "refuse")
        keys["grammar"].write_text(grammar, encoding="utf-8")
    elif grammar is not None:
        keys["grammar"] = grammar
    if corpora.is_path(corpus):
        return {**keys, "path": corpus}
    file = _new_file(dir, "corpus.txt", earlier != "refuse")
    return {**corpora.write(corpus, file, keys.get("kind"), resume=earlier == "resume"), **keys, "path": file}  # type: ignore[arg-type]


def _new_file(dir: Path, name: str, may_replace: bool) -> Path:
    """The path of a file to write in `dir`, which is made if it is not there. `FileExistsError` if the file may not be replaced."""
    file = dir / name
    if file.exists() and not may_replace:
        raise FileExistsError(f"{file}: exists; use overwrite=True, or choose another dir")
    dir.mkdir(parents=True, exist_ok=True)
    return file


@contextlib.contextmanager
def _new_files_go_on_failure(dir: Path, *names: str) -> Iterator[None]:
    """Removes those of these files that are new if the block raises, so that it can be tried again."""
    new = [dir / name for name in names if not (dir / name).exists()]
    try:
        yield
    except BaseException:
        for file in new:
            file.unlink(missing_ok=True)
        raise


class _Callback:
    """Calls a function with a round as a dictionary."""

    def __init__(self, function: Callable[[dict[str, Any]], None]) -> None:
        self.function = function

    def __call__(self, line: str) -> None:
        self.function(json.loads(line))
