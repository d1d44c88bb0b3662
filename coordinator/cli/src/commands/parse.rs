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
use grammaton::models::dmv::nouns;
use grammaton::saved::reader::{Asked, Criterion, ModelReader, Reading, Unread};
use training::export::{self, Level, Line, Writer};
use training::input;
use training::model::SavedModel;
use training::row::{Gaps, Row, Status};

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
    \x20 grammaton parse results new.conllu")]
pub struct Args {
    /// Model: a folder written by `train`, or its model.bin
    pub model: PathBuf,
    /// Text with one sentence per line, in the format of the training corpus; for a dependency model CoNLL-U; `-` for standard input
    pub corpus: PathBuf,
    /// Criterion of the best analysis [default: crf, if the model has learned from annotated lines; else vote, if it has the models of several chains; mbr-arcs of a dependency model; else viterbi]
    #[arg(long, value_enum)]
    pub decoder: Option<DecoderName>,
    /// Output format; a model of trees always prints trees, and a dependency model CoNLL-U
    #[arg(help_heading = "Output", long, value_parser = format_parser(), default_value = "segmentation")]
    pub format: Format,
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
    /// Column of the tags, for a dependency model
    #[arg(help_heading = "Dependency models", long, value_enum, default_value = "upos")]
    pub tags: TagColumn,
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
    /// The segmentation with the highest expected number of correct segments, in the mean of the models of all chains
    Vote,
    /// The segmentation by vote as annotated lines correct it
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
            DecoderName::Crf => Ok(Criterion::Crf),
            DecoderName::MaxRule | DecoderName::MbrArcs => {
                bail!(
                    "max-rule is for a model of trees, mbr-arcs for a dependency model; use --decoder viterbi, mbr, mbr-tree or vote"
                )
            }
        }
    }
}

/// Output formats.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Format {
    /// Sentences cut into segments.
    Segmentation,
    /// Bracketed trees.
    Brackets,
    /// A table.
    Tsv,
    /// A format of other programs.
    Export(export::Format),
}

/// Parser of a format by its name.
fn format_parser() -> impl TypedValueParser<Value = Format> {
    let own = [
        ("segmentation", "Sentences cut into segments"),
        ("brackets", "Bracketed trees"),
        ("tsv", "A table: number of the line, gold, segmentation, log-probability, status"),
    ];
    let values = own.into_iter().chain(export::Format::ALL.map(|format| (format.name(), format.about())));
    let values = values.map(|(name, about)| PossibleValue::new(name).help(about));
    PossibleValuesParser::new(values).map(|name| match name.as_str() {
        "brackets" => Format::Brackets,
        "tsv" => Format::Tsv,
        name => export::Format::of(name).map_or(Format::Segmentation, Format::Export),
    })
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
    let saved = SavedModel::load(&args.model)?;
    let tags = saved.model.of_grammar().and_then(|model| nouns::tags(&model.grammar));
    let has_rows = matches!(saved.model, Trained::Grammar(_)) && tags.is_none();
    ensure!(
        !args.writing.is_given() || matches!(args.format, Format::Export(_)),
        "--level and --language are for formats of other programs, such as --format json; leave them out"
    );
    let is_of_segments = matches!(args.format, Format::Tsv | Format::Export(_));
    ensure!(!is_of_segments || has_rows, "this --format is for a model of segments; leave it out");
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
    let asked = Asked {
        // Trees have the categories of segments.
        trees: matches!(args.format, Format::Brackets | Format::Export(_)),
        probabilities: args.boundaries.is_some(),
        closed: args.closed,
        ..Asked::default()
    };
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
        format!(
            "{}: the model has not learned from annotated lines; train it with corpus.annotated, or leave out --decoder crf",
            args.model.display()
        )
    })?;
    let parts = input::text_to_parse(&args.corpus, &options)?;
    let is_corrected = criterion == Criterion::Crf;
    let table = args.boundaries.as_ref().map(|path| Table::new(path, &args.corpus, is_corrected));
    let mut table = table.transpose()?;
    let labels = saved.model.of_grammar().map_or(Vec::new(), |model| {
        model.segments.iter().map(|&symbol| model.grammar.name(symbol).to_owned()).collect()
    });
    let mut out = Printer::new(args.format, &args.writing, labels)?;
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
                match &found {
                    Ok(reading) => {
                        table.as_mut().map_or(Ok(()), |table| table.sentence(corpus.lines[at], reading))?;
                    }
                    Err(unread) => {
                        without.push(corpus.lines[at]);
                        unknown.extend(unread.symbol().cloned());
                    }
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
        Format::Segmentation | Format::Export(_) => "whole",
        Format::Brackets => "as `()`",
        Format::Tsv => "without a segmentation",
    };
    streams::tell(&format!(
        "notice: without an analysis and printed {printed}: {} of {} sentences, the first one in line {first}{}",
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

/// Prints a line for each line of a text.
struct Printer {
    out: Stdout,
    format: Format,
    gaps: Gaps,
    /// Of a format of other programs.
    writer: Option<Writer>,
    level: Level,
    /// Names of the nonterminals whose constituents are segments.
    labels: Vec<String>,
}

impl Printer {
    /// A printer of the segments that are constituents of these nonterminals.
    fn new(format: Format, writing: &Writing, labels: Vec<String>) -> Result<Printer> {
        let mut out = Stdout::lock();
        if format == Format::Tsv {
            out.line(Row::HEADER)?;
        }
        let writer = match format {
            Format::Export(format) => Some(writing.writer(format)),
            Format::Segmentation | Format::Brackets | Format::Tsv => None,
        };
        let level = writing.level(|| Level::of(labels.iter().map(String::as_str)));
        Ok(Printer { out, format, gaps: Gaps::default(), writer, level, labels })
    }

    /// Prints the sentence at a position of `corpus`. One without an analysis is one segment, an empty tree, or a row without a
    /// segmentation.
    fn sentence(&mut self, corpus: &Corpus, at: usize, found: Result<Reading, Unread>) -> Result<()> {
        let line = corpus.lines[at];
        if self.writer.is_some() {
            self.empty_before(line)?;
            let line = self.exported(corpus, at, found)?;
            return self.write(line);
        }
        let text = match (self.format, found) {
            (Format::Segmentation, Ok(reading)) => corpus.line(at, &reading.ends),
            (Format::Segmentation, Err(_)) => corpus.line(at, &[corpus.sentences[at].len() as u32]),
            (Format::Brackets, Ok(reading)) => reading
                .tree
                .context("internal error: a sentence was read without a tree; please report it")?,
            (Format::Brackets, Err(_)) => "()".to_owned(),
            (Format::Tsv | Format::Export(_), found) => {
                let gold = corpus.gold_line(at);
                let predicted = found.as_ref().ok().map(|reading| corpus.line(at, &reading.ends));
                let row = Row {
                    line,
                    gold: gold.as_deref(),
                    predicted: predicted.as_deref(),
                    log_probability: found.as_ref().ok().map(|reading| reading.log_probability),
                    status: found.err().map_or(Status::Ok, Status::from),
                };
                row.to_string()
            }
        };
        self.line(line, &text)
    }

    /// A line in a format of other programs.
    fn exported(&self, corpus: &Corpus, at: usize, found: Result<Reading, Unread>) -> Result<Line> {
        let whole = vec![corpus.sentences[at].len() as u32];
        let (status, found) = match found {
            Ok(reading) => (Status::Ok, Some(reading)),
            Err(unread) => (Status::from(unread), None),
        };
        let ends = found.as_ref().map_or(&whole, |reading| &reading.ends);
        let tree = found.as_ref().and_then(|reading| reading.tree.as_deref());
        let segments = export::results::segments(corpus, at, ends, tree, &self.labels)?;
        let gold = corpus.gold.as_ref().and_then(|gold| gold[at].first());
        Ok(Line {
            gold: gold.map(|ends| corpus.segments(at, ends)),
            log_probability: found.as_ref().map(|reading| reading.log_probability),
            ..Line::new(corpus.lines[at], self.level, corpus.line(at, &whole), segments, status)
        })
    }

    fn write(&mut self, line: Line) -> Result<()> {
        let text = self.writer.as_mut().map(|writer| writer.line(line)).transpose()?;
        self.out.text(&text.unwrap_or_default())
    }

    /// Prints the analysis of a line, after the empty lines before it.
    fn line(&mut self, line: u32, text: &str) -> Result<()> {
        self.empty_before(line)?;
        self.out.line(text)
    }

    fn empty_before(&mut self, line: u32) -> Result<()> {
        self.gaps.before(line).try_for_each(|line| match self.format {
            Format::Segmentation | Format::Brackets => self.out.line(""),
            Format::Tsv => self.out.line(&Row::empty(line).to_string()),
            Format::Export(_) => self.write(Line::empty(line, Status::Empty)),
        })
    }

    /// Hands over what was printed.
    fn flush(&mut self) -> Result<()> {
        self.out.flush()
    }

    /// Prints the empty lines at the end of a text of `n_lines` lines.
    fn finish(&mut self, n_lines: u32) -> Result<()> {
        self.empty_before(n_lines + 1)?;
        if let Some(writer) = self.writer.take() {
            self.out.text(&writer.finish()?)?;
        }
        self.out.flush()
    }
}
