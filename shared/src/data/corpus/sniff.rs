//! Evidence in the first lines of a text that they are not sentences as they stand.
//!
//! In: a sample of lines ([`Stream::sample`](super::decode::Stream::sample)), and what it is to contain. Out: [`Finding`]s, each with the
//! [`Reading`] that it speaks for. A certain finding has one reading, an ambiguous one has a second. The first row that holds decides the layout, and
//! then the first one of the second table the unit. *All lines* are those of the sample that are not empty.
//!
//! | evidence | of words | of utterances |
//! |---|---|---|
//! | all lines are lines of CHAT, one of them `*SPEAKER:` | `layout = "chat"` | the same |
//! | `;eword` or `;esyll` in a line | these separate words and syllables, `unit = "token"` | the same |
//! | all tokens are hexadecimal code points of letters, in `^^^ … $$$` or most of one block | `layout = "hex"` | the same |
//! | all lines have as many columns by tabs, one of text; numbers beside it that are not 1, 2, 3, … are counts | that column | the same |
//! | the same, and several columns of text, one under a header that says so (`text`, `word`, …) | that column | the same |
//! | the same, and several columns of text | ambiguous: the two with the most characters | the same |
//! | most lines have tabs, and neither row above holds | ambiguous: column 1, or plain | the same |
//! | a format that has more than sentences in its lines and is not read: markers of Toolbox, columns by commas, JSON, trees, rules or times with `-->`, tags in `<>`, numbered lines, comments | ambiguous: plain, or the sentences alone | the same |
//! | two lines or more, each a number and words | `counts = "ones"` | padded as by `uniq -c`: the same; else ambiguous: counts, or plain |
//! | two lines or more, each a word and a number | `counts = "ones"` | ambiguous: counts, or plain |
//!
//! | evidence | unit |
//! |---|---|
//! | half of the lines have a token `\|`, and all tokens are of four characters at most | `token` |
//! | the same, and longer tokens | ambiguous: `token` or `char` |
//! | three tokens a line or more, each a single character | `token` |
//! | four tokens a line or more, most of two characters, none of more than four, few of them different | ambiguous: `token` or `char` |
//! | nearly all words are pieces of two characters on average between `_`, `-`, `.` or `+` | ambiguous: that separator, or plain |
//!
//! Everything else is text as it stands: digits within lines, punctuation, any script.

use std::cmp::Reverse;
use std::collections::BTreeSet;

use unicode_segmentation::UnicodeSegmentation as _;

use super::layout::{Column, Counts, Layout, LineKind, Separators, code_point, counted, whole};
use super::{Unit, chat};

/// Lines of a text that are looked at.
pub const SAMPLE_LINES: usize = 1_000;

/// What a text is to contain.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Contents {
    /// A sentence per line.
    Utterances,
    /// A word per line.
    Words,
}

/// A way to read a text.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Reading {
    /// How lines hold sentences.
    pub layout: Layout,
    /// The unit of symbols; `None`: that of the command.
    pub unit: Option<Unit>,
}

impl Reading {
    /// The keys of `[corpus]` with which a job reads so, and their values as text.
    pub fn keys(&self) -> Vec<(&'static str, String)> {
        let Layout { lines, column, counts, separators } = &self.layout;
        let lines = match lines {
            LineKind::Text => "",
            LineKind::Plain => "plain",
            LineKind::Hex => "hex",
            LineKind::Chat => "chat",
        };
        let counts = match counts {
            Counts::None => "",
            Counts::Ones => "ones",
            Counts::Log => "log",
            Counts::Full => "full",
        };
        let Separators { phone, syllable, word } = separators;
        let keys = [
            ("layout", lines.to_owned()),
            ("column", column.to_string()),
            ("counts", counts.to_owned()),
            ("phone_separator", phone.clone()),
            ("syllable_separator", syllable.clone()),
            ("word_separator", word.clone()),
            ("unit", self.unit.map(|unit| unit.name().to_owned()).unwrap_or_default()),
        ];
        keys.into_iter().filter(|(_, value)| !value.is_empty()).collect()
    }
}

/// Evidence, and the readings that it speaks for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Finding {
    /// The evidence, as a clause.
    pub evidence: String,
    /// The reading, or the first of two.
    pub reading: Reading,
    /// The second reading of an ambiguous text.
    pub other: Option<Reading>,
}

impl Finding {
    /// Whether the lines hold more than sentences, in a format that is not read: both readings are the plain one.
    pub fn is_foreign(&self) -> bool {
        self.other.as_ref() == Some(&self.reading)
    }
}

/// What is known of a text, so that it need not be found.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Given {
    /// Whether the layout is.
    pub layout: bool,
    /// Whether the unit is.
    pub unit: bool,
}

/// Looks at a sample of the lines of a text. Returns the reading that the certain findings agree on, with `reading` where nothing is found, and the
/// findings: at most one of the layout, then at most one of the unit.
pub fn look(
    lines: &[String],
    contents: Contents,
    given: Given,
    reading: &Reading,
) -> (Reading, Vec<Finding>) {
    let mut reading = reading.clone();
    let mut findings = Vec::new();
    let body: Vec<(usize, &str)> = numbered(lines).filter(|(_, line)| !line.trim().is_empty()).collect();
    if body.is_empty() || reading.layout.lines == LineKind::Plain {
        return (reading, findings);
    }
    if !given.layout {
        let found = transcript(&body)
            .or_else(|| markers(&body))
            .or_else(|| hexadecimal(&body))
            .or_else(|| columns(&body))
            .or_else(|| uneven_tabs(&body))
            .or_else(|| foreign(&body))
            .or_else(|| counts(&body, contents));
        if let Some(found) = found {
            reading.layout = found.reading.layout.clone();
            reading.unit = if given.unit { reading.unit } else { found.reading.unit.or(reading.unit) };
            findings.push(found);
        }
    }
    let is_settled = findings.iter().any(|found| found.other.is_some() || found.reading.unit.is_some());
    if !given.unit && !is_settled && reading.layout.lines != LineKind::Hex {
        let header = usize::from(reading.layout.has_header());
        let layout = reading.layout.with_header(body[0].1).unwrap_or_default();
        let unit = reading.unit.unwrap_or_default();
        let sentences: Vec<(usize, String)> = body[header..]
            .iter()
            .filter_map(|(at, line)| Some((*at, layout.place(line, unit).ok()??.sentence.into_owned())))
            .collect();
        let can_separate = reading.layout.separators == Separators::default();
        let found = phones(&sentences)
            .or_else(|| joined_phones(&sentences).filter(|_| can_separate && !given.layout));
        if let Some(mut found) = found {
            found.reading.layout =
                Layout { separators: found.reading.layout.separators, ..reading.layout.clone() };
            reading.unit = found.reading.unit;
            findings.push(found);
        }
    }
    (reading, findings)
}

fn numbered(lines: &[String]) -> impl Iterator<Item = (usize, &str)> {
    lines.iter().enumerate().map(|(at, line)| (at + 1, line.as_str()))
}

/// The evidence with its first line.
fn seen(evidence: &str, (number, line): (usize, &str)) -> String {
    const SHOWN: usize = 40;
    let mut shown: String = line.trim().replace('\t', "⇥").chars().take(SHOWN).collect();
    if line.trim().chars().count() > SHOWN {
        shown.push('…');
    }
    format!("{evidence} (line {number}: `{shown}`)")
}

fn certain(evidence: String, layout: Layout, unit: Option<Unit>) -> Finding {
    Finding { evidence, reading: Reading { layout, unit }, other: None }
}

fn plain() -> Reading {
    Reading { layout: Layout { lines: LineKind::Plain, ..Layout::default() }, unit: None }
}

fn in_column(column: Column) -> Layout {
    Layout { column, ..Layout::default() }
}

fn transcript(body: &[(usize, &str)]) -> Option<Finding> {
    let first = body.iter().find(|(_, line)| chat::utterance(line).is_some())?;
    let is_chat = body.iter().all(|(_, line)| chat::is_line(line));
    let layout = Layout { lines: LineKind::Chat, ..Layout::default() };
    is_chat.then(|| certain(seen("the lines are a transcript in CHAT", *first), layout, None))
}

fn markers(body: &[(usize, &str)]) -> Option<Finding> {
    let [word, syllable] = [";eword", ";esyll"]
        .map(|mark| body.iter().find(|(_, line)| line.contains(mark)).map(|first| (mark, *first)));
    let (_, first) = word.or(syllable)?;
    let mark = |found: Option<(&str, _)>| found.map_or(String::new(), |(mark, _)| mark.to_owned());
    let separators = Separators { word: mark(word), syllable: mark(syllable), phone: String::new() };
    let layout = Layout { separators, ..Layout::default() };
    Some(certain(seen("wordseg's markers are in the lines", first), layout, Some(Unit::Token)))
}

fn hexadecimal(body: &[(usize, &str)]) -> Option<Finding> {
    let tokens = || body.iter().flat_map(|(_, line)| line.split_whitespace());
    let is_mark = |token: &str| matches!(token, "^^^" | "$$$");
    let (mut blocks, mut n, mut has_letters) = (std::collections::BTreeMap::new(), 0, false);
    for token in tokens().filter(|token| !is_mark(token)) {
        code_point(token).filter(|letter| letter.is_alphanumeric() || !letter.is_ascii())?;
        *blocks.entry(&token[..2]).or_insert(0) += 1;
        has_letters |= token.contains(|digit: char| digit.is_ascii_alphabetic());
        n += 1;
    }
    let most = blocks.into_values().max()?;
    let is_hex = tokens().any(is_mark) || (n >= 2 * body.len() && 2 * most >= n && has_letters);
    let layout = Layout { lines: LineKind::Hex, ..Layout::default() };
    is_hex.then(|| certain(seen("all tokens are hexadecimal code points", body[0]), layout, None))
}

/// Names under which a header has sentences or words.
const TEXT_NAMES: [&str; 12] = [
    "text",
    "word",
    "words",
    "utterance",
    "sentence",
    "transcript",
    "transcription",
    "form",
    "phonemes",
    "phones",
    "ipa",
    "orthography",
];

fn columns(body: &[(usize, &str)]) -> Option<Finding> {
    let rows: Vec<Vec<&str>> = body
        .iter()
        .filter(|(_, line)| !line.starts_with('#'))
        .map(|(_, line)| line.split('\t').map(str::trim).collect())
        .collect();
    let n = rows.first()?.len();
    if n < 2 || rows.iter().any(|row| row.len() != n) {
        return None;
    }
    let is_number = |cell: &str| cell.parse::<f64>().is_ok();
    let names_text = |cell: &&str| TEXT_NAMES.contains(&cell.to_lowercase().as_str());
    // A header has words over columns of numbers, or the name of a column of text.
    let over_numbers = |at: &usize| {
        rows.len() > 1 && !is_number(rows[0][*at]) && rows[1..].iter().all(|row| is_number(row[*at]))
    };
    let has_header = (0..n).any(|at| over_numbers(&at))
        || (rows.len() > 1 && rows[0].iter().filter(|cell| names_text(cell)).count() == 1);
    let rows_of_data = &rows[usize::from(has_header)..];
    let is_text = |at: &usize| {
        rows_of_data.iter().any(|row| !row[*at].is_empty() && row[*at] != "_")
            && !rows_of_data.iter().all(|row| row[*at].is_empty() || is_number(row[*at]))
    };
    let texts: Vec<usize> = (0..n).filter(is_text).collect();
    let column = |at: usize| if has_header { Column::of(rows[0][at]) } else { Column::Number(at + 1) };
    // Numbers 1, 2, 3, … are those of lines.
    let is_count = |at: usize| {
        let numbers: Option<Vec<u64>> =
            rows_of_data.iter().map(|row| whole(row[at]).filter(|_| !row[at].is_empty())).collect();
        numbers
            .is_some_and(|numbers| numbers.len() < 2 || numbers.windows(2).any(|pair| pair[0] + 1 != pair[1]))
    };
    let header = if has_header { " under a header" } else { "" };
    let named: Vec<usize> =
        texts.iter().copied().filter(|&at| has_header && names_text(&rows[0][at])).collect();
    let the_text = match (&texts[..], &named[..]) {
        ([only], _) | (_, [only]) => Some(*only),
        _ => None,
    };
    match (the_text, &texts[..]) {
        (Some(at), _) => {
            let has_counts =
                texts.len() == 1 && (0..n).filter(|&other| other != at && is_count(other)).count() == 1;
            let counts = if has_counts { Counts::Ones } else { Counts::None };
            let beside = match (has_counts, n) {
                (true, 2) => "all lines have a column of text and one of counts".to_owned(),
                (true, _) => {
                    format!("all lines have {n} columns by tabs{header}, one of text and one of counts")
                }
                (false, _) => {
                    format!("all lines have {n} columns by tabs{header}, of which {} is the text", column(at))
                }
            };
            Some(certain(seen(&beside, body[0]), Layout { counts, ..in_column(column(at)) }, None))
        }
        (None, [_, _, ..]) => {
            let length = |&at: &usize| rows_of_data.iter().map(|row| row[at].chars().count()).sum::<usize>();
            let mut longest = texts.clone();
            longest.sort_by_key(|at| Reverse(length(at)));
            longest.truncate(2);
            longest.sort_unstable();
            let reading = |at| Reading { layout: in_column(column(at)), unit: None };
            Some(Finding {
                evidence: seen(
                    &format!("all lines have {n} columns by tabs{header}, {} of text", texts.len()),
                    body[0],
                ),
                reading: reading(longest[0]),
                other: Some(reading(longest[1])),
            })
        }
        // Columns of numbers alone.
        (None, _) => None,
    }
}

fn uneven_tabs(body: &[(usize, &str)]) -> Option<Finding> {
    let tabbed = |(_, line): &&(usize, &str)| line.trim().contains('\t');
    let n = body.iter().filter(tabbed).count();
    (2 * n > body.len()).then(|| Finding {
        evidence: seen(
            &format!("{n} of {} lines have tabs, as columns have", body.len()),
            *body.iter().find(tabbed).expect("there are some"),
        ),
        reading: Reading { layout: in_column(Column::Number(1)), unit: None },
        other: Some(plain()),
    })
}

/// Formats that are not read, by the first line that shows them.
fn foreign<'a>(body: &[(usize, &'a str)]) -> Option<Finding> {
    let lines = |holds: &dyn Fn(&str) -> bool| -> Vec<(usize, &'a str)> {
        body.iter().copied().filter(|(_, line)| holds(line.trim())).collect()
    };
    let all = |holds: &dyn Fn(&str) -> bool| lines(holds).len() == body.len();
    let of_several = |holds: bool| (holds && body.len() > 1).then(|| body[0]);
    let most =
        |found: Vec<(usize, &'a str)>| if 2 * found.len() > body.len() { Some(found[0]) } else { None };
    let commented = lines(&|line| line.starts_with('#'));
    let has_comments =
        2 * commented.len() < body.len() && lines(&|line| line.contains('#')).len() == commented.len();
    let first = |found: Vec<(usize, &'a str)>| found.first().copied();
    let (evidence, line) = [
        ("the lines begin with markers, as those of Toolbox do", most(lines(&is_marked))),
        ("all lines have as many columns by commas", of_several(is_separated(body))),
        ("all lines are JSON", of_several(all(&|line| is_between(line, '{', '}')))),
        ("all lines are trees in brackets", of_several(all(&is_tree))),
        ("lines have `-->`, as rules and subtitles do", first(lines(&|line| line.contains("-->")))),
        ("tags are in the lines", first(lines(&has_tag))),
        ("the lines are numbered", of_several(is_numbered(body))),
        ("lines that begin with `#` may be comments", first(commented).filter(|_| has_comments)),
    ]
    .into_iter()
    .find_map(|(evidence, line)| Some((evidence, line?)))?;
    Some(Finding { evidence: seen(evidence, line), reading: plain(), other: Some(plain()) })
}

fn is_between(line: &str, open: char, close: char) -> bool {
    line.starts_with(open) && line.ends_with(close)
}

/// `\tx un do`.
fn is_marked(line: &str) -> bool {
    line.strip_prefix('\\').is_some_and(|rest| rest.starts_with(|first: char| first.is_ascii_alphabetic()))
}

/// `(S (NP the dog) (VP runs))`.
fn is_tree(line: &str) -> bool {
    is_between(line, '(', ')') && line.matches('(').count() > 1
}

/// Commas or semicolons, as many in all lines, with columns in quotes in most lines or no space behind any separator.
fn is_separated(body: &[(usize, &str)]) -> bool {
    [',', ';'].into_iter().any(|separator| {
        let outside = |line: &str| -> String { line.split('"').step_by(2).collect::<Vec<_>>().join("\"") };
        let rows: Vec<String> = body.iter().map(|(_, line)| outside(line.trim())).collect();
        let n = rows[0].matches(separator).count();
        let has_quoted = |row: &&String| row.split(separator).any(|cell| cell.trim() == "\"");
        let n_quoted = rows.iter().filter(has_quoted).count();
        let is_tight = |row: &String| !row.split(separator).skip(1).any(|cell| cell.starts_with(' '));
        n > 0
            && rows.iter().all(|row| row.matches(separator).count() == n)
            && (2 * n_quoted > rows.len() || rows.iter().all(is_tight))
    })
}

/// `<unk>`, `</s>`; not `<b>`, which may be a letter in brackets.
fn has_tag(line: &str) -> bool {
    line.split('<').skip(1).filter_map(|rest| rest.split_once('>')).any(|(tag, _)| {
        let name = tag.trim_matches('/');
        let is_name = name.chars().all(|letter| letter.is_ascii_alphanumeric() || "_-:".contains(letter));
        name.starts_with(|first: char| first.is_ascii_alphabetic())
            && is_name
            && (name.len() > 1 || name == "s")
    })
}

/// `1. un do`, `2) do`, …
fn is_numbered(body: &[(usize, &str)]) -> bool {
    let number = |line: &str| {
        let (number, _) =
            line.trim().split_once(['.', ')', ':']).filter(|(_, rest)| rest.starts_with([' ', '\t']))?;
        whole(number.trim_start_matches('('))
    };
    let numbers: Option<Vec<u64>> = body.iter().map(|(_, line)| number(line)).collect();
    numbers.is_some_and(|numbers| numbers.windows(2).all(|pair| pair[0] + 1 == pair[1]))
}

fn counts(body: &[(usize, &str)], contents: Contents) -> Option<Finding> {
    let begins = |line: &str| {
        counted(line).is_some_and(|(_, rest)| line.trim().ends_with(rest) && begins_with_letter(rest))
    };
    let ends = |line: &str| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        matches!(fields[..], [word, number] if begins_with_letter(word) && whole(number).is_some())
    };
    let all = |holds: &dyn Fn(&str) -> bool| body.len() > 1 && body.iter().all(|(_, line)| holds(line));
    let (evidence, is_padded) = match (all(&begins), all(&ends)) {
        (true, _) => ("every line begins with a number", body.iter().all(|(_, line)| line.starts_with("  "))),
        (false, true) => ("every line is a word and a number", false),
        (false, false) => return None,
    };
    let reading = Reading { layout: Layout { counts: Counts::Ones, ..Layout::default() }, unit: None };
    let is_certain = contents == Contents::Words || is_padded;
    Some(Finding { evidence: seen(evidence, body[0]), reading, other: (!is_certain).then(plain) })
}

fn begins_with_letter(text: &str) -> bool {
    text.chars().next().is_some_and(|first| !first.is_numeric())
}

/// Longest phone of any transcription between spaces, in characters.
const LONGEST_PHONE: usize = 4;
/// No inventory of phones, with tones and stress, has more.
const MOST_PHONES: usize = 150;
/// Uses of a phone, on average, from which an inventory is evident.
const USES: usize = 10;

/// Phones between spaces.
fn phones(sentences: &[(usize, String)]) -> Option<Finding> {
    let tokens = || sentences.iter().flat_map(|(_, line)| line.split_whitespace());
    let length = |token: &str| token.graphemes(true).count();
    let with_boundary =
        sentences.iter().filter(|(_, line)| line.split_whitespace().any(|token| token == "|"));
    let symbols = || tokens().filter(|token| *token != "|");
    let (n, n_lines) = (symbols().count(), sentences.len());
    let longest = symbols().map(length).max()?;
    let token = Reading { layout: Layout::default(), unit: Some(Unit::Token) };
    let or_char = Some(Reading { unit: Some(Unit::Char), ..token.clone() });
    let (number, line) = sentences.first()?;
    let found = |evidence: &str, other| {
        Some(Finding { evidence: seen(evidence, (*number, line)), reading: token.clone(), other })
    };
    if 2 * with_boundary.count() >= n_lines {
        let is_certain = longest <= LONGEST_PHONE;
        return found("`|` stands between the words", or_char.filter(|_| !is_certain));
    }
    if longest == 1 && n >= 3 * n_lines {
        return found("all symbols have spaces between them", None);
    }
    let distinct: BTreeSet<&str> = symbols().collect();
    let n_short = symbols().filter(|symbol| length(symbol) <= 2).count();
    let is_inventory =
        longest <= LONGEST_PHONE && distinct.len() <= MOST_PHONES && n >= USES * distinct.len();
    if is_inventory && n >= 4 * n_lines && 5 * n_short >= 3 * n {
        return found(
            &format!(
                "the {n} strings between spaces are only {} different ones, all of them short, as phones are",
                distinct.len()
            ),
            or_char,
        );
    }
    None
}

/// Phones between separators within words.
fn joined_phones(sentences: &[(usize, String)]) -> Option<Finding> {
    let words: Vec<&str> = sentences
        .iter()
        .flat_map(|(_, line)| line.split_whitespace())
        .filter(|word| word.chars().count() > 1)
        .collect();
    let separator = ['_', '-', '.', '+'].into_iter().find(|&separator| {
        let pieces = |word: &&str| word.split(separator).filter(|piece| !piece.is_empty()).count();
        let joined: Vec<&str> = words.iter().copied().filter(|word| pieces(word) > 1).collect();
        let n_letters: usize =
            joined.iter().map(|word| word.chars().filter(|&letter| letter != separator).count()).sum();
        let n_pieces: usize = joined.iter().map(pieces).sum();
        words.len() > 1 && 10 * joined.len() >= 9 * words.len() && n_letters <= 2 * n_pieces
    })?;
    let (number, line) = sentences.first()?;
    let separators = Separators { phone: separator.to_string(), ..Separators::default() };
    Some(Finding {
        evidence: seen(
            &format!("`{separator}` stands between the letters of nearly all words"),
            (*number, line),
        ),
        reading: Reading { layout: Layout { separators, ..Layout::default() }, unit: Some(Unit::Token) },
        other: Some(plain()),
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn lines(text: &str) -> Vec<String> {
        text.split('\n').map(str::to_owned).collect()
    }

    /// The readings of a text as keys, one or two for each finding.
    fn found(text: &str, contents: Contents) -> Vec<String> {
        let keys = |reading: &Reading| -> String {
            reading.keys().iter().map(|(key, value)| format!("{key}={value}")).collect::<Vec<_>>().join(" ")
        };
        let (_, findings) = look(&lines(text), contents, Given::default(), &Reading::default());
        findings
            .iter()
            .map(|finding| match &finding.other {
                None => keys(&finding.reading),
                Some(other) => format!("{} or {}", keys(&finding.reading), keys(other)),
            })
            .collect()
    }

    #[test]
    fn every_format_is_found_by_its_lines() {
        // A text; the keys that read it as words, and as utterances if these differ.
        const FOREIGN: &str = "layout=plain or layout=plain";
        let table: [(&str, &str, Option<&str>); 38] = [
            ("8 un\n15 do\n22 undo", "counts=ones", Some("counts=ones or layout=plain")),
            ("      8 un\n     15 do", "counts=ones", None),
            ("un 8\ndo 15\nundo 22", "counts=ones", Some("counts=ones or layout=plain")),
            ("un\t8\ndo\t15", "column=1 counts=ones", None),
            ("8\tun\n15\tdo", "column=2 counts=ones", None),
            ("1\tun do\n2\tdo\n3\tun", "column=2", None),
            ("word\tcount\nun\t8\ndo\t15", "column=word counts=ones", None),
            ("id\tspeaker\ttext\nu1\tA\tun do\nu2\tB\tdo", "column=text", None),
            ("undo\tun @@do\t100\nredo\tre @@do\t100", "column=1 or column=2", None),
            ("CHI\tyu want it\nMOT\tnou", "column=1 or column=2", None),
            ("a\tb\nc\nd\te\tf", "column=1 or layout=plain", None),
            (
                "m i ;esyll ;eword d o ;esyll ;eword",
                "syllable_separator=;esyll word_separator=;eword unit=token",
                None,
            ),
            ("m i ;eword d o ;eword", "word_separator=;eword unit=token", None),
            ("^^^ 0075 006e $$$\n^^^ 0064 006f $$$", "layout=hex", None),
            ("0075 006e 0064 006f\n0064 006f 0075", "layout=hex", None),
            ("10d0 10d1\n10d2 10d0 10d1", "layout=hex", None),
            ("@Begin\n*CHI:\tyu want it .\n%mor:\tx\n@End", "layout=chat", None),
            ("y u | w a n t\nt u", "unit=token", None),
            ("the dog | runs\nthe cat | sleeps", "unit=token or unit=char", None),
            ("y u w a n t\nt u y u", "unit=token", None),
            ("h_ə_l_oʊ w_ɜː_l_d\nm_aɪ w_ɜː_l_d", "phone_separator=_ unit=token or layout=plain", None),
            ("a-b-c d-e\nf-g h-a-b", "phone_separator=- unit=token or layout=plain", None),
            ("u1\ty u w a n t\nu2\tt u y u", "column=1 or column=2", None),
            ("1\ty u w a n t\n2\tt u y u", "column=2,column=2 unit=token", None),
            ("# a comment\nun\t8\ndo\t15", "column=1 counts=ones", None),
            ("1\t8\n2\t15", "column=1 or layout=plain", None),
            ("A\t\t0.1\t1.2\tun do re\nB\t\t1.2\t2.5\tdo re", "column=1 or column=5", None),
            ("\\ref 1\n\\tx un do\n\\ge one two", FOREIGN, None),
            ("\"u1\",\"un, do\"\n\"u2\",\"do\"", FOREIGN, None),
            ("undo,8\ndo,15", FOREIGN, None),
            ("u1;un do\nu2;do", FOREIGN, None),
            ("{\"text\": \"un do\"}\n{\"text\": \"do\"}", FOREIGN, None),
            ("(S (A un) (B do))\n(S (A do))", FOREIGN, None),
            ("1\n00:00:01,000 --> 00:00:02,000\nun do", FOREIGN, None),
            ("un do <unk> do\nun do", FOREIGN, None),
            ("<s> un do </s>\n<s> do </s>", FOREIGN, None),
            ("1. un do\n2. do\n3. un", FOREIGN, None),
            ("# Chapter one\nun do\ndo un\nun", FOREIGN, None),
        ];
        for (text, of_words, of_utterances) in table {
            let expect = |keys: &str| -> Vec<String> {
                keys.split(',').filter(|keys| !keys.is_empty()).map(str::to_owned).collect()
            };
            assert_eq!(found(text, Contents::Words), expect(of_words), "{text}");
            assert_eq!(
                found(text, Contents::Utterances),
                expect(of_utterances.unwrap_or(of_words)),
                "{text}"
            );
        }
    }

    #[test]
    fn phones_of_several_letters_are_asked_about() {
        let phones = ["DH", "AH0", "D", "AO1", "G", "R", "AH1", "N", "Z"];
        let line =
            |at: usize| (0..6).map(|place| phones[(at + place * place) % 9]).collect::<Vec<_>>().join(" ");
        let text = (0..20).map(line).collect::<Vec<_>>().join("\n");
        assert_eq!(found(&text, Contents::Utterances), ["unit=token or unit=char"]);
    }

    #[test]
    fn ordinary_texts_are_text() {
        for text in [
            "",
            "\n\n",
            "yu want tu si D6 bUk\nlUk D*z 6 b7 wIT hIz h&t",
            "the dog runs\n3 cats sleep\nin 1984",
            "3 cats",
            "12 12\n13 14",
            "1984\n2001",
            "well-known\nmother-in-law\nvon",
            "a b\nb a\nc a",
            "ab ba\tab\nba ab\nab ba\nba",
            "dead beef\nfeed cafe",
            "1 ber a\nb 2",
            "*CHI: is how a line begins\nin a text about CHAT",
            "* an item: one\n* an item: two",
            "人间 喜剧\n人 间",
            "e.g. this\ni.e. that one",
            "un|do\nre|do",
            "the | sign is rare\nother lines\nlack it\nas these do",
            "# un # do #\n# do #\n# un #",
            "a <b> c\nd <e> f\nx < y\ny > x",
            "1. one line",
            "1. one\n1. two",
            "he said \"no\", and left\nso did \"she\", later",
            "yes, I do\nno, I do not",
            "\\ un do\nun do\ndo",
            "(one in brackets)\n(another)",
        ] {
            for contents in [Contents::Words, Contents::Utterances] {
                assert_eq!(found(text, contents), [""; 0], "{text}");
            }
        }
    }

    #[test]
    fn what_is_given_is_not_found_out() {
        let text = lines("8 m i ;eword d o\n9 m i ;eword");
        for (layout, unit) in [(false, false), (true, false), (false, true), (true, true)] {
            let (reading, findings) =
                look(&text, Contents::Words, Given { layout, unit }, &Reading::default());
            assert_eq!(reading.layout == Layout::default(), layout);
            assert!(!unit || reading.unit.is_none());
            assert!(!(layout && unit) || findings.is_empty());
        }
        let plain = plain();
        assert_eq!(look(&text, Contents::Words, Given::default(), &plain), (plain.clone(), vec![]));
    }

    proptest! {
        /// What is found once is not found again in a text that is read so.
        #[test]
        fn words_with_spaces_are_never_taken_for_another_format(words in prop::collection::vec("[a-z']{2,9}( [a-z']{2,9}){0,4}", 1..20)) {
            let text = words.join("\n");
            for contents in [Contents::Words, Contents::Utterances] {
                let findings = found(&text, contents);
                // Inventories of short words may be phones.
                prop_assert!(findings.is_empty() || findings == ["unit=token or unit=char"], "{text}: {findings:?}");
            }
        }
    }
}
