//! `grammaton parse` of new text by the models of several chains, and the probabilities of its boundaries.

use std::fs;

use serde_json::Value;

use super::cli::{at, folder, grammaton, refused, stdout};

/// Utterances of a few words, without spaces.
fn text(from: usize, to: usize) -> String {
    let words = ["lok", "pa", "tier", "mun", "zabo", "ki", "lopa", "mutier"];
    let line = |n: usize| -> String {
        (0..2 + n % 4).map(|at| words[(n * n * 7 + at * (3 + n % 5) + n / 3) % words.len()]).collect()
    };
    (from..to).map(|n| line(n) + "\n").collect()
}

const RUN: [&str; 5] = ["--quiet", "--grammar", "unigram", "--sweeps", "3"];

fn n_models(results: &str) -> u64 {
    let inspection = stdout(&grammaton(&["inspect", results, "--json"]).success());
    serde_json::from_str::<Value>(&inspection).unwrap()["models"].as_u64().unwrap()
}

/// The printed segmentation as rows of a table say where its boundaries are, and the probabilities.
fn printed(table: &str, text: &str) -> (String, Vec<f64>) {
    let mut lines: Vec<Vec<char>> = text.lines().map(|line| line.chars().collect()).collect();
    let mut probabilities = Vec::new();
    for row in table.lines().skip(1).collect::<Vec<_>>().into_iter().rev() {
        let row: Vec<&str> = row.split('\t').collect();
        let (line, position): (usize, usize) = (row[0].parse().unwrap(), row[1].parse().unwrap());
        probabilities.push(row[2].parse().unwrap());
        if row[3] == "yes" {
            lines[line - 1].insert(position, ' ');
        }
    }
    let lines: String = lines.into_iter().map(|line| line.into_iter().collect::<String>() + "\n").collect();
    (lines, probabilities)
}

#[test]
fn new_text_is_read_by_the_vote_of_all_chains() {
    let new = text(40, 70) + "\nlokqu\n";
    let dir = folder(&[("text.txt", text(0, 40).as_bytes()), ("new.txt", new.as_bytes())]);
    let [corpus, file, out, table] =
        ["text.txt", "new.txt", "out", "boundaries.tsv"].map(|name| at(&dir, name));
    grammaton(&[&["segment", &corpus, "--chains", "3", "--out", &out], &RUN[..]].concat()).success();
    assert_eq!(n_models(&out), 3);
    let parse = |more: &[&str]| stdout(&grammaton(&[&["parse", &out, &file], more].concat()).success());
    let read_table = || fs::read_to_string(&table).unwrap();
    let vote = parse(&["--boundaries", &table]);
    let first = read_table();
    assert_eq!(vote.replace(' ', ""), new);
    assert_eq!(parse(&[]), vote, "with probabilities or without");
    assert_eq!(parse(&["--decoder", "vote", "--threads", "1", "--boundaries", &table]), vote);
    assert_eq!(read_table(), first, "on any number of threads");
    parse(&["--decoder", "mbr", "--boundaries", &table]);
    assert_ne!(read_table(), first, "the first model alone is another reader");
    // The table has every position of the lines that are read, with the boundaries that are printed.
    let (lines, probabilities) = printed(&first, &new);
    assert_eq!(lines, vote);
    let n_positions: usize =
        new.lines().filter(|line| !line.contains('q')).map(|line| line.len().saturating_sub(1)).sum();
    assert_eq!(probabilities.len(), n_positions);
    assert!(probabilities.iter().any(|probability| *probability > 0.0 && *probability < 1.0));
    // A line is read by itself.
    let line = new.lines().nth(3).unwrap();
    let alone = grammaton(&["parse", &out, &at(&dir, "one.txt")]);
    alone.code(2);
    fs::write(dir.path().join("one.txt"), line).unwrap();
    let alone = stdout(&grammaton(&["parse", &out, &at(&dir, "one.txt")]).success());
    assert_eq!(alone.trim(), vote.lines().nth(3).unwrap());
    // A tree is that of one model; a table has the probability of the mixture.
    assert!(parse(&["--format", "brackets"]).starts_with("(Sentence "));
    refused(&["parse", &out, &file, "--format", "brackets", "--decoder", "vote"], &["vote gives no trees"]);
    let rows = parse(&["--format", "tsv"]);
    let log = |row: &str| row.split('\t').nth(3).unwrap().parse::<f64>().ok();
    assert!(rows.lines().nth(1).and_then(log).is_some_and(|log| log < 0.0), "{rows}");
}

#[test]
fn tables_of_boundaries_are_written_whole_and_over_no_text() {
    let dir = folder(&[("text.txt", text(0, 30).as_bytes()), ("empty.txt", b"")]);
    let [corpus, out, table] = ["text.txt", "out", "new/boundaries.tsv"].map(|name| at(&dir, name));
    grammaton(&[&["segment", &corpus, "--chains", "1", "--out", &out], &RUN[..]].concat()).success();
    assert_eq!(n_models(&out), 1);
    let before = fs::read(dir.path().join("text.txt")).unwrap();
    refused(&["parse", &out, &corpus, "--boundaries", &corpus], &["text.txt", "would be overwritten"]);
    assert_eq!(fs::read(dir.path().join("text.txt")).unwrap(), before);
    refused(&["parse", &out, &corpus, "--boundaries", &out], &["a folder", "boundaries.tsv"]);
    refused(&["parse", &out, &at(&dir, "none.txt"), "--boundaries", &table], &["none.txt"]);
    assert!(!dir.path().join("new").exists(), "the text comes first");
    refused(&["parse", &out, &corpus, "--decoder", "crf"], &["has not learned from annotated lines"]);
    // By each decoder the text that was trained on, as the table says.
    for decoder in ["viterbi", "mbr", "mbr-tree", "vote"] {
        let run = ["parse", &out, &corpus, "--decoder", decoder, "--boundaries", &table];
        let found = stdout(&grammaton(&run).success());
        let (lines, probabilities) = printed(&fs::read_to_string(&table).unwrap(), &text(0, 30));
        assert_eq!(lines, found, "{decoder}");
        assert!(probabilities.iter().all(|probability| (0.0..=1.0).contains(probability)));
    }
    let files: Vec<_> = fs::read_dir(dir.path().join("new")).unwrap().collect();
    assert_eq!(files.len(), 1, "no temporary file stays: {files:?}");
}

#[test]
fn a_job_says_how_many_models_it_keeps() {
    let words = "unlok\nreloking\nlok\nuntier\ntiers\nretier\npas\nunpa\n".repeat(3);
    let dir = folder(&[("words.txt", words.as_bytes())]);
    let [file, out, all] = ["words.txt", "out", "all"].map(|name| at(&dir, name));
    let run = ["--quiet", "--chains", "2", "--sweeps", "3"];
    grammaton(&[&["morphemes", &file, "--out", &out], &run[..]].concat()).success();
    assert_eq!(n_models(&out), 1);
    let more = ["--set", "output.models=all"];
    grammaton(&[&["morphemes", &file, "--out", &all], &run[..], &more[..]].concat()).success();
    assert_eq!(n_models(&all), 2);
    for name in ["segmented.txt", "boundaries.tsv", "lexicon.tsv"] {
        let [one, all] =
            ["out", "all"].map(|dir_name| fs::read(dir.path().join(dir_name).join(name)).unwrap());
        assert_eq!(one, all, "{name}: the text of the job is read by all chains");
    }
}

#[test]
fn methods_without_samples_have_probabilities_too() {
    let job = "[model]\ngrammar = \"auto:unigram\"\n[corpus]\npath = \"text.txt\"\n[inference]\nmax_rounds = 4\n[output]\ndir = \"out\"\n";
    let dir = folder(&[("text.txt", text(0, 40).as_bytes()), ("job.toml", job.as_bytes())]);
    grammaton(&["train", &at(&dir, "job.toml"), "-q"]).success();
    let read = |name: &str| fs::read_to_string(dir.path().join(name)).unwrap();
    let (lines, probabilities) = printed(&read("out/boundaries.tsv"), &text(0, 40));
    assert_eq!(lines, read("out/segmentation.mbr.txt"));
    assert!(probabilities.iter().any(|probability| *probability > 0.0 && *probability < 1.0));
    assert!(read("out/lexicon.tsv").lines().skip(1).all(|row| !row.split('\t').nth(3).unwrap().is_empty()));
    // `parse` finds the same probabilities with the strings of training.
    let table = at(&dir, "parsed.tsv");
    let run = [
        "parse",
        &at(&dir, "out"),
        &at(&dir, "text.txt"),
        "--decoder",
        "mbr",
        "--closed",
        "--boundaries",
        &table,
    ];
    grammaton(&run).success();
    assert_eq!(read("parsed.tsv"), read("out/boundaries.tsv"));
    // Lines to annotate are those that are unsure.
    let suggested = stdout(&grammaton(&["suggest", &at(&dir, "out"), "-n", "3"]).success());
    assert_eq!(suggested.lines().count(), 3);
}
