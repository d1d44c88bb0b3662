//! What the kernels of the E-step reach of what one core of the machine can do.
//!
//! ```text
//! cargo bench -p grammaton --bench roofline
//! ```
//!
//! First the machine: memory read in order, from an array larger than any cache; multiply-adds as one instruction (peak) and as two, which
//! is what kernels use that have the same bits on machines without the one; and one multiplication and addition that waits for the last.
//! Then the kernels, each over data drawn here: multiply-adds a second beside the peak, bytes a second beside the memory.
//!
//! Inside–outside over forests reads two or three numbers at places that an edge tells, for two or three multiplications. So its own limit is
//! measured as well: the same edges with the same reads, products and counts, in which no value waits for another (*apart*).
//!
//! CPU seconds of this thread, the cheapest of some runs, since others may use the machine as well.

use std::fmt::Write;
use std::hint::black_box;
use std::sync::Arc;

use grammaton::data::Sentence;
use grammaton::forest::Prepared;
use grammaton::forest::binary::{Adapted, BinaryGrammar};
use grammaton::forest::build::Builder;
use grammaton::forest::chains::Chains;
use grammaton::forest::dense::Dense;
use grammaton::forest::inside::{Counts, Scratch, Weights, expect, real};
use grammaton::forest::{Edge, Forest};
use grammaton::grammar::auto::{Alphabet, Auto, auto};
use grammaton::grammar::lexicon::{Lexicon, StickStrings};
use grammaton::grammar::{Grammar, SymbolId, syntax};
use grammaton::models::dmv::{self, Layout};
use grammaton::num::Wide;
use grammaton::num::random::{below, stream, uniform};
use pulp::{Arch, Simd, WithSimd};
use rand_pcg::Pcg64Mcg;
use rustc_hash::FxHashMap;

const RUNS: usize = 4;

fn main() {
    let machine = Machine::measure();
    println!(
        "one core: reads {:.1} GB/s; {:.1} GFLOP/s multiply-add fused, {:.1} apart; {:.2} ns a multiply-add that waits for the last",
        machine.read / 1e9,
        machine.fused / 1e9,
        machine.apart / 1e9,
        1e9 * machine.latency,
    );
    println!(
        "kernel                     M edges/s   GB/s  of read  GFLOP/s  of peak  of unfused  M edges/s apart  of that"
    );
    for (what, kind) in [("forests, unigram", Auto::UNIGRAM), ("forests, colloc", Auto::COLLOC)] {
        over_forests(&machine, what, &segmentation(kind));
    }
    over_forests(&machine, "forests, DMV", &dependencies());
    dense(&machine);
}

/// What one core can do, a second.
struct Machine {
    /// Bytes of memory read in order.
    read: f64,
    /// Floating-point operations, multiplied and added in one instruction.
    fused: f64,
    /// The same in two.
    apart: f64,
    /// Seconds of a multiplication and an addition on the result of the last.
    latency: f64,
}

impl Machine {
    fn measure() -> Machine {
        let words = vec![1u64; 1 << 27]; // 1 GiB
        let read = best(|| {
            let sums = words.chunks_exact(64).fold([0u64; 64], |mut sums, chunk| {
                sums.iter_mut().zip(chunk).for_each(|(sum, word)| *sum = sum.wrapping_add(*word));
                sums
            });
            black_box(sums);
        });
        let flops = |fused| {
            let mut done = 0.0;
            let seconds = best(|| done = Arch::new().dispatch(MultiplyAdds { fused }));
            done / seconds
        };
        let steps = 10_000_000;
        let latency = best(|| {
            let (x, y) = (black_box(0.999), black_box(1e-3));
            black_box((0..steps).fold(1.0, |sum, _| sum * x + y));
        });
        Machine {
            read: 8.0 * words.len() as f64 / read,
            fused: flops(true),
            apart: flops(false),
            latency: latency / f64::from(steps),
        }
    }
}

/// Enough independent multiply-adds to fill all units; gives how many operations they were.
struct MultiplyAdds {
    fused: bool,
}

impl WithSimd for MultiplyAdds {
    type Output = f64;

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) -> f64 {
        const SUMS: usize = 12;
        const STEPS: usize = 20_000_000;
        let [x, y] = [0.999, 1e-3].map(|number| simd.splat_f64s(black_box(number)));
        let mut sums = [simd.splat_f64s(1.0); SUMS];
        for _ in 0..STEPS {
            for sum in &mut sums {
                *sum = if self.fused {
                    simd.mul_add_f64s(*sum, x, y)
                } else {
                    simd.add_f64s(simd.mul_f64s(*sum, x), y)
                };
            }
        }
        black_box(sums.map(|sum| simd.reduce_sum_f64s(sum)));
        (2 * STEPS * SUMS * S::F64_LANES) as f64
    }
}

/// Folded forests, as a shard holds them.
struct Forests {
    forests: Vec<Forest>,
    chains: Chains,
}

impl Forests {
    fn new<'a>(prepared: &Prepared, items: impl Iterator<Item = (u32, &'a [SymbolId])>) -> Forests {
        let mut builder = Builder::new(&prepared.binary, &prepared.strings, Adapted::Strings);
        let mut chains = Chains::default();
        let first_string = prepared.grammar.space().first_string().0;
        let mut fold = |(root, tokens)| {
            let forest = builder.build_here(root, tokens).unwrap().expect("every item has a derivation");
            chains.fold(forest, first_string)
        };
        let forests = items.map(&mut fold).collect();
        Forests { forests, chains }
    }
}

/// Multiplications and additions of an edge: three inside, five outside, three for its count.
const FLOPS_OF_EDGE: f64 = 11.0;

fn over_forests(machine: &Machine, what: &str, Forests { forests, chains }: &Forests) {
    let wide = vec![Wide::from_ln(-3.0); chains.len()];
    let weights = Weights { wide: &wide, real: &real(&wide) };
    let mut uses = vec![0.0; chains.len()];
    let mut scratch = Scratch::default();
    let seconds = best(|| {
        for forest in forests {
            let mut counts = Counts { uses: &mut uses, losses: &mut [] };
            black_box(expect(forest, &weights, 1.0, &mut counts, &mut scratch));
        }
    });
    let mut apart = Apart::new(forests);
    let limit = best(|| forests.iter().for_each(|forest| apart.pass(forest, weights.real, &mut uses)));
    let n_edges: usize = forests.iter().map(|forest| forest.edges.len()).sum();
    let bytes: usize = forests.iter().map(|forest| 12 * forest.edges.len() + 4 * forest.n_nodes()).sum();
    let (edges, limit) = (n_edges as f64 / seconds, n_edges as f64 / limit);
    let (read, flops) = (2.0 * bytes as f64 / seconds, FLOPS_OF_EDGE * edges);
    println!(
        "{what:24} {:11.0} {:6.1} {:7.0}% {:8.2} {:7.1}% {:10.1}% {:16.0} {:7.0}%",
        edges / 1e6,
        read / 1e9,
        100.0 * read / machine.read,
        flops / 1e9,
        100.0 * flops / machine.fused,
        100.0 * flops / machine.apart,
        limit / 1e6,
        100.0 * edges / limit,
    );
}

/// Inside–outside in which inside and outside values are given, so that nothing waits.
struct Apart {
    beta: Vec<f64>,
    alpha: Vec<f64>,
    /// What would have been inside values, by node.
    new_beta: Vec<f64>,
    /// What would have been added to outside values, by edge.
    new_alpha: Vec<[f64; 2]>,
}

impl Apart {
    fn new(forests: &[Forest]) -> Apart {
        let n_nodes = forests.iter().map(Forest::n_nodes).max().unwrap_or(0);
        let n_edges = forests.iter().map(|forest| forest.edges.len()).max().unwrap_or(0);
        let values = vec![0.5; n_nodes];
        Apart {
            beta: values.clone(),
            alpha: values.clone(),
            new_beta: values,
            new_alpha: vec![[0.0; 2]; n_edges],
        }
    }

    fn pass(&mut self, forest: &Forest, weights: &[f64], uses: &mut [f64]) {
        let Apart { beta, alpha, new_beta, new_alpha } = self;
        for (node, new_beta) in new_beta.iter_mut().enumerate().take(forest.n_nodes()).skip(1) {
            let value = |edge: &Edge| {
                weights[edge.param as usize] * beta[edge.tails[0] as usize] * beta[edge.tails[1] as usize]
            };
            *new_beta = forest.edges_of(node).iter().map(value).sum();
        }
        let mut new_alpha = new_alpha.iter_mut();
        for node in (1..forest.n_nodes()).rev() {
            for edge in forest.edges_of(node) {
                let [left, right] = edge.tails.map(|tail| beta[tail as usize]);
                let outer = alpha[node] * weights[edge.param as usize];
                *new_alpha.next().expect("there is room for every edge") = [outer * right, outer * left];
                uses[edge.param as usize] += outer * left * right;
            }
        }
        black_box((&new_beta, &new_alpha));
    }
}

/// Sentences of words, and a lexicon of their substrings that occur often, as sizes of the Brent corpus are.
fn segmentation(kind: Auto) -> Forests {
    const SENTENCES: usize = 9_790;
    const WORDS: usize = 1_300;
    const STRINGS: usize = 15_000;
    let random = &mut stream(1, 0, 0);
    let letters: Vec<String> = (0..50).map(|number| format!("l{number}")).collect();
    let alphabet = Alphabet { symbols: &letters, ..Alphabet::default() };
    let grammar = auto(kind, &alphabet).expect("letters make a grammar").grammar;
    let letter = |random: &mut Pcg64Mcg| SymbolId(grammar.n_nonterminals + zipf(50, random));
    let words: Vec<Vec<SymbolId>> =
        (0..WORDS).map(|_| (0..1 + below(5, random)).map(|_| letter(random)).collect()).collect();
    let sentences: Vec<Vec<SymbolId>> = (0..SENTENCES)
        .map(|_| {
            (0..1 + below(6, random)).flat_map(|_| words[zipf(WORDS, random) as usize].clone()).collect()
        })
        .collect();
    let mut counts: FxHashMap<&[SymbolId], u32> = FxHashMap::default();
    for sentence in &sentences {
        for start in 0..sentence.len() {
            (start + 1..=sentence.len())
                .for_each(|end| *counts.entry(&sentence[start..end]).or_default() += 1);
        }
    }
    let mut strings: Vec<(&[SymbolId], u32)> = counts.into_iter().collect();
    strings.sort_unstable_by_key(|&(string, count)| (string.len() > 1, std::cmp::Reverse(count), string));
    strings.truncate(STRINGS);
    let stick =
        |symbol| StickStrings { symbol, strings: strings.iter().map(|&(string, _)| string).collect() };
    let lexicon = Arc::new(Lexicon { sticks: grammar.adapted().map(stick).collect() });
    let prepared = Prepared::new(grammar, lexicon.clone());
    let of_sticks = prepared.binary.base.iter().zip(&lexicon.sticks);
    let items = of_sticks.flat_map(|(&base, stick)| stick.strings.iter().map(move |string| (base, string)));
    Forests::new(&prepared, sentences.iter().map(|sentence| (0, &sentence[..])).chain(items))
}

/// Sentences of ten tags.
fn dependencies() -> Forests {
    let random = &mut stream(2, 0, 0);
    let tags: Vec<String> = (0..17).map(|number| format!("T{number}")).collect();
    let grammar = dmv::grammar(&tags).expect("tags make a grammar");
    let layout = Layout::new(tags.len());
    let sentences: Vec<Vec<SymbolId>> = (0..1_000)
        .map(|_| layout.tokens(&(0..10).map(|_| zipf(tags.len(), random)).collect::<Vec<u32>>()))
        .collect();
    let prepared = Prepared::new(grammar, Arc::default());
    Forests::new(&prepared, sentences.iter().map(|sentence| (0, &sentence[..])))
}

/// 30 nonterminals, 45 preterminals of a word each, all binary rules; sentences of ten words.
fn dense(machine: &Machine) {
    const NONTERMINALS: usize = 30;
    const PRETERMINALS: usize = 45;
    const SENTENCES: usize = 512;
    const LENGTH: usize = 10;
    let mut text = String::new();
    let names: Vec<String> = (0..NONTERMINALS)
        .map(|number| format!("N{number}"))
        .chain((0..PRETERMINALS).map(|number| format!("P{number}")))
        .collect();
    let mut rule = |line: std::fmt::Arguments| writeln!(text, "1 1 {line}").expect("strings take all");
    names[..NONTERMINALS].iter().for_each(|name| rule(format_args!("S --> {name}")));
    for parent in &names[..NONTERMINALS] {
        for left in &names {
            names.iter().for_each(|right| rule(format_args!("{parent} --> {left} {right}")));
        }
    }
    names[NONTERMINALS..].iter().for_each(|name| rule(format_args!("{name} --> w{name}")));
    let grammar: Grammar = syntax::parse(&text, "dense").expect("the grammar is in order").0;
    let random = &mut stream(3, 0, 0);
    let word = |random: &mut Pcg64Mcg| SymbolId(grammar.n_nonterminals + below(PRETERMINALS, random) as u32);
    let sentence = |_| Sentence::new((0..LENGTH).map(|_| word(random)).collect(), 1);
    let sentences: Vec<Sentence> = (0..SENTENCES).map(sentence).collect();
    let dense = Dense::new(&BinaryGrammar::new(&grammar), &sentences);
    let weights = vec![Wide::from_f64(1e-4); dense.params().len()];
    let seconds = best(|| {
        black_box(dense.expect(&weights));
    });
    // Children gathered over splits, inside and for the counts, and spread over them twice outside; three products with the rules.
    let (n, p) = (NONTERMINALS as f64, PRETERMINALS as f64);
    let multiply_adds: f64 = (2..=LENGTH)
        .map(|width| {
            let of_span = match width {
                2 => p * p * (4.0 + 3.0 * n),
                3 => 2.0 * n * p * (4.0 + 3.0 * n),
                _ => 2.0 * n * p * (4.0 + 3.0 * n) + n * n * (4.0 * (width - 3) as f64 + 3.0 * n),
            };
            (LENGTH + 1 - width) as f64 * of_span
        })
        .sum();
    let flops = 2.0 * multiply_adds * SENTENCES as f64 / seconds;
    println!(
        "{:24} {:>11} {:>6} {:>8} {:8.2} {:7.1}% {:10.1}%",
        "dense PCFG",
        "-",
        "-",
        "-",
        flops / 1e9,
        100.0 * flops / machine.fused,
        100.0 * flops / machine.apart,
    );
}

/// A rank below `n`, the k-th in proportion to 1 / (k + 1), nearly.
fn zipf(n: usize, random: &mut Pcg64Mcg) -> u32 {
    (libm::pow(n as f64, uniform(random)) as u32).min(n as u32) - 1
}

/// Seconds of a pass, in the cheapest of some runs of passes, each long beside the ticks of the system's clock of threads.
fn best(mut pass: impl FnMut()) -> f64 {
    let mut cost = || {
        let begun = seconds();
        for n in 1.. {
            pass();
            let passed = seconds() - begun;
            if passed > 0.25 {
                return passed / f64::from(n);
            }
        }
        unreachable!("time passes")
    };
    (0..RUNS).map(|_| cost()).fold(f64::INFINITY, f64::min)
}

/// Seconds that this thread has computed, which only Linux tells.
fn seconds() -> f64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").expect("Linux has this file");
    let nanos = text.split(' ').next().and_then(|nanos| nanos.parse::<f64>().ok());
    nanos.expect("it begins with nanoseconds") / 1e9
}
