//! Law: sentences of `corpus.test` are scored at the end, and change no parameter, round or choice.

use std::fs;

use grammaton_tests::folder::{Folder, Trained, examples};
use serde_json::Value;

/// Trains a job without and with `corpus.test`, and checks that parameters and rounds are equal; returns the result with it.
fn trained(files: &[(&str, &str)], test: &str) -> Trained {
    let folder = Folder::new(files);
    let without = folder.train("without", &[]);
    let with = folder.train("with", &["--set", &format!("corpus.test={test}")]);
    assert_eq!(without.summary.get("test"), None);
    for key in [
        "parameters_sha256",
        "rounds",
        "rounds_run",
        "ending",
        "scores",
        "held_out",
        "attachment",
        "brackets",
    ] {
        assert_eq!(with.summary[key], without.summary[key], "{key}");
    }
    assert_eq!(with.files, without.files);
    with
}

fn example(name: &str) -> String {
    fs::read_to_string(examples().join(name)).unwrap()
}

fn first_lines(text: &str, n: usize) -> String {
    text.split_inclusive('\n').take(n).collect()
}

/// Number of test sentences, and of test sentences without a derivation.
fn predicted(test: &Value) -> (u64, u64) {
    let number = |key: &str| test["predicted"][key].as_u64().unwrap();
    assert!(test["predicted"]["perplexity"].as_f64().unwrap() > 1.0, "{test}");
    (number("sentences"), number("without"))
}

#[test]
fn of_an_adaptor_grammar_and_of_a_pcfg() {
    let corpus = example("segmentation/corpus.txt");
    // The last sentence has a symbol that occurs nowhere else.
    let test = first_lines(&corpus, 20) + "\u{3b1}\u{3b2} \u{3b1}\n";
    let text = "[corpus]\npath = \"corpus.txt\"\nheld_out_share = 0.2\n\
        [inference]\nmax_rounds = 4\ntolerance = 0\n[output]\nscore_every = 1\n";
    let adaptor = format!("[model]\ngrammar = \"auto:unigram\"\n{text}")
        .replace("[inference]\n", "[inference]\ntruncation = 100\n");
    let pcfg = format!("[model]\nkind = \"pcfg\"\ngrammar = \"g.gr\"\n{text}");
    let grammar = "1 1 S --> Word\n1 1 S --> Word S\n1 1 Word --> <substrings>\n";
    for job in [adaptor, pcfg] {
        let files = [
            ("job.toml", &job[..]),
            ("corpus.txt", &first_lines(&corpus, 150)),
            ("test.txt", &test),
            ("g.gr", grammar),
        ];
        let with = trained(&files, "test.txt");
        let test = &with.summary["test"];
        let (sentences, without) = predicted(test);
        assert!(sentences == 21 && (1..21).contains(&without), "{test}");
        for decoder in ["viterbi", "mbr"] {
            assert!(test["scores"][decoder]["sentences"] == 21, "{test}");
            assert!(test["scores"][decoder]["boundary_edges_f1"].as_f64().unwrap() > 0.0, "{test}");
        }
        let choice = with.summary["choice"].as_str().unwrap();
        let rounds = with.summary["rounds"].as_u64().unwrap();
        assert_eq!(
            choice,
            format!(
                "round {rounds} of 4 was chosen by held-out log-likelihood; corpus.test had no part in it"
            )
        );
        assert_eq!((&with.summary["rounds_run"], &with.summary["ending"]), (&4.into(), &"max-rounds".into()));
    }
}

#[test]
fn of_a_dependency_model() {
    let test = example("dependency/test.conllu") + "1\tx\tx\tNEVER\t_\t_\t0\troot\t_\t_\n\n";
    let job = "[model]\nkind = \"dmv\"\n[corpus]\npath = \"train.conllu\"\nheld_out_share = 0.2\n\
        [inference]\nmethod = \"em\"\nmax_rounds = 4\ntolerance = 0\n[output]\nscore_every = 1\n";
    let with = trained(
        &[("job.toml", job), ("train.conllu", &example("dependency/train.conllu")), ("test.conllu", &test)],
        "test.conllu",
    );
    let test = &with.summary["test"];
    let (sentences, without) = predicted(test);
    assert!(without >= 1 && sentences > without, "{test}");
    let all = &test["attachment"]["viterbi"]["all"];
    assert!(all["sentences"].as_u64() >= Some(sentences) && all["directed"].as_f64() > Some(0.2), "{test}");
}

#[test]
fn of_latent_annotations() {
    let trees = example("treebank/trees.mrg");
    let job = "[model]\nkind = \"pcfg-la\"\n[corpus]\npath = \"trees.mrg\"\n\
        [inference]\nmethod = \"em\"\nmax_rounds = 3\nsubtypes = 2\n";
    let with = trained(
        &[("job.toml", job), ("trees.mrg", &trees), ("test.mrg", &first_lines(&trees, 40))],
        "test.mrg",
    );
    let test = &with.summary["test"];
    assert!(test["brackets"]["max-rule"]["labelled"]["f1"].as_f64() > Some(0.5), "{test}");
    assert_eq!(test.get("predicted"), None);
}
