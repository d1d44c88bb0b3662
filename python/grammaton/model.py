"""Trained models, which parse."""

from __future__ import annotations

import itertools
import json
import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from . import _lib, corpora
from .trees import Dependencies, Tree

_BATCH = 4096


# Not frozen: that takes five times as long to make, 7 % of the time of `parse`.
@dataclass(unsafe_hash=True)
class Parse:
    """The analysis of a sentence."""

    #: `ok`; `no model` of a line that is segmented by contexts or baselines alone; `no analysis`, `unknown symbol` or `empty` of a line that is left whole; `flat` of a sentence with a stand-in tree.
    status: str
    #: The line with its segments marked, as the corpus marks words; `None` of models of trees and heads.
    text: str | None = None
    #: Natural logarithm of the summed weight of all derivations; `None` without an analysis, and of models of trees and heads.
    log_probability: float | None = None
    #: The tree in brackets; `None` without an analysis, of decoders that give segments alone, and of dependency models.
    brackets: str | None = field(default=None, repr=False)
    #: The probability of a boundary at each position between symbols; `None` without an analysis, and unless `parse` is asked for them.
    boundaries: tuple[float, ...] | None = field(default=None, repr=False)
    #: The best analyses in order with their probabilities, this one first: segmentations, or trees in brackets of a model without segments and of a model
    #: of trees, or heads; empty without an analysis, and `None` unless `parse` is asked for them.
    n_best: tuple[tuple[float, str | Dependencies], ...] | None = field(default=None, repr=False)
    _heads: Dependencies | None = field(default=None, repr=False)
    _drawing: tuple[frozenset[str] | None, str] = field(default=(None, " "), repr=False, compare=False)

    @cached_property
    def tree(self) -> Tree | Dependencies | None:
        """The tree, or the heads; `None` without an analysis, and of the decoders `mbr`, `vote`, `contexts` and `crf`, which give segments alone."""
        if self.brackets is None:
            return self._heads
        drawn, separator = self._drawing
        return Tree.parse(self.brackets, drawn=drawn, separator=separator)

    def _repr_html_(self) -> str | None:
        return None if self.tree is None else self.tree._repr_html_()


class Model:
    """A trained model. It can be pickled, and used by several threads at a time.

    >>> from grammaton import train
    >>> model = train(["ab ba", "ba ab", "ab"], "auto:unigram", max_rounds=3).result().model
    >>> [parse.text.replace(" ", "") for parse in model.parse(["abba", "ba"])]
    ['abba', 'ba']
    """

    def __init__(self, model: _lib.Model, classes: _lib.WordClasses | None = None) -> None:
        self._model = model
        self._classes = classes

    @staticmethod
    def load(path: str | os.PathLike[str]) -> Model:
        """Reads a folder of results, its folder `model`, or a `model.bin`, and the `classes.tsv` of a model whose tags are classes of words, if it is there.
        `FileNotFoundError` if there is no model, `ValueError` if one of both is damaged."""
        model = _lib.Model.load(path)
        return Model(model, _lib.WordClasses.beside(path) if model.has_word_classes else None)

    def __reduce__(self) -> tuple[Any, ...]:
        return _unpickle, (self._model.to_bytes(), None if self._classes is None else self._classes.to_tsv())

    @property
    def kind(self) -> str:
        """What it finds: `segments`, `trees` or `dependencies`."""
        return self._model.kind

    @property
    def grammar(self) -> str:
        """The grammar in py-cfg's syntax, with learned weights."""
        return self._model.grammar

    @property
    def parameters_sha256(self) -> str:
        """Digest of the parameters."""
        return self._model.parameters_sha256

    def inspect(self, top: int = 20) -> dict[str, Any]:
        """The learned parameters, with `top` strings of each adapted nonterminal: the fields of `grammaton inspect --json`."""
        found: dict[str, Any] = json.loads(self._model.inspect(top))
        return found

    def strings(self, symbol: str, limit: int | None = None) -> list[dict[str, Any]]:
        """The strings of a nonterminal with `rank`, `uses` and `weight`, the most used first. `KeyError` if it has none."""
        found: list[dict[str, Any]] = json.loads(self._model.strings(symbol, limit))
        return found

    @property
    def drawing(self) -> tuple[frozenset[str] | None, str]:
        """The labels that drawings of its trees show, and what they have between leaves."""
        if self.kind != "segments":
            return None, " "
        found = self.inspect(0)
        adapted = {stick["nonterminal"] for stick in found["sticks"] if "discount" in stick}
        return frozenset(adapted | set(found["segments"])), self._model.separator

    def parse(
        self,
        texts: Iterable[Any],
        decoder: str | None = None,
        *,
        closed: bool = False,
        boundaries: bool = False,
        n_best: int | None = None,
        threads: int | None = None,
    ) -> Iterator[Parse]:
        """Analyses sentences on all cores, some thousands at a time, in their order.

        `texts` are lines in the format of the training corpus; for a model of trees, lines or lists of words; for a dependency model, lists of rows
        `(word, tag, …)` or of tags, and if its tags are classes of words, lines, lists of words or of rows, of which it reads the words and leaves out punctuation. `decoder` is `viterbi`, `mbr`, `mbr-tree`, `vote` (of the models of all chains), `contexts` (by the symbols around boundaries) or `crf` (as annotated lines correct these);
        `viterbi` or `max-rule`; `viterbi` or `mbr-arcs`. By default it is `mbr-arcs` of a dependency model, else `crf` if the model has learned from annotated
        lines, else `contexts` if it has learned these, else `vote` if it has several models, else `viterbi`. `closed` uses learned strings only. `boundaries` asks for the probabilities of boundaries, `n_best`
        for so many of the best analyses, which the decoders `mbr-tree`, `max-rule` and `mbr-arcs` do not rank. `ValueError` for another decoder, or a text with a line break.
        """
        if isinstance(texts, str):
            raise TypeError("parse takes an iterable of sentences; give [text] for one")
        corpora.refuse_table(texts)
        # Checked here, not when the first sentence is asked for.
        parser = self._model.parser(decoder, closed=closed, boundaries=boundaries, n_best=n_best, threads=threads)
        return self._parse(iter(texts), parser, n_best is not None)

    def _parse(self, texts: Iterator[Any], parser: _lib.Parser, ranks: bool) -> Iterator[Parse]:
        drawing = self.drawing
        while batch := list(itertools.islice(texts, _BATCH)):
            if self.kind == "segments":
                lines = [text if isinstance(text, str) else _joined(text) for text in batch]
                for text, tree, log_probability, status, boundaries, found in parser.segments(lines):
                    probabilities = None if boundaries is None else tuple(boundaries)
                    n_best = tuple(found) if ranks else None
                    yield Parse(status, text, log_probability, tree, probabilities, n_best, None, drawing)
            elif self.kind == "trees":
                words = [text.split() if isinstance(text, str) else list(text) for text in batch]
                for tree, status, found in parser.trees(words):
                    yield Parse(status, brackets=tree, n_best=tuple(found) if ranks else None)
            else:
                rows = [_rows(text) if self._classes is None else _classed(text, self._classes) for text in batch]
                for row, (heads, status, ranked) in zip(rows, parser.heads([tags for _, tags in rows]), strict=True):
                    sentence = Dependencies(tuple(row[0]), tuple(row[1]), tuple(heads))
                    best = tuple((probability, replace(sentence, heads=tuple(others))) for probability, others in ranked)
                    yield Parse(status, n_best=best if ranks else None, _heads=sentence)

    def __repr__(self) -> str:
        return f"<grammaton.Model of {self.kind}, parameters {self.parameters_sha256[:8]}>"


def _unpickle(data: bytes, classes: str | None) -> Model:
    return Model(_lib.Model.from_bytes(data), None if classes is None else _lib.WordClasses.from_tsv(classes))


def _joined(tokens: Any) -> str:
    if not isinstance(tokens, Sequence) or not all(isinstance(token, str) for token in tokens):
        raise TypeError(f"a sentence is text or a list of tokens, found {tokens!r}")
    return " ".join(tokens)


def _rows(sentence: Sequence[Any]) -> tuple[list[str], list[str]]:
    """Words and tags."""
    if isinstance(sentence, str):
        raise TypeError("a dependency model takes lists of rows (word, tag), or of tags, found text; a model whose tags are classes of words takes text if `classes.tsv` is beside it")
    tags = [row if isinstance(row, str) else row[1] for row in sentence]
    return [row if isinstance(row, str) else row[0] for row in sentence], tags


def _classed(sentence: str | Sequence[Any], classes: _lib.WordClasses) -> tuple[list[str], list[str]]:
    """Words but for punctuation, and their classes."""
    words = sentence.split() if isinstance(sentence, str) else [row if isinstance(row, str) else row[0] for row in sentence]
    tags = classes.tags(words)
    return [word for word, tag in zip(words, tags, strict=True) if tag is not None], [tag for tag in tags if tag is not None]
