"""Build backend: maturin's, after the two programs are built and put where maturin takes scripts from.

Everything is compiled in the target folder of the workspace, so it shares dependencies with other builds there.
`GRAMMATON_PROFILE=dev` compiles fast instead of compiling fast programs, for tests. `GRAMMATON_GLIBC=2.17` links for that release of glibc and later ones,
so that the wheel can be installed on old systems; it needs the package cargo-zigbuild.
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
TARGET = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
PROFILE = os.environ.get("GRAMMATON_PROFILE", "release")
GLIBC = os.environ.get("GRAMMATON_GLIBC")
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
    arguments = ["--profile", PROFILE, "--locked"]
    compatibility = []
    if GLIBC is not None:
        machine = os.uname().machine
        os.environ[f"CARGO_TARGET_{machine.upper()}_UNKNOWN_LINUX_GNU_LINKER"] = str(write_linker(machine, GLIBC))
        compatibility = ["--compatibility", "manylinux_" + GLIBC.replace(".", "_")]
    # Both programs at once: the extension needs dependencies with the features that both together need.
    manifest = ["--manifest-path", str(ROOT / "Cargo.toml")]
    packages = ["-p", "grammaton-cli", "-p", "grammaton-worker"]
    subprocess.run(["cargo", "build", "--bins", *manifest, *packages, *arguments], check=True)
    SCRIPTS.mkdir(parents=True, exist_ok=True)
    for program in PROGRAMS:
        shutil.copy2(TARGET / ("debug" if PROFILE == "dev" else PROFILE) / program, SCRIPTS / program)
        if strip := shutil.which("strip"):
            subprocess.run([strip, str(SCRIPTS / program)], check=True)
    os.environ["MATURIN_PEP517_ARGS"] = " ".join([*compatibility, *arguments])
    return str(maturin.build_wheel(wheel_directory, config_settings, metadata_directory))


def write_linker(machine: str, glibc: str) -> Path:
    """Writes a linker that takes symbols of that release of glibc, and returns its path."""
    linker = TARGET / f"link-glibc-{glibc}"
    linker.parent.mkdir(parents=True, exist_ok=True)
    linker.write_text(f'#!/bin/sh\nexec cargo-zigbuild zig cc -- -g -target {machine}-linux-gnu.{glibc} "$@"\n')
    linker.chmod(0o755)
    return linker
