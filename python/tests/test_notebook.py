"""The example notebook runs, on the examples of the repository."""

from typing import Any

import pytest

from conftest import EXAMPLES


def test_the_notebook_runs() -> None:
    nbformat = pytest.importorskip("nbformat")
    nbclient = pytest.importorskip("nbclient")
    pytest.importorskip("ipykernel")
    file = EXAMPLES / "python" / "tour.ipynb"
    notebook = nbformat.read(file, as_version=4)
    # A cell that raises ends it with that error.
    nbclient.NotebookClient(notebook, timeout=600, resources={"metadata": {"path": str(file.parent)}}).execute()
    shown: list[Any] = [output["data"] for cell in notebook.cells for output in cell.get("outputs", []) if "data" in output]
    assert sum("<svg" in data.get("text/html", "") for data in shown) == 2
    assert any("<table" in data.get("text/html", "") for data in shown)
