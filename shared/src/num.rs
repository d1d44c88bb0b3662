//! Numbers: weights with an unbounded exponent, and special functions.

pub mod special;
pub mod wide;

pub use wide::Wide;
