"""What the tests share: small corpora, and the command line to compare with."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

EXAMPLES = Path(os.environ.get("GRAMMATON_EXAMPLES", Path(__file__).resolve().parents[2] / "examples"))

#: Runs the command line, and returns what it prints.
Command = Callable[..., str]


def program(name: str) -> str:
    """A program of the wheel, or of `GRAMMATON_BIN`."""
    folders = [os.environ.get("GRAMMATON_BIN", ""), str(Path(sys.executable).parent)]
    found = next((found for folder in folders if folder and (found := shutil.which(name, path=folder))), None)
    assert found, f"{name} is neither beside {sys.executable} nor in GRAMMATON_BIN"
    return found


@pytest.fixture
def grammaton_command() -> Command:
    """The program `grammaton`."""

    def run(*arguments: object) -> str:
        done = subprocess.run([program("grammaton"), *map(str, arguments)], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return done.stdout

    return run


@pytest.fixture(scope="session")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two hundred utterances of the main example, with gold words."""
    lines = (EXAMPLES / "segmentation" / "corpus.txt").read_text(encoding="utf-8").splitlines()[:200]
    file = tmp_path_factory.mktemp("corpus") / "corpus.txt"
    file.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return file


def digest(dir: Path) -> str:
    """The digest of a result of the command line."""
    summary: dict[str, Any] = json.loads((dir / "summary.json").read_text(encoding="utf-8"))
    return str(summary["parameters_sha256"])
