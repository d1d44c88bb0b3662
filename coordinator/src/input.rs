//! Corpora and grammars from files, and corpora from standard input.

use std::io;
use std::path::Path;

use anyhow::{Context, Result, anyhow};
use shared::corpus::{Corpus, Notice, Options, ReadError};
use shared::grammar::{Grammar, syntax};

/// Reads the corpus at `path`; `-` is standard input.
pub fn corpus(path: &Path, options: &Options) -> Result<(Corpus, Vec<Notice>), ReadError> {
    if path.as_os_str() == "-" {
        return Corpus::read(io::stdin().lock(), "standard input", options);
    }
    Corpus::open(path, options)
}

/// Reads the grammar at `path`, and what is to be said about it.
pub fn grammar(path: &Path) -> Result<(Grammar, Vec<String>)> {
    let name = path.display().to_string();
    let bytes = std::fs::read(path).with_context(|| format!("{name}: cannot read the grammar"))?;
    let text = String::from_utf8(bytes).map_err(|error| {
        let valid = &error.as_bytes()[..error.utf8_error().valid_up_to()];
        let line = 1 + valid.iter().filter(|&&byte| byte == b'\n').count();
        anyhow!("{name}:{line}: byte {} is not UTF-8; save the grammar as UTF-8", valid.len())
    })?;
    let (grammar, notices) = syntax::parse(&text, &name)?;
    Ok((grammar, notices.iter().map(ToString::to_string).collect()))
}
