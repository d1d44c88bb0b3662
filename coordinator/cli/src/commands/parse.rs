//! `grammaton parse`: segments or parses a text.

mod boundaries;
mod dependencies;
mod trees;

use std::path::PathBuf;

use anyhow::{Context as _, Result, bail, ensure};
use basics::streams;
use basics::streams::Stdout;
use clap::ValueEnum as _;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use grammaton::data::corpus::{Corpus, Options, UnknownSymbol};
use grammaton::models::Trained;
use grammaton::models::decode::Decoder;
use grammaton::models::decode::n_best::{Distinct, Ranked};
use grammaton::models::dmv::nouns;
use grammaton::saved::reader::{Asked, Criterion, ModelReader, Reading, Unread};
use training::export::{self, Alternative, Analysis, Format, Level, Line, Writer};
use training::input;
use training::model::SavedModel;
use training::row::{Gaps, Status};

use super::Answer;
use super::export::Writing;
use boundaries::Table;

/// Arguments of `parse`.
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:\n\
    \x20 grammaton parse results new.txt\n\
    \x20 grammaton parse results - --decoder mbr --format tsv\n\
    \x20 grammaton parse results new.txt --boundaries boundaries.tsv\n\
    \x20 grammaton parse results new.txt --format json\n\
    \x20 grammaton parse results new.txt --n-best 5\n\
    \x20 grammaton parse results new.conllu")]
pub struct Args {
    /// Model: a folder written by `train`, or its model.bin
    pub model: PathBuf,
    /// Text with one sentence per line, in the format of the training corpus; for a dependency model CoNLL-U, or if its tags are induced, text; `-` for standard input
    pub corpus: PathBuf,
    /// Criterion of the best analysis [default: crf, if the model has learned from annotated lines; else contexts, if it has learned from those; else vote, if it has the models of several chains; mbr-arcs of a dependency model; else viterbi]
    #[arg(long, value_enum)]
    pub decoder: Option<DecoderName>,
    /// Output format; a model of trees always prints trees, and a dependency model CoNLL-U
    #[arg(help_heading = "Output", long, value_parser = format_parser(), default_value = "segmentation")]
    pub format: Format,
    /// Print the N best analyses of each line with their probabilities, as a table or with --format json
    #[arg(help_heading = "Output", long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1000))]
    pub n_best: Option<u16>,
    #[command(flatten)]
    writing: Writing,
    /// Write the probability of each boundary of the text to this file, as a table
    #[arg(help_heading = "Output", long, value_name = "FILE")]
    pub boundaries: Option<PathBuf>,
    /// Use only learned strings, as in training; by default, unseen text may have new strings
    #[arg(long)]
    pub closed: bool,
    /// Longest accepted sentence in symbols [default: 10000; for a model of trees or a dependency model, 200 words]
    #[arg(long, value_name = "N")]
    pub max_symbols: Option<u32>,
    /// Column of the tags, for a dependency model [default: none if the tags of the model are induced, else upos]
    #[arg(help_heading = "Dependency models", long, value_enum)]
    pub tags: Option<TagColumn>,
    /// Keep punctuation, for a dependency model that was trained with it
    #[arg(help_heading = "Dependency models", long)]
    pub keep_punctuation: bool,
    /// End with exit code 1 if a sentence has no analysis
    #[arg(long)]
    pub strict: bool,
    /// Number of threads [default: all cores]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    pub threads: Option<u16>,
}

/// Decoders by name.
#[derive(Clone, Copy, PartialEq, Eq, Debug, clap::ValueEnum)]
pub enum DecoderName {
    /// The most probable tree
    Viterbi,
    /// The segmentation with the highest expected number of correct segments
    Mbr,
    /// The tree with the highest expected number of correct constituents
    MbrTree,
    /// The tree with the highest product of rule posteriors, for a model of trees
    MaxRule,
    /// The tree with the highest expected number of correct heads, for a dependency model
    MbrArcs,
    /// The segmentation with the highest expected number of correct segments, in the mean of the models of all chains and of the baselines that vote with them
    Vote,
    /// The boundaries that are likely by the symbols around them, as the models' boundaries taught
    Contexts,
    /// The segmentation as annotated lines correct it
    Crf,
}

/// Columns of CoNLL-U.
#[derive(Clone, Copy, PartialEq, Eq, Debug, clap::ValueEnum)]
pub enum TagColumn {
    /// Universal tags
    Upos,
    /// Language-specific tags
    Xpos,
}

impl DecoderName {
    /// The criterion of a model of segments.
    fn of_segments(self) -> Result<Criterion> {
        match self {
            DecoderName::Viterbi => Ok(Criterion::First(Decoder::Viterbi)),
            DecoderName::Mbr => Ok(Criterion::First(Decoder::Mbr)),
            DecoderName::MbrTree => Ok(Criterion::First(Decoder::MbrTree)),
            DecoderName::Vote => Ok(Criterion::Vote),
            DecoderName::Contexts => Ok(Criterion::Contexts),
            DecoderName::Crf => Ok(Criterion::Crf),
            DecoderName::MaxRule | DecoderName::MbrArcs => {
                bail!(
                    "max-rule is for a model of trees, mbr-arcs for a dependency model; use --decoder viterbi, mbr, mbr-tree or vote"
                )
            }
        }
    }
}

fn format_parser() -> impl TypedValueParser<Value = Format> {
    let values = Format::ALL.map(|format| PossibleValue::new(format.name()).help(format.about()));
    let named = |name: String| Format::ALL.into_iter().find(|format| format.name() == name);
    PossibleValuesParser::new(values).map(move |name| named(name).expect("a possible value"))
}

/// Number of sentences decoded in one batch, while the lines of the batch before are printed.
const BATCH: usize = 4096;

impl Args {
    /// The answer if some sentences have no analysis.
    fn partly(&self) -> Answer {
        if self.strict { Answer::No } else { Answer::Yes }
    }
}

/// Runs the command.
pub fn run(args: &Args) -> Result<Answer> {
    let without_trees = [DecoderName::Mbr, DecoderName::Vote, DecoderName::Crf];
    if let Some(decoder) =
        args.decoder.filter(|it| args.format == Format::Brackets && without_trees.contains(it))
    {
        let name = decoder.to_possible_value().expect("every decoder has a name");
        bail!("decoder {} gives no trees; use --decoder viterbi or --decoder mbr-tree", name.get_name());
    }
    ensure!(
        args.n_best.is_none() || args.format == Format::Json || !args.format.is_of_other_programs(),
        "--n-best prints a table, or objects with --format json; leave out --format {}",
        args.format.name()
    );
    let saved = SavedModel::load(&args.model)?;
    let tags = saved.model.of_grammar().and_then(|model| nouns::tags(&model.grammar));
    let has_rows = matches!(saved.model, Trained::Grammar(_)) && tags.is_none();
    ensure!(
        !args.writing.is_given() || args.format.is_of_other_programs() && args.n_best.is_none(),
        "--level and --language are for formats of other programs, such as --format json; leave them out"
    );
    let is_of_segments = args.format == Format::Tsv || args.format.is_of_other_programs();
    ensure!(
        !is_of_segments || has_rows || args.n_best.is_some(),
        "this --format is for a model of segments; leave it out"
    );
    ensure!(args.boundaries.is_none() || has_rows, "--boundaries is for a model of segments; leave it out");
    match (saved.model, tags) {
        (Trained::Grammar(model), Some(tags)) => dependencies::run(args, model, &tags),
        (Trained::Treebank(model), _) => trees::run(args, &model),
        (model, None) => segments(args, &SavedModel { model, ..saved }),
    }
}

/// Parses with a model of segments.
fn segments(args: &Args, saved: &SavedModel) -> Result<Answer> {
    let criterion = match (args.decoder, args.format) {
        (Some(decoder), _) => decoder.of_segments()?,
        (None, Format::Brackets) => Criterion::First(Decoder::Viterbi),
        (None, _) => Criterion::of(saved),
    };
    let distinct = if args.format == Format::Brackets { Distinct::Trees } else { Distinct::Segmentations };
    let asked = Asked {
        // Trees have the categories of segments.
        trees: args.format == Format::Brackets || args.n_best.is_none() && args.format.is_of_other_programs(),
        probabilities: args.boundaries.is_some(),
        closed: args.closed,
        n_best: args.n_best.map(|n| (usize::from(n), distinct)),
    };
    ensure!(
        args.n_best.is_none() || criterion.ranks(),
        "decoder mbr-tree has no n best; use --decoder viterbi, mbr, vote, contexts or crf, or leave out --n-best"
    );
    let max_symbols = args.max_symbols.unwrap_or(Options::default().max_symbols);
    let cleaning = saved.cleaning.clone();
    let options =
        Options { format: saved.format, unit: saved.unit, max_symbols, cleaning, ..Options::default() };
    if args.corpus.as_os_str() != "-" {
        let notices = input::format::of_new_text(&args.corpus, &options)?;
        notices.iter().for_each(|notice| streams::tell(&format!("notice: {notice}")));
    }
    let threads = args.threads.map_or(0, usize::from);
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build()?;
    let reader = ModelReader::new(saved, criterion, asked).with_context(|| {
        let (what, key, decoder) = match criterion {
            Criterion::Contexts => ("contexts", "output.contexts", "contexts"),
            _ => ("annotated lines", "corpus.annotated", "crf"),
        };
        let path = args.model.display();
        format!("{path}: the model has not learned from {what}; train it with {key}, or leave out --decoder {decoder}")
    })?;
    let parts = input::text_to_parse(&args.corpus, &options)?;
    let is_corrected = criterion == Criterion::Crf;
    let table = args.boundaries.as_ref().map(|path| Table::new(path, &args.corpus, is_corrected));
    let mut table = table.transpose()?;
    let mut out = Printer::new(args, args.format, export::results::labels(saved));
    let (mut n_sentences, mut n_lines) = (0, 0);
    let (mut without, mut unknown) = (Vec::new(), Vec::new());
    for part in parts {
        let part = part?;
        n_lines = part.n_lines;
        let Some(corpus) = part.corpus else { continue };
        let n = corpus.sentences.len();
        n_sentences += n;
        for first in (0..n).step_by(BATCH) {
            let batch = first..n.min(first + BATCH);
            let read = pool.install(|| reader.read(&corpus, batch.clone()))?;
            for (found, at) in read.into_iter().zip(batch) {
                if let (Some(table), Ok(reading)) = (&mut table, &found) {
                    table.sentence(corpus.lines[at], reading)?;
                }
                let unread = found.as_ref().map_or_else(Some, |reading| reading.unread.as_ref());
                if let Some(unread) = unread {
                    without.push(corpus.lines[at]);
                    unknown.extend(unread.symbol().cloned());
                }
                out.sentence(&corpus, at, found)?;
            }
        }
        out.flush()?;
    }
    out.finish(n_lines)?;
    table.map_or(Ok(()), Table::finish)?;
    let Some(first) = without.first() else { return Ok(Answer::Yes) };
    let printed = match args.format {
        _ if reader.reads_all() => "and segmented by what votes beside the models",
        _ if args.n_best.is_some() => "and printed without analyses",
        Format::Brackets => "and printed as `()`",
        Format::Tsv => "and printed without a segmentation",
        _ => "and printed whole",
    };
    streams::tell(&format!(
        "notice: without an analysis {printed}: {} of {} sentences, the first one in line {first}{}",
        without.len(),
        n_sentences,
        of_unknown(&unknown),
    ));
    Ok(args.partly())
}

/// Clause on the sentences without an analysis that have unknown symbols; empty if there are none.
fn of_unknown(unknown: &[UnknownSymbol]) -> String {
    unknown.first().map_or(String::new(), |first| {
        let (n, symbol, line) = (unknown.len(), &first.symbol, first.line);
        format!(
            "; because of symbols that the model does not know: {n}, the first one `{symbol}` in line {line}"
        )
    })
}

/// Prints a line for each line of a text, or its best analyses.
struct Printer {
    out: Stdout,
    writer: Writer,
    gaps: Gaps,
    level: Level,
    /// Names of the nonterminals whose constituents are segments.
    labels: Vec<String>,
}

impl Printer {
    /// A printer in this format of segments that are constituents of these nonterminals.
    fn new(args: &Args, format: Format, labels: Vec<String>) -> Printer {
        let writer = args.writing.writer(format);
        let writer = if args.n_best.is_some() { writer.of_n_best() } else { writer };
        let level = args.writing.level(|| Level::of(labels.iter().map(String::as_str)));
        Printer { out: Stdout::lock(), writer, gaps: Gaps::default(), level, labels }
    }

    /// Prints the sentence at a position of `corpus`. One without an analysis is one segment, an empty tree, or a row without a
    /// segmentation.
    fn sentence(&mut self, corpus: &Corpus, at: usize, found: Result<Reading, Unread>) -> Result<()> {
        let whole = vec![corpus.sentences[at].len() as u32];
        let (status, found) = (Status::from(&found), found.ok());
        let ends = found.as_ref().map_or(&whole, |reading| &reading.ends);
        let tree = found.as_ref().and_then(|reading| reading.tree.as_deref());
        let segments = export::results::segments(corpus, at, ends, tree, &self.labels)?;
        let gold = corpus.gold.as_ref().and_then(|gold| gold[at].first());
        let alternative = |of: Ranked| match of.tree {
            Some(tree) => Alternative::tree(of.probability, tree),
            None => Alternative {
                probability: of.probability,
                analysis: Analysis::Segments(corpus.segments(at, &of.ends)),
                text: corpus.line(at, &of.ends),
            },
        };
        let line = Line {
            separator: corpus.effective_unit().separators().1,
            gold: gold.map(|ends| corpus.segments(at, ends)),
            log_probability: found.as_ref().and_then(|reading| reading.log_probability),
            tree: Some(tree.unwrap_or("()").to_owned()),
            ..Line::new(corpus.lines[at], self.level, corpus.line(at, &whole), segments, status)
        };
        let n_best = found.into_iter().flat_map(|reading| reading.n_best).map(alternative).collect();
        self.line(Line { n_best, ..line })
    }

    /// Prints a line, after the empty lines before it.
    fn line(&mut self, line: Line) -> Result<()> {
        self.empty_before(line.number)?;
        self.write(line)
    }

    fn empty_before(&mut self, line: u32) -> Result<()> {
        self.gaps.before(line).try_for_each(|line| self.write(Line::empty(line, Status::Empty)))
    }

    fn write(&mut self, line: Line) -> Result<()> {
        let text = self.writer.line(line)?;
        self.out.text(&text)
    }

    /// Hands over what was printed.
    fn flush(&mut self) -> Result<()> {
        self.out.flush()
    }

    /// Prints the empty lines at the end of a text of `n_lines` lines, and the end of the file.
    fn finish(mut self, n_lines: u32) -> Result<()> {
        self.empty_before(n_lines + 1)?;
        self.out.text(&self.writer.finish()?)?;
        self.out.flush()
    }
}
