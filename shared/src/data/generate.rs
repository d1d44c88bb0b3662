//! Drawing sentences from a grammar, with their trees: simulated corpora whose gold is known.
//!
//! In: a [`Grammar`], how many sentences, a seed. Out: one [`Tree`] per sentence. The first k of n trees do not
//! depend on n.
//!
//! A rule of parent A is drawn with probability α / Σ α over the rules of A, its Dirichlet mean. An adapted A is a
//! Pitman–Yor restaurant ([`crate::num::pitman_yor`]) that lives as long as the call. A customer who opens a table draws
//! its subtree by the rules of A; a customer who joins a table copies its subtree.
//!
//! A recursive adapted nonterminal takes its seat when its subtree is complete, so no subtree contains itself.

use std::rc::Rc;

use rand_pcg::Pcg64Mcg;
use rand_pcg::rand_core::SeedableRng;

use crate::grammar::tree::{Node, Tree};
use crate::grammar::{Grammar, SymbolId};
use crate::num::pitman_yor::{Hyper, Restaurant};
use crate::num::random::uniform;

/// How to draw.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Options {
    /// Discount of the adapted nonterminals for which the grammar gives none; 0 ≤ d < 1.
    pub discount: f64,
    /// Concentration of the adapted nonterminals for which the grammar gives none; > 0.
    pub concentration: f64,
    /// The most rules that may be nested in each other in a sentence.
    pub max_depth: u32,
    /// The most symbols that a sentence may have; by default as many as a corpus line.
    pub max_symbols: u32,
}

impl Default for Options {
    fn default() -> Options {
        Options { discount: 0.5, concentration: 1.0, max_depth: 2_000, max_symbols: 10_000 }
    }
}

/// Why no sentences were drawn.
#[derive(Clone, PartialEq, Debug, thiserror::Error)]
pub enum SampleError {
    /// Recursion without a likely end.
    #[error(
        "sentence {sentence}: more than {max_depth} rules are nested below `{symbol}`; lower the weights of its \
         recursive rules, or raise max_depth"
    )]
    TooDeep {
        /// Number of the sentence, counted from 1.
        sentence: usize,
        /// The nonterminal at which the limit was met.
        symbol: String,
        /// [`Options::max_depth`].
        max_depth: u32,
    },
    /// A sentence that is longer than allowed.
    #[error(
        "sentence {sentence} has more than {max_symbols} symbols; lower the weights of recursive rules, or raise \
         max_symbols"
    )]
    TooLong {
        /// Number of the sentence, counted from 1.
        sentence: usize,
        /// [`Options::max_symbols`].
        max_symbols: u32,
    },
    /// A discount outside of [0, 1).
    #[error("the default discount must be at least 0 and less than 1, found {found}")]
    Discount {
        /// The value found.
        found: f64,
    },
    /// A concentration that is not positive.
    #[error("the default concentration must be positive and finite, found {found}")]
    Concentration {
        /// The value found.
        found: f64,
    },
}

/// Draws `n` sentences.
///
/// ```
/// use grammaton::grammar::syntax;
/// use grammaton::data::generate;
///
/// let (grammar, _) = syntax::parse("1 1 S --> a S\n2 1 S --> b\n", "g").unwrap();
/// let trees = generate::sample(&grammar, 3, 1, &generate::Options::default())?;
/// assert!(trees.iter().all(|tree| tree.terminals().last() == Some("b")));
/// # Ok::<(), generate::SampleError>(())
/// ```
///
/// # Errors
/// [`SampleError`] if a sentence outgrows its limits, or the options are not those of a Pitman–Yor process.
pub fn sample(grammar: &Grammar, n: usize, seed: u64, options: &Options) -> Result<Vec<Tree>, SampleError> {
    if !(0.0..1.0).contains(&options.discount) {
        return Err(SampleError::Discount { found: options.discount });
    }
    if !(options.concentration > 0.0 && options.concentration.is_finite()) {
        return Err(SampleError::Concentration { found: options.concentration });
    }
    let mut sampler = Sampler::new(grammar, seed, options);
    (1..=n).map(|number| sampler.sentence(number)).collect()
}

struct Sampler<'a> {
    grammar: &'a Grammar,
    options: &'a Options,
    random: Pcg64Mcg,
    /// By nonterminal: the index of its first rule, and the running sums of its rules' pseudo-counts.
    rules: Vec<(usize, Vec<f64>)>,
    /// Tables by nonterminal.
    restaurants: Vec<Option<Tables>>,
}

/// Pending steps of a derivation; the last one is next.
enum Step {
    Expand {
        symbol: SymbolId,
        depth: u32,
    },
    /// The subtree that began at node `start` is complete; it becomes a table of `symbol`.
    OpenTable {
        symbol: SymbolId,
        start: usize,
    },
}

impl<'a> Sampler<'a> {
    fn new(grammar: &'a Grammar, seed: u64, options: &'a Options) -> Sampler<'a> {
        let mut rules = vec![(0, Vec::new()); grammar.n_nonterminals as usize];
        for (index, rule) in grammar.rules.iter().enumerate() {
            let (first, sums) = &mut rules[rule.parent.index()];
            *first = if sums.is_empty() { index } else { *first };
            sums.push(sums.last().copied().unwrap_or(0.0) + rule.alpha);
        }
        let restaurant = |adaptor: &crate::grammar::Adaptor| {
            Tables::new(Hyper {
                discount: adaptor.discount.unwrap_or(options.discount),
                concentration: adaptor.concentration.unwrap_or(options.concentration),
            })
        };
        let restaurants = grammar.adaptors.iter().map(|adaptor| adaptor.as_ref().map(restaurant)).collect();
        Sampler { grammar, options, random: Pcg64Mcg::seed_from_u64(seed), rules, restaurants }
    }

    fn sentence(&mut self, sentence: usize) -> Result<Tree, SampleError> {
        let Options { max_depth, max_symbols, .. } = *self.options;
        let mut nodes: Vec<Node> = Vec::new();
        let mut n_terminals = 0;
        let mut steps = vec![Step::Expand { symbol: Grammar::START, depth: 1 }];
        while let Some(step) = steps.pop() {
            let first_new = nodes.len();
            match step {
                Step::OpenTable { symbol, start } => {
                    let restaurant = self.restaurants[symbol.index()].as_mut();
                    restaurant.expect("only adapted symbols open tables").open(nodes[start..].into());
                }
                Step::Expand { symbol, .. } if !self.grammar.is_nonterminal(symbol) => {
                    nodes.push(Node { label: self.grammar.name(symbol).to_owned(), n_children: 0 });
                }
                Step::Expand { symbol, depth } => {
                    if depth > max_depth {
                        let symbol = self.grammar.name(symbol).to_owned();
                        return Err(SampleError::TooDeep { sentence, symbol, max_depth });
                    }
                    if let Some(restaurant) = &mut self.restaurants[symbol.index()] {
                        if let Some(subtree) = restaurant.seat(&mut self.random) {
                            nodes.extend_from_slice(&subtree);
                        } else {
                            steps.push(Step::OpenTable { symbol, start: nodes.len() });
                            self.expand(symbol, depth, &mut nodes, &mut steps);
                        }
                    } else {
                        self.expand(symbol, depth, &mut nodes, &mut steps);
                    }
                }
            }
            n_terminals += nodes[first_new..].iter().filter(|node| node.n_children == 0).count();
            if n_terminals > max_symbols as usize {
                return Err(SampleError::TooLong { sentence, max_symbols });
            }
        }
        Ok(Tree::new(nodes).expect("each step adds the children that its parent announced"))
    }

    /// Draws a rule of `symbol`.
    fn expand(&mut self, symbol: SymbolId, depth: u32, nodes: &mut Vec<Node>, steps: &mut Vec<Step>) {
        let (first, sums) = &self.rules[symbol.index()];
        let total = sums.last().expect("every nonterminal has a rule");
        let drawn = uniform(&mut self.random) * total;
        let rule = sums.partition_point(|&sum| sum <= drawn).min(sums.len() - 1);
        let children = &self.grammar.rules[first + rule].children;
        nodes.push(Node { label: self.grammar.name(symbol).to_owned(), n_children: children.len() as u32 });
        steps.extend(children.iter().rev().map(|&symbol| Step::Expand { symbol, depth: depth + 1 }));
    }
}

/// A restaurant whose tables have a subtree each.
struct Tables {
    restaurant: Restaurant,
    /// The subtree of each table, and its customers.
    tables: Vec<(Rc<[Node]>, u32)>,
    /// The table of each customer, in order of arrival.
    customers: Vec<u32>,
}

impl Tables {
    fn new(hyper: Hyper) -> Tables {
        Tables { restaurant: Restaurant::new(hyper), tables: Vec::new(), customers: Vec::new() }
    }

    /// Seats a customer at a table and returns its subtree; `None` if the customer is to open one.
    fn seat(&mut self, random: &mut Pcg64Mcg) -> Option<Rc<[Node]>> {
        if uniform(random) * self.restaurant.total() < self.restaurant.opening_share() {
            return None;
        }
        // The table of a customer drawn evenly is k with probability n_k / n; kept with probability
        // (n_k − d) / n_k, it is k in proportion to n_k − d.
        loop {
            let customer = (uniform(random) * self.customers.len() as f64) as usize;
            let number = self.customers[customer.min(self.customers.len() - 1)];
            let (subtree, customers) = &mut self.tables[number as usize];
            if uniform(random) * f64::from(*customers) >= self.restaurant.hyper.discount {
                self.restaurant.seat(customers);
                self.customers.push(number);
                return Some(Rc::clone(subtree));
            }
        }
    }

    /// Opens a table, for the customer for whom [`Tables::seat`] found none.
    fn open(&mut self, subtree: Rc<[Node]>) {
        let mut customers = 0;
        self.restaurant.seat(&mut customers);
        self.customers.push(self.tables.len() as u32);
        self.tables.push((subtree, customers));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_are_as_many_as_the_process_expects() {
        // E[K] after n customers: Σ_k (c + d·E[K_k]) / (k + c), by recursion.
        for (discount, concentration) in [(0.5, 1.0), (0.0, 5.0), (0.8, 0.1)] {
            let (n, runs) = (300, 400);
            let mut expected = 0.0;
            for k in 0..n {
                expected += (concentration + discount * expected) / (f64::from(k) + concentration);
            }
            let mut total = 0;
            let mut random = Pcg64Mcg::seed_from_u64(7);
            for _ in 0..runs {
                let mut restaurant = Tables::new(Hyper { discount, concentration });
                for _ in 0..n {
                    if restaurant.seat(&mut random).is_none() {
                        restaurant.open(Rc::from([]));
                    }
                }
                assert_eq!(restaurant.customers.len(), n as usize);
                assert_eq!(restaurant.tables.iter().map(|table| table.1).sum::<u32>(), n as u32);
                total += restaurant.tables.len();
            }
            let mean = total as f64 / f64::from(runs);
            assert!((mean / expected - 1.0).abs() < 0.05, "{mean} tables, expected {expected}");
        }
    }

    #[test]
    fn a_third_customer_joins_in_proportion_to_customers_less_the_discount() {
        // Two customers at one table, one at another: joins them as (2 − d) to (1 − d).
        let (discount, runs) = (0.6, 40_000);
        let mut random = Pcg64Mcg::seed_from_u64(11);
        let mut joined = [0u32; 3];
        for _ in 0..runs {
            let hyper = Hyper { discount, concentration: 2.0 };
            let mut restaurant = Tables {
                restaurant: Restaurant { hyper, customers: 3, tables: 2 },
                tables: vec![(Rc::from([]), 2), (Rc::from([]), 1)],
                customers: vec![0, 1, 0],
            };
            match restaurant.seat(&mut random) {
                Some(_) => joined[restaurant.customers[3] as usize] += 1,
                None => joined[2] += 1,
            }
        }
        for (found, expected) in joined.into_iter().zip([1.4 / 5.0, 0.4 / 5.0, 3.2 / 5.0]) {
            let share = f64::from(found) / f64::from(runs);
            assert!((share - expected).abs() < 0.01, "{share}, expected {expected}");
        }
    }
}
