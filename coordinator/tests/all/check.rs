//! Laws of `grammaton check`: it names every sentence that training refuses, writes nothing, and its exit code says whether the job can be trained.

use std::fs;

use serde_json::Value;

use crate::cli::{at, folder, grammaton, stdout};

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
        let told = grammaton(&["check", &at(&dir, "job.toml"), "--json"]).code(1);
        let report: Value = serde_json::from_str(&stdout(&told)).unwrap();
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
        let told = grammaton(&["check", &at(&dir, "job.toml"), "--json"]).success();
        let report: Value = serde_json::from_str(&stdout(&told)).unwrap();
        assert_eq!(report["underivable"], serde_json::json!([]));
        assert!(report["estimate"]["seconds"].as_f64().unwrap() > 0.0, "{report}");
        assert!(report["settings"].as_str().unwrap().contains(&format!("method = \"{method}\"")), "{report}");
        grammaton(&["train", &at(&dir, "job.toml"), "--quiet", "--set", "inference.max_rounds=2"]).success();
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
