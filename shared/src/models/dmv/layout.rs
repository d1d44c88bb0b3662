//! Layout of the grammar: the event of each parameter, and the tag of each token.
//!
//! Tags are numbered from 0 in the order in which [`super::grammar()`] was given them, so that the sentences of a
//! [`crate::data::corpus::Corpus`] whose symbols these are can be read as they are.

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
    /// One or more children.
    HasChild,
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
}

/// Layout of the grammar of a number of tags.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Layout {
    n_tags: u32,
}

impl Layout {
    /// The layout of [`super::grammar()`] for `n_tags` tags.
    pub fn new(n_tags: usize) -> Layout {
        Layout { n_tags: n_tags as u32 }
    }

    /// Number of tags.
    pub fn n_tags(&self) -> usize {
        self.n_tags as usize
    }

    /// Number of parameters, with [`ParamId::ONE`].
    pub fn n_params(&self) -> usize {
        let n = self.n_tags();
        1 + n + 2 * n * (4 + n)
    }

    /// The parameter of an event.
    pub fn param(&self, event: Event) -> ParamId {
        let n = self.n_tags;
        let of = |head: u32, side: Side, at: u32| n + (2 * head + side as u32) * (4 + n) + at;
        let rule = match event {
            Event::Root(tag) => tag,
            Event::Stop { head, side, valence } => of(head, side, 2 * valence as u32),
            Event::Continue { head, side, valence } => of(head, side, 2 * valence as u32 + 1),
            Event::Attach { head, side, child } => of(head, side, 4 + child),
        };
        ParamId::of_rule(RuleId(rule))
    }

    /// The event of a parameter; none of [`ParamId::ONE`].
    pub fn event(&self, param: ParamId) -> Option<Event> {
        let rule = param.0.checked_sub(ParamId::of_rule(RuleId(0)).0)?;
        let Some(at) = rule.checked_sub(self.n_tags) else { return Some(Event::Root(rule)) };
        let (of, at) = (at / (4 + self.n_tags), at % (4 + self.n_tags));
        let (head, side) = (of / 2, if of % 2 == 0 { Side::Left } else { Side::Right });
        let valence = if at < 2 { Valence::NoChild } else { Valence::HasChild };
        Some(match at {
            0 | 2 => Event::Stop { head, side, valence },
            1 | 3 => Event::Continue { head, side, valence },
            _ => Event::Attach { head, side, child: at - 4 },
        })
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
        1 + 6 * self.n_tags
    }

    /// The arc that an edge of a forest stands for, as positions counted from 1; of head 0 if it makes the root, and none if
    /// it makes no arc. The forest is one whose edges have parameters of the whole grammar.
    ///
    /// The halves that such an edge joins meet between the two halves of the child, and the head's half is at the other end.
    pub fn arc(&self, forest: &Forest, node: usize, edge: &Edge) -> Option<(usize, usize)> {
        let side = match self.event(ParamId(edge.param))? {
            Event::Root(_) => None,
            Event::Attach { side, .. } => Some(side),
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
    use crate::models::dmv::grammar::{HALVES, grammar};

    #[test]
    fn events_and_rules_are_in_one_order() {
        let tags: Vec<String> = ["N", "V", "D"].map(str::to_owned).to_vec();
        let made = grammar(&tags).unwrap();
        let layout = Layout::new(3);
        assert_eq!(layout.n_params(), made.space().n_params());
        assert_eq!(layout.event(ParamId::ONE), None);
        for (event, (rule, at)) in layout.events().zip(made.rules.iter().zip(0..)) {
            assert_eq!(layout.param(event), ParamId::of_rule(RuleId::at(at)));
            let side = |side: Side| ["L", "R"][side as usize];
            let state = |head: u32, of: Side, valence: Valence| {
                format!("{}.{}{}", tags[head as usize], side(of), ["", ".rest"][valence as usize])
            };
            let (parent, last) = match event {
                Event::Root(tag) => ("S".to_owned(), format!("{}.R", tags[tag as usize])),
                Event::Stop { head, side, valence } => {
                    (state(head, side, valence), tags[head as usize].clone() + HALVES[side as usize])
                }
                Event::Continue { head, side: of, valence } => {
                    (state(head, of, valence), format!("{}.{}.more", tags[head as usize], side(of)))
                }
                Event::Attach { head, side: of, child } => {
                    let last = match of {
                        Side::Left => state(head, Side::Left, Valence::HasChild),
                        Side::Right => state(child, Side::Right, Valence::NoChild),
                    };
                    (format!("{}.{}.more", tags[head as usize], side(of)), last)
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
