//! Numbers: weights with an unbounded exponent, special functions, reproducible noise and draws.

pub mod draws;
pub mod noise;
pub mod special;
pub mod wide;

pub use noise::Noise;
pub use wide::Wide;
