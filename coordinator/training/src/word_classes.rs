//! The file of the word classes that are the tags of a dependency model, beside the model.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, anyhow};
use grammaton::data::dependency::{Document, Tags};
use grammaton::models::word_classes::WordClasses;

/// Name of the file in the folder of results.
pub const FILE: &str = "classes.tsv";

/// The sentences of a file, and the file, with word classes for tags.
///
/// # Errors
/// If the file is faulty.
pub fn tagged(document: &Document, classes: &WordClasses, name: &str) -> Result<(Document, String)> {
    let text = classes.tag(document);
    Ok((Document::read(text.as_bytes(), &format!("{name} with word classes"), Tags::Xpos)?, text))
}

/// The path of the word classes of the model at `model`, a folder or its file: beside it; of the folder `model` of results, in the folder of these.
pub fn path(model: &Path) -> PathBuf {
    let folder = if model.is_dir() { model } else { model.parent().unwrap_or(model) };
    let of_results = folder.parent().filter(|_| folder.ends_with("model")).map(|results| results.join(FILE));
    of_results.filter(|path| path.exists()).unwrap_or_else(|| folder.join(FILE))
}

/// The word classes of the model at `model`.
///
/// # Errors
/// If the file is missing or faulty.
pub fn beside(model: &Path) -> Result<WordClasses> {
    let path = path(model);
    let table = fs::read_to_string(&path).with_context(|| {
        format!(
            "{}: cannot read the word classes that are the tags of the model; `grammaton dependencies` wrote them beside the corpus",
            path.display()
        )
    })?;
    WordClasses::from_tsv(&table).map_err(|error| anyhow!("{}: {error}", path.display()))
}
