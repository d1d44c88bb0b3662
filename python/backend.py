"""Build backend: maturin's, after the program `grammaton` is built and put where maturin takes scripts from.

Everything is compiled in the target folder of the workspace, so it shares dependencies with other builds there.
`GRAMMATON_PROFILE=dev` compiles fast instead of compiling fast programs, for tests. `GRAMMATON_PROGRAM` names a program that is already built. Options for
maturin are in `MATURIN_PEP517_ARGS`, as with maturin alone. `.ci/release wheel` builds wheels to hand out with these.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import maturin
from maturin import get_requires_for_build_wheel

__all__ = ["build_wheel", "get_requires_for_build_wheel", "prepare_metadata_for_build_wheel"]

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
TARGET = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
PROFILE = os.environ.get("GRAMMATON_PROFILE", "release")
SCRIPTS = HERE / "grammaton.data" / "scripts"


def prepare_metadata_for_build_wheel(metadata_directory: str, config_settings: dict[str, Any] | None = None) -> str:
    """Writes the metadata; nothing is compiled."""
    SCRIPTS.mkdir(parents=True, exist_ok=True)  # maturin looks for it
    return str(maturin.prepare_metadata_for_build_wheel(metadata_directory, config_settings))


def build_wheel(
    wheel_directory: str, config_settings: dict[str, Any] | None = None, metadata_directory: str | None = None
) -> str:
    """Builds the program, then the wheel."""
    arguments = ["--profile", PROFILE, "--locked"]
    built = os.environ.get("GRAMMATON_PROGRAM")
    if built is None:
        print("compiling the program `grammaton`, then the library; this takes some minutes", file=sys.stderr)
        subprocess.run(["cargo", "build", "--bins", "--manifest-path", str(ROOT / "Cargo.toml"), "-p", "grammaton-cli", *arguments], check=True)
        built = str(TARGET / ("debug" if PROFILE == "dev" else PROFILE) / "grammaton")
    shutil.rmtree(SCRIPTS, ignore_errors=True)  # what an earlier version left there
    SCRIPTS.mkdir(parents=True)
    shutil.copy2(built, SCRIPTS / "grammaton")
    if PROFILE == "dev" and (strip := shutil.which("strip")):  # other profiles strip by themselves
        subprocess.run([strip, str(SCRIPTS / "grammaton")], check=True)
    os.environ["MATURIN_PEP517_ARGS"] = " ".join([os.environ.get("MATURIN_PEP517_ARGS", ""), *arguments])
    return str(maturin.build_wheel(wheel_directory, config_settings, metadata_directory))
