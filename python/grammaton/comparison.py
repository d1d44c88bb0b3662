"""Runs compared: results of several runs on the same text, beside each other."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any

from . import _lib
from .result import Result

if TYPE_CHECKING:
    import pandas
    import polars


class Comparison:
    """What differs between runs, as lists of rows; runs have the letters A, B and so on. Made by `compare`."""

    def __init__(self, found: dict[str, Any]) -> None:
        #: A row for each run: `run` (its letter), `folder`, `decoder`, `words`, `distinct_words`, `objective`, `r_hat`, `rounds`, `seconds`, `version`.
        self.runs: list[dict[str, Any]] = _ordered(found["runs"], ["run", "folder", "decoder"])
        #: A row for each setting that differs: `key`, and its value by run.
        self.settings: list[dict[str, Any]] = _ordered(found["settings"], ["key"])
        #: A row for each run and measure: `run`, `folder`, `measure`, `score` with the ends `low` and `high` of its 95 % interval; `difference`, that of the first run less this
        #: one, with the ends of its interval and its two-sided `p`. Without gold the measures are of the agreement with the first run.
        self.scores: list[dict[str, Any]] = _ordered(found["scores"], ["run", "folder", "measure", "score", "low", "high"])
        #: A row for each line that is not segmented alike, the most different first: `line`, `differing` (a number of positions), `gold`, and its segmentation by run.
        self.lines: list[dict[str, Any]] = _ordered(found["lines"], ["line", "differing", "gold"])
        #: A row for each word of which some run has more than another: `word`, `in_gold`, and its count by run.
        self.words: list[dict[str, Any]] = _ordered(found["words"], ["word"])
        #: Number of lines that were compared.
        self.n_lines: int = found["n_lines"]
        #: Sentences on the differences, one for each run but the first.
        self.verdicts: list[str] = found["verdicts"]
        #: What there is to know, such as lines that are not scored.
        self.notices: list[str] = found["notices"]

    def to_pandas(self, table: str) -> pandas.DataFrame:
        """One of the tables (`"scores"`, `"lines"` and so on) as a data frame of pandas, which has to be installed."""
        import pandas

        return pandas.DataFrame(self._table(table))

    def to_polars(self, table: str) -> polars.DataFrame:
        """One of the tables as a data frame of polars, which has to be installed."""
        import polars

        return polars.DataFrame(self._table(table), strict=False, infer_schema_length=None)

    def _table(self, name: str) -> list[dict[str, Any]]:
        tables = {"runs": self.runs, "settings": self.settings, "scores": self.scores, "lines": self.lines, "words": self.words}
        if name not in tables:
            raise ValueError(f"the tables are {', '.join(tables)}, found {name!r}")
        return tables[name]

    def __repr__(self) -> str:
        return f"<grammaton.Comparison of {len(self.runs)} runs: {len(self.lines)} of {self.n_lines} lines differ>"


def _ordered(rows: list[dict[str, Any]], first: list[str]) -> list[dict[str, Any]]:
    """The rows with these columns before the others, which stay in alphabetical order."""
    return [{name: row[name] for name in first} | row for row in rows]


def compare(
    *results: Result | str | os.PathLike[str],
    against: str | os.PathLike[str] | None = None,
    out: str | os.PathLike[str] | None = None,
) -> Comparison:
    """Compares results on the same text, or their folders: the first with each of the others. `against` is a file of gold in place of theirs, `out` a folder for a page
    (`compare.html`) and tables. `ValueError` if there are fewer than two, or their texts differ.

    >>> from grammaton import segment
    >>> one, other = (segment(["thedog", "adog", "thecat"], grammar="unigram", chains=1, sweeps=4, seed=seed) for seed in (1, 2))
    >>> compare(one, one)
    <grammaton.Comparison of 2 runs: 0 of 3 lines differ>
    >>> [row["key"] for row in compare(one, other).settings]
    ['inference.seed']
    """
    folders = [result.dir if isinstance(result, Result) else result for result in results]
    return Comparison(json.loads(_lib.compare(folders, against, out)))
