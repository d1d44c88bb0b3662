//! Limits of what is read: how large a model may be that a small input asks for.
//!
//! Law: work and memory before a refusal are at most linear in the bytes that came in. So what is asked for is counted where it is
//! read, before it is expanded, and a larger one is refused with what was found and the limit. Each limit is generous for data that
//! people annotated; its reason is what would be too large beyond it.
//!
//! Elsewhere, beside what they bound: [`crate::models::latent::layout::MAX_SUBTYPES`], and the symbols of a line, which the job file sets.

/// Symbols of a grammar: names and tables of a few hundred bytes each.
pub const MAX_SYMBOLS: usize = 1 << 18;

/// Rules of a grammar: a few hundred bytes each, with what is kept of them in every round.
pub const MAX_RULES: usize = 1 << 20;

/// Symbols on a right-hand side: binarisation looks at all parts of it, so that its time is their square.
pub const MAX_RIGHT_HAND_SIDE: usize = 1 << 10;

/// Nonterminals times symbols of a grammar: the terminals that yields of each can begin and end with, in a bit each, make 1 GiB.
pub const MAX_TERMINAL_SETS: u64 = 1 << 32;

/// Tags of a dependency model, whose grammar has twice their square of rules.
pub const MAX_TAGS: usize = 512;

/// Distinct substrings that a grammar with `<substrings>` has for parameters.
pub const MAX_SUBSTRINGS: usize = 1 << 25;

/// Symbols of all these substrings, and of those of one sentence, equal ones counted: 1 GiB.
pub const MAX_SUBSTRING_SYMBOLS: usize = 1 << 28;

/// Bytes of the derivations of one sentence, while they are found and read, at most: 2 GiB ([`crate::forest::bytes`]). A sentence of
/// n symbols has n³/6 edges under the grammar `S → S S`, so that n may be 511. It is the same on every machine, as results are.
pub const MAX_FOREST: usize = 1 << 31;

/// Outcomes of a multinomial with a logistic-normal prior: its covariance is factored once a round, in n³/6 products.
pub const MAX_OUTCOMES: usize = 2048;

/// Entries of the covariances of all multinomials, `Σ K²`: 1 GiB, the largest payload that a worker is sent.
pub const MAX_COVARIANCES: usize = 1 << 27;

/// Weights of split rules, up to `subtypes³` of each: 1 GiB, the largest payload that a worker is sent.
pub const MAX_SPLIT_WEIGHTS: usize = 1 << 27;

/// Bytes that a compressed byte may unpack to: text shrinks to a tenth, parameters that are mostly zero to a fortieth.
pub const MAX_GROWTH: u64 = 256;

/// Bytes that any compressed file may unpack to, however small it is.
pub const UNPACKED_ALWAYS: u64 = 16 << 20;

/// zstd's window, as a power of two: the limit that the format advises for decoding foreign data.
pub const ZSTD_WINDOW: u32 = 23;

/// Bytes that a compressed file of so many bytes may unpack to.
pub fn max_unpacked(packed: u64) -> u64 {
    packed.saturating_mul(MAX_GROWTH).max(UNPACKED_ALWAYS)
}

/// Largest count or parameter of a distribution, so that sums and squares of these are finite.
const LARGEST: f64 = 1e100;
/// Smallest parameter of a distribution: its digamma function is finite.
const SMALLEST: f64 = 1e-100;

/// Whether it can be a count, expected or not.
pub fn is_count(number: f64) -> bool {
    (0.0..=LARGEST).contains(&number)
}

/// Whether it can be a parameter of a Beta or Dirichlet distribution or of a Pitman–Yor process, all of which are positive.
pub fn is_parameter(number: f64) -> bool {
    (SMALLEST..=LARGEST).contains(&number)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::num::Wide;
    use crate::num::special::digamma;

    /// Law: of numbers that are accepted, sums are finite and no weight is zero.
    #[test]
    fn accepted_numbers_give_weights() {
        for number in [0.0, -1.0, f64::MIN_POSITIVE, 1e308, f64::INFINITY, f64::NAN] {
            assert!(!is_parameter(number), "{number}");
        }
        assert!(is_count(0.0) && !is_count(-1e-9) && !is_count(1e308) && !is_count(f64::NAN));
        for parameter in [SMALLEST, 1.0, LARGEST] {
            let sum = parameter + MAX_RULES as f64 * LARGEST;
            assert!(
                sum.is_finite() && !Wide::from_ln(digamma(parameter) - digamma(sum)).is_zero(),
                "{parameter}"
            );
        }
    }
}
