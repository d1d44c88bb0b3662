//! `grammaton suggest`: the lines whose annotation would teach most, before and after they are annotated.

use std::collections::BTreeSet;
use std::fs;

use super::cli::{at, folder, grammaton, refused, stdout};

/// Words of three stems with two suffixes, some of them twice.
fn words() -> String {
    let stems = ["lok", "patier", "munzabo", "ki", "tarela", "zu"];
    let words =
        stems.iter().flat_map(|stem| ["", "ing", "s", "ed", ""].map(|suffix| format!("{stem}{suffix}\n")));
    words.collect()
}

const RUN: [&str; 7] = ["--quiet", "--chains", "2", "--sweeps", "4", "--grammar", "morph1"];

#[test]
fn unsure_lines_are_suggested_once_and_not_again_when_they_are_annotated() {
    let dir = folder(&[("words.txt", words().as_bytes())]);
    let [text, first, file, second] = ["words.txt", "first", "file.txt", "second"].map(|name| at(&dir, name));
    grammaton(&[&["morphemes", &text, "--out", &first], &RUN[..]].concat()).success();
    let suggested = |results: &str, n: &str| stdout(&grammaton(&["suggest", results, "-n", n]).success());
    let lines = suggested(&first, "4");
    assert_eq!(lines.lines().count(), 4);
    assert!(suggested(&first, "9").starts_with(&lines), "fewer lines are the first of more");
    // Each is a line as it is printed, and a word of the text that is in no other.
    let printed = fs::read_to_string(dir.path().join("first/segmented.txt")).unwrap();
    let printed: BTreeSet<&str> = printed.lines().collect();
    assert!(lines.lines().all(|line| printed.contains(line)), "{lines}");
    let all = suggested(&first, "1000");
    let joined = |lines: &str| lines.lines().map(|line| line.replace(' ', "")).collect::<Vec<_>>();
    let distinct: BTreeSet<String> = joined(&all).into_iter().collect();
    assert_eq!(distinct.len(), all.lines().count());
    // What is annotated is sure.
    grammaton(&["suggest", &first, "-n", "4", "--out", &file]).success();
    assert_eq!(fs::read_to_string(&file).unwrap(), lines);
    fs::write(&file, "lok ing\n".to_owned() + &lines).unwrap();
    grammaton(&[&["morphemes", &text, "--annotated", &file, "--out", &second], &RUN[..]].concat()).success();
    let again = joined(&suggested(&second, "1000"));
    assert!(!again.is_empty() && joined(&lines).iter().all(|word| !again.contains(word)), "{again:?}");
    refused(&["suggest", &second, "--out", &file], &["file.txt", "exists", "--out"]);
}

#[test]
fn results_without_probabilities_are_refused_with_a_way_out() {
    let job = "[model]\ngrammar = \"auto:unigram\"\n[corpus]\npath = \"text.txt\"\n[inference]\nmax_rounds = 2\n[output]\ndir = \"out\"\n";
    let dir = folder(&[("text.txt", b"abab\nbab\n"), ("job.toml", job.as_bytes())]);
    grammaton(&["train", &at(&dir, "job.toml"), "-q"]).success();
    let out = at(&dir, "out");
    refused(&["suggest", &at(&dir, "nowhere")], &["nowhere", "no finished result"]);
    let table = dir.path().join("out/boundaries.tsv");
    fs::remove_file(&table).unwrap();
    refused(&["suggest", &out], &["boundaries.tsv", "output.segments", "train again"]);
    // Tables that do not belong to the text, or cannot be read, are not misread.
    let header = "line\tposition\tprobability\tboundary\n";
    for (rows, parts) in [
        ("1\t1\t0.5\tno\n", ["line 1 of the text", "4 symbols"]),
        ("7\t1\t0.5\tno\n", ["line 7", "not in the text"]),
        ("1\t2\t0.5\tno\n", ["line 2", "position"]),
        ("1\t1\tmuch\tno\n", ["line 2", "much"]),
    ] {
        fs::write(&table, header.to_owned() + rows).unwrap();
        refused(&["suggest", &out], &parts);
    }
    fs::write(&table, "other\n").unwrap();
    refused(&["suggest", &out], &["boundaries.tsv", "expected the columns"]);
    fs::write(&table, header.to_owned() + "2\t1\t0.0000\tno\n2\t2\t1.0000\tyes\n").unwrap();
    refused(&["suggest", &out], &["every boundary is sure"]);
}
