//! Results in the formats of other programs, as `grammaton export` writes them.

use std::path::PathBuf;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use training::export::{self, Kind, Level, Request};

use crate::wait::interruptible;

/// The results in the folder `dir` in this format, or the original file with its segments, and what there is to know.
#[pyfunction]
#[pyo3(signature = (dir, format, *, original, tier, decoder, level, language))]
#[expect(clippy::too_many_arguments, reason = "the options of a command")]
pub fn exported(
    py: Python<'_>,
    dir: PathBuf,
    format: Option<&str>,
    original: Option<PathBuf>,
    tier: Vec<String>,
    decoder: Option<String>,
    level: Option<&str>,
    language: Option<String>,
) -> PyResult<(String, Vec<String>)> {
    let kind = format.map(|name| {
        let names: Vec<&str> = Kind::all().map(Kind::name).collect();
        let unknown =
            || PyValueError::new_err(format!("format must be one of {}, found {name}", names.join(", ")));
        Kind::of(name).ok_or_else(unknown)
    });
    let level = level.map(|name| match name {
        "words" => Ok(Level::Words),
        "morphemes" => Ok(Level::Morphemes),
        _ => Err(PyValueError::new_err(format!("level must be \"words\" or \"morphemes\", found {name:?}"))),
    });
    let (kind, level) = (kind.transpose()?, level.transpose()?);
    let request = Request { kind, original, tiers: tier, decoder, level, language };
    interruptible(py, move || {
        let mut text = String::new();
        let notices = export::export(&dir, &request, &mut |part| {
            text += part;
            Ok(())
        })?;
        Ok((text, notices))
    })
}
