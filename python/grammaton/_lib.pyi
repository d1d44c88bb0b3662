"""The part of the package that is written in Rust."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, final

__all__ = [
    "Client",
    "GrammarError",
    "Model",
    "Parser",
    "Run",
    "Stopped",
    "Watch",
    "WordClasses",
    "__commit__",
    "__version__",
    "arcs_svg",
    "compare",
    "dependencies_job",
    "exported",
    "job_file",
    "keys",
    "morphemes_job",
    "segment_job",
    "segmented",
    "stop_all",
    "suggest",
    "tree_svg",
]

__version__: str
__commit__: str | None

class GrammarError(ValueError):
    """A grammar that cannot be read; `line` and `column` count from 1."""

    line: int
    column: int

class Stopped(Exception):
    """A run that was stopped before its end; the message says what is kept of it."""

@final
class Run:
    @staticmethod
    def start(
        keys: dict[str, Any],
        *,
        file: str | os.PathLike[str] | None = None,
        earlier: str = "refuse",
        workers: int | None = None,
        memory: int | None = None,
        callback: Callable[[str], None] | None = None,
        folder: object = None,
    ) -> Run: ...
    @property
    def state(self) -> str: ...
    @property
    def dir(self) -> Path: ...
    @property
    def max_rounds(self) -> int: ...
    @property
    def job(self) -> str: ...
    @property
    def notices(self) -> list[str]: ...
    def rounds(self, first: int) -> list[str]: ...
    def round(self, at: int) -> str | None: ...
    def summary(self) -> str: ...
    def pause(self) -> None: ...
    def resume(self) -> None: ...
    def stop(self) -> None: ...

def stop_all() -> None: ...

@final
class Model:
    @staticmethod
    def load(path: str | os.PathLike[str]) -> Model: ...
    @staticmethod
    def from_bytes(bytes: bytes) -> Model: ...
    def to_bytes(self) -> bytes: ...
    @property
    def kind(self) -> str: ...
    @property
    def has_word_classes(self) -> bool: ...
    @property
    def separator(self) -> str: ...
    @property
    def grammar(self) -> str: ...
    @property
    def parameters_sha256(self) -> str: ...
    def inspect(self, top: int) -> str: ...
    def strings(self, symbol: str, limit: int | None) -> str: ...
    def parser(
        self,
        decoder: str | None,
        *,
        closed: bool = False,
        boundaries: bool = False,
        n_best: int | None = None,
        threads: int | None = None,
    ) -> Parser: ...

@final
class WordClasses:
    @staticmethod
    def beside(model: str | os.PathLike[str]) -> WordClasses | None: ...
    @staticmethod
    def from_tsv(table: str) -> WordClasses: ...
    def to_tsv(self) -> str: ...
    def tags(self, words: list[str]) -> list[str | None]: ...

@final
class Parser:
    def segments(
        self, lines: list[str]
    ) -> list[tuple[str, str | None, float | None, str, list[float] | None, list[tuple[float, str]]]]: ...
    def trees(self, sentences: list[list[str]]) -> list[tuple[str, str, list[tuple[float, str]]]]: ...
    def heads(self, sentences: list[list[str]]) -> list[tuple[list[int], str, list[tuple[float, list[int]]]]]: ...

@final
class Client:
    def __new__(
        cls,
        url: str,
        *,
        token: str | None = None,
        token_file: str | os.PathLike[str] | None = None,
        ca: str | os.PathLike[str] | None = None,
        cert: str | os.PathLike[str] | None = None,
        key: str | os.PathLike[str] | None = None,
    ) -> Client: ...
    def submit(
        self,
        file: str | os.PathLike[str],
        *,
        name: str | None = None,
        priority: int | None = None,
        max_workers: int | None = None,
        idempotency_key: str | None = None,
    ) -> str: ...
    def jobs(self) -> str: ...
    def job(self, id: int) -> str: ...
    def cancel(self, id: int) -> str: ...
    def resume(self, id: int) -> str: ...
    def delete(self, id: int) -> str: ...
    def workers(self) -> str: ...
    def fetch(self, id: int, dir: str | os.PathLike[str], overwrite: bool) -> None: ...
    def logs(self, id: int) -> str: ...
    def watch(self, id: int) -> Watch: ...

@final
class Watch:
    def next(self) -> str | None: ...

def job_file(keys: dict[str, Any]) -> str: ...
def keys() -> list[tuple[str, str]]: ...
def morphemes_job(
    text: str | os.PathLike[str],
    dir: str | os.PathLike[str],
    *,
    set: list[str],
    grammar: str,
    known: list[str | os.PathLike[str] | None],
    cascade: int | None,
    threshold: float | None,
    chains: int | None,
    sweeps: int | None,
    seconds: float | None,
    seed: int,
    workers: int | None,
) -> tuple[Path, list[str]]: ...
def segment_job(
    text: str | os.PathLike[str],
    dir: str | os.PathLike[str],
    *,
    set: list[str],
    grammar: list[str],
    vowels: str,
    words: str | os.PathLike[str] | None,
    chains: int | None,
    sweeps: int | None,
    seconds: float | None,
    seed: int,
    workers: int | None,
) -> tuple[Path, list[str]]: ...
def dependencies_job(
    file: str | os.PathLike[str],
    dir: str | os.PathLike[str],
    *,
    tags: str | None,
    rules: str | None,
    constrain: bool,
    overwrite: bool,
) -> tuple[Path, list[str]]: ...
def segmented(text: str | os.PathLike[str], set: list[str], words: bool, dir: str | os.PathLike[str]) -> str: ...
def exported(
    dir: str | os.PathLike[str],
    format: str | None,
    *,
    original: str | os.PathLike[str] | None,
    tier: list[str],
    decoder: str | None,
    level: str | None,
    language: str | None,
) -> tuple[str, list[str]]: ...
def suggest(dir: str | os.PathLike[str], n: int) -> list[str]: ...
def compare(
    dirs: list[str | os.PathLike[str]],
    against: str | os.PathLike[str] | None,
    out: str | os.PathLike[str] | None,
) -> str: ...
def tree_svg(brackets: str, separator: str, keep: list[str] | None) -> str: ...
def arcs_svg(words: list[str], tags: list[str], heads: list[int]) -> str: ...
