//! Training in this process: from a grammar, a treebank or tagged sentences to a model, by any method.
//!
//! ```text
//! dataset → shards → strings, indexes (prepare) → rounds of every run (methods) → the model of the best run
//! ```
//!
//! A coordinator does the same with workers in the place of [`in_process`], with checkpoints and measurements between the rounds; both
//! learn the same bits.

mod dataset;
mod error;
pub mod in_process;

use std::sync::Arc;

use crate::data::corpus::Corpus;
use crate::data::dependency::Sentence;
use crate::data::treebank::Treebank;
use crate::grammar::Grammar;
use crate::grammar::lexicon::Lexicon;
use crate::grammar::tree::Tree;
use crate::methods::{self, Basis, GivenTrees, RunStart};
use crate::models::{Model as GrammarModel, Params, Trained};
use crate::num::Noise;
use crate::prepare::{self, Prepared};
use crate::saved::Model;
use crate::settings::inference::Start;
use crate::settings::{Inference, Method};
use crate::train::round::Step;
use crate::train::trainer::Collect;
use crate::work::engine::MEMORY;
use crate::work::shard::{DEFAULT_SHARD_SYMBOLS, Shard};
use crate::work::task::{Language, Named};
pub use dataset::Dataset;
use dataset::{ModelSource, ShardedData, Strings};
pub(crate) use error::Cause;
pub use error::FitError;
use in_process::{InProcess, Shards};

/// How a model is trained on a dataset of kind `D`: a [`Corpus`], a [`Treebank`], or tagged [`Sentence`]s.
///
/// Everything that can be set is a field of [`Inference`]:
///
/// ```
/// use grammaton::{Corpus, Fit, Grammar, Inference, Method};
///
/// let grammar: Grammar = std::fs::read_to_string("examples/words.gr")?.parse()?;
/// let corpus = Corpus::open("examples/text.txt")?;
/// let settings = Inference { truncation: 200, rho: 0.2, tolerance: Some(1e-4), ..Method::vb() };
/// let model = Fit::new(&grammar, settings).restarts(2).run(&corpus)?;
/// let words = model.strings("Word", 10).expect("Word is adapted");
/// assert!(words[0].uses >= words[9].uses);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Fit<'a, D: ?Sized> {
    of: ModelSource<'a>,
    inference: Inference,
    shard_symbols: u32,
    memory: usize,
    segments: Vec<String>,
    start_from: StartFrom,
    on_round: Box<dyn FnMut(&Round) + Send + 'a>,
    dataset: std::marker::PhantomData<fn(&D)>,
}

/// A round of a run.
///
/// ```
/// use grammaton::{Corpus, Fit, Grammar, Method};
///
/// let grammar: Grammar = "1 1 S --> a\n1 1 S --> S S\n".parse()?;
/// let mut objectives = Vec::new();
/// let fit = Fit::new(&grammar, Method::em()).on_round(|round| objectives.push(round.objective));
/// fit.run(&Corpus::of_tokens("a\na a a\n")?)?;
/// assert!(objectives.is_sorted(), "EM never lowers the likelihood");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, PartialEq, Debug)]
#[non_exhaustive]
pub struct Round {
    /// The run, from 1: of [`Inference::restarts`].
    pub run: usize,
    /// The round, from 1.
    pub number: usize,
    /// The objective ([`Method::objective`]) under the weights of the round. NaN where these come from no parameters, as in the first round of
    /// variational Bayes.
    pub objective: f64,
    /// Strings that went out of use.
    pub dropped: usize,
    /// Whether the run has converged, and ends.
    pub converged: bool,
}

/// What runs start from, where [`Inference::start`] asks for something given.
#[derive(Clone, Debug, Default)]
enum StartFrom {
    #[default]
    Nothing,
    Trees(Vec<Tree>),
    Model(Box<Model>),
}

impl<'a> Fit<'a, Corpus> {
    /// Trains `grammar` on a corpus: an adaptor grammar if it has adapted nonterminals, else a PCFG.
    pub fn new(grammar: &'a Grammar, inference: Inference) -> Fit<'a, Corpus> {
        Fit::of(ModelSource::Grammar(grammar), inference)
    }

    /// Names of the nonterminals whose constituents are the segments; without them `Word`, or those that rewrite to `<substrings>`.
    pub fn segments(mut self, names: &[&str]) -> Fit<'a, Corpus> {
        self.segments = names.iter().map(|&name| name.to_owned()).collect();
        self
    }
}

impl<'a> Fit<'a, Treebank> {
    /// Trains the rules of a treebank with latent annotations (Matsuzaki, Miyao & Tsujii 2005; Wang & Blunsom 2013) by EM, VB or CVB.
    ///
    /// ```
    /// use grammaton::data::Classes;
    /// use grammaton::{Corpus, Decoder, Fit, Method, Treebank};
    ///
    /// let trees = "(ROOT (S (N dogs) (V bark)))\n(ROOT (S (N cats) (V (V see) (N dogs))))\n";
    /// let treebank = Treebank::read(trees, "trees", 0, Classes::Generic)?;
    /// let model = Fit::treebank(Method::em()).max_rounds(5).run(&treebank)?;
    /// let analysis = &model.parse(&Corpus::of_tokens("cats bark")?, Decoder::Viterbi)?[0];
    /// assert_eq!(analysis.to_string(), "(ROOT (S (N cats) (V bark)))");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn treebank(inference: Inference) -> Fit<'a, Treebank> {
        Fit::of(ModelSource::Treebank, Inference { start: Start::Noise, ..inference })
    }
}

impl<'a> Fit<'a, [Sentence]> {
    /// Trains the dependency model with valence (Klein & Manning 2004) on the tags of sentences, from a harmonic start unless
    /// [`Fit::start`] says otherwise.
    ///
    /// ```
    /// use grammaton::data::{Tags, read_sentences};
    /// use grammaton::{Decoder, Fit, Method};
    ///
    /// // A word, its tag and its head a line; or CoNLL-U.
    /// let text = "dogs\tNOUN\t2\nbark\tVERB\t0\n\nthe\tDET\t2\ndogs\tNOUN\t3\nbark\tVERB\t0\n";
    /// let sentences = read_sentences(text.as_bytes(), "text", Tags::Upos)?;
    /// let model = Fit::dependencies(Method::em()).run(&sentences[..])?;
    /// let heads = model.heads(&sentences, Decoder::MbrArcs)?;
    /// assert_eq!(heads[0].as_ref().map(Vec::len), Some(2));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn dependencies(inference: Inference) -> Fit<'a, [Sentence]> {
        Fit::of(ModelSource::Dependencies { adapted: &[] }, Inference { start: Start::Harmonic, ..inference })
    }

    /// The same, with adapted constituents of these tags or classes of tags (`noun`, `proper`, `verb`).
    pub fn adapted_dependencies(adapted: &'a [String], inference: Inference) -> Fit<'a, [Sentence]> {
        Fit::of(ModelSource::Dependencies { adapted }, Inference { start: Start::Harmonic, ..inference })
    }
}

impl<'a, D: Dataset + ?Sized> Fit<'a, D> {
    fn of(of: ModelSource<'a>, inference: Inference) -> Fit<'a, D> {
        Fit {
            of,
            inference,
            shard_symbols: DEFAULT_SHARD_SYMBOLS,
            memory: MEMORY,
            segments: Vec::new(),
            start_from: StartFrom::Nothing,
            on_round: Box::new(|_| ()),
            dataset: std::marker::PhantomData,
        }
    }

    /// Seed of all that is random.
    pub fn seed(mut self, seed: u64) -> Fit<'a, D> {
        self.inference.seed = seed;
        self
    }

    /// Number of runs from different starts, of which the best is kept.
    pub fn restarts(mut self, restarts: usize) -> Fit<'a, D> {
        self.inference.restarts = restarts;
        self
    }

    /// Number of rounds of a run at most.
    pub fn max_rounds(mut self, max_rounds: usize) -> Fit<'a, D> {
        self.inference.max_rounds = max_rounds;
        self
    }

    /// The start of training.
    pub fn start(mut self, start: Start) -> Fit<'a, D> {
        self.inference.start = start;
        self
    }

    /// Starts from trees: of the sentences in order, or for methods without chains of any sentences.
    pub fn start_from_trees(mut self, trees: Vec<Tree>) -> Fit<'a, D> {
        (self.inference.start, self.start_from) = (Start::Trees, StartFrom::Trees(trees));
        self
    }

    /// Starts from a model of the same grammar: from its counts, or for chains from its most probable trees.
    pub fn start_from_model(mut self, model: Model) -> Fit<'a, D> {
        (self.inference.start, self.start_from) = (Start::Model, StartFrom::Model(Box::new(model)));
        self
    }

    /// Number of symbols in a shard, the unit of parallel work; 0: all sentences in one shard, with which collapsed methods are the
    /// published algorithms. 8192 unless it is set, as in a job.
    pub fn shard_symbols(mut self, symbols: u32) -> Fit<'a, D> {
        self.shard_symbols = symbols;
        self
    }

    /// Bytes of forests to keep between the rounds; 3 GiB unless it is set. The others are built anew in every round.
    pub fn memory(mut self, bytes: usize) -> Fit<'a, D> {
        self.memory = bytes;
        self
    }

    /// Calls `on_round` after every round.
    pub fn on_round(mut self, on_round: impl FnMut(&Round) + Send + 'a) -> Fit<'a, D> {
        self.on_round = Box::new(on_round);
        self
    }

    /// Trains on the threads of the current `rayon` pool, and returns the model of the best run: that with the highest objective. The result
    /// does not depend on the number of threads.
    ///
    /// # Errors
    /// [`FitError`], if settings, model and data do not go together, or the grammar does not derive a sentence.
    pub fn run(self, dataset: &D) -> Result<Model, FitError> {
        Ok(self.trained(dataset)?)
    }

    fn trained(mut self, dataset: &D) -> Result<Model, Cause> {
        let ready = dataset.ready(&self.of, &self.inference, self.shard_symbols, &self.segments)?;
        self.inference.check(ready.model)?;
        if ready.shards.is_empty() {
            return Err(Cause::Empty);
        }
        let workers = InProcess::new(ready.shards.clone(), ready.sentence_lines.clone(), self.memory);
        let shards = prepared(&workers, &ready, &self.inference)?;
        let given = self.given(&workers, &ready, &shards)?;
        let mut best: Option<(Option<f64>, Trained)> = None;
        for run in 1..=self.inference.restarts {
            let (bound, model) = self.one_run(run, &workers, &ready, &shards, given.as_ref())?;
            if best.as_ref().is_none_or(|(known, _)| bound > *known) {
                best = Some((bound, model));
            }
        }
        let (_, model) = best.ok_or(Cause::Empty)?;
        let (format, unit) = ready.written;
        Ok(Model::new(model, format, unit, Default::default()))
    }

    /// The objective and the model of a run.
    fn one_run(
        &mut self,
        run: usize,
        workers: &InProcess,
        ready: &ShardedData,
        shards: &Shards,
        given: Option<&GivenTrees>,
    ) -> Result<(Option<f64>, Trained), Cause> {
        let inference = &self.inference;
        let harmonic = ready.harmonic_counts(inference, run);
        let harmonic = harmonic.map(|counts| GivenTrees { counts, by_shard: Vec::new() });
        let beginning = RunStart {
            model: ready.model,
            inference,
            restart: run,
            trees: harmonic.as_ref().or(given),
            families: ready.families.as_deref(),
        };
        let mut trainer = methods::trainer(shards, &beginning, None)?;
        let mut converged = false;
        while !converged && trainer.past().rounds < inference.max_rounds {
            let number = trainer.past().rounds + 1;
            let keeps = methods::keeps(inference, number);
            let segments = keeps.then(|| ready.segments.clone());
            trainer.begin(Collect { segments, as_sample: keeps });
            let failed = |source| Cause::Round { round: number, source };
            workers.round(&mut *trainer, shards).map_err(|error| match error {
                in_process::RoundError::Compute(error) => error.into(),
                in_process::RoundError::Failure(source) => failed(source),
            })?;
            if let Step::Next(report) = trainer.finish().map_err(failed)? {
                converged = report.converged;
                let objective = report.bound.unwrap_or(f64::NAN);
                (self.on_round)(&Round { run, number, objective, dropped: report.dropped, converged });
            }
        }
        Ok((trainer.past().bound, methods::model(&shards.basis, &ready.segments, &*trainer)?))
    }

    /// The trees or counts that runs start from, if they are given.
    fn given(
        &self,
        workers: &InProcess,
        ready: &ShardedData,
        shards: &Shards,
    ) -> Result<Option<GivenTrees>, Cause> {
        let needs = |expected: &str| Cause::StartFrom { expected: expected.to_owned() };
        let is_chain = self.inference.method == Method::Hastings;
        let Basis::Language(Language { grammar, lexicon }) = &shards.basis else { return Ok(None) };
        let (grammar, lexicon) = (&*grammar.value, &*lexicon.value);
        match (self.inference.start, &self.start_from) {
            (Start::Trees, StartFrom::Trees(trees)) => {
                let counts = if is_chain && grammar.adapted().next().is_some() {
                    Vec::new()
                } else {
                    crate::models::pcfg::trees::counts(grammar, lexicon, trees)
                        .map_err(|(at, source)| Cause::StartTree { number: at + 1, source })?
                };
                if is_chain && trees.len() != ready.n_sentences() {
                    return Err(needs("a tree for each sentence, in their order"));
                }
                let mut by_shard = Vec::new();
                if trees.len() == ready.n_sentences() {
                    by_shard.extend(ready.positions.iter().map(|positions| {
                        let text = |&position: &u32| trees[position as usize].to_string();
                        Arc::new(positions.iter().flatten().map(text).collect())
                    }));
                }
                Ok(Some(GivenTrees { counts, by_shard }))
            }
            (Start::Trees, _) => Err(needs("trees (Fit::start_from_trees)")),
            (Start::Model, StartFrom::Model(saved)) => {
                let Trained::Grammar(model) = &saved.model else {
                    return Err(needs("a model of a grammar, not of a treebank"));
                };
                if !grammar.has_rules_of(&model.grammar) {
                    return Err(needs("a model of the same grammar"));
                }
                if is_chain {
                    let by_shard = most_probable_trees(workers, model, &ready.shards)?;
                    return Ok(Some(GivenTrees { counts: Vec::new(), by_shard }));
                }
                match &model.params {
                    Params::Pcfg(params) if model.lexicon == *lexicon => {
                        let counts = params.estimate.counts.clone();
                        Ok(Some(GivenTrees { counts, by_shard: Vec::new() }))
                    }
                    _ => Err(needs(
                        "a model with counts for the rules and strings of this corpus: a PCFG trained on it",
                    )),
                }
            }
            (Start::Model, _) => Err(needs("a model (Fit::start_from_model)")),
            (Start::Harmonic, _) if is_chain => {
                let Some(model) = ready.harmonic_model(&self.inference) else { return Ok(None) };
                let by_shard = most_probable_trees(workers, &model, &ready.shards)?;
                Ok(Some(GivenTrees { counts: Vec::new(), by_shard }))
            }
            _ => Ok(None),
        }
    }
}

/// Chooses the strings of a model and indexes its shards.
fn prepared(workers: &InProcess, ready: &ShardedData, inference: &Inference) -> Result<Shards, Cause> {
    let grammar = match &ready.basis {
        dataset::Basis::Treebank(treebank) => {
            // Each shard has the parameters of the whole treebank, none of them named.
            return Ok(Shards::alike(Basis::Treebank(treebank.clone()), ready.shards.clone(), Vec::new()));
        }
        dataset::Basis::Grammar(grammar) => grammar,
    };
    let prepared = match &ready.strings {
        Strings::Known(lexicon) => prepare::with_strings(workers, grammar, lexicon)?,
        Strings::Candidates => prepare::choose(workers, grammar, &inference.into())?,
        Strings::Tables => {
            let language = prepare::with_tables(workers, grammar)?;
            let params = (0..language.n_params() as u32).map(crate::grammar::ParamId).collect();
            return Ok(Shards::alike(Basis::Language(language), ready.shards.clone(), params));
        }
    };
    let Prepared { language, sentences, strings, .. } = prepared;
    let mut shards = Shards::new(Basis::Language(language));
    for (shard, params) in ready.shards.iter().zip(sentences) {
        shards.push(shard.clone(), params, None);
    }
    for (strings, params) in strings {
        shards.push(Named::new(Shard::Strings(strings.clone())), params, Some(strings));
    }
    Ok(shards)
}

/// The most probable trees of all sentences, by shard.
fn most_probable_trees(
    workers: &InProcess,
    model: &GrammarModel,
    shards: &[Named<Shard>],
) -> Result<Vec<Arc<Vec<String>>>, Cause> {
    let found = prepare::most_probable_trees(workers, model, |at| Ok(shards[at].value.clone()))?;
    if found.without > 0 {
        return Err(Cause::StartFrom { expected: "a model that has a tree for every sentence".to_owned() });
    }
    Ok(found.by_shard)
}

impl ShardedData {
    /// The counts of the harmonic start of a run, for methods without chains; with jitter in all runs but the first.
    fn harmonic_counts(&self, inference: &Inference, run: usize) -> Option<Vec<f64>> {
        let tagged = self.tagged.as_ref().filter(|_| inference.start == Start::Harmonic)?;
        let noise = Noise::new(inference.seed, run as u64);
        let jitter = (run > 1).then_some((noise, inference.jitter));
        let dataset::Basis::Grammar(grammar) = &self.basis else { return None };
        (inference.method != Method::Hastings)
            .then(|| inference.harmonic().counts(tagged, &grammar.value, jitter))
    }

    /// The model of the harmonic start.
    fn harmonic_model(&self, inference: &Inference) -> Option<GrammarModel> {
        let (tagged, dataset::Basis::Grammar(grammar)) = (self.tagged.as_ref()?, &self.basis) else {
            return None;
        };
        Some(inference.harmonic().model(tagged, &grammar.value))
    }

    /// The number of sentences of the dataset, however often each occurs.
    fn n_sentences(&self) -> usize {
        self.positions.iter().flatten().flatten().max().map_or(0, |&last| last as usize + 1)
    }
}

/// No strings, for models that have none.
fn none() -> Strings {
    Strings::Known(Lexicon::default())
}
