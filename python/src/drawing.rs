//! Pictures of trees as SVG, as in reports.

use grammaton::grammar::tree::Tree;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use training::report::{arcs, tree};

/// Deepest tree that is drawn.
const MAX_DEPTH: usize = 60;

/// Draws a bracketed tree with its root and the nodes with labels in `keep`, or all nodes; neighbouring leaves are joined by `separator`.
#[pyfunction]
pub fn tree_svg(brackets: &str, separator: &str, keep: Option<Vec<String>>) -> PyResult<String> {
    let parsed = Tree::parse(brackets).map_err(|error| PyValueError::new_err(error.to_string()))?;
    let drawn = tree::drawn(
        &parsed,
        &|label| keep.as_ref().is_none_or(|keep| keep.iter().any(|kept| kept == label)),
        MAX_DEPTH,
    );
    let drawn =
        drawn.ok_or_else(|| PyValueError::new_err(format!("a tree of more than {MAX_DEPTH} levels")))?;
    Ok(tree::svg(&drawn, separator).into_string())
}

/// Draws heads over words with their tags. A head is the number of a word from 1, or 0 for the root.
#[pyfunction]
pub fn arcs_svg(words: Vec<String>, tags: Vec<String>, heads: Vec<u32>) -> PyResult<String> {
    let n = words.len();
    let is_head = |(word, &head): (usize, &u32)| head as usize <= n && head as usize != word + 1;
    if tags.len() != n || heads.len() != n || !heads.iter().enumerate().all(is_head) {
        return Err(PyValueError::new_err(
            "expected a tag for each word, and as its head the number of another word from 1, or 0 for the root",
        ));
    }
    Ok(arcs::svg(&words, &tags, &heads, None).into_string())
}
