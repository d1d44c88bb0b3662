//! Cost of a sweep of the sampler on one core, and what it reaches.
//!
//! ```text
//! cargo bench -p grammaton --bench sampler -- [CORPUS] [SWEEPS] [START] [SEED] [GRAMMAR …]
//! ```
//!
//! Without arguments: the corpus and the grammars of the examples, 20 sweeps, `batch`, seed 1. A sweep draws all trees, labels and
//! hyper-parameters, with the settings that wordseg gives py-cfg (`-E -a 0.0001 -b 10000 -e 1 -f 1 -g 100 -h 0.01 -R -1`, and
//! `-D` for the batch start). Seconds are of the processor, where the system tells them, else of the wall.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use grammaton::data::corpus::{Corpus, Format, Options};
use grammaton::data::eval::segmentation;
use grammaton::forest::Prepared;
use grammaton::grammar::lexicon::{Lexicon, StickStrings, Strings};
use grammaton::grammar::syntax;
use grammaton::models::sampler::{Chain, Hyper, HyperPrior, Items, Moves, Prior, Settings, Start, start};
use grammaton::num::random::stream;
use grammaton::work::shard;
use grammaton::work::shard::Shard;

const SETTINGS: Settings =
    Settings { temperature: 1.0, relabel: true, hyper: Some(HyperPrior { shape: 0.01, scale: 100.0 }) };
const HYPER: Hyper = Hyper { discount: 0.0001, concentration: 10_000.0 };

fn main() {
    let mut args = std::env::args().skip(1).filter(|arg| arg != "--bench");
    let corpus = args.next().unwrap_or_else(|| "examples/segmentation/corpus.txt".to_owned());
    let sweeps = args.next().map_or(20, |sweeps| sweeps.parse().expect("a number of sweeps"));
    let start = match args.next().as_deref() {
        None | Some("batch") => Start::Batch,
        Some("incremental") => Start::Incremental,
        Some(other) => panic!("the start is batch or incremental, found {other}"),
    };
    let seed = args.next().map_or(1, |seed| seed.parse().expect("a seed"));
    let mut grammars: Vec<String> = args.collect();
    if grammars.is_empty() {
        grammars =
            ["unigram", "colloc", "syllable"].map(|name| format!("examples/grammars/{name}.gr")).to_vec();
    }
    for grammar in grammars {
        measure(&from_root(&grammar), &from_root(&corpus), sweeps, start, seed);
    }
}

/// Paths are relative to the repository: `cargo bench` runs in the folder of the crate.
fn from_root(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(path)
}

fn measure(path: &Path, corpus: &Path, sweeps: u64, from: Start, seed: u64) {
    let text = std::fs::read_to_string(path).expect("the grammar can be read");
    let (grammar, _) = syntax::parse(&text, "grammar").expect("the grammar is in order");
    let options = Options { format: Format::Segmented, ..Options::default() };
    let (corpus, _) = Corpus::open_with(corpus, &options).expect("the corpus is in order");
    let tokens = corpus.tokens_for(&grammar).expect("the grammar has the symbols of the corpus");
    // One shard, as it is the exact sampler that is measured.
    let cut = shard::cut(&tokens, u32::MAX).pop().expect("the corpus has a sentence");
    let Shard::Sentences(sentences) = cut.shard else { unreachable!("sentences were cut") };
    let sticks = grammar.adapted().map(|symbol| StickStrings { symbol, strings: Strings::new() }).collect();
    let prepared = Arc::new(Prepared::new(Arc::new(grammar.clone()), Arc::new(Lexicon { sticks })));

    println!("{}: {} sentences", path.display(), tokens.len());
    let begun = Seconds::now();
    let items = Items::new(prepared, &sentences).unwrap();
    println!("  build    {:8.3} s, {:.0} MB", begun.passed(), items.size() as f64 / 1e6);
    let prior = Prior::new(&grammar, items.lexicon());
    let begun = Seconds::now();
    let chain = Chain::start(&items, &prior, &start::hyper(&grammar, HYPER), from, &mut stream(seed, 0, 0));
    let mut chain = chain.expect("a drawn start has no errors");
    println!("  start    {:8.3} s", begun.passed());
    let f1 = |chain: &Chain| {
        let mut predicted = corpus.segmentation();
        for (occurrence, &position) in cut.positions.iter().flatten().enumerate() {
            let is_segment = |label: &str| matches!(label, "Word" | "FuncWord");
            predicted[position as usize] =
                chain.tree(occurrence).expect("it has a tree").segment_ends(is_segment);
        }
        corpus.gold.as_ref()?;
        segmentation::score(&corpus.sentences, &corpus.segmentation(), &predicted).token.f1
    };
    let mut seconds = 0.0;
    for round in 1..=sweeps {
        let before = Seconds::now();
        let sweep = chain.sweep(&SETTINGS, &mut stream(seed, 0, round));
        let passed = before.passed();
        seconds += passed;
        if round % sweeps.div_ceil(10) == 0 || round == sweeps {
            let share = |moves: Moves| moves.accepted as f64 / moves.proposed.max(1) as f64;
            println!(
                "  sweep {round:4} {passed:6.3} s  log posterior {:.1}  token F1 {:.4}  accepted {:.4} of {} trees, {:.4} of {} labels",
                sweep.log_posterior,
                f1(&chain).unwrap_or(0.0),
                share(sweep.trees),
                sweep.trees.proposed,
                share(sweep.labels),
                sweep.labels.proposed,
            );
        }
    }
    println!("  a sweep  {:8.3} s in the mean", seconds / sweeps as f64);
    let begun = Seconds::now();
    let state = chain.state();
    let bytes = bincode::serde::encode_to_vec(&state, bincode::config::standard()).expect("memory takes all");
    Chain::resume(&items, &prior, &state).expect("it is a state of these items");
    println!("  resume   {:8.3} s, {:.2} MB", begun.passed(), bytes.len() as f64 / 1e6);
}

/// CPU time of this process; wall time where the system does not report it.
struct Seconds {
    processor: Option<f64>,
    wall: Instant,
}

impl Seconds {
    #[expect(clippy::disallowed_methods, reason = "a benchmark measures time")]
    fn now() -> Seconds {
        Seconds { processor: processor(), wall: Instant::now() }
    }

    fn passed(&self) -> f64 {
        let processor = self.processor.zip(processor()).map(|(before, after)| after - before);
        processor.unwrap_or_else(|| self.wall.elapsed().as_secs_f64())
    }
}

/// Seconds that this process ran, from Linux.
fn processor() -> Option<f64> {
    let text = std::fs::read_to_string("/proc/self/schedstat").ok()?;
    Some(text.split(' ').next()?.parse::<f64>().ok()? / 1e9)
}
