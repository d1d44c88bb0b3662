"""Progress of a run: a bar on a terminal, and in a notebook."""

from __future__ import annotations

import html
import json
import sys
import time
from typing import Any

from . import _lib

#: Characters of a bar on a terminal.
_WIDTH = 20


def is_wanted() -> bool:
    """Whether there is somebody to look: a terminal, or a notebook."""
    return _display() is not None or sys.stderr.isatty()


def show(run: _lib.Run) -> None:
    """Shows rounds until the run is over or paused."""
    display = _display()
    handle = display(_Html(""), display_id=True) if display else None
    of = max(run.max_rounds, 1)
    at = first = len(run.rounds(0))
    begun = time.monotonic()
    try:
        while (found := run.round(at)) is not None:
            at += 1
            elapsed = time.monotonic() - begun
            text = f"{clock(elapsed)}<{clock(elapsed / (at - first) * (of - at))}, {line(json.loads(found))}"
            if handle is not None:
                handle.update(_Html(f"<progress value='{at}' max='{of}'></progress> {at}/{of} {html.escape(text)}"))
            else:
                done = _WIDTH * at // of
                sys.stderr.write(f"\r\x1b[K{at}/{of} [{'#' * done}{'-' * (_WIDTH - done)}] {text}")
                sys.stderr.flush()
    finally:
        if handle is None and at > first:
            sys.stderr.write("\n")


def line(round: dict[str, Any]) -> str:
    """A round in words.

    >>> line({"run": 2, "round": 3, "bound": -1234.5, "scores": {"mbr": {"token_f1": 0.5}}})
    'run 2, round 3, bound -1234.5, token F1 50.0 (mbr)'
    """
    parts = [f"run {round['run']}, round {round['round']}" if round["run"] > 1 else f"round {round['round']}"]
    if round.get("bound") is not None:
        parts.append(f"bound {round['bound']:.1f}")
    for decoder, scores in round.get("scores", {}).items():
        if scores.get("token_f1") is not None:
            parts.append(f"token F1 {100 * scores['token_f1']:.1f} ({decoder})")
    return ", ".join(parts)


def clock(seconds: float) -> str:
    """A duration as minutes and seconds, with hours if there are some.

    >>> clock(75), clock(3 * 3600 + 61.4)
    ('01:15', '3:01:01')
    """
    minutes, seconds = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{seconds:02}" if hours else f"{minutes:02}:{seconds:02}"


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
