//! The lines of a folder of results, one after another: the segmentation by a decoder, and what the tables beside it have.
//!
//! In: `segmentation.DECODER.txt` and `.tsv`, `boundaries.tsv` and `parses.txt` if they are there, and the names of segments in the model. Out: a [`Line`]
//! for each line of the text. In memory are a block of the text and the probabilities of boundaries.

use std::fs::File;
use std::io::{BufRead as _, BufReader, Lines};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail, ensure};
use grammaton::data::corpus::{Corpus, Options};
use grammaton::grammar::tree::Tree;
use rustc_hash::FxHashMap;

use super::line::{Level, Line, Segment};
use crate::boundary::BoundaryRow;
use crate::input;
use crate::job::Job;
use crate::metrics::{Summary, recommended};
use crate::model::SavedModel;
use crate::output::{self, JOB, SUMMARY};
use crate::row::{Row, Status};
use crate::segmented;

/// Symbols of a block.
const BLOCK: usize = 1 << 20;

/// A folder of results of a text.
pub struct Results {
    dir: PathBuf,
    decoder: String,
    options: Options,
    /// Names of the nonterminals whose constituents are segments.
    labels: Vec<String>,
}

impl Results {
    /// Opens a folder, and chooses the decoder of that name, or the recommended one.
    ///
    /// # Errors
    /// A folder without a finished result, one of trees or heads, and a decoder that it does not have.
    pub fn open(dir: &Path, decoder: Option<&str>) -> Result<Results> {
        let name = dir.display();
        summary(dir)?;
        let found: Vec<&str> =
            output::decoders().filter(|decoder| dir.join(output::segmentation(decoder)).exists()).collect();
        let Some(best) = recommended(found.iter().copied()) else {
            bail!("{name}: no segmentation of a text; trees and heads are in parses.txt and parses.*.conllu")
        };
        let decoder = decoder.unwrap_or(best);
        ensure!(
            found.contains(&decoder),
            "{name}: no segmentation by `{decoder}`; there are: {}",
            found.join(", ")
        );
        let job = Job::load(&dir.join(JOB), &[])?;
        let saved = SavedModel::load(dir)?;
        let labels = labels(&saved);
        let options = segmented::printed_options(&job);
        Ok(Results { dir: dir.to_owned(), decoder: decoder.to_owned(), options, labels })
    }

    /// What its segments are.
    pub fn level(&self) -> Level {
        Level::of(self.labels.iter().map(String::as_str))
    }

    /// The table of the segmentation.
    pub fn table(&self) -> Result<String> {
        let path = self.table_path();
        input::text(&path, &path.display().to_string(), "table")
    }

    fn table_path(&self) -> PathBuf {
        self.dir.join(output::table(&self.decoder))
    }

    /// Hands every line to `each`.
    pub fn lines(&self, level: Level, each: &mut dyn FnMut(Line) -> Result<()>) -> Result<()> {
        let path = self.dir.join(output::segmentation(&self.decoder));
        let mut reader = input::reader(&path, &self.options)?;
        let mut table = Rows::open(&self.table_path())?;
        let boundaries = self.dir.join(output::BOUNDARIES);
        let mut boundaries =
            if boundaries.exists() { segmented::boundaries(&boundaries)? } else { FxHashMap::default() };
        let mut trees = Trees::open(&self.dir.join(output::PARSES))?;
        while let Some(block) = reader.block(BLOCK)? {
            for (at, (&number, ends)) in block.lines.iter().zip(block.segmentation()).enumerate() {
                let row = loop {
                    let row = table.next()?;
                    let missing = || format!("{}: line {number} is missing; train once more", table.name);
                    let row = row.with_context(missing)?;
                    if row.number == number {
                        break row;
                    }
                    each(Line::empty(row.number, row.status))?;
                };
                each(self.line(&block, at, &ends, level, row, &mut boundaries, &mut trees)?)?;
            }
        }
        while let Some(row) = table.next()? {
            each(Line::empty(row.number, row.status))?;
        }
        Ok(())
    }

    #[expect(clippy::too_many_arguments, reason = "what the files have of a line")]
    fn line(
        &self,
        corpus: &Corpus,
        at: usize,
        ends: &[u32],
        level: Level,
        row: TableRow,
        boundaries: &mut FxHashMap<u32, Vec<BoundaryRow>>,
        trees: &mut Trees,
    ) -> Result<Line> {
        let n_symbols = corpus.sentences[at].len();
        let rows = boundaries.remove(&row.number);
        ensure!(
            rows.as_ref().is_none_or(|rows| rows.len() + 1 == n_symbols),
            "{}: line {} of the text has {n_symbols} symbols, and other positions here; train once more",
            self.dir.join(output::BOUNDARIES).display(),
            row.number
        );
        let tree = trees.of(row.number)?.filter(|_| row.status != Status::NoAnalysis);
        let (_, separator) = self.options.effective_unit().separators();
        let gold = row.gold.map(|gold| gold.split(separator).map(str::to_owned).collect());
        let segments = segments(corpus, at, ends, tree.as_deref(), &self.labels)?;
        let text = corpus.line(at, &[n_symbols as u32]);
        Ok(Line {
            gold,
            separator,
            log_probability: row.log_probability,
            boundaries: rows.map(|rows| rows.iter().map(|row| row.boundary.probability).collect()),
            ..Line::new(row.number, level, text, segments, row.status)
        })
    }
}

/// Names of the nonterminals whose constituents are segments.
pub fn labels(saved: &SavedModel) -> Vec<String> {
    let model = saved.model.of_grammar();
    let names = model.map(|model| model.segments.iter().map(|&symbol| model.grammar.name(symbol).to_owned()));
    names.into_iter().flatten().collect()
}

/// The segments of the sentence at a position of `corpus`, with their categories if the tree has the same segments.
pub fn segments(
    corpus: &Corpus,
    at: usize,
    ends: &[u32],
    tree: Option<&str>,
    labels: &[String],
) -> Result<Vec<Segment>> {
    let tree = tree.map(Tree::parse).transpose()?;
    let constituents =
        tree.as_ref().map(|tree| tree.segments(|label| labels.iter().any(|known| known == label)));
    let constituents =
        constituents.filter(|found| found.iter().map(|(end, _)| *end).eq(ends.iter().copied()));
    let lengths = [0].iter().chain(ends).zip(ends).map(|(start, end)| end - start);
    let texts = corpus.segments(at, ends).into_iter().zip(lengths).enumerate();
    let segment = |(place, (text, n_symbols)): (usize, (String, u32))| Segment {
        text,
        n_symbols,
        category: constituents.as_ref().and_then(|found| found[place].1).map(str::to_owned),
    };
    Ok(texts.map(segment).collect())
}

/// The summary of a finished result.
pub fn summary(dir: &Path) -> Result<Summary> {
    let (path, name) = (dir.join(SUMMARY), dir.display());
    ensure!(
        path.exists(),
        "{name}: no finished result ({SUMMARY}); give a folder that grammaton segment, morphemes or train has written"
    );
    let text = input::text(&path, &path.display().to_string(), "summary")?;
    serde_json::from_str(&text).with_context(|| format!("{}: not the summary of a result", path.display()))
}

/// A row of a table, without its prediction.
struct TableRow {
    number: u32,
    gold: Option<String>,
    log_probability: Option<f64>,
    status: Status,
}

/// The rows of a table.
struct Rows {
    name: String,
    lines: Lines<BufReader<File>>,
    n: usize,
}

impl Rows {
    fn open(path: &Path) -> Result<Rows> {
        let name = path.display().to_string();
        let file = File::open(path).with_context(|| format!("{name}: cannot read the table"))?;
        let mut rows = Rows { name, lines: BufReader::new(file).lines(), n: 0 };
        let header = rows.row()?.unwrap_or_default();
        ensure!(
            header == Row::HEADER,
            "{}: expected the columns {:?}, found {header:?}",
            rows.name,
            Row::HEADER
        );
        Ok(rows)
    }

    fn row(&mut self) -> Result<Option<String>> {
        self.n += 1;
        let line = self.lines.next().transpose();
        line.with_context(|| format!("{}:{}: cannot read the table", self.name, self.n))
    }

    fn next(&mut self) -> Result<Option<TableRow>> {
        let Some(row) = self.row()? else { return Ok(None) };
        let found = || -> Option<TableRow> {
            let [number, gold, _, log_probability, status] =
                row.split('\t').collect::<Vec<_>>().try_into().ok()?;
            let log_probability = Some(log_probability).filter(|number| !number.is_empty());
            Some(TableRow {
                number: number.parse().ok()?,
                gold: Some(gold.to_owned()).filter(|gold| !gold.is_empty()),
                log_probability: log_probability.map(str::parse).transpose().ok()?,
                status: Status::of(status)?,
            })
        };
        let found =
            found().with_context(|| format!("{}:{}: not a row of the table: {row:?}", self.name, self.n))?;
        ensure!(
            found.number as usize + 1 == self.n,
            "{}:{}: expected line {}, found {}",
            self.name,
            self.n,
            self.n - 1,
            found.number
        );
        Ok(Some(found))
    }
}

/// The trees of lines in ascending order, if there is a file of trees.
struct Trees {
    lines: Option<Lines<BufReader<File>>>,
    n: u32,
}

impl Trees {
    fn open(path: &Path) -> Result<Trees> {
        let file = path.exists().then(|| File::open(path)).transpose();
        let file = file.with_context(|| format!("{}: cannot read the trees", path.display()))?;
        Ok(Trees { lines: file.map(|file| BufReader::new(file).lines()), n: 0 })
    }

    /// The tree of a line; `None` if it has none.
    fn of(&mut self, number: u32) -> Result<Option<String>> {
        let Some(lines) = &mut self.lines else { return Ok(None) };
        let mut found = None;
        while self.n < number {
            self.n += 1;
            found = lines.next().transpose()?;
        }
        Ok(found.filter(|tree| !tree.is_empty() && tree != "()"))
    }
}
