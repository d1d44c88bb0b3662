"""Corpora as files: what `train` accepts, written as a stream to a file that the job reads."""

from __future__ import annotations

import errno
import filecmp
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, SupportsIndex

from .trees import Tree

#: The end of a name of a file.
_SUFFIX = re.compile(r"\.\w{1,9}$")

#: A word with its tag, and with the number of its head.
Row = tuple[str, str] | tuple[str, str, int]
#: A path or URL; or sentences: lines of text, lists of tokens, rows of words, trees.
Corpus = str | os.PathLike[str] | Iterable[str] | Iterable[Sequence[str]] | Iterable[Sequence[Row]] | Iterable[Tree]


def is_path(corpus: Any) -> bool:
    """Whether a corpus is a path or URL. A text in place of a path is explained: `ValueError`, or `FileNotFoundError` if it might be a path."""
    if not isinstance(corpus, str):
        return isinstance(corpus, os.PathLike)
    if "\n" in corpus or "\r" in corpus:
        raise ValueError("a corpus is a path or an iterable of sentences, and this looks like a text; give its lines: text.splitlines()")
    looks_like_path = "/" in corpus or os.sep in corpus or _SUFFIX.search(corpus)
    if not looks_like_path and not os.path.exists(corpus):
        message = f"there is no file of this name; if it is a sentence, give a list of sentences: [{corpus!r}]"
        raise FileNotFoundError(errno.ENOENT, message, corpus)
    return True


def refuse_table(found: Any) -> None:
    """Refuses a data frame, whose iteration gives the names of its columns, and a dictionary."""
    names = getattr(found, "columns", getattr(found, "column_names", None))
    if isinstance(found, Mapping):
        raise TypeError("expected sentences, found a dictionary; give a list of them, as list(sentences.values())")
    if names is not None and not isinstance(found, (str, bytes)):
        names = [str(name) for name in names]
        columns = ", ".join(names[:8]) + (", …" if len(names) > 8 else "")
        example = next((name for name in names if name in ("text", "word", "sentence", "utterance")), names[0] if names else "text")
        raise TypeError(f"expected sentences, found a {type(found).__name__}; give the column of the text, as frame[{example!r}]; its columns are: {columns}")


def path(name: str, found: Any) -> str:
    """The absolute path of a file that the argument `name` gives."""
    if not isinstance(found, (str, os.PathLike)):
        raise TypeError(f"{name} must be the path of a file, found {type(found).__name__}; write its lines to a file")
    text = os.fspath(found)
    if not isinstance(text, str):
        raise TypeError(f"{name} must be the path of a file as text, found {type(text).__name__}")
    if "\n" in text:
        raise ValueError(f"{name} must be the path of a file, and this looks like a text; write it to a file")
    return os.path.abspath(text)


#: Kinds of models that forms of sentences are for; text and lists of tokens are for all others.
_KINDS = {"lists of rows": "dmv", "trees": "pcfg-la"}


def write(corpus: Iterable[Any], file: Path, kind: str | None = None, *, resume: bool = False) -> dict[str, Any]:
    """Writes sentences for a model of that kind to a file, one at a time, and returns the keys of the job that go with their form.

    A sentence is text; a list of tokens; a list of rows `(word, tag)` or `(word, tag, head)`, the head being the number of a word from 1, or 0;
    or a `Tree`. An exception of the iterator leaves an earlier file as it was. With `resume`, an earlier file must be the same.
    """
    refuse_table(corpus)
    if isinstance(corpus, (bytes, bytearray)) or not isinstance(corpus, Iterable):
        raise TypeError(f"a corpus is a path or an iterable of sentences, found {type(corpus).__name__}")
    aside = file.with_name(f".{file.name}.{os.getpid()}")
    form: str | None = None
    try:
        with open(aside, "wb") as out:
            for at, sentence in enumerate(corpus):
                try:
                    found, text = _written(sentence)
                    out.write(text.encode("utf-8"))
                except (TypeError, ValueError) as error:
                    raise (TypeError if isinstance(error, TypeError) else ValueError)(f"sentence {at}: {error}") from None
                if found != (form := form or found):
                    raise TypeError(f"sentence {at}: found {found}, the ones before are {form}")
                if kind != _KINDS.get(form, kind):
                    raise ValueError(f'sentence {at}: {form} are for train(..., kind="{_KINDS[form]}")')
        if resume and file.exists() and not filecmp.cmp(aside, file, shallow=False):
            raise ValueError(f"{file}: the run to resume has another corpus")
        os.replace(aside, file)
    finally:
        aside.unlink(missing_ok=True)
    return {"format": "tokens"} if form == "lists of tokens" else {}


def _written(sentence: Any) -> tuple[str, str]:
    """The form of a sentence, and its lines."""
    if isinstance(sentence, str):
        line = sentence.rstrip("\r\n")
        if "\n" in line or "\r" in line:
            raise ValueError("has a line break; give each line as a sentence of its own")
        return "text", line + "\n"
    if isinstance(sentence, Tree):
        return "trees", f"{sentence}\n"
    if not isinstance(sentence, Sequence) or isinstance(sentence, (bytes, bytearray)):
        raise TypeError(f"expected text, a list of tokens or of rows, or a Tree, found {type(sentence).__name__}")
    if sentence and not isinstance(sentence[0], str):
        return "lists of rows", "".join(_row(row, number) for number, row in enumerate(sentence, 1)) + "\n"
    return "lists of tokens", " ".join(_token(token) for token in sentence) + "\n"


def _row(row: Any, number: int) -> str:
    """A word with its tag, and its head if that is known, as a line of CoNLL-U."""
    if not isinstance(row, (tuple, list)) or len(row) not in (2, 3):
        raise TypeError(f"expected rows (word, tag) or (word, tag, head), found {row!r}")
    word, tag, head = (*row, None)[:3]
    if head is not None and (not isinstance(head, SupportsIndex) or isinstance(head, bool)):
        raise TypeError(f"the head must be the number of a word from 1, or 0 for the root, found {head!r}")
    for text, kind in ((word, "word"), (tag, "tag")):
        if not isinstance(text, str):
            raise TypeError(f"the {kind} must be text, found {text!r}")
        if not text.strip() or any(letter in text for letter in "\t\r\n"):
            raise ValueError(f"the {kind} {text!r} is empty, or has a tab or line break")
    return f"{number}\t{word}\t_\t{tag}\t_\t_\t{'_' if head is None else head}\t_\t_\t_\n"


def _token(token: Any) -> str:
    if not isinstance(token, str):
        raise TypeError(f"the token must be text, found {token!r}")
    if token.split() != [token]:
        raise ValueError(f"the token {token!r} is empty or has white space")
    return token
