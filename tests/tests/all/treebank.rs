//! Latent annotations over the fleet. Law: the same bits on every fleet and after every kill, and trees for unseen sentences.

use std::fs;

use grammaton_tests::cluster::check_two_workers;
use grammaton_tests::folder::{Folder, Trained, examples};
use grammaton_tests::{Process, eventually};

/// Three methods in one grid, over several shards.
const JOB: &str = "[model]\nkind = \"pcfg-la\"\n\
    [corpus]\npath = \"trees.mrg\"\nheld_out_share = 0.1\nshard_symbols = 100\n\
    [inference]\nmax_rounds = 8\ntolerance = 0\nsubtypes = 3\n\
    [output]\ncheckpoint_seconds = 0\n\
    [[sweep]]\nmethod = [\"em\", \"vb\", \"cvb\"]\n";
const ROUNDS: usize = 24;

fn folder() -> Folder {
    let trees = fs::read_to_string(examples().join("treebank/trees.mrg")).unwrap();
    Folder::new(&[("job.toml", JOB), ("trees.mrg", &trees)])
}

fn undisturbed(folder: &Folder) -> Trained {
    let trained = folder.train("one", &["--workers", "1"]);
    assert_eq!(trained.rounds.len(), ROUNDS);
    trained
}

#[test]
fn threads_and_processes_give_the_same_bits() {
    let folder = folder();
    let one = undisturbed(&folder);
    for run in [1, 2] {
        let bounds = one.bounds(run);
        assert!(bounds.windows(2).all(|pair| pair[1] >= pair[0] - 1e-9 * pair[0].abs()), "{bounds:?}");
    }
    for point in one.summary["points"].as_array().unwrap() {
        for decoder in ["viterbi", "max-rule"] {
            let f1 = point["brackets"][decoder]["labelled"]["f1"].as_f64().unwrap();
            assert!((0.5..=1.0).contains(&f1), "{point}");
        }
    }
    folder.train("two", &["--workers", "2"]).check_equals(&one);
    check_two_workers(&folder, &one);
}

#[test]
fn a_killed_and_resumed_run_ends_with_the_same_bits() {
    let folder = folder();
    let one = undisturbed(&folder);
    for lines in [1, 5, 13] {
        let args = ["train", "job.toml", "--quiet", "--workers", "1", "--resume", "--out", "killed"];
        let mut process = Process::spawn(&mut folder.command(&args));
        let written = || fs::read_to_string(folder.path("killed/metrics.jsonl")).unwrap_or_default();
        eventually(&|| process.log(), || written().lines().count() >= lines);
        process.kill();
    }
    folder.train("killed", &["--resume"]).check_equals(&one);
}

#[test]
fn unseen_sentences_are_parsed() {
    let folder = folder();
    undisturbed(&folder);
    let text = folder.path("text.txt");
    fs::write(&text, "ke banteth ro varok .\n\nzi yomith neverseen .\n").unwrap();
    for decoder in ["viterbi", "max-rule"] {
        let parsed = folder.run(&["parse", "one", "text.txt", "--decoder", decoder]);
        assert_eq!(parsed.code, 0, "{}", parsed.log);
        let trees: Vec<&str> = parsed.out.lines().collect();
        assert_eq!(trees[0], "(ROOT (S (NP (PRP ke)) (VP (VB banteth) (NP (DT ro) (NN varok))) (. .)))");
        assert_eq!((trees.len(), trees[1], trees[2].contains("neverseen")), (3, "", true));
    }
    // No tree of the treebank ends without a full stop.
    fs::write(&text, "ro ro\n").unwrap();
    let flat = folder.run(&["parse", "one", "text.txt", "--strict"]);
    assert_eq!((flat.code, flat.out.as_str()), (1, "(ROOT (DT ro) (DT ro))\n"), "{}", flat.log);
    assert!(flat.log.contains("printed flat: 1 of 1 sentences, the first one in line 1"), "{}", flat.log);
    let refused = folder.run(&["parse", "one", "text.txt", "--decoder", "mbr"]);
    assert!(refused.code == 2 && refused.log.contains("--decoder max-rule"), "{}", refused.log);
    fs::write(&text, "ro ".repeat(201)).unwrap();
    let refused = folder.run(&["parse", "one", "text.txt"]);
    assert!(refused.code == 2 && refused.log.contains("200"), "{}", refused.log);
}

#[test]
fn a_grammar_is_extracted_from_trees_and_training_starts_from_them() {
    let job = fs::read_to_string(examples().join("treebank/pcfg.toml")).unwrap();
    let trees = fs::read_to_string(examples().join("treebank/trees.mrg")).unwrap();
    let folder = Folder::new(&[("job.toml", &job), ("trees.mrg", &trees)]);
    let read_off = folder.run(&["treebank", "trees.mrg", "--out", "out-pcfg-data"]);
    assert!(read_off.log.contains("41 rules of 60 trees; left out 0"), "{}", read_off.log);
    let f1 = |out: &str| {
        let (gold, parses) = ("out-pcfg-data/trees.txt", format!("{out}/parses.txt"));
        let scores = folder.grammaton(&["eval", "brackets", gold, &parses, "--json"]);
        let scores: serde_json::Value = serde_json::from_str(&scores).unwrap();
        assert_eq!(scores["all"]["tagging"], 1.0, "{scores}");
        scores["all"]["labelled"]["f1"].as_f64().unwrap()
    };
    // Without rounds, parameters follow from the counts of rules in the trees.
    for method in ["em", "map-em", "vb", "vb-em", "cvb"] {
        let method = format!("inference.method={method}");
        let start =
            folder.train("start", &["--overwrite", "--set", "inference.max_rounds=0", "--set", &method]);
        assert!(start.rounds.is_empty() && start.summary["bound"].is_null(), "{}", start.summary);
        assert!(f1("start") > 0.9, "{method}");
    }
    let trained = folder.train("trained", &[]);
    assert!(trained.bounds(1).windows(2).all(|pair| pair[1] >= pair[0] - 1e-9), "{:?}", trained.bounds(1));
    assert!(f1("trained") > 0.9);
    let refused = folder.run(&["treebank", "trees.mrg", "--out", "none", "--max-length", "1"]);
    assert!(refused.code == 2 && refused.log.contains("--max-length"), "{}", refused.log);
    assert!(!folder.path("none").exists());
}
