//! A file of annotated lines that grows one line at a time, as `--annotated` reads it.
//!
//! In: a file of segmented lines, or none yet, and the text that they are of. Out: the annotated sentences; and the file again, complete at any time, whoever is killed.
//!
//! Law: what is written is read back. Lines that are not of the text stay as they are, before the others, which are in the order of their symbols' numbers.

use std::collections::BTreeMap;
use std::fs;
use std::io::{ErrorKind, Write as _};
use std::path::Path;

use anyhow::{Context as _, Result, bail};
use basics::atomic_write;
use grammaton::data::corpus::{Corpus, write_line};
use rustc_hash::FxHashMap;

use crate::segmented::Segmented;

/// Ends of the segments of annotated sentences, which are named by their symbols.
pub type Annotations = BTreeMap<Vec<u32>, Vec<u32>>;

/// What an annotation file has.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct AnnotationFile {
    /// Annotated sentences of the text.
    pub annotations: Annotations,
    /// Lines that are not of the text.
    others: Vec<String>,
    /// The file, byte by byte; empty if there is none.
    text: String,
}

impl AnnotationFile {
    /// Reads the file at `path`, which need not exist.
    ///
    /// # Errors
    /// A file that cannot be read, and lines with a tab, as in `gladly<TAB>glad ly`, which would be read as one segmentation.
    pub fn read(path: &Path, of: &Segmented) -> Result<AnnotationFile> {
        let name = path.display().to_string();
        let text = match fs::read_to_string(path) {
            Ok(text) => text,
            Err(error) if error.kind() == ErrorKind::NotFound => String::new(),
            Err(error) => return Err(error).with_context(|| format!("{name}: cannot read the annotations")),
        };
        if let Some(at) = text.lines().position(|line| line.contains('\t')) {
            bail!(
                "{name}:{}: expected a segmented line, found a tab; of words with their analyses, keep one analysis a line (cut -f 2)",
                at + 1
            );
        }
        let mut file = AnnotationFile { text, ..AnnotationFile::default() };
        if file.text.trim().is_empty() {
            return Ok(file);
        }
        let (found, _) = Corpus::read(file.text.as_bytes(), &name, &of.options)?;
        let ids: FxHashMap<&str, u32> = of.corpus.symbols.iter().map(String::as_str).zip(0..).collect();
        let id = |&symbol: &u32| ids.get(found.symbols[symbol as usize].as_str()).copied();
        let lines: Vec<&str> = file.text.lines().collect();
        for ((sentence, ends), &line) in found.sentences.iter().zip(found.segmentation()).zip(&found.lines) {
            match sentence.iter().map(id).collect::<Option<Vec<u32>>>().filter(|it| of.first(it).is_some()) {
                // Of several analyses the first one is learned from.
                Some(sentence) => drop(file.annotations.entry(sentence).or_insert(ends)),
                None => file.others.push(lines[line as usize - 1].to_owned()),
            }
        }
        Ok(file)
    }

    /// Writes the file at `path` under a temporary name, syncs and renames it.
    pub fn write(&mut self, path: &Path, of: &Segmented) -> Result<()> {
        let annotated = self.annotations.iter();
        let unit = of.options.effective_unit();
        let annotated = annotated.map(|(symbols, ends)| write_line(&of.corpus.symbols, symbols, ends, unit));
        self.text = self.others.iter().cloned().chain(annotated).map(|line| line + "\n").collect();
        let written = || -> std::io::Result<()> {
            let mut file = atomic_write::create(path)?;
            file.write_all(self.text.as_bytes())?;
            atomic_write::commit(file, path)
        };
        written().with_context(|| format!("{}: cannot write the annotations", path.display()))
    }

    /// A number that changes with the file.
    pub fn version(&self) -> String {
        blake3::hash(self.text.as_bytes()).to_hex()[..16].to_owned()
    }
}

#[cfg(test)]
mod tests {
    use grammaton::data::corpus::Options;
    use proptest::prelude::*;

    use super::*;

    fn text() -> Segmented {
        let (corpus, _) = Corpus::read(&b"ab ba\nabc\nc\nca b\n"[..], "text", &Options::default()).unwrap();
        Segmented::new(Options::default(), corpus, Vec::new())
    }

    proptest! {
        /// Law: what is written is read back, and foreign lines stay, whatever is said in which order.
        #[test]
        fn written_annotations_are_read_back(said in prop::collection::vec((0..4_usize, 0..8_u32), 0..8), others in 0..3_usize) {
            let (of, dir) = (text(), tempfile::tempdir().unwrap());
            let path = dir.path().join("annotated.txt");
            let foreign: String = (0..others).map(|at| format!("x{at} y\n")).collect();
            fs::write(&path, &foreign).unwrap();
            let mut file = AnnotationFile::read(&path, &of).unwrap();
            for (at, set) in said {
                let symbols = of.corpus.sentences[at].clone();
                let n = symbols.len() as u32;
                let ends = (1..n).filter(|at| set >> at & 1 == 1).chain([n]).collect();
                file.annotations.insert(symbols, ends);
                file.write(&path, &of).unwrap();
                let read = AnnotationFile::read(&path, &of).unwrap();
                prop_assert_eq!(&read, &file);
                prop_assert_eq!(read.version(), file.version());
                prop_assert!(fs::read_to_string(&path).unwrap().starts_with(&foreign));
            }
        }
    }

    #[test]
    fn a_tab_is_refused_and_no_file_is_empty() {
        let (of, dir) = (text(), tempfile::tempdir().unwrap());
        let path = dir.path().join("annotated.txt");
        assert_eq!(AnnotationFile::read(&path, &of).unwrap(), AnnotationFile::default());
        fs::write(&path, "ab\nabc\ta bc\n").unwrap();
        let refused = AnnotationFile::read(&path, &of).unwrap_err().to_string();
        assert!(refused.contains("annotated.txt:2") && refused.contains("tab"), "{refused}");
    }
}
