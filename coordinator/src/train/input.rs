//! What a run trains on: sentences, in shards, and grammar.

use std::path::Path;

use anyhow::{Context, Result, bail};
use shared::corpus::shards::{self, DEFAULT_SHARD_SYMBOLS};
use shared::corpus::{Corpus, hold_out};
use shared::grammar::outside::outside;
use shared::grammar::{Grammar, SUBSTRINGS, SymbolId, auto};
use shared::latent;
use shared::model::Model;
use shared::num::Noise;
use shared::shard::{Lexicon, Shard, Substrings};
use shared::task::Named;
use shared::tree::Tree;

use super::dependencies::{Dependencies, Loaded, TOKENS_PER_WORD};
use super::shelf::{Kept, Shelf};
use super::text::{Source, Text};
use super::trees::Trees;
use crate::input;
use crate::job::{GrammarSource, InferenceTable, Job, Method, ModelKind, Point, Start};
use crate::model::SavedModel;
use crate::nearest::nearest;

/// Everything read and checked.
pub struct Input {
    /// The sentences.
    pub text: Text,
    /// The grammar.
    pub grammar: Grammar,
    /// The nonterminals whose constituents are the segments.
    pub segments: Vec<SymbolId>,
    /// Sentences that are not trained on, in shards.
    pub held_out: Vec<Kept<Shard>>,
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
    /// Where what is too large to hold is kept.
    pub shelf: Shelf,
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
        let options = job.corpus.options();
        let source = Source::open(&job.corpus.path, options, shard_symbols)?;
        let mut notices = source.notices(true);
        let (share, path) = (job.corpus.held_out_share, &job.corpus.held_out);
        let other = match path.as_os_str().is_empty() {
            true => None,
            // It is there to be predicted; gold is no matter.
            false => Some(Source::open(path, options, DEFAULT_SHARD_SYMBOLS)?),
        };
        notices.extend(other.iter().flat_map(|other| other.notices(false)));
        let mut left_aside = Vec::new();
        if other.is_none() && share > 0.0 {
            let n = source.end.n_sentences;
            left_aside = hold_out(n, share, Noise::new(job.inference.seed, 0)).1;
            if left_aside.is_empty() || left_aside.len() == n {
                bail!(
                    "corpus.held_out_share: {share} of {n} sentences leaves none to train on, or none to hold out; \
                     choose another share"
                );
            }
        }
        let (grammar, segments) = grammar(job, &source, other.as_ref(), &mut notices)?;
        notices.extend(left_out(&grammar, &segments));
        let shelf = Shelf::new_in(&job.output.dir);
        let mut text = Text::new(source.end.symbols.clone(), source.end.marks_words, options);
        let mut held_out = Vec::new();
        let of_pcfg = job.model.kind != ModelKind::Adaptor;
        let mut substrings = of_pcfg.then(|| Substrings::new(job.inference.max_string as usize));
        let mut gather = |sentences: &[Vec<SymbolId>]| {
            let substrings = substrings.as_mut().filter(|_| grammar.substring_rules().next().is_some());
            substrings.into_iter().for_each(|substrings| substrings.add(sentences));
        };
        let mut measure = |corpus: &Corpus, gather: &mut dyn FnMut(&[Vec<SymbolId>])| -> Result<()> {
            let sentences = corpus.tokens_for(&grammar)?;
            gather(&sentences);
            for shard in shards::cut(&sentences, DEFAULT_SHARD_SYMBOLS) {
                held_out.push(shelf.keep(shard.shard)?);
            }
            Ok(())
        };
        let (mut aside, mut start) = (left_aside.into_iter().peekable(), 0);
        source.blocks(|mut block| {
            let end = start + block.sentences.len();
            if aside.peek().is_some() {
                let here: Vec<usize> = std::iter::from_fn(|| aside.next_if(|&at| at < end)).collect();
                let (kept, rest): (Vec<usize>, Vec<usize>) =
                    (start..end).partition(|at| here.binary_search(at).is_err());
                let local = |all: Vec<usize>| all.into_iter().map(|at| at - start).collect::<Vec<_>>();
                measure(&block.subset(&local(rest)), &mut gather)?;
                block = block.subset(&local(kept));
            }
            start = end;
            let sentences = block.tokens_for(&grammar)?;
            gather(&sentences);
            text.push(&shelf, block, shards::cut(&sentences, shard_symbols))
        })?;
        if let Some(other) = &other {
            other.blocks(|block| measure(&block, &mut gather))?;
        }
        let strings = substrings.map(|substrings| substrings.lexicon(&grammar));
        Ok(Input {
            start: given(job, &grammar, None)?,
            text,
            grammar,
            segments,
            held_out,
            strings,
            trees: None,
            dependencies: None,
            chains,
            shelf,
            notices,
        })
    }

    fn of_dependencies(job: &Job) -> Result<Input> {
        let Loaded { dependencies, corpus, grammar, shards, held_out, notices } = Dependencies::load(job)?;
        Ok(Input {
            start: given(job, &grammar, Some(&dependencies))?,
            text: Text::at_hand(corpus, shards),
            grammar,
            segments: Vec::new(),
            held_out: held_out.into_iter().map(|shard| Kept::at_hand(Named::new(shard.shard))).collect(),
            strings: (!job.model.is_adapted()).then(Lexicon::default),
            trees: None,
            dependencies: Some(dependencies),
            chains: false,
            shelf: Shelf::new_in(&job.output.dir),
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
            text: Text::at_hand(corpus.clone(), trees.shards(&corpus, shard_words)),
            grammar: latent::no_grammar(),
            segments: Vec::new(),
            held_out: Vec::new(),
            strings: None,
            trees: Some(trees),
            dependencies: None,
            chains: false,
            start: None,
            shelf: Shelf::new_in(&job.output.dir),
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
}

/// The grammar of a job of sentences with every symbol of the corpora, and its segments; what is to be said of it goes to `notices`.
fn grammar(
    job: &Job,
    source: &Source,
    other: Option<&Source>,
    notices: &mut Vec<String>,
) -> Result<(Grammar, Vec<SymbolId>)> {
    let symbols = &source.end.symbols;
    let (mut grammar, word) = match &job.model.grammar {
        GrammarSource::Auto(kind) => {
            let made = auto::auto(*kind, symbols).context("cannot make a grammar for the corpus")?;
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
            let symbols = symbols.iter().chain(other.iter().flat_map(|other| &other.end.symbols));
            grammar = grammar.with_vocabulary(symbols.map(String::as_str));
        }
    }
    let segments = match (&job.output.segments[..], &of_strings[..], job.model.kind) {
        ([], [], ModelKind::Pcfg) => word.into_iter().collect(),
        ([], [_, ..], ModelKind::Pcfg) => of_strings,
        (names, ..) => segments(names, &grammar, word)?,
    };
    Ok((grammar, segments))
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
    let name = path.display().to_string();
    let text = input::text(path, &name, "trees")?;
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
