//! Reading sentences with heads, in two formats that are distinguished by their columns, which tabs separate:
//!
//! - ten: CoNLL-U (Nivre et al. 2020). Comments, ranges of words written as one (`1-2`) and empty nodes (`1.1`) are skipped;
//!   punctuation is what has the universal tag `PUNCT`.
//! - two or three: word, tag and perhaps head. Punctuation is what has the tag `PUNCT`, or one of the Penn Treebank's for it.
//!
//! A blank line ends a sentence. A sentence without heads, or with `_` for all of them, has none. Nor has one whose heads are no tree; what is wrong
//! with them is in [`Document::faults`], for those who need gold.

use std::ops::Range;

use super::{Document, Sentence, Tags};
use crate::data::corpus::decode::{self, whole};

/// Tags of the Penn Treebank that stand for punctuation, and for the currencies that are left out with it.
const PENN_PUNCTUATION: [&str; 9] = [",", ".", ":", "``", "''", "-LRB-", "-RRB-", "$", "#"];
pub(super) const UNIVERSAL_PUNCTUATION: &str = "PUNCT";

/// Error in a file of sentences: its place and kind.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{source_name}:{line}: {problem}")]
pub struct SentenceError {
    /// Name of the file.
    pub source_name: String,
    /// Line, from 1.
    pub line: u32,
    /// The problem.
    pub problem: Problem,
}

/// Faults of a line.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Problem {
    /// A file that is no text.
    #[error(transparent)]
    Undecoded(#[from] decode::Fault),
    /// A file without words.
    #[error(
        "there are no sentences; expected CoNLL-U, or a word, its tag and its head a line, with tabs between them"
    )]
    NoSentences,
    /// A line of other columns than its format has.
    #[error("found {found} columns between tabs, expected {expected}")]
    Columns {
        /// Number found.
        found: usize,
        /// Numbers expected.
        expected: &'static str,
    },
    /// An empty column.
    #[error("column {0} is empty; write `_` where there is nothing to say")]
    EmptyColumn(usize),
    /// A word out of order.
    #[error(
        "found `{found}` as the number of a word, expected {expected}; number the words of a sentence from 1"
    )]
    Number {
        /// The text found.
        found: String,
        /// The id expected.
        expected: usize,
    },
    /// A head that is no number.
    #[error(
        "found `{0}` as head, expected the number of a word, 0 for the root, or `_` if no word of the sentence has a head"
    )]
    Head(String),
    /// A head beyond the sentence.
    #[error("found head {head} in a sentence of {n_words} words, expected one of them, or 0 for the root")]
    NoSuchWord {
        /// The head.
        head: u32,
        /// Length of the sentence.
        n_words: usize,
    },
    /// Heads of some words only.
    #[error(
        "some words of the sentence have a head, and this one is the first that differs; give heads to all or to none (`_`)"
    )]
    SomeHeads,
    /// Heads that are no tree.
    #[error("`{0}` is below itself; expected a tree, in which the heads lead from every word to 0, the root")]
    Cycle(String),
}

/// A line that is a word.
struct Word<'t> {
    form: &'t str,
    tag: &'t str,
    head: Option<u32>,
    punctuation: bool,
    line: u32,
    /// Bytes of the head in the line; empty, at the line's end, in a file without that column.
    head_column: Range<usize>,
}

#[derive(Clone, Copy)]
enum Format {
    Conllu,
    Plain,
}

/// Reads all sentences of a file, plain or compressed; `source_name` is what messages call it, `tags` is the column of tags in CoNLL-U.
///
/// # Errors
/// [`SentenceError`] at the first thing that does not fit, heads that are no tree among them; no sentences are an error as well.
pub fn read(bytes: &[u8], source_name: &str, tags: Tags) -> Result<Vec<Sentence>, SentenceError> {
    Ok(Document::read(bytes, source_name, tags)?.complete()?.with_sound_heads()?.sentences)
}

impl Document {
    /// Reads a file, as [`read()`] does, but sentences whose heads are no tree are among those without heads, and sentences with another fault are in
    /// [`Document::unread`].
    ///
    /// # Errors
    /// [`SentenceError`] if the file is no text, or no sentence can be read.
    pub fn read(bytes: &[u8], source_name: &str, tags: Tags) -> Result<Document, SentenceError> {
        let error = |line, problem| SentenceError { source_name: source_name.to_owned(), line, problem };
        let text = whole(bytes, source_name).map_err(|(line, fault)| error(line, fault.into()))?;
        let format = format(lines(&text).map(|(_, text)| text));
        let format = format.ok_or_else(|| error(1, Problem::NoSentences))?;
        let mut document = Document::default();
        let (mut words, mut columns, mut fault) = (Vec::new(), Vec::new(), None);
        for ((start, line_text), line) in lines(&text).zip(1u32..).chain([((0, ""), 0)]) {
            if line_text.trim().is_empty() {
                if let Some(fault) = fault.take() {
                    document.unread.push(fault);
                } else if let Some(first) = words.first() {
                    let heads = heads(&words).unwrap_or_else(|(line, problem)| {
                        document.faults.push(error(line, problem));
                        None
                    });
                    document.sentences.push(sentence(&words, heads, first.line));
                    document.head_columns.push(std::mem::take(&mut columns));
                }
                words.clear();
                columns.clear();
                continue;
            }
            let word = match format {
                _ if fault.is_some() => continue,
                Format::Conllu => conllu_word(line_text, line, tags, words.len() + 1),
                Format::Plain => plain_word(line_text, line).map(Some),
            };
            match word {
                Ok(Some(word)) => {
                    columns.push(start + word.head_column.start..start + word.head_column.end);
                    words.push(word);
                }
                Ok(None) => {}
                Err(problem) => fault = Some(error(line, problem)),
            }
        }
        if document.sentences.is_empty() {
            return Err(document.unread.into_iter().next().unwrap_or(error(1, Problem::NoSentences)));
        }
        drop(words);
        document.text = text;
        Ok(document)
    }

    /// The document, if all of its sentences could be read.
    ///
    /// # Errors
    /// The first fault of a sentence.
    pub fn complete(self) -> Result<Document, SentenceError> {
        match self.unread.first() {
            Some(fault) => Err(fault.clone()),
            None => Ok(self),
        }
    }

    /// The document, if all heads of its sentences are trees.
    ///
    /// # Errors
    /// The first fault of heads.
    pub fn with_sound_heads(self) -> Result<Document, SentenceError> {
        match self.faults.first() {
            Some(fault) => Err(fault.clone()),
            None => Ok(self),
        }
    }
}

/// The lines of a text without their ends, and the byte that each begins at; the first one begins after a byte order mark.
fn lines(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut start = text.len() - text.trim_start_matches('\u{feff}').len();
    text[start..].split_inclusive('\n').map(move |line| {
        let begin = start;
        start += line.len();
        let without_end = line.strip_suffix('\n').map(|line| line.strip_suffix('\r').unwrap_or(line));
        (begin, without_end.unwrap_or(line))
    })
}

/// Format of the lines: that of the first line that cannot be a comment.
fn format<'t>(mut lines: impl Iterator<Item = &'t str>) -> Option<Format> {
    let first = lines.find(|line| !line.trim().is_empty() && !line.starts_with('#'))?;
    match first.split('\t').count() {
        2 | 3 => Some(Format::Plain),
        // In either case the error says what was expected.
        _ => Some(Format::Conllu),
    }
}

/// Reads a line of CoNLL-U, where word `number` is expected; none if it is not one of a word.
fn conllu_word(text: &str, line: u32, tags: Tags, number: usize) -> Result<Option<Word<'_>>, Problem> {
    if text.starts_with('#') {
        return Ok(None);
    }
    let expected = "10 (CoNLL-U), or in all lines 2 or 3 (word, tag, head)";
    let columns = columns::<10>(text, expected)?;
    let [found, form, _, upos, xpos, _, head, ..] = columns;
    let is_number = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit()) && !text.is_empty();
    if let Some((first, second)) = found.split_once(['-', '.'])
        && is_number(first)
        && is_number(second)
    {
        return Ok(None);
    }
    if found.parse() != Ok(number) {
        return Err(Problem::Number { found: found.to_owned(), expected: number });
    }
    let tag = match tags {
        Tags::Upos => upos,
        Tags::Xpos => xpos,
    };
    let punctuation = upos == UNIVERSAL_PUNCTUATION;
    Ok(Some(Word { form, tag, head: head_of(head)?, punctuation, line, head_column: column(text, 6) }))
}

/// Reads a line of word, tag and perhaps head.
fn plain_word(text: &str, line: u32) -> Result<Word<'_>, Problem> {
    let (form, tag, head) = match text.split('\t').count() {
        2 => {
            let [form, tag] = columns(text, "")?;
            (form, tag, None)
        }
        _ => {
            let [form, tag, head] = columns(text, "2 or 3 (word, tag, head), or in all lines 10 (CoNLL-U)")?;
            (form, tag, head_of(head)?)
        }
    };
    let punctuation = tag == UNIVERSAL_PUNCTUATION || PENN_PUNCTUATION.contains(&tag);
    Ok(Word { form, tag, head, punctuation, line, head_column: column(text, 2) })
}

/// Returns the bytes of column `at`, from 0, of a line; empty, at the line's end, if the line has fewer columns.
fn column(text: &str, at: usize) -> Range<usize> {
    let start: usize = text.split('\t').take(at).map(|column| column.len() + 1).sum();
    match text.split('\t').nth(at) {
        Some(column) => start..start + column.len(),
        None => text.len()..text.len(),
    }
}

/// The `N` columns of a line, none of them empty.
fn columns<'t, const N: usize>(text: &'t str, expected: &'static str) -> Result<[&'t str; N], Problem> {
    let columns: Vec<&str> = text.split('\t').map(str::trim).collect();
    let found = columns.len();
    let columns: [&str; N] = columns.try_into().map_err(|_| Problem::Columns { found, expected })?;
    match columns.iter().position(|column| column.is_empty()) {
        Some(at) => Err(Problem::EmptyColumn(at + 1)),
        None => Ok(columns),
    }
}

fn head_of(text: &str) -> Result<Option<u32>, Problem> {
    match text {
        "_" => Ok(None),
        _ => text.parse().map(Some).map_err(|_| Problem::Head(text.to_owned())),
    }
}

/// The sentence of these words.
fn sentence(words: &[Word<'_>], heads: Option<Vec<u32>>, line: u32) -> Sentence {
    Sentence {
        words: words.iter().map(|word| word.form.to_owned()).collect(),
        tags: words.iter().map(|word| word.tag.to_owned()).collect(),
        heads,
        given: words.iter().map(|word| word.head).collect(),
        punctuation: words.iter().map(|word| word.punctuation).collect(),
        breaks: Vec::new(),
        line,
    }
}

/// The heads of a sentence of these words, if it has any; or why they are no tree, and in which line.
fn heads(words: &[Word<'_>]) -> Result<Option<Vec<u32>>, (u32, Problem)> {
    let has_heads = words.first().is_some_and(|first| first.head.is_some());
    if let Some(word) = words.iter().find(|word| word.head.is_some() != has_heads) {
        return Err((word.line, Problem::SomeHeads));
    }
    let n_words = words.len();
    let heads: Option<Vec<u32>> = words.iter().map(|word| word.head).collect();
    if let Some(heads) = &heads {
        if let Some(at) = heads.iter().position(|&head| head as usize > n_words) {
            return Err((words[at].line, Problem::NoSuchWord { head: heads[at], n_words }));
        }
        if let Some(at) = on_a_cycle(heads) {
            return Err((words[at].line, Problem::Cycle(words[at].form.to_owned())));
        }
    }
    Ok(heads)
}

/// The place of a word that is below itself, if there is one.
fn on_a_cycle(heads: &[u32]) -> Option<usize> {
    // The walk that met each word first, from 1.
    let mut met = vec![0; heads.len()];
    for (start, walk) in (0..heads.len()).zip(1..) {
        let mut at = start;
        while met[at] == 0 && heads[at] > 0 {
            met[at] = walk;
            at = heads[at] as usize - 1;
        }
        if met[at] == walk {
            return Some(at);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::data::corpus::unpack::Packing;
    use crate::data::corpus::unpack::tests::pack;

    const CONLLU: &str = "# sent_id = 1\n\
        1-2\tcannot\t_\t_\t_\t_\t_\t_\t_\t_\n\
        1\tcan\tcan\tAUX\tMD\t_\t0\troot\t_\t_\n\
        2\tnot\tnot\tPART\tRB\t_\t1\tadvmod\t_\t_\n\
        2.1\tgo\tgo\tVERB\tVB\t_\t_\t_\t1:x\t_\n\
        3\t.\t.\tPUNCT\t.\t_\t1\tpunct\t_\t_\n\
        \n\
        # a comment\twith a tab\n\
        1\tà la\t_\tX\tFW\t_\t_\t_\t_\t_\n";

    fn read_text(text: &str, tags: Tags) -> Vec<Sentence> {
        read(text.as_bytes(), "f", tags).unwrap()
    }

    fn error(text: &str) -> String {
        read(text.as_bytes(), "f", Tags::Upos).unwrap_err().to_string()
    }

    #[test]
    fn conllu_is_read_without_what_is_no_word() {
        let [first, second] = &read_text(CONLLU, Tags::Xpos)[..] else { panic!("two sentences") };
        assert_eq!(first.words, ["can", "not", "."]);
        assert_eq!(first.tags, ["MD", "RB", "."]);
        assert_eq!(first.heads, Some(vec![0, 1, 1]));
        assert_eq!(first.punctuation, [false, false, true]);
        assert_eq!((first.line, second.line), (3, 9));
        assert_eq!((second.words[0].as_str(), &second.heads), ("à la", &None));
        assert_eq!(read_text(CONLLU, Tags::Upos)[0].tags, ["AUX", "PART", "PUNCT"]);
    }

    #[test]
    fn punctuation_of_conllu_is_universal() {
        let word = |upos| format!("1\t$\t_\t{upos}\t$\t_\t0\t_\t_\t_\n");
        for (upos, expected) in [("SYM", false), ("PUNCT", true), ("_", false)] {
            assert_eq!(read_text(&word(upos), Tags::Xpos)[0].punctuation, [expected], "{upos}");
        }
    }

    #[test]
    fn plain_lines_have_two_or_three_columns_and_no_comments() {
        let found = read_text("\u{feff}#\t#\t2\r\n100\tCD\t0\r\n\r\n\na\tDET\nb\tPUNCT\n", Tags::Upos);
        assert_eq!(found[0].words, ["#", "100"]);
        assert_eq!((&found[0].heads, found[0].punctuation[0]), (&Some(vec![2, 0]), true));
        assert_eq!(
            (&found[1].heads, &found[1].punctuation[..], found[1].line),
            (&None, &[false, true][..], 5)
        );
    }

    #[test]
    fn sentences_whose_heads_are_no_tree_have_none() {
        let text = "a\tN\t0\n\na\tN\t_\nb\tN\t1\n\na\tN\t2\nb\tN\t1\n\na\tN\t9\n\nb\tN\t0\n";
        let document = Document::read(text.as_bytes(), "f", Tags::Upos).unwrap();
        let has_heads: Vec<bool> =
            document.sentences.iter().map(|sentence| sentence.heads.is_some()).collect();
        assert_eq!(has_heads, [true, false, false, false, true]);
        assert_eq!(document.faults.iter().map(|fault| fault.line).collect::<Vec<_>>(), [4, 6, 9]);
        let refused = document.with_sound_heads().unwrap_err().to_string();
        assert_eq!(refused, error(text));
    }

    #[test]
    fn a_compressed_file_is_read_as_what_it_holds() {
        for packing in [Packing::Gzip, Packing::Zstd] {
            let bytes = pack(packing, CONLLU.as_bytes());
            assert_eq!(read(&bytes, "f", Tags::Xpos).unwrap(), read_text(CONLLU, Tags::Xpos));
            let cut = read(&bytes[..bytes.len() - 9], "f", Tags::Xpos).unwrap_err().to_string();
            assert!(cut.starts_with("f:") && cut.contains("the file is damaged or cut short"), "{cut}");
        }
    }

    #[test]
    fn invalid_sentences_are_refused_by_line() {
        let columns = "expected 10 (CoNLL-U), or in all lines 2 or 3 (word, tag, head)";
        let none =
            "expected the number of a word, 0 for the root, or `_` if no word of the sentence has a head";
        let tree = "expected a tree, in which the heads lead from every word to 0, the root";
        for (text, expected) in [
            ("\na N 0", format!("f:2: found 1 columns between tabs, {columns}")),
            ("a\tN\t0\nb\tN\t1\tx", {
                let columns = "expected 2 or 3 (word, tag, head), or in all lines 10 (CoNLL-U)";
                format!("f:2: found 4 columns between tabs, {columns}")
            }),
            ("a\t \t0", "f:1: column 2 is empty; write `_` where there is nothing to say".to_owned()),
            ("a\tN\t-1", format!("f:1: found `-1` as head, {none}")),
            ("a\tN\tx", format!("f:1: found `x` as head, {none}")),
            ("a\tN\t0\n\na\tN\t0\nb\tN\t3", {
                "f:4: found head 3 in a sentence of 2 words, expected one of them, or 0 for the root"
                    .to_owned()
            }),
            ("a\tN\t_\nb\tN\t1", {
                let way_out = "give heads to all or to none (`_`)";
                format!(
                    "f:2: some words of the sentence have a head, and this one is the first that differs; {way_out}"
                )
            }),
            ("a\tN\t0\nb\tN\t2", format!("f:2: `b` is below itself; {tree}")),
            ("a\tN\t3\nb\tN\t0\nc\tN\t4\nd\tN\t3", format!("f:3: `c` is below itself; {tree}")),
        ] {
            assert_eq!(error(text), expected, "for {text:?}");
        }
        let number = "number the words of a sentence from 1";
        for (found, expected) in [("3", 1), ("x", 1), ("1-", 1), ("0", 1)] {
            assert_eq!(
                error(&format!("{found}\ta\t_\tN\t_\t_\t0\t_\t_\t_")),
                format!("f:1: found `{found}` as the number of a word, expected {expected}; {number}")
            );
        }
        for text in ["", " \n\n", "# nothing\n", "# nothing\tat all\n"] {
            assert!(error(text).starts_with("f:1: there are no sentences; expected CoNLL-U"), "{text:?}");
        }
        let latin = read(b"a\tN\t0\nb\xe9\tN\t1", "f", Tags::Upos).unwrap_err().to_string();
        assert!(latin.starts_with("f:2: byte 7 is not UTF-8"), "{latin}");
    }

    proptest! {
        #[test]
        fn trees_are_read_and_nothing_else_is(heads in prop::collection::vec(0..8u32, 1..8)) {
            let lines: Vec<String> = heads.iter().map(|head| format!("w\tN\t{head}")).collect();
            let climbs = |start: usize| {
                let above = |&at: &u32| heads.get(at as usize - 1).copied().filter(|&head| head > 0);
                std::iter::successors(Some(start as u32), above).take(9).count() < 9
            };
            let fits = |&head: &u32| head as usize <= heads.len();
            let is_tree = heads.iter().all(fits) && (1..=heads.len()).all(climbs);
            let found = read(lines.join("\n").as_bytes(), "f", Tags::Upos);
            prop_assert_eq!(found.is_ok(), is_tree);
            if let Ok(sentences) = found {
                prop_assert_eq!(sentences[0].heads.as_ref(), Some(&heads));
            }
        }

        #[test]
        fn noise_is_refused_or_read(text in "[0-3#._\ta \n-]{0,40}") {
            // None may make the reader panic.
            for sentence in read(text.as_bytes(), "f", Tags::Upos).unwrap_or_default() {
                prop_assert!(!sentence.words.is_empty() && sentence.words.iter().all(|word| !word.is_empty()));
            }
        }
    }
}
