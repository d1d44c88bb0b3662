//! The choice of grammars for a text, without gold.
//!
//! In: a text. Out: two grammars whose models vote, and the reason.
//!
//! Function words at the left edge of collocations have one syllable each. They help in English, where most different words have one syllable,
//! and cost up to .15 of F1 in languages of longer words, whose first syllables become function words. In some of the latter, three levels of
//! collocations find hardly anything but syllables, and one level does not. So a short chain of three levels without function words segments a
//! part of the text, and the share of its different words that have one syllable decides (docs/results/segment.md). Likelihoods do not:
//! they prefer function words in both kinds of languages.

use std::collections::BTreeSet;

use anyhow::{Context as _, Result};
use shared::data::corpus::{Corpus, Options};
use shared::data::vowels::{Sentences, n_nuclei};
use shared::models::decode::Decoder;

use super::sampling::{self, Effort, ModelFile, Sampling};
use super::text::Text;
use crate::commands::train::FleetOptions;
use crate::events::All;
use crate::fleet::Fleet;
use crate::job::Job;
use crate::metrics::decoder_name;
use crate::train::checkpoint::Checkpoints;
use crate::train::group::Inputs;
use crate::train::train;

/// Grammars, and why.
pub struct Choice {
    /// Names of two grammars, the better one first.
    pub grammars: [&'static str; 2],
    /// A sentence, if something was measured.
    pub reason: Option<String>,
}

/// Where most words have one syllable.
const WITH_FUNCTION_WORDS: [&str; 2] = ["colloc3-syllable-functionwords-left", TRIAL];
/// Where the trial finds hardly anything but syllables.
const ONE_LEVEL: [&str; 2] = ["colloc-syllable", TRIAL];
/// Elsewhere. No number of levels of collocations is the best in every language.
const THREE_LEVELS: [&str; 2] = [TRIAL, "colloc-syllable"];
/// The grammar of the trial.
const TRIAL: &str = "colloc3-syllable";
/// Share of different words of one syllable above which most words have one: between those of trials in English (.61, .74) and in French (.46).
const MOST: f64 = 0.53;
/// Share above which words are syllables: between English and a trial in German (.84) that took syllables for words.
const NEARLY_ALL: f64 = 0.8;

/// Utterances and symbols of the trial at most, and its sweeps.
const UTTERANCES: usize = 1_000;
const SYMBOLS: usize = 15_000;
const SWEEPS: u32 = 30;

/// The choice for `text`. `keys` are those of the model that say what is known of the language.
pub fn choose(text: &Text, keys: &[(&'static str, String)]) -> Result<Choice> {
    let (utterances, symbols) = text.utterances();
    let vowels = match keys.iter().find(|(key, _)| *key == "vowels") {
        Some((_, vowels)) => vowels.split_whitespace().map(str::to_owned).collect(),
        None => found_vowels(utterances, symbols),
    };
    // Without both classes every word would have one syllable, or as many as symbols.
    if vowels.is_empty() || symbols.iter().all(|symbol| vowels.contains(symbol)) {
        return Ok(Choice { grammars: THREE_LEVELS, reason: None });
    }
    let n = UTTERANCES.min((SYMBOLS * utterances.len() / text.length().max(1)).max(1));
    let found = trial(&text.part(n), keys)?;
    let is_vowel: Vec<bool> = found.symbols.iter().map(|symbol| vowels.contains(symbol)).collect();
    let mut words: BTreeSet<&[u32]> = BTreeSet::new();
    let segmentation = found.segmentation();
    for (utterance, ends) in found.sentences.iter().zip(&segmentation) {
        let starts = [0].iter().chain(ends);
        words.extend(starts.zip(ends).map(|(&start, &end)| &utterance[start as usize..end as usize]));
    }
    let n_short = words.iter().filter(|word| n_nuclei(word, &is_vowel) <= 1).count();
    let share = n_short as f64 / words.len().max(1) as f64;
    let (grammars, what) = decide(share);
    let reason = format!(
        "{:.0} % of the different words of a short trial have one syllable, so {what}.",
        100.0 * share
    );
    Ok(Choice { grammars, reason: Some(reason) })
}

/// The grammars for a share of different words of one syllable, and what they are.
fn decide(share: f64) -> ([&'static str; 2], &'static str) {
    match share {
        share if share > NEARLY_ALL => (ONE_LEVEL, "one level of collocations has more chains than three"),
        share if share > MOST => (WITH_FUNCTION_WORDS, "there are function words"),
        _ => (THREE_LEVELS, "there are no function words"),
    }
}

fn found_vowels(utterances: &[Vec<u32>], symbols: &[String]) -> BTreeSet<String> {
    let mut sentences = Sentences::default();
    sentences.add(utterances);
    let is_vowel = sentences.vowels(symbols.len());
    symbols.iter().zip(is_vowel).filter(|(_, is_vowel)| *is_vowel).map(|(symbol, _)| symbol.clone()).collect()
}

/// `part` as the model of a short chain segments it.
fn trial(part: &Text, keys: &[(&'static str, String)]) -> Result<Corpus> {
    let dir = tempfile::tempdir().context("cannot create a temporary folder")?;
    let model = ModelFile {
        grammar: sampling::grammar(TRIAL)?,
        voters: Vec::new(),
        effort: Effort { chains: 1, voter_chains: None, sweeps: SWEEPS },
        reason: None,
        keys: keys.to_vec(),
        files: Vec::new(),
    };
    let file = Sampling { seed: 1, ..Sampling::default() }.write_job(part, &model, dir.path())?;
    let job = Job::load(&file, &[])?;
    let inputs = Inputs::load(&job)?;
    let fleet = Fleet::start(FleetOptions::default().config()?)?;
    let trained = train(&job, &inputs, &fleet, &mut Checkpoints::none(), &mut All(Vec::new()));
    fleet.shutdown();
    let name = decoder_name(Decoder::Mbr);
    let mut outcome = trained?;
    let decoding = outcome.decodings.iter_mut().find(|decoding| decoding.name == name);
    let mut lines = Vec::new();
    decoding
        .context("internal error: a trial has no segmentation; please report it")?
        .segmentations
        .copy_to(&mut lines)?;
    let options = Options { unit: job.corpus.unit, ..Options::default() };
    Ok(Corpus::read(&lines[..], "the trial", &options)?.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_share_has_grammars_of_the_family_and_function_words_are_for_most_words() {
        for percent in 0..=100 {
            let (grammars, _) = decide(f64::from(percent) / 100.0);
            assert!(
                grammars.iter().all(|name| sampling::grammar(name).is_ok()) && grammars[0] != grammars[1]
            );
            let has_function_words = grammars.iter().any(|name| name.contains("functionwords"));
            assert_eq!(has_function_words, (54..=80).contains(&percent), "{percent} %");
        }
    }
}
