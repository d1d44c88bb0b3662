"""Progress of a run: a line on a terminal, a bar in a notebook."""

from __future__ import annotations

import html
import json
import sys
from typing import Any

from . import _lib


def is_wanted() -> bool:
    """Whether there is somebody to look: a terminal, or a notebook."""
    return _display() is not None or sys.stderr.isatty()


def show(run: _lib.Run) -> None:
    """Shows rounds until the run is over or paused."""
    display = _display()
    handle = display("", display_id=True) if display else None
    at = 0
    try:
        while (found := run.round(at)) is not None:
            at += 1
            text = line(json.loads(found), at, run.max_rounds)
            if handle is not None:
                share = at / max(run.max_rounds, 1)
                handle.update(_Html(f"<progress value='{share:.4f}'></progress> {html.escape(text)}"))
            else:
                sys.stderr.write(f"\r\x1b[K{text}")
                sys.stderr.flush()
    finally:
        if handle is None and at:
            sys.stderr.write("\n")


def line(round: dict[str, Any], at: int, of: int) -> str:
    """A round in words.

    >>> line({"run": 1, "round": 3, "bound": -1234.5, "scores": {"mbr": {"token_f1": 0.5}}}, 3, 40)
    'round 3 of 40, bound -1234.5, token F1 50.0 (mbr)'
    """
    parts = [f"round {at} of {of}"]
    if round.get("bound") is not None:
        parts.append(f"bound {round['bound']:.1f}")
    for decoder, scores in round.get("scores", {}).items():
        if scores.get("token_f1") is not None:
            parts.append(f"token F1 {100 * scores['token_f1']:.1f} ({decoder})")
    return ", ".join(parts)


class _Html:
    """HTML for a notebook."""

    def __init__(self, text: str) -> None:
        self.text = text

    def _repr_html_(self) -> str:
        return self.text


def _display() -> Any:
    """IPython's `display`, in a notebook."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython else None
    if shell is None or not hasattr(shell, "kernel"):
        return None
    from IPython.display import display

    return display
