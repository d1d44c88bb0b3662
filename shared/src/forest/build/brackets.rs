//! Known constituents of an item: no constituent crosses a bracket, and each labelled bracket has a constituent of exactly its span with one of its labels.
//!
//! The derivation of a span goes down a chain of symbols to the first that is split. So a goal over the span of labelled brackets is also named by those that no symbol
//! above it in the chain has: the set that it is [`Lacking`], of which none may be left where the chain ends. A constituent that is larger is not split within a labelled
//! bracket, since then nothing has its span.

use crate::data::Bracket;
use crate::grammar::SymbolId;
use crate::stop::checked;

/// A set of labelled brackets of a span: bit n is that of the n-th one with that span.
pub(super) type Lacking = u32;

/// Brackets that the constituents of an item agree with.
#[derive(Default)]
pub(super) struct Brackets {
    /// `[n_positions]`, or empty if there are none: where a constituent that begins here ends at the latest, so as not to leave a bracket around its begin.
    latest_end: Vec<u32>,
    /// `[n_positions]`: where a constituent that ends here begins at the earliest.
    earliest_start: Vec<u32>,
    /// Those with labels.
    labelled: Vec<Bracket>,
    /// Labelled brackets of the span that has most.
    most: u32,
}

impl Brackets {
    pub fn set(&mut self, brackets: &[Bracket], n_tokens: usize) {
        let Brackets { latest_end, earliest_start, labelled, most } = self;
        latest_end.clear();
        earliest_start.clear();
        labelled.clear();
        *most = 0;
        if brackets.is_empty() {
            return;
        }
        latest_end.resize(n_tokens + 1, u32::MAX);
        earliest_start.resize(n_tokens + 1, 0);
        for Bracket { start, end, .. } in checked(brackets) {
            for inside in *start as usize + 1..*end as usize {
                latest_end[inside] = latest_end[inside].min(*end);
                earliest_start[inside] = earliest_start[inside].max(*start);
            }
        }
        labelled.extend(brackets.iter().filter(|bracket| !bracket.labels.is_empty()).cloned());
        let of_span =
            |one: &Bracket| labelled.iter().filter(|it| (it.start, it.end) == (one.start, one.end)).count();
        *most = labelled.iter().map(of_span).max().unwrap_or_default() as u32;
    }

    /// Whether a constituent of that span crosses no bracket.
    pub fn allow(&self, start: usize, end: usize) -> bool {
        let Some(&latest_end) = self.latest_end.get(start) else { return true };
        end as u32 <= latest_end && start as u32 >= self.earliest_start[end]
    }

    /// Whether some have labels.
    pub fn are_labelled(&self) -> bool {
        !self.labelled.is_empty()
    }

    /// Number of the sets that a span can lack.
    pub fn n_lacking(&self) -> u64 {
        1 << self.most
    }

    /// The labelled brackets of a span, all of which are lacking above it.
    pub fn required(&self, start: usize, end: usize) -> Lacking {
        let n = self.of_span(start, end).count();
        ((1_u64 << n) - 1) as Lacking
    }

    /// The brackets that are still lacking below a constituent of that nonterminal and span.
    pub fn without(&self, lacking: Lacking, symbol: SymbolId, start: usize, end: usize) -> Lacking {
        if lacking == 0 {
            return 0;
        }
        let named = self.of_span(start, end).zip(0..).filter(|(bracket, _)| bracket.labels.contains(&symbol));
        named.fold(lacking, |lacking, (_, bit)| lacking & !(1 << bit))
    }

    /// Whether what has that span may be split at `middle`.
    pub fn allow_split(&self, start: usize, middle: usize, end: usize) -> bool {
        let is_within = |bracket: &Bracket| bracket.start < middle as u32 && (middle as u32) < bracket.end;
        !self.labelled.iter().any(|bracket| is_inside(bracket, start, end) && is_within(bracket))
    }

    /// Whether a constituent of that span may have none below it.
    pub fn allow_no_constituents(&self, start: usize, end: usize) -> bool {
        !self.labelled.iter().any(|bracket| is_inside(bracket, start, end))
    }

    fn of_span(&self, start: usize, end: usize) -> impl Iterator<Item = &Bracket> {
        self.labelled.iter().filter(move |bracket| is_span(bracket, start, end))
    }
}

/// Whether the bracket is in a larger span.
fn is_inside(bracket: &Bracket, start: usize, end: usize) -> bool {
    start as u32 <= bracket.start && bracket.end as usize <= end && !is_span(bracket, start, end)
}

fn is_span(bracket: &Bracket, start: usize, end: usize) -> bool {
    (bracket.start as usize, bracket.end as usize) == (start, end)
}
