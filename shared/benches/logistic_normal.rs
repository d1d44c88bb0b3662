//! Cost of a round of variational EM of the dependency model with valence, with logistic-normal priors, on one core.
//!
//! ```text
//! cargo bench -p grammaton --bench logistic_normal -- TAGS [ROUNDS [TOLERANCE]]
//! ```
//!
//! TAGS has a sentence of tags a line; TOLERANCE is that within sentences. Tells of every round what it cost and where the bound is.

use std::path::Path;
use std::sync::Arc;

use grammaton::data::corpus::{Corpus, Format, Options};
use grammaton::data::tags::families::Families;
use grammaton::grammar::groups::Groups;
use grammaton::grammar::lexicon::Lexicon;
use grammaton::models::dmv::{Layout, families, grammar, harmonic};
use grammaton::models::logistic_normal::{Multinomials, PointEstimate, StopRule};
use grammaton::train::logistic_normal::{Settings, State, Trainer};
use grammaton::train::pcfg::Start;
use grammaton::train::round::Step;
use grammaton::train::trainer::{self, Collect};
use grammaton::work::engine::Engine;
use grammaton::work::shard;
use grammaton::work::task::{Language, Named, Task};

fn main() {
    let mut args = std::env::args().skip(1).filter(|arg| arg != "--bench");
    let path = args.next().expect("a file with a sentence of tags a line");
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(path);
    let (corpus, _) = Corpus::open_with(&path, &Options { format: Format::Tokens, ..Options::default() })
        .expect("the corpus is in order");
    let n_rounds = args.next().map_or(5, |rounds| rounds.parse().expect("a number of rounds"));
    let mut until = StopRule::default();
    if let Some(tolerance) = args.next() {
        until.tolerance = tolerance.parse().expect("a tolerance");
    }
    let layout = Layout::new(corpus.symbols.len());
    let (grammar, lexicon) =
        (Named::new(grammar(&corpus.symbols).expect("these are tags")), Lexicon::default());
    let sentences: Vec<_> = corpus.sentences.iter().map(|tags| layout.tokens(tags)).collect();
    let cut = shard::cut(&sentences, shard::DEFAULT_SHARD_SYMBOLS).into_iter();
    let shards: Vec<_> = cut.map(|cut| Named::new(cut.shard)).collect();
    let n_items: usize = shards.iter().map(|shard| shard.value.len()).sum();
    println!("{} sentences, {n_items} items, {} tags", sentences.len(), layout.n_tags());

    let counts = harmonic::counts(layout, &corpus.sentences, &Default::default());
    let weights = Start::Counts(counts).weights(&Groups::new(&grammar.value, &lexicon), 1, 1);
    let related = families::of_params(layout, &corpus.symbols, &Families::ptb());
    let multinomials = Multinomials::new(&grammar.value).expect("the grammar has no strings");
    let state = State::new(&multinomials, &weights, &related).expect("counts are smoothed");
    let settings = Settings { until, estimate: PointEstimate::Softmax, tolerance: 0.0, constrained: None };
    let mut trainer = Trainer::new(settings, state);
    let (engine, lexicon) = (Engine::default(), Named::new(lexicon));
    for round in 1..=n_rounds {
        let begun = seconds();
        let indexes = vec![Arc::default(); shards.len()];
        let answer = |shard: usize, work| {
            let (grammar, lexicon, shard) = (grammar.clone(), lexicon.clone(), shards[shard].clone());
            engine
                .run(&Task {
                    language: Some(Language { grammar, lexicon }),
                    shard,
                    work,
                    further: Vec::new(),
                })
                .expect("the work fits the shard")
        };
        let step = trainer::round(&mut trainer, &indexes, Collect::default(), answer);
        let Step::Next(report) = step.expect("all sentences have a bound") else {
            unreachable!("no round is run again")
        };
        let cost = seconds() - begun;
        println!(
            "round {round}: {cost:.3} CPU s, {:.0} µs an item; bound {:.4}, change {:.2e}",
            1e6 * cost / n_items as f64,
            report.bound.unwrap_or(f64::NAN),
            report.change.unwrap_or(f64::NAN),
        );
    }
}

/// Seconds that this thread has computed, which only Linux tells.
fn seconds() -> f64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").expect("Linux has this file");
    let nanos = text.split(' ').next().and_then(|nanos| nanos.parse::<f64>().ok());
    nanos.expect("it begins with nanoseconds") / 1e9
}
