"""Build backend: maturin's, after the two programs are built and put where maturin takes scripts from.

Everything is compiled in one target folder, `python/target` or `CARGO_TARGET_DIR`, so dependencies are compiled once.
`GRAMMATON_PROFILE=dev` compiles fast instead of compiling fast programs, for tests.
"""

import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import maturin
from maturin import get_requires_for_build_wheel

__all__ = ["build_wheel", "get_requires_for_build_wheel", "prepare_metadata_for_build_wheel"]

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
PROFILE = os.environ.get("GRAMMATON_PROFILE", "release")
PROGRAMS = ["grammaton", "grammaton-worker"]
SCRIPTS = HERE / "grammaton.data" / "scripts"


def prepare_metadata_for_build_wheel(metadata_directory: str, config_settings: dict[str, Any] | None = None) -> str:
    """Writes the metadata; nothing is compiled."""
    SCRIPTS.mkdir(parents=True, exist_ok=True)  # maturin looks for it
    return str(maturin.prepare_metadata_for_build_wheel(metadata_directory, config_settings))


def build_wheel(
    wheel_directory: str, config_settings: dict[str, Any] | None = None, metadata_directory: str | None = None
) -> str:
    """Builds the programs, then the wheel."""
    os.environ.setdefault("CARGO_TARGET_DIR", str(HERE / "target"))
    arguments = f"--profile={PROFILE} --locked --config={ROOT / 'Cargo.toml'}"
    os.environ["MATURIN_PEP517_ARGS"] = f"{arguments} {os.environ.get('MATURIN_PEP517_ARGS', '')}"
    build_programs()
    return str(maturin.build_wheel(wheel_directory, config_settings, metadata_directory))


def build_programs() -> None:
    """Compiles the programs and copies them, stripped, to the folder of scripts."""
    target = Path(os.environ["CARGO_TARGET_DIR"])
    packages = ["-p", "grammaton-coordinator", "-p", "grammaton-worker"]
    manifest = ["--manifest-path", str(ROOT / "Cargo.toml")]
    subprocess.run(["cargo", "build", "--locked", "--bins", "--profile", PROFILE, *packages, *manifest], check=True)
    SCRIPTS.mkdir(parents=True, exist_ok=True)
    for program in PROGRAMS:
        built = target / ("debug" if PROFILE == "dev" else PROFILE) / program
        shutil.copy2(built, SCRIPTS / program)
        if strip := shutil.which("strip"):
            subprocess.run([strip, str(SCRIPTS / program)], check=True)
