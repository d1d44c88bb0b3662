"""Scores of segmentations under the names of `wordseg.evaluate`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from math import comb


def evaluate(text: Iterable[str], gold: Iterable[str], *, units: Iterable[str] | None = None) -> dict[str, float | None]:
    """The thirteen scores of utterances of words with spaces between them; `None` where nothing was to be found.

    `units` are the utterances of phones with spaces between them, for the adjusted Rand index, which is `None` without them. `ValueError` if the
    utterances differ in more than spaces.

    >>> scores = evaluate(["the dog bites", "thedog"], ["the dog bites", "the dog"])
    >>> [round(scores[name], 3) for name in ("token_fscore", "type_fscore", "boundary_all_fscore", "boundary_noedge_recall")]
    [0.667, 0.857, 0.923, 0.667]
    """
    found = [line.split() for line in text if line.strip()]
    right = [line.split() for line in gold if line.strip()]
    if len(found) != len(right):
        raise ValueError(f"the text has {len(found)} utterances, the gold segmentation {len(right)}")
    for number, (line, expected) in enumerate(zip(found, right, strict=True), 1):
        if "".join(line) != "".join(expected):
            raise ValueError(f"utterance {number}: {' '.join(line)!r} and the gold {' '.join(expected)!r} are different texts")
    things = [_things(lines) for lines in (found, right)]
    scores: dict[str, float | None] = {}
    for name in things[0]:
        ours, gold_ones = things[0][name], things[1][name]
        common, n_ours, n_gold = len(ours & gold_ones), len(ours), len(gold_ones)
        scores[f"{name}_precision"] = common / n_ours if n_ours else None
        scores[f"{name}_recall"] = common / n_gold if n_gold else None
        scores[f"{name}_fscore"] = 2 * common / (n_ours + n_gold) if n_ours + n_gold else None
    lengths = None if units is None else [[len(unit) for unit in line.split()] for line in units if line.strip()]
    scores["adjusted_rand_index"] = None if lengths is None else _rand(found, right, lengths)
    return scores


def _things(lines: list[list[str]]) -> dict[str, set[object]]:
    """What is scored, by name: tokens and boundaries with their places, and types."""
    things: dict[str, set[object]] = {name: set() for name in ("token", "type", "boundary_all", "boundary_noedge")}
    for number, words in enumerate(lines):
        at = 0
        things["boundary_all"].add((number, at))
        for word in words:
            if at:
                things["boundary_noedge"].add((number, at))
            things["token"].add((number, at, at + len(word)))
            at += len(word)
            things["boundary_all"].add((number, at))
        things["type"].update(words)
    return things


def _rand(found: list[list[str]], gold: list[list[str]], units: list[list[int]]) -> float:
    """The adjusted Rand index (Hubert & Arabie 1985) of phones, each in the class of the word token that it is part of."""
    ours, theirs = _classes(found, units), _classes(gold, units)
    pairs = sum(comb(n, 2) for n in Counter(zip(ours, theirs, strict=True)).values())
    of_ours, of_theirs = (sum(comb(n, 2) for n in Counter(classes).values()) for classes in (ours, theirs))
    all_pairs = comb(len(ours), 2)
    expected = of_ours * of_theirs / all_pairs if all_pairs else 0.0
    largest = (of_ours + of_theirs) / 2
    return 1.0 if largest == expected else (pairs - expected) / (largest - expected)


def _classes(lines: list[list[str]], units: list[list[int]]) -> list[int]:
    classes: list[int] = []
    n_words = 0
    for words, lengths in zip(lines, units, strict=True):
        ends, at = [], 0
        for word in words:
            at += len(word)
            ends.append(at)
        if sum(lengths) != at:
            raise ValueError(f"the units of {' '.join(words)!r} are of another text")
        at = word_at = 0
        for length in lengths:
            at += length
            while at > ends[word_at]:
                word_at += 1
            classes.append(n_words + word_at)
        n_words += len(words)
    return classes
