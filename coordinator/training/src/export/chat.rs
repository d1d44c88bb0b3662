//! CHAT, the format of CHILDES: the segments of an utterance in the tier `%xseg` below it, words with hyphens between their morphemes.
//!
//! In: a transcript, whose utterances are found as the reader finds them ([`chat::utterance`]). Out: the same, byte by byte, with that tier below each utterance
//! that is segmented, in place of an earlier one. Without a transcript: a minimal one.
//!
//! Law: the reader finds the same utterances with and without the tier, and those of a minimal transcript are the words of its lines; words that CHAT would read as
//! something else are refused. Spaces inside of a segment, as between phones, are `_` in that tier, and left out in words.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::ops::Range;

use anyhow::{Result, ensure};
use grammaton::data::corpus::chat;

use super::document::{Document, Utterance};
use super::line::{Line, Source};

/// A transcript.
pub struct Transcript {
    text: String,
    utterances: Vec<Utterance>,
    /// By utterance.
    places: Vec<Place>,
    line_end: &'static str,
}

/// The place of an utterance in the text.
struct Place {
    /// End of its main tier.
    end: usize,
    /// An earlier tier of segments.
    earlier: Vec<Range<usize>>,
}

const TIER: &str = "%xseg:\t";
/// The speaker of lines whose speaker is not known.
const UNKNOWN: &str = "SPK";

impl Transcript {
    /// Reads a transcript.
    pub fn read(text: String) -> Transcript {
        let (mut utterances, mut places): (Vec<Utterance>, Vec<Place>) = (Vec::new(), Vec::new());
        let mut start = 0;
        // What a line that begins with a tab goes on with.
        let mut last = Tier::Other;
        for line in text.split_inclusive('\n') {
            let end = start + line.len();
            let tier = match chat::utterance(line) {
                Some((speaker, words)) => {
                    let speaker = speaker.trim_start_matches('*').trim_end_matches([':', '\t']).to_owned();
                    let source = Source { id: None, speaker: Some(speaker), time: time(line) };
                    let words = words.split_whitespace().map(str::to_owned).collect();
                    utterances.push(Utterance { words, source });
                    places.push(Place { end, earlier: Vec::new() });
                    Tier::Main
                }
                None if line.starts_with('\t') => last,
                None if line.starts_with("%xseg:") => Tier::Segments,
                None => Tier::Other,
            };
            if let (Some(place), Some(utterance)) = (places.last_mut(), utterances.last_mut()) {
                match tier {
                    Tier::Main => {
                        place.end = end;
                        utterance.source.time = utterance.source.time.or_else(|| time(line));
                    }
                    Tier::Segments => place.earlier.push(start..end),
                    Tier::Other => {}
                }
            }
            (start, last) = (end, tier);
        }
        let line_end = if text.contains("\r\n") { "\r\n" } else { "\n" };
        Transcript { text, utterances, places, line_end }
    }
}

#[derive(Clone, Copy)]
enum Tier {
    Main,
    Segments,
    Other,
}

/// The times of an utterance in seconds, from a mark such as `␕120_3400␕` in milliseconds.
fn time(line: &str) -> Option<(f64, f64)> {
    let (start, end) = line.split('\u{15}').skip(1).step_by(2).find_map(|mark| mark.split_once('_'))?;
    let seconds = |number: &str| Some(f64::from(number.trim().parse::<u32>().ok()?) / 1000.0);
    Some((seconds(start)?, seconds(end)?))
}

impl Document for Transcript {
    fn utterances(&self) -> &[Utterance] {
        &self.utterances
    }

    fn with(&self, lines: &[Option<Line>]) -> Result<String> {
        let (mut written, mut done) = (String::new(), 0);
        for (place, line) in self.places.iter().zip(lines) {
            let Some(line) = line.as_ref().filter(|line| !line.words.is_empty()) else { continue };
            written += &self.text[done..place.end];
            done = place.end;
            if !written.ends_with('\n') {
                written += self.line_end;
            }
            written += &tier(line)?;
            written += self.line_end;
            for earlier in &place.earlier {
                written += &self.text[done..earlier.start];
                done = earlier.end;
            }
        }
        Ok(written + &self.text[done..])
    }
}

/// The tier of a line, without a line end.
fn tier(line: &Line) -> Result<String> {
    line.check()?;
    Ok(TIER.to_owned() + &line.hyphenated(joined))
}

fn joined(text: &str) -> String {
    text.replace(' ', "_")
}

fn speaker(line: &Line) -> &str {
    line.source.speaker.as_deref().unwrap_or(UNKNOWN)
}

/// A minimal transcript of these lines, in a language by its code of three letters.
pub fn transcript(lines: &[Line], language: &str) -> Result<String> {
    let mut speakers: Vec<&str> = Vec::new();
    let lines = || lines.iter().filter(|line| !line.words.is_empty());
    for line in lines() {
        if !speakers.contains(&speaker(line)) {
            speakers.push(speaker(line));
        }
    }
    let codes = codes(&speakers);
    let participants: Vec<String> = codes.iter().map(|code| format!("{code} Speaker")).collect();
    let mut text = format!("@UTF8\n@Begin\n@Languages:\t{language}\n");
    if !participants.is_empty() {
        writeln!(text, "@Participants:\t{}", participants.join(", "))?;
    }
    for code in &codes {
        writeln!(text, "@ID:\t{language}|grammaton|{code}|||||Speaker|||")?;
    }
    for line in lines() {
        line.check()?;
        let place = speakers.iter().position(|known| *known == speaker(line)).unwrap_or_default();
        let words: Vec<String> = line.words.iter().map(|word| word.text.replace(' ', "")).collect();
        let words = words.join(" ");
        let utterance = format!("*{}:\t{words} .", codes[place]);
        ensure!(
            chat::utterance(&utterance).is_some_and(|(_, read)| read == words),
            "line {}: `{words}` has characters that mean something else in CHAT; choose another format, or give the transcript with --original",
            line.number
        );
        text += &utterance;
        if let Some((start, end)) = line.source.time {
            write!(text, " \u{15}{:.0}_{:.0}\u{15}", start * 1000.0, end * 1000.0)?;
        }
        writeln!(text, "\n{}", tier(line)?)?;
    }
    Ok(text + "@End\n")
}

/// Codes of speakers, three characters or more, in the order of their names: the name itself, if it is a code.
fn codes(names: &[&str]) -> Vec<String> {
    let is_code = |name: &str| {
        (1..=7).contains(&name.len())
            && name.bytes().all(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit())
    };
    let mut used: BTreeSet<String> =
        names.iter().filter(|name| is_code(name)).map(|name| (*name).to_owned()).collect();
    let mut new = (1..).map(|at| format!("SP{at}"));
    let code = |name: &&str| {
        if is_code(name) {
            return (*name).to_owned();
        }
        let code = new.by_ref().find(|code| !used.contains(code)).expect("numbers do not end");
        used.insert(code.clone());
        code
    };
    names.iter().map(code).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::line::tests::{any_lines, line as words};
    use super::*;

    fn utterances(text: &str) -> Vec<(String, String)> {
        text.lines().filter_map(chat::utterance).collect()
    }

    const TRANSCRIPT: &str = "@UTF8\r\n@Begin\r\n*CHI:\tyu want .\r\n\tto \u{15}10_25\u{15}\r\n%mor:\tx\r\n%xseg:\tearlier\r\n\tones\r\n%com:\ty\r\n*MOT:\txxx .\r\n*MOT:\tno";

    #[test]
    fn a_tier_is_added_below_each_utterance_and_nothing_else_changes() {
        let read = Transcript::read(TRANSCRIPT.to_owned());
        let texts: Vec<String> =
            read.utterances().iter().map(|utterance| utterance.words.join(" ")).collect();
        assert_eq!(texts, ["yu want", "", "no"]);
        let source = &read.utterances()[0].source;
        assert_eq!((source.speaker.as_deref(), source.time), (Some("CHI"), Some((0.01, 0.025))));
        let lines = [Some(words(1, &[&["yu"], &["wa", "nt"]])), None, Some(words(2, &[&["no"]]))];
        let written = read.with(&lines).unwrap();
        let expected = TRANSCRIPT
            .replace("%xseg:\tearlier\r\n\tones\r\n", "")
            .replace("%mor", "%xseg:\tyu wa-nt\r\n%mor")
            .replace("\tno", "\tno\r\n%xseg:\tno\r\n");
        assert_eq!(written, expected);
        // Once more: the tier is replaced.
        assert_eq!(Transcript::read(written.clone()).with(&lines).unwrap(), expected);
        assert_eq!(utterances(&written), utterances(TRANSCRIPT));
    }

    proptest! {
        #[test]
        fn utterances_stay_in_any_transcript(lines in any_lines()) {
            let read = Transcript::read(TRANSCRIPT.to_owned());
            let found: Vec<Option<Line>> = (0..3).map(|at| lines.get(at).cloned()).collect();
            match read.with(&found) {
                Ok(written) => prop_assert_eq!(utterances(&written), utterances(TRANSCRIPT)),
                Err(_) => prop_assert!(lines.iter().any(|line| line.check().is_err())),
            }
        }

        #[test]
        fn a_minimal_transcript_is_read_back_or_refused(lines in any_lines()) {
            let Ok(written) = transcript(&lines, "und") else { return Ok(()) };
            let spoken: Vec<String> = utterances(&written).into_iter().map(|(_, words)| words).collect();
            let expected: Vec<String> = lines.iter().map(Line::text).filter(|text| !text.is_empty()).collect();
            prop_assert_eq!(spoken, expected);
            prop_assert!(written.lines().all(chat::is_line));
        }
    }

    #[test]
    fn words_that_mean_something_else_are_refused() {
        for word in ["xxx", "&=a", "a[b", "a(b", "0a", "a@b", "wor.d"] {
            let refused = transcript(&[words(4, &[&[word]])], "und").unwrap_err().to_string();
            assert!(refused.contains("line 4") && refused.contains(word), "{refused}");
        }
        let expected = "@UTF8\n@Begin\n@Languages:\tund\n@Participants:\tSP1 Speaker\n@ID:\tund|grammaton|SP1|||||Speaker|||\n\
            *SP1:\tundo it .\n%xseg:\tun-do it\n@End\n";
        let mut line = words(1, &[&["un", "do"], &["it"]]);
        line.source.speaker = Some("Ann".to_owned());
        assert_eq!(transcript(&[line, words(2, &[])], "und").unwrap(), expected);
    }

    #[test]
    fn codes_of_speakers_differ() {
        assert_eq!(codes(&["SP1", "Ann", "CHI", "tier 2"]), ["SP1", "SP2", "CHI", "SP3"]);
    }
}
