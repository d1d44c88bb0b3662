"""The examples of the how-to page, word for word; those that need a service or a cluster of others are in `test_cluster.py`."""

import re
from pathlib import Path

import pytest

from conftest import EXAMPLES

PAGE = EXAMPLES.parent / "docs" / "how-to" / "python.md"


def test_examples_of_the_page_run(tmp_path: Path, corpus: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("pandas")
    (tmp_path / "examples" / "segmentation").mkdir(parents=True)
    for copy in ("examples/segmentation/corpus.txt", "new.txt"):
        (tmp_path / copy).write_text(corpus.read_text(encoding="utf-8"), encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    page = PAGE.read_text(encoding="utf-8").split("## Services and clusters")[0]
    blocks = re.findall(r"```python\n(.*?)```", page, flags=re.DOTALL)
    assert len(blocks) == 4
    names: dict[str, object] = {}
    for block in blocks:
        exec(compile(block, str(PAGE), "exec"), names)
    exec("found = Segmenter().fit(['ab ba', 'ab']).predict(['abba'])", names)
    assert names["found"] in (["ab ba"], ["abba"])
