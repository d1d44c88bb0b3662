//! Corpora from files or standard input.

use std::io;
use std::path::Path;

use shared::corpus::{Corpus, Notice, Options, ReadError};

/// Reads the corpus at `path`; `-` is standard input.
pub fn corpus(path: &Path, options: &Options) -> Result<(Corpus, Vec<Notice>), ReadError> {
    if path.as_os_str() == "-" {
        return Corpus::read(io::stdin().lock(), "standard input", options);
    }
    Corpus::open(path, options)
}
