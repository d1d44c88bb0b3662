"""Files of Mark Johnson's py-cfg: grammars, and trees with the numbers of customers."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from ..trees import Tree


@dataclass(frozen=True)
class Rule:
    """A rule `[weight [discount [concentration]]] parent --> children`; numbers that are not there are `None`. Discount 1: not adapted.

    >>> print(Rule("Word", ("Phoneme", "Word"), weight=1, discount=1))
    1 1 Word --> Phoneme Word
    """

    parent: str
    children: tuple[str, ...]
    weight: float | None = None
    discount: float | None = None
    concentration: float | None = None

    def __str__(self) -> str:
        numbers = [number for number in (self.weight, self.discount, self.concentration) if number is not None]
        return " ".join([*(f"{number:g}" if float(f"{number:g}") == number else repr(number) for number in numbers), self.parent, "-->", *self.children])


def read_grammar(path: str | os.PathLike[str]) -> list[Rule]:
    """The rules of a grammar file, in order. `ValueError` with file and line for a line that is no rule; `train` checks more."""
    rules = []
    for number, line in enumerate(Path(path).read_text(encoding="utf-8").splitlines(), 1):
        if not line.strip() or line.startswith("#"):
            continue
        left, arrow, right = line.partition("-->")
        words = left.split()
        try:
            *numbers, parent = words
            values = [float(number) for number in numbers]
        except ValueError:
            values, parent = [0.0] * 4, ""
        if not arrow or len(values) > 3 or not right.split():
            raise ValueError(f"{path}:{number}: expected `[weight [discount [concentration]]] Parent --> Child ...`, found {line!r}")
        rules.append(Rule(parent, tuple(right.split()), *values))
    return rules


def write_grammar(rules: Iterable[Rule], path: str | os.PathLike[str]) -> None:
    """Writes a grammar file, which py-cfg and `train` read."""
    Path(path).write_text("".join(f"{rule}\n" for rule in rules), encoding="utf-8")


def read_trees(path: str | os.PathLike[str]) -> Iterator[Tree]:
    """The trees of py-cfg's option `-A`, one a line, without the numbers of customers: `Word` for `Word#12`. Empty lines are left out."""
    with open(path, encoding="utf-8") as file:
        for line in file:
            if line.strip():
                yield Tree.parse(re.sub(r"(\(\S*?)#\d+(?=\s)", r"\1", line))


def write_trees(trees: Iterable[Tree], path: str | os.PathLike[str]) -> None:
    """Writes trees in brackets, one a line."""
    with open(path, "w", encoding="utf-8") as file:
        file.writelines(f"{tree}\n" for tree in trees)
