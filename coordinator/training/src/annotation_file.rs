//! A file of annotated lines that changes one line at a time, as `--annotated` reads it.
//!
//! In: the file, of the forms of [`segmented_file`], and the text that its lines are of. Out: what is known of sentences of the text; and the
//! file with another line, or one less.
//!
//! Laws: what is said is read back, or refused. All other lines stay byte for byte, in their order: those that are not of the text, empty ones, and those of other
//! sentences. A changed line keeps its place and its form, and a new one comes last.

use anyhow::{Result, anyhow, bail, ensure};
use grammaton::data::corpus::{ReadError, decode};
use grammaton::models::crf::Known;

use crate::input::segmented_file::{self, Annotated, SegmentedFile};
use crate::segmented::Segmented;

/// What an annotation file has.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct AnnotationFile {
    /// What is known of sentences of the text.
    pub annotated: Annotated,
    /// The file, byte by byte.
    pub text: String,
    name: String,
    /// Lines of sentences of the text.
    lines: Vec<Line>,
}

/// A line of a sentence of the text.
#[derive(Clone, PartialEq, Debug)]
struct Line {
    /// Position among the lines.
    at: usize,
    sentence: Vec<u32>,
    /// Whether it is a word with its analyses.
    is_word: bool,
}

impl AnnotationFile {
    /// Reads a file of these bytes; messages call it `name`.
    ///
    /// # Errors
    /// Those of [`SegmentedFile::parse`], and a text that has to be decoded first.
    pub fn parse(bytes: Vec<u8>, name: &str, of: &Segmented) -> Result<AnnotationFile> {
        ensure!(
            !decode::is_encoded(&bytes),
            "{name}: the file is packed, or not in UTF-8; unpack it, or convert it, for instance with iconv"
        );
        let text = String::from_utf8(bytes).map_err(|error| {
            let before = &error.as_bytes()[..error.utf8_error().valid_up_to()];
            let line = 1 + before.iter().filter(|&&byte| byte == b'\n').count();
            anyhow!("{name}:{line}: not in UTF-8; convert the file, for instance with iconv")
        })?;
        let mut file = AnnotationFile { text, name: name.to_owned(), ..AnnotationFile::default() };
        let found = match SegmentedFile::parse(&file.text, name, &of.options, &of.marks) {
            Ok(found) => found,
            Err(error) if matches!(error.downcast_ref(), Some(ReadError::Empty { .. })) => return Ok(file),
            Err(error) => return Err(error),
        };
        let in_symbols = found.in_symbols(&of.corpus.symbols);
        let in_text = |sentence: &[u32]| in_symbols(sentence).filter(|sentence| of.first(sentence).is_some());
        for line in found.resolved(|sentence| in_text(sentence).is_some()) {
            let Some(sentence) = in_text(&line.read.sentence) else { continue };
            segmented_file::add(&mut file.annotated, sentence.clone(), &line.read.known);
            file.lines.push(Line { at: line.number as usize - 1, sentence, is_word: line.is_word });
        }
        Ok(file)
    }

    /// The file in which this is known of a sentence of the text, or nothing any more.
    ///
    /// # Errors
    /// A line that cannot be written so that it is read back and all others are read as before.
    pub fn said(&self, sentence: &[u32], known: Option<&Known>, of: &Segmented) -> Result<AnnotationFile> {
        let mut expected = self.annotated.clone();
        match known {
            Some(known) => drop(expected.insert(sentence.to_vec(), known.clone())),
            None => drop(expected.remove(sentence)),
        }
        if expected == self.annotated {
            return Ok(self.clone());
        }
        let forms = known.map_or_else(|| vec![None], |known| self.forms(sentence, known, of));
        for form in &forms {
            let file =
                AnnotationFile::parse(self.with(sentence, form.as_deref()).into_bytes(), &self.name, of);
            if let Ok(file) = file
                && file.annotated == expected
            {
                return Ok(file);
            }
        }
        let line = of.corpus.line(of.first(sentence).unwrap_or_default(), &[sentence.len() as u32]);
        bail!(
            "{}: `{line}` stays as it is, since this file would be read in another way with the change; edit the file in an editor",
            self.name
        )
    }

    /// Forms of a line in which this is known of a sentence, the best one first.
    fn forms(&self, sentence: &[u32], known: &Known, of: &Segmented) -> Vec<Option<String>> {
        let (symbols, unit) = (&of.corpus.symbols, of.options.effective_unit());
        let Some(line) = segmented_file::line(symbols, sentence, known, unit, &of.marks) else {
            return Vec::new();
        };
        let word = (known.iter().all(Option::is_some))
            .then(|| segmented_file::word_line(symbols, sentence, &line, unit));
        let n_words = self.lines.iter().filter(|line| line.is_word).count();
        let before = self.lines.iter().find(|line| line.sentence == sentence);
        let is_word = before.map_or(2 * n_words > self.lines.len(), |line| line.is_word);
        let forms = if is_word { [word, Some(line)] } else { [Some(line), word] };
        forms.into_iter().filter(Option::is_some).collect()
    }

    /// The text in which `line` is the one of a sentence, and no other is.
    fn with(&self, sentence: &[u32], line: Option<&str>) -> String {
        let (mark, text) = self.text.split_at(if self.text.starts_with(MARK) { MARK.len_utf8() } else { 0 });
        // As files are read: carriage returns end lines if there is no line feed.
        let head = &text.as_bytes()[..text.len().min(decode::SAMPLE)];
        let feed = if head.contains(&b'\r') && !head.contains(&b'\n') { '\r' } else { '\n' };
        let end = |line: &str| line[line.trim_end_matches(['\r', '\n']).len()..].to_owned();
        let lines: Vec<&str> = text.split_inclusive(feed).collect();
        let own: Vec<usize> =
            self.lines.iter().filter(|line| line.sentence == sentence).map(|line| line.at).collect();
        let mut written = mark.to_owned();
        for (at, old) in lines.iter().enumerate() {
            if !own.contains(&at) {
                written += old;
            } else if let Some(line) = line.filter(|_| own.first() == Some(&at)) {
                written += &(line.to_owned() + &end(old));
            }
        }
        if let Some(line) = line.filter(|_| own.is_empty()) {
            let end = lines.first().map(|line| end(line)).filter(|end| !end.is_empty());
            let end = end.unwrap_or_else(|| feed.to_string());
            if lines.last().is_some_and(|last| !last.ends_with(feed)) {
                written += &end;
            }
            written += &(line.to_owned() + &end);
        }
        written
    }

    /// A number that changes with the file.
    pub fn version(&self) -> String {
        blake3::hash(self.text.as_bytes()).to_hex()[..16].to_owned()
    }
}

/// The byte-order mark, which some editors put first.
const MARK: char = '\u{feff}';

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use grammaton::data::corpus::{Corpus, Options, Unit};
    use grammaton::models::crf::whole;
    use proptest::prelude::*;

    use super::*;
    use crate::job::PositionMarks;

    fn text(unit: Unit) -> Segmented {
        let (lines, marks) = match unit {
            Unit::Token => ("a bb | bb a\na | bb cc\ncc\ncc a\na | a\na\n", ["+", "~"]),
            _ => ("ab ba\nabc\nc\nca b\na a\na\n", ["|", "~"]),
        };
        let options = Options { unit, ..Options::default() };
        let (corpus, _) = Corpus::read(lines.as_bytes(), "text", &options).unwrap();
        let [boundary, joined] = marks.map(str::to_owned);
        Segmented::new(options, PositionMarks { boundary, joined }, corpus, Vec::new())
    }

    /// Some lines of a file that are fit to be kept, foreign, empty, in several forms.
    fn lines(unit: Unit) -> &'static [&'static str] {
        match unit {
            Unit::Token => &["zz | yy", "", "a bb | bb a", "a ~ bb + cc", "cc a | cc | a", "  a|a  "],
            _ => &["xyz", "", "x\tx", "ab ba", "abc\ta bc, ab c", "c~a b", "abba", "a|a", " ca  b ", "a a"],
        }
    }

    fn parse(text: &str, of: &Segmented) -> Result<AnnotationFile> {
        AnnotationFile::parse(text.as_bytes().to_vec(), "annotated.txt", of)
    }

    proptest! {
        /// Laws: whatever is said in which order, it is read back, or refused and nothing changes. Lines of no sentence and of other sentences stay byte for byte, in their order.
        #[test]
        fn what_is_said_is_read_back_and_other_lines_stay(
            is_of_tokens: bool,
            old in prop::collection::vec((0..10_usize, 0..3_usize), 0..8),
            has_mark: bool,
            ends_early: bool,
            said in prop::collection::vec((0..6_usize, prop::option::of(prop::collection::vec(prop::option::of(any::<bool>()), 4))), 1..8),
        ) {
            let unit = if is_of_tokens { Unit::Token } else { Unit::Char };
            let (of, lines) = (text(unit), lines(unit));
            let mut before: String = old.iter().map(|(at, end)| lines[at % lines.len()].to_owned() + ["\n", "\n", "\r\n"][*end]).collect();
            if ends_early {
                before = before.trim_end().to_owned();
            }
            if has_mark {
                before.insert(0, MARK);
            }
            let mut file = parse(&before, &of).unwrap();
            for (at, known) in said {
                let sentence = of.corpus.sentences[at].clone();
                let known: Option<Known> = known.map(|known| known[..sentence.len() - 1].to_vec());
                let is_own = |file: &AnnotationFile| -> BTreeMap<usize, bool> {
                    file.lines.iter().map(|line| (line.at, line.sentence == sentence)).collect()
                };
                let others = |file: &AnnotationFile| -> Vec<String> {
                    let own = is_own(file);
                    let text = file.text.trim_start_matches(MARK);
                    let others = text.split_inclusive('\n').enumerate().filter(|(at, _)| own.get(at) != Some(&true));
                    others.map(|(_, line)| line.to_owned()).collect()
                };
                let Ok(next) = file.said(&sentence, known.as_ref(), &of) else {
                    // Refused: spaces alone say that a line is whole, and of some sentences nothing is said.
                    continue;
                };
                prop_assert_eq!(&next, &parse(&next.text, &of).unwrap());
                prop_assert_eq!(next.annotated.get(&sentence), known.as_ref());
                let rest = |file: &AnnotationFile| { let mut all = file.annotated.clone(); all.remove(&sentence); all };
                prop_assert_eq!(rest(&next), rest(&file));
                let kept = |lines: Vec<String>| -> Vec<String> { lines.iter().map(|line| line.trim_end_matches(['\r', '\n']).to_owned()).collect() };
                prop_assert_eq!(kept(others(&next)), kept(others(&file)));
                file = next;
            }
        }

        /// Law: a file of any text is read or refused by one line, and never panics.
        #[test]
        fn nonsense_is_refused_or_stays(text_of_file in "(?s)[ab c\t\r\n|~,\u{feff}\u{0}x-]{0,40}|.{0,30}", at in 0..6_usize, set in 0..8_u32) {
            let of = text(Unit::Char);
            let Ok(file) = parse(&text_of_file, &of) else { return Ok(()) };
            let sentence = of.corpus.sentences[at].clone();
            let known: Known = (0..sentence.len() as u32 - 1).map(|at| Some(set >> at & 1 == 1)).collect();
            match file.said(&sentence, Some(&known), &of) {
                Ok(next) => prop_assert_eq!(&next.annotated[&sentence], &known),
                Err(error) => prop_assert!(!error.to_string().contains('\n')),
            }
        }
    }

    /// Every form keeps its form, place and line end when its line changes; a line of all others is appended.
    #[test]
    fn a_changed_line_keeps_its_place_and_form() {
        let of = text(Unit::Char);
        let sentence = |at: usize| of.corpus.sentences[at].clone();
        let before = "x y\r\nabc\ta bc, ab c\r\n\r\na|bba\r\nabc\tabc";
        let file = parse(before, &of).unwrap();
        let known = |of: &[(usize, Known)]| -> Annotated {
            of.iter().map(|(at, known)| (sentence(*at), known.clone())).collect()
        };
        assert_eq!(file.annotated, known(&[(1, whole(&[1, 3])), (0, vec![Some(true), None, None])]));
        let file = file.said(&sentence(1), Some(&whole(&[2, 3])), &of).unwrap();
        assert_eq!(file.text, "x y\r\nabc\tab c\r\n\r\na|bba\r\n");
        let file = file.said(&sentence(0), Some(&vec![None, Some(false), None]), &of).unwrap();
        let file = file.said(&sentence(3), Some(&whole(&[3])), &of).unwrap();
        assert_eq!(file.text, "x y\r\nabc\tab c\r\n\r\nab~ba\r\ncab\r\n");
        // What is known already changes nothing, whatever its form.
        let same = file.said(&sentence(1), Some(&whole(&[2, 3])), &of).unwrap();
        assert_eq!(same, file);
        let file = file.said(&sentence(1), None, &of).unwrap();
        assert_eq!(file.text, "x y\r\n\r\nab~ba\r\ncab\r\n");
        // `a a` is the word `a` with its analysis as well, and is so read in a file of words with analyses.
        let words = parse("abc\ta bc\nabba\tab ba\n", &of).unwrap();
        let words = words.said(&sentence(4), Some(&whole(&[1, 2])), &of).unwrap();
        assert_eq!(words.text, "abc\ta bc\nabba\tab ba\naa\ta a\n");
        let plain = parse("", &of).unwrap().said(&sentence(4), Some(&whole(&[1, 2])), &of).unwrap();
        assert_eq!(plain.text, "a a\n");
    }
}
