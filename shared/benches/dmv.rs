//! Cost of a round of EM of the dependency model with valence on one core.
//!
//! ```text
//! cargo bench -p grammaton --bench dmv -- TAGS [SENTENCES [RUNS]]
//! ```
//!
//! TAGS has a sentence of tags a line. With SENTENCES, the corpus is read again from its beginning until there are as many, for
//! instance the 7,422 of WSJ10. A round is what the trainer asks, inside–outside and counts, and its update; of runs of ten rounds
//! the cheapest is printed, and the median, since others may use the machine as well. First as it is done, equal sentences once, and then each by itself, as
//! if they were all different.

use std::path::Path;
use std::sync::Arc;

use grammaton::data::Sentence;
use grammaton::data::corpus::{Corpus, Format, Options};
use grammaton::forest::Prepared;
use grammaton::forest::binary::Adapted;
use grammaton::forest::build::Builder;
use grammaton::forest::chains::Chains;
use grammaton::grammar::ParamId;
use grammaton::grammar::SymbolId;
use grammaton::grammar::groups::Groups;
use grammaton::grammar::lexicon::Lexicon;
use grammaton::models::dmv::{Layout, grammar, harmonic};
use grammaton::train::anneal::Anneal;
use grammaton::train::pcfg::{Method, Settings, Start, Trainer};
use grammaton::train::trainer::{self, Collect};
use grammaton::work::engine::Engine;
use grammaton::work::shard;
use grammaton::work::shard::Shard;
use grammaton::work::task::{Answer, Language, Named, Task, Work};

fn main() {
    let mut args = std::env::args().skip(1).filter(|arg| arg != "--bench");
    let path = args.next().expect("a file with a sentence of tags a line");
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(path);
    let (corpus, _) = Corpus::open_with(&path, &Options { format: Format::Tokens, ..Options::default() })
        .expect("the corpus is in order");
    let n = args.next().map_or(corpus.sentences.len(), |n| n.parse().expect("a number of sentences"));
    let runs = args.next().map_or(10, |runs| runs.parse().expect("a number of runs"));
    let tags: Vec<Vec<u32>> = corpus.sentences.iter().cycle().take(n).cloned().collect();

    measure(&corpus.symbols, &tags, true, runs);
    measure(&corpus.symbols, &tags, false, runs);
}

fn measure(symbols: &[String], tags: &[Vec<u32>], merge: bool, runs: usize) {
    let layout = Layout::new(symbols.len());
    let begun = seconds();
    let grammar = Named::new(grammar(symbols).expect("these are tags"));
    let lexicon = Named::new(Lexicon::default());
    let sentences: Vec<_> = tags.iter().map(|tags| layout.tokens(tags)).collect();
    let shards: Vec<Named<Shard>> = if merge {
        let cut = shard::cut(&sentences, shard::DEFAULT_SHARD_SYMBOLS).into_iter();
        cut.map(|cut| Named::new(cut.shard)).collect()
    } else {
        let alone = |tokens: &Vec<SymbolId>| Sentence::new(tokens.clone(), 1);
        let shard = |run: &[Vec<SymbolId>]| Named::new(Shard::Sentences(run.iter().map(alone).collect()));
        sentences.chunks(750).map(shard).collect()
    };
    let engine = Engine::default();
    let ask = |shard: &Named<Shard>, work| {
        let (grammar, lexicon) = (grammar.clone(), lexicon.clone());
        engine
            .run(&Task {
                language: Some(Language { grammar, lexicon }),
                shard: shard.clone(),
                work,
                further: Vec::new(),
            })
            .expect("the work fits the shard")
    };
    let index = |shard| match ask(shard, Work::Index) {
        Answer::Index(index) => Arc::new(index.params),
        _ => unreachable!("an index was asked for"),
    };
    let indexes: Vec<Arc<Vec<ParamId>>> = shards.iter().map(index).collect();
    let build = seconds() - begun;
    let (n_items, n_edges, n_chains, bytes) =
        size(&Prepared::new(grammar.value.clone(), lexicon.value.clone()), &shards);
    println!(
        "{} sentences, {n_items} items, {} tags, {} shards: built in {build:.3} CPU s; {n_edges} edges, {n_chains} chains, {:.1} MB",
        tags.len(),
        layout.n_tags(),
        shards.len(),
        bytes as f64 / 1e6
    );

    let groups = Groups::new(&grammar.value, &lexicon.value);
    let settings = Settings {
        method: Method::Em,
        start: Start::Counts(harmonic::counts(layout, tags, &Default::default())),
        schedule: None,
        backoff: None,
        anneal: Anneal::default(),
        tolerance: 0.0,
        seed: 1,
        run: 0,
    };
    let alpha = groups.alpha(&grammar.value);
    let mut trainer = Trainer::new(groups, alpha, settings);
    let mut round = || {
        let answer = |shard: usize, work| ask(&shards[shard], work);
        let step = trainer::round(&mut trainer, &indexes, Collect::default(), answer);
        step.expect("the likelihood does not fall");
    };
    let mut costs: Vec<f64> = (0..runs)
        .map(|_| {
            let begun = seconds();
            (0..10).for_each(|_| round());
            (seconds() - begun) / 10.0
        })
        .collect();
    costs.sort_by(f64::total_cmp);
    let (best, median) = (costs[0], costs[runs / 2]);
    println!(
        "a round: {:.2} CPU ms (median {:.2}), {:.0} sentences/s, {:.1}e6 edges/s; mean log-likelihood {:.6} in round {}",
        1e3 * best,
        1e3 * median,
        tags.len() as f64 / best,
        n_edges as f64 / best / 1e6,
        trainer.state().past.bound.expect("EM has one") / tags.len() as f64,
        10 * runs
    );
}

/// Sentences, edges, chains and bytes of the forests, as an engine keeps them.
fn size(prepared: &Prepared, shards: &[Named<Shard>]) -> (usize, usize, usize, usize) {
    let mut builder = Builder::new(&prepared.binary, &prepared.strings, Adapted::Strings);
    let (mut n, mut n_edges, mut n_chains, mut bytes) = (0, 0, 0, 0);
    for shard in shards {
        let Shard::Sentences(sentences) = shard.value.as_ref() else { unreachable!("sentences were cut") };
        let mut chains = Chains::default();
        for sentence in sentences {
            let forest =
                builder.build(0, &sentence.tokens).unwrap().expect("the grammar derives every sentence");
            let forest = chains.fold(&forest, u32::MAX);
            (n, n_edges, bytes) = (n + 1, n_edges + forest.edges.len(), bytes + forest.size());
        }
        (n_chains, bytes) = (n_chains + chains.len(), bytes + chains.size());
    }
    (n, n_edges, n_chains, bytes)
}

/// Seconds that this thread has computed, which only Linux tells.
fn seconds() -> f64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").expect("Linux has this file");
    let nanos = text.split(' ').next().and_then(|nanos| nanos.parse::<f64>().ok());
    nanos.expect("it begins with nanoseconds") / 1e9
}
