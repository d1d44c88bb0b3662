//! FLExText, the format of FieldWorks for interlinear texts: words of phrases, and morphemes of words.
//!
//! In: a file. Out: the same text with morphemes in each word that has none yet, and with words in each phrase that has none. What people have analysed stays. Without a
//! file: a text with a phrase for each line.
//!
//! Law: everything that was there stays.

use std::fmt::Write as _;
use std::ops::Range;

use anyhow::{Result, ensure};

use super::document::{Document, Utterance};
use super::line::{Line, Segment, Source, Word};
use super::xml::{Insertions, Node, attribute, escaped, nodes};

/// A file.
pub struct Interlinear {
    text: String,
    name: String,
    phrases: Vec<Phrase>,
    utterances: Vec<Utterance>,
}

/// A phrase, and where its words may stand.
#[derive(Default)]
struct Phrase {
    language: Option<String>,
    /// Its text, where that is an item.
    text: String,
    words: Vec<PlacedWord>,
    /// The begin of its closing tag.
    end: usize,
    /// The element of its words, if it is there.
    of_words: Option<Range<usize>>,
}

/// A word, and where its morphemes may stand.
#[derive(Default)]
struct PlacedWord {
    text: String,
    language: Option<String>,
    place: usize,
    is_analysed: bool,
}

impl Interlinear {
    /// Reads a file. Messages call it `name`.
    pub fn read(text: String, name: &str) -> Result<Interlinear> {
        let nodes = nodes(&text, name)?;
        let (mut phrases, mut utterances): (Vec<Phrase>, Vec<Utterance>) = (Vec::new(), Vec::new());
        let mut path: Vec<String> = Vec::new();
        // Whether the text of an item is that of a word or of a phrase.
        let mut in_text = false;
        for node in nodes {
            let is_in = |path: &[String], name: &str| path.last().is_some_and(|last| last == name);
            match node {
                Node::Open(element, attributes, place) => {
                    let value = |name: &str| attribute(&attributes, name).map(str::to_owned);
                    match element.as_str() {
                        "phrase" => {
                            phrases.push(Phrase::default());
                            let seconds = |name: &str| Some(value(name)?.parse::<f64>().ok()? / 1000.0);
                            let time = seconds("begin-time-offset").zip(seconds("end-time-offset"));
                            let source = Source { id: value("guid"), speaker: value("speaker"), time };
                            utterances.push(Utterance { words: Vec::new(), source });
                        }
                        "words" => {
                            if let Some(phrase) = phrases.last_mut() {
                                phrase.of_words = Some(place);
                            }
                        }
                        "word" => {
                            if let Some(phrase) = phrases.last_mut() {
                                phrase.words.push(PlacedWord::default());
                            }
                        }
                        "morphemes" => {
                            if let Some(word) = phrases.last_mut().and_then(|phrase| phrase.words.last_mut())
                            {
                                word.is_analysed = true;
                            }
                        }
                        "item" if value("type").as_deref() == Some("txt") => {
                            let phrase = phrases.last_mut();
                            let place = match phrase {
                                Some(phrase) if is_in(&path, "phrase") => {
                                    Some((&phrase.text, &mut phrase.language))
                                }
                                Some(phrase) if is_in(&path, "word") => {
                                    phrase.words.last_mut().map(|word| (&word.text, &mut word.language))
                                }
                                _ => None,
                            };
                            // Of several writing systems the first.
                            if let Some((_, language)) = place.filter(|(text, _)| text.is_empty()) {
                                in_text = true;
                                *language = value("lang");
                            }
                        }
                        _ => {}
                    }
                    path.push(element);
                }
                Node::Close(element, place) => {
                    path.pop();
                    let Some(phrase) = phrases.last_mut() else { continue };
                    match element.as_str() {
                        "phrase" => phrase.end = place.start,
                        "words" => {
                            phrase.of_words =
                                phrase.of_words.take().map(|open| open.start..place.end.max(open.end))
                        }
                        "item" => {
                            if let Some(word) =
                                phrase.words.last_mut().filter(|_| in_text && is_in(&path, "word"))
                            {
                                word.place = place.end;
                            }
                            in_text = false;
                        }
                        _ => {}
                    }
                }
                Node::Text(part) => {
                    let Some(phrase) = phrases.last_mut().filter(|_| in_text) else { continue };
                    let of_word = path.len().checked_sub(2).is_some_and(|at| path[at] == "word");
                    match phrase.words.last_mut().filter(|_| of_word) {
                        Some(word) => word.text += &part,
                        None => phrase.text += &part,
                    }
                }
            }
        }
        for (phrase, utterance) in phrases.iter_mut().zip(&mut utterances) {
            phrase.words.retain(|word| !word.text.trim().is_empty());
            let of_text = || phrase.text.split_whitespace().map(str::to_owned).collect();
            let of_words = || phrase.words.iter().map(|word| word.text.clone()).collect();
            utterance.words = if phrase.words.is_empty() { of_text() } else { of_words() };
        }
        Ok(Interlinear { text, name: name.to_owned(), phrases, utterances })
    }
}

impl Document for Interlinear {
    fn utterances(&self) -> &[Utterance] {
        &self.utterances
    }

    fn with(&self, lines: &[Option<Line>]) -> Result<String> {
        let mut insertions = Insertions::default();
        let mut n = 0;
        for (phrase, line) in self.phrases.iter().zip(lines) {
            let Some(line) = line else { continue };
            line.check()?;
            if phrase.words.is_empty() {
                n += 1;
                let words = words(line, phrase.language.as_deref().unwrap_or(UNKNOWN))?;
                match &phrase.of_words {
                    Some(range) => insertions.instead_of(range.clone(), words),
                    None => insertions.at(phrase.end, words),
                }
                continue;
            }
            // The words of a sentence may be others; then they are not those of the file.
            if phrase.words.len() != line.words.len() {
                continue;
            }
            for (placed, word) in phrase.words.iter().zip(&line.words) {
                if placed.text == word.text && !placed.is_analysed {
                    n += 1;
                    let language =
                        placed.language.as_deref().or(phrase.language.as_deref()).unwrap_or(UNKNOWN);
                    insertions.at(placed.place, morphemes(word, language));
                }
            }
        }
        ensure!(
            n > 0,
            "{}: all phrases have words already, and these have morphemes, or differ from the words found; what is there stays",
            self.name
        );
        Ok(insertions.into(&self.text))
    }
}

/// The code of a language that is not known.
pub const UNKNOWN: &str = "und";

/// The words of a phrase.
fn words(line: &Line, language: &str) -> Result<String> {
    let mut text = "<words>".to_owned();
    for word in &line.words {
        let morphemes = if word.segments.len() > 1 { morphemes(word, language) } else { String::new() };
        write!(text, "<word>{}{morphemes}</word>", item(&word.text, language))?;
    }
    Ok(text + "</words>")
}

fn item(text: &str, language: &str) -> String {
    format!("<item type=\"txt\" lang=\"{}\">{}</item>", escaped(language), escaped(text))
}

/// The morphemes of a word; prefixes and suffixes are known by their categories.
fn morphemes(word: &Word, language: &str) -> String {
    let morpheme = |Segment { text, category, .. }: &Segment| {
        let category = category.as_deref().unwrap_or_default();
        let kinds = [("Prefix", "prefix"), ("Suffix", "suffix"), ("Stem", "stem")];
        let kind = kinds.iter().find(|(name, _)| category.contains(name)).map_or("", |(_, kind)| kind);
        let (attribute, text) = match kind {
            "prefix" => (" type=\"prefix\"", format!("{text}-")),
            "suffix" => (" type=\"suffix\"", format!("-{text}")),
            "stem" => (" type=\"stem\"", text.clone()),
            _ => ("", text.clone()),
        };
        format!("<morph{attribute}>{}</morph>", item(&text, language))
    };
    format!("<morphemes>{}</morphemes>", word.segments.iter().map(morpheme).collect::<String>())
}

/// A text of these lines in a language.
pub fn document(lines: &[Line], language: &str) -> Result<String> {
    let mut text = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<document version=\"2\">\n<interlinear-text>\n<paragraphs>\n".to_owned();
    for line in lines.iter().filter(|line| !line.words.is_empty()) {
        line.check()?;
        let Source { id, speaker, time } = &line.source;
        let mut attributes = String::new();
        let times = time.map(|(start, end)| [("begin-time-offset", start), ("end-time-offset", end)]);
        for (name, seconds) in times.into_iter().flatten() {
            write!(attributes, " {name}=\"{:.0}\"", seconds * 1000.0)?;
        }
        if let Some(speaker) = speaker {
            write!(attributes, " speaker=\"{}\"", escaped(speaker))?;
        }
        let number = id.clone().unwrap_or_else(|| line.number.to_string());
        writeln!(
            text,
            "<paragraph><phrases><phrase{attributes}><item type=\"segnum\" lang=\"en\">{}</item>{}</phrase></phrases></paragraph>",
            escaped(&number),
            words(line, language)?
        )?;
    }
    let language = escaped(language);
    Ok(text
        + &format!(
            "</paragraphs>\n<languages><language lang=\"{language}\" vernacular=\"true\"/></languages>\n</interlinear-text>\n</document>\n"
        ))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::line::tests::{any_lines, line as words_of};
    use super::*;

    const FILE: &str = "<?xml version=\"1.0\" encoding=\"utf-8\"?>\n<document version=\"2\"><interlinear-text guid=\"g\"><item type=\"title\" lang=\"en\">T</item><paragraphs><paragraph><phrases>\n\
        <phrase guid=\"p1\" begin-time-offset=\"100\" end-time-offset=\"900\" speaker=\"Ann\"><item type=\"txt\" lang=\"xx\">undo it, does</item><item type=\"segnum\" lang=\"en\">1</item>\
        <words><word guid=\"w1\"><item type=\"txt\" lang=\"xx\">undo</item><item type=\"gls\" lang=\"en\">open</item></word>\
        <word><item type=\"txt\" lang=\"xx\">it</item><item type=\"txt\" lang=\"xx-ipa\">\u{26a}t</item></word><word><item type=\"punct\" lang=\"xx\">,</item></word>\
        <word><item type=\"txt\" lang=\"xx\">does</item><morphemes><morph><item type=\"txt\" lang=\"xx\">do</item></morph><morph><item type=\"txt\" lang=\"xx\">-es</item></morph></morphemes></word></words></phrase>\n\
        <phrase guid=\"p2\"><item type=\"txt\" lang=\"xx\">yuwant</item><words/></phrase>\n<phrase><item type=\"txt\" lang=\"xx\">no</item></phrase>\n\
        </phrases></paragraph></paragraphs></interlinear-text></document>\n";

    #[test]
    fn morphemes_are_added_where_there_are_none_and_nothing_else_changes() {
        let read = Interlinear::read(FILE.to_owned(), "file").unwrap();
        let texts: Vec<String> =
            read.utterances().iter().map(|utterance| utterance.words.join(" ")).collect();
        assert_eq!(texts, ["undo it does", "yuwant", "no"]);
        let Source { id, speaker, time } = &read.utterances()[0].source;
        assert_eq!((id.as_deref(), speaker.as_deref(), *time), (Some("p1"), Some("Ann"), Some((0.1, 0.9))));
        let lines = [
            Some(words_of(1, &[&["un", "do"], &["it"], &["d", "oes"]])),
            Some(words_of(2, &[&["yu"], &["want"]])),
            Some(words_of(3, &[&["no"]])),
        ];
        let written = read.with(&lines).unwrap();
        let xx = |text: &str| format!("<item type=\"txt\" lang=\"xx\">{text}</item>");
        let expected = FILE
            .replace(
                &format!("{}<item type=\"gls\"", xx("undo")),
                &format!(
                    "{}<morphemes><morph>{}</morph><morph>{}</morph></morphemes><item type=\"gls\"",
                    xx("undo"),
                    xx("un"),
                    xx("do")
                ),
            )
            .replace(
                &format!("<word>{}<item", xx("it")),
                &format!("<word>{0}<morphemes><morph>{0}</morph></morphemes><item", xx("it")),
            )
            .replace(
                "<words/>",
                &format!("<words><word>{}</word><word>{}</word></words>", xx("yu"), xx("want")),
            )
            .replace(
                &format!("<phrase>{}</phrase>", xx("no")),
                &format!("<phrase>{0}<words><word>{0}</word></words></phrase>", xx("no")),
            );
        assert_eq!(written, expected);
        let again = Interlinear::read(written, "file").unwrap();
        let nothing = again.with(&[Some(words_of(1, &[&["un", "do"]]))]).unwrap_err().to_string();
        assert!(nothing.contains("what is there stays"), "{nothing}");
    }

    #[test]
    fn affixes_have_hyphens() {
        let segment = |text: &str, category: &str| Segment {
            category: Some(category.to_owned()),
            ..super::super::line::tests::segment(text)
        };
        let word = Word {
            text: "undos".into(),
            segments: vec![segment("un", "PrefixMorph"), segment("do", "Stem"), segment("s", "SuffixMorph")],
        };
        let written = morphemes(&word, "xx");
        for part in [
            "type=\"prefix\"><item type=\"txt\" lang=\"xx\">un-<",
            "type=\"stem\"><item type=\"txt\" lang=\"xx\">do<",
            "\">-s<",
        ] {
            assert!(written.contains(part), "{written}");
        }
    }

    proptest! {
        /// Law: a file of any lines has their words; or is refused.
        #[test]
        fn any_text_is_read_back_or_refused(lines in any_lines()) {
            let Ok(written) = document(&lines, "und") else {
                prop_assert!(lines.iter().any(|line| line.check().is_err()));
                return Ok(());
            };
            let read = Interlinear::read(written, "file").unwrap();
            let words: Vec<&Vec<String>> = read.utterances().iter().map(|utterance| &utterance.words).collect();
            let expected: Vec<Vec<String>> = lines
                .iter()
                .filter(|line| !line.words.is_empty())
                .map(|line| line.words.iter().map(|word| word.text.clone()).collect())
                .collect();
            prop_assert_eq!(words, expected.iter().collect::<Vec<_>>());
        }
    }
}
