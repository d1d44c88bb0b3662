//! Word classes: the tags of a model that has learned from words alone.

use std::path::PathBuf;

use grammaton::models::word_classes::{self as classes, is_punctuation};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use training::word_classes;

use crate::error::exception;
use crate::wait::detached;

/// The classes of words.
#[pyclass(frozen, module = "grammaton._lib")]
pub struct WordClasses(classes::WordClasses);

#[pymethods]
impl WordClasses {
    /// Those beside a model, which is a folder or a file, if there are any.
    #[staticmethod]
    fn beside(py: Python<'_>, model: PathBuf) -> PyResult<Option<WordClasses>> {
        if !word_classes::path(&model).exists() {
            return Ok(None);
        }
        let found = detached(py, || word_classes::beside(&model));
        Ok(Some(WordClasses(found.map_err(|error| exception(py, error))?)))
    }

    /// Reads a table of them.
    #[staticmethod]
    fn from_tsv(table: &str) -> PyResult<WordClasses> {
        let found = classes::WordClasses::from_tsv(table);
        Ok(WordClasses(found.map_err(|error| PyValueError::new_err(error.to_string()))?))
    }

    /// A table of them.
    fn to_tsv(&self) -> String {
        self.0.to_tsv()
    }

    /// The class of each word, `None` of punctuation.
    fn tags(&self, words: Vec<String>) -> Vec<Option<String>> {
        let class = |word: &String| (!is_punctuation(word)).then(|| self.0.of(word).to_owned());
        words.iter().map(class).collect()
    }
}
