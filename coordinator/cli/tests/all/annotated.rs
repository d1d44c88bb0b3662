//! `corpus.annotated`: what a conditional random field learns from a few segmented lines, in jobs and by the commands.

use std::collections::BTreeMap;
use std::fs;

use super::cli::{at, folder, grammaton, refused, stdout};

/// Words of stems and affixes, with their morphemes.
fn words() -> Vec<(String, String)> {
    let (stems, affixes) = (["lok", "pa", "tier", "mun", "zabo"], ["", "ing", "s", "ed"]);
    let word = |prefix: &str, stem: &str, suffix: &str| {
        let morphemes: Vec<&str> =
            [prefix, stem, suffix].into_iter().filter(|morph| !morph.is_empty()).collect();
        (morphemes.concat(), morphemes.join(" "))
    };
    let of_stem = |stem: &&'static str| {
        let stem = *stem;
        ["", "un", "re"].into_iter().flat_map(move |prefix| affixes.map(|suffix| word(prefix, stem, suffix)))
    };
    stems.iter().flat_map(of_stem).collect()
}

fn lines(of: impl Iterator<Item = String>) -> String {
    of.map(|line| line + "\n").collect()
}

#[test]
fn annotated_words_are_printed_as_they_are_annotated_and_others_learn_from_them() {
    let words = words();
    // Every third word is annotated, and one that is not in the list.
    let annotated = words.iter().step_by(3).map(|(word, morphemes)| format!("{word}\t{morphemes}"));
    let annotated = lines(annotated.chain(["unxing\tun x ing".to_owned()]));
    let gold = lines(words.iter().map(|(_, morphemes)| morphemes.clone()));
    let dir = folder(&[
        ("words.txt", lines(words.iter().map(|(word, _)| word.clone())).as_bytes()),
        ("known.tsv", annotated.as_bytes()),
        ("gold.txt", gold.as_bytes()),
    ]);
    let [text, known, gold_file, out] =
        ["words.txt", "known.tsv", "gold.txt", "out"].map(|name| at(&dir, name));
    let run = ["--quiet", "--sweeps", "20", "--chains", "2", "--annotated", &known, "--gold", &gold_file];
    grammaton(&[&["morphemes", &text, "--out", &out], &run[..]].concat()).success();
    let read = |name: &str| fs::read_to_string(dir.path().join(name)).unwrap();
    let segmented = read("out/segmented.txt");
    assert_eq!(segmented.replace(' ', ""), read("words.txt"));
    let found: Vec<&str> = segmented.lines().collect();
    for (at, (found, (_, morphemes))) in found.iter().zip(&words).enumerate() {
        assert!(at % 3 > 0 || found == morphemes, "{found} {morphemes}");
    }
    // Trials have asked whether another grammar is better.
    let job = read("out/job.toml");
    assert!(job.contains("annotated lines with an F1 of") && job.contains("auto:morph"), "{job}");
    // What was learned from is not scored, and the field is better than what it began with.
    let summary: serde_json::Value = serde_json::from_str(&read("out/summary.json")).unwrap();
    let scores = &summary["scores"];
    let n_annotated = words.iter().step_by(3).count();
    assert_eq!(scores["crf"]["sentences"], words.len() - n_annotated);
    assert_eq!(scores["mbr-vote"]["sentences"], words.len() - n_annotated);
    let f1 = |decoder: &str| scores[decoder]["boundary_f1"].as_f64().unwrap_or_default();
    assert!(f1("crf") > 0.9 && f1("crf") >= f1("mbr-vote"), "{scores}");
    // Probabilities are those of the field; an annotated word is certain.
    let mut certain: BTreeMap<usize, bool> = BTreeMap::new();
    for row in read("out/boundaries.tsv").lines().skip(1) {
        let row: Vec<&str> = row.split('\t').collect();
        let (line, probability): (usize, f64) = (row[0].parse().unwrap(), row[2].parse().unwrap());
        assert_eq!(probability > 0.5, row[3] == "yes", "{row:?}");
        *certain.entry(line).or_insert(true) &= probability == 0.0 || probability == 1.0;
    }
    assert!(certain.iter().all(|(line, certain)| line % 3 != 1 || *certain));
    assert!(certain.values().any(|certain| !certain));
    // The job file gives the same result, on one thread too.
    grammaton(&["train", &at(&dir, "out/job.toml"), "--out", &at(&dir, "again"), "-q", "--workers", "1"])
        .success();
    for name in ["segmentation.crf.txt", "boundaries.tsv", "lexicon.tsv"] {
        assert_eq!(read(&format!("out/{name}")), read(&format!("again/{name}")), "{name}");
    }
}

#[test]
fn every_method_learns_from_annotated_sentences() {
    let grammar = "1 1 S --> Word\n1 1 S --> Word S\nWord --> L\nWord --> L Word\n1 1 L --> a\n1 1 L --> b\n1 1 L --> c\n";
    // A word ends after every c.
    let line = |n: usize| -> String {
        let symbols = (0..6).map(|at| ["a", "b", "c ", "b"][(n * 7 + at * at * (n + 3)) % 4]);
        symbols.collect::<String>().trim().to_owned()
    };
    let text = lines((0..30).map(line));
    let annotated = lines(text.lines().take(12).map(str::to_owned));
    let job = |kind: &str, method: &str| {
        let samples =
            if ["gibbs", "hastings"].contains(&method) { "keep_every = 1\nburn_in = 0.0\n" } else { "" };
        format!(
            "[model]\nkind = \"{kind}\"\ngrammar = \"g.gr\"\n[corpus]\npath = \"text.txt\"\nannotated = \"known.txt\"\n\
             [inference]\nmethod = \"{method}\"\nmax_rounds = 3\n{samples}[output]\ndir = \"{kind}-{method}\"\n"
        )
    };
    let dir = folder(&[
        ("text.txt", text.replace(' ', "").as_bytes()),
        ("gold.txt", text.as_bytes()),
        ("known.txt", annotated.as_bytes()),
        ("g.gr", grammar.as_bytes()),
    ]);
    let methods = [("adaptor", ["vb", "svb", "hastings"]), ("pcfg", ["em", "cvb", "gibbs"])];
    for (kind, method) in
        methods.iter().flat_map(|(kind, methods)| methods.iter().map(move |method| (*kind, *method)))
    {
        fs::write(dir.path().join("job.toml"), job(kind, method)).unwrap();
        grammaton(&["train", &at(&dir, "job.toml"), "-q"]).success();
        let read =
            |name: &str| fs::read_to_string(dir.path().join(format!("{kind}-{method}/{name}"))).unwrap();
        assert_eq!(read("segmentation.crf.txt"), text, "{kind} {method}");
        let segments = read("lexicon.tsv")
            .lines()
            .skip(1)
            .map(|row| row.split('\t').nth(2).unwrap().parse::<usize>().unwrap())
            .sum::<usize>();
        assert_eq!(segments, text.split_whitespace().count(), "{kind} {method}");
        // The model keeps what was learned for new sentences.
        let new = lines((30..60).map(line));
        fs::write(dir.path().join("new.txt"), new.replace(' ', "")).unwrap();
        let (model, file) = (at(&dir, &format!("{kind}-{method}")), at(&dir, "new.txt"));
        let parse = |more: &[&str]| stdout(&grammaton(&[&["parse", &model, &file], more].concat()).success());
        assert_eq!(parse(&[]), new, "{kind} {method}");
        assert_eq!(parse(&["--decoder", "crf", "--threads", "1"]), new);
        assert_ne!(parse(&["--decoder", "mbr"]), new, "the model alone does not know where words end");
        assert!(parse(&["--format", "brackets"]).starts_with("(S "));
        refused(
            &["parse", &model, &file, "--format", "brackets", "--decoder", "crf"],
            &["crf gives no trees"],
        );
    }
}

#[test]
fn annotations_of_another_text_are_refused() {
    let dir = folder(&[("text.txt", b"ab\nba\n"), ("known.txt", b"a bb\n")]);
    let job =
        "[model]\ngrammar = \"auto:unigram\"\n[corpus]\npath = \"text.txt\"\nannotated = \"known.txt\"\n";
    fs::write(dir.path().join("job.toml"), job).unwrap();
    refused(
        &["train", &at(&dir, "job.toml")],
        &["known.txt", "none of 1 lines is a sentence of", "text.txt"],
    );
    refused(&["segment", &at(&dir, "text.txt"), "--annotated", "no-such-file.txt"], &["no-such-file.txt"]);
    // The commands add what the text lacks, and print the lines of the text alone.
    let run = ["--grammar", "unigram", "--chains", "1", "--sweeps", "2", "--quiet"];
    let segmented = grammaton(
        &[&["segment", &at(&dir, "text.txt"), "--annotated", &at(&dir, "known.txt")], &run[..]].concat(),
    );
    assert_eq!(stdout(&segmented.success()).replace(' ', ""), "ab\nba\n");
}

#[test]
fn marks_in_the_text_and_in_annotated_lines_are_boundaries_or_none_for_certain() {
    let words = words();
    // The text marks one position of some words; the file has a line with a mark, a segmented one, and one with analyses.
    let text = lines(words.iter().enumerate().map(|(at, (word, _))| match at % 4 {
        1 if word.len() > 3 => format!("{}|{}", &word[..2], &word[2..]),
        3 if word.len() > 3 => format!("{}~{}", &word[..2], &word[2..]),
        _ => word.clone(),
    }));
    let known = "un|lokxing\n\nre tier s\nzabos\tzabo s, zabos\n";
    let dir = folder(&[("words.txt", text.as_bytes()), ("known.txt", known.as_bytes())]);
    let [text_file, known, out] = ["words.txt", "known.txt", "out"].map(|name| at(&dir, name));
    let marks = ["--boundary-mark", "|", "--joined-mark", "~"];
    let run = ["--quiet", "--sweeps", "5", "--chains", "1", "--annotated", &known, "--out", &out];
    let done = grammaton(&[&["morphemes", &text_file], &run[..], &marks].concat()).success();
    let errors = String::from_utf8(done.get_output().stderr.clone()).unwrap();
    assert!(errors.contains("known.txt:1: `unlokxing` has the symbol `x`, which the text lacks"), "{errors}");
    let read = |name: &str| fs::read_to_string(dir.path().join(name)).unwrap();
    let segmented = read("out/segmented.txt");
    assert_eq!(segmented.replace(' ', ""), text.replace(['|', '~'], ""));
    for (found, marked) in segmented.lines().zip(text.lines()) {
        if let Some(at) = marked.find(['|', '~']) {
            let is_cut = &found[at..at + 1] == " ";
            let n_cut = found[..at].matches(' ').count();
            assert!(n_cut > 0 || is_cut == (&marked[at..at + 1] == "|"), "{found} {marked}");
        }
    }
    assert!(
        segmented.lines().any(|line| line == "re tier s") && segmented.lines().any(|line| line == "zabo s")
    );
    // The job has the annotations in a file of its own, and gives the same result.
    fs::remove_file(dir.path().join("known.txt")).unwrap();
    grammaton(&["train", &at(&dir, "out/job.toml"), "--out", &at(&dir, "again"), "-q"]).success();
    assert_eq!(read("out/segmentation.crf.txt"), read("again/segmentation.crf.txt"));
    let certain = read("out/boundaries.tsv");
    let first_marked = text.lines().position(|line| line.contains('|')).unwrap() + 1;
    let row = certain.lines().find(|row| row.starts_with(&format!("{first_marked}\t2\t"))).unwrap();
    assert!(row.split('\t').nth(2).unwrap().parse::<f64>().unwrap() == 1.0, "{row}");
}

#[test]
fn annotations_that_say_nothing_are_refused() {
    let dir = folder(&[
        ("text.txt", b"abab\nbaba\nabba\n"),
        ("known.txt", b"abab\nbaba\n"),
        ("typo.txt", b"ab ab\nab ab, abab\n"),
    ]);
    let [text, known, typo] = ["text.txt", "known.txt", "typo.txt"].map(|name| at(&dir, name));
    let run = ["segment", &text, "--grammar", "unigram", "--chains", "1", "--sweeps", "2", "--quiet"];
    fn with<'a>(run: &[&'a str], more: &[&'a str]) -> Vec<&'a str> {
        [run, more].concat()
    }
    refused(&with(&run, &["--annotated", &known]), &["known.txt: no line has a boundary", "put a space"]);
    refused(&with(&run, &["--boundary-mark", "+"]), &["text.txt: no line has the marks of --boundary-mark"]);
    refused(
        &with(&run, &["--annotated", &known, "--boundary-mark", "ab"]),
        &["boundary_mark: `ab` is no single symbol"],
    );
    let done = grammaton(&with(&run, &["--annotated", &typo])).success();
    let errors = String::from_utf8(done.get_output().stderr.clone()).unwrap();
    assert!(errors.contains("typo.txt:2: `abab,abab` has the symbol `,`, which the text lacks"), "{errors}");
    let job = "[model]\ngrammar = \"auto:unigram\"\n[corpus]\npath = \"text.txt\"\nboundary_mark = \"+\"\n";
    fs::write(dir.path().join("job.toml"), job).unwrap();
    refused(&["train", &at(&dir, "job.toml")], &["corpus.boundary_mark", "corpus.annotated"]);
}
