//! The model of a text: grammars by name, or those that trials choose.

use std::path::Path;

use anyhow::{Result, bail, ensure};
use basics::clock::{self, FOREVER};
use grammaton::grammar::auto::Auto;
use training::choice::{self, Choice, SIMPLER, Trials};
use training::events::{Observer, RunEvent};
use training::job::{CorpusTable, ModelTable};

use crate::effort::Effort;
use crate::sampling::{self, ModelFile, Sampling};
use crate::text::Text;
use crate::time_limit::within;

/// The choice of a grammar by the text.
pub const AUTO: &str = "auto";

/// What is known of a text.
#[derive(Clone, Copy, Debug, Default)]
pub struct Known<'a> {
    /// Vowels, with spaces between them; if there are none, training finds them.
    pub vowels: &'a str,
    /// A file of words, one per line.
    pub words: Option<&'a Path>,
}

/// The model of a text with these grammars. The time of trials is in [`ModelFile::spent`].
pub fn model(
    text: &Text,
    names: &[String],
    known: Known<'_>,
    sampling: &Sampling,
    observer: &mut dyn Observer,
) -> Result<ModelFile> {
    let vowels = known.vowels.trim();
    let names: Vec<&str> = names.iter().map(|name| name.trim()).collect();
    let begun = clock::now();
    type Chosen = (Vec<Auto>, Effort, Option<Choice>, Vec<Auto>);
    let (mut grammars, effort, chosen, simpler): Chosen = match names[..] {
        [AUTO] => {
            let choice = choose(text, known, sampling, observer)?;
            let effort = match choice.voter {
                Some(_) => Effort { chains: 2, voter_chains: Some(1), sweeps: sweeps(text) },
                None => SHORT,
            };
            let grammars = std::iter::once(choice.grammar).chain(choice.voter).collect();
            let simpler = choice::simpler(choice.grammar).to_vec();
            (grammars, effort, Some(choice), simpler)
        }
        _ => {
            let grammars = names.iter().map(|name| sampling::grammar(name)).collect::<Result<_>>()?;
            (grammars, Effort { chains: 2, voter_chains: None, sweeps: sweeps(text) }, None, Vec::new())
        }
    };
    let spent = clock::now().saturating_sub(begun);
    ensure!(!grammars.is_empty(), "--grammar: name a grammar, or auto");
    let (grammar, voters) = (grammars.remove(0), grammars);
    if let Some(at) =
        (0..voters.len()).find(|&at| voters[at] == grammar || voters[..at].contains(&voters[at]))
    {
        bail!("--grammar: {} is there twice; name each grammar once", voters[at]);
    }
    let mut keys: Vec<(&str, toml::Value)> = Vec::new();
    if !vowels.is_empty() {
        keys.push(("vowels", vowels.into()));
    }
    if grammar.has_syllables() || voters.iter().any(|voter| voter.has_syllables()) {
        keys.push(("inner_vowels", true.into()));
    }
    let baselines = chosen.as_ref().map(Choice::baselines).unwrap_or_default();
    if !baselines.is_empty() {
        let names = baselines.iter().map(|baseline| toml::Value::from(baseline.name()));
        keys.push(("baselines", names.collect::<Vec<_>>().into()));
    }
    let contexts = chosen.as_ref().is_some_and(Choice::contexts);
    let (threshold, reason) = chosen.map_or((0.0, None), |choice| (choice.threshold, Some(choice.reason)));
    let files = Vec::new();
    let mut model = ModelFile {
        grammar,
        voters,
        simpler,
        effort,
        cascade: 0,
        threshold,
        contexts,
        reason,
        spent,
        keys,
        files,
    };
    known.words.map_or(Ok(()), |path| model.know("words", "known-words.txt", path))?;
    Ok(model)
}

/// The choice of grammars for a text, by trials, without those that cannot analyse its longest line.
fn choose(text: &Text, known: Known<'_>, sampling: &Sampling, observer: &mut dyn Observer) -> Result<Choice> {
    let model = ModelTable {
        vowels: known.vowels.trim().to_owned(),
        inner_vowels: true,
        words: known.words.map(Path::to_owned).unwrap_or_default(),
        ..ModelTable::default()
    };
    let annotated = text.known()?;
    let choice = by_trials(text, &model, sampling, observer, |trials| {
        let choice = choice::choose(text.corpus(), &annotated, trials)?;
        match sampling.seconds {
            // The grammars are measured.
            Some(_) => Ok(choice),
            None => choice.of_able(text.corpus(), trials.table, trials.model, trials.fleet),
        }
    })?;
    let choice = choice.unwrap_or_else(|| Choice {
        grammar: SIMPLER[0],
        voter: None,
        threshold: 0.0,
        reason: too_slow(sampling),
    });
    observer.on(&RunEvent::Notice(choice.reason.clone()))?;
    Ok(choice)
}

/// What `choose` finds by trials of a text on a fleet of their own, nothing if it takes more than half of the time, if that is limited.
pub fn by_trials<T>(
    text: &Text,
    model: &ModelTable,
    sampling: &Sampling,
    observer: &mut dyn Observer,
    choose: impl FnOnce(&mut Trials<'_>) -> Result<T>,
) -> Result<Option<T>> {
    let table = &CorpusTable { unit: text.corpus().unit, ..CorpusTable::default() };
    let (limit, share) = match sampling.seconds {
        Some(seconds) => (seconds / 2, (seconds.as_secs_f64() / SECONDS_OF_TRIALS).min(1.0)),
        None => (FOREVER, 1.0),
    };
    within(limit, sampling.fleet(), |fleet| choose(&mut Trials { table, model, share, fleet, observer }))
}

/// Why nothing was chosen.
pub fn too_slow(sampling: &Sampling) -> String {
    let seconds = sampling.seconds.unwrap_or_default().as_secs_f64();
    format!("trials take longer than half of --seconds {seconds}")
}

/// Time in seconds from which on trials do their usual work, some ten seconds at most; shorter times have trials of a part of it.
const SECONDS_OF_TRIALS: f64 = 40.0;

/// The number of sweeps of a chain: about as many symbols are read in all, whatever the length of the text.
fn sweeps(text: &Text) -> u32 {
    (SYMBOLS_OF_CHAIN / text.length().max(1)).clamp(FEWEST_SWEEPS, MOST_SWEEPS) as u32
}

/// Symbols that all sweeps of a chain read; 125 sweeps of 96,000 symbols, two minutes of computing for three chains.
const SYMBOLS_OF_CHAIN: usize = 12_000_000;
const FEWEST_SWEEPS: usize = 40;
const MOST_SWEEPS: usize = 200;
/// More and shorter chains, for texts of many symbols.
const SHORT: Effort = Effort { chains: 4, voter_chains: None, sweeps: 50 };

#[cfg(test)]
mod tests {
    use std::fs;
    use std::time::Duration;

    use grammaton::data::corpus::sniff::Contents;
    use training::events::All;
    use training::job::{GrammarSource, Job};

    use super::*;
    use crate::keys::Keys;

    fn text() -> Text {
        let file = tempfile::NamedTempFile::new().unwrap();
        fs::write(&file, "abab\nba\nab\n").unwrap();
        Text::read(file.path(), Contents::Utterances, &Keys::default()).unwrap()
    }

    /// The model of [`text`] with a grammar of that name.
    fn model_of(name: &str, sampling: &Sampling) -> ModelFile {
        model(&text(), &[name.to_owned()], Known { vowels: "a", words: None }, sampling, &mut All(Vec::new()))
            .unwrap()
    }

    #[test]
    fn trials_are_part_of_the_time_spent() {
        let sampling = Sampling { workers: Some(1), ..Sampling::default() };
        let [chosen, named] = [AUTO, "unigram"].map(|name| model_of(name, &sampling));
        assert!(chosen.reason.is_some() && chosen.voters.len() == 1);
        assert!(chosen.spent > named.spent, "{:?} {:?}", chosen.spent, named.spent);
    }

    #[test]
    fn boundaries_of_half_of_the_samples_are_printed_for_chinese_and_the_vote_for_syllables() {
        for (first, threshold) in [(0x4e00, 0.5), (0xac00, 0.0)] {
            let symbols: String = (first..first + 250).filter_map(char::from_u32).collect();
            let file = tempfile::NamedTempFile::new().unwrap();
            fs::write(&file, symbols).unwrap();
            let text = Text::read(file.path(), Contents::Utterances, &Keys::default()).unwrap();
            let (names, known) = ([AUTO.to_owned()], Known { vowels: "", words: None });
            let model = model(&text, &names, known, &Sampling::default(), &mut All(Vec::new())).unwrap();
            assert_eq!((model.grammar, model.threshold), (Auto::COLLOC3_POSITIONS, threshold));
            assert_eq!(model.simpler, [Auto::COLLOC_POSITIONS, Auto::UNIGRAM_POSITIONS]);
            assert!(model.voters.is_empty() && model.keys.is_empty());
        }
    }

    /// The grammar, restarts and sweeps of the job of the text, with that time of which `spent` is over.
    fn effort(seconds: Duration, spent: Duration, simpler: &[Auto]) -> Result<(GrammarSource, usize, usize)> {
        let sampling = Sampling { seconds: Some(seconds), workers: Some(1), ..Sampling::default() };
        let dir = tempfile::tempdir().unwrap();
        let model = ModelFile { spent, simpler: simpler.to_vec(), ..model_of("colloc-syllable", &sampling) };
        let job =
            Job::load(&sampling.write_job(&text(), &model, dir.path(), &mut All(Vec::new()))?, &[]).unwrap();
        let inference = &job.points[0].inference;
        Ok((job.model.grammar, inference.restarts, inference.max_rounds))
    }

    #[test]
    fn time_without_limits_is_for_the_largest_effort() {
        let largest = (GrammarSource::Auto(Auto::COLLOC_SYLLABLE), 16, 10_000);
        assert_eq!(effort(Duration::from_secs(1_000_000), Duration::ZERO, &[]).unwrap(), largest);
    }

    #[test]
    fn a_time_that_is_over_is_a_trial_or_a_refusal_with_the_longest_line() {
        let seconds = Duration::from_secs(10);
        let trial = (GrammarSource::Auto(Auto::UNIGRAM), 1, 2);
        assert_eq!(effort(seconds, seconds, &SIMPLER).unwrap(), trial);
        let refused = effort(seconds, seconds, &[]).unwrap_err().to_string();
        assert_eq!(
            refused,
            "--seconds 10: too short for colloc-syllable and this text, the longest line of which, 1, has 4 symbols; give more \
             seconds, or split long lines"
        );
    }
}
