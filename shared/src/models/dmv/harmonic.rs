//! Where training starts: expected counts under which near words are heads of each other (Klein & Manning 2004, §3).
//!
//! In a sentence of n words, 1/n of every word's head is the root, and the rest is shared out among the other words, in proportion
//! to 1/(d + c) at distance d. The counts start a trainer as those of trees would ([`crate::train::pcfg::Start::Counts`]), so
//! the method's own weights follow from them; EM's are the normalised counts.
//!
//! The defaults are the recipe that JDageem made the usual one, and agree with it to rounding. *Stops* are the part that
//! initialisers differ in: the counts of attachments say how many children a head expects on a side, not how often it has none.

use super::constraint::layout_of;
use super::layout::{Event, Layout, Side, Valence};
use crate::data::tags::Tagged;
use crate::grammar::Grammar;
use crate::grammar::groups::{Estimate, Groups};
use crate::grammar::lexicon::Lexicon;
use crate::models::pcfg::{self, em};
use crate::models::{Model, Params};
use crate::num::{Noise, special};

/// The choices; [`Harmonic::default`] has the usual ones.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Harmonic {
    /// c: 0, or 1 (lq-dmvccm), or 2 (Liang; He et al.), which flattens the preference for neighbours.
    pub offset: f64,
    /// Whether the shares of a word's heads sum to (n − 1)/n; else each is 1/(d + c) itself.
    pub per_child: bool,
    /// How stops start.
    pub stops: Stops,
    /// Added to every count.
    pub smoothing: f64,
}

/// How stops start.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Stops {
    /// From the expected numbers of children: as many heads have a first child as there can be without any count below zero,
    /// times 0.9.
    Expected,
    /// These probabilities, in as many decisions as the tag has words.
    Fixed {
        /// P(stop | no child yet).
        no_child: f64,
        /// P(stop | has a child).
        has_child: f64,
    },
    /// No counts: 1/2 each, if smoothed.
    Even,
}

/// The share of the largest ε for which all counts are at least zero.
const SHARE: f64 = 0.9;

impl Default for Harmonic {
    fn default() -> Harmonic {
        Harmonic { offset: 0.0, per_child: true, stops: Stops::Expected, smoothing: 0.1 }
    }
}

impl Harmonic {
    /// The counts of these sentences by parameter of their grammar; of one with noun constituents, by that of the grammar without them. With
    /// `jitter`, which has its noise and its size, each times e^{±size} at most.
    pub fn counts(&self, tagged: &Tagged, grammar: &Grammar, jitter: Option<(Noise, f64)>) -> Vec<f64> {
        let plain = Layout::new(tagged.tags.names.len());
        let layout = layout_of(grammar).map_or(plain, |(layout, _)| layout);
        let mut counts = layout.spread(&counts(plain, &tagged.sentences, self));
        if let Some((noise, size)) = jitter {
            let draw = |at: usize| special::exp(size * noise.symmetric(at as u64));
            counts.iter_mut().enumerate().for_each(|(at, count)| *count *= draw(at));
        }
        counts
    }

    /// The model that EM starts from there.
    pub fn model(&self, tagged: &Tagged, grammar: &Grammar) -> Model {
        let lexicon = Lexicon::default();
        let groups = Groups::new(grammar, &lexicon);
        let estimate = Estimate { alpha: groups.alpha(grammar), counts: self.counts(tagged, grammar, None) };
        let weights = em::weights(&groups, &estimate);
        let params = Params::Pcfg(pcfg::Params::new(&groups, estimate, weights, true));
        Model { grammar: grammar.clone(), lexicon, params, segments: Vec::new() }
    }
}

/// Counts by parameter of [`Layout::new`], `[n_params]`, of sentences of tags, which may be any but empty.
pub fn counts(layout: Layout, sentences: &[Vec<u32>], with: &Harmonic) -> Vec<f64> {
    let mut counts = vec![0.0; layout.n_params()];
    // By parameter: what ε adds to its count.
    let mut slopes = vec![0.0; layout.n_params()];
    for tags in sentences {
        let n = tags.len();
        let mut n_children = vec![[0.0; 2]; n];
        for (child, &tag) in tags.iter().enumerate() {
            let mut add = |event: Event, count: f64| counts[layout.param(event).index()] += count;
            add(Event::Root(tag), 1.0 / n as f64);
            let closeness = |head: usize| 1.0 / (head.abs_diff(child) as f64 + with.offset);
            let others = || (0..n).filter(|&head| head != child);
            let sum: f64 = others().map(closeness).sum();
            let scale = if with.per_child { (n - 1) as f64 / n as f64 / sum } else { 1.0 };
            for head in others() {
                let side = if child < head { Side::Left } else { Side::Right };
                let share = scale * closeness(head);
                add(Event::Attach { head: tags[head], side, child: tag }, share);
                n_children[head][side as usize] += share;
            }
        }
        for (&head, n_children) in tags.iter().zip(n_children) {
            for (side, n_children) in [Side::Left, Side::Right].into_iter().zip(n_children) {
                add_stops(layout, with.stops, (head, side), n_children, &mut counts, &mut slopes);
            }
        }
    }
    for event in layout.events() {
        let is_fixed = matches!(with.stops, Stops::Fixed { .. })
            && matches!(event, Event::Stop { .. } | Event::Continue { .. });
        counts[layout.param(event).index()] += if is_fixed { 0.0 } else { with.smoothing };
    }
    let room = counts.iter().zip(&slopes).filter(|&(_, &slope)| slope < 0.0);
    let epsilon = SHARE * room.map(|(count, slope)| count / -slope).fold(1.0, f64::min);
    counts.iter_mut().zip(&slopes).for_each(|(count, slope)| *count += slope * epsilon);
    counts
}

/// Adds the counts of a word that expects `n_children` on a side.
fn add_stops(
    layout: Layout,
    stops: Stops,
    (head, side): (u32, Side),
    n_children: f64,
    counts: &mut [f64],
    slopes: &mut [f64],
) {
    let stop = |valence| layout.param(Event::Stop { head, side, valence }).index();
    let proceed = |valence| layout.param(Event::Continue { head, side, valence }).index();
    match stops {
        Stops::Expected => {
            // A first child, which a share ε of such words has, is one decision not to stop without, one fewer of the later
            // ones to go on, and a stop later instead of at once.
            counts[stop(Valence::NoChild)] += 1.0;
            if n_children > 0.0 {
                counts[proceed(Valence::HasChild)] += n_children;
                slopes[proceed(Valence::NoChild)] += 1.0;
                slopes[stop(Valence::NoChild)] -= 1.0;
                slopes[proceed(Valence::HasChild)] -= 1.0;
                slopes[stop(Valence::HasChild)] += 1.0;
            }
        }
        Stops::Fixed { no_child, has_child } => {
            for (valence, probability) in [(Valence::NoChild, no_child), (Valence::HasChild, has_child)] {
                counts[stop(valence)] += probability;
                counts[proceed(valence)] += 1.0 - probability;
            }
        }
        Stops::Even => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LEFT: Side = Side::Left;
    const RIGHT: Side = Side::Right;

    fn of(sentences: &[Vec<u32>], with: Harmonic) -> impl Fn(Event) -> f64 + use<> {
        let layout = Layout::new(3);
        let counts = counts(layout, sentences, &with);
        move |event| counts[layout.param(event).index()]
    }

    fn near(found: f64, expected: f64) {
        assert!((found - expected).abs() < 1e-14, "{found}, expected {expected}");
    }

    #[test]
    fn shares_by_hand() {
        // 0 1 2: word 0 gives 2/3 to words 1 and 2, at distances 1 and 2: 4/9 and 2/9; word 1 gives 1/3 to either.
        let exact = Harmonic { smoothing: 0.0, ..Harmonic::default() };
        let count = of(&[vec![0, 1, 2]], exact);
        near(count(Event::Root(1)), 1.0 / 3.0);
        near(count(Event::Attach { head: 1, side: LEFT, child: 0 }), 4.0 / 9.0);
        near(count(Event::Attach { head: 2, side: LEFT, child: 0 }), 2.0 / 9.0);
        near(count(Event::Attach { head: 0, side: RIGHT, child: 1 }), 1.0 / 3.0);
        near(count(Event::Attach { head: 0, side: LEFT, child: 1 }), 0.0);
        // Left of 1 there are 4/9 of a child, the least of all sides: ε = 0.9 · 4/9.
        let [stop, go] = [Valence::NoChild, Valence::HasChild].map(|valence| {
            (
                count(Event::Stop { head: 1, side: LEFT, valence }),
                count(Event::Continue { head: 1, side: LEFT, valence }),
            )
        });
        near(stop.0, 0.6);
        near(stop.1, 0.4);
        near(go.0, 0.4);
        near(go.1, 4.0 / 9.0 - 0.4);
        // Nothing can be left of 0.
        near(count(Event::Stop { head: 0, side: LEFT, valence: Valence::NoChild }), 1.0);
        near(count(Event::Continue { head: 0, side: LEFT, valence: Valence::NoChild }), 0.0);
    }

    #[test]
    fn variants_by_hand() {
        let stops = Stops::Fixed { no_child: 0.25, has_child: 0.75 };
        let with = Harmonic { offset: 1.0, per_child: false, stops, smoothing: 0.5 };
        let count = of(&[vec![0, 1, 2], vec![0]], with);
        near(count(Event::Root(0)), 0.5 + 1.0 / 3.0 + 1.0);
        near(count(Event::Attach { head: 1, side: LEFT, child: 0 }), 0.5 + 1.0 / 2.0);
        near(count(Event::Attach { head: 2, side: LEFT, child: 0 }), 0.5 + 1.0 / 3.0);
        near(count(Event::Stop { head: 0, side: LEFT, valence: Valence::NoChild }), 0.25 * 2.0);
        near(count(Event::Continue { head: 0, side: RIGHT, valence: Valence::HasChild }), 0.25 * 2.0);
        let even = of(&[vec![0, 1, 2]], Harmonic { stops: Stops::Even, ..Harmonic::default() });
        near(even(Event::Stop { head: 0, side: LEFT, valence: Valence::HasChild }), 0.1);
        near(even(Event::Continue { head: 0, side: LEFT, valence: Valence::HasChild }), 0.1);
    }
}
