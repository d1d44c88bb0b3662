//! Draws a new derivation from the grammar as it stands, and says how probable it was to draw one.
//!
//! With the derivation taken out, all probabilities are frozen: those of the rules, Σ_k (n_k − d) / (n + c) for the
//! tables of a string, (m·d + c) / (n + c) for a new one, each to the power 1/T. A derivation is drawn from the chart (a *sketch*),
//! and among the tables of a string one in proportion to n_k − d. In it every node of an adapted nonterminal either joins a table or opens one, so that no two share one that is not yet there. As
//! states have such nodes, a node that would open a table with the label of others that were just opened tosses a coin, and with
//! heads joins one of those, each as probable. So all states can be drawn, each from one sketch, with a known probability.
//!
//! Nodes toss when their label is complete, left to right, inner ones first.
//!
//! The probabilities of the rules are their predictive means in a PCFG. In an adaptor grammar they are drawn at the beginning of a sweep
//! and stay during it, so the inside of constituents without adapted nonterminals is computed once a sweep ([`Proposer::set_rules`]).

use rand_pcg::Pcg64Mcg;
use rustc_hash::FxHashMap;

use super::chart::{Chart, Heated, Joins, Shares, Sketch, SketchStep, Weight, Weights};
use super::charts::{AnyChart, with_chart};
use super::items::{Item, Items};
use super::packed::{Form, Seat};
use super::seating::{Product, Seating};
use super::state::{Choice, TableId};
use crate::forest::Forest;
use crate::forest::inside::{in_range, inside_values, real};
use crate::num::Wide;
use crate::num::random::{below, uniform};
use crate::num::wide::heat;
use crate::stop;

/// Draws derivations, reusing its memory.
pub(super) struct Proposer {
    temperature: f64,
    /// Probabilities of rules by parameter, before tempering; drawn ones alone.
    rules: Vec<Wide>,
    real: Values<f64>,
    /// Values with extended range, where `f64` is not enough.
    wide: Values<Wide>,
    /// 1 / (n + c) by adapted nonterminal.
    shares: Vec<f64>,
    /// The values below the labels of strings, ascending, as far as they were asked for.
    below: FxHashMap<u32, Box<[u32]>>,
    sketch: Sketch,
    /// Tables opened by the derivation at hand.
    opened: Vec<TableId>,
    /// Labels that are being read, how far, and whether they were read before.
    reading: Vec<(TableId, usize, bool)>,
}

/// Weights and values, to the power 1/T.
struct Values<N> {
    /// Weights of rules by parameter, of an adaptor grammar,
    rules: Vec<N>,
    /// and by number among those of edges.
    edges: Vec<N>,
    /// Weights by fixed node.
    fixed: Vec<N>,
    /// Weight of opening a table, by adapted nonterminal.
    opens: Vec<N>,
    /// Inside weights by value of the current chart.
    beta: Vec<N>,
}

impl<N: Weight> Values<N> {
    fn new(items: &Items) -> Values<N> {
        let edges = vec![N::ONE; items.params_of_edges().len()];
        Values { rules: Vec::new(), edges, fixed: Vec::new(), opens: Vec::new(), beta: Vec::new() }
    }

    /// Sets the weights of the rules of an adaptor grammar.
    fn set_rules(&mut self, items: &Items, rules: Vec<N>) {
        self.edges = items.params_of_edges().iter().map(|param| rules[param.index()]).collect();
        self.rules = rules;
    }
}

/// Target of a draw.
#[derive(Clone, Copy)]
pub(super) enum Target {
    /// The tree of an item.
    Tree(u32),
    /// The label of a string.
    Label(u32),
}

/// How probable it was to draw a derivation.
#[derive(Clone, Copy)]
pub(super) struct DrawProbability {
    /// But for a factor that is the same for all derivations of the same target, and for `rules` if these are left out.
    pub probability: Wide,
    /// The product of the drawn probabilities of its rules, those in the label of a table once; one if they are left out, as they cancel.
    pub rules: Wide,
}

impl Proposer {
    /// A proposer for `items`.
    pub fn new(items: &Items) -> Proposer {
        Proposer {
            temperature: 1.0,
            rules: Vec::new(),
            real: Values::new(items),
            wide: Values::new(items),
            shares: Vec::new(),
            below: FxHashMap::default(),
            sketch: Sketch::default(),
            opened: Vec::new(),
            reading: Vec::new(),
        }
    }

    /// Draws at `temperature` T from now on.
    pub fn set_temperature(&mut self, temperature: f64) {
        self.temperature = temperature;
    }

    /// Sets the probabilities of rules, by parameter.
    pub fn set_rules(&mut self, items: &Items, rules: Vec<Wide>) {
        let Proposer { temperature, real: values, wide, .. } = self;
        let mut heated = rules.clone();
        heat(&mut heated, *temperature);
        values.set_rules(items, real(&heated));
        wide.set_rules(items, heated);
        let forest = &items.fixed().forest;
        inside_values(forest, forest.root(), &values.rules, 1..forest.n_nodes(), &mut values.fixed);
        wide.fixed.clear();
        self.rules = rules;
    }

    /// From now on rules of an adaptor grammar have their predictive means under `seating`; those of a PCFG have them in any case.
    pub fn set_mean_rules(&mut self, seating: &Seating) {
        if !seating.items.adapted().is_empty() {
            self.set_rules(seating.items, seating.mean_rules());
        }
    }

    /// Whether the probabilities of rules are given.
    pub fn has_drawn_rules(&self) -> bool {
        !self.rules.is_empty()
    }

    /// Draws a derivation of `target`. Tables that it would open are prepared.
    pub fn draw(&mut self, seating: &mut Seating, target: Target, random: &mut Pcg64Mcg) -> Vec<Choice> {
        self.sketch(seating, target, random);
        let sketch = std::mem::take(&mut self.sketch);
        self.opened.clear();
        let opened = &mut self.opened;
        let choices = settle(seating, &sketch.steps, random, |seating, seat, label, random| {
            let same = |table: &&TableId| seating.seat_of(**table) == seat && seating.label(**table) == label;
            let n_same = opened.iter().filter(same).count();
            if n_same > 0 && uniform(random) < 0.5 {
                let chosen = below(n_same, random);
                return *opened.iter().filter(same).nth(chosen).expect("there are as many");
            }
            let table = seating.prepare(seat, label);
            opened.push(table);
            table
        });
        self.sketch = sketch;
        choices
    }

    /// [`Proposer::draw`] with `opens`, which returns the table that a node opens, with its label.
    pub fn draw_with(
        &mut self,
        seating: &mut Seating,
        target: Target,
        random: &mut Pcg64Mcg,
        mut opens: impl FnMut(&mut Seating, Seat, Vec<Choice>) -> TableId,
    ) -> Vec<Choice> {
        self.sketch(seating, target, random);
        settle(seating, &self.sketch.steps, random, |seating, seat, label, _| opens(seating, seat, label))
    }

    /// `probability` to the power 1/T.
    pub fn tempered(&self, probability: Wide) -> Wide {
        let mut heated = [probability];
        heat(&mut heated, self.temperature);
        heated[0]
    }

    fn sketch(&mut self, seating: &Seating, target: Target, random: &mut Pcg64Mcg) {
        stop::check();
        let number = match target {
            Target::Tree(item) => item,
            Target::Label(string) => seating.items.strings()[string as usize].item,
        };
        let item = &seating.items.items()[number as usize];
        self.weigh(seating, item);
        let chart = seating.items.chart(item).expect("items without a derivation are skipped");
        with_chart!(&chart, chart => self.sketch_in(chart, seating, item, target, random));
    }

    /// Fills in the weights that are not those of tables.
    fn weigh(&mut self, seating: &Seating, item: &Item) {
        let Proposer { temperature, real: values, wide, shares, .. } = self;
        for &number in &item.params {
            let param = seating.items.params_of_edges()[number as usize];
            values.edges[number as usize] = seating.param(param);
        }
        shares.clear();
        shares.extend(seating.restaurants.iter().map(|restaurant| 1.0 / restaurant.total()));
        values.opens.clear();
        let opens = seating.restaurants.iter().zip(&*shares);
        values.opens.extend(opens.map(|(restaurant, share)| restaurant.opening_share() * share));
        if *temperature != 1.0 {
            for at in item.params.iter().map(|&number| number as usize) {
                wide.edges[at] = Wide::heated(values.edges[at], *temperature);
                values.edges[at] = wide.edges[at].to_f64();
            }
            wide.opens.clear();
            wide.opens.extend(values.opens.iter().map(|&weight| Wide::heated(weight, *temperature)));
            values.opens = real(&wide.opens);
        }
    }

    fn sketch_in<F: Form>(
        &mut self,
        chart: &Chart<'_, F>,
        seating: &Seating,
        item: &Item,
        target: Target,
        random: &mut Pcg64Mcg,
    ) {
        let Proposer { temperature, real: values, wide, shares, below, sketch, .. } = self;
        let (items, temperature) = (seating.items, *temperature);
        let joins = Shares { shares: &seating.shares, inverse_totals: shares };
        let (root, below) = match target {
            Target::Tree(_) => (item.root, None),
            Target::Label(string) => {
                let value = items.strings()[string as usize].value as usize;
                (value, Some(&**below.entry(string).or_insert_with(|| chart.below(value))))
            }
        };
        let fixed = &items.fixed().forest;
        let drawing = Drawing { chart, root, below, fixed };
        let heated = Heated { shares: joins, temperature };
        let is_drawn = if temperature == 1.0 {
            drawing.draw(values, joins, in_range, sketch, random)
        } else {
            drawing.draw(values, heated, in_range, sketch, random)
        };
        if is_drawn {
            return;
        }
        if wide.fixed.is_empty() {
            inside_values(fixed, fixed.root(), &wide.rules, 1..fixed.n_nodes(), &mut wide.fixed);
        }
        if temperature == 1.0 {
            for at in item.params.iter().map(|&number| number as usize) {
                wide.edges[at] = Wide::from_f64(values.edges[at]);
            }
            wide.opens.clear();
            wide.opens.extend(values.opens.iter().map(|&weight| Wide::from_f64(weight)));
        }
        drawing.draw(wide, heated, |z: Wide| !z.is_zero(), sketch, random);
    }

    /// How probable it is to draw `choices`. Tables without customers are those that it would open.
    pub fn probability(&mut self, seating: &Seating, choices: &[Choice]) -> DrawProbability {
        // What the chart weighs, that of drawn rules apart, and what is drawn besides.
        let [mut weights, mut rules, mut besides] = [(); 3].map(|()| Product::default());
        let is_drawn = self.has_drawn_rules();
        self.opened.clear();
        self.reading.clear();
        let mut at = 0;
        loop {
            let (label, next, again) = match self.reading.last_mut() {
                Some((table, next, again)) => (seating.label(*table), next, *again),
                None => (choices, &mut at, false),
            };
            let choice = label.get(*next).copied();
            *next += 1;
            match choice {
                Some(Choice::Param(param)) if again => weights.times_wide(self.rules[param.index()]),
                Some(Choice::Param(_)) if !seating.counts_rules => {}
                Some(Choice::Param(param)) if is_drawn => rules.times_wide(self.rules[param.index()]),
                Some(Choice::Param(param)) => weights.times(seating.param(param)),
                Some(Choice::Table(table)) => {
                    let string = seating.seat_of(table).string;
                    let customers = seating.customers(table);
                    let restaurant = seating.restaurant(table);
                    if customers == 0 {
                        weights.times(restaurant.opens());
                        self.reading.push((table, 0, self.opened.contains(&table)));
                    } else {
                        weights.times(seating.shares(string) / restaurant.total());
                        besides.times(restaurant.share(customers) / seating.shares(string));
                    }
                }
                None => {
                    let Some((table, ..)) = self.reading.pop() else { break };
                    let (seat, label) = (seating.seat_of(table), seating.label(table));
                    let same = |other: &&TableId| {
                        seating.seat_of(**other) == seat && seating.label(**other) == label
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
        let rules = rules.value();
        DrawProbability { probability: self.tempered(weights.value() * rules) * besides.value(), rules }
    }
}

/// Source of a draw: the root of a chart, or its base, with the values below that.
struct Drawing<'c, F: Form> {
    chart: &'c Chart<'c, F>,
    root: usize,
    below: Option<&'c [u32]>,
    fixed: &'c Forest,
}

impl<F: Form> Drawing<'_, F> {
    /// Draws a derivation, if the total weight of all of them can be trusted.
    fn draw<N: Weight>(
        &self,
        values: &mut Values<N>,
        joins: impl Joins<N>,
        is_trusted: impl Fn(N) -> bool,
        sketch: &mut Sketch,
        random: &mut Pcg64Mcg,
    ) -> bool {
        let Drawing { chart, root, below, fixed } = *self;
        let Values { rules, edges, fixed: fixed_values, opens, beta } = values;
        let weights = Weights { rules, edges, fixed: fixed_values, opens, joins };
        if !is_trusted(chart.inside(root, below, &weights, beta)) {
            return false;
        }
        chart.draw((root, below.is_some()), fixed, &weights, beta, sketch, random);
        true
    }
}

/// Makes choices of a sketch: draws the tables to join, and gets those to open from `opens`.
fn settle(
    seating: &mut Seating,
    sketch: &[SketchStep],
    random: &mut Pcg64Mcg,
    mut opens: impl FnMut(&mut Seating, Seat, Vec<Choice>, &mut Pcg64Mcg) -> TableId,
) -> Vec<Choice> {
    let mut choices = Vec::new();
    // The seats whose labels are being written, and what was written around them.
    let mut around: Vec<(Seat, Vec<Choice>)> = Vec::new();
    for sketched in sketch {
        match *sketched {
            SketchStep::Param(param) => choices.push(Choice::Param(param)),
            SketchStep::Joins(string) => choices.push(Choice::Table(seating.choose(string, random))),
            SketchStep::Opens(seat) => around.push((seat, std::mem::take(&mut choices))),
            SketchStep::End => {
                let (seat, outer) = around.pop().expect("a label that ends has begun");
                let label = std::mem::replace(&mut choices, outer);
                let table = opens(seating, seat, label, random);
                choices.push(Choice::Table(table));
            }
        }
    }
    choices
}
