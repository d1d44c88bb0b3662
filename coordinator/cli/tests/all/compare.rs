//! `grammaton compare`, and several outputs in `grammaton eval`: laws over results of the real program, and what is refused.

use std::fs;
use std::path::Path;

use serde_json::Value;
use tempfile::TempDir;

use super::cli::{at, folder, grammaton, refused, stdout};

const TEXT: &str =
    "the dog\nthe cat\n\na dog\nthe cat sees a dog\na cat\nsees the dog\nthe dog sees the cat\n";

/// Trains `text.txt` in a folder with these lines under `[inference]`, into `out`.
fn train(dir: &TempDir, out: &str, corpus: &str, inference: &str) {
    let job = format!(
        "[model]\ngrammar = \"auto:unigram\"\n[corpus]\n{corpus}\n[inference]\nmethod = \"vb\"\n{inference}\n[output]\ndir = \"{out}\"\n"
    );
    let file = at(dir, &format!("{out}.toml"));
    fs::write(&file, job).unwrap();
    grammaton(&["train", &file, "-q"]).success();
}

/// Two runs with different settings.
fn runs() -> TempDir {
    let dir = folder(&[("text.txt", TEXT.as_bytes())]);
    train(&dir, "first", "path = \"text.txt\"", "max_rounds = 2");
    train(&dir, "second", "path = \"text.txt\"", "max_rounds = 20\nconcentration = 10.0");
    dir
}

/// Replaces the segmentation of a run, which is as the decoder `mbr` printed it, with its table.
fn replace(dir: &Path, lines: &[&str], gold: &[&str]) {
    fs::write(dir.join("segmentation.mbr.txt"), lines.join("\n") + "\n").unwrap();
    let row = |(n, (line, gold)): (usize, (&&str, &&str))| {
        let row = if line.is_empty() { "\t\t\tempty".to_owned() } else { format!("{gold}\t{line}\t-1\tok") };
        format!("{}\t{row}\n", n + 1)
    };
    let rows: String = lines.iter().zip(gold).enumerate().map(row).collect();
    fs::write(
        dir.join("segmentation.mbr.tsv"),
        format!("line\tgold\tpredicted\tlog_probability\tstatus\n{rows}"),
    )
    .unwrap();
}

fn json(args: &[&str]) -> Value {
    serde_json::from_str(&stdout(&grammaton(&[args, &["--json"]].concat()).success())).unwrap()
}

fn rows<'a>(found: &'a Value, table: &str) -> &'a Vec<Value> {
    found[table].as_array().unwrap()
}

fn score<'a>(found: &'a Value, run: &str, measure: &str) -> &'a Value {
    let is = |row: &&Value| row["run"] == run && row["measure"] == measure;
    rows(found, "scores").iter().find(is).unwrap_or_else(|| panic!("{run} {measure}: {found}"))
}

#[test]
fn a_run_compared_with_itself_differs_in_nothing() {
    let dir = runs();
    let first = at(&dir, "first");
    let found = json(&["compare", &first, &first]);
    assert!(
        ["lines", "words", "settings", "notices"].iter().all(|table| rows(&found, table).is_empty()),
        "{found}"
    );
    let same = score(&found, "B", "token_f1");
    assert_eq!((&same["difference"], &same["p"]), (&0.0.into(), &1.0.into()));
    assert_eq!(score(&found, "B", "agreement_token_f1")["score"], 1.0);
    let printed = stdout(&grammaton(&["compare", &first, &first]).success());
    assert!(printed.contains("0 of 7 lines differ"), "{printed}");
}

#[test]
fn exchanged_runs_have_the_negative_difference() {
    let dir = runs();
    let [first, second] = ["first", "second"].map(|name| at(&dir, name));
    let (there, back) = (json(&["compare", &first, &second]), json(&["compare", &second, &first]));
    for measure in ["token_f1", "boundary_f1", "exact_share"] {
        let [one, other] = [&there, &back].map(|found| score(found, "B", measure));
        let number = |row: &Value, name: &str| row[name].as_f64().unwrap();
        assert_eq!(number(one, "difference"), -number(other, "difference"));
        assert_eq!(number(one, "difference_low"), -number(other, "difference_high"));
        assert_eq!(one["p"], other["p"]);
        let of_first = score(&there, "A", measure);
        assert_eq!(of_first["score"], other["score"]);
        assert!(number(of_first, "low") <= number(of_first, "score"));
        assert!(number(of_first, "score") <= number(of_first, "high"));
    }
    let swapped = |found: &Value, table: &str| -> Vec<[Value; 3]> {
        let row = |row: &Value| [row["line"].clone(), row["A"].clone(), row["B"].clone()];
        rows(found, table).iter().map(row).collect()
    };
    let turned = swapped(&back, "lines").into_iter().map(|[line, a, b]| [line, b, a]).collect::<Vec<_>>();
    assert_eq!(swapped(&there, "lines"), turned);
    // What is printed as the score of a run is in its summary.
    let summary: Value =
        serde_json::from_str(&fs::read_to_string(dir.path().join("second/summary.json")).unwrap()).unwrap();
    assert_eq!(summary["scores"]["mbr"]["token_f1"], score(&there, "B", "token_f1")["score"]);
    let keys: Vec<&Value> = rows(&there, "settings").iter().map(|row| &row["key"]).collect();
    assert_eq!(keys, ["inference.concentration", "inference.max_rounds"]);
}

/// Law: with several analyses of a word runs have the scores that their summaries have.
#[test]
fn of_several_analyses_the_best_counts() {
    let words = "unlike\nunlikely\nlikely\nkindly\nunkindly\nlike,ly\nkind\nunkind\n";
    let gold = "unlike\tun like\nunlikely\tun likely, un like ly\nlikely\tlikely, like ly\nkindly\tkindly, kind ly\n\
                unkindly\tun kind ly, un kindly\nlike,ly\tlike ,ly, like ,l y\nkind\tkind\nunkind\tun kind\n";
    let dir = folder(&[("words.txt", words.as_bytes()), ("gold.txt", gold.as_bytes())]);
    let corpus = "path = \"words.txt\"\ngold = \"gold.txt\"";
    train(&dir, "first", corpus, "max_rounds = 2");
    train(&dir, "second", corpus, "max_rounds = 20\nconcentration = 10.0");
    let [first, second] = ["first", "second"].map(|name| at(&dir, name));
    let found = json(&["compare", &first, &second]);
    let against = json(&["compare", &first, &second, "--against", &at(&dir, "gold.txt")]);
    for (run, name) in [("A", "first"), ("B", "second")] {
        let summary = fs::read_to_string(dir.path().join(name).join("summary.json")).unwrap();
        let summary: Value = serde_json::from_str(&summary).unwrap();
        for measure in ["token_f1", "boundary_f1"] {
            let expected = &summary["scores"]["mbr"][measure];
            assert_eq!(&score(&found, run, measure)["score"], expected, "{run} {measure}");
            assert_eq!(&score(&against, run, measure)["score"], expected, "{run} {measure}");
        }
    }
    let of_line = |line: u64| rows(&found, "lines").iter().find(|row| row["line"] == line).unwrap();
    assert_eq!(of_line(2)["gold"], "un likely, un like ly");
    let page = at(&dir, "compared");
    grammaton(&["compare", &first, &second, "--out", &page]).success();
    let page = fs::read_to_string(dir.path().join("compared/compare.html")).unwrap();
    assert!(page.contains("un</i> <i>likely</i>") && page.contains("un</i> <i>like</i> <i>ly</i>"), "{page}");
}

#[test]
fn lines_and_words_that_differ_are_listed() {
    let dir = runs();
    let [first, second, third] = ["first", "second", "third"].map(|name| dir.path().join(name));
    let gold: Vec<&str> = TEXT.lines().collect();
    replace(
        &first,
        &[
            "the dog",
            "the cat",
            "",
            "a dog",
            "the cat sees a dog",
            "a cat",
            "sees the dog",
            "the dog sees the cat",
        ],
        &gold,
    );
    replace(
        &second,
        &[
            "the dog",
            "thecat",
            "",
            "a dog",
            "thecat sees ad og",
            "a cat",
            "sees the dog",
            "the dog sees thecat",
        ],
        &gold,
    );
    fs::create_dir(&third).unwrap();
    for name in ["summary.json", "job.toml", "segmentation.mbr.txt", "segmentation.mbr.tsv"] {
        fs::copy(first.join(name), third.join(name)).unwrap();
    }
    let [first, second, third, out] =
        [&first, &second, &third, &dir.path().join("out")].map(|dir| dir.display().to_string());
    let found = json(&["compare", &first, &second, &third]);
    let listed: Vec<_> =
        rows(&found, "lines").iter().map(|row| (row["line"].as_u64(), row["differing"].as_u64())).collect();
    assert_eq!(listed, [(Some(5), Some(3)), (Some(2), Some(1)), (Some(8), Some(1))], "{found}");
    assert_eq!(rows(&found, "lines")[0]["B"], "thecat sees ad og");
    assert_eq!(rows(&found, "lines")[0]["gold"], "the cat sees a dog");
    let counts = |word: &str| {
        let row = rows(&found, "words").iter().find(|row| row["word"] == word);
        row.map(|row| [&row["A"], &row["B"], &row["C"]].map(|count| count.as_u64().unwrap()))
    };
    assert_eq!(counts("thecat"), Some([0, 3, 0]));
    assert_eq!(counts("cat"), Some([4, 1, 4]));
    assert_eq!(counts("sees"), None, "it occurs as often in each");
    // Of 21 tokens of the gold the second has 13 right, and 18 of its own.
    assert_eq!(score(&found, "B", "token_recall")["score"], 13.0 / 21.0);
    assert_eq!(score(&found, "B", "token_precision")["score"], 13.0 / 18.0);
    assert_eq!(score(&found, "C", "token_f1")["p"], 1.0);
    // Text, page and tables say the same.
    let assert = grammaton(&["compare", &first, &second, "-n", "1", "--out", &out]).success();
    let printed = stdout(&assert);
    for part in [
        "3 of 7 lines differ",
        "line 5, 3 positions",
        "  B     thecat sees ad og",
        "B has and A lacks: thecat 3",
        "Token F1 of A",
    ] {
        assert!(printed.contains(part), "{part} is not in {printed}");
    }
    assert!(!printed.contains("line 2,"), "{printed}");
    let read = |name: &str| fs::read_to_string(dir.path().join("out").join(name)).unwrap();
    assert_eq!(
        read("lines.tsv"),
        "line\tdiffering\tgold\tA\tB\n5\t3\tthe cat sees a dog\tthe cat sees a dog\tthecat sees ad og\n\
         2\t1\tthe cat\tthe cat\tthecat\n8\t1\tthe dog sees the cat\tthe dog sees the cat\tthe dog sees thecat\n"
    );
    assert!(
        read("words.tsv")
            .starts_with("word\tA\tB\tin_gold\ncat\t4\t1\tyes\nthe\t6\t3\tyes\nthecat\t0\t3\tno\n"),
        "{}",
        read("words.tsv")
    );
    assert!(
        read("scores.tsv").contains(&format!("B\t{second}\ttoken_recall\t0.6190\t")),
        "{}",
        read("scores.tsv")
    );
    let page = read("compare.html");
    for part in [
        "<i class=\"off\">thecat</i>",
        "<div class=\"samples compared\">",
        ".samples i.off {",
        "3 of 7 lines",
        "words that B has and A lacks",
        "inference.concentration",
    ] {
        assert!(page.contains(part), "{part} is not in {page}");
    }
    for unwanted in ["<script", "http://", "https://", "NaN"] {
        assert!(!page.contains(unwanted), "{unwanted}");
    }
    refused(&["compare", &first, &second, "--out", &out], &["scores.tsv: the file exists", "--out"]);
}

#[test]
fn gold_comes_from_a_file_or_there_is_none() {
    let bare = TEXT.replace(' ', "");
    let dir = folder(&[
        ("text.txt", bare.as_bytes()),
        ("gold.txt", b"the dog\na cat\nacat a cat\n"),
        ("other.txt", b"some thing\n"),
    ]);
    for (out, rounds) in [("first", "max_rounds = 2"), ("second", "max_rounds = 3")] {
        train(&dir, out, "path = \"text.txt\"", rounds);
    }
    let [first, second, gold, other] =
        ["first", "second", "gold.txt", "other.txt"].map(|name| at(&dir, name));
    let without = json(&["compare", &first, &second]);
    let measures: Vec<&Value> = rows(&without, "scores").iter().map(|row| &row["measure"]).collect();
    assert_eq!(measures, ["agreement_token_f1", "agreement_boundary_f1", "agreement_exact_share"]);
    assert!(without["verdicts"][0].as_str().unwrap().starts_with("A and B agree with token F1"), "{without}");
    let with = stdout(&grammaton(&["compare", &first, &second, "--against", &gold]).success());
    assert!(with.contains("Scores of 2 sentences against gold"), "{with}");
    refused(&["compare", &first, &second, "--against", &other], &["other.txt: no line of it is a line of"]);
}

#[test]
fn annotated_lines_are_not_scored() {
    let dir = folder(&[("text.txt", TEXT.as_bytes()), ("annotated.txt", b"the dog\nthe cat\na dog\n")]);
    train(&dir, "first", "path = \"text.txt\"", "max_rounds = 2");
    train(&dir, "second", "path = \"text.txt\"\nannotated = \"annotated.txt\"", "max_rounds = 2");
    let found = json(&["compare", &at(&dir, "first"), &at(&dir, "second")]);
    assert_eq!(found["notices"][0], "3 lines are not scored, since some run has learned from them");
    let summary: Value =
        serde_json::from_str(&fs::read_to_string(dir.path().join("second/summary.json")).unwrap()).unwrap();
    assert_eq!(summary["scores"]["crf"]["token_f1"], score(&found, "B", "token_f1")["score"]);
    assert_eq!(found["n_lines"], 7, "they are compared");
}

#[test]
fn what_cannot_be_compared_is_refused_in_a_line() {
    let dir = runs();
    let [first, second, text] = ["first", "second", "text.txt"].map(|name| at(&dir, name));
    refused(&["compare", &first], &["2 values required"]);
    refused(&["compare", &first, &at(&dir, "nowhere")], &["nowhere: no finished result"]);
    refused(&["compare", &first, &text], &["text.txt: no finished result"]);
    fs::write(dir.path().join("other.txt"), TEXT.replace("a cat", "a cow")).unwrap();
    train(&dir, "other", "path = \"other.txt\"", "max_rounds = 2");
    refused(
        &["compare", &first, &at(&dir, "other")],
        &["other/segmentation.mbr.txt:6: `acow` is not the text of", "first/segmentation.mbr.txt:6, `acat`"],
    );
    fs::write(dir.path().join("longer.txt"), TEXT.to_owned() + "the end\n").unwrap();
    train(&dir, "longer", "path = \"longer.txt\"", "max_rounds = 2");
    refused(&["compare", &first, &at(&dir, "longer")], &["has 8 sentences", "has 7"]);
    train(&dir, "graphemes", "path = \"text.txt\"\nunit = \"grapheme\"", "max_rounds = 2");
    refused(&["compare", &first, &at(&dir, "graphemes")], &["unit grapheme", "unit char"]);
    // Files that do not belong together.
    let table = dir.path().join("second/segmentation.mbr.tsv");
    let good = fs::read_to_string(&table).unwrap();
    for (bad, parts) in [
        ("other\n".to_owned(), ["segmentation.mbr.tsv:1", "expected the columns"]),
        (good.replace("\n2\t", "\n3\t"), ["segmentation.mbr.tsv:3", "expected line 2"]),
        (
            good.replace("\tthe dog\t", "\tthe do\t"),
            ["segmentation.mbr.tsv:2", "the gold is not of the text"],
        ),
        (good.replace('\t', " "), ["segmentation.mbr.tsv:1", "expected the columns"]),
    ] {
        fs::write(&table, bad).unwrap();
        refused(&["compare", &first, &second], &parts);
    }
    fs::write(&table, [0xff, 0xfe, 0x00]).unwrap();
    refused(&["compare", &first, &second], &["segmentation.mbr.tsv"]);
    fs::write(&table, good.replace("\tthe dog\t", "\tthedo g\t")).unwrap();
    refused(
        &["compare", &first, &second],
        &["second: the gold segmentation of line 1 is `thedo g`", "--against"],
    );
    fs::write(dir.path().join("second/summary.json"), "{}").unwrap();
    refused(&["compare", &first, &second], &["second/summary.json: not a summary"]);
    fs::remove_file(dir.path().join("second/summary.json")).unwrap();
    refused(&["compare", &first, &second], &["second: no finished result"]);
}

#[test]
fn outputs_are_scored_beside_each_other() {
    let dir = folder(&[
        ("gold", b"ab c\nd e\nab c\n"),
        ("a", b"ab c\nde\nab c\n"),
        ("b", b"a b c\nd e\n\nab c\n"),
        ("short", b"ab c\n"),
        ("other", b"ab c\nd f\nab c\n"),
        ("words", b"abc\tab c, a bc\nde\td e\nabc\tab c\n"),
    ]);
    let [gold, a, b, words] = ["gold", "a", "b", "words"].map(|name| at(&dir, name));
    let args = ["eval", "segmentation", &a, &b, "--against", &gold];
    let found = json(&args);
    assert_eq!(found["outputs"][0]["token_precision"], 4.0 / 5.0);
    assert_eq!(found["outputs"][0]["intervals"]["token_precision"]["score"], 4.0 / 5.0);
    assert_eq!(found["differences"][0]["first"], "A");
    assert_eq!(
        (&found["differences"][0]["only_first"], &found["differences"][0]["only_second"]),
        (&1.into(), &1.into())
    );
    let text = stdout(&grammaton(&args).success());
    for part in ["A  ", "token F1", "95 % interval", "A − B, token F1", "which may be chance"] {
        assert!(text.contains(part), "{part} is not in {text}");
    }
    let three =
        json(&["eval", "segmentation", &a, &b, &a, "--against", &words, "--resamples", "100", "--seed", "3"]);
    let itself = &three["differences"][1]["differences"]["token_f1"];
    assert_eq!(
        (&itself["difference"], &itself["p"], &itself["resamples"]),
        (&0.0.into(), &1.0.into(), &100.into())
    );
    refused(
        &["eval", "segmentation", &a, &at(&dir, "short"), "--against", &gold],
        &["short has 1 sentences", "gold has 3"],
    );
    refused(
        &["eval", "segmentation", &a, &at(&dir, "other"), "--against", &gold],
        &["other:2: `df` is not the text", "gold:2, `de`"],
    );
    refused(&["eval", "segmentation", &a, &b, &gold], &["--against"]);
    refused(&["eval", "segmentation", "-", "-", "--against", &gold], &["only one"]);
    refused(&["eval", "segmentation", &a, &b, "--against", &gold, "--resamples", "0"], &["--resamples"]);
}

#[test]
fn texts_are_counted_beside_each_other() {
    let dir = folder(&[
        ("words", b"a b a\n\nab\n"),
        ("bare", b"aba\nab\n"),
        ("empty", b""),
        ("lines", b"\n\n"),
        ("binary", b"\xff\xfe\x00\xd8"),
    ]);
    let [words, bare, empty, lines, binary] =
        ["words", "bare", "empty", "lines", "binary"].map(|name| at(&dir, name));
    let text = stdout(&grammaton(&["eval", "stats", &words, &bare]).success());
    let row = |name: &str| {
        let line =
            text.lines().find(|line| line.starts_with(name)).unwrap_or_else(|| panic!("{name}: {text}"));
        line[name.len()..]
            .split("  ")
            .map(str::trim)
            .filter(|cell| !cell.is_empty())
            .map(str::to_owned)
            .collect::<Vec<_>>()
    };
    assert_eq!(row("utterances "), ["2", "2"]);
    assert_eq!(row("words (tokens)"), ["4", "–"]);
    assert_eq!(row("words that occur once (hapaxes)"), ["2", "–"]);
    assert_eq!(row("words per utterance, mean (median)"), ["2.00 (2)", "–"]);
    assert_eq!(row("symbols  "), ["5", "5"]);
    assert_eq!(row("word 1"), ["a 2", "–"]);
    let found: Value = serde_json::from_str(&stdout(
        &grammaton(&["eval", "stats", &words, &bare, "--json", "--top", "1"]).success(),
    ))
    .unwrap();
    assert_eq!(
        (&found[0]["nutts"], &found[0]["nword_types"], &found[0]["word_entropy"]),
        (&2.into(), &3.into(), &1.5.into())
    );
    assert_eq!(found[0]["most_frequent"].as_array().unwrap().len(), 1);
    assert!(found[1].get("nword_tokens").is_none() && found[1]["nsymbol_types"] == 2, "{found}");
    refused(&["eval", "stats"], &["required"]);
    refused(&["eval", "stats", &empty], &["empty"]);
    refused(&["eval", "stats", &lines], &["lines"]);
    refused(&["eval", "stats", &binary], &["binary"]);
    refused(&["eval", "stats", &at(&dir, "nowhere")], &["nowhere: cannot open"]);
    refused(&["eval", "stats", &dir.path().display().to_string()], &[""]);
    refused(&["eval", "stats", "-", "-"], &["only one"]);
}
