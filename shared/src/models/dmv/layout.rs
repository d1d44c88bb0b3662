//! Layout of the grammar: the event of each parameter, and the tag of each token, with extended valence or without.
//!
//! Tags are numbered from 0 in the order in which [`super::grammar()`] was given them, so that the sentences of a
//! [`crate::data::corpus::Corpus`] whose symbols these are can be read as they are.

use std::ops::Range;

use serde::{Deserialize, Serialize};

use crate::forest::{Edge, Forest};
use crate::grammar::SymbolId;
use crate::grammar::{ParamId, RuleId};

/// A side of a head.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Side {
    /// Before it.
    Left,
    /// After it.
    Right,
}

/// Whether a head has a child on a side yet.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Valence {
    /// No child yet.
    NoChild,
    /// One or more children; with extended valence, one.
    HasChild,
    /// Two or more children, with extended valence.
    HasChildren,
}

/// Events of a derivation; heads and children are tags.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Event {
    /// This is the root.
    Root(u32),
    /// The head has no more children on the side.
    Stop {
        /// The head.
        head: u32,
        /// The side.
        side: Side,
        /// Whether it has a child so far.
        valence: Valence,
    },
    /// The head has another child on the side.
    Continue {
        /// The head.
        head: u32,
        /// The side.
        side: Side,
        /// Whether it has a child so far.
        valence: Valence,
    },
    /// The child is this one.
    Attach {
        /// The head.
        head: u32,
        /// The side.
        side: Side,
        /// The child.
        child: u32,
    },
    /// The first child, the outermost one, is this one: with extended valence, where [`Event::Attach`] is of the others.
    AttachFirst {
        /// The head.
        head: u32,
        /// The side.
        side: Side,
        /// The child.
        child: u32,
    },
}

impl Event {
    /// The event of the layout without extended valence that this is a case of.
    fn plain(self) -> Event {
        match self {
            Event::Stop { head, side, valence: Valence::HasChildren } => {
                Event::Stop { head, side, valence: Valence::HasChild }
            }
            Event::Continue { head, side, valence: Valence::HasChildren } => {
                Event::Continue { head, side, valence: Valence::HasChild }
            }
            Event::AttachFirst { head, side, child } => Event::Attach { head, side, child },
            event => event,
        }
    }
}

/// Layout of the grammar of a number of tags.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Layout {
    n_tags: u32,
    /// Number of valences on a side that the model distinguishes: two, or with extended valence three.
    n_valences: u32,
}

impl Layout {
    /// The layout of [`super::grammar()`] for `n_tags` tags.
    pub fn new(n_tags: usize) -> Layout {
        Layout { n_tags: n_tags as u32, n_valences: 2 }
    }

    /// The layout of [`super::extended`]: stops tell no child, one, and more apart, and the first child has probabilities of its own.
    pub fn extended(n_tags: usize) -> Layout {
        Layout { n_tags: n_tags as u32, n_valences: 3 }
    }

    /// The layout of a grammar of so many nonterminals without phrases; `None` if it is another grammar.
    pub(super) fn of(n_tags: usize, n_nonterminals: usize) -> Option<Layout> {
        let layouts = [Layout::new(n_tags), Layout::extended(n_tags)];
        layouts.into_iter().find(|layout| layout.n_nonterminals() == n_nonterminals)
    }

    /// Whether it has extended valence.
    pub fn is_extended(&self) -> bool {
        self.n_valences == 3
    }

    /// Number of nonterminals of the grammar.
    pub fn n_nonterminals(&self) -> usize {
        1 + (4 * self.n_valences as usize - 2) * self.n_tags()
    }

    /// Number of tags.
    pub fn n_tags(&self) -> usize {
        self.n_tags as usize
    }

    /// Number of parameters, with [`ParamId::ONE`].
    pub fn n_params(&self) -> usize {
        let n = self.n_tags();
        1 + n + 2 * n * self.n_of_side() as usize
    }

    /// Number of decisions to stop or to continue on a side.
    fn n_decisions(&self) -> u32 {
        2 * self.n_valences
    }

    /// Number of parameters of a side of a head.
    fn n_of_side(&self) -> u32 {
        self.n_decisions() + (self.n_valences - 1) * self.n_tags
    }

    /// The parameter of an event.
    pub fn param(&self, event: Event) -> ParamId {
        let n = self.n_tags;
        let of = |head: u32, side: Side, at: u32| n + (2 * head + side as u32) * self.n_of_side() + at;
        let first_child = self.n_decisions();
        let other_child = first_child + (self.n_valences - 2) * n;
        let rule = match event {
            Event::Root(tag) => tag,
            Event::Stop { head, side, valence } => of(head, side, 2 * valence as u32),
            Event::Continue { head, side, valence } => of(head, side, 2 * valence as u32 + 1),
            Event::Attach { head, side, child } => of(head, side, other_child + child),
            Event::AttachFirst { head, side, child } => of(head, side, first_child + child),
        };
        ParamId::of_rule(RuleId(rule))
    }

    /// The event of a parameter; none of [`ParamId::ONE`].
    pub fn event(&self, param: ParamId) -> Option<Event> {
        let rule = param.0.checked_sub(ParamId::of_rule(RuleId(0)).0)?;
        let Some(at) = rule.checked_sub(self.n_tags) else { return Some(Event::Root(rule)) };
        let (of, at) = (at / self.n_of_side(), at % self.n_of_side());
        let (head, side) = (of / 2, if of % 2 == 0 { Side::Left } else { Side::Right });
        let Some(child) = at.checked_sub(self.n_decisions()) else {
            let valence = [Valence::NoChild, Valence::HasChild, Valence::HasChildren][at as usize / 2];
            return Some(match at % 2 {
                0 => Event::Stop { head, side, valence },
                _ => Event::Continue { head, side, valence },
            });
        };
        Some(match child.checked_sub((self.n_valences - 2) * self.n_tags) {
            Some(child) => Event::Attach { head, side, child },
            None => Event::AttachFirst { head, side, child },
        })
    }

    /// Values by parameter of [`Layout::new`], of which every case of an event gets the value. `[n_params]`
    pub fn spread(&self, values: &[f64]) -> Vec<f64> {
        let plain = Layout::new(self.n_tags());
        let params = (0..self.n_params() as u32).map(ParamId);
        params
            .map(|param| values[self.event(param).map_or(0, |event| plain.param(event.plain()).index())])
            .collect()
    }

    /// The parameters of the first child and of others, by head and side; none without extended valence.
    pub fn cases(&self) -> Vec<[Range<usize>; 2]> {
        let sides = (0..self.n_tags).flat_map(|head| [(head, Side::Left), (head, Side::Right)]);
        let range = |first: ParamId| first.index()..first.index() + self.n_tags();
        let cases = |(head, side)| {
            let events =
                [Event::AttachFirst { head, side, child: 0 }, Event::Attach { head, side, child: 0 }];
            events.map(|event| range(self.param(event)))
        };
        sides.filter(|_| self.is_extended()).map(cases).collect()
    }

    /// All events, in the order of their parameters.
    pub fn events(&self) -> impl Iterator<Item = Event> + use<> {
        let layout = *self;
        (0..layout.n_params() as u32).map(ParamId).filter_map(move |param| layout.event(param))
    }

    /// The tags of a sentence that has a derivation, `[n]` of its tokens, `[2n]`.
    pub fn tags(&self, tokens: &[SymbolId]) -> Vec<u32> {
        tokens.iter().step_by(2).map(|half| (half.0 - self.first_half()) / 2).collect()
    }

    /// The two halves of every word of a sentence, `[2n]` of `[n]`.
    pub fn tokens(&self, tags: &[u32]) -> Vec<SymbolId> {
        let first = self.first_half();
        tags.iter().flat_map(|tag| [0, 1].map(|side| SymbolId(first + 2 * tag + side))).collect()
    }

    fn first_half(&self) -> u32 {
        self.n_nonterminals() as u32
    }

    /// The arc that an edge of a forest stands for, as positions counted from 1; of head 0 if it makes the root, and none if
    /// it makes no arc. The forest is one whose edges have parameters of the whole grammar.
    ///
    /// The halves that such an edge joins meet between the two halves of the child, and the head's half is at the other end.
    pub fn arc(&self, forest: &Forest, node: usize, edge: &Edge) -> Option<(usize, usize)> {
        let side = match self.event(ParamId(edge.param))? {
            Event::Root(_) => None,
            Event::Attach { side, .. } | Event::AttachFirst { side, .. } => Some(side),
            Event::Stop { .. } | Event::Continue { .. } => return None,
        };
        let label = forest.labels[node];
        let child = forest.labels[edge.tails[1] as usize].start / 2 + 1;
        let head = match side {
            None => 0,
            Some(Side::Left) => label.end.div_ceil(2),
            Some(Side::Right) => label.start / 2 + 1,
        };
        Some((head as usize, child as usize))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::models::dmv::grammar::{HALVES, grammar, of_layout};

    #[test]
    fn events_and_rules_are_in_one_order() {
        let tags: Vec<String> = ["N", "V", "D"].map(str::to_owned).to_vec();
        for layout in [Layout::new(3), Layout::extended(3)] {
            assert_order(&tags, layout);
        }
    }

    fn assert_order(tags: &[String], layout: Layout) {
        let made = of_layout(tags, layout).unwrap();
        assert_eq!(layout.n_params(), made.space().n_params());
        assert_eq!(layout.event(ParamId::ONE), None);
        for (event, (rule, at)) in layout.events().zip(made.rules.iter().zip(0..)) {
            assert_eq!(layout.param(event), ParamId::of_rule(RuleId::at(at)));
            let side = |side: Side| ["L", "R"][side as usize];
            let state = |head: u32, of: Side, valence: Valence| {
                let endings = if layout.is_extended() { ["", ".one", ".rest"] } else { ["", ".rest", ""] };
                format!("{}.{}{}", tags[head as usize], side(of), endings[valence as usize])
            };
            let last_of = |head: u32, of: Side, child: u32, then: Valence| match of {
                Side::Left => state(head, Side::Left, then),
                Side::Right => state(child, Side::Right, Valence::NoChild),
            };
            let (parent, last) = match event {
                Event::Root(tag) => ("S".to_owned(), format!("{}.R", tags[tag as usize])),
                Event::Stop { head, side, valence } => {
                    (state(head, side, valence), tags[head as usize].clone() + HALVES[side as usize])
                }
                Event::Continue { head, side: of, valence } => {
                    let is_first = layout.is_extended() && valence == Valence::NoChild;
                    let ending = if is_first { "first" } else { "more" };
                    (state(head, of, valence), format!("{}.{}.{ending}", tags[head as usize], side(of)))
                }
                Event::Attach { head, side: of, child } => {
                    let then = if layout.is_extended() { Valence::HasChildren } else { Valence::HasChild };
                    let parent = format!("{}.{}.more", tags[head as usize], side(of));
                    (parent, last_of(head, of, child, then))
                }
                Event::AttachFirst { head, side: of, child } => {
                    let parent = format!("{}.{}.first", tags[head as usize], side(of));
                    (parent, last_of(head, of, child, Valence::HasChild))
                }
            };
            assert_eq!(
                (made.name(rule.parent), made.name(*rule.children.last().unwrap())),
                (&*parent, &*last)
            );
        }
        assert_eq!(layout.events().count(), made.rules.len());
    }

    #[test]
    fn a_word_is_two_tokens() {
        let tags: Vec<String> = ["N", "V"].map(str::to_owned).to_vec();
        let made = grammar(&tags).unwrap();
        let names: Vec<&str> =
            Layout::new(2).tokens(&[1, 0]).into_iter().map(|token| made.name(token)).collect();
        assert_eq!(names, ["V<", "V>", "N<", "N>"]);
        assert_eq!(Layout::new(2).tags(&Layout::new(2).tokens(&[1, 0])), [1, 0]);
    }
}
