"""Grammaton: learn words, morphemes and heads from unannotated text.

Three lines find the words of a text::

    import grammaton
    result = grammaton.segment("text.txt")
    print(result.segmented)

`train` trains any job in this process, `Model` parses with the result, `Client` and `Cluster` use other machines.
"""

from typing import TYPE_CHECKING, Any

from ._lib import GrammarError, Stopped, __commit__, __version__
from .comparison import Comparison, compare
from .model import Model, Parse
from .result import Result, suggest
from .run import Run, dependencies, morphemes, segment, train
from .trees import Dependencies, Tree

if TYPE_CHECKING:
    from .client import AsyncClient, Client
    from .cluster import Cluster

__all__ = [
    "AsyncClient",
    "Client",
    "Cluster",
    "Comparison",
    "Dependencies",
    "GrammarError",
    "Model",
    "Parse",
    "Result",
    "Run",
    "Stopped",
    "Tree",
    "__commit__",
    "__version__",
    "compare",
    "dependencies",
    "morphemes",
    "segment",
    "suggest",
    "train",
]


def __getattr__(name: str) -> Any:
    """Imports what few programs need when it is asked for."""
    if name in ("AsyncClient", "Client"):
        from . import client

        return getattr(client, name)
    if name == "Cluster":
        from .cluster import Cluster

        return Cluster
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
