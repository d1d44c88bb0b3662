//! TextGrid, the format of Praat: a tier of words, and one of their morphemes, which divide the time of each interval in proportion to their symbols.
//!
//! In: a file in the long or in the short form, and the name of a tier of intervals. Out: the same text with these tiers behind the others, and
//! their number changed. Without a file: tiers of text and of its words for each speaker; lines last a second each unless their times are known.
//!
//! Praat reads strings in quotes and numbers that stand alone, and skips everything else; so do we. Law: tiers that were there stay, and intervals of a new tier cover
//! the time of the file without a gap.

use std::ops::Range;
use std::vec::IntoIter;

use anyhow::{Context as _, Result, bail, ensure};

use super::document::{Document, Utterance, choose};
use super::line::{Line, Source, Speech, Word, divided, speeches};

/// A file.
pub struct Grid {
    text: String,
    n_tiers: u32,
    /// Where the number of tiers is.
    place: Range<usize>,
    /// Names of all tiers.
    names: Vec<String>,
    /// The tiers that the text was made of.
    tiers: Vec<Tier>,
    utterances: Vec<Utterance>,
}

/// A tier of intervals: begin, end and label of each.
struct Tier {
    name: String,
    span: (f64, f64),
    intervals: Vec<(f64, f64, String)>,
}

/// What Praat reads.
#[derive(PartialEq, Debug)]
enum Token {
    Text(String),
    Number(f64),
}

/// The strings and numbers of a file, one after another.
struct Tokens<'a> {
    name: &'a str,
    rest: IntoIter<(Token, Range<usize>)>,
}

impl Tokens<'_> {
    fn next(&mut self, what: &str) -> Result<(Token, Range<usize>)> {
        self.rest.next().with_context(|| format!("{}: the file ends where {what} was expected", self.name))
    }

    fn text(&mut self, what: &str) -> Result<String> {
        match self.next(what)? {
            (Token::Text(text), _) => Ok(text),
            (Token::Number(number), _) => bail!("{}: expected {what}, found the number {number}", self.name),
        }
    }

    fn number(&mut self, what: &str) -> Result<(f64, Range<usize>)> {
        match self.next(what)? {
            (Token::Number(number), range) => Ok((number, range)),
            (Token::Text(text), _) => bail!("{}: expected {what}, found the text `{text}`", self.name),
        }
    }

    /// A tier with its name; only a name if it has points and not intervals.
    fn tier(&mut self) -> Result<(String, Option<Tier>)> {
        let (class, name) = (self.text("the class of a tier")?, self.text("the name of a tier")?);
        let has_intervals = class == "IntervalTier";
        ensure!(
            has_intervals || class == "TextTier",
            "{}: tier `{name}`: unknown class `{class}`",
            self.name
        );
        let span = (self.number("the begin of a tier")?.0, self.number("the end of a tier")?.0);
        let n = self.number("the size of a tier")?.0 as usize;
        let mut intervals = Vec::new();
        for _ in 0..n {
            let (start, _) = self.number("the begin of an interval")?;
            let end = if has_intervals { self.number("the end of an interval")?.0 } else { start };
            intervals.push((start, end, self.text("a label")?));
        }
        Ok((name.clone(), has_intervals.then_some(Tier { name, span, intervals })))
    }
}

impl Grid {
    /// Reads a file, whose text is in the `wanted` tiers, or in its only one of intervals. Messages call it `name`.
    pub fn read(text: String, wanted: &[String], name: &str) -> Result<Grid> {
        let mut tokens = Tokens { name, rest: tokens(&text, name)?.into_iter() };
        let kind = (tokens.text("the type of the file")?, tokens.text("the class of the object")?);
        ensure!(
            kind == ("ooTextFile".to_owned(), "TextGrid".to_owned()),
            "{name}: expected a TextGrid, found an object of class {}",
            kind.1
        );
        tokens.number("the begin of the file")?;
        tokens.number("the end of the file")?;
        let (n, place) = tokens.number("the number of tiers")?;
        let all = (0..n as u32).map(|_| tokens.tier()).collect::<Result<Vec<_>>>()?;
        let (names, with_intervals): (Vec<String>, Vec<Option<Tier>>) = all.into_iter().unzip();
        let tiers: Vec<Tier> = with_intervals.into_iter().flatten().collect();
        let chosen = choose(tiers.iter().map(|tier| tier.name.as_str()), wanted, name)?;
        let mut tiers: Vec<Option<Tier>> = tiers.into_iter().map(Some).collect();
        let tiers: Vec<Tier> = chosen.into_iter().filter_map(|at| tiers[at].take()).collect();
        let utterance = |(start, end, text): &(f64, f64, String)| Utterance {
            words: text.split_whitespace().map(str::to_owned).collect(),
            source: Source { time: Some((*start, *end)), ..Source::default() },
        };
        let utterances = tiers.iter().flat_map(|tier| &tier.intervals).map(utterance).collect();
        Ok(Grid { text, n_tiers: n as u32, place, names, tiers, utterances })
    }
}

/// The strings and numbers of a file, with their places.
fn tokens(text: &str, name: &str) -> Result<Vec<(Token, Range<usize>)>> {
    let mut found = Vec::new();
    let mut at = 0;
    while let Some(letter) = text[at..].chars().next() {
        let rest = &text[at..];
        let length = match letter {
            '"' => {
                let (value, length) = string(rest).with_context(|| {
                    let line = 1 + text[..at].matches('\n').count();
                    format!("{name}:{line}: a text without a closing quote")
                })?;
                found.push((Token::Text(value), at..at + length));
                length
            }
            '!' => rest.find('\n').unwrap_or(rest.len()),
            letter if letter.is_whitespace() => letter.len_utf8(),
            _ => {
                let is_end = |letter: char| letter.is_whitespace() || letter == '"';
                let length = rest.find(is_end).unwrap_or(rest.len());
                let word = &rest[..length];
                let begins = word.starts_with(|first: char| first.is_ascii_digit() || "+-.".contains(first));
                if let Some(number) = word.parse().ok().filter(|number: &f64| begins && number.is_finite()) {
                    found.push((Token::Number(number), at..at + length));
                }
                length
            }
        };
        at += length;
    }
    Ok(found)
}

/// The string in quotes at the begin of a text, and its length there; `None` if it does not end.
fn string(text: &str) -> Option<(String, usize)> {
    let (mut value, mut at) = (String::new(), 1);
    loop {
        let length = text[at..].find('"')?;
        value += &text[at..at + length];
        at += length + 1;
        if !text[at..].starts_with('"') {
            return Some((value, at));
        }
        value.push('"');
        at += 1;
    }
}

impl Document for Grid {
    fn utterances(&self) -> &[Utterance] {
        &self.utterances
    }

    fn with(&self, lines: &[Option<Line>]) -> Result<String> {
        lines.iter().flatten().try_for_each(Line::check)?;
        // Praat reads a mixture, but not all programs do.
        let is_long = self.text.contains("intervals [") || self.text.contains("item [");
        let (mut written, mut n, mut lines) = (String::new(), self.n_tiers, lines);
        for Tier { name, span, intervals } in &self.tiers {
            let (of_tier, rest) = lines.split_at(intervals.len().min(lines.len()));
            lines = rest;
            for (kind, parts) in kinds(of_tier.iter().flatten()) {
                let name = format!("{name} {kind}");
                ensure!(
                    !self.names.contains(&name),
                    "the file has a tier `{name}` already; rename or remove it"
                );
                let intervals = intervals.iter().zip(of_tier);
                let intervals = intervals.map(|((start, end, _), line)| (*start, *end, line.as_ref()));
                n += 1;
                let tier = tier(&name, *span, intervals, parts);
                written += &if is_long { tier.long(n) } else { tier.short() };
            }
        }
        let line_end = if self.text.ends_with('\n') { "" } else { "\n" };
        let (before, after) = (&self.text[..self.place.start], &self.text[self.place.end..]);
        Ok(format!("{before}{n}{after}{line_end}{written}"))
    }
}

/// The parts of a line: text and number of symbols of each.
type Parts = fn(&Line) -> Vec<(String, u32)>;

fn whole(line: &Line) -> Vec<(String, u32)> {
    vec![(line.text(), 1)]
}

fn words(line: &Line) -> Vec<(String, u32)> {
    let n_symbols = |word: &Word| word.segments.iter().map(|segment| segment.n_symbols).sum();
    line.words.iter().map(|word| (word.text.clone(), n_symbols(word))).collect()
}

fn morphemes(line: &Line) -> Vec<(String, u32)> {
    line.segments().map(|segment| (segment.text.clone(), segment.n_symbols)).collect()
}

/// The tiers that lines give: words, and morphemes if a word has several.
fn kinds<'a>(mut lines: impl Iterator<Item = &'a Line>) -> Vec<(&'static str, Parts)> {
    let has_morphemes = lines.any(|line| line.words.iter().any(|word| word.segments.len() > 1));
    let kinds: [(&'static str, Parts); 2] = [("words", words as Parts), ("morphemes", morphemes as Parts)];
    kinds[..1 + usize::from(has_morphemes)].to_vec()
}

/// A tier whose intervals are divided into the parts of their lines; what no interval covers has no label.
fn tier<'a>(
    name: &str,
    span: (f64, f64),
    intervals: impl Iterator<Item = (f64, f64, Option<&'a Line>)>,
    parts: Parts,
) -> Tier {
    let mut found: Vec<(f64, f64, String)> = Vec::new();
    let mut done = span.0;
    for (start, end, line) in intervals {
        if done < start {
            found.push((done, start, String::new()));
        }
        done = end;
        let parts = line.map(parts).filter(|parts| !parts.is_empty());
        let parts = parts.unwrap_or_else(|| vec![(String::new(), 1)]);
        let points = divided(start, end, parts.iter().map(|(_, n)| *n));
        found.extend(points.windows(2).zip(parts).map(|(pair, (text, _))| (pair[0], pair[1], text)));
    }
    if done < span.1 || found.is_empty() {
        found.push((done, span.1, String::new()));
    }
    Tier { name: name.to_owned(), span, intervals: found }
}

impl Tier {
    /// The tier in the long form, as one with this number.
    fn long(&self, number: u32) -> String {
        let Tier { name, span, intervals } = self;
        let mut text = format!(
            "    item [{number}]:\n        class = \"IntervalTier\"\n        name = {}\n        xmin = {}\n        xmax = {}\n        intervals: size = {}\n",
            quoted(name),
            span.0,
            span.1,
            intervals.len()
        );
        for ((start, end, label), at) in intervals.iter().zip(1..) {
            let label = quoted(label);
            text += &format!(
                "        intervals [{at}]:\n            xmin = {start}\n            xmax = {end}\n            text = {label}\n"
            );
        }
        text
    }

    /// The tier in the short form.
    fn short(&self) -> String {
        let Tier { name, span, intervals } = self;
        let mut text =
            format!("\"IntervalTier\"\n{}\n{}\n{}\n{}\n", quoted(name), span.0, span.1, intervals.len());
        for (start, end, label) in intervals {
            text += &format!("{start}\n{end}\n{}\n", quoted(label));
        }
        text
    }
}

fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('"', "\"\""))
}

/// A file of these lines.
pub fn grid(lines: &[Line]) -> Result<String> {
    lines.iter().try_for_each(Line::check)?;
    let speeches = speeches(lines)?;
    let end = speeches.iter().flat_map(|speech| &speech.lines).map(|(_, end, _)| *end).fold(1.0, f64::max);
    let (mut tiers, mut n) = (String::new(), 0);
    for Speech { speaker, lines } in &speeches {
        let of_speaker = speaker.map_or(String::new(), |speaker| format!(" {speaker}"));
        let kinds = kinds(lines.iter().map(|(_, _, line)| *line));
        for (kind, parts) in [("text", whole as Parts)].into_iter().chain(kinds) {
            n += 1;
            let intervals = lines.iter().map(|(start, end, line)| (*start, *end, Some(*line)));
            tiers += &tier(&format!("{kind}{of_speaker}"), (0.0, end), intervals, parts).long(n);
        }
    }
    Ok(format!(
        "File type = \"ooTextFile\"\nObject class = \"TextGrid\"\n\nxmin = 0\nxmax = {end}\ntiers? <exists>\nsize = {n}\nitem []:\n{tiers}"
    ))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::line::tests::{any_lines, line as words_of};
    use super::*;

    const LONG: &str = "File type = \"ooTextFile\"\r\nObject class = \"TextGrid\"\r\n\r\nxmin = 0 \r\nxmax = 4.5 \r\ntiers? <exists> \r\nsize = 2 \r\nitem []: \r\n    \
        item [1]:\r\n        class = \"IntervalTier\" \r\n        name = \"a \"\"b\"\"\" \r\n        xmin = 0 \r\n        xmax = 4.5 \r\n        intervals: size = 3 \r\n        \
        intervals [1]:\r\n            xmin = 0 \r\n            xmax = 1.5 \r\n            text = \"undoit\" \r\n        intervals [2]:\r\n            xmin = 1.5 \r\n            \
        xmax = 2 \r\n            text = \"\" \r\n        intervals [3]:\r\n            xmin = 2\r\n            xmax = 4.5 ! \"a comment\"\r\n            text = \"no\" \r\n    \
        item [2]:\r\n        class = \"TextTier\" \r\n        name = \"points\" \r\n        xmin = 0 \r\n        xmax = 4.5 \r\n        points: size = 1 \r\n        \
        points [1]:\r\n            number = 1 \r\n            mark = \"5\" \r\n";

    /// Strings and numbers as Praat reads them.
    fn values(text: &str) -> Vec<Token> {
        tokens(text, "file").unwrap().into_iter().map(|(token, _)| token).collect()
    }

    #[test]
    fn tiers_are_added_and_nothing_else_changes() {
        let short = "\"ooTextFile\"\n\"TextGrid\"\n0\n4.5\n<exists>\n2\n\"IntervalTier\"\n\"a \"\"b\"\"\"\n0\n4.5\n3\n0\n1.5\n\"undoit\"\n1.5\n2\n\"\"\n2\n4.5\n\"no\"\n\
            \"TextTier\"\n\"points\"\n0\n4.5\n1\n1\n\"5\"";
        assert_eq!(values(LONG), values(short));
        let line = words_of(1, &[&["un", "do"], &["it"]]);
        let lines = [Some(line), None, Some(words_of(2, &[&["no"]]))];
        for text in [LONG, short] {
            let read = Grid::read(text.to_owned(), &[], "file").unwrap();
            let times: Vec<Option<(f64, f64)>> = read.utterances().iter().map(|it| it.source.time).collect();
            assert_eq!(times, [Some((0.0, 1.5)), Some((1.5, 2.0)), Some((2.0, 4.5))]);
            let written = read.with(&lines).unwrap();
            let again = Grid::read(written.clone(), &["a \"b\" morphemes".to_owned()], "file").unwrap();
            assert_eq!(again.names, ["a \"b\"", "points", "a \"b\" words", "a \"b\" morphemes"]);
            let texts = |grid: &Grid| -> Vec<(f64, f64, String)> { grid.tiers[0].intervals.clone() };
            let expected =
                [(0.0, 0.5, "un"), (0.5, 1.0, "do"), (1.0, 1.5, "it"), (1.5, 2.0, ""), (2.0, 4.5, "no")];
            assert_eq!(texts(&again), expected.map(|(start, end, text)| (start, end, text.to_owned())));
            assert_eq!(written.contains("item [4]"), text == LONG);
            // Everything before the new tiers, but for their number.
            let mut kept = values(&written);
            kept.truncate(values(text).len());
            kept[4] = Token::Number(2.0);
            assert_eq!(kept, values(text));
            let twice =
                Grid::read(written, &["a \"b\"".to_owned()], "file").unwrap().with(&lines).unwrap_err();
            assert!(twice.to_string().contains("already"), "{twice}");
        }
    }

    #[test]
    fn what_is_no_grid_is_refused() {
        for (text, part) in [
            ("\"ooTextFile\" \"Sound\" 1", "class Sound"),
            ("\"ooTextFile\" \"TextGrid\" 0 1 2", "ends"),
            (
                "\"ooTextFile\" \"TextGrid\" 0 1 1 \"IntervalTier\" \"a\" 0 1 1 0 \"b\" \"c\"",
                "the end of an interval",
            ),
            ("\"ooTextFile\" \"TextGrid\" 0 1 1 \"Other\" \"a\" 0 1 0", "Other"),
            ("\"ooTextFile\"\n\"TextGrid", "file:2: a text without a closing quote"),
            ("\"ooTextFile\" \"TextGrid\" 0 1 1 \"TextTier\" \"a\" 0 1 0", "no tier"),
        ] {
            let refused = Grid::read(text.to_owned(), &[], "file").map(|_| ()).unwrap_err().to_string();
            assert!(refused.contains(part), "{refused}");
        }
    }

    proptest! {
        /// Law: the intervals of every tier cover the time of the file, and labels are read back, whatever the text.
        #[test]
        fn any_text_is_read_back_or_refused(lines in any_lines()) {
            let Ok(written) = grid(&lines) else {
                prop_assert!(lines.iter().any(|line| line.check().is_err()));
                return Ok(());
            };
            let lines: Vec<&Line> = lines.iter().filter(|line| !line.words.is_empty()).collect();
            if lines.is_empty() {
                return Ok(());
            }
            let has_morphemes = kinds(lines.iter().copied()).len() == 2;
            for (name, parts) in [("text", whole as Parts), ("words", words), ("morphemes", morphemes)].into_iter().take(2 + usize::from(has_morphemes)) {
                let read = Grid::read(written.clone(), &[name.to_owned()], "file").unwrap();
                let labels: Vec<String> = read.tiers[0].intervals.iter().map(|it| it.2.clone()).collect();
                let expected: Vec<String> = lines.iter().flat_map(|line| parts(line)).map(|(text, _)| text).collect();
                prop_assert_eq!(labels, expected);
                let mut done = 0.0;
                for (start, end, _) in &read.tiers[0].intervals {
                    prop_assert!(*start == done && start < end);
                    done = *end;
                }
                prop_assert_eq!(done, lines.len() as f64);
            }
        }

        /// Law: nonsense is refused in words.
        #[test]
        fn nonsense_is_refused(text in "[\"0-9a-z \n<!]{0,60}") {
            let _ = Grid::read(format!("\"ooTextFile\" \"TextGrid\" {text}"), &[], "file");
        }
    }
}
