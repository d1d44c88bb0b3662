//! The place of the sentence in a line: beside counts, in a column, between markers, in a transcript.
//!
//! In: a line of a file and its [`Layout`]. Out: the [`Place`] of the sentence: its words in the notation of a [`Unit`], the number of its
//! occurrences, and the columns or the speaker beside it. By default a line is a sentence.

use std::borrow::Cow;
use std::fmt;

use serde::de::{self, Deserializer, Visitor};
use serde::{Deserialize, Serialize, Serializer};

use super::Unit;
use super::chat;
use super::clean::BOUNDARY;

/// How lines hold sentences.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Layout {
    /// Kind of the lines.
    pub lines: LineKind,
    /// The column of the sentence in a table of tab-separated columns; by default there are no columns.
    pub column: Column,
    /// Numbers that say how often a sentence occurs.
    pub counts: Counts,
    /// Marks between phones, syllables and words.
    pub separators: Separators,
}

/// Kinds of lines.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LineKind {
    /// Text; commands look at a sample, and say so if it looks like something else.
    #[default]
    Text,
    /// Text, whatever it looks like.
    Plain,
    /// Code points as hexadecimal numbers with spaces between them, as MorphAGram writes words: `^^^ 0061 0062 $$$`.
    Hex,
    /// A transcript in CHAT: utterances follow a speaker, as in `*CHI:`.
    Chat,
}

/// A column of a table.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub enum Column {
    /// Lines have no columns; a tab is white space.
    #[default]
    None,
    /// By number, from 1.
    Number(usize),
    /// By its name in the first line, which is a header.
    Name(String),
}

impl Column {
    /// The column of that number or name; none if it is empty.
    pub fn of(name: &str) -> Column {
        match (name, name.parse()) {
            ("", _) => Column::None,
            (_, Ok(number)) if number > 0 => Column::Number(number),
            _ => Column::Name(name.to_owned()),
        }
    }
}

impl fmt::Display for Column {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Column::None => Ok(()),
            Column::Number(number) => write!(out, "{number}"),
            Column::Name(name) => out.write_str(name),
        }
    }
}

impl Serialize for Column {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Column {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Column, D::Error> {
        struct NumberOrName;
        impl Visitor<'_> for NumberOrName {
            type Value = Column;

            fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
                out.write_str("the number of a column, from 1, or its name")
            }

            fn visit_i64<E: de::Error>(self, number: i64) -> Result<Column, E> {
                let positive = usize::try_from(number).ok().filter(|&number| number > 0);
                positive
                    .map(Column::Number)
                    .ok_or_else(|| E::invalid_value(de::Unexpected::Signed(number), &self))
            }

            fn visit_str<E: de::Error>(self, name: &str) -> Result<Column, E> {
                Ok(Column::of(name))
            }
        }
        // Asks for text, so that descriptions of the type say so; formats that know their types pass numbers as well.
        deserializer.deserialize_str(NumberOrName)
    }
}

/// Meaning of numbers beside sentences: the first field of a line, or its last one.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Counts {
    /// Lines have no such number.
    #[default]
    None,
    /// A sentence occurs once, whatever its number.
    Ones,
    /// A sentence occurs log₂(n + 1) times, rounded.
    Log,
    /// A sentence occurs as often as its number says.
    Full,
}

impl Counts {
    /// Occurrences of a sentence with that number; at least one.
    pub fn occurrences(self, n: u64) -> u64 {
        match self {
            Counts::None | Counts::Ones => 1,
            Counts::Full => n.max(1),
            Counts::Log => {
                // k + 1 if n + 1 ≥ 2^(k + 1/2), in whole numbers.
                let n = u128::from(n.clamp(1, 1 << 62)) + 1;
                let k = n.ilog2();
                u64::from(k) + u64::from(n * n >= 1 << (2 * k + 1))
            }
        }
    }
}

/// Marks between parts of a sentence; an empty one does not occur.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Separators {
    /// Between phones, with [`Unit::Token`]; if empty, white space.
    pub phone: String,
    /// Between syllables, which are not read.
    pub syllable: String,
    /// Between words; if empty, as the unit has it.
    pub word: String,
}

impl Separators {
    /// The line in the notation of `unit`.
    fn notation<'a>(&self, line: Cow<'a, str>, unit: Unit) -> Cow<'a, str> {
        let Separators { phone, syllable, word } = self;
        if [phone, syllable, word].iter().all(|separator| separator.is_empty()) {
            return line;
        }
        let phone = Some(phone.as_str()).filter(|phone| unit == Unit::Token && !phone.trim().is_empty());
        let mut text = line.into_owned();
        if !syllable.is_empty() {
            // A separator of syllables separates phones, too.
            let between = phone.unwrap_or(if unit == Unit::Token { " " } else { "" });
            text = text.replace(syllable, between);
        }
        let boundary = if unit == Unit::Token { " | " } else { " " };
        if !word.trim().is_empty() {
            text = text.replace(word, boundary);
        } else if phone.is_some() || !word.is_empty() {
            text = text.split_whitespace().collect::<Vec<_>>().join(boundary);
        }
        if let Some(phone) = phone {
            text = text.replace(phone, " ");
        }
        Cow::Owned(text)
    }
}

/// A sentence in its line.
#[derive(PartialEq, Eq, Debug)]
pub struct Place<'a> {
    /// The sentence in the notation of its unit.
    pub sentence: Cow<'a, str>,
    /// Number of its occurrences.
    pub occurrences: u64,
    /// Other columns or the speaker, before the sentence.
    pub before: String,
    /// Other columns after it.
    pub after: String,
}

/// Why a line does not have its layout.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum LayoutError {
    /// A line with too few columns.
    #[error(
        "the line has {found} of the columns that tabs separate, and corpus.column is {column}; correct the line, or choose another column"
    )]
    NoColumn {
        /// The column.
        column: Column,
        /// Number of columns.
        found: usize,
    },
    /// A header without that name.
    #[error("no column is called `{name}`; the first line has {names}")]
    NoName {
        /// The name.
        name: String,
        /// The names that there are.
        names: String,
    },
    /// A line without a number.
    #[error(
        "corpus.counts needs a whole number at the begin or the end of the line; add it, or leave corpus.counts away"
    )]
    NoCount,
    /// Columns beside the count, of which none is chosen.
    #[error("the line has {found} columns beside the number; choose one with corpus.column")]
    Columns {
        /// Number of columns.
        found: usize,
    },
    /// A token that is no code point.
    #[error("`{token}` is not the hexadecimal number of a character, which corpus.layout = \"hex\" needs")]
    NotHex {
        /// The token.
        token: String,
    },
}

impl Layout {
    /// The default: each line is a sentence.
    pub const TEXT: Layout = Layout {
        lines: LineKind::Text,
        column: Column::None,
        counts: Counts::None,
        separators: Separators { phone: String::new(), syllable: String::new(), word: String::new() },
    };

    /// Whether each line is a sentence and nothing else.
    pub fn is_plain(&self) -> bool {
        let Layout { lines, column, counts, separators } = self;
        matches!(lines, LineKind::Text | LineKind::Plain)
            && *column == Column::None
            && *counts == Counts::None
            && *separators == Separators::default()
    }

    /// Whether the first line is a header.
    pub fn has_header(&self) -> bool {
        matches!(self.column, Column::Name(_))
    }

    #[doc(hidden)]
    /// The layout with the number of its column in place of the name, by the first line.
    ///
    /// # Errors
    /// [`LayoutError::NoName`].
    pub fn with_header(&self, header: &str) -> Result<Layout, LayoutError> {
        let Column::Name(name) = &self.column else { return Ok(self.clone()) };
        let names: Vec<&str> = header.split('\t').map(str::trim).collect();
        match names.iter().position(|known| known == name) {
            Some(at) => Ok(Layout { column: Column::Number(at + 1), ..self.clone() }),
            None => Err(LayoutError::NoName { name: name.clone(), names: names.join(", ") }),
        }
    }

    #[doc(hidden)]
    /// The sentence of a line; `None` for lines without one, such as comments of a transcript.
    ///
    /// # Errors
    /// See [`LayoutError`].
    pub fn place<'a>(&self, line: &'a str, unit: Unit) -> Result<Option<Place<'a>>, LayoutError> {
        if line.trim().is_empty() {
            return Ok(None);
        }
        let mut place = Place {
            sentence: Cow::Borrowed(line),
            occurrences: 1,
            before: String::new(),
            after: String::new(),
        };
        if self.is_plain() {
            return Ok(Some(place));
        }
        let line = line.trim_end_matches(['\r', '\n']);
        place.sentence = Cow::Borrowed(line);
        let count = |n: Option<u64>| n.map(|n| self.counts.occurrences(n)).ok_or(LayoutError::NoCount);
        match (&self.column, self.counts) {
            (Column::Number(number), _) => {
                let columns: Vec<&str> = line.split('\t').collect();
                let at = number - 1;
                if at >= columns.len() {
                    return Err(LayoutError::NoColumn { column: self.column.clone(), found: columns.len() });
                }
                let is_count = |&other: &usize| other != at && columns[other].trim().parse::<u64>().is_ok();
                let counted = (0..columns.len()).find(is_count).filter(|_| self.counts != Counts::None);
                if self.counts != Counts::None {
                    place.occurrences = count(counted.and_then(|at| columns[at].trim().parse().ok()))?;
                }
                let beside = |range: std::ops::Range<usize>| {
                    range
                        .filter(|&other| Some(other) != counted)
                        .map(|other| columns[other])
                        .collect::<Vec<_>>()
                };
                place.before = beside(0..at).iter().map(|column| format!("{column}\t")).collect();
                place.after =
                    beside(at + 1..columns.len()).iter().map(|column| format!("\t{column}")).collect();
                place.sentence = Cow::Borrowed(columns[at]);
            }
            (_, Counts::None) => {}
            _ => {
                let (n, rest) = counted(line).ok_or(LayoutError::NoCount)?;
                let n_columns = rest.split('\t').count();
                if n_columns > 1 {
                    return Err(LayoutError::Columns { found: n_columns });
                }
                place.occurrences = count(Some(n))?;
                place.sentence = Cow::Borrowed(rest);
            }
        }
        match self.lines {
            LineKind::Text | LineKind::Plain => {}
            LineKind::Hex => place.sentence = Cow::Owned(decoded(&place.sentence)?),
            LineKind::Chat => {
                let Some((speaker, utterance)) = chat::utterance(&place.sentence) else { return Ok(None) };
                place.before += &speaker;
                place.sentence = Cow::Owned(utterance);
            }
        }
        place.sentence = self.separators.notation(place.sentence, unit);
        Ok(Some(place))
    }
}

/// The number of a line, at its begin or at its end, and the rest.
pub fn counted(line: &str) -> Option<(u64, &str)> {
    let line = line.trim();
    let first = line.split_once(char::is_whitespace);
    let first = first.and_then(|(number, rest)| Some((whole(number)?, rest.trim_start())));
    first.or_else(|| {
        let (rest, number) = line.rsplit_once(char::is_whitespace)?;
        Some((whole(number)?, rest.trim_end()))
    })
}

/// A whole number in digits alone.
pub fn whole(text: &str) -> Option<u64> {
    text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok()).flatten()
}

/// The text of hexadecimal code points, without the marks at the ends of a word.
fn decoded(line: &str) -> Result<String, LayoutError> {
    let tokens = line.split_whitespace().filter(|token| !matches!(*token, "^^^" | "$$$" | BOUNDARY));
    let letter =
        |token: &str| code_point(token).ok_or_else(|| LayoutError::NotHex { token: token.to_owned() });
    tokens.map(letter).collect()
}

/// The character of a hexadecimal number of four to six digits.
pub fn code_point(token: &str) -> Option<char> {
    let is_hex = (4..=6).contains(&token.len()) && token.bytes().all(|byte| byte.is_ascii_hexdigit());
    char::from_u32(u32::from_str_radix(token, 16).ok().filter(|_| is_hex)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn layout(change: impl FnOnce(&mut Layout)) -> Layout {
        let mut layout = Layout::default();
        change(&mut layout);
        layout
    }

    /// Before, sentence, after and occurrences.
    fn place(layout: &Layout, line: &str, unit: Unit) -> (String, String, String, u64) {
        let Place { sentence, occurrences, before, after } = layout.place(line, unit).unwrap().unwrap();
        (before, sentence.into_owned(), after, occurrences)
    }

    fn owned(before: &str, sentence: &str, after: &str, occurrences: u64) -> (String, String, String, u64) {
        (before.to_owned(), sentence.to_owned(), after.to_owned(), occurrences)
    }

    #[test]
    fn a_plain_line_is_the_sentence() {
        for line in ["8 a\tb", " a ", "*CHI:\tx", "0061"] {
            assert_eq!(place(&Layout::default(), line, Unit::Char), owned("", line, "", 1));
        }
        assert_eq!(Layout::default().place(" \t", Unit::Char), Ok(None));
    }

    #[test]
    fn counts_are_weights() {
        let full = layout(|layout| layout.counts = Counts::Full);
        for line in ["8 ab", "      8 ab", "ab\t8", "ab 8", "8\tab\r"] {
            assert_eq!(place(&full, line, Unit::Char), owned("", "ab", "", 8), "{line}");
        }
        assert_eq!(place(&full, "8 un do", Unit::Char), owned("", "un do", "", 8));
        assert_eq!(full.place("ab", Unit::Char), Err(LayoutError::NoCount));
        assert_eq!(full.place("ab\tcd\t8", Unit::Char), Err(LayoutError::Columns { found: 2 }));
        // Morfessor's dampening: round(log2(n + 1)).
        let by_log = |n| Counts::Log.occurrences(n);
        for n in 1..100_000u64 {
            assert_eq!(by_log(n), libm::log2(n as f64 + 1.0).round() as u64, "{n}");
        }
        assert_eq!([0, 1, 2, 100, u64::MAX].map(by_log), [1, 1, 2, 7, 62]);
        assert_eq!([0, 7].map(|n| Counts::Ones.occurrences(n)), [1, 1]);
    }

    #[test]
    fn other_columns_stand_beside_the_sentence() {
        let second = layout(|layout| layout.column = Column::of("2"));
        assert_eq!(place(&second, "u1\ta b\tCHI", Unit::Char), owned("u1\t", "a b", "\tCHI", 1));
        assert!(matches!(second.place("u1", Unit::Char), Err(LayoutError::NoColumn { found: 1, .. })));
        let counted = Layout { counts: Counts::Full, ..second };
        assert_eq!(place(&counted, "u1\tab\t5", Unit::Char), owned("u1\t", "ab", "", 5));
        let named = layout(|layout| layout.column = Column::of("text"));
        let by_name = named.with_header("id\ttext").unwrap();
        assert_eq!(place(&by_name, "1\tab", Unit::Char), owned("1\t", "ab", "", 1));
        assert!(named.with_header("id\tword").is_err());
    }

    #[test]
    fn separators_become_the_notation_of_the_unit() {
        let separated = |phone: &str, syllable: &str, word: &str| {
            let [phone, syllable, word] = [phone, syllable, word].map(str::to_owned);
            layout(|layout| layout.separators = Separators { phone, syllable, word })
        };
        let line = |layout: &Layout, line, unit| {
            let (_, line, ..) = place(layout, line, unit);
            line.split_whitespace().collect::<Vec<_>>().join(" ")
        };
        let wordseg = separated("", ";esyll", ";eword");
        assert_eq!(
            line(&wordseg, "m i ;esyll ;eword d o ;esyll g i ;esyll ;eword", Unit::Token),
            "m i | d o g i |"
        );
        assert_eq!(line(&wordseg, "mi;esyll;eworddo;esyllgi;esyll;eword", Unit::Char), "mi dogi");
        let phonemizer = separated("_", "|", "");
        assert_eq!(line(&phonemizer, "h_ə|l_oʊ| w_ɜː_l_d|", Unit::Token), "h ə l oʊ | w ɜː l d");
        assert_eq!(line(&separated("-", "", "="), "a-b=c-d", Unit::Token), "a b | c d");
        assert_eq!(line(&separated("", ".", ""), "syl.la.ble text", Unit::Char), "syllable text");
        assert_eq!(line(&separated("", "", "#"), "ab#cd", Unit::Char), "ab cd");
    }

    #[test]
    fn hexadecimal_code_points_are_letters() {
        let hex = layout(|layout| layout.lines = LineKind::Hex);
        assert_eq!(place(&hex, "^^^ 0061 0062 10D0 $$$", Unit::Char), owned("", "abა", "", 1));
        for wrong in ["0061 zz", "61", "d800", "dead beef"] {
            assert!(matches!(hex.place(wrong, Unit::Char), Err(LayoutError::NotHex { .. })), "{wrong}");
        }
    }

    #[test]
    fn a_column_is_a_number_or_a_name() {
        for (text, expected) in
            [("", Column::None), ("2", Column::Number(2)), ("0", Column::Name("0".into()))]
        {
            assert_eq!(Column::of(text), expected);
            assert_eq!(Column::of(text).to_string(), text);
        }
    }
}
