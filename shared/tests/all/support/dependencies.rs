//! What the tests of dependency models share: the grammar of some tags, ready to train and to parse with.

use std::sync::Arc;

use grammaton::forest::Forest;
use grammaton::forest::Prepared;
use grammaton::forest::binary::Adapted;
use grammaton::forest::build::Builder;
use grammaton::forest::inside::{Scratch, Weights, real};
use grammaton::grammar::ParamId;
use grammaton::grammar::groups::Groups;
use grammaton::grammar::lexicon::Lexicon;
use grammaton::models::dmv::grammar::of_layout;
use grammaton::models::dmv::{Event, Layout, Side, Valence, decode};
use grammaton::num::{Noise, Wide};
use grammaton::train::anneal::Anneal;
use grammaton::train::pcfg::{Method, Settings, Start, Trainer};
use grammaton::train::round::Step;
use grammaton::train::trainer::{self, Collect};
use grammaton::work::engine::Engine;
use grammaton::work::task::{Answer, Work};

use super::Run;

/// The grammar of some tags.
pub struct Model {
    pub tags: Vec<String>,
    pub layout: Layout,
    pub prepared: Prepared,
}

/// What is known of a sentence.
pub struct Parsed {
    pub log_z: f64,
    pub arcs: decode::Arcs,
    pub viterbi: (f64, Vec<u32>),
    pub mbr: (f64, Vec<u32>),
}

impl Model {
    pub fn new(tags: &[String]) -> Model {
        Model::of_layout(tags, Layout::new(tags.len()))
    }

    pub fn of_layout(tags: &[String], layout: Layout) -> Model {
        let grammar = of_layout(tags, layout).unwrap();
        let prepared = Prepared::new(grammar, Lexicon::default());
        Model { tags: tags.to_vec(), layout, prepared }
    }

    /// The tag of a name.
    pub fn tag(&self, name: &str) -> Option<u32> {
        self.tags.iter().position(|tag| tag == name).map(|at| at as u32)
    }

    pub fn forest(&self, tags: &[u32]) -> Forest {
        let mut builder = Builder::new(&self.prepared.binary, &self.prepared.strings, Adapted::Strings);
        builder.build(0, &self.layout.tokens(tags)).unwrap().expect("the grammar derives every sentence")
    }

    /// `None` if no tree weighs anything.
    pub fn parse(&self, tags: &[u32], weights: &[Wide]) -> Option<Parsed> {
        let (forest, real) = (self.forest(tags), real(weights));
        let weights = Weights { wide: weights, real: &real };
        let (z, arcs) = decode::arcs(self.layout, &forest, &weights, &mut Scratch::default())?;
        let (best, heads) = decode::viterbi(self.layout, &forest, weights.wide).expect("z is not zero");
        let mbr = decode::mbr(self.layout, &forest, &arcs);
        Some(Parsed { log_z: z.ln(), arcs, viterbi: (best.ln(), heads), mbr })
    }

    /// Shards of sentences.
    pub fn run(&self, sentences: &[Vec<u32>], shard_symbols: u32) -> Run {
        let sentences: Vec<_> = sentences.iter().map(|tags| self.layout.tokens(tags)).collect();
        Run::cut(&self.prepared.grammar, &Lexicon::default(), &sentences, shard_symbols, 1)
    }

    pub fn groups(&self) -> Groups {
        Groups::new(&self.prepared.grammar, &self.prepared.lexicon)
    }
}

/// A run under way.
pub struct Training {
    engine: Engine,
    run: Run,
    indexes: Vec<Arc<Vec<ParamId>>>,
    pub trainer: Trainer,
}

impl Training {
    pub fn new(model: &Model, run: Run, method: Method, start: Start) -> Training {
        let engine = Engine::default();
        let index = |shard| match run.answer(&engine, shard, Work::Index) {
            Answer::Index(index) => {
                assert!(index.unparsable.is_empty());
                Arc::new(index.params)
            }
            other => panic!("{other:?}"),
        };
        let indexes: Vec<Arc<Vec<ParamId>>> = run.shards.iter().map(index).collect();
        let settings = Settings {
            method,
            start,
            schedule: None,
            backoff: None,
            anneal: Anneal::default(),
            tolerance: 0.0,
            seed: 1,
            run: 0,
        };
        let alpha = model.groups().alpha(&model.prepared.grammar);
        let trainer = Trainer::new(model.groups(), alpha, settings);
        Training { engine, run, indexes, trainer }
    }

    /// A round, and its objective.
    pub fn round(&mut self) -> Option<f64> {
        for _ in 0..20 {
            let answer = |shard: usize, work| self.run.answer(&self.engine, &self.run.shards[shard], work);
            let step = trainer::round(&mut self.trainer, &self.indexes, Collect::default(), answer);
            if let Step::Next(report) = step.unwrap() {
                return report.bound;
            }
        }
        panic!("the round has no end");
    }
}

/// Counts summed by kind of event: roots, stops, continuations without and with a child, attachments.
pub fn sums(layout: Layout, counts: &[f64]) -> [f64; 5] {
    use grammaton::models::dmv::Valence::NoChild;
    let mut sums = [0.0; 5];
    for event in layout.events() {
        let kind = match event {
            Event::Root(_) => 0,
            Event::Stop { .. } => 1,
            Event::Continue { valence: NoChild, .. } => 2,
            Event::Continue { .. } => 3,
            Event::Attach { .. } | Event::AttachFirst { .. } => 4,
        };
        sums[kind] += counts[layout.param(event).index()];
    }
    sums
}

/// What happens in the derivation of a tree, from the definition: the children of each word on each side, from the outermost.
pub fn events(layout: Layout, tags: &[u32], heads: &[u32]) -> Vec<Event> {
    let mut events = Vec::new();
    for (word, &head) in (1..).zip(tags) {
        events.extend((heads[word - 1] == 0).then_some(Event::Root(head)));
        let mut children: Vec<usize> =
            (1..=tags.len()).filter(|&child| heads[child - 1] as usize == word).collect();
        children.sort_by_key(|child| std::cmp::Reverse(child.abs_diff(word)));
        for side in [Side::Left, Side::Right] {
            let mut valence = Valence::NoChild;
            for &child in children.iter().filter(|&&child| (child > word) == (side == Side::Right)) {
                let child = tags[child - 1];
                events.push(Event::Continue { head, side, valence });
                let is_first = layout.is_extended() && valence == Valence::NoChild;
                events.push(if is_first {
                    Event::AttachFirst { head, side, child }
                } else {
                    Event::Attach { head, side, child }
                });
                let is_later = layout.is_extended() && valence != Valence::NoChild;
                valence = if is_later { Valence::HasChildren } else { Valence::HasChild };
            }
            events.push(Event::Stop { head, side, valence });
        }
    }
    events
}

/// Log weights by parameter, not normalised.
pub fn random_logs(layout: Layout, seed: u64) -> Vec<f64> {
    let noise = Noise::new(seed, 0);
    let mut logs: Vec<f64> =
        (0..layout.n_params() as u64).map(|at| 2.0 * noise.symmetric(at) - 1.0).collect();
    logs[0] = 0.0;
    logs
}

pub fn random_tags(n: usize, n_tags: usize, seed: u64) -> Vec<u32> {
    let noise = Noise::new(seed, 1);
    (0..n as u64).map(|at| ((noise.symmetric(at) + 1.0) / 2.0 * n_tags as f64) as u32).collect()
}

/// Every list of heads that is a projective tree with one root.
pub fn all_trees(n: usize) -> Vec<Vec<u32>> {
    let mut found: Vec<Vec<u32>> = vec![Vec::new()];
    for _ in 0..n {
        found = found
            .iter()
            .flat_map(|some| (0..=n as u32).map(move |head| [&some[..], &[head]].concat()))
            .collect();
    }
    found.retain(|heads| is_projective(heads));
    found
}

/// One root, above all, and every head above all that stands between it and its children.
pub fn is_projective(heads: &[u32]) -> bool {
    let above = |word: usize| -> Vec<usize> {
        let up =
            |&word: &usize| Some(heads[word - 1] as usize).filter(|&head| head != 0 && head <= heads.len());
        std::iter::successors(Some(word), up).take(heads.len() + 1).collect()
    };
    let root = (1..=heads.len()).filter(|&word| heads[word - 1] == 0).collect::<Vec<_>>();
    let ends_at_root = |word| root.len() == 1 && above(word).last() == Some(&root[0]);
    (1..=heads.len()).all(ends_at_root)
        && (1..).zip(heads).filter(|(_, head)| **head != 0).all(|(child, &head)| {
            let head = head as usize;
            (child.min(head) + 1..child.max(head)).all(|word| above(word).contains(&head))
        })
}
