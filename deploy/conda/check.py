"""Renders the recipe for each platform by rattler-build's own library (the package py-rattler-build), and compares it with the files that it repeats.

Argument: the folder of the repository. Exit code 1 with the reason if a version or a licence differs, or if the recipe cannot be rendered.
"""

import sys
import tomllib
from pathlib import Path

from rattler_build import PlatformConfig, RenderConfig, Stage0Recipe, VariantConfig

root = Path(sys.argv[1])
cargo = tomllib.loads((root / "Cargo.toml").read_text())["workspace"]["package"]
python = tomllib.loads((root / "python/pyproject.toml").read_text())
recipe = Stage0Recipe.from_file(str(root / "deploy/conda/recipe.yaml"))
variants = VariantConfig.from_yaml("c_stdlib: [sysroot]\nc_stdlib_version: ['2.17']\npython: ['3.13.* *_cp313']\n")
for platform in ("linux-64", "linux-aarch64", "osx-64", "osx-arm64"):
    [rendered] = recipe.render(variants, RenderConfig(PlatformConfig(target_platform=platform)))
    found = rendered.recipe.to_dict()
    same = [
        (found["package"]["version"], cargo["version"]),
        (found["about"]["license"], cargo["license"]),
        (found["about"]["summary"], python["project"]["description"]),
        (found["requirements"]["run"], ["python " + python["project"]["requires-python"]]),
        (found["requirements"]["host"][-1], python["build-system"]["requires"][0].replace("maturin", "maturin ")),
    ]
    for is_there, wanted in same:
        if is_there != wanted:
            sys.exit(f"deploy/conda/recipe.yaml: found {is_there!r}, expected {wanted!r}")
print("the recipe is rendered for 4 platforms, and agrees with Cargo.toml and pyproject.toml")
