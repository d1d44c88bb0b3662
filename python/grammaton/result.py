"""Results: the folder that a run leaves, of `train`, `segment` or the command line, read when it is asked for."""

from __future__ import annotations

import json
import os
import re
import shutil
import warnings
from collections.abc import Iterable
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from . import _lib
from .model import Model
from .trees import Dependencies, Tree, read_conllu

if TYPE_CHECKING:
    import pandas
    import polars


class Result:
    """The result of a finished run.

    `Result(folder)` reads what `grammaton train` wrote there; `FileNotFoundError` if the run is not finished.

    >>> from grammaton import train
    >>> result = train(["ab ba", "ba ab", "ab"], "auto:unigram", max_rounds=3).result()
    >>> result.table()["round"]
    [1, 2, 3]
    >>> sorted(result.scores), 0 <= result.scores["mbr"]["token_f1"] <= 1
    (['mbr', 'viterbi'], True)
    >>> [line.replace(" ", "") for line in result.segmentations["mbr"]]
    ['abba', 'baab', 'ab']
    """

    def __init__(self, dir: str | os.PathLike[str], *, _keep: object = None) -> None:
        self.dir = Path(dir)
        self._keep = _keep  # a temporary folder lives as long as this
        with open(self.dir / "summary.json", encoding="utf-8") as file:
            #: The fields of `summary.json`.
            self.summary: dict[str, Any] = json.load(file)

    @property
    def parameters_sha256(self) -> str:
        """Digest of the parameters: equal for two runs exactly if every bit of them is."""
        return str(self.summary["parameters_sha256"])

    @property
    def scores(self) -> dict[str, dict[str, Any]]:
        """Scores against gold by decoder, as shares from 0 to 1: of segmentations, of trees, or of heads. Empty without gold."""
        for kind in ("scores", "attachment", "brackets"):
            if found := self.summary.get(kind):
                return dict(found)
        return {}

    @property
    def notices(self) -> list[str]:
        """What there is to know about the result."""
        return list(self.summary["notices"])

    @cached_property
    def metrics(self) -> list[dict[str, Any]]:
        """A dictionary for each round of each run, in the order in which they ended."""
        with open(self.dir / "metrics.jsonl", encoding="utf-8") as file:
            return [json.loads(line) for line in file]

    @cached_property
    def segmentations(self) -> dict[str, list[str]]:
        """By decoder, the segmentation of each line of the corpus."""
        files = sorted(self.dir.glob("segmentation.*.txt"))
        return {file.name.split(".")[1]: file.read_text(encoding="utf-8").split("\n")[:-1] for file in files}

    @cached_property
    def words(self) -> list[dict[str, str]]:
        """The distinct segments that were found, the most frequent first: rows of `lexicon.tsv` by column. Empty without segments."""
        return self._table("lexicon.tsv")

    @cached_property
    def boundaries(self) -> dict[int, list[float]]:
        """By line, from 1, the probability of a boundary at each position between its symbols (`boundaries.tsv`). Empty if they are not known."""
        found: dict[int, list[float]] = {}
        for row in self._table("boundaries.tsv"):
            found.setdefault(int(row["line"]), []).append(float(row["probability"]))
        return found

    def _table(self, name: str) -> list[dict[str, str]]:
        path = self.dir / name
        lines = path.read_text(encoding="utf-8").split("\n")[:-1] if path.exists() else []
        header, *rows = [line.split("\t") for line in lines] or [[]]
        return [dict(zip(header, row)) for row in rows]

    @cached_property
    def trees(self) -> list[Tree | None] | list[Dependencies | None]:
        """The tree of each sentence, by the first decoder that finds trees; `None` of a line without one. Of a dependency model, sentences with
        heads; `None` of one that is too long for training."""
        if conllu := sorted(self.dir.glob("parses.*.conllu"), reverse=True):
            return read_conllu(conllu[0].read_text(encoding="utf-8").split("\n"))
        parses = self.dir / "parses.txt"
        lines = parses.read_text(encoding="utf-8").split("\n")[:-1] if parses.exists() else []
        drawn, separator = self.model.drawing
        return [Tree.parse(line, drawn=drawn, separator=separator) if line.strip("() ") else None for line in lines]

    @cached_property
    def model(self) -> Model:
        """The trained model."""
        return Model.load(self.dir)

    @property
    def report(self) -> Path:
        """The page with curves and examples."""
        return self.dir / "report.html"

    def save(self, dir: str | os.PathLike[str]) -> None:
        """Copies the folder of results. `FileExistsError` if there is one already."""
        shutil.copytree(self.dir, dir)

    def export(
        self,
        format: str | None = None,
        *,
        original: str | os.PathLike[str] | None = None,
        tier: str | Iterable[str] = (),
        decoder: str | None = None,
        level: str | None = None,
        language: str | None = None,
    ) -> str:
        """The segmented text in a format of other programs, as the command `grammaton export` writes it.

        `format` is `"json"`, `"conllu"`, `"latex"`, `"chat"`, `"textgrid"`, `"eaf"`, `"flextext"`, `"tsv"`, or `"latex-scores"`. With `original`, the path of the file that
        the text was made of, the segments are added to that file, or its identifiers, speakers and times to another format; `tier` names its tiers of text. `level` says
        whether segments are `"words"` of a line or `"morphemes"` of a word. What there is to know about the file is a warning. `ValueError` for a text that the format cannot have.

        >>> from grammaton import train
        >>> result = train(["ab ba", "ba ab", "ab"], "auto:unigram", max_rounds=3).result()
        >>> [json.loads(line)["line"] for line in result.export("json").splitlines()]
        [1, 2, 3]
        """
        tiers = [tier] if isinstance(tier, str) else list(tier)
        text, notices = _lib.exported(
            self.dir, format, original=original, tier=tiers, decoder=decoder, level=level, language=language
        )
        for notice in notices:
            warnings.warn(notice, stacklevel=2)
        return text

    def table(self) -> dict[str, list[Any]]:
        """The metrics as columns of equal length, nested fields with dots: `scores.mbr.token_f1`. A round without a field has `None`."""
        rows = [_flat(round) for round in self.metrics]
        names = {name: None for row in rows for name in row}
        return {name: [row.get(name) for row in rows] for name in names}

    def to_pandas(self) -> pandas.DataFrame:
        """The metrics as a data frame of pandas, which has to be installed."""
        import pandas

        return pandas.DataFrame(self.table())

    def to_polars(self) -> polars.DataFrame:
        """The metrics as a data frame of polars, which has to be installed."""
        import polars

        return polars.DataFrame(self.table(), strict=False)

    def chains(self) -> dict[str, list[list[float]]]:
        """Of a sampler, the numbers that each of its chains drew: `[chains][rounds]`, the first half of the rounds left out, by name. With voters, the
        chains are those of the grammar whose model is written, since numbers of different grammars are not comparable.

        `log_p` is the logarithm of the probability of the trees; `concentration_Word` and the like are the hyper-parameters of adapted nonterminals.
        `ValueError` if the run was no sampler, or its settings have different numbers of rounds.
        """
        runs: dict[int, list[dict[str, Any]]] = {}
        of_grammar = self._runs_of_grammar()
        for round in self.metrics:
            if of_grammar is None or round["run"] in of_grammar:
                runs.setdefault(round["run"], []).append(round)
        halves = [rounds[len(rounds) // 2 :] for rounds in runs.values()]
        if not self._is_sampler():
            raise ValueError(
                f'the method of this result, {self._method() or "unknown"}, is no sampler: it finds one estimate, and draws nothing that chains could have. '
                'Train with method="hastings" or method="gibbs", as segment and morphemes do; the objective of each round is in table()'
            )
        if len({len(half) for half in halves}) != 1:
            raise ValueError("the chains have different numbers of rounds")
        numbers: dict[str, list[list[float]]] = {"log_p": [[round["bound"] for round in half] for half in halves]}
        for symbol in halves[0][0].get("hyper", {}):
            for name in halves[0][0]["hyper"][symbol]:
                drawn = [[round["hyper"][symbol][name] for round in half] for half in halves]
                if all(isinstance(number, float) for chain in drawn for number in chain):
                    numbers[f"{name}_{symbol}"] = drawn
        return numbers

    def to_arviz(self) -> Any:
        """The chains of a sampler, as of `segment` and `morphemes`, as ArviZ takes them, which has to be installed. `ValueError` as of `chains`."""
        chains = self.chains()  # first, so that a result without chains is named where ArviZ is not installed

        import inspect

        import arviz
        import numpy

        posterior = {name: numpy.asarray(drawn) for name, drawn in chains.items()}
        # Before version 1, groups were arguments.
        if "posterior" in inspect.signature(arviz.from_dict).parameters:
            return arviz.from_dict(posterior=posterior)
        return arviz.from_dict({"posterior": posterior})

    def _runs_of_grammar(self) -> range | None:
        """The numbers of the runs of the grammar whose model is written; `None` if all runs have one grammar."""
        points = self.summary.get("points", [])
        if len({point["settings"].get("grammar") for point in points}) < 2:
            return None
        first = 1
        for point in points:
            runs = range(first, first + len(point["bounds"]))
            if self.summary["run"] in runs:
                return runs
            first = runs.stop
        return None

    def _is_sampler(self) -> bool:
        return self._method() in ("gibbs", "hastings")

    def _method(self) -> str | None:
        """The method of its job; `None` if the job does not say it."""
        job = (self.dir / "job.toml").read_text(encoding="utf-8")
        found = re.search(r'^method = "([^"]*)"$', job, flags=re.MULTILINE)
        return found and found[1]

    def __repr__(self) -> str:
        return f"<grammaton.{type(self).__name__} {self.dir}, {self.summary['rounds']} rounds, parameters {self.parameters_sha256[:8]}>"


class Segmentation(Result):
    """The result of `segment`."""

    def __init__(self, dir: str | os.PathLike[str], segmented: list[str], *, _keep: object = None) -> None:
        super().__init__(dir, _keep=_keep)
        #: Each line of the text, with spaces between words (with `unit="token"`: `|`).
        self.segmented = segmented


def suggest(results: Result | str | os.PathLike[str], n: int = 50) -> list[str]:
    """The at most `n` lines of a result whose annotation would teach most, as they are segmented: a list to correct, and to give back as `annotated`.

    `results` is a result or its folder, of a sampler or with annotated lines; `ValueError` of others.

    >>> from grammaton import segment
    >>> found = segment(["thedog", "adog", "thecat", "acat"], grammar="unigram", chains=2, sweeps=4)
    >>> len(suggest(found, 1)) <= 1
    True
    """
    return _lib.suggest(results.dir if isinstance(results, Result) else results, n)


def _flat(fields: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for name, value in fields.items():
        flat.update(_flat(value, f"{prefix}{name}.") if isinstance(value, dict) else {prefix + name: value})
    return flat
