//! Laws of `grammaton check`: it names every sentence that training refuses, writes nothing, and its exit code says whether the job can be trained.

use std::fs;

use serde_json::Value;
use tempfile::TempDir;

use crate::cli::{at, folder, grammaton, refused, stdout};

/// Words of a and b that end in b.
const GRAMMAR: &[u8] =
    b"1 1 S --> Word\n1 1 S --> Word S\nWord --> X b\n1 1 X --> L\n1 1 X --> L X\n1 1 L --> a\n1 1 L --> b\n";

fn job(kind: &str, method: &str) -> String {
    format!(
        "[model]\nkind = \"{kind}\"\ngrammar = \"g.gr\"\n[corpus]\npath = \"corpus.txt\"\n[inference]\nmethod = \"{method}\"\n"
    )
}

#[test]
fn all_sentences_without_a_derivation_are_named() {
    for (kind, method) in [("adaptor", "vb"), ("adaptor", "hastings"), ("pcfg", "em")] {
        let job = job(kind, method);
        let files =
            [("g.gr", GRAMMAR), ("job.toml", job.as_bytes()), ("corpus.txt", b"ab abb\nba\n\naab\nabba\n")];
        let dir = folder(&files);
        let printed = grammaton(&["check", &at(&dir, "job.toml"), "--json"]).code(1);
        let report: Value = serde_json::from_str(&stdout(&printed)).unwrap();
        let named: Vec<&str> =
            report["underivable"].as_array().unwrap().iter().map(|line| line.as_str().unwrap()).collect();
        assert_eq!(named.len(), 2, "{named:?}");
        assert!(
            named[0].ends_with("corpus.txt:2: ba") && named[1].ends_with("corpus.txt:5: abba"),
            "{named:?}"
        );
        assert!(report["estimate"].is_null());
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), files.len(), "nothing is written");
        // Training refuses the same job, and takes it without these sentences.
        grammaton(&["train", &at(&dir, "job.toml"), "--quiet"]).code(2);
        fs::write(dir.path().join("corpus.txt"), "ab abb\n\naab\n").unwrap();
        let printed = grammaton(&["check", &at(&dir, "job.toml"), "--json"]).success();
        let report: Value = serde_json::from_str(&stdout(&printed)).unwrap();
        assert_eq!(report["underivable"], serde_json::json!([]));
        assert!(report["estimate"]["seconds"].as_f64().unwrap() > 0.0, "{report}");
        assert!(report["settings"].as_str().unwrap().contains(&format!("method = \"{method}\"")), "{report}");
        grammaton(&["train", &at(&dir, "job.toml"), "--quiet", "--set", "inference.max_rounds=2"]).success();
    }
}

#[test]
fn sentences_with_symbols_that_the_grammar_lacks_are_named_among_the_others() {
    for (kind, method) in [("adaptor", "vb"), ("adaptor", "hastings"), ("pcfg", "em")] {
        let job = job(kind, method);
        let corpus = "ab\naxb\nba\n\naab\nab\nab\nab\nab\nyab\n";
        let dir =
            folder(&[("g.gr", GRAMMAR), ("job.toml", job.as_bytes()), ("corpus.txt", corpus.as_bytes())]);
        let printed = stdout(&grammaton(&["check", &at(&dir, "job.toml")]).code(1));
        let (_, named) = printed.split_once("the grammar cannot derive 3 sentences:\n").expect(&printed);
        let named: Vec<&str> = named.lines().filter(|line| !line.is_empty()).collect();
        let expected = [
            "corpus.txt:2: axb (the grammar has no terminal `x`)",
            "corpus.txt:3: ba",
            "corpus.txt:10: yab (the grammar has no terminal `y`)",
        ];
        assert_eq!(named.len(), expected.len(), "{named:?}");
        assert!(named.iter().zip(expected).all(|(line, expected)| line.ends_with(expected)), "{named:?}");
        grammaton(&["train", &at(&dir, "job.toml"), "--quiet"]).code(2);
    }
}

#[test]
fn a_corpus_is_cleaned_as_the_job_says_and_models_read_new_text_likewise() {
    let job = "[model]\ngrammar = \"auto:unigram\"\n[corpus]\npath = \"corpus.txt\"\nunit = \"grapheme\"\nnormalise = \"nfc\"\n\
        lowercase = true\npunctuation = \"drop\"\ndigraphs = [\"sh\"]\n[inference]\nmax_rounds = 5\n";
    let text = "E\u{301}sh, a\n...\nSh\u{e9} a\nashe\u{301}!\n";
    let dir = folder(&[("job.toml", job.as_bytes()), ("corpus.txt", text.as_bytes())]);
    let out = at(&dir, "out");
    grammaton(&["check", &at(&dir, "job.toml")]).success();
    grammaton(&["train", &at(&dir, "job.toml"), "--quiet", "--out", &out]).success();
    let joined = |text: &str| text.lines().map(|line| line.replace(' ', "")).collect::<Vec<_>>();
    let cleaned = ["\u{e9}sha", "", "sh\u{e9}a", "ash\u{e9}"];
    let segmented = fs::read_to_string(dir.path().join("out/segmentation.viterbi.txt")).unwrap();
    assert_eq!(joined(&segmented), cleaned, "a line for each line, cleaned");
    let parsed = stdout(&grammaton(&["parse", &out, &at(&dir, "corpus.txt")]).success());
    assert_eq!(joined(&parsed), cleaned);
    assert_eq!(parsed, segmented);
}

/// Law: a job that skips sentences trains as the job whose corpus lacks them, and its results still have a line for each of theirs.
#[test]
fn skipped_sentences_change_nothing_but_their_lines() {
    let grammar = "1 1 S --> Word\n1 1 S --> Word S\nWord --> A\nWord --> A B\n1 1 A --> a\n1 1 B --> b\n";
    let is_skipped = |line: &str| line.starts_with('b') || line.contains("bb") || line.contains('x');
    for (kind, method, share) in [
        ("adaptor", "vb", 0.0),
        ("adaptor", "hastings", 0.0),
        ("adaptor", "hastings", 0.4),
        ("pcfg", "em", 0.0),
    ] {
        // A PCFG's terminals are the symbols of the corpus, so that a new symbol would change the model.
        let lines = [
            "ab a",
            "b a",
            "a ab",
            "",
            if kind == "pcfg" { "aba bb" } else { "aba xb" },
            "a a ab",
            "bb",
            "aab a",
        ];
        let text = lines.join("\n") + "\n";
        let without: String =
            lines.iter().filter(|&&line| !is_skipped(line)).map(|line| format!("{line}\n")).collect();
        let job = format!(
            "[model]\nkind = \"{kind}\"\ngrammar = \"g.gr\"\n[corpus]\npath = \"c.txt\"\nheld_out_share = {share}\n[inference]\nmethod = \"{method}\"\nmax_rounds = 4\n"
        );
        let files = [("g.gr", grammar.as_bytes()), ("c.txt", text.as_bytes()), ("job.toml", job.as_bytes())];
        let (with, alone) = (folder(&files), folder(&files));
        fs::write(alone.path().join("c.txt"), &without).unwrap();
        let train = |dir: &TempDir, more: &[&str]| {
            let out = at(dir, "out");
            let args = ["train", &at(dir, "job.toml"), "--out", &out, "--workers", "1"];
            grammaton(&[&args[..], more].concat()).success()
        };
        refused(&["train", &at(&with, "job.toml"), "--quiet"], &["c.txt:"]);
        train(&alone, &["--quiet"]);
        let printed = train(&with, &["--set", "corpus.on_unparsable=skip"]);
        let printed = String::from_utf8(printed.get_output().stderr.clone()).unwrap();
        // Held-out sentences without a derivation are counted when they are measured, and not skipped.
        let n = lines.iter().filter(|&&line| is_skipped(line)).count();
        assert!(
            share > 0.0
                || printed.contains(&format!(
                    "skipped {n} sentences that the grammar cannot derive, the first one in line 2: ba"
                )),
            "{printed}"
        );
        let found =
            |dir: &TempDir, name: &str| fs::read_to_string(dir.path().join("out").join(name)).unwrap();
        for name in ["segmentation.viterbi.txt", "parses.txt"] {
            let expected: Vec<String> = found(&with, name).lines().map(str::to_owned).collect();
            assert_eq!(expected.len(), lines.len(), "{kind} {method}: {name}");
            if share > 0.0 {
                continue; // other sentences are held out
            }
            let mut rest = found(&alone, name).lines().map(str::to_owned).collect::<Vec<_>>().into_iter();
            for (line, written) in lines.iter().zip(&expected) {
                let whole = if name == "parses.txt" { "()".to_owned() } else { line.replace(' ', "") };
                let expected = if is_skipped(line) { whole } else { rest.next().unwrap() };
                assert_eq!(*written, expected, "{kind} {method}: {name}");
            }
        }
        let table = found(&with, "segmentation.viterbi.tsv");
        let row = table.lines().nth(2).unwrap();
        assert!(row.starts_with("2\tb a\t\t\tno analysis"), "{row}");
        if share == 0.0 {
            let digest = |dir: &TempDir| {
                let summary: serde_json::Value = serde_json::from_str(&found(dir, "summary.json")).unwrap();
                summary["parameters_sha256"].as_str().unwrap().to_owned()
            };
            assert_eq!(digest(&with), digest(&alone), "{kind} {method}");
        }
    }
}

/// Law: trees and tagged sentences that cannot be read are refused by line, or skipped and named, and then the model is that of a file without them.
#[test]
fn skipped_trees_and_tagged_sentences_change_nothing() {
    let digest = |dir: &TempDir| {
        let summary = fs::read_to_string(dir.path().join("out/summary.json")).unwrap();
        serde_json::from_str::<Value>(&summary).unwrap()["parameters_sha256"].clone()
    };
    let trees = ["(S (N a) (V b))\n", "(S (N a) b)\n", "(S (N b)\n (V a))\n", "(S (N b) (V (N)))\n"];
    let tagged = ["a\tN\t2\nb\tV\t0\n\n", "a\tN\t2\nb\n\n", "b\tV\t0\na\tN\t1\n\n", "a\tN\t_\nb\t_\t_\n\n"];
    for (model, parts, faults) in [
        ("kind = \"pcfg-la\"", trees, &["c.txt:2:10: found `b`", "skipped 2 such trees"][..]),
        (
            "kind = \"dmv\"",
            tagged,
            &[
                "c.txt:5: found 1 columns",
                "skipped 1 such sentences",
                "c.txt:10: a word of this sentence has no tag",
            ],
        ),
    ] {
        let text = parts.concat();
        let sound = [parts[0], parts[2]].concat();
        let job = format!("[model]\n{model}\n[corpus]\npath = \"c.txt\"\n[inference]\nmax_rounds = 2\n");
        let dirs =
            [text, sound].map(|text| folder(&[("job.toml", job.as_bytes()), ("c.txt", text.as_bytes())]));
        refused(&["train", &at(&dirs[0], "job.toml"), "-q"], &[faults[0], "corpus.on_unparsable = \"skip\""]);
        let train = |dir: &TempDir, more: &[&str]| {
            let args = ["train", &at(dir, "job.toml"), "--out", &at(dir, "out")];
            let assert = grammaton(&[&args[..], more].concat()).success();
            String::from_utf8(assert.get_output().stderr.clone()).unwrap()
        };
        let printed = train(&dirs[0], &["--set", "corpus.on_unparsable=skip"]);
        assert!(faults.iter().all(|fault| printed.contains(fault)), "{printed}");
        train(&dirs[1], &["-q"]);
        assert_eq!(digest(&dirs[0]), digest(&dirs[1]), "{model}");
    }
}

#[test]
fn labels_that_stand_above_each_other_are_named_with_a_tree() {
    let dir = folder(&[("t.mrg", b"(S (N a) (V b))\n(S (A (B a)) (N b))\n(S (B (A b)) (N a))\n")]);
    let out = at(&dir, "out");
    refused(&["treebank", &at(&dir, "t.mrg"), "--out", &out], &["t.mrg:2: the trees have A → B → A"]);
}
