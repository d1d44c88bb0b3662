"""Names, files and scores of wordseg and py-cfg."""

import inspect
import json
from pathlib import Path
from typing import Any

import grammaton
import pytest
from grammaton.compat import pycfg
from grammaton.compat.wordseg import ag
from grammaton.compat.wordseg.evaluate import evaluate

from conftest import EXAMPLES, Command

ARGS = ag.DEFAULT_ARGS + " -n 12 -x 2 -r 7"


def test_segment_as_wordseg_has_it(corpus: Path, tmp_path: Path) -> None:
    lines = corpus.read_text(encoding="utf-8").splitlines()[:40]
    phones = [" ".join(line.replace(" ", "")) for line in lines]
    found = ag.segment(phones, args=ARGS, nruns=2, ignore_first_parses=-2, save_grammar_to=tmp_path / "saved.lt")
    assert [line.replace(" ", "") for line in found] == [line.replace(" ", "") for line in lines]
    assert found == ag.segment(iter(phones), tmp_path / "saved.lt", args=ARGS, nruns=2, ignore_first_parses=-2, njobs=2)
    assert sum(line.count(" ") for line in found) > 0
    tested = ag.segment(phones, args=ARGS, nruns=1, test_text=phones[:3])
    assert [line.replace(" ", "") for line in tested] == [line.replace(" ", "") for line in lines[:3]]
    names = list(inspect.signature(ag.segment).parameters)
    assert names[:5] == ["train_text", "grammar_file", "category", "args", "test_text"]
    with pytest.raises(ValueError, match="-H: no such option"):
        ag.segment(phones, args="-H")
    for args in ("-n", "-n x", "-x 0", "-n 0"):
        with pytest.raises(ValueError, match="takes a number|1 or more"):
            ag.segment(phones, args=args)
    assert [line.replace(" ", "") for line in ag.segment(["( a", "% \\"], args="-n 4 -r 1", nruns=1)] == ["(a", "%\\"]
    with pytest.raises(TypeError, match="found str"):
        ag.segment("a b\nc d")
    with pytest.raises(ValueError, match="no utterances"):
        ag.segment(["", " "])
    with pytest.raises(ValueError, match="cannot ignore 7 of 7 parses"):
        ag.segment(phones, args=ARGS, ignore_first_parses=7)
    with pytest.raises(ValueError, match="Words"):
        ag.segment(phones, args=ARGS, category="Wordss")


@pytest.mark.parametrize(("ignored", "kept"), [(0, 6), (1, 6), (2, 5), (6, 1), (-1, 1), (-2, 2)])
def test_parses_that_are_ignored(ignored: int, kept: int) -> None:
    keys = ag.job_keys(ARGS, ignored)
    first = keys["burn_in"] * keys["max_rounds"]
    assert sum(round > first for round in range(2, 13, 2)) == kept


def test_scores_are_those_of_the_command(tmp_path: Path, grammaton_command: Command) -> None:
    gold = ["the dog bites", "a dog", "cats", "the cats bite a dog"]
    text = ["thedog bites", "a d og", "cats", "the cat s bite adog"]
    for name, lines in (("gold", gold), ("text", text)):
        (tmp_path / name).write_text("\n".join(lines) + "\n")
    there = json.loads(grammaton_command("eval", "segmentation", tmp_path / "gold", tmp_path / "text", "--json"))
    here = evaluate(text, gold, units=[" ".join(line.replace(" ", "")) for line in gold])
    assert len(here) == 13
    names = {"token": "token", "type": "lexicon", "boundary_all": "boundary_edges", "boundary_noedge": "boundary"}
    for ours, theirs in names.items():
        for score, its in (("precision", "precision"), ("recall", "recall"), ("fscore", "f1")):
            assert here[f"{ours}_{score}"] == pytest.approx(_score(there, theirs, its)), (ours, score)


def _score(scores: Any, kind: str, name: str) -> Any:
    return scores[f"{kind}_{name}"] if f"{kind}_{name}" in scores else scores[kind][name]


def test_adjusted_rand_index() -> None:
    gold, units = ["ab cd"], ["a b c d"]
    assert evaluate(gold, gold, units=units)["adjusted_rand_index"] == 1
    assert evaluate(["abcd"], gold, units=units)["adjusted_rand_index"] == 0
    # By hand: one pair in common of 2 and 1, of 6: (1 - 1/3) / (3/2 - 1/3).
    assert evaluate(["ab c d"], gold, units=units)["adjusted_rand_index"] == pytest.approx(4 / 7)
    assert evaluate(gold, gold)["adjusted_rand_index"] is None
    with pytest.raises(ValueError, match="utterance 1: 'a' and the gold 'b'"):
        evaluate(["a"], ["b"])


def test_files_of_py_cfg(tmp_path: Path) -> None:
    for file in sorted((EXAMPLES / "grammars").glob("*.gr")):
        rules = pycfg.read_grammar(file)
        pycfg.write_grammar(rules, tmp_path / file.name)
        assert pycfg.read_grammar(tmp_path / file.name) == rules and len(rules) > 3
    (tmp_path / "trees").write_text("(Sentence#4 (Word#12 (Phoneme y) (Phoneme \\#)))\n\n(Sentence a)\n")
    trees = list(pycfg.read_trees(tmp_path / "trees"))
    assert [tree.leaves for tree in trees] == [["y", "#"], ["a"]]
    assert trees[0].children[0].label == "Word"
    pycfg.write_trees(trees, tmp_path / "again")
    assert list(pycfg.read_trees(tmp_path / "again")) == trees
    (tmp_path / "bad").write_text("1 1 S --> a\n1 x y S --> a\n")
    with pytest.raises(ValueError, match="bad:2: expected"):
        pycfg.read_grammar(tmp_path / "bad")
    result = grammaton.train(["ab"], "".join(f"{rule}\n" for rule in [pycfg.Rule("S", ("W",), 1, 1), pycfg.Rule("W", ("a", "b"))]), segments=["W"], max_rounds=1)
    assert result.result().summary["rounds"] == 1
