//! Scores of analyses against gold ones, and of chains against each other.

pub mod chains;
pub mod brackets;

pub mod segmentation;
