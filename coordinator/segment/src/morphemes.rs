//! The model of words whose morphemes are looked for: a grammar of morphemes, and what is known of them.

use std::collections::BTreeSet;
use std::path::PathBuf;

use anyhow::{Result, ensure};
use basics::clock;
use grammaton::grammar::auto::Auto;
use training::choice::annotated;
use training::events::{Observer, RunEvent};
use training::job::ModelTable;

use crate::effort::Effort;
use crate::model::{AUTO, by_trials, too_slow};
use crate::sampling::{self, ModelFile, Sampling};
use crate::text::Text;

/// The grammar without annotated lines.
const DEFAULT: Auto = Auto::MORPH1;

/// Grammars that annotated lines choose from.
const CANDIDATES: [Auto; 4] = [DEFAULT, Auto::MORPH2, Auto::MORPH15, Auto::MORPH19];

/// What is known before training: files, one string per line.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Known {
    /// Prefixes.
    pub prefixes: Option<PathBuf>,
    /// Suffixes.
    pub suffixes: Option<PathBuf>,
    /// Stems.
    pub stems: Option<PathBuf>,
}

/// Probability from which on a boundary is printed (docs/results/segment.md).
pub const THRESHOLD: f64 = 0.35;

/// Different words from which on a first run finds affixes, and how many prefixes and suffixes: with 50,000 words it finds more boundaries, with 6,000 it does
/// not (docs/results/segment.md).
const LONG_LIST: usize = 40_000;
const CASCADE: u32 = 40;

/// Several short chains.
const EFFORT: Effort = Effort { chains: 4, voter_chains: None, sweeps: 50 };

/// The model of a text of words with the grammar of that name, or with the one that [`AUTO`] stands for; with a `cascade` above 0, a first run finds as many
/// prefixes and suffixes; without one, it does so in a long list, unless affixes are known or the time is limited. A boundary is printed if its probability is at least `threshold`; if that is 0, the models vote.
///
/// # Errors
/// An unknown grammar, one without affixes for a cascade, and files that cannot be read.
pub fn model(
    text: &Text,
    grammar: &str,
    known: &Known,
    cascade: Option<u32>,
    threshold: f64,
    sampling: &Sampling,
    observer: &mut dyn Observer,
) -> Result<ModelFile> {
    let begun = clock::now();
    let (grammar, reason) = match grammar {
        AUTO => choose(text, known, sampling, observer)?,
        name => (sampling::grammar(name)?, None),
    };
    let is_simple = known.prefixes.is_none() && known.suffixes.is_none() && sampling.seconds.is_none();
    let cascade = cascade.unwrap_or_else(|| {
        let is_long = || text.corpus().sentences.iter().collect::<BTreeSet<_>>().len() >= LONG_LIST;
        if is_simple && grammar.has_affixes() && is_long() { CASCADE } else { 0 }
    });
    ensure!(
        cascade == 0 || grammar.has_affixes(),
        "--cascade: {grammar} has no affixes; choose a grammar of morphemes, such as {DEFAULT}"
    );
    let mut model = ModelFile {
        grammar,
        voters: Vec::new(),
        simpler: Vec::new(),
        effort: EFFORT,
        cascade,
        threshold,
        contexts: threshold > 0.0,
        reason,
        spent: clock::now().saturating_sub(begun),
        keys: Vec::new(),
        files: Vec::new(),
    };
    let Known { prefixes, suffixes, stems } = known;
    for (key, file, path) in [
        ("prefixes", "prefixes.txt", prefixes),
        ("suffixes", "suffixes.txt", suffixes),
        ("stems", "stems.txt", stems),
    ] {
        path.as_ref().map_or(Ok(()), |path| model.know(key, file, path))?;
    }
    Ok(model)
}

/// The default grammar, or another of [`CANDIDATES`] if annotated lines show that it is better, and why.
fn choose(
    text: &Text,
    known: &Known,
    sampling: &Sampling,
    observer: &mut dyn Observer,
) -> Result<(Auto, Option<String>)> {
    let annotated = text.known()?;
    if annotated.is_empty() {
        return Ok((DEFAULT, None));
    }
    let path = |path: &Option<PathBuf>| path.clone().unwrap_or_default();
    let (prefixes, suffixes, stems) = (path(&known.prefixes), path(&known.suffixes), path(&known.stems));
    let table = ModelTable { prefixes, suffixes, stems, ..ModelTable::default() };
    let best = by_trials(text, &table, sampling, observer, |trials| {
        annotated::best(text.corpus(), &annotated, &CANDIDATES, trials)
    })?;
    let (grammar, reason) = best.unwrap_or_else(|| (DEFAULT, too_slow(sampling)));
    observer.on(&RunEvent::Notice(reason.clone()))?;
    Ok((grammar, Some(reason)))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::time::Duration;

    use grammaton::data::corpus::sniff::Contents;
    use training::events::All;

    use super::*;
    use crate::keys::Keys;

    /// The number of affixes that the first run of a list of `n` different words finds, each word twice.
    fn cascade(n: usize, given: Option<u32>, known: &Known, sampling: &Sampling) -> u32 {
        let letter = |digit: char| char::from(b'a' + digit as u8 - b'0');
        let letters = |at: usize| format!("{at:05}").chars().map(letter).collect::<String>();
        let words: Vec<String> = (0..n).map(letters).collect();
        let file = tempfile::NamedTempFile::new().unwrap();
        fs::write(&file, [words.join("\n"), words.join("\n")].join("\n")).unwrap();
        let text = Text::read(file.path(), Contents::Words, &Keys::default()).unwrap();
        model(&text, AUTO, known, given, THRESHOLD, sampling, &mut All(Vec::new())).unwrap().cascade
    }

    #[test]
    fn a_long_list_has_a_cascade_unless_something_is_given() {
        let (none, sampling) = (Known::default(), Sampling::default());
        assert_eq!(cascade(LONG_LIST, None, &none, &sampling), CASCADE);
        assert_eq!(cascade(LONG_LIST - 1, None, &none, &sampling), 0);
        assert_eq!(cascade(LONG_LIST, Some(0), &none, &sampling), 0);
        assert_eq!(cascade(10, Some(3), &none, &sampling), 3);
        let timed = Sampling { seconds: Some(Duration::from_secs(60)), ..sampling.clone() };
        assert_eq!(cascade(LONG_LIST, None, &none, &timed), 0);
        let affixes = tempfile::NamedTempFile::new().unwrap();
        fs::write(&affixes, "a\n").unwrap();
        let known = Known { suffixes: Some(affixes.path().to_owned()), ..none };
        assert_eq!(cascade(LONG_LIST, None, &known, &sampling), 0);
    }
}
