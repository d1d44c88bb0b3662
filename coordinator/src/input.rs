//! Corpora, grammars, trees and dependencies from files, and all but grammars from standard input.

use std::io::{self, Read};
use std::path::Path;

use anyhow::{Context, Result, anyhow};
use shared::corpus::{Corpus, Notice, Options, ReadError};
use shared::dependency::{self, Sentence, Tags};
use shared::grammar::{Grammar, syntax};
use shared::treebank::brackets::{Entry, read};

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

/// What messages call the file at `path`, and its trees; `-` is standard input.
pub fn trees(path: &Path) -> Result<(String, Vec<Entry>)> {
    let (name, bytes) = named_bytes(path, "trees")?;
    let text = String::from_utf8(bytes).map_err(|error| {
        let valid = &error.as_bytes()[..error.utf8_error().valid_up_to()];
        let line = 1 + valid.iter().filter(|&&byte| byte == b'\n').count();
        anyhow!("{name}:{line}: byte {} is not UTF-8; convert the file, for instance with iconv", valid.len())
    })?;
    let entries = read(&text, &name)?;
    Ok((name, entries))
}

/// What messages call the file at `path`, and its sentences with their heads; `-` is standard input.
pub fn dependencies(path: &Path, tags: Tags) -> Result<(String, Vec<Sentence>)> {
    let (name, bytes) = named_bytes(path, "sentences")?;
    let sentences = dependency::read(&bytes, &name, tags)?;
    Ok((name, sentences))
}

/// What messages call the file at `path`, and what is in it; `-` is standard input.
fn named_bytes(path: &Path, what: &str) -> Result<(String, Vec<u8>)> {
    let standard = path.as_os_str() == "-";
    let name = if standard { "standard input".to_owned() } else { path.display().to_string() };
    let mut bytes = Vec::new();
    let read =
        if standard { io::stdin().read_to_end(&mut bytes).map(|_| bytes) } else { std::fs::read(path) };
    let bytes = read.with_context(|| format!("{name}: cannot read the {what}"))?;
    Ok((name, bytes))
}
