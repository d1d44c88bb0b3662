//! `grammaton._lib`: what the package for Python does in Rust.
//!
//! - `arguments`: keyword arguments as a job;
//! - `run`: training in this process, on threads of its own;
//! - `segment`: the job of a text to segment, or of tagged sentences;
//! - `model`: trained models;
//! - `word_classes`: the tags of models that have learned from words alone;
//! - `client`: a client of a service;
//! - `drawing`: pictures of trees;
//! - `export`: results in the formats of other programs;
//! - `error`, `logging`, `wait`: what crosses the border to Python in every module.
//!
//! Invariants: no call holds the interpreter lock while it waits; no signal handler is installed; what Python passes in is checked before
//! a thread starts; structured values go to Python as JSON, with the names that the output files have.

mod arguments;
mod client;
mod drawing;
mod error;
mod export;
mod logging;
mod model;
mod run;
mod segment;
mod wait;
mod word_classes;

use pyo3::prelude::*;

/// Module `grammaton._lib`.
#[pymodule]
mod _lib {
    use pyo3::prelude::*;

    #[pymodule_export]
    use super::arguments::{job_file, keys};
    #[pymodule_export]
    use super::client::{Client, Watch};
    #[pymodule_export]
    use super::drawing::{arcs_svg, tree_svg};
    #[pymodule_export]
    use super::error::{GrammarError, Stopped};
    #[pymodule_export]
    use super::export::exported;
    #[pymodule_export]
    use super::model::{Model, Parser};
    #[pymodule_export]
    use super::run::{Run, stop_all};
    #[pymodule_export]
    use super::segment::{compare, dependencies_job, morphemes_job, segment_job, segmented, suggest};
    #[pymodule_export]
    use super::word_classes::WordClasses;

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        module.add("__version__", env!("CARGO_PKG_VERSION"))?;
        module.add("__commit__", (!proto::COMMIT.is_empty()).then_some(proto::COMMIT))
    }
}
