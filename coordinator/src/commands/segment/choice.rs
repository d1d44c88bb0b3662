//! The choice of grammars for a text, without gold.
//!
//! In: a text. Out: two grammars whose models vote, and the reason.
//!
//! Words are syllables in one or several levels of collocations. Three levels find words in some texts and the syllables of words in others, where
//! one level is better. Function words at the left edge of collocations have one syllable each. They help where most words are as short, as
//! in English, and elsewhere cut the first syllables from words. Likelihoods do not tell: they prefer one level, and function words over none,
//! nearly everywhere. But a grammar that cuts words segments a text otherwise than a simpler one does. So short chains segment a part of
//! the text, and the agreement of two grammars is the F1 of the segments of one against the other's (docs/results/segment.md).

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::time::Duration;

use anyhow::{Context as _, Result};
use proto::log::Form;
use shared::data::corpus::{Corpus, Options};
use shared::data::eval::segmentation::score;
use shared::data::vowels::{Sentences, n_nuclei};
use shared::models::decode::Decoder;

use super::sampling::{self, Effort, ModelFile, Sampling};
use super::text::Text;
use crate::commands::train::FleetOptions;
use crate::events::{Observer as _, RunEvent};
use crate::fleet::Fleet;
use crate::job::Job;
use crate::metrics::decoder_name;
use crate::progress::Progress;
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

const MOSTLY_FUNCTION_WORDS: [&str; 2] = [FUNCTION_WORDS, THREE_LEVELS];
const MOSTLY_THREE_LEVELS: [&str; 2] = [THREE_LEVELS, ONE_LEVEL];
const MOSTLY_ONE_LEVEL: [&str; 2] = [ONE_LEVEL, THREE_LEVELS];

const FUNCTION_WORDS: &str = "colloc3-syllable-functionwords-left";
const THREE_LEVELS: &str = "colloc3-syllable";
const ONE_LEVEL: &str = "colloc-syllable";

/// Lowest share of different words of one syllable with function words: between English (.57 to .76) and French (.45).
const MOST: f64 = 0.53;
/// Lowest agreement without and with function words, for function words: between English speech to children (.79, .81) and other texts
/// with as large a share (.74 at most).
const FUNCTION_WORDS_AGREE: f64 = 0.76;
/// Lowest agreement of one level and three for three levels: between texts where one level is better (.68 at most) and others (.70 to .85).
const LEVELS_AGREE: f64 = 0.7;

/// Utterances and symbols of a trial at most, and its sweeps.
const UTTERANCES: usize = 1_000;
const SYMBOLS: usize = 15_000;
const SWEEPS: u32 = 30;

/// The choice for `text`. `keys` are those of the model that say what is known of the language.
pub fn choose(
    text: &Text,
    keys: &[(&'static str, String)],
    sampling: &Sampling,
    log: Form,
) -> Result<Choice> {
    let (utterances, symbols) = text.utterances();
    let vowels = match keys.iter().find(|(key, _)| *key == "vowels") {
        Some((_, vowels)) => vowels.split_whitespace().map(str::to_owned).collect(),
        None => found_vowels(utterances, symbols),
    };
    // Without both classes every word would have one syllable, or as many as symbols.
    if vowels.is_empty() || symbols.iter().all(|symbol| vowels.contains(symbol)) {
        return Ok(Choice { grammars: MOSTLY_THREE_LEVELS, reason: None });
    }
    let n = UTTERANCES.min((SYMBOLS * utterances.len() / text.length().max(1)).max(1));
    let part = text.part(n);
    let three_levels = trial(&part, THREE_LEVELS, keys, sampling, log)?;
    let agreement = |grammar: &str| -> Result<f64> {
        Ok(agreement(&three_levels, &trial(&part, grammar, keys, sampling, log)?))
    };
    let (grammars, reason) = decide(share_of_one_syllable(&three_levels, &vowels), agreement)?;
    Progress::new(sampling.style(log)).on(&RunEvent::Notice(&reason))?;
    Ok(Choice { grammars, reason: Some(reason) })
}

/// The grammars, and the reason, by the share of different words of one syllable and the agreement of three levels with another grammar.
fn decide(share: f64, agreement: impl Fn(&str) -> Result<f64>) -> Result<([&'static str; 2], String)> {
    let percent = 100.0 * share;
    let mut reason = format!("{percent:.0} % of the different words of a short trial have one syllable");
    if share >= MOST {
        let agreed = agreement(FUNCTION_WORDS)?;
        write!(reason, ", a trial with function words agrees by {agreed:.2}")?;
        if agreed >= FUNCTION_WORDS_AGREE {
            return Ok((MOSTLY_FUNCTION_WORDS, reason + ": function words"));
        }
    }
    let agreed = agreement(ONE_LEVEL)?;
    write!(reason, ", a trial with one level of collocations agrees by {agreed:.2}")?;
    Ok(match agreed >= LEVELS_AGREE {
        true => (MOSTLY_THREE_LEVELS, reason + ": mostly three levels, no function words"),
        false => (MOSTLY_ONE_LEVEL, reason + ": mostly one level, no function words"),
    })
}

/// The share of the different segments of a corpus that have one group of vowels at most.
fn share_of_one_syllable(corpus: &Corpus, vowels: &BTreeSet<String>) -> f64 {
    let is_vowel: Vec<bool> = corpus.symbols.iter().map(|symbol| vowels.contains(symbol)).collect();
    let mut words: BTreeSet<&[u32]> = BTreeSet::new();
    let segmentation = corpus.segmentation();
    for (utterance, ends) in corpus.sentences.iter().zip(&segmentation) {
        let starts = [0].iter().chain(ends);
        words.extend(starts.zip(ends).map(|(&start, &end)| &utterance[start as usize..end as usize]));
    }
    let n_short = words.iter().filter(|word| n_nuclei(word, &is_vowel) <= 1).count();
    n_short as f64 / words.len().max(1) as f64
}

/// F1 of the segments of one segmentation against another.
fn agreement(one: &Corpus, other: &Corpus) -> f64 {
    score(&one.sentences, &one.segmentation(), &other.segmentation()).token.f1.unwrap_or(0.0)
}

fn found_vowels(utterances: &[Vec<u32>], symbols: &[String]) -> BTreeSet<String> {
    let mut sentences = Sentences::default();
    sentences.add(utterances);
    let is_vowel = sentences.vowels(symbols.len());
    symbols.iter().zip(is_vowel).filter(|(_, is_vowel)| *is_vowel).map(|(symbol, _)| symbol.clone()).collect()
}

/// `part` as the model of a short chain segments it.
fn trial(
    part: &Text,
    grammar: &str,
    keys: &[(&'static str, String)],
    sampling: &Sampling,
    log: Form,
) -> Result<Corpus> {
    let dir = tempfile::tempdir().context("cannot create a temporary folder")?;
    let model = ModelFile {
        grammar: sampling::grammar(grammar)?,
        voters: Vec::new(),
        effort: Effort { chains: 1, voter_chains: None, sweeps: SWEEPS },
        reason: None,
        spent: Duration::ZERO,
        keys: keys.to_vec(),
        files: Vec::new(),
    };
    let mut progress = Progress::new(sampling.style(log));
    let n = part.utterances().0.len();
    progress.on(&RunEvent::Notice(&format!("trial of {grammar} on {n} utterances")))?;
    let file = Sampling { seed: 1, ..Sampling::default() }.write_job(part, &model, dir.path())?;
    let job = Job::load(&file, &[])?;
    let inputs = Inputs::load(&job)?;
    let options = FleetOptions { workers: sampling.workers, ..FleetOptions::default() };
    let fleet = Fleet::start(options.config()?)?;
    let trained = train(&job, &inputs, &fleet, &mut Checkpoints::none(), &mut progress);
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
    fn grammars_of_more_structure_are_chosen_if_they_agree_with_simpler_ones() {
        for (share, function_words, one_level, grammars) in [
            (0.54, 0.77, 0.9, MOSTLY_FUNCTION_WORDS),
            (0.54, 0.75, 0.9, MOSTLY_THREE_LEVELS),
            (0.52, 0.9, 0.71, MOSTLY_THREE_LEVELS),
            (0.9, 0.75, 0.69, MOSTLY_ONE_LEVEL),
            (0.1, 0.9, 0.69, MOSTLY_ONE_LEVEL),
        ] {
            let agreement =
                |grammar: &str| Ok(if grammar == FUNCTION_WORDS { function_words } else { one_level });
            assert_eq!(decide(share, agreement).unwrap().0, grammars);
            assert_ne!(grammars[0], grammars[1]);
            assert!(grammars.iter().all(|name| sampling::grammar(name).is_ok()));
        }
    }
}
