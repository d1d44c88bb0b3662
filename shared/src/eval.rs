//! Scores of analyses against gold ones, and of chains against each other.

pub mod brackets;
pub mod chains;

pub mod segmentation;
