//! The chart of the grammar without subtypes: which constituents a sentence may have.
//!
//! In: rules with their relative frequencies, and words. Out: a [`Chart`] of inside and outside weights of every label over every
//! span, *low*, before a unary step, and *high*, after it or without one. A binary rule joins two high ones to a low one.
//!
//! Each span has an exponent of its own, so nothing underflows however long the sentence: what stands in the chart is
//! `value · 2^exponent`. The outside is relative to Z, so that outside · inside is a posterior.
//!
//! Lari & Young (1990). Cost: for every split of every span one multiply-add per rule whose children are both there.

use crate::data::treebank::{LabelId, Rhs, RuleId, Rules, WordId};
use crate::num::Wide;
use crate::stop::{self, Meter};

/// Rules by what a chart knows when it needs them.
pub struct Grammar {
    pub(super) n_labels: usize,
    pub(super) root: LabelId,
    /// Binary rules by left child, sorted by right child.
    pub(super) binary: Vec<Vec<Binary>>,
    /// Unary rules by child.
    pub(super) unary: Vec<Vec<Step>>,
    /// Lexical rules by word.
    pub(super) lexical: Vec<Vec<Step>>,
    /// Labels that have words.
    pub(super) tags: Vec<LabelId>,
}

/// A binary rule, without its left child.
pub(super) struct Binary {
    pub(super) right: LabelId,
    pub(super) parent: LabelId,
    pub(super) rule: RuleId,
    pub(super) weight: f64,
}

/// Another rule, without its right-hand side.
pub(super) struct Step {
    pub(super) parent: LabelId,
    pub(super) rule: RuleId,
    pub(super) weight: f64,
}

impl Grammar {
    /// Sorts rules by their children.
    pub fn new(rules: &Rules) -> Grammar {
        let n_labels = rules.labels.len();
        let lists = |n: usize| -> Vec<Vec<Step>> { (0..n).map(|_| Vec::new()).collect() };
        let mut grammar = Grammar {
            n_labels,
            root: rules.root(),
            binary: (0..n_labels).map(|_| Vec::new()).collect(),
            unary: lists(n_labels),
            lexical: lists(rules.words.len()),
            tags: Vec::new(),
        };
        for ((id, rule), weight) in (0..).zip(&rules.rules).zip(rules.relative_frequencies()) {
            let (parent, id) = (rule.parent, RuleId(id));
            match rule.right {
                Rhs::Binary(left, right) => {
                    grammar.binary[left.index()].push(Binary { right, parent, rule: id, weight });
                }
                Rhs::Unary(child) => grammar.unary[child.index()].push(Step { parent, rule: id, weight }),
                Rhs::Lexical(word) => {
                    grammar.lexical[word.0 as usize].push(Step { parent, rule: id, weight });
                    grammar.tags.push(parent);
                }
            }
        }
        grammar.binary.iter_mut().for_each(|rules| rules.sort_by_key(|rule| (rule.right, rule.parent)));
        grammar.tags.dedup();
        grammar
    }
}

/// Inside and outside weights of a sentence.
pub struct Chart {
    pub(super) words: Vec<Option<WordId>>,
    n_labels: usize,
    pub(super) low: Table,
    pub(super) high: Table,
    /// Scale of each span's inside weights, as a power of two.
    exponents: Vec<i64>,
}

/// `[n_spans, n_labels]`, both.
pub(super) struct Table {
    pub(super) inside: Vec<f64>,
    pub(super) outside: Vec<f64>,
}

impl Table {
    fn new(size: usize) -> Table {
        Table { inside: vec![0.0; size], outside: vec![0.0; size] }
    }

    /// How probable it is that a tree of the sentence has what stands at `at`.
    pub(super) fn posterior(&self, at: usize) -> f64 {
        self.inside[at] * self.outside[at]
    }
}

impl Chart {
    /// Bytes of the chart of a sentence of so many words.
    pub fn bytes(grammar: &Grammar, n_words: usize) -> usize {
        let n_spans = n_words.saturating_mul(n_words + 1) / 2;
        n_spans.saturating_mul(grammar.n_labels).saturating_mul(4 * size_of::<f64>())
    }

    /// Fills the chart of a sentence; none if the grammar does not derive it.
    pub fn fill(grammar: &Grammar, words: &[Option<WordId>]) -> Option<Chart> {
        let n = words.len();
        let n_spans = n * (n + 1) / 2;
        let size = n_spans * grammar.n_labels;
        let mut chart = Chart {
            words: words.to_vec(),
            n_labels: grammar.n_labels,
            low: Table::new(size),
            high: Table::new(size),
            exponents: vec![0; n_spans],
        };
        let present = chart.inside(grammar);
        let root = chart.at(0, n) + grammar.root.index();
        if chart.high.inside[root] == 0.0 {
            return None;
        }
        chart.high.outside[root] = 1.0 / chart.high.inside[root];
        chart.outside(grammar, &present);
        Some(chart)
    }

    /// Number of words.
    pub(super) fn n_words(&self) -> usize {
        self.words.len()
    }

    /// Number of the span [i, j): shorter ones first, then from left to right.
    fn span(&self, i: usize, j: usize) -> usize {
        let (n, shorter) = (self.n_words(), j - i - 1);
        shorter * n - shorter * shorter.saturating_sub(1) / 2 + i
    }

    /// Start of the span [i, j) in a table of labels.
    pub(super) fn at(&self, i: usize, j: usize) -> usize {
        self.span(i, j) * self.n_labels
    }

    /// Scale of the product of inside weights of [i, k) and [k, j) as one of [i, j).
    pub(super) fn scale(&self, i: usize, k: usize, j: usize) -> f64 {
        let exponent = |i, j| self.exponents[self.span(i, j)];
        power_of_two(exponent(i, k) + exponent(k, j) - exponent(i, j))
    }

    /// Scale of the weight of a word's rule.
    pub(super) fn word_scale(&self, i: usize) -> f64 {
        power_of_two(-self.exponents[self.span(i, i + 1)])
    }

    /// Fills the inside weights; returns for each span the labels with a high one.
    fn inside(&mut self, grammar: &Grammar) -> Vec<Vec<LabelId>> {
        let (n, n_labels) = (self.n_words(), self.n_labels);
        let mut present: Vec<Vec<LabelId>> = vec![Vec::new(); self.exponents.len()];
        let mut low = vec![0.0; n_labels];
        let mut high = vec![0.0; n_labels];
        let mut meter = Meter::default();
        for (i, j) in spans(n) {
            stop::check();
            low.fill(0.0);
            let mut exponent = 0;
            if j == i + 1 {
                match self.words[i] {
                    None => grammar.tags.iter().for_each(|tag| low[tag.index()] = 1.0),
                    Some(word) => grammar.lexical[word.0 as usize]
                        .iter()
                        .for_each(|rule| low[rule.parent.index()] = rule.weight),
                }
            } else {
                let of = |i, j| self.span(i, j);
                let splits = || {
                    let filled = |&k: &usize| !present[of(i, k)].is_empty() && !present[of(k, j)].is_empty();
                    (i + 1..j).filter(filled)
                };
                let sum = |k| self.exponents[of(i, k)] + self.exponents[of(k, j)];
                exponent = splits().map(sum).max().unwrap_or(0);
                for k in splits() {
                    let scale = power_of_two(sum(k) - exponent);
                    let lefts = &self.high.inside[self.at(i, k)..][..n_labels];
                    let rights = &self.high.inside[self.at(k, j)..][..n_labels];
                    for left in &present[of(i, k)] {
                        let scaled = scale * lefts[left.index()];
                        meter.add(grammar.binary[left.index()].len());
                        for rule in &grammar.binary[left.index()] {
                            let right = rights[rule.right.index()];
                            low[rule.parent.index()] += scaled * rule.weight * right;
                        }
                    }
                }
            }
            high.copy_from_slice(&low);
            for (child, rules) in grammar.unary.iter().enumerate().filter(|&(child, _)| low[child] > 0.0) {
                for rule in rules {
                    high[rule.parent.index()] += rule.weight * low[child];
                }
            }
            let largest = Wide::from_f64(high.iter().copied().fold(0.0, f64::max));
            let (span, at, down) = (self.span(i, j), self.at(i, j), power_of_two(-largest.exponent));
            self.exponents[span] = exponent + largest.exponent;
            for (label, (low, high)) in low.iter().zip(&high).enumerate() {
                self.low.inside[at + label] = low * down;
                self.high.inside[at + label] = high * down;
                if high * down > 0.0 {
                    present[span].push(LabelId(label as u32));
                }
            }
        }
        present
    }

    fn outside(&mut self, grammar: &Grammar, present: &[Vec<LabelId>]) {
        let (n, n_labels) = (self.n_words(), self.n_labels);
        let mut lows = vec![0.0; n_labels];
        let mut meter = Meter::default();
        for (i, j) in spans(n).collect::<Vec<_>>().into_iter().rev() {
            stop::check();
            let at = self.at(i, j);
            let highs = &self.high.outside[at..][..n_labels];
            for (child, low) in lows.iter_mut().enumerate() {
                let through =
                    grammar.unary[child].iter().map(|rule| rule.weight * highs[rule.parent.index()]);
                *low = highs[child] + through.sum::<f64>();
            }
            self.low.outside[at..][..n_labels].copy_from_slice(&lows);
            if lows.iter().all(|&low| low == 0.0) {
                continue;
            }
            for k in i + 1..j {
                let scale = self.scale(i, k, j);
                let (left_at, right_at) = (self.at(i, k), self.at(k, j));
                for left in &present[self.span(i, k)] {
                    let left_inside = self.high.inside[left_at + left.index()];
                    let mut sum = 0.0;
                    meter.add(grammar.binary[left.index()].len());
                    for rule in &grammar.binary[left.index()] {
                        let above = scale * rule.weight * lows[rule.parent.index()];
                        let right = right_at + rule.right.index();
                        sum += above * self.high.inside[right];
                        self.high.outside[right] += above * left_inside;
                    }
                    self.high.outside[left_at + left.index()] += sum;
                }
            }
        }
    }
}

/// All spans [i, j) of n words, shorter ones first, then from left to right.
pub(super) fn spans(n: usize) -> impl Iterator<Item = (usize, usize)> {
    (1..=n).flat_map(move |length| (0..=n - length).map(move |i| (i, i + length)))
}

/// 2^exponent, kept within `f64`.
fn power_of_two(exponent: i64) -> f64 {
    Wide { mantissa: 1.0, exponent: exponent.clamp(-1100, 1023) }.to_f64()
}
