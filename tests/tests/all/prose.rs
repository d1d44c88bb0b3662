//! Words of the project. Law: names, comments, messages and documents have no phrase that a reader has to puzzle out.

use std::fs;
use std::path::{Path, PathBuf};

/// Phrases, and what to write in their place.
const PHRASES: [(&str, &str); 8] = [
    ("told", "what is shown, sent or recorded, and to whom"),
    ("as many as there", "the same number as"),
    ("such that rewrite", "those that rewrite"),
    ("what it comes to", "its result, its sum"),
    ("what one comes to", "its result, its sum"),
    ("never was", "was never submitted, was never there"),
    ("is none", "is invalid, is refused, is absent (\"there is none\" is fine)"),
    ("are none", "are invalid, are refused, are absent (\"there are none\" is fine)"),
];

/// Sources and documents below a folder.
fn texts(folder: &Path, found: &mut Vec<PathBuf>) {
    for path in fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
        let name = path.file_name().unwrap().to_string_lossy();
        if path.is_dir() && !name.starts_with('.') && name != "target" && name != "node_modules" {
            texts(&path, found);
        } else if path
            .extension()
            .is_some_and(|extension| ["rs", "md", "py", "proto"].iter().any(|known| extension == *known))
        {
            found.push(path);
        }
    }
}

/// The first place of a phrase in a line, between other characters than letters; with "there" before it, it is fine.
fn is_in(phrase: &str, line: &str) -> bool {
    let is_letter = |letter: char| letter.is_alphanumeric() || letter == '_';
    line.match_indices(phrase).any(|(at, _)| {
        let (before, after) = (&line[..at], &line[at + phrase.len()..]);
        !before.ends_with(is_letter) && !after.starts_with(is_letter) && !before.trim_end().ends_with("there")
    })
}

#[test]
fn no_text_has_a_phrase_to_puzzle_out() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").canonicalize().unwrap();
    let mut files = Vec::new();
    texts(&root, &mut files);
    assert!(files.len() > 300, "the test reads files: {}", files.len());
    let mut problems = Vec::new();
    for file in files.iter().filter(|file| !file.ends_with("tests/tests/all/prose.rs")) {
        for (at, line) in fs::read_to_string(file).unwrap().lines().enumerate() {
            for (phrase, instead) in PHRASES.iter().filter(|(phrase, _)| is_in(phrase, line)) {
                let place = file.strip_prefix(&root).unwrap().display();
                problems.push(format!("{place}:{}: \"{phrase}\"; write {instead}", at + 1));
            }
        }
    }
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}

#[test]
fn phrases_are_found_as_words() {
    assert!(is_in("told", "what it was told.") && is_in("is none", "a grammar that is none"));
    assert!(
        !is_in("told", "untold") && !is_in("is none", "if there is none") && !is_in("is none", "x.is none_")
    );
}
