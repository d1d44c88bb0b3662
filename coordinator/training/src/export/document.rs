//! A file that segments can be added to: its utterances, and what puts the segments into it.

use anyhow::{Context as _, Result, bail};

use super::line::{Line, Source};

/// An utterance of a file.
#[derive(Clone, PartialEq, Debug)]
pub struct Utterance {
    /// Its words, as far as spaces mark them.
    pub words: Vec<String>,
    /// Its place.
    pub source: Source,
}

/// A file that segments can be added to.
pub trait Document {
    /// Its utterances, in the order of the file.
    fn utterances(&self) -> &[Utterance];

    /// The file with the segments of each utterance that has a line.
    ///
    /// # Errors
    /// Texts that the format cannot have.
    fn with(&self, lines: &[Option<Line>]) -> Result<String>;
}

/// Positions of the `wanted` names, or that of the only one.
///
/// # Errors
/// A name that is not there, or given twice; and none where several are there.
pub fn choose<'a>(names: impl Iterator<Item = &'a str>, wanted: &[String], file: &str) -> Result<Vec<usize>> {
    let names: Vec<&str> = names.collect();
    let quoted = || names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
    let place = |wanted: &String| {
        let place = names.iter().position(|name| name == wanted);
        place.with_context(|| format!("{file}: no tier `{wanted}` with text; there are: {}", quoted()))
    };
    let twice = wanted.iter().enumerate().find(|(at, name)| wanted[..*at].contains(name));
    if let Some((_, name)) = twice {
        bail!("--tier {name} is given twice");
    }
    match (&names[..], wanted) {
        ([], _) => bail!("{file}: no tier with text"),
        ([_], []) => Ok(vec![0]),
        (_, []) => bail!("{file}: {} tiers have text; choose with --tier: {}", names.len(), quoted()),
        _ => wanted.iter().map(place).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tiers_are_chosen_by_name() {
        let chosen = |names: &[&str], wanted: &[&str]| {
            let wanted: Vec<String> = wanted.iter().map(|name| (*name).to_owned()).collect();
            choose(names.iter().copied(), &wanted, "file").map_err(|error| error.to_string())
        };
        assert_eq!((chosen(&["a"], &[]), chosen(&["a", "b"], &["b", "a"])), (Ok(vec![0]), Ok(vec![1, 0])));
        assert_eq!(
            chosen(&["a", "b"], &[]).unwrap_err(),
            "file: 2 tiers have text; choose with --tier: `a`, `b`"
        );
        assert_eq!(chosen(&["a", "b"], &["a", "a"]).unwrap_err(), "--tier a is given twice");
        assert_eq!(chosen(&["a"], &["c"]).unwrap_err(), "file: no tier `c` with text; there are: `a`");
    }
}
