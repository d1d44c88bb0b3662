"""Adaptor grammars with the signature of `wordseg.algos.ag.segment`; nothing has to be compiled."""

from __future__ import annotations

import logging
import os
import random
import shlex
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from ...run import train

#: The options of wordseg's Python call.
DEFAULT_ARGS = "-E -d 0 -a 0.0001 -b 10000 -e 1 -f 1 -g 100 -h 0.01 -R -1 -P -x 10"

#: Options of py-cfg without a value, and whether they change nothing here.
_SWITCHES = {"-E": True, "-P": True, "-C": True, "-D": False}
#: Options of py-cfg with a number, and its default.
_NUMBERS = {
    "-a": 0.1, "-b": 1e3, "-d": 0, "-e": 0, "-f": 0, "-g": 0, "-h": 0, "-m": 0, "-n": 2000, "-R": 0, "-r": None, "-T": 1, "-t": 1, "-w": 1, "-x": 1,
}  # fmt: skip
_NULL = logging.getLogger("grammaton.wordseg")
_NULL.addHandler(logging.NullHandler())


def build_colloc0_grammar(phones: Iterable[str]) -> str:
    """The grammar of words of phones, words being adapted.

    >>> build_colloc0_grammar(["a"]).splitlines()[3]
    'Colloc0 --> Phonemes'
    """
    lists = [f"1 1 {many} --> {one}{more}" for many, one in (("Colloc0s", "Colloc0"), ("Phonemes", "Phoneme")) for more in ("", f" {many}")]
    rules = ["1 1 Sentence --> Colloc0s", *lists[:2], "Colloc0 --> Phonemes", *lists[2:]]
    return "".join(f"{rule}\n" for rule in [*rules, *(f"1 1 Phoneme --> {phone}" for phone in sorted(set(phones)))])


def segment(
    train_text: Iterable[str],
    grammar_file: str | os.PathLike[str] | None = None,
    category: str = "Colloc0",
    args: str = DEFAULT_ARGS,
    test_text: Iterable[str] | None = None,
    save_grammar_to: str | os.PathLike[str] | None = None,
    ignore_first_parses: int = 0,
    nruns: int = 8,
    njobs: int = 1,
    tempdir: str | os.PathLike[str] | None = None,
    log: logging.Logger = _NULL,
) -> list[str]:
    """Segments utterances of phones with spaces between them, into words with spaces between them.

    The answer for each utterance is the segmentation that most samples of all runs have; of `test_text`, the most probable one by the best run.
    `njobs` is the number of threads. A seed in `args` (`-r`) makes it repeatable. `ValueError` for options of py-cfg that have no counterpart, and for `category` not in the grammar.
    """
    if isinstance(train_text, str) or isinstance(test_text, str):
        raise TypeError("a text is an iterable of utterances, found str; give its lines: text.splitlines()")
    train_text = [" ".join(line.split()) for line in train_text if line.strip()]
    if not train_text:
        raise ValueError("the text to train on has no utterances")
    tests = None if test_text is None else [" ".join(line.split()) for line in test_text if line.strip()]
    if grammar_file is None:
        grammar = build_colloc0_grammar(phone for line in [*train_text, *(tests or [])] for phone in line.split())
    else:
        grammar = Path(grammar_file).read_text(encoding="utf-8")
    if save_grammar_to is not None:
        Path(save_grammar_to).write_text(grammar, encoding="utf-8")
    keys = job_keys(args, ignore_first_parses)
    log.info("training: %s", keys)
    with tempfile.TemporaryDirectory(prefix="wordseg-", dir=tempdir) as folder:
        job = {"method": "hastings", "restarts": nruns, "workers": njobs, "segments": [category], "decoders": ["viterbi"], "score_every": 0, **keys}
        result = train(train_text, grammar, format="tokens", dir=Path(folder) / "run", **job).result(progress=False)
        if tests is None:
            found = result.segmentations["maximum-marginal"]
        else:
            found = [parse.text or "" for parse in result.model.parse(tests)]
        return [" ".join("".join(word.split()) for word in line.split("|")) for line in found]


def job_keys(args: str, ignore_first_parses: int = 0) -> dict[str, Any]:
    """The keys of a job for options of py-cfg.

    >>> keys = job_keys(DEFAULT_ARGS + " -n 100", 2)
    >>> keys["max_rounds"], keys["keep_every"], keys["burn_in"], keys["relabel"], keys["fit"]
    (100, 10, 0.105, True, ['concentration', 'discount'])
    """
    words = shlex.split(args)
    found: dict[str, Any] = dict(_NUMBERS)
    while words:
        option = words.pop(0)
        name, value = option[:2], option[2:]
        if option in _SWITCHES:
            found[option] = True
        elif name in _NUMBERS:
            number = value or (words.pop(0) if words else "")
            try:
                found[name] = float(number)
            except ValueError:
                raise ValueError(f"{name} takes a number, found {number!r}") from None
        else:
            raise ValueError(f"{option}: no such option of py-cfg here; see COMPATIBILITY.md")
    if found["-w"] != 1:
        raise ValueError(f"-w {found['-w']}: write the weights into the grammar")
    rounds, every = int(found["-n"]), int(found["-x"])
    if rounds < 1 or every < 1:
        raise ValueError("-n and -x must be 1 or more")
    # The first parse of py-cfg is that of the start, which is no sample here.
    n_parses = rounds // every + 1
    ignored = ignore_first_parses if ignore_first_parses >= 0 else max(0, n_parses + ignore_first_parses)
    if ignored >= n_parses:
        raise ValueError(f"cannot ignore {ignored} of {n_parses} parses")
    fit = [*(["concentration"] if found["-g"] else []), *(["discount"] if found["-e"] > 0 else [])]
    keys = {
        "max_rounds": rounds,
        "keep_every": every,
        # Between the last round that is ignored and the next one.
        "burn_in": (max(0, ignored - 1) * every + 0.5) / rounds,
        "discount": found["-a"],
        "concentration": found["-b"],
        "fit": fit,
        "relabel": found["-R"] != 0,
        "start": "uniform" if found.get("-D") else "incremental",
        "seed": int(random.SystemRandom().randrange(2**16) if found["-r"] is None else found["-r"]),
    }
    if found["-g"]:
        # The scale and the shape of the prior of concentrations, in this order.
        keys |= {"gamma_scale": found["-g"], "gamma_shape": found["-h"]}
    if found["-m"]:
        keys |= {"anneal_from": found["-T"], "anneal_to": found["-t"], "anneal_rounds": int(found["-m"])}
    return keys
