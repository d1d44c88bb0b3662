//! Scores of analyses against gold ones, of outputs and of chains against each other.

pub mod alternatives;
pub mod baseline;
pub mod brackets;
pub mod chains;
pub mod comparison;
pub mod dependencies;
pub mod emma;
pub mod reliability;
pub mod segmentation;
pub mod significance;

/// A prediction or a gold standard, with its name.
#[derive(Debug)]
pub struct Source<'a, T> {
    /// Its name, for messages.
    pub name: &'a str,
    /// One a sentence.
    pub items: &'a [T],
}

// Derived ones would ask it of T.
impl<T> Clone for Source<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Source<'_, T> {}
