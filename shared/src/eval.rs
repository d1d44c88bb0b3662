//! Scores of analyses against gold ones.

pub mod brackets;

pub mod segmentation;
