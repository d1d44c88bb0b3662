//! Violations of invariants, for assertions and simulations.

/// A violated invariant, in words.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{0}")]
pub struct Broken(String);

impl From<String> for Broken {
    fn from(text: String) -> Broken {
        Broken(text)
    }
}

impl From<&str> for Broken {
    fn from(text: &str) -> Broken {
        Broken(text.to_owned())
    }
}
