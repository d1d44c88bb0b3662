//! The text of `segment`: symbols, and lines that go back to the form in which they came.
//!
//! A symbol is a grapheme (a character with its combining marks and joiners), or a token. The format of the lines is looked at before they are
//! read ([`grammaton::data::corpus::sniff`]). Nothing else is changed unless keys say so: phonemic transcriptions use upper case, digits and punctuation
//! for sounds.
//!
//! Law: without spaces, a segmented line is the sentence of its line without spaces, with the columns or the speaker beside it; an empty line stays
//! empty. Lines of a transcript without an utterance are left out.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, ensure};
use grammaton::data::corpus::layout::LineKind;
use grammaton::data::corpus::read::Notice;
use grammaton::data::corpus::sniff::Contents;
use grammaton::data::corpus::{Corpus, Options, Unit, write_line};
use grammaton::forest::build::places;
use rustc_hash::{FxHashMap, FxHashSet};
use training::input;
use training::input::format::{self, OpenText};
use training::input::segmented_file::{self, Annotated, Resolved, SegmentedFile};
use training::job::PositionMarks;
use training::metrics::recommended;
use training::output;

use crate::keys::{self, Keys};

/// Symbols of a sentence of a [`Text::part`] at most: more than [`LONG_SENTENCE`](grammaton::forest::build::LONG_SENTENCE), beyond which work is proportional.
const LONGEST_OF_PART: usize = 384;

/// The file of annotations of a job.
pub const ANNOTATED: &str = "corpus.annotated.txt";

/// Sentences of symbols.
pub struct Text {
    /// Those of the text, then annotated ones that it lacks.
    corpus: Corpus,
    /// Lines of the text, empty ones among them; annotated sentences stand behind them.
    n_lines: u32,
    /// The lines of its job's file of annotations: those of the user's file, each at its number, then lines of the text that have marks.
    annotations: Vec<String>,
    /// Marks of single positions in annotated lines.
    marks: PositionMarks,
    /// The user's file of annotations.
    pub annotated: PathBuf,
    /// Whether lines without a sentence are left out.
    is_transcript: bool,
    /// Assignments of keys of its job.
    assignments: Vec<String>,
    /// What was found in the text, and what was changed.
    pub notices: Vec<String>,
}

impl Text {
    /// Reads the text at `path` as its format and the keys say; `-` is standard input.
    ///
    /// # Errors
    /// [`format::Ambiguous`] and [`grammaton::data::corpus::ReadError`] among others.
    pub fn read(path: &Path, contents: Contents, keys: &Keys) -> Result<Text> {
        let (table, given) = keys.table()?;
        let text = OpenText::open(path)?;
        let (reading, findings) = text.look(contents, given, &keys::reading(&table, given))?;
        let mut notices: Vec<String> =
            findings.iter().map(|finding| format::found(&text.name, finding)).collect();
        let unit = reading.unit.map_or(Unit::Grapheme, keys::with_marks);
        let is_transcript = reading.layout.lines == LineKind::Chat;
        let (mut corpus, end) = text.read(&Options { unit, layout: reading.layout, ..table.options() })?;
        // Notices about gold and empty lines come with training.
        let is_shown =
            |notice: &&Notice| !matches!(notice, Notice::NoGold { .. } | Notice::EmptyLines { .. });
        notices.extend(end.notices.iter().filter(is_shown).map(ToString::to_string));
        let marks = table.position_marks();
        marks.check(&table.options())?;
        let marked = take_marks(&mut corpus, &marks)?;
        ensure!(
            corpus.symbols.len() > 1,
            "{}: the text has a single symbol, so that every segmentation is as good as another; give a text of more",
            corpus.source_name
        );
        let mut annotations = Vec::new();
        if !table.annotated.as_os_str().is_empty() {
            let file = SegmentedFile::read(&table.annotated, &table.options(), &marks)?;
            annotations = add(&mut corpus, &file, &marks, end.n_lines, &mut notices);
        }
        annotations.extend(marked);
        ensure!(
            !annotations.is_empty() || !marks.any(),
            "{}: no line has the marks of --boundary-mark and --joined-mark; give them as they are written, or leave the options out",
            corpus.source_name
        );
        // Most texts have no marks, and any tool takes them apart.
        if unit == Unit::Grapheme && corpus.symbols.iter().all(|symbol| symbol.chars().count() == 1) {
            corpus.unit = Unit::Char;
        }
        let assignments = keys.of_job();
        Ok(Text {
            corpus,
            n_lines: end.n_lines,
            annotations,
            marks,
            annotated: table.annotated,
            is_transcript,
            assignments,
            notices,
        })
    }

    /// Number of symbols of all sentences.
    pub fn length(&self) -> usize {
        self.corpus.sentences.iter().map(Vec::len).sum()
    }

    /// The line of the longest utterance, and its number of symbols.
    pub fn longest_line(&self) -> (u32, usize) {
        let lengths = self.corpus.sentences.iter().map(Vec::len).zip(&self.corpus.lines).rev();
        let (n_symbols, &line) = lengths.max_by_key(|(n, _)| *n).expect("a text has an utterance");
        (line, n_symbols)
    }

    /// A part of the text whose work ([`places`] of charts) is about `limit`, if the text has more, and how many times as much the text has. Its sentences are evenly
    /// spaced in the order of length, and cut where they are so long that work is proportional to length.
    pub fn part(&self, limit: f64) -> (Text, f64) {
        let Corpus { sentences, occurrences, .. } = &self.corpus;
        let work_of = |positions: &[usize], longest: usize| {
            positions.iter().fold([0.0; 2], |sums, &at| {
                let times = occurrences.get(at).map_or(1.0, |&n| f64::from(n));
                let work = places(sentences[at].len().min(longest));
                [sums[0] + times * work[0], sums[1] + times * work[1]]
            })
        };
        let mut by_length: Vec<usize> = (0..sentences.len()).collect();
        by_length.sort_by_key(|&at| sentences[at].len());
        let (whole, cut) = (work_of(&by_length, usize::MAX), work_of(&by_length, LONGEST_OF_PART));
        let n = ((sentences.len() as f64 * limit / cut[0]) as usize).clamp(1, sentences.len());
        let mut positions: Vec<usize> =
            (0..n).map(|at| by_length[(2 * at + 1) * sentences.len() / (2 * n)]).collect();
        // In the order of length, so that the sums of the whole text are the same bits.
        let part = work_of(&positions, LONGEST_OF_PART);
        positions.sort_unstable();
        let mut corpus = self.corpus.subset(&positions);
        corpus.sentences.iter_mut().for_each(|sentence| sentence.truncate(LONGEST_OF_PART));
        corpus.gold = None;
        let assignments = self.assignments.clone();
        let (annotations, notices) = (Vec::new(), Vec::new());
        let (annotated, marks) = (self.annotated.clone(), self.marks.clone());
        let part_of_text = Text { corpus, annotations, marks, annotated, assignments, notices, ..*self };
        (part_of_text, (whole[0] / part[0]).max(whole[1] / part[1]))
    }

    /// The sentences.
    pub fn corpus(&self) -> &Corpus {
        &self.corpus
    }

    /// Keys of `[corpus]` for [`Text::corpus_file`], a line each.
    pub fn keys(&self) -> String {
        let counts = if self.corpus.occurrences.is_empty() { "" } else { "counts = \"full\"\n" };
        let annotated = if self.annotations.is_empty() {
            String::new()
        } else {
            format!("annotated = \"{ANNOTATED}\"\n")
        };
        format!("unit = \"{}\"\nlayout = \"plain\"\n{counts}{annotated}", self.corpus.unit.name())
    }

    /// The file of annotations that the job reads, if there are some.
    pub fn annotations_file(&self) -> Option<String> {
        (!self.annotations.is_empty()).then(|| self.annotations.join("\n") + "\n")
    }

    /// What is known of annotated sentences.
    ///
    /// # Errors
    /// None in a text that was read.
    pub fn known(&self) -> Result<Annotated> {
        let Some(lines) = self.annotations_file() else { return Ok(Annotated::default()) };
        let options = Options { unit: self.corpus.unit, ..Options::default() };
        Ok(SegmentedFile::parse(&lines, ANNOTATED, &options, &self.marks)?.known_in(&self.corpus))
    }

    /// Assignments of further keys of the job.
    pub fn assignments(&self) -> &[String] {
        &self.assignments
    }

    /// The file that the job reads, with the lines of the text, and its gold segmentation if it has one.
    pub fn corpus_file(&self) -> Result<String> {
        let occurrences = &self.corpus.occurrences;
        let lines = self.lines(&self.corpus.segmentation(), |at, line| match occurrences.get(at) {
            Some(n) => format!("{n} {line}"),
            None => line,
        })?;
        Ok(lines.join("\n") + "\n")
    }

    /// The text as segmented in a folder of results of [`Text::corpus_file`]: by the recommended decoder.
    pub fn segmented_in(&self, dir: &Path) -> Result<String> {
        let options = Options { unit: self.corpus.unit, ..Options::default() };
        let path = |decoder: &str| dir.join(output::segmentation(decoder));
        let best = recommended(output::decoders().filter(|decoder| path(decoder).exists()));
        let (found, _) = input::corpus(&path(best.context("no segmentation in the results")?), &options)?;
        let beside = &self.corpus.beside;
        let mut written = self.lines(&self.ends_in(&found)?, |at, line| match beside.get(at) {
            Some((before, after)) => [before, &line[..], after].concat(),
            None => line,
        })?;
        written.truncate(self.n_lines as usize);
        if self.is_transcript {
            written.retain(|line| !line.is_empty());
        }
        Ok(written.join("\n") + "\n")
    }

    /// The ends of the words of `found`, the same text in other symbols: digraphs are letters there, and letters may be digraphs.
    fn ends_in(&self, found: &Corpus) -> Result<Vec<Vec<u32>>> {
        let offsets = |corpus: &Corpus, sentence: &[u32]| -> Vec<usize> {
            let lengths = sentence.iter().map(|&symbol| corpus.symbols[symbol as usize].len());
            lengths
                .scan(0, |offset, length| {
                    *offset += length;
                    Some(*offset)
                })
                .collect()
        };
        let pairs = self.corpus.sentences.iter().zip(&found.sentences).zip(found.segmentation());
        let ends = pairs.map(|((ours, theirs), ends)| {
            let [ours, theirs] = [offsets(&self.corpus, ours), offsets(found, theirs)];
            let end = |end: u32| ours.binary_search(&theirs[end as usize - 1]).ok().map(|at| at as u32 + 1);
            ends.into_iter().map(end).collect::<Option<Vec<u32>>>()
        });
        ends.collect::<Option<_>>()
            .context("internal error: the segmentation is of another text; please report it")
    }

    /// Every line of the text cut at these ends, by sentence; `with` adds to a line by the position of its sentence.
    fn lines(&self, ends: &[Vec<u32>], with: impl Fn(usize, String) -> String) -> Result<Vec<String>> {
        let Corpus { symbols, sentences, lines, unit, .. } = &self.corpus;
        ensure!(ends.len() == sentences.len(), "internal error: utterances were lost; please report it");
        let n_lines = lines.last().map_or(self.n_lines, |&last| last.max(self.n_lines));
        let mut written = vec![String::new(); n_lines as usize];
        for (position, ((sentence, ends), &line)) in sentences.iter().zip(ends).zip(lines).enumerate() {
            let at = written
                .get_mut(line as usize - 1)
                .context("internal error: a line too many; please report it")?;
            *at = with(position, write_line(symbols, sentence, ends, *unit));
        }
        Ok(written)
    }
}

/// Takes the marks out of the sentences of a text. Returns its lines that have some, as lines of a file of annotations.
fn take_marks(corpus: &mut Corpus, marks: &PositionMarks) -> Result<Vec<String>> {
    if !corpus.symbols.iter().any(|symbol| marks.meaning(symbol).is_some()) {
        return Ok(Vec::new());
    }
    let is_mark: Vec<bool> = corpus.symbols.iter().map(|symbol| marks.meaning(symbol).is_some()).collect();
    let mut lines = Vec::new();
    for at in 0..corpus.sentences.len() {
        // Spaces of the text are gold, to be scored with.
        let (sentence, known) = segmented_file::unmarked(corpus, at, &[], marks);
        let Some(known) = known else { continue };
        ensure!(
            !sentence.is_empty(),
            "{}:{}: the line has marks alone",
            corpus.source_name,
            corpus.lines[at]
        );
        lines.extend(segmented_file::line(&corpus.symbols, &sentence, &known, corpus.unit, marks));
        let marked = std::mem::replace(&mut corpus.sentences[at], sentence);
        for ends in corpus.gold.iter_mut().flat_map(|gold| &mut gold[at]) {
            for end in &mut *ends {
                *end -=
                    marked[..*end as usize].iter().filter(|&&symbol| is_mark[symbol as usize]).count() as u32;
            }
            ends.dedup();
            ends.retain(|&end| end > 0);
        }
    }
    let mut next = 0..;
    let numbers: Vec<u32> = is_mark
        .iter()
        .map(|is_mark| if *is_mark { u32::MAX } else { next.next().expect("there are more") })
        .collect();
    corpus.sentences.iter_mut().flatten().for_each(|symbol| *symbol = numbers[*symbol as usize]);
    corpus.symbols.retain(|symbol| marks.meaning(symbol).is_none());
    Ok(lines)
}

/// Adds the annotated sentences of a file that `corpus` lacks, behind its `n_lines`. Returns all of its lines as they are read, each at its number, the others
/// empty.
fn add(
    corpus: &mut Corpus,
    file: &SegmentedFile,
    marks: &PositionMarks,
    n_lines: u32,
    notices: &mut Vec<String>,
) -> Vec<String> {
    let mut ids: FxHashMap<String, u32> = corpus.symbols.iter().cloned().zip(0..).collect();
    let known: Vec<Option<u32>> = file.symbols.iter().map(|name| ids.get(name).copied()).collect();
    let in_text = |sentence: &[u32]| {
        sentence.iter().map(|&symbol| known[symbol as usize]).collect::<Option<Vec<u32>>>()
    };
    let mut there: FxHashSet<Vec<u32>> = corpus.sentences.iter().cloned().collect();
    let resolved = file.resolved(|sentence| in_text(sentence).is_some_and(|it| there.contains(&it)));
    let strange = resolved.iter().find_map(|line| {
        Some((line, line.read.sentence.iter().find(|symbol| known[**symbol as usize].is_none())?))
    });
    notices.extend(strange.map(|(Resolved { number, read, .. }, &symbol)| {
        format!(
            "{}:{number}: `{}` has the symbol `{}`, which the text lacks; it is learned from as it stands",
            file.name,
            file.text(&read.sentence),
            file.symbols[symbol as usize]
        )
    }));
    let (mut lines, mut line) = (Vec::new(), n_lines);
    for Resolved { number, read, .. } in resolved {
        lines.resize(number as usize - 1, String::new());
        lines.extend(segmented_file::line(&file.symbols, &read.sentence, &read.known, corpus.unit, marks));
        let mut id = |&symbol: &u32| {
            let name = &file.symbols[symbol as usize];
            *ids.entry(name.clone()).or_insert_with(|| {
                corpus.symbols.push(name.clone());
                corpus.symbols.len() as u32 - 1
            })
        };
        let sentence: Vec<u32> = read.sentence.iter().map(&mut id).collect();
        if !there.insert(sentence.clone()) {
            continue;
        }
        line += 1;
        corpus.lines.push(line);
        let ends = read.analyses.first().cloned().unwrap_or_else(|| vec![sentence.len() as u32]);
        corpus.gold.iter_mut().for_each(|gold| gold.push(vec![ends.clone()]));
        corpus.sentences.push(sentence);
        if !corpus.occurrences.is_empty() {
            corpus.occurrences.push(1);
        }
        if !corpus.beside.is_empty() {
            corpus.beside.push(Default::default());
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn text(lengths: &[usize]) -> Text {
        let file = tempfile::NamedTempFile::new().unwrap();
        let lines: String = lengths.iter().map(|&n| "ab".repeat(n).split_off(n) + "\n").collect();
        std::fs::write(file.path(), lines).unwrap();
        Text::read(file.path(), Contents::Utterances, &Keys::default()).unwrap()
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        /// Law: the work of a part is within the limit, or of one sentence, up to a factor that the spacing of lengths explains; its work times the
        /// number that is returned is at least that of the text.
        #[test]
        fn a_part_has_bounded_work(
            lengths in proptest::collection::vec(prop_oneof![2..30_usize, 30..1_500_usize], 1..150),
            limit in 1e2..1e7,
        ) {
            let text = text(&lengths);
            let (part, times) = text.part(limit);
            let sentences = &part.corpus().sentences;
            prop_assert!(sentences.iter().all(|sentence| (1..=LONGEST_OF_PART).contains(&sentence.len())));
            let work_of = |sentences: &[Vec<u32>], at: usize| -> f64 {
                sentences.iter().map(|sentence| places(sentence.len())[at]).sum()
            };
            let one = places(LONGEST_OF_PART)[0];
            prop_assert!(work_of(sentences, 0) <= 2.0 * limit + one, "{} {limit}", work_of(sentences, 0));
            for at in [0, 1] {
                let whole = work_of(&text.corpus().sentences, at);
                prop_assert!(work_of(sentences, at) * times >= whole * (1.0 - 1e-9));
            }
            let is_short = lengths.iter().all(|&n| n <= LONGEST_OF_PART);
            if is_short && work_of(&text.corpus().sentences, 0) <= limit {
                prop_assert_eq!((sentences.len(), times), (lengths.len(), 1.0));
            }
        }
    }
}
