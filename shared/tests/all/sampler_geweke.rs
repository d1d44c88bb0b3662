//! The sampler against the prior (Geweke 2004).

use rand_pcg::Pcg64Mcg;

use grammaton::grammar::ParamId;
use grammaton::grammar::{Grammar, RuleId, SymbolId};
use grammaton::models::sampler::state::{Choice, Table, TableId};
use grammaton::models::sampler::{Chain, Hyper, HyperPrior, Prior, Settings, State};
use grammaton::num::random::{stream, uniform};

use crate::support;
use crate::support::world::{World, items_of};

/// Trees drawn from the prior, sentence by sentence, with all counts as plain sums.
struct Simulator<'g> {
    grammar: &'g Grammar,
    world: World,
    hyper: Vec<Hyper>,
    uses: Vec<f64>,
    customers: Vec<f64>,
}

impl<'g> Simulator<'g> {
    fn new(grammar: &'g Grammar, world: World, hyper: Vec<Hyper>) -> Simulator<'g> {
        let mut uses = vec![0.0; grammar.rules.len()];
        for choice in world.trees.iter().chain(world.tables.iter().map(|table| &table.label)).flatten() {
            if let Choice::Param(param) = choice {
                uses[param.index() - 1] += 1.0;
            }
        }
        let customers = world.customers().into_iter().map(f64::from).collect();
        Simulator { grammar, world, hyper, uses, customers }
    }

    /// Draws a tree given those there are, and gives its sentence.
    fn draw_tree(&mut self, random: &mut Pcg64Mcg) -> Vec<SymbolId> {
        let (tree, sentence) = self.draw(Grammar::START, false, random);
        self.world.trees.push(tree);
        sentence
    }

    /// A derivation of `symbol`, or of its base, and its yield. No adapted nonterminal here is part of itself.
    fn draw(&mut self, symbol: SymbolId, base: bool, random: &mut Pcg64Mcg) -> (Vec<Choice>, Vec<SymbolId>) {
        let grammar = self.grammar;
        if !grammar.is_nonterminal(symbol) {
            return (Vec::new(), vec![symbol]);
        }
        if let Some(number) = grammar.adapted().position(|adapted| adapted == symbol && !base) {
            let Hyper { discount, concentration } = self.hyper[number];
            let tables: Vec<usize> =
                (0..self.customers.len()).filter(|&at| self.world.tables[at].symbol == symbol).collect();
            let mut weights: Vec<f64> = tables.iter().map(|&at| self.customers[at] - discount).collect();
            weights.push(tables.len() as f64 * discount + concentration);
            let chosen = pick(&weights, random);
            let at = tables.get(chosen).copied().unwrap_or_else(|| {
                let (label, string) = self.draw(symbol, true, random);
                self.world.tables.push(Table { symbol, label });
                self.world.yields.push(string);
                self.customers.push(0.0);
                self.customers.len() - 1
            });
            self.customers[at] += 1.0;
            return (vec![Choice::Table(TableId(at as u32))], self.world.yields[at].clone());
        }
        let rules: Vec<usize> =
            (0..grammar.rules.len()).filter(|&rule| grammar.rules[rule].parent == symbol).collect();
        let weights: Vec<f64> =
            rules.iter().map(|&rule| grammar.rules[rule].alpha + self.uses[rule]).collect();
        let rule = rules[pick(&weights, random)];
        self.uses[rule] += 1.0;
        let (mut choices, mut string) = (vec![Choice::Param(ParamId::of_rule(RuleId::at(rule)))], Vec::new());
        for &child in &grammar.rules[rule].children {
            let (below, part) = self.draw(child, false, random);
            choices.extend(below);
            string.extend(part);
        }
        (choices, string)
    }
}

/// One of `weights`, in proportion.
fn pick(weights: &[f64], random: &mut Pcg64Mcg) -> usize {
    let mut left = uniform(random) * weights.iter().sum::<f64>();
    let found = weights.iter().position(|weight| {
        left -= weight;
        left < 0.0
    });
    found.unwrap_or(weights.len() - 1)
}

/// A discount from (0, 1) and a concentration from Gamma(2, ½) for every process.
fn draw_hyper(grammar: &Grammar, random: &mut Pcg64Mcg) -> Vec<Hyper> {
    let mut draw = |_| {
        let mut exponential = || -f64::ln(1.0 - uniform(random));
        let concentration = 0.5 * (exponential() + exponential());
        Hyper { discount: uniform(random).max(1e-9), concentration }
    };
    grammar.adapted().map(&mut draw).collect()
}

/// The world of `state` without its first tree.
fn without_first(grammar: &Grammar, state: &State) -> World {
    let mut world =
        World { trees: state.trees[1..].to_vec(), tables: state.tables.clone(), yields: Vec::new() };
    let mut kept = vec![false; world.tables.len()];
    let mut reached: Vec<Choice> = world.trees.concat();
    while let Some(choice) = reached.pop() {
        if let Choice::Table(table) = choice
            && !std::mem::replace(&mut kept[table.index()], true)
        {
            reached.extend(&world.tables[table.index()].label);
        }
    }
    let names: Vec<u32> =
        kept.iter().scan(0, |next, &kept| Some(std::mem::replace(next, *next + u32::from(kept)))).collect();
    let rename = |choices: &mut Vec<Choice>| {
        for choice in choices {
            if let Choice::Table(table) = choice {
                *table = TableId(names[table.index()]);
            }
        }
    };
    let mut kept = kept.iter();
    world.tables.retain(|_| *kept.next().unwrap());
    world.trees.iter_mut().for_each(rename);
    world.tables.iter_mut().for_each(|table| rename(&mut table.label));
    for at in 0..world.tables.len() {
        let string = yield_of(grammar, &world, &world.tables[at].label);
        world.yields.push(string);
    }
    world
}

/// The terminals of a leftmost derivation, which stand in its rules from left to right.
fn yield_of(grammar: &Grammar, world: &World, choices: &[Choice]) -> Vec<SymbolId> {
    fn expand(grammar: &Grammar, world: &World, choices: &mut std::slice::Iter<Choice>) -> Vec<SymbolId> {
        match choices.next().unwrap() {
            Choice::Table(table) => world.yields[table.index()].clone(),
            Choice::Param(param) => {
                let children = &grammar.rules[param.index() - 1].children;
                let part = |&child: &SymbolId| {
                    if grammar.is_nonterminal(child) { expand(grammar, world, choices) } else { vec![child] }
                };
                children.iter().flat_map(part).collect()
            }
        }
    }
    expand(grammar, world, &mut choices.iter())
}

/// Means over the prior, drawn directly and by a chain that draws trees given sentences, then one tree with its sentence
/// given the others (Geweke 2004): they agree only if the sampler leaves the posterior as it is.
#[test]
fn prior_and_posterior_simulators_agree() {
    let grammar = support::grammar(
        "1 1 S --> C\n1 1 S --> C C\n1 0.5 1 C --> W\n0.7 0.5 1 C --> W W\n1 0.5 1 W --> V\n0.8 0.5 1 W --> U\n\
         1 1 V --> a\n0.5 1 V --> a a\n0.7 1 U --> a\n1 1 U --> b\n",
    );
    const N: usize = 3;
    const BATCHES: usize = 50;
    const PER_BATCH: usize = 600;
    let mut random = stream(11, 0, 0);
    let prior = Prior::new(&grammar, &support::lexicon(&grammar, &[]));
    let settings =
        Settings { temperature: 1.0, relabel: true, hyper: Some(HyperPrior { shape: 2.0, scale: 0.5 }) };
    let statistics = |state: &State, sentences: &[Vec<SymbolId>]| -> Vec<f64> {
        let world = World { trees: state.trees.clone(), tables: state.tables.clone(), yields: Vec::new() };
        let largest = world.customers().into_iter().max().unwrap_or(0);
        let words = grammar.symbol("W").unwrap();
        let u = ParamId::of_rule(RuleId::at(
            grammar.rules.iter().position(|rule| grammar.name(rule.parent) == "U").unwrap(),
        ));
        vec![
            state.tables.len() as f64,
            f64::from(largest),
            state.tables.iter().filter(|table| table.symbol == words).count() as f64,
            state.tables.iter().filter(|table| table.label.contains(&Choice::Param(u))).count() as f64,
            sentences.iter().map(Vec::len).sum::<usize>() as f64,
            state.hyper[0].discount,
            state.hyper[1].discount,
            state.hyper[0].concentration.ln(),
            state.hyper[1].concentration.ln(),
            state.hyper[1].discount * state.tables.len() as f64,
            world.ln_joint(&grammar, &state.hyper),
        ]
    };
    let from_prior = |random: &mut Pcg64Mcg| {
        let hyper = draw_hyper(&grammar, random);
        let mut simulator = Simulator::new(&grammar, World::default(), hyper);
        let sentences: Vec<_> = (0..N).map(|_| simulator.draw_tree(random)).collect();
        let World { trees, tables, .. } = simulator.world;
        (State { trees, tables, hyper: simulator.hyper }, sentences)
    };
    let n_statistics = 11;
    let mut direct = vec![Vec::new(); n_statistics];
    let mut chained = vec![Vec::new(); n_statistics];
    let (mut state, mut sentences) = from_prior(&mut random);
    for _ in 0..BATCHES {
        let mut sums = [vec![0.0; n_statistics], vec![0.0; n_statistics]];
        for _ in 0..PER_BATCH {
            let (drawn, of) = from_prior(&mut random);
            let items = items_of(&grammar, &sentences);
            let mut chain = Chain::resume(&items, &prior, &state).unwrap();
            chain.sweep(&settings, &mut random);
            let moved = chain.state();
            for (sums, values) in
                sums.iter_mut().zip([statistics(&drawn, &of), statistics(&moved, &sentences)])
            {
                sums.iter_mut().zip(values).for_each(|(sum, value)| *sum += value / PER_BATCH as f64);
            }
            let mut simulator =
                Simulator::new(&grammar, without_first(&grammar, &moved), moved.hyper.clone());
            sentences.remove(0);
            sentences.push(simulator.draw_tree(&mut random));
            let World { trees, tables, .. } = simulator.world;
            state = State { trees, tables, hyper: simulator.hyper };
        }
        let [of_direct, of_chained] = sums;
        direct.iter_mut().zip(of_direct).for_each(|(means, mean)| means.push(mean));
        chained.iter_mut().zip(of_chained).for_each(|(means, mean)| means.push(mean));
    }
    for (number, (direct, chained)) in direct.iter().zip(&chained).enumerate() {
        let moments = |means: &[f64]| {
            let n = means.len() as f64;
            let mean = means.iter().sum::<f64>() / n;
            (mean, means.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / (n - 1.0) / n)
        };
        let ((a, error_a), (b, error_b)) = (moments(direct), moments(chained));
        let z = (a - b) / (error_a + error_b).sqrt();
        println!("statistic {number}: {a:.4} directly, {b:.4} by the chain, z {z:.2}");
        assert!(z.abs() < 4.0, "statistic {number}: {a} directly, {b} by the chain, z {z}");
    }
}
