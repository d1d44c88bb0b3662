//! The dependency model against reference numbers: exact ones of an independent program for EM from the harmonic start.
//!
//! They are not part of the repository, and the tests that need them are ignored unless one asks for them.

use std::collections::BTreeMap;
use std::path::Path;

use grammaton::models::dmv::harmonic::{self, Harmonic};
use grammaton::models::dmv::{Event, Side, Valence};
use grammaton::num::Wide;
use grammaton::train::pcfg::{Method, Start};

use crate::support::dependencies::{Model, Parsed, Training, events};
use crate::support::{self, assert_all_close, assert_close};

/// A file of the reference data.
fn read(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared/data/dmv-parity").join(name);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// A training set.
struct Corpus {
    name: &'static str,
    model: Model,
    sentences: Vec<Vec<u32>>,
}

impl Corpus {
    fn read(name: &'static str) -> Corpus {
        let text = read(&format!("{name}.tags"));
        let mut tags: Vec<String> = text.split_whitespace().map(str::to_owned).collect();
        tags.sort();
        tags.dedup();
        let model = Model::new(&tags);
        let sentences =
            text.lines().map(|line| sentence(&model, line).expect("these are the tags")).collect();
        Corpus { name, model, sentences }
    }

    /// EM from the harmonic start.
    fn training(&self) -> Training {
        let counts = harmonic::counts(self.model.layout, &self.sentences, &Harmonic::default());
        let run = self.model.run(&self.sentences, grammaton::work::shard::DEFAULT_SHARD_SYMBOLS);
        Training::new(&self.model, run, Method::Em, Start::Counts(counts))
    }

    /// The logs of weights, by parameter, in a grammar file; −∞ where it says nothing.
    fn grammar(&self, kind: &str) -> Vec<f64> {
        let mut logs = vec![f64::NEG_INFINITY; self.model.layout.n_params()];
        logs[0] = 0.0;
        for line in read(&format!("{}.{kind}.gra", self.name)).lines() {
            let (event, value) = line.rsplit_once(" : ").expect("an event and its value");
            let event = event_of(&self.model, event).unwrap_or_else(|| panic!("{line}"));
            logs[self.model.layout.param(event).index()] = value.parse().expect("a number");
        }
        logs
    }
}

fn sentence(model: &Model, line: &str) -> Option<Vec<u32>> {
    line.split_whitespace().map(|name| model.tag(name)).collect()
}

/// An event as the files write it.
fn event_of(model: &Model, text: &str) -> Option<Event> {
    let words: Vec<&str> = text.split_whitespace().collect();
    let side = if words[0].starts_with("left") { Side::Left } else { Side::Right };
    let valence = if words.last() == Some(&"nochild") { Valence::NoChild } else { Valence::HasChild };
    let head = |at: usize| model.tag(words[at]);
    Some(match words[0].trim_start_matches("left").trim_start_matches("right") {
        "root" => Event::Root(head(1)?),
        "attach" if side == Side::Left => Event::Attach { head: head(3)?, side, child: head(1)? },
        "attach" => Event::Attach { head: head(1)?, side, child: head(3)? },
        "stop" => Event::Stop { head: head(1)?, side, valence },
        "continue" => Event::Continue { head: head(1)?, side, valence },
        _ => return None,
    })
}

fn logs(weights: &[Wide]) -> Vec<f64> {
    weights.iter().map(|weight| if weight.is_zero() { f64::NEG_INFINITY } else { weight.ln() }).collect()
}

/// Below this log probability, both may say what they like.
const NEGLIGIBLE: f64 = -250.0;

/// Multinomials that the file says nothing about were never used, and may be any.
fn assert_grammars_agree(corpus: &Corpus, found: &[f64], expected: &[f64], tolerance: f64, what: &str) {
    let mut n_groups = 0;
    for group in corpus.model.groups().iter() {
        let clip = |logs: &[f64]| -> Vec<f64> {
            logs[group.clone()].iter().map(|log| log.max(NEGLIGIBLE)).collect()
        };
        let (found, expected) = (clip(found), clip(expected));
        if expected.iter().any(|&log| log > NEGLIGIBLE) {
            assert_all_close(&found, &expected, tolerance, what);
            n_groups += 1;
        }
    }
    assert!(n_groups > 3 * corpus.model.tags.len(), "{what}: {n_groups} multinomials");
}

#[test]
#[ignore = "needs corpora that the repository does not have"]
fn with_corpora_harmonic_starts_are_theirs() {
    for name in ["wsj10", "ewt10"] {
        let corpus = Corpus::read(name);
        let expected = corpus.grammar("harmonic");
        let counts = harmonic::counts(corpus.model.layout, &corpus.sentences, &Harmonic::default());
        let found = logs(&corpus.model.groups().normalised(&counts));
        assert_grammars_agree(&corpus, &found, &expected, 1e-12, name);
    }
}

#[test]
#[ignore = "needs corpora that the repository does not have"]
fn with_corpora_short_sentences_are_enumerated() {
    let text = read("test-vectors.tsv");
    let mut corpora = BTreeMap::new();
    let mut n_lines = 0;
    for line in text.lines().skip(1) {
        let fields: Vec<&str> = line.split('\t').collect();
        let (corpus, weights) = corpora.entry(fields[0]).or_insert_with(|| {
            let name = if fields[0] == "wsj10" { "wsj10" } else { "ewt10" };
            let corpus = Corpus::read(name);
            let weights = support::wide(&corpus.grammar("harmonic"));
            (corpus, weights)
        });
        let number = |at: usize| fields[at].parse::<f64>().unwrap();
        let tags = sentence(&corpus.model, fields[2]).unwrap();
        let found = corpus.model.parse(&tags, weights).unwrap();
        assert_close(found.log_z, number(4), 1e-12, &format!("{line}: log Z"));
        assert_close(found.viterbi.0, number(5), 1e-12, &format!("{line}: Viterbi"));
        assert_eq!(found.viterbi.1, heads(fields[6]), "{line}: Viterbi");
        assert_eq!(found.mbr.1, heads(fields[8]), "{line}: MBR");
        assert_close(found.mbr.0, number(9), 1e-9, &format!("{line}: MBR"));
        n_lines += 1;
    }
    assert!(n_lines > 10, "{n_lines} sentences");
}

fn heads(text: &str) -> Vec<u32> {
    text.split_whitespace().map(|head| head.parse().unwrap()).collect()
}

#[test]
#[ignore = "needs corpora that the repository does not have"]
fn with_corpora_posteriors_and_counts_of_a_sentence_are_theirs() {
    let (text, corpus) = (read("estep-vector.tsv"), Corpus::read("wsj10"));
    let model = &corpus.model;
    let weights = support::wide(&corpus.grammar("harmonic"));
    let tags = sentence(model, "PRP VBP DT NN").unwrap();
    assert!(text.starts_with("# sentence PRP VBP DT NN under wsj10.harmonic.gra"), "another sentence");
    let arcs = model.parse(&tags, &weights).unwrap().arcs;
    let totals = model.run(&[tags], 100).expect(&Default::default(), &weights, false);
    let mut expected = vec![0.0; model.layout.n_params()];
    let mut n_arcs = 0;
    for line in text.lines().skip(2) {
        let fields: Vec<&str> = line.split('\t').collect();
        let value: f64 = fields[2].parse().unwrap();
        if fields[0] == "expected count" {
            let event = event_of(model, fields[1]).unwrap_or_else(|| panic!("{line}"));
            expected[model.layout.param(event).index()] = value;
            continue;
        }
        // `root -> 1(PRP)` or `1(PRP) -> 2(VBP)`
        let place = |text: &str| text.split('(').next().unwrap().parse().unwrap_or(0);
        let (head, child) = fields[1].split_once(" -> ").unwrap();
        assert_close(arcs.posterior(place(head), place(child)), value, 1e-11, line);
        n_arcs += 1;
    }
    assert_eq!(n_arcs, 16, "all arcs");
    assert_all_close(&totals.counts[1..], &expected[1..], 1e-11, "counts");
}

/// EM for some rounds: the objective of each, and the grammars after the first and the last M-step.
fn em(name: &'static str, rounds: usize) {
    let (text, corpus) = (read("loglik.tsv"), Corpus::read(name));
    let mut lines = text.lines().map(|line| line.split('\t').collect::<Vec<_>>());
    let header = lines.next().unwrap();
    let column = header.iter().position(|&column| column == format!("{name}_exact_total")).unwrap();
    let mut training = corpus.training();
    for (at, line) in (1..=rounds).zip(lines) {
        let bound = training.round().unwrap();
        assert_close(bound, line[column].parse().unwrap(), 1e-12, &format!("{name}, round {at}"));
        if [1, 20].contains(&at) {
            let expected = corpus.grammar(&format!("em{at}"));
            let found = logs(&training.trainer.reading_weights());
            assert_grammars_agree(&corpus, &found, &expected, 1e-11, &format!("{name}, after {at}"));
        }
    }
}

#[test]
#[ignore = "needs corpora that the repository does not have"]
fn with_corpora_em_on_the_wsj_sample_is_theirs() {
    em("wsj10", 41);
}

#[test]
#[ignore = "needs corpora that the repository does not have"]
fn with_corpora_em_on_ewt_is_theirs() {
    em("ewt10", 20);
}

/// The log weight of a tree, from the definition.
fn ln_weight(model: &Model, tags: &[u32], heads: &[u32], logs: &[f64]) -> f64 {
    events(model.layout, tags, heads).into_iter().map(|event| logs[model.layout.param(event).index()]).sum()
}

/// Words with the right head, and words.
fn accuracy(found: &[Vec<u32>], gold: &[Vec<u32>], longest: usize) -> (f64, f64) {
    let of = found.iter().zip(gold).filter(|(_, gold)| gold.len() <= longest);
    let right: usize = of
        .clone()
        .map(|(found, gold)| found.iter().zip(gold).filter(|(found, gold)| found == gold).count())
        .sum();
    (right as f64, of.map(|(_, gold)| gold.len()).sum::<usize>() as f64)
}

/// Parses `test` under a grammar of `train`; per cent by length for Viterbi and MBR.
fn decode(train: &'static str, kind: &str, test: &str, expected: &[(usize, f64, f64)]) {
    let corpus = Corpus::read(train);
    let logs = corpus.grammar(kind);
    let weights = support::wide(&logs);
    let decoded = read(&format!("{test}.{kind}.decoded.txt"));
    let tags = read(&format!("{test}.tags"));
    let gold: Vec<Vec<u32>> = read(&format!("{test}.heads")).lines().map(heads).collect();
    let longest = expected.iter().map(|row| row.0).max().unwrap();
    let (mut viterbi, mut mbr, mut n_ties) = (Vec::new(), Vec::new(), 0);
    let mut known: BTreeMap<&str, (Vec<u32>, Vec<u32>)> = BTreeMap::new();
    for ((line, words), gold) in decoded.lines().zip(tags.lines()).zip(&gold) {
        let none = || (vec![0; gold.len()], vec![0; gold.len()]);
        if gold.len() > longest {
            let (a, b) = none();
            viterbi.push(a);
            mbr.push(b);
            continue;
        }
        let (a, b) = known
            .entry(words)
            .or_insert_with(|| {
                let fields: Vec<&str> = line.split(" | ").collect();
                let found = sentence(&corpus.model, words)
                    .and_then(|tags| Some((corpus.model.parse(&tags, &weights)?, tags)));
                let Some((found, tags)) = found else {
                    assert_eq!(fields[0], "-inf", "{words}");
                    return none();
                };
                let Parsed { log_z, viterbi, mbr, .. } = found;
                assert_close(log_z, fields[0].parse().unwrap(), 1e-12, words);
                assert_eq!(mbr.1, heads(fields[2]), "{words}: MBR");
                let theirs = heads(fields[1]);
                if viterbi.1 != theirs {
                    let (of_theirs, tags) = (ln_weight(&corpus.model, &tags, &theirs, &logs), words);
                    assert_close(
                        viterbi.0,
                        of_theirs,
                        1e-12,
                        &format!("{tags}: {:?}, {theirs:?}", viterbi.1),
                    );
                    n_ties += 1;
                }
                (theirs, mbr.1)
            })
            .clone();
        viterbi.push(a);
        mbr.push(b);
    }
    assert!(20 * n_ties < known.len(), "{n_ties} of {} best trees are not theirs, but as good", known.len());
    for &(longest, of_viterbi, of_mbr) in expected {
        for (heads, expected, what) in [(&viterbi, of_viterbi, "Viterbi"), (&mbr, of_mbr, "MBR")] {
            let (right, n) = accuracy(heads, &gold, longest);
            let found = (1e4 * right / n).round() / 100.0;
            assert_eq!(found, expected, "{train}, {kind}, {test}, up to {longest}: {what}");
        }
    }
}

#[test]
#[ignore = "needs corpora that the repository does not have"]
fn with_corpora_trees_of_the_wsj_sample_are_theirs() {
    decode("wsj10", "harmonic", "wsj10", &[(10, 35.81, 32.47)]);
    decode("wsj10", "em1", "wsj10", &[(10, 36.88, 35.66)]);
    decode("wsj10", "em20", "wsj10", &[(10, 46.60, 46.99)]);
}

#[test]
#[ignore = "needs corpora that the repository does not have"]
fn with_corpora_trees_of_ewt_are_theirs() {
    decode("ewt10", "harmonic", "ewt10", &[(10, 26.63, 28.42)]);
    decode("ewt10", "em20", "ewt-test", &[(10, 28.32, 28.47), (20, 22.36, 22.66)]);
}
