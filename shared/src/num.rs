//! Numbers: weights with an unbounded exponent, special functions, reproducible noise.

pub mod noise;
pub mod special;
pub mod wide;

pub use noise::Noise;
pub use wide::Wide;
