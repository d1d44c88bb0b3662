//! Scores of analyses against gold ones.

pub mod segmentation;
