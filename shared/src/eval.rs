//! Scores of analyses against gold ones, of outputs and of chains against each other.

pub mod brackets;
pub mod chains;
pub mod dependencies;
pub mod segmentation;
pub mod significance;
