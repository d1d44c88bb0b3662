//! How much memory the chains of a job take, so that it can be said before they run.
//!
//! In: the sentences and grammars of a job, and what this process has in memory. Out: bytes, of this process and its workers together. The charts of
//! some sentences are built, and those of all others take as much for each place where a constituent of two parts can be. Beside them a chain takes
//! some bytes for each symbol of the corpus, for its tables and trees, where they are sampled and where they are kept.

use std::sync::Arc;

use anyhow::Result;
use basics::memory::resident;
use grammaton::data::Sentence;
use grammaton::forest::Prepared;
use grammaton::forest::build::places;
use grammaton::models::sampler::Items;
use grammaton::prepare::candidates::no_strings;
use grammaton::work::shard::Shard;

use super::group::{Group, Inputs};
use super::input::{Dataset, StringSource};
use super::segment_lengths::MANY_SYMBOLS;
use super::text::Text;

/// Bytes of a chain for each symbol of a corpus of sounds or letters, as measured (docs/results/segment.md);
const OF_SOUND: u64 = 600;
/// of a corpus of more than [`MANY_SYMBOLS`], whose words are shorter.
const OF_SYLLABLE: u64 = 1_100;

/// Symbols of the sentences whose charts are built.
const SAMPLE: usize = 5_000;

/// Bytes that a job of chains will take, if the system tells what it has now; nothing for other jobs.
///
/// # Errors
/// Those of reading the sentences.
pub fn of_chains(inputs: &Inputs) -> Result<Option<u64>> {
    let Some(mut bytes) = resident() else { return Ok(None) };
    for group in &inputs.groups {
        match charts(group)? {
            None => return Ok(None),
            Some(charts) => bytes += charts,
        }
        let chains: usize = group.job.points.iter().map(|point| point.inference.restarts).sum();
        let Text { symbols, n_symbols, .. } = &group.input.text;
        let of_symbol = if symbols.len() > MANY_SYMBOLS { OF_SYLLABLE } else { OF_SOUND };
        bytes += of_symbol * (chains * n_symbols) as u64;
    }
    Ok(Some(bytes))
}

/// Bytes of the charts of a group, estimated; nothing if it has none.
fn charts(group: &Group) -> Result<Option<u64>> {
    let (StringSource::Tables, Dataset::Text { grammar }) = (&group.input.strings, &group.input.dataset)
    else {
        return Ok(None);
    };
    let prepared = Arc::new(Prepared::new(grammar.clone(), no_strings(grammar)));
    let every = (group.input.text.n_symbols / SAMPLE).max(1);
    let (mut all, mut built, mut bytes) = (0.0, 0.0, 0);
    for shard in &group.input.text.shards {
        let shard = shard.value()?;
        let Shard::Sentences(sentences) = &*shard else { continue };
        let sample: Vec<Sentence> = sentences.iter().step_by(every).cloned().collect();
        let splits = |sentence: &Sentence| places(sentence.tokens.len())[0];
        all += sentences.iter().map(splits).sum::<f64>();
        built += sample.iter().map(splits).sum::<f64>();
        // A sentence with too many derivations is refused later.
        bytes += Items::new(prepared.clone(), &sample).map_or(0, |items| items.size() as u64);
    }
    Ok(Some(if built > 0.0 { (bytes as f64 * all / built) as u64 } else { bytes }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::job::Job;

    /// What is said of a text of so many lines, or of a part of it.
    fn said(method: &str, lines: usize) -> Option<u64> {
        let dir = tempfile::tempdir().unwrap();
        let line = |at: usize| "abcab".repeat(1 + at % 7) + "\n";
        std::fs::write(dir.path().join("text.txt"), (0..lines).map(line).collect::<String>()).unwrap();
        let job = format!(
            "[model]\ngrammar = \"auto:colloc\"\n[corpus]\npath = \"text.txt\"\n[inference]\nmethod = \"{method}\"\n\
             [output]\ndir = \"out\"\n"
        );
        of_chains(&Inputs::load(&Job::parse(&job, "job.toml", dir.path(), &[]).unwrap()).unwrap()).unwrap()
    }

    #[test]
    fn memory_is_said_of_chains_alone_and_grows_with_the_text() {
        assert_eq!(said("vb", 100), None);
        if let Some(before) = resident() {
            let [small, large] = [100, 20_000].map(|lines| said("hastings", lines).unwrap());
            // Chains alone take as much.
            assert!(small >= before && large > small + 200_000 * OF_SOUND, "{before} {small} {large}");
        }
    }
}
