//! Inside, outside and counts of a batch of sentences, a lane each.
//!
//! In: [`Rules`], their [`Weights`], the sentences of a batch. Out: their total weights, and counts in [`Totals`].
//!
//! The *chart* has a cell per span of a *group*, which is as many sentences as there are lanes, and in it a row of lanes per
//! symbol. For a left child B and a span, x[C] = Σ_k β[B, i, k] · β[C, k, j] is gathered once and used for every parent:
//!
//! - inside: β[A] += Σ_C w[A, B, C] · x[C];
//! - outside: y[C] = Σ_A w[A, B, C] · α[A], then α[B, i, k] += Σ_C y[C] · β[C, k, j] and α[C, k, j] += y[C] · β[B, i, k];
//! - counts: Σ_spans α[A] · x[C], which the weights multiply at the end.
//!
//! So nearly all work is three products of matrices (Dunlop, Bodenstab & Roark 2011; Canny, Hall & Klein 2013), each with
//! the rules of one B in the nearest cache. Recursions as Lari & Young (1990).
//!
//! Invariant: what happens to a lane is a fixed sequence of additions and multiplications, none fused, whatever vectors the
//! machine has and whatever is in the other lanes; lanes are added by halves.

use std::array::from_fn;
use std::ops::Div;

use super::{Block, Rules};
use crate::forest::inside::Number;
use crate::num::Wide;
use crate::stop::Meter;

/// Numbers in lanes.
pub trait Lane: Number + Div<Output = Self> {
    /// Nearest value; zero where products of it would lose their precision.
    fn from_wide(weight: Wide) -> Self;
    /// The total weight of an item; `None` if it is zero, or if values that matter may have left the range on the way.
    fn trusted(self) -> Option<Wide>;
}

impl Lane for f64 {
    fn from_wide(weight: Wide) -> f64 {
        if weight.exponent < -980 { 0.0 } else { weight.to_f64() }
    }

    fn trusted(self) -> Option<Wide> {
        const LOW: f64 = f64::from_bits((1023 - 900) << 52); // 2^−900
        const HIGH: f64 = f64::from_bits((1023 + 900) << 52); // 2^900
        (LOW..=HIGH).contains(&self).then(|| Wide::from_f64(self))
    }
}

impl Lane for Wide {
    fn from_wide(weight: Wide) -> Wide {
        weight
    }

    fn trusted(self) -> Option<Wide> {
        (!self.is_zero()).then_some(self)
    }
}

/// A value per sentence of a group.
#[derive(Clone, Copy)]
#[repr(align(64))]
struct Row<T, const L: usize>([T; L]);

impl<T: Lane, const L: usize> Row<T, L> {
    const ZERO: Row<T, L> = Row([T::ZERO; L]);

    /// `self += weight · row`.
    #[inline(always)]
    fn add_scaled(&mut self, weight: T, row: &Row<T, L>) {
        self.0 = from_fn(|lane| self.0[lane] + weight * row.0[lane]);
    }

    /// `self += left · right`.
    #[inline(always)]
    fn add_product(&mut self, left: &Row<T, L>, right: &Row<T, L>) {
        self.0 = from_fn(|lane| self.0[lane] + left.0[lane] * right.0[lane]);
    }

    #[inline(always)]
    fn add(&mut self, row: &Row<T, L>) {
        self.0 = from_fn(|lane| self.0[lane] + row.0[lane]);
    }

    /// Sum over the lanes, by halves.
    #[inline(always)]
    fn total(mut self) -> T {
        let mut half = L;
        while half > 1 {
            half /= 2;
            let (low, high) = self.0.split_at_mut(half);
            low.iter_mut().zip(high).for_each(|(low, high)| *low = *low + *high);
        }
        self.0[0]
    }
}

/// The weights of [`Rules`].
pub struct Weights<T> {
    /// By block, `[n_left, n_parents, n_right]`: w[A → B C], zero where it is no rule.
    pub blocks: Vec<Vec<T>>,
    /// Values by unary rule.
    pub unaries: Vec<T>,
    /// Values by word and rule, laid out as [`Rules::lexicon`].
    pub lexicon: Vec<Vec<T>>,
}

impl<T> Weights<T> {
    /// The rules of a word with their weights.
    fn lexical<'a>(&'a self, rules: &'a Rules, word: u32) -> impl Iterator<Item = (&'a (u32, u32), &'a T)> {
        rules.lexicon[word as usize].iter().zip(&self.lexicon[word as usize])
    }
}

/// Totals of counts.
pub struct Totals<T> {
    /// By block, `[n_left, n_parents, n_right]`: uses of A → B C over its weight.
    pub blocks: Vec<Vec<T>>,
    /// By position in the index: uses of all other rules.
    pub params: Vec<f64>,
}

/// A sentence of a batch.
#[derive(Clone, Copy)]
pub struct Item<'a> {
    /// Words, as in [`Rules::lexicon`].
    pub words: &'a [u32],
    /// Number of occurrences.
    pub multiplicity: f64,
}

/// Parents, or right children, that are done together: with one row each, and one to multiply, they fit the registers.
pub const TILE: usize = 6;
/// Spans whose counts are added up before their lanes are added.
const SPANS: usize = 64;
/// Parents and right children whose counts are added up together: again as many rows as there are registers.
const TILE_PARENTS: usize = 3;
const TILE_RIGHT: usize = 2;

#[derive(Clone, Copy)]
struct Group {
    first_cell: usize,
    /// Words of its longest sentence.
    length: usize,
}

impl Group {
    #[inline(always)]
    fn cell(&self, start: usize, end: usize) -> usize {
        self.first_cell + start * (2 * self.length - start + 1) / 2 + end - start - 1
    }
}

#[derive(Clone, Copy)]
struct Span {
    group: Group,
    start: usize,
    end: usize,
}

impl Span {
    fn cell(&self) -> usize {
        self.group.cell(self.start, self.end)
    }
}

/// The chart of a batch.
pub struct Chart<'a, T, const L: usize> {
    rules: &'a Rules,
    weights: &'a Weights<T>,
    items: &'a [Item<'a>],
    groups: Vec<Group>,
    /// `[longest + 1]`: by length.
    spans: Vec<Vec<Span>>,
    /// `[n_cells, n_symbols]`.
    beta: Vec<Row<T, L>>,
    /// `[n_cells, n_symbols]`, times the multiplicity over the item's total weight.
    alpha: Vec<Row<T, L>>,
}

impl<'a, T: Lane, const L: usize> Chart<'a, T, L> {
    /// An empty chart.
    pub fn new(rules: &'a Rules, weights: &'a Weights<T>, items: &'a [Item<'a>]) -> Chart<'a, T, L> {
        let mut first_cell = 0;
        let group = |items: &[Item]| {
            let length = items.iter().map(|item| item.words.len()).max().unwrap_or(0);
            let group = Group { first_cell, length };
            first_cell += length * (length + 1) / 2;
            group
        };
        let groups: Vec<Group> = items.chunks(L).map(group).collect();
        let longest = groups.iter().map(|group| group.length).max().unwrap_or(0);
        let of_length = |length: usize| {
            let starts = |&group: &Group| {
                (0..(group.length + 1).saturating_sub(length)).map(move |start| (group, start))
            };
            let spans = groups.iter().flat_map(starts);
            spans.map(|(group, start)| Span { group, start, end: start + length }).collect()
        };
        let spans =
            (0..=longest).map(|length| if length == 0 { Vec::new() } else { of_length(length) }).collect();
        let beta = vec![Row::ZERO; first_cell * rules.n_symbols];
        Chart { rules, weights, items, groups, spans, beta, alpha: Vec::new() }
    }

    /// β of every cell; gives the total weights of the items.
    #[inline(always)]
    pub fn inside(&mut self) -> Vec<Option<Wide>> {
        let n = self.rules.n_symbols;
        for (number, item) in self.items.iter().enumerate() {
            let group = self.groups[number / L];
            for (start, &word) in item.words.iter().enumerate() {
                let cell = &mut self.beta[group.cell(start, start + 1) * n..][..n];
                for (&(symbol, _), &weight) in self.weights.lexical(self.rules, word) {
                    let value = &mut cell[symbol as usize].0[number % L];
                    *value = *value + weight;
                }
            }
        }
        for length in 1..self.spans.len() {
            self.inside_binary(length);
            for span in &self.spans[length] {
                let cell = &mut self.beta[span.cell() * n..][..n];
                for (unary, &weight) in self.rules.unaries.iter().zip(&self.weights.unaries) {
                    let child = cell[unary.child as usize];
                    cell[unary.parent as usize].add_scaled(weight, &child);
                }
            }
        }
        (0..self.items.len()).map(|item| self.beta[self.root(item)].0[item % L].trusted()).collect()
    }

    /// α of every cell, for the items that have a total weight.
    #[inline(always)]
    pub fn outside(&mut self, totals: &[Option<Wide>]) {
        let n = self.rules.n_symbols;
        self.alpha = vec![Row::ZERO; self.beta.len()];
        for (number, (item, total)) in self.items.iter().zip(totals).enumerate() {
            let (root, lane) = (self.root(number), number % L);
            if total.is_some() {
                let multiplicity = T::from_wide(Wide::from_f64(item.multiplicity));
                self.alpha[root].0[lane] = multiplicity / self.beta[root].0[lane];
            } else {
                // Zero times what left the range is not zero.
                let Group { first_cell, length } = self.groups[number / L];
                let cells = first_cell * n..(first_cell + length * (length + 1) / 2) * n;
                self.beta[cells].iter_mut().for_each(|row| row.0[lane] = T::ZERO);
            }
        }
        for length in (1..self.spans.len()).rev() {
            for span in &self.spans[length] {
                let cell = &mut self.alpha[span.cell() * n..][..n];
                for (unary, &weight) in self.rules.unaries.iter().zip(&self.weights.unaries).rev() {
                    let parent = cell[unary.parent as usize];
                    cell[unary.child as usize].add_scaled(weight, &parent);
                }
            }
            self.outside_binary(length);
        }
    }

    /// Adds the uses of all rules.
    #[inline(always)]
    pub fn count(&self, totals: &mut Totals<T>) {
        let n = self.rules.n_symbols;
        for (block, counts) in self.rules.blocks.iter().zip(&mut totals.blocks) {
            self.count_binary(block, counts);
        }
        for (unary, &weight) in self.rules.unaries.iter().zip(&self.weights.unaries) {
            let mut uses = Row::ZERO;
            for (alpha, beta) in self.alpha.chunks_exact(n).zip(self.beta.chunks_exact(n)) {
                uses.add_product(&alpha[unary.parent as usize], &beta[unary.child as usize]);
            }
            totals.params[unary.param as usize] += (weight * uses.total()).to_f64();
        }
        for (number, item) in self.items.iter().enumerate() {
            for (start, &word) in item.words.iter().enumerate() {
                let cell = &self.alpha[self.groups[number / L].cell(start, start + 1) * n..][..n];
                for (&(symbol, param), &weight) in self.weights.lexical(self.rules, word) {
                    totals.params[param as usize] += (weight * cell[symbol as usize].0[number % L]).to_f64();
                }
            }
        }
    }

    /// Position of an item's root in the chart.
    fn root(&self, item: usize) -> usize {
        let length = self.items[item].words.len();
        self.groups[item / L].cell(0, length) * self.rules.n_symbols + self.rules.start as usize
    }

    #[inline(always)]
    fn inside_binary(&mut self, length: usize) {
        let n = self.rules.n_symbols;
        for (block, weights) in self.rules.blocks.iter().zip(&self.weights.blocks) {
            let n_right = block.right.len();
            let (mut x, mut meter) = (vec![Row::ZERO; n_right], Meter::default());
            for (&left, weights) in
                block.left.iter().zip(weights.chunks_exact(self.rules.parents.len() * n_right))
            {
                for span in &self.spans[length] {
                    if block.splits(span.start, span.end).is_empty() {
                        continue;
                    }
                    meter.add(weights.len() + span.end - span.start);
                    self.gather(block, left, span, &mut x);
                    let cell = &mut self.beta[span.cell() * n..][..n];
                    let tiles =
                        self.rules.parents.chunks_exact(TILE).zip(weights.chunks_exact(TILE * n_right));
                    for (parents, weights) in tiles {
                        let sums = product(weights, &x);
                        parents.iter().zip(&sums).for_each(|(&parent, sum)| cell[parent as usize].add(sum));
                    }
                }
            }
        }
    }

    /// x[C] = Σ_k β[left, i, k] · β[C, k, j].
    #[inline(always)]
    fn gather(&self, block: &Block, left: u32, span: &Span, x: &mut [Row<T, L>]) {
        let n = self.rules.n_symbols;
        x.fill(Row::ZERO);
        for split in block.splits(span.start, span.end) {
            let left = self.beta[span.group.cell(span.start, split) * n + left as usize];
            let right = &self.beta[span.group.cell(split, span.end) * n..][..n];
            x.iter_mut()
                .zip(&block.right)
                .for_each(|(x, &symbol)| x.add_product(&left, &right[symbol as usize]));
        }
    }

    #[inline(always)]
    fn outside_binary(&mut self, length: usize) {
        let n = self.rules.n_symbols;
        for (block, weights) in self.rules.blocks.iter().zip(&self.weights.blocks) {
            let n_right = block.right.len();
            let (mut y, mut meter) = (vec![Row::ZERO; n_right], Meter::default());
            for (&left, weights) in
                block.left.iter().zip(weights.chunks_exact(self.rules.parents.len() * n_right))
            {
                for span in &self.spans[length] {
                    let splits = block.splits(span.start, span.end);
                    if splits.is_empty() {
                        continue;
                    }
                    meter.add(weights.len() + span.end - span.start);
                    let cell = &self.alpha[span.cell() * n..][..n];
                    for (tile, y) in y.chunks_exact_mut(TILE).enumerate() {
                        let mut sums = [Row::<T, L>::ZERO; TILE];
                        for (&parent, weights) in self.rules.parents.iter().zip(weights.chunks_exact(n_right))
                        {
                            let weights = &weights[tile * TILE..][..TILE];
                            let parent = &cell[parent as usize];
                            sums.iter_mut()
                                .zip(weights)
                                .for_each(|(sum, &weight)| sum.add_scaled(weight, parent));
                        }
                        y.copy_from_slice(&sums);
                    }
                    for split in splits {
                        let left = span.group.cell(span.start, split) * n + left as usize;
                        let right = span.group.cell(split, span.end) * n;
                        let (beta_left, beta_right) = (self.beta[left], &self.beta[right..][..n]);
                        for (y, &symbol) in y.iter().zip(&block.right) {
                            self.alpha[right + symbol as usize].add_product(y, &beta_left);
                        }
                        let sums = dot(&y, beta_right, &block.right);
                        sums.iter().for_each(|sum| self.alpha[left].add(sum));
                    }
                }
            }
        }
    }

    #[inline(always)]
    fn count_binary(&self, block: &Block, counts: &mut [T]) {
        let (n, n_parents, n_right) = (self.rules.n_symbols, self.rules.parents.len(), block.right.len());
        let spans = self.spans.iter().flatten().filter(|span| !block.splits(span.start, span.end).is_empty());
        let spans: Vec<Span> = spans.copied().collect();
        let (mut gathered, mut meter) = (vec![Row::ZERO; n_right], Meter::default());
        for spans in spans.chunks(SPANS) {
            // Parents and right children tile by tile, spans within.
            let mut alpha = vec![Row::<T, L>::ZERO; n_parents * spans.len()];
            for (tile, parents) in alpha
                .chunks_exact_mut(TILE_PARENTS * spans.len())
                .zip(self.rules.parents.chunks_exact(TILE_PARENTS))
            {
                for (rows, span) in tile.chunks_exact_mut(TILE_PARENTS).zip(spans) {
                    let cell = &self.alpha[span.cell() * n..][..n];
                    rows.iter_mut().zip(parents).for_each(|(row, &parent)| *row = cell[parent as usize]);
                }
            }
            let mut x = vec![Row::<T, L>::ZERO; n_right * spans.len()];
            let mut sums = vec![Row::<T, L>::ZERO; n_parents * n_right];
            for (&left, counts) in block.left.iter().zip(counts.chunks_exact_mut(n_parents * n_right)) {
                meter.add(counts.len() * spans.len());
                for (number, span) in spans.iter().enumerate() {
                    self.gather(block, left, span, &mut gathered);
                    for (tile, rows) in
                        x.chunks_exact_mut(TILE_RIGHT * spans.len()).zip(gathered.chunks_exact(TILE_RIGHT))
                    {
                        tile[number * TILE_RIGHT..][..TILE_RIGHT].copy_from_slice(rows);
                    }
                }
                let tiles = x.chunks_exact(TILE_RIGHT * spans.len()).flat_map(|x| {
                    alpha.chunks_exact(TILE_PARENTS * spans.len()).map(move |alpha| (alpha, x))
                });
                for (sums, (alpha, x)) in sums.chunks_exact_mut(TILE_PARENTS * TILE_RIGHT).zip(tiles) {
                    outer(alpha, x, sums);
                }
                for (tile, sums) in sums.chunks_exact(TILE_PARENTS * TILE_RIGHT).enumerate() {
                    let (right, parent) =
                        (tile / (n_parents / TILE_PARENTS), tile % (n_parents / TILE_PARENTS));
                    for (a, sums) in sums.chunks_exact(TILE_RIGHT).enumerate() {
                        let at = (parent * TILE_PARENTS + a) * n_right + right * TILE_RIGHT;
                        let counts = &mut counts[at..][..TILE_RIGHT];
                        counts.iter_mut().zip(sums).for_each(|(count, sum)| *count = *count + sum.total());
                    }
                }
            }
        }
    }
}

/// Σ_C weights[r, C] · x[C] for the rows r of a tile.
#[inline(always)]
fn product<T: Lane, const L: usize>(weights: &[T], x: &[Row<T, L>]) -> [Row<T, L>; TILE] {
    let rows: [&[T]; TILE] = from_fn(|row| &weights[row * x.len()..][..x.len()]);
    let mut sums = [Row::ZERO; TILE];
    for (at, x) in x.iter().enumerate() {
        sums.iter_mut().zip(&rows).for_each(|(sum, row)| sum.add_scaled(row[at], x));
    }
    sums
}

/// Σ_C y[C] · beta[C] for every [`TILE`]-th C.
#[inline(always)]
fn dot<T: Lane, const L: usize>(y: &[Row<T, L>], beta: &[Row<T, L>], symbols: &[u32]) -> [Row<T, L>; TILE] {
    let mut sums = [Row::ZERO; TILE];
    for (y, symbols) in y.chunks_exact(TILE).zip(symbols.chunks_exact(TILE)) {
        let beta: [&Row<T, L>; TILE] = from_fn(|at| &beta[symbols[at] as usize]);
        sums.iter_mut().zip(y).zip(beta).for_each(|((sum, y), beta)| sum.add_product(y, beta));
    }
    sums
}

/// Σ_spans alpha[span, A] · x[span, C] for the parents and right children of a tile.
#[inline(always)]
fn outer<T: Lane, const L: usize>(alpha: &[Row<T, L>], x: &[Row<T, L>], to: &mut [Row<T, L>]) {
    let mut sums = [[Row::ZERO; TILE_RIGHT]; TILE_PARENTS];
    for (alpha, x) in alpha.chunks_exact(TILE_PARENTS).zip(x.chunks_exact(TILE_RIGHT)) {
        for (sums, alpha) in sums.iter_mut().zip(alpha) {
            sums.iter_mut().zip(x).for_each(|(sum, x)| sum.add_product(alpha, x));
        }
    }
    to.copy_from_slice(sums.as_flattened());
}
