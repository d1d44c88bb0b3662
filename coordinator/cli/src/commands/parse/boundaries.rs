//! The table of boundaries of a text that is parsed: `boundaries.tsv` of new text.
//!
//! In: the readings of its lines, in their order. Out: the file, once it is complete.

use std::fs;
use std::io::{BufWriter, Write as _};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, ensure};
use basics::atomic_write;
use grammaton::saved::reader::Reading;
use tempfile::NamedTempFile;
use training::boundary::{self, Boundary, BoundaryRow};

/// A table that grows.
pub struct Table {
    path: PathBuf,
    file: BufWriter<NamedTempFile>,
}

impl Table {
    /// No rows yet, of the text at `text`, to be written to `path`; `is_corrected` if the readings have what the models found as well.
    pub fn new(path: &Path, text: &Path, is_corrected: bool) -> Result<Table> {
        let is_text =
            fs::canonicalize(path).is_ok_and(|path| fs::canonicalize(text).is_ok_and(|text| text == path));
        ensure!(
            !is_text,
            "{}: the text would be overwritten; give another file to --boundaries",
            path.display()
        );
        ensure!(
            !path.is_dir(),
            "{}: a folder; give a file to --boundaries, such as {}",
            path.display(),
            path.join("boundaries.tsv").display()
        );
        let file = atomic_write::create(path).with_context(|| refused(path))?;
        let mut table = Table { path: path.to_owned(), file: BufWriter::new(file) };
        let header = if is_corrected { BoundaryRow::HEADER } else { Boundary::HEADER };
        table.write(&format!("{header}\n"))?;
        Ok(table)
    }

    /// Adds a line as it is read.
    pub fn sentence(&mut self, line: u32, reading: &Reading) -> Result<()> {
        let Reading { ends, probabilities, found, .. } = reading;
        let probabilities = probabilities.as_ref();
        let probabilities = probabilities
            .context("internal error: a sentence was read without probabilities; please report it")?;
        let found = found.as_ref().map(|(shares, ends)| (&shares[..], &ends[..]));
        self.write(&boundary::rows(line, &probabilities.boundaries, ends, found))
    }

    fn write(&mut self, lines: &str) -> Result<()> {
        self.file.write_all(lines.as_bytes()).with_context(|| refused(&self.path))
    }

    /// Puts the file in its place.
    pub fn finish(self) -> Result<()> {
        let file = self.file.into_inner().map_err(|error| error.into_error());
        let written = file.and_then(|file| atomic_write::commit(file, &self.path));
        written.with_context(|| refused(&self.path))
    }
}

fn refused(path: &Path) -> String {
    format!(
        "{}: cannot write the boundaries; free space or make it writable, or give another file to --boundaries",
        path.display()
    )
}
