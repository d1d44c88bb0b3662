//! The file that a text was made of, with its utterances, and which line of the results belongs to which of them.
//!
//! Lines that are sentences are found by their letters, in their order, so that an utterance without a line, such as a pause, stays as it is. Lines that are words are
//! looked up: each word of an utterance has the morphemes of its line, wherever that is. Letters are compared without case, accents and punctuation, since the text may
//! have been cleaned.

use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result, bail, ensure};
use rustc_hash::FxHashMap;
use unicode_normalization::UnicodeNormalization as _;

use super::chat::Transcript;
use super::document::{Document, Utterance};
use super::eaf::Eaf;
use super::flextext::Interlinear;
use super::line::{Level, Line, Segment, Word};
use super::textgrid::Grid;
use crate::row::Status;

/// Reads the file at `path`; its text is in the `wanted` tiers, or in the only one that has text. Its kind is that of its content.
///
/// # Errors
/// A file of another kind, or one that is damaged, and a tier that it does not have.
pub fn read(path: &Path, wanted: &[String]) -> Result<(super::Format, Box<dyn Document>)> {
    let name = path.display().to_string();
    let bytes = fs::read(path).with_context(|| format!("{name}: cannot read the original file"))?;
    let text = decoded(&bytes, &name)?;
    let begin: String = text.chars().skip_while(|letter| *letter == '\u{feff}').take(400).collect();
    let has_tiers = |document: Box<dyn Document>, format| {
        ensure!(wanted.is_empty(), "{name}: --tier is for TextGrid and ELAN; leave it out");
        Ok((format, document))
    };
    if begin.contains("ooTextFile") {
        Ok((super::Format::Textgrid, Box::new(Grid::read(text, wanted, &name)?)))
    } else if text.contains("<ANNOTATION_DOCUMENT") {
        Ok((super::Format::Eaf, Box::new(Eaf::read(text, wanted, &name)?)))
    } else if text.contains("<interlinear-text") {
        has_tiers(Box::new(Interlinear::read(text, &name)?), super::Format::Flextext)
    } else if begin.starts_with('@') || begin.starts_with('*') {
        has_tiers(Box::new(Transcript::read(text)), super::Format::Chat)
    } else {
        bail!(
            "{name}: expected a transcript in CHAT, a TextGrid, a file of ELAN (.eaf) or of FieldWorks (.flextext)"
        )
    }
}

/// Text in UTF-8 or, with a byte-order mark, UTF-16.
fn decoded(bytes: &[u8], name: &str) -> Result<String> {
    let wide = |of: fn([u8; 2]) -> u16| {
        let units: Vec<u16> = bytes[2..].chunks_exact(2).map(|pair| of([pair[0], pair[1]])).collect();
        String::from_utf16(&units).ok().filter(|_| bytes.len().is_multiple_of(2))
    };
    let text = match bytes {
        [0xff, 0xfe, ..] => wide(u16::from_le_bytes),
        [0xfe, 0xff, ..] => wide(u16::from_be_bytes),
        _ => std::str::from_utf8(bytes).ok().map(str::to_owned),
    };
    let text = text.with_context(|| {
        format!("{name}: neither UTF-8 nor UTF-16; convert the file, for instance with iconv")
    })?;
    let is_xml = text.trim_start_matches('\u{feff}').starts_with("<?xml");
    ensure!(
        !is_xml || bytes.starts_with(b"<") || bytes.starts_with("\u{feff}".as_bytes()),
        "{name}: expected XML in UTF-8, found UTF-16; convert the file, for instance with iconv, and correct its first line"
    );
    Ok(text)
}

/// By utterance, its line. What is to know is added to `notices`; the file is called `name`.
///
/// # Errors
/// Lines that are not of the file.
pub fn associate(
    utterances: &[Utterance],
    lines: Vec<Line>,
    level: Level,
    name: &str,
    notices: &mut Vec<String>,
) -> Result<Vec<Option<Line>>> {
    match level {
        Level::Words => {
            let (in_file, in_time) = orders(utterances);
            let in_order = |order: &[usize], notices: &mut Vec<String>| {
                by_order(utterances, order, lines.clone(), name, notices)
            };
            let found = in_order(&in_file, &mut *notices);
            // A text of several tiers may be in the order of time.
            if found.is_err() && in_time != in_file {
                return in_order(&in_time, notices).or(found);
            }
            found
        }
        Level::Morphemes => by_word(utterances, lines, name, notices),
    }
}

/// Positions of utterances in the order of the file, and in that of their begin if all times are known.
fn orders(utterances: &[Utterance]) -> (Vec<usize>, Vec<usize>) {
    let in_file: Vec<usize> = (0..utterances.len()).collect();
    let mut in_time = in_file.clone();
    let start = |at: &usize| utterances[*at].source.time.map(|(start, _)| start);
    if in_file.iter().all(|at| start(at).is_some()) {
        in_time.sort_by(|a, b| start(a).unwrap_or_default().total_cmp(&start(b).unwrap_or_default()));
    }
    (in_file, in_time)
}

/// Letters and digits, without case and accents.
fn letters(text: &str) -> String {
    text.nfkd().filter(|letter| letter.is_alphanumeric()).flat_map(char::to_lowercase).collect()
}

/// The lines of the utterances at these positions, found in this order.
fn by_order(
    utterances: &[Utterance],
    order: &[usize],
    lines: Vec<Line>,
    name: &str,
    notices: &mut Vec<String>,
) -> Result<Vec<Option<Line>>> {
    let keys: Vec<String> = order.iter().map(|&at| letters(&utterances[at].words.concat())).collect();
    let text = |place: usize| utterances[order[place]].words.join(" ");
    let mut found: Vec<Option<Line>> = vec![None; utterances.len()];
    let (mut next, mut skipped, mut behind) = (0, Vec::new(), Vec::new());
    for mut line in lines.into_iter().filter(|line| !line.words.is_empty()) {
        let key = letters(&line.text());
        let is_it = |at: &usize| keys[*at] == key;
        // A line without letters is only looked for at the next place.
        let place = if key.is_empty() {
            Some(next).filter(|at| *at < keys.len()).filter(is_it)
        } else {
            (next..keys.len()).find(is_it)
        };
        let Some(place) = place else {
            if keys[next..].iter().all(String::is_empty) || key.is_empty() {
                behind.push(line.number);
                continue;
            }
            let expected = (next..keys.len()).find(|at| !keys[*at].is_empty()).map(text).unwrap_or_default();
            bail!(
                "line {} of the results, `{}`, is not in {name} where `{expected}` is next; give the file that the text was made of, with --tier for its tier",
                line.number,
                line.text()
            );
        };
        skipped.extend((next..place).filter(|at| !keys[*at].is_empty()));
        line.source = utterances[order[place]].source.clone();
        found[order[place]] = Some(line);
        next = place + 1;
    }
    skipped.extend((next..keys.len()).filter(|at| !keys[*at].is_empty()));
    ensure!(found.iter().any(Option::is_some), "{name}: no line of the results is in the file");
    if let (Some(&first), Some(line)) = (skipped.first(), behind.first()) {
        bail!(
            "{name} has `{}`, which is no line of the results, and line {line} of these is not in the file; give the file that the text was made of, with --tier for its tier",
            text(first)
        );
    }
    if let Some(&first) = skipped.first() {
        notices.push(format!(
            "{name}: utterances without a line in the results stay as they are: {}, the first one `{}`",
            skipped.len(),
            text(first)
        ));
    }
    if let Some(first) = behind.first() {
        notices.push(format!(
            "lines of the results that are not in {name} are left out, as annotated lines that the text lacks: {}, the first one line {first}",
            behind.len()
        ));
    }
    Ok(found)
}

fn by_word(
    utterances: &[Utterance],
    lines: Vec<Line>,
    name: &str,
    notices: &mut Vec<String>,
) -> Result<Vec<Option<Line>>> {
    let mut known: FxHashMap<String, Vec<Segment>> = FxHashMap::default();
    for line in lines {
        let segments: Vec<Segment> = line.segments().cloned().collect();
        let text: String = line.words.iter().map(|word| word.text.as_str()).collect();
        known.entry(letters(&text)).or_insert_with(|| segments.clone());
        // The word itself, before words that have its letters alone.
        known.insert(text, segments);
    }
    known.remove("");
    let (mut n, mut n_found, mut first) = (0_usize, 0_usize, None);
    let mut word = |text: &String| {
        let found = known.get(text).or_else(|| known.get(&letters(text)));
        let has_letters = !letters(text).is_empty();
        n += usize::from(has_letters);
        n_found += usize::from(found.is_some());
        if found.is_none() && has_letters {
            first.get_or_insert_with(|| text.clone());
        }
        let whole = || {
            let n_symbols = text.chars().count() as u32;
            vec![Segment { text: text.clone(), category: None, n_symbols }]
        };
        Word { text: text.clone(), segments: found.cloned().unwrap_or_else(whole) }
    };
    let mut found = Vec::new();
    for (utterance, number) in utterances.iter().zip(1..) {
        let words: Vec<Word> = utterance.words.iter().map(&mut word).collect();
        let line = Line { words, source: utterance.source.clone(), ..Line::empty(number, Status::Ok) };
        found.push(Some(line).filter(|line| !line.words.is_empty()));
    }
    ensure!(
        n_found > 0,
        "{name}: no word of the file is a line of the results; give a file with such words, or --level words"
    );
    if let Some(first) = first {
        let n_missing = n - n_found.min(n);
        notices.push(format!(
            "{name}: {n_missing} of {n} words are not in the results and stay whole, the first one `{first}`; grammaton parse segments new words"
        ));
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::super::line::Source;
    use super::super::line::tests::line;
    use super::*;

    fn utterances(texts: &[&str]) -> Vec<Utterance> {
        let utterance = |text: &&str| Utterance {
            words: text.split_whitespace().map(str::to_owned).collect(),
            source: Source { id: Some(format!("u{text}")), ..Source::default() },
        };
        texts.iter().map(utterance).collect()
    }

    fn found(texts: &[&str], lines: Vec<Line>, level: Level) -> Result<(Vec<Option<String>>, Vec<String>)> {
        let mut notices = Vec::new();
        let found = associate(&utterances(texts), lines, level, "file", &mut notices)?;
        let text = |line: Option<Line>| line.map(|line| line.hyphenated(str::to_owned));
        Ok((found.into_iter().map(text).collect(), notices))
    }

    #[test]
    fn lines_are_found_in_their_order() {
        let lines = || {
            vec![
                line(1, &[&["yu"], &["want"]]),
                line(2, &[]),
                line(3, &[&["NO"]]),
                line(4, &[&["caf\u{e9}"]]),
            ]
        };
        let (there, notices) =
            found(&["Yuwant!", "...", "no", "cafe\u{301}"], lines(), Level::Words).unwrap();
        assert_eq!(
            there,
            [Some("yu want"), None, Some("NO"), Some("caf\u{e9}")].map(|text| text.map(str::to_owned))
        );
        assert_eq!(notices, Vec::<String>::new());
        let (there, notices) = found(&["yuwant", "pause", "no", "cafe"], lines(), Level::Words).unwrap();
        assert_eq!(there[1], None);
        assert!(notices[0].contains(": 1, the first one") && notices[0].contains("`pause`"), "{notices:?}");
        let refused = found(&["yuwant", "other", "no"], lines()[..1].to_vec(), Level::Words).unwrap();
        assert_eq!(refused.0[1..], [None, None]);
        // Lines behind the text are left out; but not if utterances are left over, too.
        let (_, notices) = found(&["yuwant", "no"], lines(), Level::Words).unwrap();
        assert!(notices[0].contains("line 4"), "{notices:?}");
        let refused = found(&["yuwant", "cafe", "no"], lines(), Level::Words).unwrap_err().to_string();
        assert!(refused.contains("line 4") && refused.contains("`cafe`"), "{refused}");
        let refused = found(&["cafe", "no"], lines(), Level::Words).unwrap_err().to_string();
        assert!(refused.contains("line 1") && refused.contains("`cafe`"), "{refused}");
    }

    #[test]
    fn a_text_of_several_tiers_may_be_in_the_order_of_time() {
        let timed = |text: &str, start: f64| Utterance {
            source: Source { time: Some((start, start + 1.0)), ..Source::default() },
            ..utterances(&[text]).remove(0)
        };
        let tiers = [timed("one", 0.0), timed("three", 2.0), timed("two", 1.0)];
        let lines = |texts: [&str; 3]| -> Vec<Line> {
            texts.iter().zip(1..).map(|(text, number)| line(number, &[&[*text]])).collect()
        };
        for texts in [["one", "three", "two"], ["one", "two", "three"]] {
            let found = associate(&tiers, lines(texts), Level::Words, "file", &mut Vec::new()).unwrap();
            let found: Vec<String> = found.into_iter().map(|line| line.unwrap().text()).collect();
            assert_eq!(found, ["one", "three", "two"]);
        }
        assert!(
            associate(&tiers, lines(["two", "one", "three"]), Level::Words, "file", &mut Vec::new()).is_err()
        );
    }

    #[test]
    fn words_are_looked_up() {
        let lines = || vec![line(1, &[&["un", "do"]]), line(2, &[&["Do"]]), line(3, &[&["do", "ing"]])];
        let (there, notices) = found(&["Undo it, doing", "", "do"], lines(), Level::Morphemes).unwrap();
        assert_eq!(there, [Some("un-do it, do-ing"), None, Some("Do")].map(|text| text.map(str::to_owned)));
        assert!(notices[0].contains("1 of 4 words") && notices[0].contains("`it,`"), "{notices:?}");
        assert!(found(&["nothing"], lines(), Level::Morphemes).is_err());
    }

    #[test]
    fn wide_text_is_decoded() {
        let little: Vec<u8> = "\u{feff}ab😀".encode_utf16().flat_map(u16::to_le_bytes).collect();
        let big: Vec<u8> = "\u{feff}ab😀".encode_utf16().flat_map(u16::to_be_bytes).collect();
        for bytes in [little, big] {
            assert_eq!(decoded(&bytes, "file").unwrap(), "ab😀");
        }
        assert!(decoded(b"\xff\xfe\x00", "file").is_err() && decoded(b"\xe4x", "file").is_err());
        let xml: Vec<u8> = "\u{feff}<?xml?>".encode_utf16().flat_map(u16::to_le_bytes).collect();
        assert!(decoded(&xml, "file").unwrap_err().to_string().contains("UTF-8"));
    }
}
