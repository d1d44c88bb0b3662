//! A simulated training run for tests: a small lexicon, forty rounds, two decoders.

use anyhow::Result;
use grammaton::data::eval::segmentation;
use grammaton::grammar::ParamId;
use grammaton::grammar::lexicon::{Lexicon, StickStrings, Strings};
use grammaton::grammar::{SymbolId, auto};
use grammaton::models::adaptor::{Params, Stick};
use grammaton::models::{self, Model, Trained};

use crate::events::{Observer, RunEvent};
use crate::lexicon;
use crate::metrics::{
    Ending, Hyper, Phase, RoundMetrics, RunResult, Scores, ScoresByDecoder, Start, Timings,
};
use crate::outcome::{Decoding, Lines, Outcome, Sample, Samples};

/// Gold sentences, with symbols that are special in HTML.
pub const GOLD: [&str; 12] = [
    "yu want tu si D6 bUk",
    "lUk D*z 6 b7 wIT hIz h&t",
    "&nd 6 dOgi",
    "yu want tu lUk &t DIs",
    "h&v 6 drINk nQ",
    "wAts D&t < 6 dOgi",
    "WAt d yu want D&t f%",
    "D&ts 6 brIdZ &nd 6 tr#n",
    "wAt du yu si In D6 bUk",
    "Its 6 d(",
    "kAm ov% h( &nd lUk",
    "op6n D6 d) plIz",
];

/// Simulates training; reports forty rounds to `observer`.
pub fn train(observer: &mut dyn Observer) -> Result<Outcome> {
    let model = model();
    observer.on(&RunEvent::PhaseBegun(Phase::Preprocess))?;
    let rules = model.grammar.rules.len();
    let start = Start {
        sentences: GOLD.len(),
        symbols: 201,
        rules,
        adapted: vec!["Word".into()],
        max_rounds: 40,
        runs: 1,
        points: vec![String::new()],
        ..Start::default()
    };
    observer.on(&RunEvent::Started(start.clone()))?;
    observer.on(&RunEvent::Prepared { earlier: Vec::new() })?;
    observer.on(&RunEvent::Notice("corpus.txt:7: skipped 2 empty lines, this being the first".to_owned()))?;
    observer.on(&RunEvent::PhaseBegun(Phase::Rounds))?;
    let lines =
        |merged: usize| GOLD.iter().enumerate().map(move |(at, line)| merge(line, at % 3 < merged)).collect();
    let gold: Vec<String> = GOLD.map(str::to_owned).to_vec();
    let (viterbi, mbr): (Vec<String>, Vec<String>) = (lines(2), lines(1));
    for round in 1..=40 {
        let done = 1.0 - libm::exp(-(round as f64) / 6.0);
        let bound = |round: f64| -212_345.6 + 14_321.5 * (1.0 - libm::exp(-round / 6.0));
        let f1 = |last: f64| Scores { token_f1: Some(last * done), ..Scores::default() };
        let scores: ScoresByDecoder =
            [("viterbi".to_owned(), f1(0.56)), ("mbr".to_owned(), f1(0.81))].into_iter().collect();
        observer.on(&RunEvent::RoundFinished(Box::new(RoundMetrics {
            run: 1,
            round,
            bound: (round > 1).then(|| bound(round as f64)),
            change: (round > 2).then(|| 1.0 - bound(round as f64) / bound(round as f64 - 1.0)),
            seconds: 0.015 + 0.01 / round as f64,
            busy_seconds: 0.012,
            sentences_per_second: 9790.0 / 0.02,
            strings: [("Word".to_owned(), 15_000 - 320 * round.min(25))].into_iter().collect(),
            hyper: [("Word".to_owned(), Hyper { discount: 0.41, concentration: 12.0 })].into_iter().collect(),
            scores,
            attachment: Default::default(),
            components: Default::default(),
            dropped: 320,
            restored: 3,
            resorted: true,
            temperature: None,
            held_out: None,
            acceptance: None,
            changed: None,
            r_hat: None,
        })))?;
    }
    observer.on(&RunEvent::PhaseBegun(Phase::Decode))?;
    let mut samples = Samples::default();
    for ((gold, viterbi), mbr) in gold.iter().zip(&viterbi).zip(&mbr) {
        samples.offer(viterbi, || Sample {
            gold: Some(gold.clone()),
            segmentations: vec![viterbi.clone(), mbr.clone()],
            tree: Some(tree(viterbi)),
            ..Sample::default()
        });
    }
    let lines = |all: &[String]| -> Result<Lines> {
        let mut lines = Lines::default();
        all.iter().try_for_each(|line| lines.push(line))?;
        Ok(lines)
    };
    let trees: Vec<String> = viterbi.iter().map(|line| tree(line)).collect();
    let scored = |lines: &[String]| Scores::from(&score(&gold, lines));
    let result = RunResult {
        rounds: 40,
        rounds_run: 40,
        ending: Ending::Converged,
        converged: true,
        bound: Some(-198_024.1),
        run: 1,
        bounds: vec![Some(-198_024.1)],
        scores: [("viterbi".to_owned(), scored(&viterbi)), ("mbr".to_owned(), scored(&mbr))].into(),
        ..RunResult::default()
    };
    Ok(Outcome {
        result,
        resumed: 0,
        seed: 7,
        points: Vec::new(),
        sentences: GOLD.len(),
        heads: Default::default(),
        timings: Timings { preprocess: 0.41, rounds: 0.79, decode: 0.18 },
        decodings: vec![
            Decoding {
                name: "viterbi",
                segmentations: lines(&viterbi)?,
                table: Lines::default(),
                trees: lines(&trees)?,
            },
            Decoding {
                name: "mbr",
                segmentations: lines(&mbr)?,
                table: Lines::default(),
                trees: Lines::default(),
            },
        ],
        lexicon: Some(lexicon(&mbr)),
        boundaries: None,
        errors: None,
        voters: Vec::new(),
        segmenter: Default::default(),
        samples: samples.chosen(),
        notices: vec!["corpus.txt:7: skipped 2 empty lines, this being the first".to_owned()],
        model: Trained::Grammar(model),
    })
}

/// The words of `lines`; three of four samples agree with each.
fn lexicon(lines: &[String]) -> Vec<lexicon::Entry> {
    let mut words = lexicon::Lexicon::new(" ", true);
    for (line, gold) in lines.iter().zip(GOLD) {
        let word = |text: &str| lexicon::Segment { text: text.to_owned(), category: None, share: Some(0.75) };
        words.add(&line.split(' ').map(word).collect::<Vec<_>>());
        words.add_gold(gold.split(' ').map(str::to_owned).collect());
    }
    words.entries(std::iter::empty())
}

/// A model with the words of [`GOLD`].
fn model() -> Model {
    let mut letters: Vec<String> = GOLD.concat().chars().filter(|c| *c != ' ').map(String::from).collect();
    letters.sort();
    letters.dedup();
    let alphabet = auto::Alphabet { symbols: &letters, ..auto::Alphabet::default() };
    let auto::AutoGrammar { grammar, segments } = auto::auto(auto::Auto::UNIGRAM, &alphabet).unwrap();
    let word = segments[0];
    let mut words: Vec<&str> = GOLD.iter().flat_map(|line| line.split(' ')).collect();
    words.sort_unstable();
    words.dedup();
    let symbols = |word: &&str| -> Vec<SymbolId> {
        word.chars().map(|c| grammar.symbol(&c.to_string()).unwrap()).collect()
    };
    let strings: Strings = words.iter().map(symbols).collect();
    let n = strings.len();
    let first = grammar.space().first_string().0;
    let falling = |scale: f64| (0..n).map(|at| 0.6 + scale / (at + 1) as f64).collect();
    let stick = Stick {
        symbol: word,
        order: (first..first + n as u32).map(ParamId).collect(),
        gamma1: falling(900.0),
        gamma2: falling(9000.0),
        discount: 0.41,
        concentration: 12.0,
    };
    let n_rules = grammar.rules.len();
    let params = Params { tau: vec![2.0; n_rules], alpha: vec![1.0; n_rules], sticks: vec![stick] };
    let lexicon = Lexicon { sticks: vec![StickStrings { symbol: word, strings }] };
    let params = models::Params::Adaptor(params);
    Model { grammar, lexicon, params, segments: vec![word] }
}

/// Joins the first two words.
fn merge(line: &str, joins: bool) -> String {
    if joins { line.replacen(' ', "", 1) } else { line.to_owned() }
}

fn tree(line: &str) -> String {
    let escaped = |c: char| if "()%'\\".contains(c) { format!("\\{c}") } else { c.to_string() };
    let word =
        |word: &str| format!("(Word (Chars {}))", word.chars().map(escaped).collect::<Vec<_>>().join(" "));
    format!("(Sentence (Words {}))", line.split(' ').map(word).collect::<Vec<_>>().join(" "))
}

fn score(gold: &[String], found: &[String]) -> segmentation::SegmentationScores {
    let letters = |line: &String| line.chars().filter(|c| *c != ' ').collect::<Vec<char>>();
    let ends = |lines: &[String]| -> Vec<Vec<u32>> {
        let ends = |line: &String| {
            let words = line.split(' ').map(|word| word.chars().count() as u32);
            words
                .scan(0, |end, length| {
                    *end += length;
                    Some(*end)
                })
                .collect()
        };
        lines.iter().map(ends).collect()
    };
    let sentences: Vec<Vec<char>> = gold.iter().map(letters).collect();
    segmentation::score(&sentences, &ends(gold), &ends(found))
}
