//! The model of words whose morphemes are looked for: a grammar of morphemes, and what is known of them.

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

/// Several short chains.
const EFFORT: Effort = Effort { chains: 4, voter_chains: None, sweeps: 50 };

/// The model of a text of words with the grammar of that name, or with the one that [`AUTO`] stands for; with a `cascade` above 0, a first run finds as many
/// prefixes and suffixes. A boundary is printed if its probability is at least `threshold`; if that is 0, the models vote.
///
/// # Errors
/// An unknown grammar, one without affixes for a cascade, and files that cannot be read.
pub fn model(
    text: &Text,
    grammar: &str,
    known: &Known,
    cascade: u32,
    threshold: f64,
    sampling: &Sampling,
    observer: &mut dyn Observer,
) -> Result<ModelFile> {
    let begun = clock::now();
    let (grammar, reason) = match grammar {
        AUTO => choose(text, known, sampling, observer)?,
        name => (sampling::grammar(name)?, None),
    };
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
