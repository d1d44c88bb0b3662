//! `grammaton grammars`: the list, and grammars as files.

use std::fs;

use grammaton::grammar::auto::FAMILY;
use grammaton::grammar::syntax;

use super::cli::{at, folder, grammaton, refused, stdout};

#[test]
fn every_member_of_the_family_is_listed_and_printed_as_a_file_that_trains_the_same() {
    let list = stdout(&grammaton(&["grammars"]).success());
    assert_eq!(list.lines().count(), FAMILY.len());
    let dir = folder(&[("corpus.txt", b"tu mi tu\nat\nm\n")]);
    let corpus = at(&dir, "corpus.txt");
    for (name, _) in FAMILY {
        assert!(list.contains(&format!("auto:{name} ")), "{name}");
        let text = stdout(&grammaton(&["grammars", name, "--corpus", &corpus]).success());
        let (grammar, notices) = syntax::parse(&text, name).unwrap();
        assert!(notices.is_empty() && grammar.symbol("t").is_some(), "{name}");
    }
    let name = "colloc-syllable-functionwords-left";
    let printed = stdout(&grammaton(&["grammars", name, "--corpus", &corpus]).success());
    fs::write(dir.path().join("printed.gr"), printed).unwrap();
    let sha256 = |grammar: &str, segments: &str| {
        let job = format!(
            "[model]\ngrammar = \"{grammar}\"\n[corpus]\npath = \"corpus.txt\"\n[output]\nsegments = {segments}\n\
             [inference]\nmax_rounds = 3\n"
        );
        fs::write(dir.path().join("job.toml"), job).unwrap();
        let out = at(&dir, "out");
        grammaton(&["train", &at(&dir, "job.toml"), "--out", &out, "--overwrite", "-q"]).success();
        let summary: serde_json::Value =
            serde_json::from_str(&fs::read_to_string(dir.path().join("out/summary.json")).unwrap()).unwrap();
        summary["parameters_sha256"].as_str().unwrap().to_owned()
    };
    let segments = "[\"FuncWord\", \"Word\"]";
    assert_eq!(sha256(&format!("auto:{name}"), "[]"), sha256("printed.gr", segments));
}

#[test]
fn units_and_vowels_are_those_of_the_job_file() {
    let dir = folder(&[("corpus.txt", b"t aa | m aa\naa\n")]);
    let corpus = at(&dir, "corpus.txt");
    let print = |more: &[&str]| {
        let args =
            [&["grammars", "auto:colloc-syllable", "--corpus", &corpus, "--unit", "token"], more].concat();
        stdout(&grammaton(&args).success())
    };
    assert!(print(&[]).contains("1 1 Vowel --> aa\n"));
    assert!(
        print(&["--vowels", "m x"]).ends_with("1 1 Vowel --> m\n")
            && print(&["--vowels", "m x"]).contains("1 1 Consonant --> aa\n")
    );
}

#[test]
fn marks_of_stress_are_those_that_are_named() {
    let dir = folder(&[("corpus.txt", "taˈ mi\nat\npa'\n".as_bytes())]);
    let corpus = at(&dir, "corpus.txt");
    let print = |more: &[&str]| {
        let args = [&["grammars", "colloc-syllable-stress", "--corpus", &corpus], more].concat();
        let found = grammaton(&args).success();
        let messages = String::from_utf8(found.get_output().stderr.clone()).unwrap();
        (stdout(&found), messages.contains("no stress mark"))
    };
    let (text, _) = print(&[]);
    assert!(text.contains("1 1 Stress --> ˈ\n") && !text.contains("Stress --> '"), "{text}");
    assert!(print(&["--stress", "'"]).0.contains("1 1 Stress --> '\n"));
    let (text, is_told) = print(&["--stress", "x"]);
    assert!(is_told && !text.contains("Stressed"), "{text}");
}

#[test]
fn wrong_names_and_corpora_are_refused_in_a_line() {
    let dir = folder(&[("corpus.txt", b"ta\n"), ("empty.txt", b"\n"), ("latin1.txt", b"a\n\xe9\n")]);
    let corpus = at(&dir, "corpus.txt");
    refused(&["grammars", "coloc", "--corpus", &corpus], &["did you mean \"colloc\""]);
    refused(&["grammars", "colloc"], &["--corpus"]);
    refused(
        &["grammars", "colloc", "--corpus", &at(&dir, "none.txt")],
        &["none.txt: cannot open the corpus"],
    );
    refused(&["grammars", "colloc", "--corpus", &at(&dir, "empty.txt")], &["no sentences"]);
    refused(
        &["grammars", "colloc", "--corpus", &at(&dir, "latin1.txt")],
        &["latin1.txt:2: byte 2 is not UTF-8"],
    );
    let vowels = ["--vowels", "o e"];
    let args = [&["grammars", "colloc-syllable", "--corpus", &corpus], &vowels[..]].concat();
    refused(&args, &["none of these symbols is in the corpus"]);
}

#[test]
fn collocations_by_variational_bayes_are_warned_of() {
    let dir = folder(&[("corpus.txt", b"tamita\natami\nmata\n")]);
    for (grammar, method, warns) in [
        ("colloc", "vb", true),
        ("colloc3-syllable", "svb", true),
        ("colloc", "hastings", false),
        ("unigram", "vb", false),
    ] {
        let job = format!(
            "[model]\ngrammar = \"auto:{grammar}\"\n[corpus]\npath = \"corpus.txt\"\n[inference]\nmethod = \"{method}\"\n"
        );
        fs::write(dir.path().join("job.toml"), job).unwrap();
        let found = grammaton(&["check", &at(&dir, "job.toml")]).success();
        let printed = String::from_utf8(found.get_output().stderr.clone()).unwrap();
        assert_eq!(printed.contains("take inference.method = \"hastings\""), warns, "{printed}");
    }
}
