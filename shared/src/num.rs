//! Numbers: weights with an unbounded exponent, special functions, reproducible random numbers.

pub mod blocks;
pub mod bulk;
pub mod cholesky;
pub mod dirichlet;
pub mod newton;
pub mod noise;
pub mod random;
pub mod rows;
pub mod special;
pub mod wide;

pub use noise::Noise;
pub use wide::Wide;
