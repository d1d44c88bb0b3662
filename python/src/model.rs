//! Trained models.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process;
use std::sync::Arc;

use anyhow::{Context as _, Result, bail};
use grammaton::data::Sentence;
use grammaton::data::corpus::{Corpus, Options, ReadError, Reader};
use grammaton::data::treebank::brackets;
use grammaton::decoding::{CHUNK, Decoding};
use grammaton::grammar::tree::Tree;
use grammaton::models::Trained;
use grammaton::models::decode::Decoder;
use grammaton::models::decode::n_best::{Distinct, Ranked};
use grammaton::models::dmv::heads::flat;
use grammaton::models::dmv::nouns;
use grammaton::models::latent::parse;
use grammaton::models::word_classes::are_classes;
use grammaton::saved::reader::{Asked, Criterion, ModelReader, Reading};
use pyo3::exceptions::{PyKeyError, PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use rayon::prelude::*;
use training::inspection::inspect;
use training::model::{self, SavedModel};
use training::row::Status;

use crate::arguments::count;
use crate::error::exception;
use crate::wait::{detached, interruptible};

/// A trained model.
#[pyclass(frozen, module = "grammaton._lib")]
pub struct Model(Arc<SavedModel>);

/// What sentences a model takes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Segments,
    Trees,
    Dependencies,
}

fn kind(saved: &SavedModel) -> Kind {
    match &saved.model {
        Trained::Treebank(_) => Kind::Trees,
        Trained::Grammar(model) if nouns::tags(&model.grammar).is_some() => Kind::Dependencies,
        Trained::Grammar(_) => Kind::Segments,
    }
}

#[pymethods]
impl Model {
    /// Reads a folder of results, its folder `model`, or a `model.bin`.
    #[staticmethod]
    fn load(py: Python<'_>, path: PathBuf) -> PyResult<Model> {
        let saved = detached(py, || SavedModel::load(&path));
        Ok(Model(Arc::new(saved.map_err(|error| exception(py, error.into()))?)))
    }

    /// Decodes the bytes of a `model.bin`.
    #[staticmethod]
    fn from_bytes(py: Python<'_>, bytes: &[u8]) -> PyResult<Model> {
        let saved = SavedModel::from_bytes(bytes, Path::new("model"));
        Ok(Model(Arc::new(saved.map_err(|error| exception(py, error.into()))?)))
    }

    /// Encodes a `model.bin`.
    fn to_bytes<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, &detached(py, || self.0.to_bytes()))
    }

    /// What it finds: `segments`, `trees` or `dependencies`.
    #[getter]
    fn kind(&self) -> &'static str {
        match kind(&self.0) {
            Kind::Segments => "segments",
            Kind::Trees => "trees",
            Kind::Dependencies => "dependencies",
        }
    }

    /// Whether its tags are classes of words.
    #[getter]
    fn has_word_classes(&self) -> bool {
        let names = self.0.model.of_grammar().and_then(|model| nouns::tags(&model.grammar));
        names.is_some_and(|names| are_classes(&names))
    }

    /// What stands between symbols of a segment: nothing if they are characters.
    #[getter]
    fn separator(&self) -> &'static str {
        self.0.unit.separators().0
    }

    /// The grammar in py-cfg's syntax.
    #[getter]
    fn grammar(&self) -> String {
        model::grammar_text(&self.0.model)
    }

    /// The digest of the parameters.
    #[getter]
    fn parameters_sha256(&self, py: Python<'_>) -> String {
        detached(py, || model::parameters_sha256(&self.0.model))
    }

    /// The learned parameters as JSON, with `top` strings of each adapted nonterminal.
    fn inspect(&self, py: Python<'_>, top: i64) -> PyResult<String> {
        let top = count("top", Some(top), 0..=u32::MAX)?.map_or(0, |top| top as usize);
        let saved = self.0.clone();
        interruptible(
            py,
            move || Ok(pool(Some(1))?.install(|| serde_json::to_string(&inspect(&saved, top)))?),
        )
    }

    /// The strings of the nonterminal `symbol` as JSON, the most used first; all of them, or `limit`.
    fn strings(&self, py: Python<'_>, symbol: &str, limit: Option<i64>) -> PyResult<String> {
        let limit = count("limit", limit, 0..=u32::MAX)?.map_or(usize::MAX, |limit| limit as usize);
        let (grammar, sticks) = match &self.0.model {
            Trained::Grammar(model) => (&model.grammar, &model.lexicon.sticks[..]),
            Trained::Treebank(_) => return Err(PyKeyError::new_err("a model of trees has no strings")),
        };
        let names: Vec<&str> = sticks.iter().map(|stick| grammar.name(stick.symbol)).collect();
        let Some(at) = names.iter().position(|name| *name == symbol) else {
            let names = names.join(", ");
            return Err(PyKeyError::new_err(format!(
                "{symbol}: no nonterminal with strings; there are: {names}"
            )));
        };
        let saved = self.0.clone();
        interruptible(py, move || {
            Ok(pool(Some(1))?.install(|| serde_json::to_string(&model::top(&saved, at, limit)))?)
        })
    }

    /// A parser with that decoder, by default the one that `grammaton parse` uses. If `closed`, it uses learned strings only; if `boundaries`, it gives their probabilities; with
    /// `n_best`, so many of the best analyses.
    #[pyo3(signature = (decoder, *, closed = false, boundaries = false, n_best = None, threads = None))]
    fn parser(
        &self,
        py: Python<'_>,
        decoder: Option<&str>,
        closed: bool,
        boundaries: bool,
        n_best: Option<i64>,
        threads: Option<i64>,
    ) -> PyResult<Parser> {
        let n_best = count("n_best", n_best, 1..=1000_u16)?.map(usize::from);
        let threads = count("threads", threads, 1..=u16::MAX)?.map(usize::from);
        let of_kind: &[&str] = match kind(&self.0) {
            Kind::Segments => &["viterbi", "mbr", "mbr-tree", "vote", "contexts", "crf"],
            Kind::Trees => &["viterbi", "max-rule"],
            Kind::Dependencies => &["viterbi", "mbr-arcs"],
        };
        if let Some(decoder) = decoder.filter(|decoder| !of_kind.contains(decoder)) {
            let known = of_kind.join(", ");
            return Err(PyValueError::new_err(format!("decoder must be one of {known}, found {decoder}")));
        }
        if boundaries && kind(&self.0) != Kind::Segments {
            return Err(PyValueError::new_err("boundaries are those of a model of segments"));
        }
        let ranks = match kind(&self.0) {
            Kind::Segments => decoder != Some("mbr-tree"),
            Kind::Trees => decoder != Some("max-rule"),
            Kind::Dependencies => decoder == Some("viterbi"),
        };
        if n_best.is_some() && !ranks {
            return Err(PyValueError::new_err(
                "n_best is for the decoders viterbi, mbr, vote, contexts and crf of a model of segments, and for viterbi of other models",
            ));
        }
        let (saved, decoder) = (self.0.clone(), decoder.map(str::to_owned));
        let analyser = interruptible(py, move || {
            Analyser::new(saved, decoder.as_deref(), (closed, boundaries), n_best, threads)
        })?;
        Ok(Parser { analyser: Arc::new(analyser), pid: process::id() })
    }
}

/// Threads of one's own, as many as cores by default. Those of the whole process would be missing after a fork.
fn pool(threads: Option<usize>) -> Result<rayon::ThreadPool> {
    Ok(rayon::ThreadPoolBuilder::new().num_threads(threads.unwrap_or(0)).build()?)
}

/// A model that is ready to parse batches of sentences. Ctrl-C ends the waiting for a batch.
#[pyclass(frozen, module = "grammaton._lib")]
pub struct Parser {
    analyser: Arc<Analyser>,
    /// The process that has the threads.
    pid: u32,
}

/// A model with all that parsing needs.
struct Analyser {
    saved: Arc<SavedModel>,
    /// Of a model of segments.
    reader: Option<ModelReader>,
    /// Of a dependency model.
    decoding: Option<Decoding>,
    is_max_rule: bool,
    /// Number of the best analyses that are asked for.
    n_best: Option<usize>,
    pool: rayon::ThreadPool,
}

/// The best analyses of a sentence, each with its probability.
type Alternatives = Vec<(f64, String)>;

/// The segmentation of a line, its tree, its log-probability, its status as in tables, the probabilities of its boundaries, and its best analyses.
type Segmented = (String, Option<String>, Option<f64>, String, Option<Vec<f64>>, Alternatives);

/// Heads of a sentence, its status, and the heads of its best trees, each with its probability.
type FoundHeads = (Vec<u32>, &'static str, Vec<(f64, Vec<u32>)>);

/// Status of a sentence for which a model of trees or dependencies has no analysis, and of one that has one.
const FLAT: &str = "flat";
const OK: &str = "ok";

#[pymethods]
impl Parser {
    /// Segments lines of text, in the format of the training corpus. A line without an analysis is one segment.
    fn segments(&self, py: Python<'_>, lines: Vec<String>) -> PyResult<Vec<Segmented>> {
        let breaks = ['\r', '\n'];
        if let Some(line) = lines.iter().find(|line| line.trim_end_matches(breaks).contains(breaks)) {
            let message = format!("the text {line:?} has a line break; give each line as a text of its own");
            return Err(PyValueError::new_err(message));
        }
        self.run(py, move |analyser| analyser.segment(&lines))
    }

    /// Finds trees of sentences of words: bracketed, whether each is more than a flat one, and the best ones.
    fn trees(
        &self,
        py: Python<'_>,
        sentences: Vec<Vec<String>>,
    ) -> PyResult<Vec<(String, &'static str, Alternatives)>> {
        self.run(py, move |analyser| analyser.find_trees(&sentences))
    }

    /// Finds the heads of sentences of tags: for each word the number of its head from 1, or 0 for the root; and those of the best trees. Each word of a sentence
    /// without an analysis hangs on the next.
    fn heads(&self, py: Python<'_>, sentences: Vec<Vec<String>>) -> PyResult<Vec<FoundHeads>> {
        self.run(py, move |analyser| analyser.find_heads(&sentences))
    }
}

impl Parser {
    fn run<T: Send + 'static>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&Analyser) -> Result<T> + Send + 'static,
    ) -> PyResult<T> {
        if self.pid != process::id() {
            return Err(PyRuntimeError::new_err(
                "this parser belongs to the process from which this one was forked; call parse() here",
            ));
        }
        let analyser = self.analyser.clone();
        interruptible(py, move || work(&analyser))
    }
}

impl Analyser {
    fn new(
        saved: Arc<SavedModel>,
        decoder: Option<&str>,
        (closed, probabilities): (bool, bool),
        n_best: Option<usize>,
        threads: Option<usize>,
    ) -> Result<Analyser> {
        let pool = pool(threads)?;
        let of_first = match (decoder, kind(&saved)) {
            (Some("mbr"), _) => Decoder::Mbr,
            (Some("mbr-tree"), _) => Decoder::MbrTree,
            (Some("mbr-arcs"), _) | (None, Kind::Dependencies) => Decoder::MbrArcs,
            _ => Decoder::Viterbi,
        };
        let (mut reader, mut decoding) = (None, None);
        match (kind(&saved), &saved.model) {
            (Kind::Segments, _) => {
                let criterion = match decoder {
                    None => Criterion::of(&saved),
                    Some("vote") => Criterion::Vote,
                    Some("contexts") => Criterion::Contexts,
                    Some("crf") => Criterion::Crf,
                    Some(_) => Criterion::First(of_first),
                };
                let trees = matches!(criterion, Criterion::First(decoder) if decoder.gives_trees());
                let has_segments = saved.model.of_grammar().is_some_and(|model| !model.segments.is_empty());
                let distinct = if has_segments { Distinct::Segmentations } else { Distinct::Trees };
                let n_best = n_best.map(|n| (n, distinct));
                let asked = Asked { trees, probabilities, closed, n_best };
                let prepared = pool.install(|| ModelReader::new(&saved, criterion, asked));
                reader = Some(prepared.context(match criterion {
                    Criterion::Contexts => {
                        "the model has not learned from contexts; train it with the key output.contexts, or leave out decoder=\"contexts\""
                    }
                    _ => {
                        "the model has not learned from annotated lines; train it with annotated=, or leave out decoder=\"crf\""
                    }
                })?);
            }
            (Kind::Dependencies, Trained::Grammar(model)) => {
                decoding = Some(pool.install(|| Decoding::new(model.clone(), of_first, true, closed)));
            }
            (Kind::Dependencies | Kind::Trees, _) => {}
        }
        Ok(Analyser { saved, reader, decoding, is_max_rule: decoder == Some("max-rule"), n_best, pool })
    }

    fn find_trees(&self, sentences: &[Vec<String>]) -> Result<Vec<(String, &'static str, Alternatives)>> {
        let Trained::Treebank(model) = &self.saved.model else { bail!("not a model of trees") };
        let decoder = if self.is_max_rule { parse::Decoder::MaxRule } else { parse::Decoder::Viterbi };
        let parser = parse::Parser::new(model, parse::THRESHOLD);
        let tree = |words: &Vec<String>| {
            let words: Vec<&str> = words.iter().map(String::as_str).collect();
            let parse = parser.parse(&words, decoder);
            let n_best = self.n_best.map_or(Vec::new(), |n| parser.n_best(&words, n));
            let n_best = n_best.iter().map(|(probability, tree)| (*probability, brackets::line(tree)));
            (brackets::line(&parse.tree), if parse.flat { FLAT } else { OK }, n_best.collect())
        };
        Ok(self.pool.install(|| sentences.par_iter().map(tree).collect()))
    }

    fn segment(&self, lines: &[String]) -> Result<Vec<Segmented>> {
        let reader = self.reader.as_ref().context("not a model of segments")?;
        let SavedModel { format, unit, ref cleaning, .. } = *self.saved;
        let options = Options { format, unit, cleaning: cleaning.clone(), ..Options::default() };
        let mut found: Vec<Segmented> = lines
            .iter()
            .map(|_| (String::new(), None, None, Status::Empty.to_string(), None, Vec::new()))
            .collect();
        let text: String =
            lines.iter().flat_map(|line| [line.trim_end_matches(['\r', '\n']), "\n"]).collect();
        let corpus = match Corpus::whole(Reader::new(text.as_bytes(), "texts", &options)?) {
            Ok((corpus, _)) => corpus,
            Err(ReadError::Empty { .. }) => return Ok(found),
            Err(error) => return Err(error.into()),
        };
        let n = corpus.sentences.len();
        let read = self.pool.install(|| reader.read(&corpus, 0..n))?;
        for (at, reading) in read.into_iter().enumerate() {
            let line =
                found.get_mut(corpus.lines[at] as usize - 1).context("internal error: a line too many")?;
            let status = Status::from(&reading).to_string();
            *line = match reading {
                Ok(Reading { ends, tree, log_probability, probabilities, n_best, .. }) => {
                    let boundaries = probabilities.map(|probabilities| probabilities.boundaries);
                    let text = |ranked: Ranked| ranked.tree.unwrap_or_else(|| corpus.line(at, &ranked.ends));
                    let n_best =
                        n_best.into_iter().map(|ranked| (ranked.probability, text(ranked))).collect();
                    (corpus.line(at, &ends), tree, log_probability, status, boundaries, n_best)
                }
                Err(_) => {
                    let whole = corpus.line(at, &[corpus.sentences[at].len() as u32]);
                    (whole, None, None, status, None, Vec::new())
                }
            };
        }
        Ok(found)
    }

    fn find_heads(&self, sentences: &[Vec<String>]) -> Result<Vec<FoundHeads>> {
        let (Some(decoding), Trained::Grammar(model)) = (&self.decoding, &self.saved.model) else {
            bail!("not a dependency model")
        };
        let names = nouns::tags(&model.grammar).context("not a dependency model")?;
        let numbers: BTreeMap<&str, u32> = names.iter().map(String::as_str).zip(0..).collect();
        let item = |tags: &Vec<String>| {
            let known: Option<Vec<u32>> = tags.iter().map(|tag| numbers.get(tag.as_str()).copied()).collect();
            let known = known.filter(|tags| !tags.is_empty());
            known.map(|tags| Sentence::new(nouns::tokens(&model.grammar, &tags), 1))
        };
        let items: Vec<Option<Sentence>> = sentences.iter().map(item).collect();
        let heads = |tree: &str| -> Result<Vec<u32>> { Ok(nouns::heads(&Tree::parse(tree)?)?.1) };
        let find = |(items, sentences): (&[Option<Sentence>], &[Vec<String>])| {
            let best = decoding.chunk(items)?.into_iter();
            let ranked = match self.n_best {
                Some(n) => decoding.most_probable(items, n, Distinct::Trees)?,
                None => vec![Vec::new(); items.len()],
            };
            let found = best.zip(ranked).zip(sentences).map(|((best, ranked), tags)| {
                let Some(best) = best else { return Ok((flat(tags.len()), FLAT, Vec::new())) };
                let ranked = ranked
                    .into_iter()
                    .map(|ranked| Ok((ranked.probability, heads(&ranked.tree.unwrap_or_default())?)));
                Ok((heads(&best.trees[0])?, OK, ranked.collect::<Result<_>>()?))
            });
            found.collect::<Result<Vec<_>>>()
        };
        let chunks = items.par_chunks(CHUNK).zip(sentences.par_chunks(CHUNK)).map(find);
        Ok(self.pool.install(|| chunks.collect::<Result<Vec<_>>>())?.concat())
    }
}
