//! Grammars made from a corpus file.
//!
//! In: a member of the family (`shared/src/grammar/auto.rs`), the corpus, and the vowels that the job gives, if any. Out: the grammar with its
//! segments, and a notice of the vowels that were found.

use anyhow::{Context, Result, ensure};
use shared::data::vowels::Sentences;
use shared::grammar::auto::{Alphabet, Auto, AutoGrammar, auto};

use super::text::Source;

/// Makes the grammar. `vowels`: names of symbols with spaces between them; if empty, vowels are found.
pub fn made(kind: Auto, source: &Source, vowels: &str) -> Result<(AutoGrammar, Option<String>)> {
    let symbols = &source.end.symbols;
    let (is_vowel, notice) = match (kind.has_syllables(), vowels.trim().is_empty()) {
        (false, _) => (Vec::new(), None),
        (true, true) => {
            let mut sentences = Sentences::default();
            source.blocks(|block| {
                sentences.add(&block.sentences);
                Ok(())
            })?;
            let found = sentences.vowels(symbols.len());
            let notice = notice(symbols, &found);
            (found, Some(notice))
        }
        (true, false) => (given(symbols, vowels)?, None),
    };
    let made = auto(kind, &Alphabet { symbols, vowels: &is_vowel });
    Ok((made.context("cannot make a grammar for the corpus")?, notice))
}

/// Whether each symbol is among the `vowels`.
fn given(symbols: &[String], vowels: &str) -> Result<Vec<bool>> {
    let is_vowel: Vec<bool> =
        symbols.iter().map(|symbol| vowels.split_whitespace().any(|vowel| vowel == symbol)).collect();
    ensure!(
        is_vowel.contains(&true),
        "model.vowels: none of these symbols is in the corpus; write symbols of the corpus with spaces between them, as in \"a e i o u\", \
         or leave it empty"
    );
    Ok(is_vowel)
}

/// Names the found vowels.
fn notice(symbols: &[String], found: &[bool]) -> String {
    let vowels: Vec<&str> =
        symbols.iter().zip(found).filter(|(_, is_vowel)| **is_vowel).map(|(symbol, _)| &symbol[..]).collect();
    if vowels.is_empty() {
        return "no vowels were found: every syllable is a sequence of symbols; model.vowels can name them"
            .to_owned();
    }
    let more = if vowels.len() > NAMED { ", …" } else { "" };
    let shown = vowels[..vowels.len().min(NAMED)].join(" ");
    format!("vowels found in the corpus: {shown}{more}; model.vowels can name others")
}

/// Vowels that a notice names.
const NAMED: usize = 60;
