//! What a run trains on: corpus, grammar, and the sentences as shards.

use std::path::Path;

use anyhow::{Context, Result, bail};
use shared::corpus::shards::{self, DEFAULT_SHARD_SYMBOLS, SentenceShard};
use shared::corpus::{Corpus, Notice};
use shared::grammar::outside::outside;
use shared::grammar::{Grammar, SUBSTRINGS, SymbolId, auto};
use shared::latent;
use shared::model::Model;
use shared::num::Noise;
use shared::shard::Lexicon;
use shared::task::{Analysis, Decoded};
use shared::tree::Tree;

use super::dependencies::{Dependencies, Loaded, TOKENS_PER_WORD};
use super::trees::Trees;
use crate::input;
use crate::job::{GrammarSource, InferenceTable, Job, Method, ModelKind, Point, Start};
use crate::model::SavedModel;
use crate::nearest::nearest;

/// Everything read and checked.
pub struct Input {
    /// The corpus.
    pub corpus: Corpus,
    /// The grammar.
    pub grammar: Grammar,
    /// The nonterminals whose constituents are the segments.
    pub segments: Vec<SymbolId>,
    /// Distinct sentences, in shards.
    pub shards: Vec<SentenceShard>,
    /// Sentences that are not trained on, in shards.
    pub held_out: Vec<SentenceShard>,
    /// The substrings of all sentences, for a PCFG; an adaptor grammar's strings are yet to be chosen.
    pub strings: Option<Lexicon>,
    /// The treebank, where labels have subtypes that nobody annotated.
    pub trees: Option<Trees>,
    /// Sentences with heads to find, of a dependency model.
    pub dependencies: Option<Dependencies>,
    /// Whether all runs are chains over an adaptor grammar, whose strings are those of their tables.
    pub chains: bool,
    /// Trees, or what gives trees, to start from, if some run does.
    pub start: Option<Given>,
    /// What the user should know about the files.
    pub notices: Vec<String>,
}

/// What runs start from.
pub enum Given {
    /// Trees of the corpus; for methods without chains, of any sentences.
    Trees(Vec<Tree>),
    /// A model, whose most probable trees these are.
    Model(Box<Model>),
}

/// The segments of a grammar whose job names none.
const DEFAULT_SEGMENT: &str = "Word";

impl Input {
    /// Reads the files of `job`.
    pub fn load(job: &Job) -> Result<Input> {
        match job.model.kind {
            ModelKind::PcfgLa => return Input::of_trees(job),
            ModelKind::Dmv => return Input::of_dependencies(job),
            ModelKind::Adaptor | ModelKind::Pcfg => {}
        }
        let options = job.corpus.options();
        let (mut corpus, notices) = Corpus::open(&job.corpus.path, &options)?;
        let mut notices: Vec<String> = notices.iter().map(ToString::to_string).collect();
        let (share, path) = (job.corpus.held_out_share, &job.corpus.held_out);
        let mut held_out = None;
        if !path.as_os_str().is_empty() {
            let (found, more) = Corpus::open(path, &options)?;
            // It is there to be predicted; gold is no matter.
            let more = more.iter().filter(|notice| !matches!(notice, Notice::NoGold { .. }));
            notices.extend(more.map(ToString::to_string));
            held_out = Some(found);
        } else if share > 0.0 {
            let (kept, rest) = corpus.split(share, Noise::new(job.inference.seed, 0));
            if kept.sentences.is_empty() || rest.sentences.is_empty() {
                bail!(
                    "corpus.held_out_share: {share} of {} sentences leaves none to train on, or none to hold out; \
                     choose another share",
                    corpus.sentences.len()
                );
            }
            (corpus, held_out) = (kept, Some(rest));
        }
        let (mut grammar, word) = match &job.model.grammar {
            GrammarSource::Auto(kind) => {
                let made =
                    auto::auto(*kind, &corpus.symbols).context("cannot make a grammar for the corpus")?;
                (made.grammar, Some(made.word))
            }
            GrammarSource::Treebank => bail!("{}: needs model.kind = \"pcfg-la\"", job.model.grammar),
            GrammarSource::Dmv => bail!("{}: needs model.kind = \"dmv\"", job.model.grammar),
            GrammarSource::File(path) => {
                let (grammar, more) = input::grammar(path)?;
                notices.extend(more);
                let word = grammar.symbol(DEFAULT_SEGMENT).filter(|&word| grammar.is_nonterminal(word));
                (grammar, word)
            }
        };
        let of_strings: Vec<SymbolId> =
            grammar.substring_rules().map(|rule| grammar.rules[rule].parent).collect();
        match job.model.kind {
            ModelKind::Adaptor => {
                refuse_without_adaptors(job, &grammar)?;
                if let Some(&symbol) = of_strings.first() {
                    bail!(
                        "{}: `{} --> {SUBSTRINGS}` needs model.kind = \"pcfg\"",
                        job.model.grammar,
                        grammar.name(symbol)
                    );
                }
            }
            ModelKind::PcfgLa | ModelKind::Dmv | ModelKind::Pcfg => {
                let adapted: Vec<&str> = grammar.adapted().map(|symbol| grammar.name(symbol)).collect();
                if !adapted.is_empty() {
                    notices.push(format!(
                        "{}: a PCFG has no adapted nonterminals; taken without adaptors: {}",
                        job.model.grammar,
                        adapted.join(", ")
                    ));
                }
                grammar = grammar.without_adaptors();
                let symbols = corpus.symbols.iter().chain(held_out.iter().flat_map(|corpus| &corpus.symbols));
                grammar = grammar.with_vocabulary(symbols.map(String::as_str));
            }
        }
        let segments = match (&job.output.segments[..], &of_strings[..], job.model.kind) {
            ([], [], ModelKind::Pcfg) => word.into_iter().collect(),
            ([], [_, ..], ModelKind::Pcfg) => of_strings,
            (names, ..) => segments(names, &grammar, word)?,
        };
        notices.extend(left_out(&grammar, &segments));
        // A chain over an adaptor grammar has all tables in one place.
        let is_chain = |point: &Point| point.inference.method == Method::Hastings;
        let chains = job.model.kind == ModelKind::Adaptor && job.points.iter().any(is_chain);
        if chains && !job.points.iter().all(is_chain) {
            bail!(
                "inference.method: chains over an adaptor grammar need a job of their own; leave the other methods out"
            );
        }
        let shard_symbols = match job.corpus.shard_symbols {
            _ if chains => u32::MAX,
            0 => u32::MAX,
            symbols => symbols,
        };
        let sentences = corpus.tokens_for(&grammar)?;
        let shards = shards::cut(&sentences, shard_symbols);
        let held_out_sentences = match &held_out {
            Some(corpus) => corpus.tokens_for(&grammar)?,
            None => Vec::new(),
        };
        let held_out = shards::cut(&held_out_sentences, DEFAULT_SHARD_SYMBOLS);
        let strings = match job.model.kind {
            ModelKind::Adaptor => None,
            ModelKind::PcfgLa | ModelKind::Dmv | ModelKind::Pcfg => {
                let all: Vec<Vec<SymbolId>> = sentences.into_iter().chain(held_out_sentences).collect();
                Some(Lexicon::substrings(&grammar, &all, job.inference.max_string as usize))
            }
        };
        Ok(Input {
            start: given(job, &grammar, None)?,
            corpus,
            grammar,
            segments,
            shards,
            held_out,
            strings,
            trees: None,
            dependencies: None,
            chains,
            notices,
        })
    }

    fn of_dependencies(job: &Job) -> Result<Input> {
        let Loaded { dependencies, corpus, grammar, shards, held_out, notices } = Dependencies::load(job)?;
        Ok(Input {
            start: given(job, &grammar, Some(&dependencies))?,
            corpus,
            grammar,
            segments: Vec::new(),
            shards,
            held_out,
            strings: (!job.model.is_adapted()).then(Lexicon::default),
            trees: None,
            dependencies: Some(dependencies),
            chains: false,
            notices,
        })
    }

    fn of_trees(job: &Job) -> Result<Input> {
        let (trees, corpus, notices) = Trees::load(job)?;
        let shard_words = match job.corpus.shard_symbols {
            0 => u32::MAX,
            words => words,
        };
        Ok(Input {
            shards: trees.shards(&corpus, shard_words),
            corpus,
            grammar: latent::no_grammar(),
            segments: Vec::new(),
            held_out: Vec::new(),
            strings: None,
            trees: Some(trees),
            dependencies: None,
            chains: false,
            start: None,
            notices,
        })
    }

    /// Tokens of the grammar that a symbol of the corpus is.
    pub fn tokens_per_symbol(&self) -> usize {
        if self.dependencies.is_some() { TOKENS_PER_WORD } else { 1 }
    }

    /// Rules of the grammar, or of the treebank.
    pub fn n_rules(&self) -> usize {
        match &self.trees {
            Some(trees) => trees.treebank.rules.rules.len(),
            None => self.grammar.rules.len(),
        }
    }

    /// Answers for distinct sentences by shard → one for each sentence of the corpus, in its order.
    pub fn by_sentence<'a>(&self, decoded: &'a [Vec<Decoded>]) -> Vec<&'a Decoded> {
        let mut by_sentence: Vec<Option<&Decoded>> = vec![None; self.corpus.sentences.len()];
        for (shard, decoded) in self.shards.iter().zip(decoded) {
            for (positions, decoded) in shard.positions.iter().zip(decoded) {
                positions.iter().for_each(|&position| by_sentence[position as usize] = Some(decoded));
            }
        }
        by_sentence.into_iter().map(|decoded| decoded.expect("shards hold every sentence")).collect()
    }

    /// Samples by shard and occurrence → one for each sentence of the corpus, in its order; none without samples.
    pub fn of_samples<'a>(&self, samples: &'a [Vec<Analysis>]) -> Vec<&'a Analysis> {
        let mut by_sentence: Vec<Option<&Analysis>> = vec![None; self.corpus.sentences.len()];
        for (shard, samples) in self.shards.iter().zip(samples) {
            for (&position, sample) in shard.positions.iter().flatten().zip(samples) {
                by_sentence[position as usize] = Some(sample);
            }
        }
        by_sentence.into_iter().collect::<Option<_>>().unwrap_or_default()
    }

    /// Line and text of a sentence, by shard and position in it, for messages.
    pub fn describe(&self, shard: usize, item: u32) -> String {
        let position = self.shards[shard].positions[item as usize][0] as usize;
        let corpus = &self.corpus;
        let whole = [corpus.sentences[position].len() as u32];
        let mut text: String = corpus.line(position, &whole);
        if let Some((end, _)) = text.char_indices().nth(60) {
            text.truncate(end);
            text.push('…');
        }
        format!("{}:{}: {text}", corpus.source_name, corpus.lines[position])
    }
}

/// What runs of the job start from, if it is trees or a model: given ones, or for chains that of the harmonic start.
fn given(job: &Job, grammar: &Grammar, dependencies: Option<&Dependencies>) -> Result<Option<Given>> {
    let wants = |point: &&InferenceTable| match point.start {
        Start::Trees | Start::Model => true,
        Start::Harmonic => point.method == Method::Hastings,
        _ => false,
    };
    let mut wanting = job.points.iter().map(|point| &point.inference).filter(wants);
    let Some(point) = wanting.next() else { return Ok(None) };
    if wanting.any(|other| other.start != point.start) {
        bail!("inference.start: the runs of a job start from the same trees or model, not from others each");
    }
    Ok(Some(match (point.start, dependencies) {
        (Start::Trees, _) => Given::Trees(trees(&point.start_from)?),
        (Start::Harmonic, Some(dependencies)) => {
            Given::Model(Box::new(dependencies.harmonic_model(grammar, point)))
        }
        _ => {
            let SavedModel { model, .. } = SavedModel::load(&point.start_from)?;
            if model.grammar.symbols != grammar.symbols || !same_rules(&model.grammar, grammar) {
                bail!("{}: the model to start from is of another grammar", point.start_from.display());
            }
            Given::Model(Box::new(model))
        }
    }))
}

/// Says so if sentences may have symbols outside all segments.
fn left_out(grammar: &Grammar, segments: &[SymbolId]) -> Option<String> {
    let names = |symbols: &[SymbolId]| -> Vec<String> {
        symbols.iter().map(|&symbol| grammar.name(symbol).to_owned()).collect()
    };
    let left_out = outside(grammar, segments);
    let (segments, all) = (names(segments), [names(segments), names(&left_out)].concat());
    (!segments.is_empty() && !left_out.is_empty()).then(|| {
        format!(
            "symbols outside {} are segments of their own; if those under {} belong together, --set 'output.segments={all:?}'",
            segments.join(", "),
            names(&left_out).join(", ")
        )
    })
}

/// Whether they differ in pseudo-counts alone.
fn same_rules(one: &Grammar, other: &Grammar) -> bool {
    let rules = |grammar: &Grammar| -> Vec<(SymbolId, Vec<SymbolId>)> {
        grammar.rules.iter().map(|rule| (rule.parent, rule.children.clone())).collect()
    };
    rules(one) == rules(other)
}

fn refuse_without_adaptors(job: &Job, grammar: &Grammar) -> Result<()> {
    if grammar.adapted().next().is_none() {
        bail!(
            "{}: no nonterminal is adapted, so there is nothing to train; leave the numbers before its rules away, as in \
             `Word --> Chars`, to adapt one, or train it as it is with model.kind = \"pcfg\"",
            job.model.grammar
        );
    }
    Ok(())
}

/// Reads bracketed trees, one a line.
fn trees(path: &Path) -> Result<Vec<Tree>> {
    let name = path.display();
    let text = std::fs::read_to_string(path).with_context(|| format!("{name}: cannot read the trees"))?;
    let lines = text.lines().zip(1..).filter(|(line, _)| !line.trim().is_empty());
    let tree = |(line, number)| {
        Tree::parse(line)
            .with_context(|| format!("{name}:{number}: not a tree; write one a line, as parses.txt is"))
    };
    lines.map(tree).collect()
}

fn segments(names: &[String], grammar: &Grammar, word: Option<SymbolId>) -> Result<Vec<SymbolId>> {
    if names.is_empty() {
        let Some(word) = word else {
            let known: Vec<&str> = grammar.adapted().map(|symbol| grammar.name(symbol)).collect();
            bail!(
                "the grammar has no nonterminal {DEFAULT_SEGMENT}; name the segments with output.segments, as in \
                 --set 'output.segments=[\"{}\"]'",
                known.first().unwrap_or(&"X")
            );
        };
        return Ok(vec![word]);
    }
    let find = |name: &String| {
        let symbol = grammar.symbol(name).filter(|&symbol| grammar.is_nonterminal(symbol));
        symbol.with_context(|| {
            let known = &grammar.symbols[..grammar.n_nonterminals as usize];
            let way_out = match nearest(name, known.iter().map(String::as_str)) {
                Some(near) => format!("did you mean \"{near}\"?"),
                None => format!("choose from: {}", known.join(", ")),
            };
            format!("output.segments: the grammar has no nonterminal \"{name}\"; {way_out}")
        })
    };
    names.iter().map(find).collect()
}
