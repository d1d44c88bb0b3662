"""The version of the package, and its program by `python -m grammaton`."""

import os
import subprocess
import sys

from conftest import program

import grammaton


def run(*command: str, path: str | None = None) -> subprocess.CompletedProcess[str]:
    environment = dict(os.environ) if path is None else {**os.environ, "PATH": path}
    return subprocess.run(command, capture_output=True, text=True, env=environment)


def test_the_module_is_the_program() -> None:
    there = {"path": os.path.dirname(program("grammaton"))}
    as_module = run(sys.executable, "-m", "grammaton", "--version", **there)
    assert as_module.returncode == 0, as_module.stderr
    assert as_module.stdout == run(program("grammaton"), "--version").stdout
    wrong = run(sys.executable, "-m", "grammaton", "segmnt", **there)
    assert wrong.returncode == 2 and "segment" in wrong.stderr


def test_version_and_commit_are_those_of_the_program() -> None:
    printed = run(program("grammaton"), "--version").stdout
    assert printed.startswith(f"grammaton {grammaton.__version__} ")
    assert grammaton.__commit__ is None or len(grammaton.__commit__) >= 12
    # A wheel may have a program that was built apart, but at the same commit.
    assert ("commit" in printed) == (grammaton.__commit__ is not None)
    assert grammaton.__commit__ is None or grammaton.__commit__ in printed
