//! Draws a new derivation from the grammar as it stands, and says how probable it was to draw one.
//!
//! With the derivation taken out, all probabilities are frozen: parameters at their predictive means, Σ_k (n_k − d) / (n + c) for the
//! tables of a string, (m·d + c) / (n + c) for a new one, each to the power 1/T. A derivation is drawn from the forest (a *sketch*),
//! and among the tables of a string one in proportion to n_k − d. In it every node of an adapted nonterminal either joins a table or opens one, so that no two share one that is not yet there. As
//! states have such nodes, a node that would open a table with the label of others that were just opened tosses a coin, and with
//! heads joins one of those, each as probable. So all states can be drawn, each from one sketch, with a known probability.
//!
//! Nodes toss when their label is complete, left to right, inner ones first.

use rand_pcg::Pcg64Mcg;

use super::items::{Item, WeightSlot};
use super::seating::{Product, Seating};
use super::state::{Choice, TableId};
use crate::forest::inside::real;
use crate::forest::sample::{Below, Scratch, sample_real, sample_wide};
use crate::forest::{Edge, Forest};
use crate::grammar::{ParamId, StickId};
use crate::num::Wide;
use crate::num::random::{below, uniform};
use crate::num::wide::heat;

/// Draws derivations, reusing its memory.
pub(super) struct Proposer {
    temperature: f64,
    weights: Vec<f64>,
    /// The same, where real space does not do.
    wide: Vec<Wide>,
    below: Below,
    scratch: Scratch,
    sketch: Vec<Sketched>,
    /// Tables opened by the derivation at hand.
    opened: Vec<TableId>,
    /// Labels that are being read, and how far.
    reading: Vec<(TableId, usize)>,
}

/// What a derivation does at a node of its forest.
enum Sketched {
    Param(ParamId),
    /// Joins any of the tables with that string.
    Joins(u32),
    /// Opens a table with that string; its label follows, up to the [`Sketched::End`] of it.
    Opens(u32),
    End,
}

impl Proposer {
    /// Draws at `temperature` T.
    pub fn new(temperature: f64) -> Proposer {
        Proposer {
            temperature,
            weights: Vec::new(),
            wide: Vec::new(),
            below: Below::default(),
            scratch: Scratch::default(),
            sketch: Vec::new(),
            opened: Vec::new(),
            reading: Vec::new(),
        }
    }

    /// Draws a derivation of `root`, a node of the forest of `item`. Tables that it would open are prepared.
    pub fn draw(
        &mut self,
        seating: &mut Seating,
        item: u32,
        root: usize,
        random: &mut Pcg64Mcg,
    ) -> Vec<Choice> {
        self.sketch(seating, item, root, random);
        let sketch = std::mem::take(&mut self.sketch);
        self.opened.clear();
        let opened = &mut self.opened;
        let choices = settle(seating, &sketch, random, |seating, string, label, random| {
            let same =
                |table: &&TableId| seating.string(**table) == string && seating.label(**table) == label;
            let n_same = opened.iter().filter(same).count();
            if n_same > 0 && uniform(random) < 0.5 {
                let chosen = below(n_same, random);
                return *opened.iter().filter(same).nth(chosen).expect("there are as many");
            }
            let table = seating.prepare(string, label);
            opened.push(table);
            table
        });
        self.sketch = sketch;
        choices
    }

    /// As [`Proposer::draw`], but a node that opens a table calls `opens` with the string and the label, which gives the table.
    pub fn draw_with(
        &mut self,
        seating: &mut Seating,
        item: u32,
        root: usize,
        random: &mut Pcg64Mcg,
        mut opens: impl FnMut(&mut Seating, u32, Vec<Choice>) -> TableId,
    ) -> Vec<Choice> {
        self.sketch(seating, item, root, random);
        settle(seating, &self.sketch, random, |seating, string, label, _| opens(seating, string, label))
    }

    /// `probability` to the power 1/T.
    pub fn tempered(&self, probability: Wide) -> Wide {
        let mut heated = [probability];
        heat(&mut heated, self.temperature);
        heated[0]
    }

    fn sketch(&mut self, seating: &Seating, item: u32, root: usize, random: &mut Pcg64Mcg) {
        let item = &seating.items.items()[item as usize];
        let forest = item.forest.as_ref().expect("items without a derivation are skipped");
        if root == forest.root() {
            self.weigh(seating, item);
            self.sketch_from(seating, item, forest, 1..=root, random);
        } else {
            let mut below = std::mem::take(&mut self.below);
            self.weigh_below(seating, item, forest, root, &mut below);
            self.sketch_from(seating, item, forest, below.nodes(), random);
            self.below = below;
        }
    }

    /// Draws a derivation of the last of `nodes`, from weights that are filled in.
    fn sketch_from(
        &mut self,
        seating: &Seating,
        item: &Item,
        forest: &Forest,
        nodes: impl DoubleEndedIterator<Item = usize> + Clone,
        random: &mut Pcg64Mcg,
    ) {
        let n_adapted = seating.restaurants.len();
        let Proposer { temperature, weights, wide, scratch, sketch, .. } = self;
        sketch.clear();
        // Nodes still to come; and for each table that opens, how many there will be when its label is complete.
        let (mut pending, mut labels) = (1usize, Vec::new());
        let mut found = |node: usize, edge: &Edge| {
            pending -= 1;
            match item.weighed(edge.param, n_adapted) {
                WeightSlot::One => {}
                WeightSlot::Param(param) => sketch.push(Sketched::Param(param)),
                WeightSlot::Joins(string) => sketch.push(Sketched::Joins(string)),
                WeightSlot::Opens => {
                    labels.push(pending);
                    sketch.push(Sketched::Opens(string_at(forest, node, item, n_adapted)));
                }
            }
            pending += edge.tails.iter().filter(|&&tail| tail != 0).count();
            while labels.pop_if(|&mut complete| complete == pending).is_some() {
                sketch.push(Sketched::End);
            }
        };
        if sample_real(forest, nodes.clone(), weights, random, scratch, &mut found).is_some() {
            return;
        }
        if *temperature == 1.0 {
            wide.clear();
            wide.extend(weights.iter().map(|&weight| Wide::from_f64(weight)));
        }
        sample_wide(forest, nodes, wide, random, scratch, found);
    }

    /// Fills in the weights of `item`.
    fn weigh(&mut self, seating: &Seating, item: &Item) {
        self.weigh_rules(seating, item);
        self.weights.extend(item.strings.iter().map(|&(string, adapted)| seating.joins(string, adapted)));
        self.heat();
    }

    /// Fills in the weights that derivations of `root` have, and finds the nodes below it.
    fn weigh_below(
        &mut self,
        seating: &Seating,
        item: &Item,
        forest: &Forest,
        root: usize,
        below: &mut Below,
    ) {
        self.weigh_rules(seating, item);
        let first = self.weights.len();
        self.weights.resize(first + item.strings.len(), 0.0);
        let strings = &mut self.weights[first..];
        below.find(forest, root, |edge| {
            if let Some(at) = (edge.param as usize).checked_sub(first) {
                let (string, adapted) = item.strings[at];
                strings[at] = seating.joins(string, adapted);
            }
        });
        self.heat();
    }

    /// Fills in all weights but those of strings, which come behind.
    fn weigh_rules(&mut self, seating: &Seating, item: &Item) {
        let weights = &mut self.weights;
        weights.clear();
        weights.push(1.0);
        weights.extend(item.params.iter().map(|&param| seating.param(param)));
        weights.extend(seating.restaurants.iter().map(|restaurant| restaurant.opens()));
    }

    /// Takes the weights to the power 1/T.
    fn heat(&mut self) {
        if self.temperature != 1.0 {
            let Proposer { temperature, weights, wide, .. } = self;
            wide.clear();
            wide.extend(weights.iter().map(|&weight| Wide::from_f64(weight)));
            heat(wide, *temperature);
            *weights = real(wide);
        }
    }

    /// How probable it is to draw `choices`, but for a factor that is the same for all derivations of the same forest. Tables without
    /// customers are those that it would open.
    pub fn probability(&mut self, seating: &Seating, choices: &[Choice]) -> Wide {
        // What the forest weighs, and what is drawn besides.
        let (mut weights, mut besides) = (Product::default(), Product::default());
        self.opened.clear();
        self.reading.clear();
        let mut at = 0;
        loop {
            let (label, next) = match self.reading.last_mut() {
                Some((table, next)) => (seating.label(*table), next),
                None => (choices, &mut at),
            };
            let choice = label.get(*next).copied();
            *next += 1;
            match choice {
                Some(Choice::Param(param)) => weights.times(seating.param(param)),
                Some(Choice::Table(table)) => {
                    let string = seating.string(table);
                    let customers = seating.customers(table);
                    if customers == 0 {
                        weights.times(seating.restaurants[seating.adapted(string)].opens());
                        self.reading.push((table, 0));
                    } else {
                        weights.times(seating.joins(string, StickId(seating.adapted(string) as u32)));
                        besides.times(seating.share(table) / seating.shares(string));
                    }
                }
                None => {
                    let Some((table, _)) = self.reading.pop() else { break };
                    let (string, label) = (seating.string(table), seating.label(table));
                    let same = |other: &&TableId| {
                        seating.string(**other) == string && seating.label(**other) == label
                    };
                    let n_same = self.opened.iter().filter(same).count();
                    if n_same > 0 {
                        besides.times(0.5);
                    }
                    if self.opened.contains(&table) {
                        besides.times(1.0 / n_same as f64);
                    } else {
                        self.opened.push(table);
                    }
                }
            }
        }
        self.tempered(weights.value()) * besides.value()
    }
}

/// The string of a node that opens a table, from its first edge.
fn string_at(forest: &Forest, node: usize, item: &Item, n_adapted: usize) -> u32 {
    let Edge { param, .. } = forest.edges_of(node)[0];
    match item.weighed(param, n_adapted) {
        WeightSlot::Joins(string) => string,
        _ => unreachable!("the first edge of an adapted node stands for its tables"),
    }
}

/// Makes choices of a sketch: draws the tables to join, and gets those to open from `opens`.
fn settle(
    seating: &mut Seating,
    sketch: &[Sketched],
    random: &mut Pcg64Mcg,
    mut opens: impl FnMut(&mut Seating, u32, Vec<Choice>, &mut Pcg64Mcg) -> TableId,
) -> Vec<Choice> {
    let mut choices = Vec::new();
    // The strings of the labels that are being written, and what was written around them.
    let mut around: Vec<(u32, Vec<Choice>)> = Vec::new();
    for sketched in sketch {
        match *sketched {
            Sketched::Param(param) => choices.push(Choice::Param(param)),
            Sketched::Joins(string) => choices.push(Choice::Table(seating.choose(string, random))),
            Sketched::Opens(string) => around.push((string, std::mem::take(&mut choices))),
            Sketched::End => {
                let (string, outer) = around.pop().expect("a label that ends has begun");
                let label = std::mem::replace(&mut choices, outer);
                let table = opens(seating, string, label, random);
                choices.push(Choice::Table(table));
            }
        }
    }
    choices
}
