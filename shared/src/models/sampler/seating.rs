//! The seating: counts of parameters, customers of tables, and the probability of each customer that is seated or unseated.
//!
//! The parameters of a group are drawn from a multinomial with a Dirichlet prior, integrated out: with f uses of r and F in all, the
//! next one is r with probability (f + α_r) / (F + Σ α) (Johnson, Griffiths & Goldwater 2007, Eq. 3). An adapted nonterminal is a
//! Pitman–Yor process, integrated out: with n customers at m tables, discount d and concentration c, the next customer joins table k
//! with probability (n_k − d) / (n + c), and opens one with probability (m·d + c) / (n + c), whose label its base derives.
//!
//! Both are exchangeable: the product over all customers, in any order, is the joint probability; and a customer is unseated as if it had come last.
//!
//! Invariant: a table with customers is in the list of its string, if that is in several places; its label is counted once, however many they are.

use rand_pcg::Pcg64Mcg;

use super::items::Items;
use super::packed::Seat;
use super::prior::Prior;
use super::state::{Choice, State, StateError, Table, TableId};
use crate::grammar::{ParamId, StickId};
use crate::num::Wide;
use crate::num::pitman_yor::{Hyper, Restaurant};
use crate::num::random::{dirichlet, uniform};
use crate::stop::{Meter, checked};

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
    /// Restaurant of each adapted nonterminal.
    pub restaurants: Vec<Restaurant>,
    /// `[n_strings + 1]`.
    seated: Vec<Occupancy>,
    /// `[n_strings + 1]`: Σ_k (n_k − d) over its tables.
    pub shares: Vec<f64>,
    tables: Vec<SeatedTable>,
    free: Vec<TableId>,
    /// Tables whose labels are still to be seated or unseated.
    todo: Vec<TableId>,
    /// Whether the probability of rules is asked for.
    pub counts_rules: bool,
}

/// Customers and tables of a string.
#[derive(Clone, Copy)]
struct Occupancy {
    customers: u32,
    tables: u32,
    /// Its first table, [`NO_TABLE`] if there is none.
    first: TableId,
}

/// A table.
struct SeatedTable {
    /// 0 if its string is in one place only.
    string: u32,
    /// The number of its adapted nonterminal.
    adapted: StickId,
    customers: u32,
    label: Vec<Choice>,
    /// The next table of the same string.
    next: TableId,
}

const NO_TABLE: TableId = TableId(u32::MAX);

impl SeatedTable {
    /// A table without customers.
    fn new(string: u32, adapted: StickId, label: Vec<Choice>) -> SeatedTable {
        SeatedTable { string, adapted, customers: 0, label, next: NO_TABLE }
    }
}

/// The probability of customers.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Joint {
    /// Factor of the seats.
    pub seats: Wide,
    /// Factor of the rules; one if [`Seating::counts_rules`] is not set.
    pub rules: Wide,
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
            seated: vec![Occupancy { customers: 0, tables: 0, first: NO_TABLE }; items.strings().len()],
            shares: vec![0.0; items.strings().len()],
            tables: Vec::new(),
            free: Vec::new(),
            todo: Vec::new(),
            counts_rules: true,
        }
    }

    /// Seats everyone as in `state`, if it is one of `items`.
    pub fn resume(items: &'a Items, prior: &'a Prior, state: &State) -> Result<Seating<'a>, StateError> {
        let mut seating = Seating::new(items, prior, &state.hyper);
        for (table, tokens) in checked(state.tables.iter().zip(state.check(items)?)) {
            let adapted = items.number(table.symbol).expect("the tables were checked");
            let string = items.string(adapted, &tokens);
            seating.tables.push(SeatedTable::new(string, adapted, table.label.clone()));
        }
        for tree in checked(&state.trees) {
            seating.seat(tree);
        }
        // As a sentence that is too long for it has the string too.
        if seating.tables.iter().any(|table| table.string == 0 && table.customers > 1) {
            return Err(StateError("a string that is in one place has a table in two"));
        }
        seating.sort();
        Ok(seating)
    }

    /// The state, given `trees`, whose tables are numbered anew.
    pub fn state(&mut self, trees: &mut [Vec<Choice>]) -> State {
        self.renumber(trees);
        let table = |serving: &SeatedTable| Table {
            symbol: self.items.adapted()[serving.adapted.index()],
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
        let mut meter = Meter::default();
        for tree in trees.iter() {
            for choice in tree {
                meter.add(1);
                let &Choice::Table(table) = choice else { continue };
                if names[table.index()] != UNNAMED {
                    continue;
                }
                reading.push((table, 0));
                while let Some((table, at)) = reading.last_mut() {
                    meter.add(1);
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
        let mut before: Vec<Option<SeatedTable>> =
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
            self.seated[serving.string as usize].first = NO_TABLE;
        }
        for (at, serving) in
            self.tables.iter_mut().enumerate().rev().filter(|(_, serving)| serving.string > 0)
        {
            let first = &mut self.seated[serving.string as usize].first;
            serving.next = std::mem::replace(first, TableId(at as u32));
        }
    }

    /// The tables of `string`.
    pub fn tables(&self, string: u32) -> impl Iterator<Item = TableId> + '_ {
        let exists = |table: TableId| (table != NO_TABLE).then_some(table);
        let first = exists(self.seated[string as usize].first);
        std::iter::successors(first, move |table| exists(self.tables[table.index()].next))
    }

    /// The probability that the next one of its group is `param`.
    #[inline]
    pub fn param(&self, param: ParamId) -> f64 {
        let group = self.group[param.index()] as usize;
        let pseudo = self.prior.pseudo[param.index()] + f64::from(self.uses[param.index()]);
        pseudo / (self.pseudo[group] + f64::from(self.totals[group]))
    }

    /// The probabilities of rules, by parameter, drawn from their posterior given the uses.
    pub fn draw_rules(&self, random: &mut Pcg64Mcg) -> Vec<Wide> {
        let mut rules = vec![Wide::ONE; self.uses.len()];
        let mut meter = Meter::default();
        for group in self.prior.groups.iter().filter(|group| group.len() > 1) {
            meter.add(group.len());
            let posterior = |at| self.prior.pseudo[at] + f64::from(self.uses[at]);
            let alpha: Vec<f64> = group.clone().map(posterior).collect();
            rules[group].copy_from_slice(&dirichlet(&alpha, random));
        }
        rules
    }

    /// The predictive means of rules, by parameter.
    pub fn mean_rules(&self) -> Vec<Wide> {
        let params = (0..self.uses.len() as u32).map(ParamId);
        let mean = |param| if param == ParamId::ONE { 1.0 } else { self.param(param) };
        params.map(|param| Wide::from_f64(mean(param))).collect()
    }

    /// The restaurant that `table` is in.
    pub fn restaurant(&self, table: TableId) -> &Restaurant {
        &self.restaurants[self.tables[table.index()].adapted.index()]
    }

    /// String and adapted nonterminal of `table`.
    pub fn seat_of(&self, table: TableId) -> Seat {
        let SeatedTable { string, adapted, .. } = self.tables[table.index()];
        Seat { string, adapted: adapted.0 + 1 }
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
        self.restaurants[serving.adapted.index()].share(serving.customers)
    }

    /// Σ_k (n_k − d) over the tables of a string.
    pub fn shares(&self, string: u32) -> f64 {
        self.shares[string as usize]
    }

    /// Brings the shares of all strings up to date with the discounts.
    pub fn share_out(&mut self) {
        for ((shares, seated), of) in self.shares.iter_mut().zip(&self.seated).zip(self.items.strings()) {
            if seated.customers > 0 {
                *shares = seated.shares(self.restaurants[of.adapted.index()].hyper.discount);
            }
        }
    }

    /// A table of `string`, drawn in proportion to n_k − d.
    pub fn choose(&self, string: u32, random: &mut Pcg64Mcg) -> TableId {
        let Occupancy { first, tables, .. } = self.seated[string as usize];
        if tables == 1 {
            return first;
        }
        let mut left = uniform(random) * self.shares(string);
        let mut last = first;
        for table in self.tables(string) {
            last = table;
            left -= self.share(table);
            if left < 0.0 {
                break;
            }
        }
        last
    }

    /// A table without customers.
    pub fn prepare(&mut self, seat: Seat, label: Vec<Choice>) -> TableId {
        let serving = SeatedTable::new(seat.string, StickId(seat.adapted - 1), label);
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
    pub fn seat(&mut self, choices: &[Choice]) -> Joint {
        let mut products = Products::default();
        self.each(choices, |seating, choice| seating.seat_choice(choice, &mut products));
        products.joint()
    }

    /// Unseats the customers of `choices`, and the customers in the label of every table that is empty then. Returns the probability of seating them again,
    /// and appends the empty tables to `left`.
    pub fn unseat(&mut self, choices: &[Choice], left: &mut Vec<TableId>) -> Joint {
        let mut products = Products::default();
        self.each(choices, |seating, choice| seating.unseat_choice(choice, &mut products, left));
        products.joint()
    }

    /// Calls `visit` with each choice, and with those in the labels of the tables that it puts on the list.
    fn each(&mut self, choices: &[Choice], mut visit: impl FnMut(&mut Self, Choice)) {
        choices.iter().for_each(|&choice| visit(self, choice));
        while let Some(table) = self.todo.pop() {
            let label = std::mem::take(&mut self.tables[table.index()].label);
            label.iter().for_each(|&choice| visit(self, choice));
            self.tables[table.index()].label = label;
        }
    }

    fn seat_choice(&mut self, choice: Choice, products: &mut Products) {
        match choice {
            Choice::Param(param) => {
                if self.counts_rules {
                    products.rules.times(self.param(param));
                }
                self.uses[param.index()] += 1;
                self.totals[self.group[param.index()] as usize] += 1;
            }
            Choice::Table(id) => {
                let table = &mut self.tables[id.index()];
                let restaurant = &mut self.restaurants[table.adapted.index()];
                products.seats.times(restaurant.predict(table.customers));
                let is_new = table.customers == 0;
                restaurant.seat(&mut table.customers);
                if is_new {
                    self.todo.push(id);
                }
                if table.string > 0 {
                    let seated = &mut self.seated[table.string as usize];
                    if is_new {
                        table.next = std::mem::replace(&mut seated.first, id);
                        seated.tables += 1;
                    }
                    seated.customers += 1;
                    self.shares[table.string as usize] = seated.shares(restaurant.hyper.discount);
                }
            }
        }
    }

    fn unseat_choice(&mut self, choice: Choice, products: &mut Products, left: &mut Vec<TableId>) {
        match choice {
            Choice::Param(param) => {
                self.uses[param.index()] -= 1;
                self.totals[self.group[param.index()] as usize] -= 1;
                if self.counts_rules {
                    products.rules.times(self.param(param));
                }
            }
            Choice::Table(id) => {
                let table = &mut self.tables[id.index()];
                let string = table.string as usize;
                let restaurant = &mut self.restaurants[table.adapted.index()];
                restaurant.unseat(&mut table.customers);
                products.seats.times(restaurant.predict(table.customers));
                let (is_empty, next, discount) =
                    (table.customers == 0, table.next, restaurant.hyper.discount);
                if is_empty {
                    self.todo.push(id);
                    left.push(id);
                }
                if string > 0 {
                    if is_empty {
                        self.unlink(id, string, next);
                    }
                    let seated = &mut self.seated[string];
                    seated.customers -= 1;
                    self.shares[string] = seated.shares(discount);
                }
            }
        }
    }

    /// Takes a table off the list of its string.
    fn unlink(&mut self, id: TableId, string: usize, next: TableId) {
        self.seated[string].tables -= 1;
        let mut at = self.seated[string].first;
        if at == id {
            self.seated[string].first = next;
            return;
        }
        while self.tables[at.index()].next != id {
            at = self.tables[at.index()].next;
        }
        self.tables[at.index()].next = next;
    }

    /// Uses of every parameter, `[n_params]`.
    pub fn uses(&self) -> &[u32] {
        &self.uses
    }

    /// By adapted nonterminal: customers of its tables, ascending, each number with how many tables have it.
    pub fn sizes(&self) -> Vec<Vec<(u32, u32)>> {
        let mut customers: Vec<Vec<u32>> = vec![Vec::new(); self.restaurants.len()];
        for table in self.tables.iter().filter(|table| table.customers > 0) {
            customers[table.adapted.index()].push(table.customers);
        }
        let counted = |mut customers: Vec<u32>| {
            customers.sort_unstable();
            customers.chunk_by(|a, b| a == b).map(|equal| (equal[0], equal.len() as u32)).collect()
        };
        customers.into_iter().map(counted).collect()
    }

    /// ln of the probability of the seating.
    pub fn log_seating(&self) -> f64 {
        let sizes = self.sizes();
        self.restaurants.iter().zip(&sizes).map(|(restaurant, sizes)| restaurant.log_joint(sizes)).sum()
    }
}

impl Occupancy {
    /// Σ_k (n_k − d) over its tables.
    #[inline]
    fn shares(self, discount: f64) -> f64 {
        f64::from(self.customers) - f64::from(self.tables) * discount
    }
}

/// The two parts of a [`Joint`], as they are multiplied.
#[derive(Default)]
struct Products {
    seats: Product,
    rules: Product,
}

impl Products {
    fn joint(self) -> Joint {
        Joint { seats: self.seats.value(), rules: self.rules.value() }
    }
}

impl Joint {
    /// Product of both factors.
    pub fn all(self) -> Wide {
        self.seats * self.rules
    }
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

    pub fn times_wide(&mut self, factor: Wide) {
        self.value = self.value * factor;
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
        let sentence = |n| Sentence::new(vec![a; n], 2);
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
            let left: f64 = state.trees.iter().map(|tree| seating.unseat(tree, &mut gone).all().ln()).sum();
            assert!((left - joint).abs() < 1e-9, "{left} leaving, {joint} in all");
            assert_eq!(gone.len(), state.tables.len());
            assert!(seating.uses.iter().chain(&seating.totals).all(|&uses| uses == 0));
            assert!(seating.restaurants.iter().all(|r| (r.customers, r.tables) == (0, 0)));
            assert!(seating.seated.iter().all(|of| (of.customers, of.tables, of.first) == (0, 0, NO_TABLE)));
            assert!(seating.shares.iter().all(|&shares| shares == 0.0));
            let back: f64 = state.trees.iter().rev().map(|tree| seating.seat(tree).all().ln()).sum();
            assert!((back - joint).abs() < 1e-9, "{back} coming, {joint} in all");
        }
    }
}
