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
//! A text of more symbols than there are sounds gets three levels of words whose symbols have probabilities by position, without a trial. In Chinese, whose
//! words have one or two characters, their vote cuts too rarely, so a boundary is printed where half of the samples have it; in scripts of syllables, whose
//! words are longer, the vote does not.
//!
//! Trials cut long utterances, whose cost grows with the cube of their length. A grammar that cannot analyse the longest utterance of the corpus is
//! left out, and a simpler one takes its place.
//!
//! With annotated sentences their boundaries decide ([`annotated`]).
//!
//! Law: the choice depends on the corpus, on what is known of its sentences, on what the model table says of the language and on the share of the usual work,
//! and on nothing else; so a job that goes on from a checkpoint chooses the same grammars.

pub mod annotated;

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::ops::RangeInclusive;
use std::path::Path;

use anyhow::{Context as _, Result, ensure};
use fleet::Map;
use grammaton::data::corpus::{Corpus, Format, Options, write_line};
use grammaton::data::eval::segmentation::score;
use grammaton::data::vowels::{Sentences, n_nuclei};
use grammaton::grammar::auto::Auto;
use grammaton::models::baselines::Baseline;
use grammaton::models::decode::Decoder;

use crate::events::{Observer, RunEvent};
use crate::input;
use crate::input::segmented_file::{Annotated, SegmentedFile};
use crate::job::{CorpusTable, GrammarSource, Job, ModelTable};
use crate::metrics::decoder_name;
use crate::train::checkpoint::Checkpoints;
use crate::train::group::Inputs;
use crate::train::prepare;
use crate::train::segment_lengths::MANY_SYMBOLS;
use crate::train::train;

/// Grammars, and why.
pub struct Choice {
    /// The grammar.
    pub grammar: Auto,
    /// Another grammar, whose models vote with its models; none for texts of many symbols.
    pub voter: Option<Auto>,
    /// `output.threshold`: the share of the samples that have a boundary which is printed; 0 if the models vote.
    pub threshold: f64,
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

/// The share of the samples that have a boundary which is printed in a Chinese text.
const HALF: f64 = 0.5;
/// Blocks of Chinese characters in Unicode 17.
const CHINESE: [RangeInclusive<char>; 4] =
    ['\u{3400}'..='\u{4dbf}', '\u{4e00}'..='\u{9fff}', '\u{f900}'..='\u{faff}', '\u{20000}'..='\u{3347f}'];

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
/// Symbols of an utterance in a trial at most; longer ones are cut.
const LONGEST: usize = 60;
/// Cubes of the lengths of a trial's utterances at most, in all: 1,000 utterances of 25 symbols.
const CUBES: usize = 1_000 * 25 * 25 * 25;

/// Length up to which every grammar analyses an utterance.
const ALWAYS: usize = 200;
/// Grammars of sounds or letters in place of those that cannot analyse the longest utterance, or take too long for it; each costs less than the
/// one before.
pub const SIMPLER: [Auto; 3] = [ONE_LEVEL, Auto::COLLOC, Auto::UNIGRAM];

/// The same for `grammar`, which may be one of many symbols.
pub fn simpler(grammar: Auto) -> &'static [Auto] {
    if grammar.has_positions() { &[Auto::COLLOC_POSITIONS, Auto::UNIGRAM_POSITIONS] } else { &SIMPLER }
}

/// The job with what is chosen for its corpus, if it leaves the choice open; `fleet` computes the trials. What the job says of votes and thresholds itself, stays.
pub fn chosen(job: &Job, fleet: &dyn Map, observer: &mut dyn Observer) -> Result<Option<Job>> {
    if job.model.grammar != GrammarSource::Choose {
        return Ok(None);
    }
    let (corpus, _) = input::corpus(&job.corpus.path, &job.corpus.options())?;
    let CorpusTable { annotated, .. } = &job.corpus;
    let annotated = if annotated.as_os_str().is_empty() {
        Annotated::default()
    } else {
        let marks = job.corpus.position_marks();
        SegmentedFile::read(annotated, &job.corpus.options(), &marks)?.known_in(&corpus)
    };
    let (table, model) = (&job.corpus, &ModelTable { inner_vowels: true, ..job.model.clone() });
    let choice = choose(&corpus, &annotated, &mut Trials { table, model, share: 1.0, fleet, observer })?;
    let choice = choice.of_able(&corpus, table, model, fleet)?;
    observer.on(&RunEvent::Notice(choice.reason.clone()))?;
    Ok(Some(choice.of_job(job)))
}

/// A job in which is open again what `open` leaves to the choice: of two jobs that were chosen for the same one, the same.
pub fn opened(mut job: Job, open: &Job) -> Job {
    if open.model.grammar != GrammarSource::Choose {
        return job;
    }
    let ModelTable { grammar, voters, voter_chains, .. } = open.model.clone();
    job.model = ModelTable { grammar, voters, voter_chains, ..job.model };
    job.model.inner_vowels &= open.model.inner_vowels;
    if open.model.baselines.is_empty() {
        job.model.baselines.clear();
    }
    if open.output.threshold == 0.0 {
        job.output.threshold = 0.0;
        job.output.contexts &= open.output.contexts;
    }
    job
}

/// Short chains on a part of a corpus.
pub struct Trials<'a> {
    /// How the corpus was read.
    pub table: &'a CorpusTable,
    /// What is known of the language. Vowels are found if there are none.
    pub model: &'a ModelTable,
    /// The share of the usual work.
    pub share: f64,
    /// Computes the chains.
    pub fleet: &'a dyn Map,
    /// Hears of each trial.
    pub observer: &'a mut dyn Observer,
}

/// The choice for a corpus of utterances: by trials alone, unless sentences are `annotated` by which another grammar is better.
///
/// # Errors
/// Those of trials.
pub fn choose(corpus: &Corpus, annotated: &Annotated, trials: &mut Trials<'_>) -> Result<Choice> {
    let without = by_trials(corpus, trials)?;
    if annotated.is_empty() {
        return Ok(without);
    }
    let others = if without.grammar.has_positions() { simpler(without.grammar) } else { &OF_SOUNDS };
    let others = others.iter().filter(|grammar| **grammar != without.grammar);
    let grammars: Vec<Auto> = std::iter::once(&without.grammar).chain(others).copied().collect();
    let (grammar, reason) = annotated::best(corpus, annotated, &grammars, trials)?;
    let reason = format!("{}; {reason}", without.reason);
    // The default votes with one that is better.
    let voter = without.voter.map(|voter| if grammar == without.grammar { voter } else { without.grammar });
    Ok(Choice { grammar, voter, threshold: without.threshold, reason })
}

/// Grammars of utterances in sounds or letters.
const OF_SOUNDS: [Auto; 5] = [THREE_LEVELS, ONE_LEVEL, FUNCTION_WORDS, Auto::COLLOC, Auto::UNIGRAM];

impl Choice {
    /// Segmentations without training that vote with the models.
    pub fn baselines(&self) -> Vec<Baseline> {
        if self.grammar.has_positions() { Vec::new() } else { vec![Baseline::Puddle] }
    }

    /// Whether the symbols around boundaries vote.
    pub fn contexts(&self) -> bool {
        self.threshold == 0.0
    }

    /// A job that leaves the choice open, with this choice ([`opened`] is the way back).
    fn of_job(&self, job: &Job) -> Job {
        let voters = self.voter.into_iter().map(GrammarSource::Auto).collect();
        let mut job = job.with_grammars(GrammarSource::Auto(self.grammar), voters);
        job.model.inner_vowels |= self.grammar.has_syllables() || self.voter.is_some_and(Auto::has_syllables);
        if job.model.baselines.is_empty() {
            job.model.baselines = self.baselines();
        }
        if job.output.threshold == 0.0 {
            job.output.threshold = self.threshold;
            job.output.contexts |= self.contexts();
        }
        job
    }

    /// The choice without the grammars that cannot analyse the longest utterance, or else the first simpler one that can.
    pub fn of_able(
        self,
        corpus: &Corpus,
        table: &CorpusTable,
        model: &ModelTable,
        fleet: &dyn Map,
    ) -> Result<Choice> {
        let mut reason = self.reason;
        let mut is_able = |grammar: Auto| match unable(corpus, grammar, table, model, fleet)? {
            None => Ok(true),
            Some(why) => {
                write!(reason, "; without {grammar}: {why}")?;
                Ok(false)
            }
        };
        let grammars: Vec<Auto> = std::iter::once(self.grammar).chain(self.voter).collect();
        let able = able(&grammars, &mut is_able)?;
        let grammar = able.first().copied().context("no grammar can analyse the longest line; split it")?;
        Ok(Choice { grammar, voter: able.get(1).copied(), threshold: self.threshold, reason })
    }
}

/// Why a grammar cannot analyse the longest utterance of a corpus that was read as `table` says; nothing if it can.
pub fn unable(
    corpus: &Corpus,
    grammar: Auto,
    table: &CorpusTable,
    model: &ModelTable,
    fleet: &dyn Map,
) -> Result<Option<String>> {
    let longest = (0..corpus.sentences.len()).max_by_key(|&at| corpus.sentences[at].len());
    let Some(longest) = longest.filter(|&at| corpus.sentences[at].len() > ALWAYS) else { return Ok(None) };
    let dir = tempfile::tempdir().context("cannot create a temporary folder")?;
    let job = trial_job(&corpus.subset(&[longest]), grammar, 2, table, model, dir.path())?;
    let inputs = Inputs::load(&job)?;
    let [underivable, too_ambiguous] = prepare::without_forest(fleet, inputs.first())?;
    let why = match (underivable.is_empty(), too_ambiguous.is_empty()) {
        (true, true) => return Ok(None),
        (false, _) => "has no derivation",
        (true, false) => "has derivations that would take too much memory",
    };
    let (line, n_symbols) = (corpus.lines[longest], corpus.sentences[longest].len());
    Ok(Some(format!("line {line} of {n_symbols} symbols {why}")))
}

/// Those of `grammars` that are able to analyse the longest utterance, or else the first simpler one that is.
fn able(grammars: &[Auto], is_able: &mut dyn FnMut(Auto) -> Result<bool>) -> Result<Vec<Auto>> {
    let mut able = Vec::new();
    for &grammar in grammars {
        if is_able(grammar)? {
            able.push(grammar);
        }
    }
    let mut simpler = grammars.first().map_or(&[][..], |first| simpler(*first)).iter().copied();
    while able.is_empty()
        && let Some(grammar) = simpler.find(|grammar| !grammars.contains(grammar))
    {
        if is_able(grammar)? {
            able.push(grammar);
        }
    }
    Ok(able)
}

/// The choice for a corpus, whatever the length of its utterances.
fn by_trials(corpus: &Corpus, trials: &mut Trials<'_>) -> Result<Choice> {
    let n_symbols = corpus.symbols.len();
    if n_symbols > MANY_SYMBOLS {
        let grammar = Auto::COLLOC3_POSITIONS;
        let threshold = if is_chinese(&corpus.symbols) { HALF } else { 0.0 };
        let reason = format!("{n_symbols} symbols are more than single sounds");
        return Ok(Choice { grammar, voter: None, threshold, reason });
    }
    let vowels: BTreeSet<String> = match trials.model.vowels.trim() {
        "" => found_vowels(&corpus.sentences, &corpus.symbols),
        vowels => vowels.split_whitespace().map(str::to_owned).collect(),
    };
    let (pair, reason) = match corpus.symbols.iter().filter(|symbol| vowels.contains(*symbol)).count() {
        // Every word would have one syllable, or as many as symbols.
        n if n == 0 || n == n_symbols => {
            (MOSTLY_THREE_LEVELS, "vowels and consonants cannot be distinguished".to_owned())
        }
        _ => {
            let part = part(corpus, trials.share, &Annotated::default()).0;
            let three_levels = trials.segment(&part, THREE_LEVELS)?;
            let short = share_of_one_syllable(&three_levels, &vowels);
            decide(short, |grammar| Ok(agreement(&three_levels, &trials.segment(&part, grammar)?)))?
        }
    };
    Ok(Choice { grammar: pair[0], voter: Some(pair[1]), threshold: 0.0, reason })
}

/// Utterances for a trial of a `share` of the usual work, and their positions: `annotated` ones and others, each evenly spaced; so many that none of
/// [`UTTERANCES`], [`SYMBOLS`] and [`CUBES`] is exceeded. Those beyond [`LONGEST`] symbols are cut.
fn part(corpus: &Corpus, share: f64, annotated: &Annotated) -> (Corpus, Vec<usize>) {
    let lengths = || corpus.sentences.iter().map(|sentence| sentence.len().min(LONGEST));
    let total = corpus.sentences.len();
    let most = |limit: usize, sum: usize| (share * (limit * total) as f64 / sum.max(1) as f64) as usize;
    let by_symbols = most(SYMBOLS, lengths().sum());
    let by_cubes = most(CUBES, lengths().map(|n| n.pow(3)).sum());
    let n = most(UTTERANCES, total).min(by_symbols).min(by_cubes).clamp(1, total);
    let is_annotated = |at: &usize| annotated.contains_key(&corpus.sentences[*at]);
    let (first, others): (Vec<usize>, Vec<usize>) = (0..total).partition(is_annotated);
    let n_first = n.min(first.len());
    let spaced = |of: &[usize], n: usize| (0..n).map(|at| of[at * of.len() / n]).collect::<Vec<_>>();
    let mut positions = [spaced(&first, n_first), spaced(&others, n - n_first)].concat();
    positions.sort_unstable();
    let mut part = corpus.subset(&positions);
    part.sentences.iter_mut().for_each(|sentence| sentence.truncate(LONGEST));
    part.gold = None;
    (part, positions)
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
    Ok(if agreed >= LEVELS_AGREE {
        (MOSTLY_THREE_LEVELS, reason + ": mostly three levels, no function words")
    } else {
        (MOSTLY_ONE_LEVEL, reason + ": mostly one level, no function words")
    })
}

/// Whether most of these symbols are Chinese characters, as in Japanese too.
fn is_chinese(symbols: &[String]) -> bool {
    let is_character = |symbol: &&String| {
        symbol.chars().all(|character| CHINESE.iter().any(|block| block.contains(&character)))
    };
    2 * symbols.iter().filter(is_character).count() > symbols.len()
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

impl Trials<'_> {
    /// `part` as the model of a short chain segments it.
    fn segment(&mut self, part: &Corpus, grammar: Auto) -> Result<Corpus> {
        let n = part.sentences.len();
        self.observer.on(&RunEvent::Notice(format!("trial of {grammar} on {n} lines")))?;
        let dir = tempfile::tempdir().context("cannot create a temporary folder")?;
        let job = trial_job(part, grammar, SWEEPS, self.table, self.model, dir.path())?;
        let unit = job.corpus.options().effective_unit();
        let mut observer = OfFleet(self.observer);
        let inputs = Inputs::load(&job)?;
        let mut outcome = train(&job, &inputs, self.fleet, &mut Checkpoints::none(), &mut observer)?;
        let name = decoder_name(Decoder::Mbr);
        let decoding = outcome.decodings.iter_mut().find(|decoding| decoding.name == name);
        let mut segmented = Vec::new();
        decoding
            .context("internal error: a trial has no segmentation; please report it")?
            .segmentations
            .copy_to(&mut segmented)?;
        let options = Options { unit, format: Format::Segmented, ..job.corpus.options() };
        let (corpus, _) = Corpus::read(&segmented[..], "the trial", &options)?;
        ensure!(corpus.sentences.len() == n, "internal error: a trial lost lines; please report it");
        Ok(corpus)
    }
}

/// The job of a trial of `part`, which is written to `dir`: one chain, with what the tables say of the text and of its vowels.
fn trial_job(
    part: &Corpus,
    grammar: Auto,
    sweeps: u32,
    table: &CorpusTable,
    model: &ModelTable,
    dir: &Path,
) -> Result<Job> {
    let hyperparameters = hyperparameters(grammar);
    let text = format!(
        "[model]\ngrammar = \"auto:{grammar}\"\n[corpus]\npath = \"corpus.txt\"\n\
         [inference]\nmethod = \"hastings\"\n{hyperparameters}max_rounds = {sweeps}\nkeep_every = 2\n\
         [output]\ndir = \".\"\ndecoders = [\"mbr\"]\nscore_every = 0\n"
    );
    let mut job = Job::parse(&text, "the trial", dir, &[])?;
    let (kind, grammar, voters) = (job.model.kind, job.model.grammar, job.model.voters);
    job.model = ModelTable { kind, grammar, voters, voter_chains: 0, cascade: 0, ..model.clone() };
    let CorpusTable { path, gold, held_out, held_out_share, test, .. } = job.corpus;
    let mut table = table.clone().of_plain_lines();
    table.remove_annotations();
    job.corpus = CorpusTable { path, gold, held_out, held_out_share, test, ..table };
    let unit = job.corpus.options().effective_unit();
    let lines = part.sentences.iter().zip(part.segmentation());
    let lines = lines.map(|(sentence, ends)| write_line(&part.symbols, sentence, &ends, unit) + "\n");
    std::fs::write(&job.corpus.path, lines.collect::<String>())
        .with_context(|| format!("{}: cannot write the file", job.corpus.path.display()))?;
    Ok(job)
}

/// Keys of `[inference]` about discounts and concentrations. In grammars of morphemes they start at the means of their priors, which prefer few tables:
/// with those of utterances, chains of fifty sweeps end with a lower log P and find fewer boundaries (docs/results/segment.md).
pub fn hyperparameters(grammar: Auto) -> &'static str {
    if grammar.has_affixes() {
        "discount = 0.5\nconcentration = 1.0\ngamma_shape = 10.0\ngamma_scale = 0.1\n"
    } else {
        "discount = 0.0001\nconcentration = 10000.0\n"
    }
}

/// Passes on what happens to the fleet during a trial, and nothing that would look like the run that follows.
struct OfFleet<'a>(&'a mut dyn Observer);

impl Observer for OfFleet<'_> {
    fn on(&mut self, event: &RunEvent) -> Result<()> {
        match event {
            RunEvent::Fleet(_) => self.0.on(event),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Law: what the job says itself stays, all else is chosen, and what was chosen can be left open again.
    #[test]
    fn a_choice_keeps_what_the_job_says_and_can_be_taken_back() {
        let settings = [
            "",
            "model.baselines=[\"dibs\"]",
            "output.threshold=0.4",
            "output.contexts=true",
            "model.inner_vowels=true",
            "model.voter_chains=3",
        ];
        for [one, other] in settings.iter().flat_map(|one| settings.map(|other| [*one, other])) {
            let set: Vec<String> =
                [one, other].iter().filter(|set| !set.is_empty()).map(|set| (*set).to_owned()).collect();
            let text = "[model]\ngrammar = \"auto\"\n[corpus]\npath = \"a.txt\"\n[inference]\nmethod = \"hastings\"\n";
            let open = Job::parse(text, "job.toml", Path::new("."), &set).unwrap();
            for (grammar, voter, threshold) in [
                (THREE_LEVELS, Some(ONE_LEVEL), 0.0),
                (Auto::UNIGRAM, None, 0.0),
                (Auto::COLLOC3_POSITIONS, None, HALF),
            ] {
                let choice = Choice { grammar, voter, threshold, reason: String::new() };
                let job = choice.of_job(&open);
                let says = |key: &str| set.iter().any(|set| set.starts_with(key));
                assert_eq!(job.model.grammar, GrammarSource::Auto(grammar));
                let dibs = says("model.baselines").then(|| vec![Baseline::Dibs]);
                assert_eq!(job.model.baselines, dibs.unwrap_or_else(|| choice.baselines()));
                assert_eq!(job.output.threshold, if says("output.threshold") { 0.4 } else { threshold });
                let is_voting = job.output.threshold == 0.0;
                assert_eq!(job.output.contexts, is_voting || says("output.contexts"), "{set:?}");
                assert_eq!(job.model.inner_vowels, grammar.has_syllables() || says("model.inner_vowels"));
                assert_eq!(opened(job, &open).to_toml(), open.to_toml(), "{set:?}");
            }
        }
    }

    proptest! {
        #[test]
        fn trials_have_bounded_work(
            lengths in proptest::collection::vec(prop_oneof![1..30_usize, 30..3_000_usize], 1..200),
            share in 0.01..1.0,
            first in proptest::collection::vec(any::<bool>(), 1..9),
        ) {
            let lines: String = lengths.iter().map(|&n| "ab".repeat(n).split_off(n) + "\n").collect();
            let (corpus, _) = Corpus::read(lines.as_bytes(), "text", &Options::default()).unwrap();
            let total = corpus.sentences.len();
            let of_first = (0..total).filter(|at| first[at % first.len()]).map(|at| corpus.sentences[at].clone());
            let annotated: Annotated = of_first.map(|sentence| (sentence, Vec::new())).collect();
            let first: Vec<usize> = (0..total).filter(|&at| annotated.contains_key(&corpus.sentences[at])).collect();
            let (part, positions) = part(&corpus, share, &annotated);
            let n = part.sentences.len();
            prop_assert!((1..=total).contains(&n));
            prop_assert!(positions.is_sorted_by(|a, b| a < b));
            let n_first = positions.iter().filter(|at| first.contains(at)).count();
            prop_assert_eq!(n_first, n.min(first.len()));
            prop_assert!(part.sentences.iter().all(|sentence| sentence.len() <= LONGEST));
            prop_assert!(n == 1 || n as f64 <= share * UTTERANCES as f64);
            for (sentence, at) in part.sentences.iter().zip(positions) {
                prop_assert_eq!(&sentence[..], &corpus.sentences[at][..lengths[at].min(LONGEST)]);
            }
        }
    }

    #[test]
    fn grammars_that_cannot_analyse_the_longest_line_are_left_out() {
        let simple = |grammar: Auto| SIMPLER.contains(&grammar);
        let unigram = |grammar| grammar == Auto::UNIGRAM;
        for (grammars, is_able, expected) in [
            (MOSTLY_FUNCTION_WORDS, &(|_| true) as &dyn Fn(Auto) -> bool, MOSTLY_FUNCTION_WORDS.to_vec()),
            (MOSTLY_THREE_LEVELS, &simple, vec![ONE_LEVEL]),
            (MOSTLY_ONE_LEVEL, &unigram, vec![Auto::UNIGRAM]),
            (MOSTLY_FUNCTION_WORDS, &simple, vec![ONE_LEVEL]),
            (MOSTLY_FUNCTION_WORDS, &|_| false, vec![]),
        ] {
            assert_eq!(able(&grammars, &mut |grammar| Ok(is_able(grammar))).unwrap(), expected);
        }
    }

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
