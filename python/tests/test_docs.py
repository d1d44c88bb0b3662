"""The examples of the how-to page, word for word; those that need a service or a cluster of others are in `test_cluster.py`."""

import re
from pathlib import Path

import pytest

from conftest import EXAMPLES

PAGE = EXAMPLES.parent / "docs" / "how-to" / "python.md"


def test_examples_of_the_page_run(tmp_path: Path, corpus: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("pandas", "sklearn"):
        pytest.importorskip(module)
    (tmp_path / "examples" / "segmentation").mkdir(parents=True)
    for copy in ("examples/segmentation/corpus.txt", "new.txt"):
        (tmp_path / copy).write_text(corpus.read_text(encoding="utf-8"), encoding="utf-8")
    (tmp_path / "examples" / "dependency").symlink_to(EXAMPLES / "dependency")
    monkeypatch.chdir(tmp_path)
    page = PAGE.read_text(encoding="utf-8").split("## Services and clusters")[0]
    blocks = re.findall(r"```python\n(.*?)```", page, flags=re.DOTALL)
    assert len(blocks) == 6
    names: dict[str, object] = {}
    for block in blocks:
        exec(compile(block, str(PAGE), "exec"), names)
    # The estimator of the page, as scikit-learn uses estimators: copied, and as the last step of a pipeline.
    exec(
        "from sklearn.base import clone; from sklearn.pipeline import make_pipeline; from sklearn.preprocessing import FunctionTransformer\n"
        "strip = FunctionTransformer(lambda lines: [line.replace(' ', '') for line in lines])\n"
        "found = make_pipeline(strip, clone(Segmenter(max_rounds=2))).fit(['ab ba', 'ab']).predict(['ab ba'])",
        names,
    )
    assert names["found"] in (["ab ba"], ["abba"])
