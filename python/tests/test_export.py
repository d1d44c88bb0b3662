"""Results in formats of other programs, and what is given in place of a path."""

import json
import warnings
from pathlib import Path
from typing import Any

import grammaton
import pytest

from conftest import Command


@pytest.fixture(scope="module")
def result(tmp_path_factory: pytest.TempPathFactory) -> grammaton.Result:
    lines = ["ab ba", "", "ba ab", "ab"]
    return grammaton.train(lines, "auto:unigram", max_rounds=3, dir=tmp_path_factory.mktemp("results")).result()


def test_an_export_is_that_of_the_command(result: grammaton.Result, grammaton_command: Command) -> None:
    for format in ("json", "conllu", "latex", "chat", "textgrid", "eaf", "flextext", "tsv", "latex-scores"):
        assert result.export(format) == grammaton_command("export", result.dir, "--format", format)
    lines = [json.loads(line) for line in result.export("json", decoder="viterbi").splitlines()]
    assert [" ".join(line["segments"]) for line in lines] == result.segmentations["viterbi"]
    assert [line["status"] for line in lines] == ["ok", "empty", "ok", "ok"]


def test_an_original_is_kept(result: grammaton.Result, tmp_path: Path) -> None:
    file = tmp_path / "text.cha"
    text = "@Begin\n*CHI:\tab ba .\n*MOT:\txxx .\n*MOT:\tba ab .\n*CHI:\tab ?\n*CHI:\tother .\n@End\n"
    file.write_text(text)
    with pytest.warns(UserWarning, match="`other`"):
        written = result.export(original=file)
    assert "".join(line for line in written.splitlines(keepends=True) if not line.startswith("%xseg")) == text
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        speakers = [json.loads(line)["speaker"] for line in result.export("json", original=str(file)).splitlines()]
    assert speakers == ["CHI", "MOT", "CHI"]


def test_bad_exports_are_refused(result: grammaton.Result, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="format must be one of json, .*found word"):
        result.export("word")
    with pytest.raises(ValueError, match='level must be "words" or "morphemes"'):
        result.export("json", level="letters")
    with pytest.raises(ValueError, match="original"):
        result.export()
    with pytest.raises(FileNotFoundError, match="none.cha"):
        result.export(original=tmp_path / "none.cha")


@pytest.mark.parametrize(
    ("corpus", "kind", "message"),
    [
        ("the dog\nbarks", ValueError, r"looks like a text; give its lines: text.splitlines\(\)"),
        ("thedog", FileNotFoundError, r"give a list of sentences: \['thedog'\]"),
        ({"a": "b"}, TypeError, "found a dictionary"),
    ],
)
def test_a_text_in_place_of_a_path_is_explained(corpus: Any, kind: type[Exception], message: str) -> None:
    for use in (lambda: grammaton.train(corpus, "auto:unigram"), lambda: grammaton.segment(corpus), lambda: grammaton.morphemes(corpus)):
        with pytest.raises(kind, match=message):
            use()


def test_files_are_paths(tmp_path: Path) -> None:
    calls: list[tuple[str, Any]] = [("annotated", ["un do"]), ("gold", {"a": 1}), ("words", ["dog"])]
    for name, found in calls:
        arguments: dict[str, Any] = {name: found}
        with pytest.raises(TypeError, match=f"{name} must be the path of a file, found {type(found).__name__}"):
            grammaton.segment(["thedog"], **arguments)
    with pytest.raises(ValueError, match="stems must be the path of a file, and this looks like a text"):
        grammaton.morphemes(["undo"], stems="un\ndo")


def test_a_data_frame_is_refused_and_its_column_is_a_corpus() -> None:
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"id": [1, 2], "text": ["ab ba", "ab"]})
    with pytest.raises(TypeError, match=r"found a DataFrame; give the column of the text, as frame\['text'\]; its columns are: id, text"):
        grammaton.train(frame, "auto:unigram")
    result = grammaton.train(frame["text"], "auto:unigram", max_rounds=1).result()
    assert len(result.segmentations["viterbi"]) == 2
    with pytest.raises(TypeError, match="DataFrame"):
        result.model.parse(frame)
    with pytest.raises(TypeError, match="DataFrame"):
        grammaton.segment(["ab"], gold=frame)
    with pytest.raises(TypeError, match="sentence 1: expected text"):
        grammaton.train(pandas.Series(["ab", float("nan")]), "auto:unigram")


def test_a_column_of_polars_is_a_corpus() -> None:
    polars = pytest.importorskip("polars")
    frame = polars.DataFrame({"word": ["ab ba", "ab"]})
    with pytest.raises(TypeError, match=r"frame\['word'\]"):
        grammaton.train(frame, "auto:unigram")
    assert len(grammaton.train(frame["word"], "auto:unigram", max_rounds=1).result().trees) == 2


def test_the_text_of_a_tree_is_its_brackets() -> None:
    for text in ("(Sentence (Word h i))", "(S a\\(b c\\%)"):
        tree = grammaton.Tree.parse(text)
        assert repr(tree) == f"Tree.parse({text!r})" and eval(repr(tree), {"Tree": grammaton.Tree}) == tree
    assert repr(grammaton.Tree("h")) == "Tree('h')"
