//! The model of words whose morphemes are looked for: a grammar of morphemes, and what is known of them.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Result, ensure};

use crate::effort::Effort;
use crate::sampling::{self, ModelFile};

/// The grammar by default.
pub const GRAMMAR: &str = "morph1";

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

/// Several short chains.
const EFFORT: Effort = Effort { chains: 4, voter_chains: None, sweeps: 50 };

/// The model with the grammar of that name; with a `cascade` above 0, a first run finds as many prefixes and suffixes.
///
/// # Errors
/// An unknown grammar, one without affixes for a cascade, and files that cannot be read.
pub fn model(grammar: &str, known: &Known, cascade: u32) -> Result<ModelFile> {
    let grammar = sampling::grammar(grammar)?;
    ensure!(
        cascade == 0 || grammar.has_affixes(),
        "--cascade: {grammar} has no affixes; choose a grammar of morphemes, such as {GRAMMAR}"
    );
    let mut model = ModelFile {
        grammar,
        voters: Vec::new(),
        simpler: Vec::new(),
        effort: EFFORT,
        cascade,
        reason: None,
        spent: Duration::ZERO,
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
