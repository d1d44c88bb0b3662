//! The choice of grammars for a corpus, without gold: `grammar = "auto"` in a job file, and `grammaton segment`.
//!
//! In: a corpus. Out: a grammar, another one whose models vote with its models, and the reason.
//!
//! Words are syllables in one or several levels of collocations. Three levels find words in some texts and the syllables of words in others, where
//! one level is better. Function words at the left edge of collocations have one syllable each. They help where most words are as short, as
//! in English, and elsewhere cut the first syllables from words. Likelihoods do not tell: they prefer one level, and function words over none,
//! nearly everywhere. But a grammar that cuts words segments a text otherwise than a simpler one does. So short chains segment a part of
//! the text, and the agreement of two grammars is the F1 of the segments of one against the other's (docs/results/segment.md).
//!
//! Law: the choice depends on the corpus and on what the model table says of the language, and on nothing else; so a job that
//! goes on from a checkpoint chooses the same grammars.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::Path;

use anyhow::{Context as _, Result, ensure};
use shared::data::corpus::{Corpus, Format, Options, write_line};
use shared::data::eval::segmentation::score;
use shared::data::vowels::{Sentences, n_nuclei};
use shared::grammar::auto::Auto;
use shared::models::decode::Decoder;

use crate::events::{Observer, RunEvent};
use crate::fleet::Map;
use crate::input;
use crate::job::{CorpusTable, GrammarSource, Job, ModelTable};
use crate::metrics::decoder_name;
use crate::train::checkpoint::Checkpoints;
use crate::train::group::Inputs;
use crate::train::train;

/// Grammars, and why.
pub struct Choice {
    /// The grammar.
    pub grammar: Auto,
    /// Another grammar, whose models vote with its models; none for texts of many symbols.
    pub voter: Option<Auto>,
    /// A sentence.
    pub reason: String,
}

/// A grammar and its voter.
type Pair = [Auto; 2];

const MOSTLY_FUNCTION_WORDS: Pair = [FUNCTION_WORDS, THREE_LEVELS];
const MOSTLY_THREE_LEVELS: Pair = [THREE_LEVELS, ONE_LEVEL];
const MOSTLY_ONE_LEVEL: Pair = [ONE_LEVEL, THREE_LEVELS];

const FUNCTION_WORDS: Auto = Auto::COLLOC3_SYLLABLE_FUNCTION_WORDS;
const THREE_LEVELS: Auto = Auto::COLLOC3_SYLLABLE;
const ONE_LEVEL: Auto = Auto::COLLOC_SYLLABLE;

/// Number of symbols above which a script writes more than single sounds, as syllables or morphemes.
const MANY_SYMBOLS: usize = 200;

/// Lowest share of different words of one syllable with function words: between languages with words of several syllables (French .45, Swedish
/// .49) and others (Dutch .56 to Vietnamese .86).
const MOST: f64 = 0.53;
/// Lowest agreement without and with function words, for function words: between texts that gain from them (.81 to .86; English
/// that does not, .78) and others with as large a share (.72 at most).
const FUNCTION_WORDS_AGREE: f64 = 0.76;
/// Lowest agreement of one level and three for three levels: between texts whose best segmentations are mostly those of one level (.69 at most) and
/// others (.71 to .80).
const LEVELS_AGREE: f64 = 0.7;

/// Utterances and symbols of a trial at most, and its sweeps.
const UTTERANCES: usize = 1_000;
const SYMBOLS: usize = 15_000;
const SWEEPS: u32 = 30;

/// The job with the grammars that are chosen for its corpus, if it leaves the choice open; `fleet` computes the trials.
pub fn chosen(job: &Job, fleet: &dyn Map, observer: &mut dyn Observer) -> Result<Option<Job>> {
    if job.model.grammar != GrammarSource::Choose {
        return Ok(None);
    }
    let (corpus, _) = input::corpus(&job.corpus.path, &job.corpus.options())?;
    let Choice { grammar, voter, reason } = choose(&corpus, &job.corpus, &job.model, fleet, observer)?;
    let voters: Vec<GrammarSource> = voter.into_iter().map(GrammarSource::Auto).collect();
    observer.on(&RunEvent::Notice(&reason))?;
    Ok(Some(job.with_grammars(GrammarSource::Auto(grammar), voters)))
}

/// The choice for a corpus that was read as `table` says. The vowels are those of `model`, or found.
pub fn choose(
    corpus: &Corpus,
    table: &CorpusTable,
    model: &ModelTable,
    fleet: &dyn Map,
    observer: &mut dyn Observer,
) -> Result<Choice> {
    let n_symbols = corpus.symbols.len();
    if n_symbols > MANY_SYMBOLS {
        let reason = format!("{n_symbols} symbols are more than single sounds");
        return Ok(Choice { grammar: Auto::COLLOC, voter: None, reason });
    }
    let vowels: BTreeSet<String> = match model.vowels.trim() {
        "" => found_vowels(&corpus.sentences, &corpus.symbols),
        vowels => vowels.split_whitespace().map(str::to_owned).collect(),
    };
    let ([grammar, voter], reason) =
        match corpus.symbols.iter().filter(|symbol| vowels.contains(*symbol)).count() {
            // Every word would have one syllable, or as many as symbols.
            n if n == 0 || n == n_symbols => {
                (MOSTLY_THREE_LEVELS, "vowels and consonants cannot be told apart".to_owned())
            }
            _ => {
                let part = part(corpus);
                let mut trial = |grammar| trial(&part, grammar, table, model, fleet, observer);
                let three_levels = trial(THREE_LEVELS)?;
                let share = share_of_one_syllable(&three_levels, &vowels);
                decide(share, |grammar| Ok(agreement(&three_levels, &trial(grammar)?)))?
            }
        };
    Ok(Choice { grammar, voter: Some(voter), reason })
}

/// At most [`UTTERANCES`] utterances of at most [`SYMBOLS`] symbols in all, evenly spaced.
fn part(corpus: &Corpus) -> Corpus {
    let length: usize = corpus.sentences.iter().map(Vec::len).sum();
    let total = corpus.sentences.len();
    let n = UTTERANCES.min((SYMBOLS * total / length.max(1)).max(1)).min(total);
    corpus.subset(&(0..n).map(|at| at * total / n).collect::<Vec<_>>())
}

/// The grammars, and the reason, by the share of different words of one syllable and the agreement of three levels with another grammar.
fn decide(share: f64, mut agreement: impl FnMut(Auto) -> Result<f64>) -> Result<(Pair, String)> {
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
    let is_vowel = sentences.vowels(symbols);
    symbols.iter().zip(is_vowel).filter(|(_, is_vowel)| *is_vowel).map(|(symbol, _)| symbol.clone()).collect()
}

/// `part` as the model of a short chain segments it.
fn trial(
    part: &Corpus,
    grammar: Auto,
    table: &CorpusTable,
    model: &ModelTable,
    fleet: &dyn Map,
    observer: &mut dyn Observer,
) -> Result<Corpus> {
    let n = part.sentences.len();
    observer.on(&RunEvent::Notice(&format!("trial of {grammar} on {n} utterances")))?;
    let dir = tempfile::tempdir().context("cannot create a temporary folder")?;
    let job = trial_job(grammar, table, model, dir.path())?;
    let unit = job.corpus.options().effective_unit();
    let lines = part.sentences.iter().zip(part.segmentation());
    let lines = lines.map(|(sentence, ends)| write_line(&part.symbols, sentence, &ends, unit) + "\n");
    std::fs::write(&job.corpus.path, lines.collect::<String>())
        .with_context(|| format!("{}: cannot write the file", job.corpus.path.display()))?;
    let mut observer = OfFleet(observer);
    let mut outcome = train(&job, &Inputs::load(&job)?, fleet, &mut Checkpoints::none(), &mut observer)?;
    let name = decoder_name(Decoder::Mbr);
    let decoding = outcome.decodings.iter_mut().find(|decoding| decoding.name == name);
    let mut segmented = Vec::new();
    decoding
        .context("internal error: a trial has no segmentation; please report it")?
        .segmentations
        .copy_to(&mut segmented)?;
    let options = Options { unit, format: Format::Segmented, ..job.corpus.options() };
    let (corpus, _) = Corpus::read(&segmented[..], "the trial", &options)?;
    ensure!(corpus.sentences.len() == n, "internal error: a trial lost utterances; please report it");
    Ok(corpus)
}

/// The job of a trial: one chain, with what the tables say of the text and of its vowels.
fn trial_job(grammar: Auto, table: &CorpusTable, model: &ModelTable, dir: &Path) -> Result<Job> {
    let text = format!(
        "[model]\ngrammar = \"auto:{grammar}\"\n[corpus]\npath = \"corpus.txt\"\n\
         [inference]\nmethod = \"hastings\"\ndiscount = 0.0001\nconcentration = 10000.0\nmax_rounds = {SWEEPS}\nkeep_every = 2\n\
         [output]\ndir = \".\"\ndecoders = [\"mbr\"]\nscore_every = 0\n"
    );
    let mut job = Job::parse(&text, "the trial", dir, &[])?;
    job.model.vowels = model.vowels.clone();
    let CorpusTable { path, held_out, held_out_share, test, .. } = job.corpus;
    job.corpus = CorpusTable { path, held_out, held_out_share, test, ..table.clone() };
    Ok(job)
}

/// Passes on what happens to the fleet during a trial, and nothing that would look like the run that follows.
struct OfFleet<'a>(&'a mut dyn Observer);

impl Observer for OfFleet<'_> {
    fn on(&mut self, event: &RunEvent<'_>) -> Result<()> {
        match event {
            RunEvent::Fleet(_) => self.0.on(event),
            _ => Ok(()),
        }
    }
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
            let agreement = |grammar| Ok(if grammar == FUNCTION_WORDS { function_words } else { one_level });
            assert_eq!(decide(share, agreement).unwrap().0, grammars);
            assert_ne!(grammars[0], grammars[1]);
        }
    }
}
