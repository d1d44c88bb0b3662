"""Corpora as files: what `train` accepts, written as a stream to a file that the job reads."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, TextIO

from .trees import Tree

#: A path or URL; or sentences: lines of text, lists of tokens, rows of (word, tag, head), trees.
Corpus = str | os.PathLike[str] | Iterable[str] | Iterable[Sequence[str]] | Iterable[Sequence[tuple[str, str, int]]] | Iterable[Tree]


def is_path(corpus: Any) -> bool:
    """Whether a corpus is a path or URL."""
    return isinstance(corpus, (str, os.PathLike))


def write(corpus: Iterable[Any], file: Path) -> dict[str, Any]:
    """Writes sentences to a file, one at a time, and returns the keys of the job that go with their form.

    A sentence is text; a list of tokens; a list of rows `(word, tag)` or `(word, tag, head)`, the head being the number of a word from 1, or 0;
    or a `Tree`. An exception of the iterator leaves an earlier file as it was.
    """
    if isinstance(corpus, (bytes, bytearray)):
        raise TypeError("a corpus is a path or an iterable of sentences, found bytes; decode them first")
    aside = file.with_name(f".{file.name}.{os.getpid()}")
    form: str | None = None
    try:
        with open(aside, "w", encoding="utf-8", newline="\n") as out:
            for at, sentence in enumerate(corpus):
                found = _write_sentence(sentence, at, out)
                if found != (form := form or found):
                    raise TypeError(f"sentence {at}: found {found}, the ones before are {form}")
        os.replace(aside, file)
    finally:
        aside.unlink(missing_ok=True)
    return {"format": "tokens"} if form == "lists of tokens" else {}


def _write_sentence(sentence: Any, at: int, out: TextIO) -> str:
    if isinstance(sentence, str):
        if "\n" in sentence.rstrip("\n") or "\r" in sentence:
            raise ValueError(f"sentence {at}: has a line break; give each line as a sentence of its own")
        out.write(sentence.rstrip("\n") + "\n")
        return "text"
    if isinstance(sentence, Tree):
        out.write(f"{sentence}\n")
        return "trees"
    if not isinstance(sentence, Sequence):
        raise TypeError(f"sentence {at}: expected text, a list of tokens or of rows, or a Tree, found {type(sentence).__name__}")
    if sentence and not isinstance(sentence[0], str):
        for number, row in enumerate(sentence, 1):
            word, tag, *rest = row
            head = rest[0] if rest else "_"
            out.write(f"{number}\t{word}\t_\t{tag}\t_\t_\t{head}\t_\t_\t_\n")
        out.write("\n")
        return "lists of rows"
    for token in sentence:
        if not token or token.split() != [token]:
            raise ValueError(f"sentence {at}: the token {token!r} is empty or has white space")
    out.write(" ".join(sentence) + "\n")
    return "lists of tokens"
