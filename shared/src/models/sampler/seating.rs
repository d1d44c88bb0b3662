//! The seating: counts of parameters, customers of tables, and the probability of each customer that is seated or unseated.
//!
//! The parameters of a group are drawn from a multinomial with a Dirichlet prior, integrated out: with f uses of r and F in all, the
//! next one is r with probability (f + α_r) / (F + Σ α) (Johnson, Griffiths & Goldwater 2007, Eq. 3). An adapted nonterminal is a
//! Pitman–Yor process, integrated out: with n customers at m tables, discount d and concentration c, the next customer joins table k
//! with probability (n_k − d) / (n + c), and opens one with probability (m·d + c) / (n + c), whose label its base derives.
//!
//! Both are exchangeable: the product over all customers, in any order, is the joint probability; and a customer is unseated as if it had come last.
//!
//! Invariant: a table with customers is in the list of its string; its label is counted once, however many they are.

use rand_pcg::Pcg64Mcg;

use super::items::Items;
use super::prior::Prior;
use super::state::{Choice, State, StateError, Table, TableId};
use crate::grammar::{ParamId, StickId};
use crate::num::Wide;
use crate::num::pitman_yor::{Hyper, Restaurant};
use crate::num::random::uniform;

/// The live form of a [`State`].
pub(super) struct Seating<'a> {
    pub items: &'a Items,
    pub prior: &'a Prior,
    /// `[n_params]`: the group of each parameter.
    group: Vec<u32>,
    /// `[n_groups]`: the sum of its pseudo-counts.
    pseudo: Vec<f64>,
    /// `[n_params]`.
    uses: Vec<u32>,
    /// `[n_groups]`: the sum of its uses.
    totals: Vec<u32>,
    /// One per adapted nonterminal.
    pub restaurants: Vec<Restaurant>,
    /// `[n_strings]`: the customers of its tables.
    pub customers: Vec<u32>,
    /// `[n_strings]`: Σ_k (n_k − d) over its tables.
    shares: Vec<f64>,
    /// `[n_strings]`: its tables.
    pub at_string: Vec<Vec<TableId>>,
    tables: Vec<Serving>,
    free: Vec<TableId>,
    /// Tables whose labels are still to be seated or unseated.
    todo: Vec<TableId>,
}

/// A table.
struct Serving {
    string: u32,
    customers: u32,
    label: Vec<Choice>,
}

impl<'a> Seating<'a> {
    /// A seating without customers.
    pub fn new(items: &'a Items, prior: &'a Prior, hyper: &[Hyper]) -> Seating<'a> {
        let mut group = vec![u32::MAX; prior.pseudo.len()];
        for (number, params) in (0..).zip(prior.groups.iter()) {
            group[params].fill(number);
        }
        Seating {
            items,
            prior,
            group,
            pseudo: prior.groups.sums(&prior.pseudo),
            uses: vec![0; prior.pseudo.len()],
            totals: vec![0; prior.groups.len()],
            restaurants: hyper.iter().copied().map(Restaurant::new).collect(),
            customers: vec![0; items.strings().len()],
            shares: vec![0.0; items.strings().len()],
            at_string: vec![Vec::new(); items.strings().len()],
            tables: Vec::new(),
            free: Vec::new(),
            todo: Vec::new(),
        }
    }

    /// Seats everyone as in `state`, if it is one of `items`.
    pub fn resume(items: &'a Items, prior: &'a Prior, state: &State) -> Result<Seating<'a>, StateError> {
        let mut seating = Seating::new(items, prior, &state.hyper);
        for (table, string) in state.tables.iter().zip(state.strings(items)?) {
            seating.tables.push(Serving { string, customers: 0, label: table.label.clone() });
        }
        for tree in &state.trees {
            seating.seat(tree);
        }
        seating.sort();
        Ok(seating)
    }

    /// The state, given `trees`, whose tables are numbered anew.
    pub fn state(&mut self, trees: &mut [Vec<Choice>]) -> State {
        self.renumber(trees);
        let table = |serving: &Serving| Table {
            symbol: self.items.adapted()[self.items.strings()[serving.string as usize].adapted.index()],
            label: serving.label.clone(),
        };
        State {
            trees: trees.to_vec(),
            tables: self.tables.iter().map(table).collect(),
            hyper: self.restaurants.iter().map(|restaurant| restaurant.hyper).collect(),
        }
    }

    /// Numbers the tables in the order in which `trees` come to them, those in their labels first, so that what is drawn next does
    /// not depend on how they came about.
    pub fn renumber(&mut self, trees: &mut [Vec<Choice>]) {
        const UNNAMED: u32 = u32::MAX;
        let mut names = vec![UNNAMED; self.tables.len()];
        let mut order: Vec<u32> = Vec::new();
        // Labels that are being read, and how far.
        let mut reading: Vec<(TableId, usize)> = Vec::new();
        for tree in trees.iter() {
            for choice in tree {
                let &Choice::Table(table) = choice else { continue };
                if names[table.index()] != UNNAMED {
                    continue;
                }
                reading.push((table, 0));
                while let Some((table, at)) = reading.last_mut() {
                    match self.tables[table.index()].label.get(*at) {
                        Some(&Choice::Table(inner)) if names[inner.index()] == UNNAMED => {
                            reading.push((inner, 0))
                        }
                        Some(_) => *at += 1,
                        None => {
                            names[table.index()] = order.len() as u32;
                            order.push(table.0);
                            reading.pop();
                        }
                    }
                }
            }
        }
        let named = |choices: &mut Vec<Choice>| {
            for choice in choices {
                if let Choice::Table(table) = choice {
                    *table = TableId(names[table.index()]);
                }
            }
        };
        trees.iter_mut().for_each(named);
        let mut before: Vec<Option<Serving>> =
            std::mem::take(&mut self.tables).into_iter().map(Some).collect();
        for at in order {
            let mut serving = before[at as usize].take().expect("every table is named once");
            named(&mut serving.label);
            self.tables.push(serving);
        }
        self.free.clear();
        self.sort();
    }

    /// Puts the tables of every string in order.
    fn sort(&mut self) {
        for serving in &self.tables {
            self.at_string[serving.string as usize].clear();
        }
        for (id, serving) in (0..).map(TableId).zip(&self.tables) {
            self.at_string[serving.string as usize].push(id);
        }
    }

    /// The probability that the next one of its group is `param`.
    #[inline]
    pub fn param(&self, param: ParamId) -> f64 {
        let group = self.group[param.index()] as usize;
        let pseudo = self.prior.pseudo[param.index()] + f64::from(self.uses[param.index()]);
        pseudo / (self.pseudo[group] + f64::from(self.totals[group]))
    }

    pub fn adapted(&self, string: u32) -> usize {
        self.items.strings()[string as usize].adapted.index()
    }

    pub fn string(&self, table: TableId) -> u32 {
        self.tables[table.index()].string
    }

    pub fn customers(&self, table: TableId) -> u32 {
        self.tables[table.index()].customers
    }

    pub fn label(&self, table: TableId) -> &[Choice] {
        &self.tables[table.index()].label
    }

    /// n_k − d of a table with customers.
    pub fn share(&self, table: TableId) -> f64 {
        let serving = &self.tables[table.index()];
        self.restaurants[self.adapted(serving.string)].share(serving.customers)
    }

    /// Σ_k (n_k − d) over the tables of a string.
    pub fn shares(&self, string: u32) -> f64 {
        self.shares[string as usize]
    }

    /// Brings the shares of all strings up to date with the discounts.
    pub fn share_out(&mut self) {
        for (string, of) in self.items.strings().iter().enumerate() {
            if self.customers[string] > 0 {
                let discount = self.restaurants[of.adapted.index()].hyper.discount;
                self.shares[string] = shares(self.customers[string], &self.at_string[string], discount);
            }
        }
    }

    /// The probability that the next customer joins one of the tables of `string`, which is of that adapted nonterminal.
    #[inline]
    pub fn joins(&self, string: u32, adapted: StickId) -> f64 {
        self.shares[string as usize] / self.restaurants[adapted.index()].total()
    }

    /// A table of `string`, drawn in proportion to n_k − d.
    pub fn choose(&self, string: u32, random: &mut Pcg64Mcg) -> TableId {
        let tables = &self.at_string[string as usize];
        if let [only] = tables[..] {
            return only;
        }
        let mut left = uniform(random) * self.shares(string);
        for &table in tables {
            left -= self.share(table);
            if left < 0.0 {
                return table;
            }
        }
        *tables.last().expect("a string that is joined has a table")
    }

    /// A table without customers.
    pub fn prepare(&mut self, string: u32, label: Vec<Choice>) -> TableId {
        let serving = Serving { string, customers: 0, label };
        match self.free.pop() {
            Some(table) => {
                self.tables[table.index()] = serving;
                table
            }
            None => {
                self.tables.push(serving);
                TableId(self.tables.len() as u32 - 1)
            }
        }
    }

    /// Removes a table without customers.
    pub fn discard(&mut self, table: TableId) {
        self.tables[table.index()].label = Vec::new();
        self.free.push(table);
    }

    /// Gives `table` another label, and returns the one that it had. The label has to be unseated.
    pub fn relabel(&mut self, table: TableId, label: Vec<Choice>) -> Vec<Choice> {
        std::mem::replace(&mut self.tables[table.index()].label, label)
    }

    /// Seats the customers of `choices`, and the customers in the label of every table that they open. Returns the probability of the seating.
    pub fn seat(&mut self, choices: &[Choice]) -> Wide {
        let mut product = Product::default();
        for &choice in choices {
            self.seat_choice(choice, &mut product);
        }
        while let Some(table) = self.todo.pop() {
            let label = std::mem::take(&mut self.tables[table.index()].label);
            for &choice in &label {
                self.seat_choice(choice, &mut product);
            }
            self.tables[table.index()].label = label;
        }
        product.value()
    }

    /// Unseats the customers of `choices`, and the customers in the label of every table that is empty then. Returns the probability of seating them again,
    /// and appends the empty tables to `left`.
    pub fn unseat(&mut self, choices: &[Choice], left: &mut Vec<TableId>) -> Wide {
        let mut product = Product::default();
        for &choice in choices {
            self.unseat_choice(choice, &mut product);
        }
        while let Some(table) = self.todo.pop() {
            left.push(table);
            let label = std::mem::take(&mut self.tables[table.index()].label);
            for &choice in &label {
                self.unseat_choice(choice, &mut product);
            }
            self.tables[table.index()].label = label;
        }
        product.value()
    }

    fn seat_choice(&mut self, choice: Choice, product: &mut Product) {
        match choice {
            Choice::Param(param) => {
                product.times(self.param(param));
                self.uses[param.index()] += 1;
                self.totals[self.group[param.index()] as usize] += 1;
            }
            Choice::Table(id) => {
                let table = &mut self.tables[id.index()];
                let at_string = &mut self.at_string[table.string as usize];
                let restaurant =
                    &mut self.restaurants[self.items.strings()[table.string as usize].adapted.index()];
                product.times(restaurant.predict(table.customers));
                if table.customers == 0 {
                    at_string.push(id);
                    self.todo.push(id);
                }
                restaurant.seat(&mut table.customers);
                self.customers[table.string as usize] += 1;
                self.shares[table.string as usize] =
                    shares(self.customers[table.string as usize], at_string, restaurant.hyper.discount);
            }
        }
    }

    fn unseat_choice(&mut self, choice: Choice, product: &mut Product) {
        match choice {
            Choice::Param(param) => {
                self.uses[param.index()] -= 1;
                self.totals[self.group[param.index()] as usize] -= 1;
                product.times(self.param(param));
            }
            Choice::Table(id) => {
                let table = &mut self.tables[id.index()];
                let at_string = &mut self.at_string[table.string as usize];
                let restaurant =
                    &mut self.restaurants[self.items.strings()[table.string as usize].adapted.index()];
                restaurant.unseat(&mut table.customers);
                self.customers[table.string as usize] -= 1;
                if table.customers == 0 {
                    let at = at_string.iter().position(|&other| other == id);
                    at_string.remove(at.expect("a table with customers is in the list of its string"));
                    self.todo.push(id);
                }
                self.shares[table.string as usize] =
                    shares(self.customers[table.string as usize], at_string, restaurant.hyper.discount);
                product.times(restaurant.predict(table.customers));
            }
        }
    }

    /// Uses of every parameter, `[n_params]`.
    pub fn uses(&self) -> &[u32] {
        &self.uses
    }

    /// Customers of the tables of one adapted nonterminal, ascending, each number with how many tables have it.
    pub fn sizes(&self, adapted: usize) -> Vec<(u32, u32)> {
        let of_it = |table: &&Serving| table.customers > 0 && self.adapted(table.string) == adapted;
        let mut customers: Vec<u32> = self.tables.iter().filter(of_it).map(|table| table.customers).collect();
        customers.sort_unstable();
        customers.chunk_by(|a, b| a == b).map(|equal| (equal[0], equal.len() as u32)).collect()
    }

    /// ln of the probability of the seating.
    pub fn log_seating(&self) -> f64 {
        (0..self.restaurants.len())
            .map(|number| self.restaurants[number].log_joint(&self.sizes(number)))
            .sum()
    }
}

/// Σ_k (n_k − d) over tables with so many customers in all.
#[inline]
fn shares(customers: u32, tables: &[TableId], discount: f64) -> f64 {
    f64::from(customers) - tables.len() as f64 * discount
}

/// A product of probabilities.
pub(super) struct Product {
    value: Wide,
    /// The factors since `value` was brought up to date, not below 2^−500.
    recent: f64,
}

impl Default for Product {
    fn default() -> Product {
        Product { value: Wide::ONE, recent: 1.0 }
    }
}

impl Product {
    #[inline]
    pub fn times(&mut self, factor: f64) {
        const LOW: f64 = f64::from_bits((1023 - 500) << 52);
        if factor < LOW || self.recent < LOW {
            self.value = self.value * Wide::from_f64(self.recent) * Wide::from_f64(factor);
            self.recent = 1.0;
        } else {
            self.recent *= factor;
        }
    }

    pub fn value(self) -> Wide {
        self.value * Wide::from_f64(self.recent)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::data::Sentence;
    use crate::forest::Prepared;
    use crate::grammar::lexicon::{Lexicon, StickStrings, Strings};
    use crate::grammar::{Grammar, SymbolId, syntax};
    use crate::models::sampler::{Chain, Settings, Start};
    use crate::num::random::stream;

    const TEXT: &str =
        "1 1 S --> C\n1 1 S --> C S\n1 0.5 1 C --> W\n1 0.5 1 C --> W W\n1 0 2 W --> a\n1 0 2 W --> a W\n";

    fn items(grammar: &Grammar) -> Items {
        let sticks = grammar.adapted().map(|symbol| StickStrings { symbol, strings: Strings::new() });
        let prepared =
            Prepared::new(Arc::new(grammar.clone()), Arc::new(Lexicon { sticks: sticks.collect() }));
        let a: SymbolId = grammar.symbol("a").unwrap();
        let sentence = |n| Sentence { tokens: vec![a; n], multiplicity: 2 };
        Items::new(Arc::new(prepared), &[1, 4, 2, 5].map(sentence)).unwrap()
    }

    #[test]
    fn seating_and_unseating_one_by_one_have_the_joint_probability() {
        let (grammar, _) = syntax::parse(TEXT, "g").unwrap();
        let items = items(&grammar);
        let prior = Prior::new(&grammar, items.lexicon());
        let hyper = super::super::start::hyper(&grammar, Hyper { discount: 0.5, concentration: 1.0 });
        let mut random = stream(9, 0, 0);
        let mut chain = Chain::start(&items, &prior, &hyper, Start::Incremental, &mut random).unwrap();
        let settings = Settings { temperature: 1.0, relabel: true, hyper: None };
        for _ in 0..20 {
            chain.sweep(&settings, &mut random);
            let state = chain.state();
            let mut seating = Seating::resume(&items, &prior, &state).unwrap();
            let joint = prior.log_joint(seating.uses()) + seating.log_seating();
            let mut gone = Vec::new();
            let left: f64 = state.trees.iter().map(|tree| seating.unseat(tree, &mut gone).ln()).sum();
            assert!((left - joint).abs() < 1e-9, "{left} leaving, {joint} in all");
            assert_eq!(gone.len(), state.tables.len());
            assert!(seating.uses.iter().chain(&seating.totals).all(|&uses| uses == 0));
            assert!(seating.restaurants.iter().all(|r| (r.customers, r.tables) == (0, 0)));
            assert!(seating.customers.iter().all(|&customers| customers == 0));
            assert!(seating.shares.iter().all(|&shares| shares == 0.0));
            assert!(seating.at_string.iter().all(Vec::is_empty));
            let back: f64 = state.trees.iter().rev().map(|tree| seating.seat(tree).ln()).sum();
            assert!((back - joint).abs() < 1e-9, "{back} coming, {joint} in all");
        }
    }
}
