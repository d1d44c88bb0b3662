//! Numbers: weights with an unbounded exponent, special functions, reproducible random numbers.
//!
//! ```
//! use grammaton::num::{Noise, Wide, special};
//!
//! // 10,000 tokens of probability 1/1000 each: far less than an f64 can hold.
//! let p = Wide::product((0..10_000).map(|_| Wide::from_f64(1e-3)));
//! assert_eq!(p.to_f64(), 0.0);
//! assert!((p.ln() / 1e4 - 1e-3_f64.ln()).abs() < 1e-12);
//!
//! // ψ(x + 1) = ψ(x) + 1/x
//! assert!((special::digamma(3.0) - special::digamma(2.0) - 0.5).abs() < 1e-14);
//!
//! // Noise belongs to a seed, a run and a place, in whatever order it is drawn.
//! let noise = Noise::new(1, 1);
//! assert_eq!(noise.symmetric(7), noise.symmetric(7));
//! assert_ne!(noise.symmetric(7), noise.symmetric(8));
//! ```

pub mod blocks;
pub mod bulk;
pub mod cholesky;
pub mod dirichlet;
pub mod lbfgs;
pub mod newton;
pub mod noise;
pub mod pitman_yor;
pub mod random;
pub mod rows;
pub mod special;
pub mod tree_sum;
pub mod wide;

pub use noise::Noise;
pub use wide::Wide;
