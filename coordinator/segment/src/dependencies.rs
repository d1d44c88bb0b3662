//! The heads of tagged words, without a job file: which model, start, rules and decoder, chosen without gold.
//!
//! In: sentences in CoNLL-U, or a word, its tag and perhaps its head a line. Out: a corpus and a job file, which `grammaton train` trains as any
//! other, and after that the sentences with the heads that it found. Everything is deterministic, so that there is no seed.
//!
//! The choice (docs/results/dmv.md): the dependency model with extended valence by variational Bayes from the harmonic start, with the
//! rules `ud` where tags are universal and on the shortest sentences that have [`ENOUGH_WORDS`] together, read by MBR.
//! Where tags are universal and the user wants no rules, [`biases`] that are counted in the sentences take their place, with more pseudo-counts.
//! Without either it is the model without extended valence on sentences of up to ten words. Words without tags get [`WordClasses`] for tags, with biases, and are written
//! with them to the corpus; a raw text is written as CoNLL-U.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, anyhow, bail, ensure};
use grammaton::data::dependency::{Document, Punctuation, Sentence, SentenceError, Tags, select};
use grammaton::data::tags::Tagged;
use grammaton::models::decode::Decoder;
use grammaton::models::dmv::biases;
use grammaton::models::dmv::heads::have_tree;
use grammaton::models::dmv::rules::{Rule, RuleSet, Unsuited};
use grammaton::models::word_classes::WordClasses;
use serde::Deserialize;
use training::input;
use training::job::Job;
use training::metrics::decoder_name;
use training::word_classes;

use crate::sampling::{JOB, MARK, is_own, title, write};

/// The sentences that the job reads.
pub const CORPUS: &str = "corpus.conllu";
/// The sentences with the heads that were found.
pub const FOUND: &str = "dependencies.conllu";
/// Words of the sentences to train on with rules, at least, if there are as many.
pub const ENOUGH_WORDS: usize = 3000;
/// Lengths of the longest sentence to train on.
const LENGTHS: [usize; 7] = [10, 15, 20, 25, 30, 35, 40];
/// Pseudo-counts of every event, with rules or without any.
const ALPHA: f64 = 0.25;
/// Words to train on for each pseudo-count of every event, with biases.
const WORDS_PER_PSEUDO_COUNT: f64 = 375.0;
/// Words to train on for each pseudo-count of the backoff, with rules or biases.
const WORDS_PER_BACKOFF: f64 = 25.0;
const DECODER: Decoder = Decoder::MbrArcs;

/// Where tags are from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TagSource {
    /// A column of the file.
    Column(Tags),
    /// The words: [`WordClasses`].
    Induced,
}

/// What the user says.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// The tags; `None`: the universal ones if all words have one, else those of the language, or if no word has any, induced ones.
    pub tags: Option<TagSource>,
    /// The rules; `None`: `ud` for universal tags, else none.
    pub rules: Option<RuleSet>,
    /// Whether trees have the heads that the file gives.
    pub constrain: bool,
    /// Whether files of the folder may be replaced.
    pub overwrite: bool,
}

/// Sentences, and how heads are found.
pub struct Parsing {
    /// Name of the file for messages.
    name: String,
    text: String,
    tags: Tags,
    /// Induced tags.
    classes: Option<WordClasses>,
    rules: RuleSet,
    /// Whether the rules are biases, counted in the sentences.
    is_biased: bool,
    /// Pseudo-counts.
    alpha: f64,
    /// Pseudo-counts of the backoff; 0 without extended valence.
    backoff: f64,
    constrain: bool,
    overwrite: bool,
    /// Words of the longest sentence to train on.
    max_length: usize,
    /// What was chosen.
    pub notices: Vec<String>,
}

/// A file of rules.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RulesFile {
    rules: Vec<toml::Value>,
}

/// The rules of a name, `none` or `ud`, or of a file in TOML with `rules = [...]`.
///
/// # Errors
/// With the name of the file.
pub fn rules(name: &str) -> Result<RuleSet> {
    match name {
        "none" => return Ok(RuleSet::None),
        "ud" => return Ok(RuleSet::Ud),
        _ => {}
    }
    let text = fs::read_to_string(name)
        .with_context(|| format!("--rules {name}: expected none, ud, or a file of rules"))?;
    let RulesFile { rules } = toml::from_str(&text).map_err(|error| {
        let line = error.span().map_or(1, |span| text[..span.start].matches('\n').count() + 1);
        anyhow!("{name}:{line}: {}", error.message())
    })?;
    let rule = |(at, rule): (usize, toml::Value)| {
        Rule::deserialize(rule).map_err(|error| anyhow!("{name}: rule {at}: {}", error.message()))
    };
    Ok(RuleSet::Own((1..).zip(rules).map(rule).collect::<Result<_>>()?))
}

impl Parsing {
    /// Reads the sentences at `path`, which is `-` for standard input, and chooses.
    ///
    /// # Errors
    /// If the file cannot be read, or rules are of other tags.
    pub fn read(path: &Path, options: Options) -> Result<Parsing> {
        let Options { tags, rules, constrain, overwrite } = options;
        let (name, bytes) = input::named_bytes(path, "sentences")?;
        let mut text = input::decoded(&bytes, &name)?;
        let mut induce = tags == Some(TagSource::Induced);
        ensure!(
            induce || text.contains('\t') || text.trim().is_empty(),
            "{name}: no tabs separate words, tags and heads; for a text with one sentence a line, use --tags induce"
        );
        let words =
            |document: &Document| select(&document.sentences, Punctuation::Removed, usize::MAX).sentences;
        let read = |tags| Ok::<_, SentenceError>(words(&Document::read(&bytes, &name, tags)?));
        let count = |sentences: &[Sentence], is_counted: fn(&str) -> bool| -> usize {
            let tags = sentences.iter().flat_map(|sentence| &sentence.tags);
            tags.filter(|tag| is_counted(tag)).count()
        };
        let is_missing = |tag: &str| tag == "_";
        let mut notices = Vec::new();
        let mut column = match tags {
            Some(TagSource::Column(tags)) => tags,
            _ => Tags::default(),
        };
        let mut sentences = if induce { Vec::new() } else { read(column)? };
        if tags.is_none() && count(&sentences, is_missing) > 0 {
            let others = read(Tags::Xpos)?;
            if count(&others, is_missing) == 0 {
                notices.push(
                    "not all words have a universal tag, so the tags of the language are read (--tags)"
                        .to_owned(),
                );
                (column, sentences) = (Tags::Xpos, others);
            } else {
                induce = [&sentences, &others].iter().all(|all| count(all, |tag| tag != "_") == 0);
            }
        }
        let mut classes = None;
        if induce {
            notices.push("tags are induced: classes of words in similar contexts (--tags)".to_owned());
            let document = input::untagged(&bytes, &name)?;
            let induced = WordClasses::induce(&document.sentences);
            let tagged = word_classes::tagged(&document, &induced, &name)?;
            (column, sentences, text) = (Tags::Xpos, words(&tagged.0), tagged.1);
            classes = Some(induced);
        }
        ensure!(!sentences.is_empty(), "{name}: all sentences are punctuation alone");
        let names = Tagged::new(&sentences).tags.names;
        let is_given = rules.is_some();
        ensure!(
            !(induce && rules == Some(RuleSet::Ud)),
            "{name}: --rules ud is of universal tags, and the tags are induced; leave out --rules"
        );
        let mut rules = rules.unwrap_or(RuleSet::Ud);
        match rules.factors(&names, 1.0) {
            Err(Unsuited::NotUniversal) if !is_given => {
                rules = RuleSet::None;
                if !induce {
                    notices
                        .push("the tags are not universal, so that no rules are used (--rules)".to_owned());
                }
            }
            found => {
                found.with_context(|| format!("{name}: --rules"))?;
            }
        }
        let is_biased = rules == RuleSet::None && (induce || RuleSet::Ud.factors(&names, 1.0).is_ok());
        if is_biased {
            // The job leaves out the others, and refuses rules of tags that it does not have.
            let has_tree = |sentence: &&Sentence| !constrain || have_tree(&sentence.given);
            let counted: Vec<Sentence> = sentences.iter().filter(has_tree).cloned().collect();
            rules = RuleSet::Own(biases::of_sentences(&counted));
            notices.push(
                "no knowledge of the tags is used; counts of the words and tags of the text say which tags govern (--rules)"
                    .to_owned(),
            );
        }
        let n_words = |&longest: &usize| -> usize {
            let lengths = sentences.iter().map(Sentence::n_words);
            lengths.filter(|&n| n <= longest).sum()
        };
        let [.., most] = LENGTHS;
        // Without rules or biases longer sentences do harm.
        let enough = if rules.is_empty() { 1 } else { ENOUGH_WORDS };
        let enough = LENGTHS.into_iter().find(|longest| n_words(longest) >= enough);
        let shortest = sentences.iter().map(Sentence::n_words).min().unwrap_or(0);
        let max_length = enough.unwrap_or(most).max(shortest);
        let words_per = |n: f64| (n_words(&max_length) as f64 / n * 100.0).round() / 100.0;
        let alpha = if is_biased { words_per(WORDS_PER_PSEUDO_COUNT).max(ALPHA) } else { ALPHA };
        let backoff = if rules.is_empty() { 0.0 } else { words_per(WORDS_PER_BACKOFF) };
        Ok(Parsing {
            name,
            text,
            tags: column,
            classes,
            rules,
            is_biased,
            alpha,
            backoff,
            constrain,
            overwrite,
            max_length,
            notices,
        })
    }

    /// The column of the tags, as the job file names it.
    pub fn tag_column(&self) -> &'static str {
        match self.tags {
            Tags::Upos => "upos",
            Tags::Xpos => "xpos",
        }
    }

    /// Words of the longest sentence to train on.
    pub fn max_length(&self) -> usize {
        self.max_length
    }

    /// Whether there are rules.
    pub fn has_rules(&self) -> bool {
        !self.rules.is_empty()
    }

    /// Writes the sentences and the job to `dir`, and returns the path of the job file.
    ///
    /// # Errors
    /// If files would be overwritten that no earlier run wrote, or cannot be written.
    pub fn write_job(&self, dir: &Path) -> Result<PathBuf> {
        if !self.overwrite && !is_own(dir) {
            for path in [CORPUS, JOB, FOUND, word_classes::FILE].map(|name| dir.join(name)) {
                if path.exists() {
                    bail!(
                        "{}: the file would be overwritten; replace it with --overwrite, or choose another folder with --out DIR",
                        path.display()
                    );
                }
            }
        }
        fs::create_dir_all(dir).with_context(|| format!("{}: cannot create the folder", dir.display()))?;
        write(dir, CORPUS, &self.text)?;
        if let Some(classes) = &self.classes {
            write(dir, word_classes::FILE, &classes.to_tsv())?;
        }
        let job = self.job()?;
        Job::parse(&job, JOB, dir, &[])?;
        write(dir, JOB, &job)?;
        Ok(dir.join(JOB))
    }

    fn job(&self) -> Result<String> {
        let Parsing { max_length, alpha, backoff, .. } = self;
        let tags = self.tag_column();
        let rules = self.rules_in_job()?;
        let heads = if self.constrain { "heads = \"constrain\"\n" } else { "" };
        let (decoder, title) = (decoder_name(DECODER), title(&self.name));
        Ok(format!(
            "{MARK}. `grammaton train {JOB} --out again` gives the same result.\n\n\
             [model]\nkind = \"dmv\"\n\n\
             [corpus]\npath = \"{CORPUS}\"\nheld_out = \"{CORPUS}\"               # heads of sentences of every length are found\n\
             tags = \"{tags}\"\nmax_length = {max_length}\n{heads}on_unparsable = \"skip\"\n\n\
             [inference]\nmethod = \"vb\"\nalpha = {alpha}\nbackoff = {backoff}\nmax_rounds = 40\nstart = \"harmonic\"\n{rules}\n\
             [output]\ndir = \".\"\ntitle = {title}\ndecoders = [\"{decoder}\"]\nscore_every = 0\n"
        ))
    }

    /// The lines of the rules in the job file.
    fn rules_in_job(&self) -> Result<String> {
        let toml = |rules: &RuleSet| {
            toml::Value::try_from(rules).context("internal error: rules are no TOML; please report it")
        };
        Ok(match &self.rules {
            RuleSet::None => String::new(),
            RuleSet::Ud => {
                format!(
                    "rules = {}                          # knowledge put in, not learned\n",
                    toml(&self.rules)?
                )
            }
            RuleSet::Own(rules) if self.is_biased => {
                let line = |rule: &Rule| Ok(format!("  {},\n", toml(&RuleSet::Own(vec![rule.clone()]))?[0]));
                let lines: String = rules.iter().map(line).collect::<Result<_>>()?;
                format!(
                    "rules_weight = 1.0\n# Counted in {CORPUS}: frequent words govern little, tags spread evenly over sentences more.\n\
                     rules = [\n{lines}]\n"
                )
            }
            RuleSet::Own(_) => format!("rules = {}  # knowledge put in, not learned\n", toml(&self.rules)?),
        })
    }

    /// The path of the file that the results of the job have for [`FOUND`].
    fn parses(dir: &Path) -> PathBuf {
        dir.join(format!("parses.{}.conllu", decoder_name(DECODER)))
    }

    /// The sentences with the heads that the job in the folder found.
    ///
    /// # Errors
    /// If they cannot be read.
    pub fn found_in(&self, dir: &Path) -> Result<String> {
        let path = Parsing::parses(dir);
        fs::read_to_string(&path).with_context(|| format!("{}: cannot read the result", path.display()))
    }

    /// Files and keys of the job in a folder, each with what the user calls it.
    pub fn names_in(&self, dir: &Path) -> Vec<(String, String)> {
        let corpus = (dir.join(CORPUS).display().to_string(), self.name.clone());
        let options =
            [("corpus.tags", "--tags"), ("inference.rules", "--rules"), ("corpus.heads", "--constrain")];
        let options = options.map(|(key, option)| (key.to_owned(), option.to_owned()));
        std::iter::once(corpus).chain(options).collect()
    }
}
