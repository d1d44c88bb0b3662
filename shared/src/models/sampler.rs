//! Collapsed Metropolis–Hastings over trees, for PCFGs and adaptor grammars.
//!
//! In: the sentences of a shard as [`Items`], a [`Prior`], how to start, a random stream per sweep. Out: a [`Chain`] whose [`State`] is
//! a sample, after enough sweeps, of the trees and tables given the sentences, with all probabilities integrated out.
//!
//! A PCFG is the case without adapted nonterminals. A move takes a tree out, draws another one from the grammar that the rest amounts
//! to, and accepts it by the ratio of the joint probabilities (Johnson, Griffiths & Goldwater 2007a, §5; with adapted nonterminals
//! 2007b). A sweep takes each tree once, in random order; then the label of each table (Johnson & Goldwater 2009); then the
//! discounts and concentrations (slice sampling, Neal 2003).
//!
//! With a temperature T the target is the joint probability to the power 1/T, of hyper-parameters too.
//!
//! Invariant: what a sweep draws depends on the state before it, its settings and its stream alone: a chain that goes on from a
//! [`State`] that was written and read draws the same bits.
//! With one shard the chain is exact. Of several, each takes the uses in the others as they were ([`Prior::with_others`]), and has
//! tables of its own.
//!
//! With adapted nonterminals the probabilities of the rules are drawn from their posterior when a sweep begins, and trees and labels
//! given these. The target is the same, and the inside of every constituent without adapted nonterminals is computed once a sweep (`docs/MATHS.md`).
//!
//! Reading order: [`items`], `chart` (the derivations of a sentence), `packed`, `charts` (how they are kept), `fixed`, `layout`, [`state`], `seating` (probabilities), `proposal`
//! (draws), this file (acceptance), `hyper`, [`start`];
//! samples are counted in [`super::tally`].
//!
//! ```
//! use std::sync::Arc;
//! use grammaton::data::Sentence;
//! use grammaton::forest::Prepared;
//! use grammaton::grammar::lexicon::{Lexicon, StickStrings, Strings};
//! use grammaton::grammar::syntax;
//! use grammaton::models::sampler::{Chain, Hyper, Items, Prior, Settings, Start};
//! use grammaton::num::random;
//!
//! let text = "1 1 S --> W\n1 1 S --> W S\nW --> L\nW --> L W\n1 1 L --> a\n1 1 L --> b\n";
//! let (grammar, _) = syntax::parse(text, "words.gr").unwrap();
//! let tokens = grammar.tokens("a b a b").unwrap();
//! // The strings are those of the tables: the lexicon has none.
//! let stick = StickStrings { symbol: grammar.symbol("W").unwrap(), strings: Strings::new() };
//! let lexicon = Lexicon { sticks: vec![stick] };
//! let prior = Prior::new(&grammar, &lexicon);
//! let prepared = Arc::new(Prepared::new(grammar, lexicon));
//! let items = Items::new(prepared, &[Sentence::new(tokens, 3)])?;
//!
//! let (hyper, mut random) = ([Hyper { discount: 0.5, concentration: 1.0 }], random::stream(1, 1, 1));
//! let mut chain = Chain::start(&items, &prior, &hyper, Start::Batch, &mut random).unwrap();
//! let settings = Settings { temperature: 1.0, relabel: true, hyper: None };
//! let sweep = chain.sweep(&settings, &mut random);
//! assert_eq!(sweep.trees.proposed, 3);
//! assert!(chain.log_joint() < 0.0);
//! let tree = chain.tree(0).expect("the sentence has a derivation");
//! assert_eq!(tree.terminals().collect::<String>(), "abab");
//! # Ok::<(), grammaton::forest::TooAmbiguous>(())
//! ```

pub mod items;
pub mod prior;
pub mod state;

mod fixed;

mod repeats;

mod packed;

mod chart;

mod charts;

mod layout;

mod seating;

mod proposal;

mod hyper;

pub mod start;

use rand_pcg::Pcg64Mcg;
use serde::{Deserialize, Serialize};

pub use crate::num::pitman_yor::Hyper;
pub use items::Items;
pub use prior::{HyperPrior, Prior};
pub use start::Start;
pub use state::{State, StateError, Uses};

use crate::grammar::tree::Tree;
use crate::num::Wide;
use crate::num::random::{permutation, uniform};
use crate::stop::{self, checked};
use proposal::{Proposer, Target};
use seating::Seating;
use state::{Choice, TableId};

/// Settings of a sweep.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub struct Settings {
    /// T > 0; 1 samples from the posterior, more moves farther, less climbs.
    pub temperature: f64,
    /// Whether to draw the labels of the tables anew.
    pub relabel: bool,
    /// Draws the hyper-parameters anew, under this prior.
    pub hyper: Option<HyperPrior>,
}

/// Numbers of proposals.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Moves {
    /// Number of proposals.
    pub proposed: u64,
    /// Number of accepted proposals.
    pub accepted: u64,
    /// Number of accepted proposals that differ from the derivation before.
    pub changed: u64,
}

impl std::ops::AddAssign for Moves {
    fn add_assign(&mut self, other: Moves) {
        self.proposed += other.proposed;
        self.accepted += other.accepted;
        self.changed += other.changed;
    }
}

/// Result of a sweep.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Sweep {
    /// Proposals of trees of sentences.
    pub trees: Moves,
    /// Proposals of labels of tables.
    pub labels: Moves,
    /// ln of the joint probability of trees, tables and, if they are drawn, concentrations.
    pub log_posterior: f64,
    /// The part of it that is not of the parameters: of several shards the joint probability is that of all uses
    /// ([`Prior::log_joint`]) and this of each.
    pub log_seating: f64,
}

/// A chain: the live form of a [`State`].
pub struct Chain<'a> {
    seating: Seating<'a>,
    proposer: Proposer,
    /// `[n_occurrences]`.
    trees: Vec<Vec<Choice>>,
}

impl<'a> Chain<'a> {
    /// Goes on from `state`, if it is one of `items`.
    pub fn resume(items: &'a Items, prior: &'a Prior, state: &State) -> Result<Chain<'a>, StateError> {
        let (seating, proposer) = (Seating::resume(items, prior, state)?, Proposer::new(items));
        Ok(Chain { seating, proposer, trees: state.trees.clone() })
    }

    /// The state as it is now.
    pub fn state(&mut self) -> State {
        self.seating.state(&mut self.trees)
    }

    /// Draws all once.
    pub fn sweep(&mut self, settings: &Settings, random: &mut Pcg64Mcg) -> Sweep {
        self.proposer.set_temperature(settings.temperature);
        let is_collapsed = self.seating.items.adapted().is_empty();
        if !is_collapsed {
            self.proposer.set_rules(self.seating.items, self.seating.draw_rules(random));
        }
        self.seating.counts_rules = is_collapsed || settings.temperature != 1.0;
        let trees = self.draw_trees(random);
        let labels = if settings.relabel { self.draw_labels(random) } else { Moves::default() };
        let mut log_seating = 0.0;
        if let Some(prior) = &settings.hyper {
            self.seating.draw_hyper(prior, 1.0 / settings.temperature, random);
            let concentrations =
                self.seating.restaurants.iter().map(|restaurant| restaurant.hyper.concentration);
            log_seating = concentrations.map(|concentration| prior.ln_density(concentration)).sum();
        }
        self.seating.renumber(&mut self.trees);
        log_seating += self.seating.log_seating();
        let log_posterior = self.seating.prior.log_joint(self.uses()) + log_seating;
        Sweep { trees, labels, log_posterior, log_seating }
    }

    fn draw_trees(&mut self, random: &mut Pcg64Mcg) -> Moves {
        let Chain { seating, proposer, trees } = self;
        let items = seating.items;
        let mut moves = Moves::default();
        for occurrence in permutation(trees.len(), random) {
            let item = items.occurrences()[occurrence as usize];
            if items.items()[item as usize].chart.is_some() {
                let tree = &mut trees[occurrence as usize];
                propose(seating, proposer, Target::Tree(item), tree, &mut moves, random);
            }
        }
        moves
    }

    /// Takes strings in turn, and of each all its tables, which stay as they are but for their labels. The label of a table with one
    /// customer is part of what is drawn with that customer; so are those of all tables of a string in one place.
    fn draw_labels(&mut self, random: &mut Pcg64Mcg) -> Moves {
        let Chain { seating, proposer, .. } = self;
        let mut moves = Moves::default();
        let mut tables = Vec::new();
        for string in checked(1..seating.items.strings().len() as u32)
            .filter(|&string| seating.items.has_choice(string))
        {
            tables.clear();
            tables.extend(seating.tables(string).filter(|&table| seating.customers(table) > 1));
            for &table in &tables {
                let mut label = seating.relabel(table, Vec::new());
                propose(seating, proposer, Target::Label(string), &mut label, &mut moves, random);
                seating.relabel(table, label);
            }
        }
        moves
    }

    /// The tree of an occurrence; `None` if its sentence has no derivation.
    pub fn tree(&self, occurrence: usize) -> Option<Tree> {
        let label = |table| self.seating.label(table);
        state::tree(&self.seating.items.expansions(), &self.trees[occurrence], label)
    }

    /// Uses of every parameter, `[n_params]`, each subtree of a table counted once.
    pub fn uses(&self) -> &[u32] {
        self.seating.uses()
    }

    /// ln of the joint probability of all trees and tables, that of the hyper-parameters left out.
    pub fn log_joint(&self) -> f64 {
        self.seating.prior.log_joint(self.uses()) + self.seating.log_seating()
    }
}

/// A Metropolis–Hastings move: another derivation of `target` for `choices`.
///
/// With drawn probabilities of rules θ the target is that of trees given θ: (joint probability)^{1/T} · P(θ | trees).
fn propose(
    seating: &mut Seating,
    proposer: &mut Proposer,
    target: Target,
    choices: &mut Vec<Choice>,
    moves: &mut Moves,
    random: &mut Pcg64Mcg,
) {
    stop::check();
    let mut gone: Vec<TableId> = Vec::new();
    let before = seating.unseat(choices, &mut gone);
    let drawn_before = proposer.probability(seating, choices);
    let new = proposer.draw(seating, target, random);
    let drawn_after = proposer.probability(seating, &new);
    let changed = !is_same(seating, choices, &new);
    let after = seating.seat(&new);
    moves.proposed += 1;
    // min{1, (π(s′) / π(s))^{1/T} · Q(s) / Q(s′)}  (§5)
    let mut ratio =
        proposer.tempered(after.all() / before.all()) * (drawn_before.probability / drawn_after.probability);
    if proposer.has_drawn_rules() {
        ratio = ratio * (before.rules / after.rules) * (drawn_after.rules / drawn_before.rules);
    }
    if ratio >= Wide::ONE || uniform(random) < ratio.to_f64() {
        *choices = new;
        moves.accepted += 1;
        moves.changed += u64::from(changed);
    } else {
        let mut refused = Vec::new();
        seating.unseat(&new, &mut refused);
        seating.seat(choices);
        gone = refused;
    }
    gone.into_iter().for_each(|table| seating.discard(table));
}

/// Whether two derivations are the same, tables without customers by their labels.
fn is_same(seating: &Seating, left: &[Choice], right: &[Choice]) -> bool {
    let mut pairs = vec![(left, right)];
    while let Some((left, right)) = pairs.pop() {
        if left.len() != right.len() {
            return false;
        }
        for pair in left.iter().zip(right) {
            match pair {
                (left, right) if left == right => {}
                (&Choice::Table(left), &Choice::Table(right))
                    if seating.customers(left) == 0 && seating.customers(right) == 0 =>
                {
                    pairs.push((seating.label(left), seating.label(right)));
                }
                _ => return false,
            }
        }
    }
    true
}
