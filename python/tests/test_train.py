"""Training: the same bits as the command line, all forms of corpora, errors as exceptions."""

import copy
import json
import pickle
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import grammaton
import pytest
from grammaton import _lib
from grammaton.corpora import Row

from conftest import EXAMPLES, Command, digest

GRAMMAR = """\
1 1 Sentence --> Words
1 1 Words --> Word
1 1 Words --> Word Words
Word --> Chars
1 1 Chars --> Char
1 1 Chars --> Char Chars
1 1 Char --> a
1 1 Char --> b
"""

#: One job of each kind of model and each family of methods: corpus, and keys.
JOBS: dict[str, tuple[str, dict[str, Any]]] = {
    "adaptor-vb": ("corpus", {"kind": "adaptor", "grammar": "auto:colloc", "method": "vb", "max_rounds": 3}),
    "adaptor-hastings": ("corpus", {"grammar": "auto:unigram", "method": "hastings", "max_rounds": 4, "restarts": 2, "keep_every": 1}),
    "pcfg": ("corpus", {"kind": "pcfg", "grammar": "auto:unigram", "method": "em", "max_rounds": 3, "max_string": 6}),
    "pcfg-la": (
        "treebank/trees.mrg",
        {"kind": "pcfg-la", "method": "vb", "alpha": 0.01, "max_rounds": 3, "held_out_share": 0.1, "sweep": {"subtypes": [1, 2]}},
    ),
    "dmv": ("dependency/train.conllu", {"kind": "dmv", "method": "em", "max_rounds": 5, "max_length": 8}),
}


@pytest.mark.parametrize("name", JOBS)
def test_same_bits_as_the_command_line(name: str, corpus: Path, tmp_path: Path, grammaton_command: Command) -> None:
    where, keys = JOBS[name]
    path = corpus if where == "corpus" else EXAMPLES / where
    run = grammaton.train(path, dir=tmp_path / "here", **keys)
    here = run.result()
    # The job that the run wrote, and the same keys as a job file by hand.
    grammaton_command("train", tmp_path / "here" / "job.toml", "--out", tmp_path / "there", "--quiet")
    assert here.parameters_sha256 == digest(tmp_path / "there")
    tables = dict((key, table) for table, key in _lib.keys())
    sets = [f"--set={tables[key]}.{key}={json.dumps(value)}" for key, value in keys.items() if key not in ("kind", "sweep", "grammar")]
    text = f'[model]\nkind = "{keys.get("kind", "adaptor")}"\n' + (f'grammar = "{keys["grammar"]}"\n' if "grammar" in keys else "")
    text += f'[corpus]\npath = "{path}"\n'
    if "sweep" in keys:
        text += "[[sweep]]\n" + "".join(f"{key} = {values}\n" for key, values in keys["sweep"].items())
    (tmp_path / "job.toml").write_text(text)
    grammaton_command("train", tmp_path / "job.toml", *sets, "--out", tmp_path / "again", "--quiet")
    assert here.parameters_sha256 == digest(tmp_path / "again")
    assert here.parameters_sha256 == here.model.parameters_sha256
    assert [round["round"] for round in here.metrics] == [round["round"] for round in run]


def test_names_of_keys_are_unique() -> None:
    names = [name for _, name in _lib.keys()]
    assert len(names) == len(set(names)) > 60


def test_a_corpus_of_any_form_is_the_same_corpus(corpus: Path) -> None:
    lines = corpus.read_text(encoding="utf-8").splitlines()

    def trained(sentences: Any, **keys: Any) -> str:
        return grammaton.train(sentences, "auto:unigram", max_rounds=2, **keys).result().parameters_sha256

    assert trained(corpus) == trained(str(corpus)) == trained(lines) == trained(line for line in lines)
    tokens = [list(line.replace(" ", "")) for line in lines]
    assert trained(tokens) == trained([" ".join(line) for line in tokens], format="tokens")


def test_rows_are_dependencies(tmp_path: Path) -> None:
    sentences = [[("dogs", "NOUN", 2), ("bark", "VERB", 0)], [("birds", "NOUN", 2), ("sing", "VERB", 0), ("loudly", "ADV", 2)]] * 5
    result = grammaton.train(sentences, kind="dmv", method="em", max_rounds=3).result()
    found = result.trees[0]
    assert isinstance(found, grammaton.Dependencies)
    assert found.words == ("dogs", "bark") and sorted(found.heads) in ([0, 1], [0, 2])
    assert 0 <= result.scores["viterbi"]["all"]["directed"] <= 1
    [parse, *_] = result.model.parse([[("cats", "NOUN"), ("sleep", "VERB")]], "mbr-arcs")
    assert isinstance(parse.tree, grammaton.Dependencies) and parse.status == "ok"
    [parse] = result.model.parse([["NOUN", "XYZ"]])
    assert parse.status == "flat"
    [by_arcs, best] = (next(result.model.parse(sentences[2:3], *options)) for options in [(), ("viterbi",)])
    assert by_arcs == next(result.model.parse(sentences[2:3], "mbr-arcs"))
    [parse] = result.model.parse(sentences[2:3], "viterbi", n_best=100)
    assert parse.n_best and parse.n_best[0][1] == best.tree
    assert len({tree for _, tree in parse.n_best}) == len(parse.n_best) > 1
    assert sum(probability for probability, _ in parse.n_best) == pytest.approx(1)
    with pytest.raises(ValueError, match="n_best is for the decoders"):
        result.model.parse(sentences, n_best=2)


def test_sentences_without_heads_are_none() -> None:
    result = grammaton.train(EXAMPLES / "dependency" / "train.conllu", kind="dmv", method="em", max_rounds=2, max_length=8).result()
    texts = (EXAMPLES / "dependency" / "train.conllu").read_text(encoding="utf-8").count("# text")
    assert len(result.trees) == texts
    found = [tree for tree in result.trees if isinstance(tree, grammaton.Dependencies)]
    assert 0 < len(found) < texts
    for tree in found:
        # One root, and every word below it.
        assert tree.heads.count(0) == 1
        assert "<svg" in tree._repr_html_()


def test_grammar_as_text_and_path(tmp_path: Path) -> None:
    file = tmp_path / "my.gr"
    file.write_text(GRAMMAR)
    corpus = ["ab ba", "ba", "ab ab"]
    runs = [grammaton.train(corpus, grammar, max_rounds=2) for grammar in (GRAMMAR, file, str(file))]
    assert len({run.result().parameters_sha256 for run in runs}) == 1


def test_results(corpus: Path, tmp_path: Path) -> None:
    run = grammaton.train(corpus, "auto:unigram", method="vb", max_rounds=3, score_every=1, dir=tmp_path / "out")
    assert [round["round"] for round in run] == [1, 2, 3] and list(run) == []
    result = run.result()
    assert 0 < result.scores["mbr"]["token_f1"] <= 1
    lines = corpus.read_text(encoding="utf-8").splitlines()
    for found in result.segmentations.values():
        assert [line.replace(" ", "") for line in found] == [line.replace(" ", "") for line in lines]
    tree = result.trees[0]
    assert isinstance(tree, grammaton.Tree)
    assert "".join(tree.leaves) == lines[0].replace(" ", "")
    assert tree._repr_html_().count("<svg") == 1
    assert result.table()["scores.viterbi.token_f1"][0] == result.metrics[0]["scores"]["viterbi"]["token_f1"]
    assert result.report.exists() and "grammar" in run.job
    result.save(tmp_path / "copy")
    assert grammaton.Result(tmp_path / "copy").parameters_sha256 == result.parameters_sha256
    assert "3 rounds" in repr(result) and "finished" in repr(run)
    for of_chains in (result.chains, result.to_arviz):
        with pytest.raises(ValueError, match='vb, is no sampler.*method="hastings"'):
            of_chains()


def test_tables_of_other_libraries(corpus: Path) -> None:
    result = grammaton.train(corpus, "auto:unigram", max_rounds=2).result()
    pandas = pytest.importorskip("pandas")
    assert isinstance(result.to_pandas(), pandas.DataFrame) and list(result.to_pandas()["round"]) == [1, 2]
    polars = pytest.importorskip("polars")
    assert isinstance(result.to_polars(), polars.DataFrame) and result.to_polars()["round"].to_list() == [1, 2]


def test_trees_of_other_libraries(corpus: Path) -> None:
    nltk = pytest.importorskip("nltk")
    tree = grammaton.train(corpus, "auto:unigram", max_rounds=1).result().trees[0]
    assert isinstance(tree, grammaton.Tree)
    assert isinstance(tree.to_nltk(), nltk.Tree) and tree.to_nltk().leaves() == tree.leaves
    assert tree.to_nltk() == nltk.Tree.fromstring(str(tree))
    assert tree.to_tuple() == (tree.label, [child.to_tuple() if child.children else child.label for child in tree.children])
    vocab = pytest.importorskip("spacy.vocab").Vocab()
    doc = grammaton.Dependencies(("small", "dogs", "bark"), ("ADJ", "NOUN", "VERB"), (2, 3, 0)).to_spacy(vocab)
    assert [(token.tag_, token.head.text) for token in doc] == [("ADJ", "dogs"), ("NOUN", "bark"), ("VERB", "bark")]
    assert [sent.root.text for sent in doc.sents] == ["bark"]


def test_chains(corpus: Path) -> None:
    run = grammaton.train(corpus, "auto:unigram", method="hastings", max_rounds=6, restarts=2, keep_every=1)
    result = run.result()
    chains = result.chains()
    assert {len(chain) for drawn in chains.values() for chain in drawn} == {3}
    assert len(chains["log_p"]) == 2 and "concentration_Word" in chains
    pytest.importorskip("arviz")
    found = result.to_arviz()
    assert found["posterior"]["log_p"].shape == (2, 3)


def test_chains_of_voters_are_not_mixed(corpus: Path) -> None:
    run = grammaton.train(
        corpus, "auto:colloc", voters=["auto:unigram"], method="hastings", max_rounds=6, restarts=2, voter_chains=1, keep_every=1
    )
    result = run.result()
    chains = result.chains()
    assert len(chains["log_p"]) == 2 and {"concentration_Word", "concentration_Colloc"} <= set(chains)
    bounds = [round["bound"] for round in result.metrics if round["run"] in (1, 2)]
    assert all(drawn in bounds for chain in chains["log_p"] for drawn in chain)


def test_a_temporary_folder_lives_as_long_as_the_result(corpus: Path) -> None:
    result = grammaton.train(corpus, "auto:unigram", max_rounds=1).result()
    dir = result.dir
    assert len(result.segmentations["viterbi"]) == 200 and dir.exists()
    del result
    assert not dir.exists()


def test_bad_input_is_an_exception(corpus: Path, tmp_path: Path) -> None:
    with pytest.raises(TypeError, match='no key of a job is called "max_round"; did you mean "max_rounds"'):
        grammaton.train(corpus, "auto:unigram", max_round=3)  # type: ignore[call-arg]
    with pytest.raises(ValueError, match="^inference.rho must be a number"):
        grammaton.train(corpus, "auto:unigram", rho="much")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="rho must be text, a number"):
        grammaton.train(corpus, "auto:unigram", rho=object())  # type: ignore[arg-type]
    with pytest.raises(ValueError, match='lacks the key "grammar"'):
        grammaton.train(corpus)
    with pytest.raises(ValueError, match="did you mean"):
        grammaton.train(corpus, "auto:unigrm")
    with pytest.raises(FileNotFoundError, match="nowhere.txt"):
        grammaton.train(tmp_path / "nowhere.txt", "auto:unigram")
    with pytest.raises(FileNotFoundError, match="nowhere.gr"):
        grammaton.train(corpus, tmp_path / "nowhere.gr")
    with pytest.raises(grammaton.GrammarError) as caught:
        grammaton.train(["ab"], GRAMMAR + "2 1 Word -> a\n")
    assert (caught.value.line, caught.value.column) == (9, 10) and isinstance(caught.value, ValueError)
    refused: list[dict[str, Any]] = [{"workers": 0}, {"workers": -1}, {"memory": -1}, {"workers": 100_000}]
    for counts in refused:
        with pytest.raises(ValueError, match="must be from [01] to [0-9]+, found"):
            grammaton.train(corpus, "auto:unigram", **counts)
    with pytest.raises(ValueError, match="no terminal `b`"):
        grammaton.train(["abc"], GRAMMAR.replace("Char --> b", "Char --> c"), max_rounds=1).result()
    with pytest.raises(ValueError, match="sentence 1: has a line break"):
        grammaton.train(["ab", "a\nb"], "auto:unigram")
    with pytest.raises(TypeError, match="sentence 1: found lists of tokens, the ones before are text"):
        grammaton.train(["ab", ["a"]], "auto:unigram")
    with pytest.raises(TypeError, match="leave out path"):
        grammaton.train(corpus, "auto:unigram", path="other.txt")  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="callback must be a function"):
        grammaton.train(corpus, "auto:unigram", callback=5)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="dir must be the path of a folder"):
        grammaton.train(corpus, "auto:unigram", dir="")
    with pytest.raises(ValueError, match="resume or overwrite, not both"):
        grammaton.train(corpus, "auto:unigram", resume=True, overwrite=True)
    with pytest.raises(ValueError, match="no sentence|empty"):
        grammaton.train([], "auto:unigram")


@pytest.mark.parametrize(
    ("sentences", "kind", "message"),
    [
        ([5], TypeError, "sentence 0: expected text, a list of tokens or of rows, or a Tree, found int"),
        ([b"ab"], TypeError, "sentence 0: expected text, .*found bytes"),
        (b"ab", TypeError, "an iterable of sentences, found bytes"),
        (5, TypeError, "an iterable of sentences, found int"),
        (None, TypeError, "an iterable of sentences, found NoneType"),
        ([["a", 5]], TypeError, "sentence 0: the token must be text, found 5"),
        ([["a b"]], ValueError, "sentence 0: the token 'a b' is empty or has white space"),
        ([["a"], "b"], TypeError, "sentence 1: found text, the ones before are lists of tokens"),
        ([[1, 2]], TypeError, "sentence 0: expected rows .*, found 1"),
        ([[("dogs", "NOUN", "2")]], TypeError, "sentence 0: the head must be the number of a word"),
        ([[("dogs", 5)]], TypeError, "sentence 0: the tag must be text, found 5"),
        ([[("do\tgs", "NOUN")]], ValueError, "sentence 0: the word .* tab"),
        ([[("dogs", "NOUN", 0)]], ValueError, 'sentence 0: lists of rows are for train.*kind="dmv"'),
        ([grammaton.Tree.parse("(S a)")], ValueError, 'sentence 0: trees are for train.*kind="pcfg-la"'),
        (["ab", "\ud800"], ValueError, "sentence 1: 'utf-8' codec"),
    ],
)
def test_sentences_of_other_types_are_refused(sentences: Any, kind: type[Exception], message: str, tmp_path: Path) -> None:
    with pytest.raises(kind, match=message):
        grammaton.train(sentences, "auto:unigram", dir=tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_what_failed_at_the_start_can_be_tried_again(tmp_path: Path) -> None:
    lines = ["ab ba", "ab"]
    with pytest.raises(ValueError, match="did you mean"):
        grammaton.train(lines, "auto:unigrm", dir=tmp_path / "one")
    assert grammaton.train(lines, "auto:unigram", max_rounds=1, dir=tmp_path / "one").result().summary["rounds"] == 1
    with pytest.raises(grammaton.GrammarError):
        grammaton.train(lines, GRAMMAR + "Word ->", dir=tmp_path / "two")
    assert grammaton.train(lines, GRAMMAR, max_rounds=1, dir=tmp_path / "two").result().summary["rounds"] == 1
    with pytest.raises(ValueError, match="^grammar unigrm: not a grammar"):
        grammaton.segment(lines, grammar="unigrm", dir=tmp_path / "three")
    assert grammaton.segment(lines, grammar="unigram", chains=1, sweeps=2, dir=tmp_path / "three").summary["rounds"] == 2
    # Files of the user stay.
    (tmp_path / "four").mkdir()
    for name in ("grammar.gr", "text.txt"):
        (tmp_path / "four" / name).write_text("mine\n")
    with pytest.raises(FileExistsError, match="grammar.gr"):
        grammaton.train(lines, GRAMMAR, dir=tmp_path / "four")
    with pytest.raises(FileExistsError, match="text.txt"):
        grammaton.segment(lines, dir=tmp_path / "four")
    assert {file.name: file.read_text() for file in (tmp_path / "four").iterdir()} == {"grammar.gr": "mine\n", "text.txt": "mine\n"}


def test_results_are_copied_and_pickled(tmp_path: Path) -> None:
    result = grammaton.train(["ab ba", "ab"], "auto:unigram", max_rounds=1).result()
    with pytest.raises(TypeError, match="train with dir=..., or pickle the model"):
        pickle.dumps(result)
    del (other := copy.deepcopy(result)).summary
    del other
    assert result.dir.exists() and len(result.trees) == 2
    kept = grammaton.train(["ab ba", "ab"], "auto:unigram", max_rounds=1, dir=tmp_path).result()
    assert pickle.loads(pickle.dumps(kept)).parameters_sha256 == result.parameters_sha256 and tmp_path.exists()


def test_numbers_of_numpy_are_values() -> None:
    numpy = pytest.importorskip("numpy")
    run = grammaton.train(["ab ba", "ab"], "auto:unigram", max_rounds=numpy.int32(2), tolerance=numpy.float32(0), lowercase=numpy.bool_(False))
    assert run.result().summary["rounds"] == 2


def test_an_earlier_result_stays_unless_asked(corpus: Path, tmp_path: Path) -> None:
    def trained(rounds: int, **how: Any) -> int:
        return len(grammaton.train(corpus, "auto:unigram", max_rounds=rounds, dir=tmp_path, **how).result().metrics)

    assert trained(2) == 2
    with pytest.raises(ValueError, match="has a finished result; replace it with overwrite=True"):
        trained(3)
    assert trained(3, overwrite=True) == 3
    assert trained(3, resume=True) == 3
    with pytest.raises(FileExistsError, match="corpus.txt"):
        (tmp_path / "corpus.txt").write_text("mine\n")
        grammaton.train(["ab"], "auto:unigram", dir=tmp_path)
    assert (tmp_path / "corpus.txt").read_text() == "mine\n"


def test_a_run_is_resumed_with_its_own_corpus(tmp_path: Path) -> None:
    first = grammaton.train(["ab ba", "ab"], "auto:unigram", max_rounds=1, dir=tmp_path).result()
    again = grammaton.train(iter(["ab ba", "ab"]), "auto:unigram", max_rounds=1, dir=tmp_path, resume=True).result()
    assert again.parameters_sha256 == first.parameters_sha256
    with pytest.raises(ValueError, match="the run to resume has another corpus"):
        grammaton.train(["xy yx", "xy"], "auto:unigram", max_rounds=1, dir=tmp_path, resume=True)
    assert (tmp_path / "corpus.txt").read_text() == "ab ba\nab\n"


def test_an_iterator_that_raises_leaves_nothing(tmp_path: Path) -> None:
    def sentences() -> Iterator[str]:
        yield "ab"
        raise ZeroDivisionError("of the corpus")

    with pytest.raises(ZeroDivisionError, match="of the corpus"):
        grammaton.train(sentences(), "auto:unigram", dir=tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_other_iterators_that_raise(corpus: Path, tmp_path: Path) -> None:
    def texts() -> Iterator[str]:
        yield "ab"
        raise ZeroDivisionError("of the texts")

    with pytest.raises(ZeroDivisionError, match="of the texts"):
        grammaton.segment(texts(), dir=tmp_path / "out")
    assert list((tmp_path / "out").iterdir()) == []
    model = grammaton.train(["ab ba", "ab"], "auto:unigram", max_rounds=1).result().model
    with pytest.raises(ZeroDivisionError, match="of the texts"):
        list(model.parse(texts()))
    assert [parse.status for parse in model.parse(["ab"])] == ["ok"]


def test_models_parse_and_are_pickled(corpus: Path, tmp_path: Path, grammaton_command: Command) -> None:
    result = grammaton.train(corpus, "auto:unigram", max_rounds=4, dir=tmp_path / "out").result()
    model = grammaton.Model.load(tmp_path / "out")
    lines = [line.replace(" ", "") for line in corpus.read_text(encoding="utf-8").splitlines()]
    for decoder in ("viterbi", "mbr", "mbr-tree"):
        there = grammaton_command("parse", tmp_path / "out", corpus, "--decoder", decoder).splitlines()
        assert [parse.text for parse in model.parse(iter(lines), decoder)] == there
    copy = pickle.loads(pickle.dumps(model))
    assert copy.parameters_sha256 == result.parameters_sha256
    assert [parse.tree for parse in copy.parse(lines[:3])] == result.trees[:3]
    found = [(parse.status, parse.text) for parse in model.parse([lines[0], "", "ß9"])]
    assert found == [("ok", result.segmentations["viterbi"][0]), ("empty", ""), ("unknown symbol", "ß9")]
    strings = model.strings("Word")
    assert strings[0]["uses"] >= strings[1]["uses"] > 0 and len(model.strings("Word", 5)) == 5
    assert model.inspect(2)["sticks"][0]["top"] == model.strings("Word", 2)
    assert "Word" in model.grammar and "segments" in repr(model)
    with pytest.raises(KeyError, match="there are: Word"):
        model.strings("Char")
    with pytest.raises(ValueError, match="decoder must be one of viterbi, mbr, mbr-tree"):
        model.parse([], "best")
    with pytest.raises(ValueError, match="line break"):
        list(model.parse(["a\nb"]))
    with pytest.raises(TypeError, match="iterable of sentences"):
        model.parse("ab")
    sentences: list[Any] = [5, b"ab", ["a", 5]]
    for sentence in sentences:
        with pytest.raises(TypeError, match="a sentence is text or a list of tokens, found"):
            list(model.parse([sentence]))
    with pytest.raises(ValueError, match="threads must be from 1"):
        model.parse([], threads=0)
    with pytest.raises(ValueError, match="limit must be from 0"):
        model.strings("Word", -1)
    with pytest.raises(FileNotFoundError, match="no model here"):
        grammaton.Model.load(tmp_path / "nowhere")
    (tmp_path / "model.bin").write_bytes(b"GRMTNMDL?")
    with pytest.raises(ValueError, match="model"):
        grammaton.Model.load(tmp_path)


def test_trees_of_a_treebank(tmp_path: Path) -> None:
    result = grammaton.train(EXAMPLES / "treebank" / "trees.mrg", kind="pcfg-la", method="em", max_rounds=3).result()
    assert result.model.kind == "trees"
    lines = (EXAMPLES / "treebank" / "trees.mrg").read_text(encoding="utf-8")
    words = grammaton.Tree.parse(lines.split("\n\n")[0].split("\n")[0]).leaves
    for decoder in ("viterbi", "max-rule"):
        parses = list(result.model.parse([words, " ".join(words)], decoder))
        assert parses[0] == parses[1] and isinstance(parses[0].tree, grammaton.Tree)
        assert parses[0].tree.leaves == words


def test_segment_looks_at_the_format(tmp_path: Path) -> None:
    def segmented(lines: list[str], **options: Any) -> list[str]:
        found = grammaton.segment(lines, grammar="unigram", chains=1, sweeps=2, **options)
        return [line.replace(" ", "") for line in found.segmented]

    with pytest.warns(UserWarning, match="one of text and one of counts|a column of text and one of counts"):
        assert segmented(["undo\t8", "redo\t15"]) == ["undo", "redo"]
    with pytest.raises(ValueError, match='`column="1"` or `column="2"`'):
        segmented(["undo\tA", "redo\tB"])
    assert segmented(["undo\tA", "redo\tB"], column=1) == ["undo\tA", "redo\tB"]
    for unit in ("char", "grapheme", "ipa"):
        assert segmented(["undo", "redo"], unit=unit) == ["undo", "redo"]
    assert segmented(["UN-do", "Redo"], lowercase=True, punctuation="drop", digraphs=["un"]) == ["undo", "redo"]
    with pytest.raises(ValueError, match="syllable"):
        segmented(["undo", "redo"], unit="syllable")


def test_gold_may_be_a_file(tmp_path: Path) -> None:
    gold = tmp_path / "gold.txt"
    gold.write_text("undo\tun do, undo\nother\toth er\n", encoding="utf-8")
    found = grammaton.segment(["undo", "redo", "unread"], grammar="unigram", chains=1, sweeps=4, gold=gold)
    assert found.scores["mbr-vote"]["sentences"] == 1
    # What is annotated is printed so, and not scored; a word that the text lacks is not printed.
    annotated = tmp_path / "annotated.txt"
    annotated.write_text("re do\nun done\n", encoding="utf-8")
    words = ["undo", "redo", "unread"]
    found = grammaton.segment(words, grammar="unigram", chains=1, sweeps=4, gold=gold, annotated=annotated)
    assert found.segmented[1] == "re do" and [line.replace(" ", "") for line in found.segmented] == words
    assert found.scores["crf"]["sentences"] == 1
    # A mark in the text is a boundary for certain, a known word is found, and morphemes are those of words.
    known = tmp_path / "known.txt"
    known.write_text("undo\n", encoding="utf-8")
    found = grammaton.segment(["re|do", "undo", "redoundo"], grammar="unigram", boundary_mark="|", words=known, chains=1, sweeps=4)
    assert found.boundaries[1][1] == 1.0
    assert sum(int(row["count"]) for row in found.words) == sum(len(line.split()) for line in found.segmented)
    found = grammaton.morphemes(["undo", "redo", "unread"], suffixes=known, annotated=annotated, chains=1, sweeps=4)
    assert found.segmented[1] == "re do"
    with pytest.raises(ValueError, match="--cascade"):
        grammaton.morphemes(["undo"], grammar="unigram", cascade=2)
    whole = grammaton.morphemes(["undo", "redo", "unread"], threshold=0.0, chains=1, sweeps=4)
    assert whole.segmentations["mbr-vote"] == whole.segmented
    with pytest.raises(ValueError, match="threshold"):
        grammaton.morphemes(["undo"], threshold=1.5)


def test_segment_is_the_command(tmp_path: Path, corpus: Path, grammaton_command: Command) -> None:
    lines = corpus.read_text(encoding="utf-8").splitlines()[:60]
    found = grammaton.segment(lines, grammar="unigram", chains=2, sweeps=4)
    file = tmp_path / "text.txt"
    file.write_text("\n".join(lines) + "\n", encoding="utf-8")
    there = grammaton_command("segment", file, "--grammar", "unigram", "--chains", 2, "--sweeps", 4)
    assert found.segmented == there.splitlines()
    assert found.segmented == grammaton.segment(file, grammar=["unigram"], chains=2, sweeps=4, dir=tmp_path / "out").segmented
    with pytest.raises(FileExistsError, match="overwrite=True"):
        grammaton.segment(file, dir=tmp_path / "out")
    with pytest.raises(ValueError, match="not a grammar"):
        grammaton.segment(lines, grammar="unigrm")
    with pytest.raises(ValueError, match="sweeps or seconds"):
        grammaton.segment(lines, sweeps=3, seconds=1)
    refused: list[dict[str, Any]] = [{"chains": 0}, {"chains": 70_000}, {"sweeps": 1}, {"workers": -1}]
    for counts in refused:
        with pytest.raises(ValueError, match="must be from"):
            grammaton.segment(lines, **counts)
    for seconds in (-1, float("nan"), float("inf")):
        with pytest.raises(ValueError, match="seconds must be a positive number"):
            grammaton.segment(lines, seconds=seconds)
    with pytest.raises(ValueError, match="seed must be 0 or more"):
        grammaton.segment(lines, seed=-1)
    with pytest.raises(ValueError, match="single symbol"):
        grammaton.segment(["aa"])


def heads(found: grammaton.Result) -> list[tuple[int, ...]]:
    return [tree.heads for tree in found.trees if isinstance(tree, grammaton.Dependencies)]


def test_heads_of_tagged_words(tmp_path: Path) -> None:
    rows: list[Row] = [("the", "DET"), ("dog", "NOUN"), ("barks", "VERB")]
    found = grammaton.dependencies([rows, rows[1:]], dir=tmp_path / "heads")
    assert heads(found) == [(2, 3, 0), (2, 0)]
    with pytest.raises(FileExistsError):
        grammaton.dependencies([rows], dir=tmp_path / "heads")
    other = grammaton.dependencies([rows, rows[1:]], rules=[{"root": ["NOUN"], "weight": 5}])
    assert heads(other)[0][1] == 0
    some: list[Row] = [("the", "DET", 3), ("dog", "NOUN"), ("barks", "VERB")]
    known = grammaton.dependencies([some, rows[1:]], constrain=True)
    assert heads(known)[0][0] == 3
    with pytest.raises(ValueError, match="a rule needs a `weight`"):
        grammaton.dependencies([rows], rules=[{"root": ["NOUN"]}])
    with pytest.raises(ValueError, match="tags must be"):
        grammaton.dependencies([rows], tags="pos")


def test_heads_of_words_without_tags(tmp_path: Path) -> None:
    text = tmp_path / "raw.txt"
    lines = [f"the {noun} {verb} ." for noun in ("dog", "cat", "hen") for verb in ("barks", "sleeps", "runs")]
    text.write_text("\n".join(lines), encoding="utf-8")
    with pytest.warns(UserWarning, match="tags are induced"):
        found = grammaton.dependencies(text, tags="induce", dir=tmp_path / "heads")
    model = found.model
    expected = heads(found)[0][:3]
    for sentence in ("the dog barks .", ["the", "dog", "barks"], [("the", "DET"), ("dog", "_"), ("barks", "_")]):
        for by in (model, pickle.loads(pickle.dumps(model)), grammaton.Model.load(tmp_path / "heads" / "model")):
            [parse] = by.parse([sentence])
            assert isinstance(parse.tree, grammaton.Dependencies)
            assert (parse.tree.words, parse.tree.heads) == (("the", "dog", "barks"), expected)
    (tmp_path / "heads" / "classes.tsv").unlink()
    with pytest.raises(TypeError, match=r"classes\.tsv"):
        list(grammaton.Model.load(tmp_path / "heads").parse(["the dog barks ."]))


def test_models_of_several_chains_vote(corpus: Path, tmp_path: Path, grammaton_command: Command) -> None:
    out, table = tmp_path / "out", tmp_path / "boundaries.tsv"
    grammaton.segment(corpus, grammar="unigram", chains=2, sweeps=3, dir=out)
    there = grammaton_command("parse", out, corpus, "--boundaries", table).splitlines()
    model = grammaton.Model.load(out)
    lines = [line.replace(" ", "") for line in corpus.read_text(encoding="utf-8").splitlines()]
    found = list(pickle.loads(pickle.dumps(model)).parse(lines, boundaries=True))
    assert [parse.text for parse in found] == there
    rows = [row.split("\t") for row in table.read_text(encoding="utf-8").splitlines()[1:]]
    assert [f"{share:.4f}" for parse in found for share in parse.boundaries or ()] == [row[2] for row in rows]
    assert [parse.text for parse in model.parse(lines, "vote")] == there
    [alone] = model.parse(lines[:1], "viterbi")
    assert alone.tree is not None and alone.boundaries is None and found[0].tree is None
    for decoder in ("vote", "mbr", "viterbi"):
        options = ("--decoder", decoder, "--n-best", "3")
        ranked = [row.split("\t") for row in grammaton_command("parse", out, corpus, *options).splitlines()[1:]]
        best = [pair for parse in model.parse(lines, decoder, n_best=3) for pair in parse.n_best or ()]
        assert best == [(float(probability), text) for _, _, probability, text in ranked]
    assert alone.n_best is None
    with pytest.raises(ValueError, match="n_best must be"):
        model.parse(lines, n_best=0)
    with pytest.raises(ValueError, match="n_best is for the decoders"):
        model.parse(lines, "mbr-tree", n_best=2)
    with pytest.raises(ValueError, match="has not learned from annotated lines"):
        model.parse(lines, "crf")
