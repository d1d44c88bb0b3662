//! Input of training: sentences, in shards, and grammar.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, Result, bail, ensure};
use basics::nearest::nearest;
use grammaton::data::corpus::sniff::Contents;
use grammaton::data::corpus::{Corpus, Format, Options, Unit, UnknownSymbol, hold_out};
use grammaton::grammar::auto::Auto;
use grammaton::grammar::lexicon::{Lexicon, Substrings};
use grammaton::grammar::syntax::{Notice, NoticeKind};
use grammaton::grammar::tree::Tree;
use grammaton::grammar::unsegmented::unsegmented;
use grammaton::grammar::{Grammar, SUBSTRINGS, SymbolId};
use grammaton::limits::MAX_FOREST;
use grammaton::models::logistic_normal::Multinomials;
use grammaton::models::{Model, Trained};
use grammaton::num::Noise;
use grammaton::work::shard::Shard;
use grammaton::work::shard::{self, DEFAULT_SHARD_SYMBOLS, SentenceShard};
use grammaton::work::task::Named;

use super::auto_grammars::{Known, auto_grammar};
use super::brackets::Brackets;
use super::dependencies::{Dependencies, Loaded, LoadedTest, TOKENS_PER_WORD};
use super::gold;
use super::held_out::HeldOutShards;
use super::spill::{SpillStore, Stored};
use super::start_trees::StartTrees;
use super::test::Test;
use super::text::{Block, HeldOut, Source, Text, described, on_shelf};
use super::trees::Trees;
use crate::input;
use crate::input::segmented_file::Annotated;
use crate::job::{
    FoundAffixes, GrammarSource, Job, Method, ModelKind, OnUnparsable, Point, RulePrior, Start,
};
use crate::model::SavedModel;

/// Everything read and checked.
pub struct Input {
    /// The sentences.
    pub text: Text,
    /// The nonterminals whose constituents are the segments.
    pub segments: Vec<SymbolId>,
    /// Annotated sentences to learn from, if there are such.
    pub annotated: Option<Annotated>,
    /// Constituents that are known, if there are such.
    pub brackets: Option<Brackets>,
    /// Sentences that are not trained on, in shards.
    pub held_out: Vec<Stored<Shard>>,
    /// Sentences to score at the end, if there are such.
    pub test: Option<Test>,
    /// The kind of data.
    pub dataset: Dataset,
    /// Source of the strings of the model.
    pub strings: StringSource,
    /// Trees, or what gives trees, to start from, if some run does.
    pub start: Option<Given>,
    /// Files for values that do not fit in memory.
    pub spill: Arc<SpillStore>,
    /// Notices for the user about the files.
    pub notices: Vec<String>,
    /// Notice on skipped sentences, if there are some.
    pub skipped: Option<String>,
}

/// The kind of data that a job trains on.
pub enum Dataset {
    /// Sentences of text, with gold segments if the text has them.
    Text {
        /// Their grammar.
        grammar: Grammar,
    },
    /// A treebank, whose labels get subtypes.
    Trees(Trees),
    /// Tagged sentences, with heads to find.
    Dependencies {
        /// The grammar of their tags.
        grammar: Grammar,
        /// The sentences.
        dependencies: Dependencies,
    },
}

/// Sources of the strings that a model has parameters for.
pub enum StringSource {
    /// Known strings: the substrings of all sentences, or none.
    Known(Lexicon),
    /// They are chosen among the candidates before the rounds, for the sticks of an adaptor grammar.
    Candidates,
    /// Strings of the tables of chains over an adaptor grammar.
    Tables,
}

/// Given starts of runs.
pub enum Given {
    /// Trees of the corpus; for methods without chains, of any sentences.
    Trees(Vec<Tree>),
    /// A model, whose most probable trees these are.
    Model(Box<Model>),
}

/// Lines of the corpus with sentences that have no forest.
#[derive(Default)]
pub struct WithoutForest {
    /// Lines that the grammar cannot derive.
    pub underivable: BTreeSet<u32>,
    /// Lines that it derives in more ways than a forest can hold.
    pub too_ambiguous: BTreeSet<u32>,
}

impl WithoutForest {
    /// Whether there is no such line.
    pub fn is_empty(&self) -> bool {
        self.underivable.is_empty() && self.too_ambiguous.is_empty()
    }

    fn contains(&self, line: u32) -> bool {
        self.underivable.contains(&line) || self.too_ambiguous.contains(&line)
    }
}

/// Sentences that are skipped, as the grammar cannot derive them, or in too many ways.
#[derive(Default)]
struct Skipped {
    /// Positions among all sentences, ascending.
    positions: Vec<usize>,
    underivable: Counted,
    too_ambiguous: Counted,
}

/// Sentences skipped for the same reason.
#[derive(Default)]
struct Counted {
    n: usize,
    /// Line and text of the first one.
    first: Option<(u32, String)>,
}

impl Skipped {
    /// Adds the sentence at `at` of a block, which is at `position` among all.
    fn add(&mut self, block: &Corpus, at: usize, position: usize, is_too_ambiguous: bool) {
        self.positions.push(position);
        let reason = if is_too_ambiguous { &mut self.too_ambiguous } else { &mut self.underivable };
        reason.n += 1;
        reason
            .first
            .get_or_insert_with(|| (block.lines[at], block.line(at, &[block.sentences[at].len() as u32])));
    }

    fn notice(&self, path: &Path) -> Option<String> {
        let why_too_ambiguous = format!("whose derivations would take more than {} MiB", MAX_FOREST >> 20);
        let reasons = [
            (&self.underivable, "that the grammar cannot derive"),
            (&self.too_ambiguous, &why_too_ambiguous),
        ];
        let skipped: Vec<String> = reasons
            .into_iter()
            .filter_map(|(Counted { n, first }, why)| {
                let (line, text) = first.as_ref()?;
                Some(format!("{n} sentences {why}, the first one in line {line}: {text}"))
            })
            .collect();
        (!skipped.is_empty()).then(|| format!("{}: skipped {}", path.display(), skipped.join("; ")))
    }
}

/// The segments of a grammar whose job names none.
const DEFAULT_SEGMENT: &str = "Word";

impl Input {
    /// Reads the files of `job`, whose points agree on everything that acts before the rounds.
    pub fn load(job: &Job) -> Result<Input> {
        Input::load_without(job, &WithoutForest::default())
    }

    /// Loads the input without the sentences in these lines of the corpus, which have no forest.
    pub fn load_without(job: &Job, without_forest: &WithoutForest) -> Result<Input> {
        match job.model.kind {
            ModelKind::PcfgLa => return Input::of_trees(job),
            ModelKind::Dmv => return Input::of_dependencies(job),
            ModelKind::Adaptor | ModelKind::Pcfg => {}
        }
        // A chain over an adaptor grammar has all tables in one place.
        let chains = job.model.kind == ModelKind::Adaptor && job.inference.method == Method::Hastings;
        let shard_symbols = if chains { u32::MAX } else { job.corpus.symbols_of_shard() };
        let options = job.corpus.options();
        let mut source = Source::open(&job.corpus.path, options.clone(), shard_symbols)?;
        if !chains {
            job.corpus.check_shards(source.end.n_symbols)?;
        }
        let is_given = |path: &&PathBuf| !path.as_os_str().is_empty();
        let (annotated, gold) =
            (Some(&job.corpus.annotated).filter(is_given), Some(&job.corpus.gold).filter(is_given));
        let marks = job.corpus.position_marks();
        ensure!(
            annotated.is_some() || !marks.any(),
            "corpus.boundary_mark and corpus.joined_mark are of corpus.annotated, and there is none; give the file, or leave them out"
        );
        let annotated = annotated.map(|path| gold::annotated(path, &source, &marks)).transpose()?;
        let (annotated, of_annotated) = annotated.unzip();
        let (gold, of_gold) = gold.map(|path| gold::read(path, &source)).transpose()?.unzip();
        gold.into_iter().for_each(|gold| source.set_gold(gold));
        let mut notices = source.notices(true);
        notices.extend(of_gold.into_iter().chain(of_annotated));
        let contents = if job.model.grammars().any(|source| source.is_made(Auto::has_affixes)) {
            Contents::Words
        } else {
            Contents::Utterances
        };
        notices.extend(input::format::undeclared(&job.corpus.path, &options, contents)?);
        let (share, path) = (job.corpus.held_out_share, &job.corpus.held_out);
        let other = if path.as_os_str().is_empty() {
            None
        } else {
            // It is there to be predicted; gold is no matter.
            Some(Source::open(path, options.clone(), DEFAULT_SHARD_SYMBOLS)?)
        };
        notices.extend(other.iter().flat_map(|other| other.notices(false)));
        let mut held_out_at = Vec::new();
        if other.is_none() && share > 0.0 {
            let n = source.end.n_sentences;
            held_out_at = hold_out(n, share, Noise::new(job.corpus.held_out_seed, 0)).1;
            if held_out_at.is_empty() || held_out_at.len() == n {
                bail!(
                    "corpus.held_out_share: {share} of {n} sentences leaves none to train on, or none to hold out; \
                     choose another share"
                );
            }
        }
        notices.extend(words_as_symbols(job, &source.end.symbols));
        let (grammar, segments) = grammar(job, &source, other.as_ref(), &mut notices)?;
        check_priors(job, &grammar)?;
        notices.extend(left_out(&grammar, &segments));
        if segments.is_empty() && source.has_gold() {
            notices.push(not_scored(&grammar));
        }
        let brackets = Some(&job.corpus.brackets).filter(is_given);
        let mut brackets = brackets.map(|path| Brackets::read(path, &options, &grammar)).transpose()?;
        let spill = Arc::new(SpillStore::new_in(&job.output.dir));
        let mut text = Text::new(&source);
        let mut held_out = Vec::new();
        let of_pcfg = job.model.kind != ModelKind::Adaptor;
        let mut substrings = of_pcfg.then(|| Substrings::new(job.inference.max_string as usize));
        let has_substrings = grammar.substring_rules().next().is_some();
        let mut gather = |sentences: &[Vec<SymbolId>], path: &Path| -> Result<()> {
            let mut substrings = substrings.iter_mut().filter(|_| has_substrings);
            let added = substrings.try_for_each(|substrings| substrings.add(sentences));
            added.with_context(|| path.display().to_string())
        };
        type Gather<'a> = &'a mut dyn FnMut(&[Vec<SymbolId>], &Path) -> Result<()>;
        let mut measure = |corpus: &Corpus, gather: Gather<'_>| {
            let sentences = corpus.tokens_for(&grammar)?;
            gather(&sentences, Path::new(&corpus.source_name))?;
            let cut = shard::cut_counted(&sentences, &corpus.occurrences, DEFAULT_SHARD_SYMBOLS);
            let (shards, positions) = on_shelf(&spill, cut)?;
            held_out.extend(shards.iter().cloned());
            Ok::<_, anyhow::Error>((shards, positions))
        };
        let (mut next_held_out, mut start) = (held_out_at.iter().copied().peekable(), 0);
        let skips = job.corpus.on_unparsable == OnUnparsable::Skip;
        let mut skipped = Skipped::default();
        let mut marks = CombiningMarks::among(&source.end.symbols, &options);
        source.blocks(|mut block| {
            marks.count(&block);
            let end = start + block.sentences.len();
            let mut not_trained = None;
            let here: Vec<usize> = std::iter::from_fn(|| next_held_out.next_if(|&at| at < end)).collect();
            // Held-out sentences without a derivation are counted when they are measured; those with unknown symbols cannot be.
            let left_out: Vec<usize> = if skips {
                let tokens = block.each_tokens_for(&grammar).enumerate();
                let is_left_out = |(at, tokens): (usize, Result<Vec<SymbolId>, UnknownSymbol>)| {
                    (tokens.is_err() || without_forest.contains(block.lines[at])).then_some(at)
                };
                tokens.filter_map(is_left_out).collect()
            } else {
                Vec::new()
            };
            if !here.is_empty() || !left_out.is_empty() {
                for &at in &left_out {
                    skipped.add(
                        &block,
                        at,
                        start + at,
                        without_forest.too_ambiguous.contains(&block.lines[at]),
                    );
                }
                let is_left_out = |at: &usize| left_out.binary_search(at).is_ok();
                let is_held_out = |at: &usize| here.binary_search(&(start + at)).is_ok();
                let (kept, rest): (Vec<usize>, Vec<usize>) =
                    (0..block.sentences.len()).partition(|at| !is_left_out(at) && !is_held_out(at));
                let measured: Vec<usize> = (0..rest.len()).filter(|&at| !is_left_out(&rest[at])).collect();
                let corpus = block.subset(&rest);
                let (shards, mut positions) = measure(&corpus.subset(&measured), &mut gather)?;
                positions.iter_mut().flatten().flatten().for_each(|at| *at = measured[*at as usize] as u32);
                not_trained = Some(HeldOut { shards, block: spill.keep(Block { corpus, positions })? });
                block = block.subset(&kept);
            }
            start = end;
            let sentences = block.tokens_for(&grammar)?;
            gather(&sentences, &job.corpus.path)?;
            let cut = match &mut brackets {
                Some(brackets) => {
                    let marked = |tokens: Vec<SymbolId>| {
                        let marks = brackets.of(&tokens);
                        (tokens, marks)
                    };
                    let marked: Vec<_> = sentences.into_iter().map(marked).collect();
                    shard::cut_marked(&marked, &block.occurrences, shard_symbols)
                }
                None => shard::cut_counted(&sentences, &block.occurrences, shard_symbols),
            };
            text.push(&spill, block, cut, not_trained)
        })?;
        notices.extend(marks.notice(&job.corpus.path));
        notices.extend(brackets.as_ref().map(|brackets| brackets.notice(&job.corpus.path)).transpose()?);
        let skipped_notice = skipped.notice(&job.corpus.path);
        if let Some(notice) = skipped_notice.as_ref().filter(|_| text.n_sentences == 0) {
            bail!("{notice}; no other sentence is left to train on");
        }
        let not_in_trees: Vec<usize> = {
            let mut all = [&held_out_at[..], &skipped.positions].concat();
            all.sort_unstable();
            all.dedup();
            all
        };
        if let Some(other) = &other {
            other.blocks(|block| measure(&block, &mut gather).map(drop))?;
        }
        let strings = match substrings {
            Some(substrings) => StringSource::Known(substrings.lexicon(&grammar)),
            None if chains => StringSource::Tables,
            None => StringSource::Candidates,
        };
        let test = if job.corpus.test.as_os_str().is_empty() {
            None
        } else {
            let source = Source::open(&job.corpus.test, options, DEFAULT_SHARD_SYMBOLS)?;
            notices.extend(source.notices(false));
            Some(Test::of_text(&source, &grammar, &spill)?)
        };
        let of_trees = TreesOf { strings: &strings, text: &text, left_out: &not_in_trees };
        Ok(Input {
            start: given(job, &grammar, None, of_trees, source.end.n_sentences)?,
            test,
            text,
            segments,
            annotated,
            brackets,
            held_out,
            dataset: Dataset::Text { grammar },
            strings,
            spill,
            notices,
            skipped: skipped_notice,
        })
    }

    fn of_dependencies(job: &Job) -> Result<Input> {
        let Loaded { dependencies, corpus, grammar, shards, held_out, test, notices } =
            Dependencies::load(job)?;
        check_priors(job, &grammar)?;
        let in_memory = |shards: Vec<SentenceShard>| -> Vec<Stored<Shard>> {
            shards.into_iter().map(|shard| Stored::in_memory(Named::new(shard.shard))).collect()
        };
        let test = test.map(|LoadedTest { to_find, predicted, n_unknown }| {
            let predicted = HeldOutShards::new(in_memory(predicted), TOKENS_PER_WORD);
            Test::of_heads(to_find, predicted, n_unknown)
        });
        let text = Text::in_memory(corpus, shards);
        let strings = if job.model.is_adapted() {
            StringSource::Candidates
        } else {
            StringSource::Known(Lexicon::default())
        };
        let of_trees = TreesOf { strings: &strings, text: &text, left_out: &[] };
        Ok(Input {
            test,
            start: given(job, &grammar, Some(&dependencies), of_trees, 0)?,
            text,
            segments: Vec::new(),
            annotated: None,
            brackets: None,
            held_out: in_memory(held_out),
            dataset: Dataset::Dependencies { grammar, dependencies },
            strings,
            spill: Arc::new(SpillStore::new_in(&job.output.dir)),
            notices,
            skipped: None,
        })
    }

    fn of_trees(job: &Job) -> Result<Input> {
        let (trees, corpus, notices) = Trees::load(job)?;
        job.corpus.check_shards(corpus.sentences.iter().map(Vec::len).sum())?;
        let shard_words = job.corpus.symbols_of_shard();
        Ok(Input {
            test: trees.test.clone().map(Test::of_trees),
            text: Text::in_memory(corpus, shard::cut_trees(&trees.treebank, shard_words)),
            segments: Vec::new(),
            annotated: None,
            brackets: None,
            held_out: Vec::new(),
            dataset: Dataset::Trees(trees),
            strings: StringSource::Known(Lexicon::default()),
            start: None,
            spill: Arc::new(SpillStore::new_in(&job.output.dir)),
            notices,
            skipped: None,
        })
    }

    /// Sentences of the training corpus that have symbols which the grammar lacks, by line and description.
    pub fn unknown(&self, job: &Job) -> Result<Vec<(u32, String)>> {
        let mut found = Vec::new();
        let Dataset::Text { grammar } = &self.dataset else { return Ok(found) };
        Source::open(&job.corpus.path, job.corpus.options(), DEFAULT_SHARD_SYMBOLS)?.blocks(|block| {
            for (at, tokens) in block.each_tokens_for(grammar).enumerate() {
                if let Err(UnknownSymbol { line, symbol, .. }) = tokens {
                    let described = described(&block, at);
                    found.push((line, format!("{described} (the grammar has no terminal `{symbol}`)")));
                }
            }
            Ok(())
        })?;
        Ok(found)
    }

    /// Tokens of the grammar that a symbol of the corpus is.
    pub fn tokens_per_symbol(&self) -> usize {
        if self.dependencies().is_some() { TOKENS_PER_WORD } else { 1 }
    }

    /// Rules of the grammar, or of the treebank.
    pub fn n_rules(&self) -> usize {
        match &self.dataset {
            Dataset::Trees(trees) => trees.treebank.rules.rules.len(),
            Dataset::Text { grammar } | Dataset::Dependencies { grammar, .. } => grammar.rules.len(),
        }
    }

    /// The grammar; `None` for trees, which bring their rules.
    pub fn grammar(&self) -> Option<&Grammar> {
        match &self.dataset {
            Dataset::Text { grammar } | Dataset::Dependencies { grammar, .. } => Some(grammar),
            Dataset::Trees(_) => None,
        }
    }

    /// The names of the adapted nonterminals, in symbol order.
    pub fn adapted(&self) -> Vec<String> {
        let names = |grammar: &Grammar| -> Vec<String> {
            grammar.adapted().map(|symbol| grammar.name(symbol).to_owned()).collect()
        };
        self.grammar().map(names).unwrap_or_default()
    }

    /// The tagged sentences of a dependency model.
    pub fn dependencies(&self) -> Option<&Dependencies> {
        match &self.dataset {
            Dataset::Dependencies { dependencies, .. } => Some(dependencies),
            Dataset::Text { .. } | Dataset::Trees(_) => None,
        }
    }
}

/// The grammar of a job of sentences with every symbol of the corpora, and its segments; notices about it go to `notices`.
fn grammar(
    job: &Job,
    source: &Source,
    other: Option<&Source>,
    notices: &mut Vec<String>,
) -> Result<(Grammar, Vec<SymbolId>)> {
    let symbols = &source.end.symbols;
    let mut partly_adapted = None;
    let (mut grammar, default_segments) = match &job.model.grammar {
        source_of @ (GrammarSource::Auto(_) | GrammarSource::Choose) => {
            let kind = source_of.made().context("internal error: no such grammar; please report it")?;
            if *source_of == GrammarSource::Choose {
                notices.push(format!("model.grammar: chosen when training begins; checked with auto:{kind}"));
            }
            if job.model.cascade > 0 && job.found == FoundAffixes::default() {
                notices.push("model.cascade: a first, shorter run finds affixes; checked without".to_owned());
            }
            let is_variational = |point: &Point| !point.inference.method.is_sampler();
            if kind.has_collocations()
                && job.model.kind == ModelKind::Adaptor
                && job.points.iter().any(is_variational)
            {
                notices.push(format!(
                    "auto:{kind}: variational Bayes often ends far from the segmentations that chains find with collocations; \
                     take inference.method = \"hastings\" or `grammaton segment`, or auto:unigram"
                ));
            }
            let made = auto_grammar(kind, source, &Known::of(job)?, notices)?;
            (made.grammar, made.segments)
        }
        GrammarSource::Treebank => bail!("{}: needs model.kind = \"pcfg-la\"", job.model.grammar),
        GrammarSource::Dmv => bail!("{}: needs model.kind = \"dmv\"", job.model.grammar),
        GrammarSource::File(path) => {
            let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
            if !path.exists() && name.parse::<Auto>().is_ok() {
                bail!(
                    "model.grammar: no file {}; for the grammar that is made from the corpus write \"auto:{name}\"",
                    path.display()
                );
            }
            let (grammar, more) = input::grammar(path)?;
            notices.extend(more.iter().map(ToString::to_string));
            partly_adapted =
                more.into_iter().find(|notice| matches!(notice.kind, NoticeKind::PartlyAdapted { .. }));
            let word = grammar.symbol(DEFAULT_SEGMENT).filter(|&word| grammar.is_nonterminal(word));
            (grammar, word.into_iter().collect())
        }
    };
    let of_strings: Vec<SymbolId> = grammar.substring_rules().map(|rule| grammar.rule(rule).parent).collect();
    match job.model.kind {
        ModelKind::Adaptor => {
            refuse_without_adaptors(job, &grammar, partly_adapted.as_ref())?;
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
        ([], [], ModelKind::Pcfg) => default_segments,
        ([], [_, ..], ModelKind::Pcfg) => of_strings,
        (names, ..) => segments(names, &grammar, default_segments)?,
    };
    Ok((grammar, segments))
}

/// Whether `grammar` may have the logistic-normal priors that the job asks for.
fn check_priors(job: &Job, grammar: &Grammar) -> Result<()> {
    if job.points.iter().any(|point| point.inference.prior == RulePrior::LogisticNormal) {
        Multinomials::new(grammar).with_context(|| job.model.grammar.to_string())?;
    }
    Ok(())
}

/// Data that trees to start from have to fit.
struct TreesOf<'a> {
    strings: &'a StringSource,
    /// Sentences to train on.
    text: &'a Text,
    /// Positions of the other sentences among all.
    left_out: &'a [usize],
}

/// Trees or a model that runs of the job start from: given ones, or for chains that of the harmonic start. Of trees of all
/// `n_sentences`, only those of sentences to train on are kept.
fn given(
    job: &Job,
    grammar: &Grammar,
    dependencies: Option<&Dependencies>,
    of_trees: TreesOf<'_>,
    n_sentences: usize,
) -> Result<Option<Given>> {
    let inference = &job.inference;
    Ok(match (inference.start, dependencies) {
        (Start::Trees, _) => {
            let TreesOf { strings, text, left_out } = of_trees;
            let none = Lexicon::default();
            let strings = match strings {
                StringSource::Known(strings) => strings,
                StringSource::Candidates | StringSource::Tables => &none,
            };
            let trees = StartTrees::read(&inference.start_from, grammar, strings, left_out, n_sentences)?;
            // Other methods take the counts of any trees.
            if job.points.iter().any(|point| point.inference.method == Method::Hastings) {
                trees.check(grammar, text)?;
            }
            Some(Given::Trees(trees.into_trees()))
        }
        (Start::Harmonic, Some(dependencies)) if inference.method == Method::Hastings => {
            let model = inference.harmonic().model(dependencies.tagged(), grammar);
            Some(Given::Model(Box::new(model)))
        }
        (Start::Model, _) => {
            let SavedModel { model, .. } = SavedModel::load(&inference.start_from)?;
            let Trained::Grammar(model) = model else {
                bail!("{}: the model to start from is of a treebank", inference.start_from.display());
            };
            if !grammar.has_rules_of(&model.grammar) {
                bail!("{}: the model to start from is of another grammar", inference.start_from.display());
            }
            Some(Given::Model(Box::new(model)))
        }
        _ => None,
    })
}

/// Says so if sentences may have symbols outside all segments.
fn left_out(grammar: &Grammar, segments: &[SymbolId]) -> Option<String> {
    let names = |symbols: &[SymbolId]| -> Vec<String> {
        symbols.iter().map(|&symbol| grammar.name(symbol).to_owned()).collect()
    };
    let left_out = unsegmented(grammar, segments);
    let (segments, all) = (names(segments), [names(segments), names(&left_out)].concat());
    (!segments.is_empty() && !left_out.is_empty()).then(|| {
        format!(
            "symbols outside {} are segments of their own; if those under {} belong together, --set 'output.segments={all:?}'",
            segments.join(", "),
            names(&left_out).join(", ")
        )
    })
}

/// Says that no segmentation is compared with gold, and how one would be.
fn not_scored(grammar: &Grammar) -> String {
    let nonterminals = &grammar.symbols[1..grammar.n_nonterminals as usize];
    let names: Vec<&str> = nonterminals.iter().take(NAMED).map(String::as_str).collect();
    let more = if nonterminals.len() > names.len() { ", …" } else { "" };
    format!(
        "nothing is scored: the grammar has no nonterminal {DEFAULT_SEGMENT}; say which nonterminals are the segments, as in \
         --set 'output.segments=[{:?}]'; it has {}{more}",
        names.first().unwrap_or(&"X"),
        names.join(", ")
    )
}

/// Nonterminals that a notice names.
const NAMED: usize = 10;

/// Says so if the symbols of a corpus in tokens look like words, of which a grammar of strings would be made: more than
/// [`MANY_SYMBOLS`] different ones, most of them of three letters or more.
fn words_as_symbols(job: &Job, symbols: &[String]) -> Option<String> {
    let finds_words = job.model.kind == ModelKind::Adaptor || job.model.grammar.is_made(|_| true);
    let is_long = |symbol: &&String| symbol.chars().nth(2).is_some();
    let look_like_words =
        symbols.len() > MANY_SYMBOLS && 2 * symbols.iter().filter(is_long).count() > symbols.len();
    (job.corpus.format == Format::Tokens && finds_words && look_like_words).then(|| {
        let n = symbols.len();
        format!(
            "{}: with corpus.format = \"tokens\" each word is one symbol, and there are {n} different ones; for words made of \
             letters, --set corpus.format=segmented",
            job.corpus.path.display()
        )
    })
}

/// No alphabet of phonemes, letters or syllables in more than two letters has more.
const MANY_SYMBOLS: usize = 500;

/// Symbols of a text in single characters that are combining marks of the Unicode blocks of diacritics, which NFC joins with their
/// letters, and how often they occur. Vowel signs of Indic scripts, which stay apart in NFC, are not among them.
struct CombiningMarks {
    /// By symbol: the combining mark, if it is one.
    marks: Vec<Option<char>>,
    n: usize,
    /// The first one found, after the symbol before it.
    example: Option<String>,
}

impl CombiningMarks {
    fn among(symbols: &[String], options: &Options) -> CombiningMarks {
        let is_char = options.format == Format::Segmented && options.unit == Unit::Char;
        let mark = |symbol: &String| symbol.chars().next().filter(|&first| is_char && is_combining(first));
        CombiningMarks { marks: symbols.iter().map(mark).collect(), n: 0, example: None }
    }

    fn count(&mut self, block: &Corpus) {
        if self.marks.iter().all(Option::is_none) {
            return;
        }
        for sentence in &block.sentences {
            for (at, &symbol) in sentence.iter().enumerate() {
                let Some(mark) = self.marks[symbol as usize] else { continue };
                self.n += 1;
                let before = at.checked_sub(1).map_or("", |before| &block.symbols[sentence[before] as usize]);
                self.example.get_or_insert_with(|| format!("{before}{mark} (U+{:04X})", u32::from(mark)));
            }
        }
    }

    fn notice(self, path: &Path) -> Option<String> {
        self.example.map(|example| {
            format!(
                "{}: {} combining marks are symbols of their own, the first being in {example}; to join them with their letters, \
                 set corpus.unit = \"grapheme\"",
                path.display(),
                self.n
            )
        })
    }
}

/// Whether it is of a Unicode block of combining diacritics, or a voicing mark of kana: all of general category M.
fn is_combining(symbol: char) -> bool {
    matches!(
        symbol,
        '\u{300}'..='\u{36f}' | '\u{1ab0}'..='\u{1aff}' | '\u{1dc0}'..='\u{1dff}' | '\u{20d0}'..='\u{20ff}'
            | '\u{3099}'..='\u{309a}' | '\u{fe20}'..='\u{fe2f}'
    )
}

fn refuse_without_adaptors(job: &Job, grammar: &Grammar, partly_adapted: Option<&Notice>) -> Result<()> {
    if grammar.adapted().next().is_none() {
        if let Some(notice) = partly_adapted {
            bail!("{notice}; so no nonterminal is adapted, and there is nothing to train");
        }
        bail!(
            "{}: no nonterminal is adapted, so there is nothing to train; leave the numbers before its rules away, as in \
             `Word --> Chars`, to adapt one, or train it as it is with model.kind = \"pcfg\"",
            job.model.grammar
        );
    }
    Ok(())
}

/// The segments by their names; without names, the grammar's own.
fn segments(names: &[String], grammar: &Grammar, default: Vec<SymbolId>) -> Result<Vec<SymbolId>> {
    if names.is_empty() {
        if default.is_empty() {
            let known: Vec<&str> = grammar.adapted().map(|symbol| grammar.name(symbol)).collect();
            bail!(
                "the grammar has no nonterminal {DEFAULT_SEGMENT}; name the segments with output.segments, as in \
                 --set 'output.segments=[\"{}\"]'",
                known.first().unwrap_or(&"X")
            );
        }
        return Ok(default);
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

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    /// The notices of a job on this corpus and grammar.
    fn notices(corpus: &str, grammar: &str, settings: &[&str]) -> Vec<String> {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("corpus.txt"), corpus).unwrap();
        fs::write(dir.path().join("g.gr"), grammar).unwrap();
        let text = "[model]\nkind = \"pcfg\"\ngrammar = \"g.gr\"\n[corpus]\npath = \"corpus.txt\"\n";
        let settings: Vec<String> = settings.iter().map(|&setting| setting.to_owned()).collect();
        let job = Job::parse(text, "job.toml", dir.path(), &settings).unwrap();
        let dir = format!("{}/", dir.path().display());
        Input::load(&job).unwrap().notices.into_iter().map(|notice| notice.replace(&dir, "")).collect()
    }

    #[test]
    fn a_grammar_without_segments_says_that_nothing_is_scored() {
        let grammar = "1 1 S --> Chunk\n1 1 S --> Chunk S\n1 1 Chunk --> <substrings>\n";
        assert_eq!(
            notices("ab a\nba b\n", grammar, &[]),
            [""; 0],
            "nonterminals of substrings are the segments"
        );
        let grammar = "1 1 S --> Chunk\n1 1 S --> Chunk S\n1 1 Chunk --> a\n1 1 Chunk --> b\n";
        assert_eq!(
            notices("ab a\nba b\n", grammar, &[]),
            [
                "nothing is scored: the grammar has no nonterminal Word; say which nonterminals are the segments, as in \
              --set 'output.segments=[\"Chunk\"]'; it has Chunk"
            ]
        );
        assert_eq!(notices("ab a\nba b\n", grammar, &["output.segments=[\"Chunk\"]"]), [""; 0]);
        let without_gold = notices("a b\n", grammar, &["corpus.format=tokens"]);
        assert_eq!(without_gold, [""; 0], "there is no gold to compare with");
    }

    #[test]
    fn words_that_are_taken_for_symbols_are_noticed() {
        let text = |n: usize, word: fn(usize) -> String| (0..n).map(|at| word(at) + "\n").collect::<String>();
        let with = |text: &str, more: &[&str]| {
            let settings = [&["model.kind=adaptor", "model.grammar=auto:unigram"], more].concat();
            notices(text, "", &settings)
                .into_iter()
                .filter(|notice| notice.contains("tokens"))
                .collect::<Vec<_>>()
        };
        let words = text(MANY_SYMBOLS + 1, |at| format!("w{at:03}"));
        assert_eq!(
            with(&words, &["corpus.format=tokens"]),
            [
                "corpus.txt: with corpus.format = \"tokens\" each word is one symbol, and there are 501 different ones; for words \
              made of letters, --set corpus.format=segmented"
            ]
        );
        assert!(with(&words, &[]).is_empty(), "letters are the symbols");
        let few = text(MANY_SYMBOLS, |at| format!("w{at:03}"));
        assert!(with(&few, &["corpus.format=tokens"]).is_empty(), "as many as a syllabary has");
        let characters = text(2000, |at| char::from_u32(0x4e00 + at as u32).unwrap().to_string());
        assert!(with(&characters, &["corpus.format=tokens"]).is_empty(), "Chinese characters");
    }

    #[test]
    fn combining_marks_are_noticed_where_characters_are_symbols() {
        let with = |text: &str, more: &[&str]| {
            let settings = [&["model.kind=adaptor", "model.grammar=auto:unigram"], more].concat();
            notices(text, "", &settings)
                .into_iter()
                .filter(|notice| notice.contains("marks"))
                .collect::<Vec<_>>()
        };
        assert_eq!(
            with("cafe\u{301} the\u{301}\nla\n", &[]),
            [
                "corpus.txt: 2 combining marks are symbols of their own, the first being in e\u{301} (U+0301); to join them with \
              their letters, set corpus.unit = \"grapheme\""
            ]
        );
        assert!(with("caf\u{e9} th\u{e9}\n", &[]).is_empty(), "in NFC");
        assert!(with("e\u{301} a | b\n", &["corpus.unit=token"]).is_empty());
        assert!(with("\u{915}\u{93f} \u{915}\n", &[]).is_empty(), "vowel signs stay apart in NFC");
    }
}
