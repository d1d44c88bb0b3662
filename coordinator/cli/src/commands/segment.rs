//! `grammaton segment`: finds the words of a text, without a job file.
//!
//! In: unsegmented utterances. Out: the same lines with spaces between words. The command writes a corpus file and a job file, trains the
//! job as `grammaton train` does, and prints one of its segmentations; so `grammaton train` on the job file gives the same result.

pub mod effort;
pub mod reading;
pub mod sampling;
pub mod text;
mod time_limit;

use std::path::{Path, PathBuf};

use anyhow::{Result, anyhow, bail, ensure};
use basics::clock;
use basics::streams;
use proto::log::Form;
use shared::data::corpus::sniff::Contents;
use shared::grammar::auto::Auto;
use training::choice::{self, Choice, SIMPLER};
use training::events::{Observer as _, RunEvent};
use training::input::format::Ambiguous;
use training::job::{CorpusTable, ModelTable};
use training::progress::Progress;

use super::Answer;
use super::train::FOREVER;
use effort::Effort;
use reading::ReadingOptions;
use sampling::{ModelFile, Sampling};
use text::Text;
use time_limit::within;

/// Arguments of `segment`.
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:\n\
    \x20 grammaton segment text.txt\n\
    \x20 grammaton segment text.txt --out words --seconds 600\n\
    \x20 grammaton segment phonemes.txt --unit token --grammar colloc-syllable --quiet")]
pub struct Args {
    /// Text with one utterance per line, plain, .gz or .zst; `-` for standard input. Spaces in its lines are gold word boundaries, which are
    /// scored against and otherwise ignored
    text: PathBuf,
    /// Grammars, as listed by `grammaton grammars`, with commas between them, whose models vote; auto: chosen by short trials
    /// on the text
    #[arg(long, value_name = "NAMES", default_value = AUTO, value_delimiter = ',')]
    grammar: Vec<String>,
    /// Vowels, with spaces between them [default: found in the text]
    #[arg(long, value_name = "SYMBOLS", default_value = "")]
    vowels: String,
    /// Symbols that mark stress, with spaces between them, for a grammar with stress [default: ˈ ˌ]
    #[arg(long, value_name = "SYMBOLS", default_value = "", hide_default_value = true)]
    stress: String,
    /// Format and cleaning of the text
    #[command(flatten)]
    reading: ReadingOptions,
    /// Chains and results
    #[command(flatten)]
    sampling: Sampling,
}

/// The choice of a grammar by the text.
const AUTO: &str = "auto";

/// Runs the command.
pub fn run(args: &Args, log: Form) -> Result<Answer> {
    let text = given_text(&args.text, Contents::Utterances, &args.reading, "segment")?;
    let folder = args.sampling.folder(&text)?;
    if let Some(answer) = args.sampling.resume(&folder, &text, log)? {
        return Ok(answer);
    }
    let mut model = model(&text, &args.grammar, &args.vowels, &args.sampling, log)?;
    if !args.stress.trim().is_empty() {
        model.keys.push(("stress", args.stress.trim().to_owned()));
    }
    args.sampling.segment(&folder, &text, &model, log)
}

/// The text at `path` for a command of that name, with notices.
pub fn given_text(path: &Path, contents: Contents, options: &ReadingOptions, command: &str) -> Result<Text> {
    let text = Text::read(path, contents, options).map_err(|error| match error.downcast::<Ambiguous>() {
        Ok(ambiguous) => anyhow!(ambiguous.of_command(&format!("grammaton {command} {}", path.display()))),
        Err(error) => error,
    })?;
    text.notices.iter().for_each(|notice| streams::tell(&format!("notice: {notice}")));
    Ok(text)
}

/// The model of a text with these grammars and vowels; if vowels are not given, training finds them. The time of trials is in
/// [`ModelFile::spent`].
pub fn model(
    text: &Text,
    names: &[String],
    vowels: &str,
    sampling: &Sampling,
    log: Form,
) -> Result<ModelFile> {
    let vowels = vowels.trim();
    let keys = if vowels.is_empty() { Vec::new() } else { vec![("vowels", vowels.to_owned())] };
    let names: Vec<&str> = names.iter().map(|name| name.trim()).collect();
    let begun = clock::now();
    let (mut grammars, effort, reason, simpler): (Vec<Auto>, Effort, Option<String>, Vec<Auto>) =
        match names[..] {
            [AUTO] => {
                let Choice { grammar, voter, reason } = choose(text, vowels, sampling, log)?;
                let effort = match voter {
                    Some(_) => Effort { chains: 2, voter_chains: Some(1), sweeps: sweeps(text) },
                    None => SHORT,
                };
                let grammars = std::iter::once(grammar).chain(voter).collect();
                (grammars, effort, Some(reason), SIMPLER.to_vec())
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
    Ok(ModelFile { grammar, voters, simpler, effort, cascade: 0, reason, spent, keys, files: Vec::new() })
}

/// The choice of grammars for a text, by trials on a fleet of their own. They take less than half of the time, if it is limited.
fn choose(text: &Text, vowels: &str, sampling: &Sampling, log: Form) -> Result<Choice> {
    let table = CorpusTable { unit: text.corpus().unit, ..CorpusTable::default() };
    let model = ModelTable { vowels: vowels.to_owned(), ..ModelTable::default() };
    let mut progress = Progress::new(sampling.style(log));
    let (limit, share) = match sampling.seconds {
        Some(seconds) => (seconds / 2, (seconds.as_secs_f64() / SECONDS_OF_TRIALS).min(1.0)),
        None => (FOREVER, 1.0),
    };
    let choice = within(limit, sampling.fleet().config()?, |fleet| {
        let choice = choice::choose(text.corpus(), &table, &model, share, fleet, &mut progress)?;
        match sampling.seconds {
            // The grammars are measured.
            Some(_) => Ok(choice),
            None => choice.of_able(text.corpus(), &table, &model, fleet),
        }
    })?;
    let choice = choice.unwrap_or_else(|| Choice {
        grammar: SIMPLER[0],
        voter: None,
        reason: format!("trials take longer than half of --seconds {}", limit.as_secs_f64() * 2.0),
    });
    progress.on(&RunEvent::Notice(&choice.reason))?;
    Ok(choice)
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

    use training::job::{GrammarSource, Job};

    use super::*;

    fn text() -> Text {
        let file = tempfile::NamedTempFile::new().unwrap();
        fs::write(&file, "abab\nba\nab\n").unwrap();
        Text::read(file.path(), Contents::Utterances, &ReadingOptions::default()).unwrap()
    }

    /// The model of [`text`] with a grammar of that name.
    fn model_of(name: &str, sampling: &Sampling) -> ModelFile {
        model(&text(), &[name.to_owned()], "a", sampling, Form::Text).unwrap()
    }

    #[test]
    fn trials_are_part_of_the_time_spent() {
        let sampling = Sampling { quiet: true, workers: Some(1), ..Sampling::default() };
        let [chosen, named] = [AUTO, "unigram"].map(|name| model_of(name, &sampling));
        assert!(chosen.reason.is_some() && chosen.voters.len() == 1);
        assert!(chosen.spent > named.spent, "{:?} {:?}", chosen.spent, named.spent);
    }

    /// The grammar, restarts and sweeps of the job of the text, with that time of which `spent` is over.
    fn effort(seconds: Duration, spent: Duration, simpler: &[Auto]) -> Result<(GrammarSource, usize, usize)> {
        let sampling =
            Sampling { seconds: Some(seconds), workers: Some(1), quiet: true, ..Sampling::default() };
        let dir = tempfile::tempdir().unwrap();
        let model = ModelFile { spent, simpler: simpler.to_vec(), ..model_of("colloc-syllable", &sampling) };
        let job = Job::load(&sampling.write_job(&text(), &model, dir.path(), Form::Text)?, &[]).unwrap();
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
