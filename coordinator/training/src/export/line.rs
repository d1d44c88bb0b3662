//! A line of a text as it is segmented: what every format writes.

use anyhow::{Result, bail};
use serde::Serialize;

use crate::row::{Row, Status};

/// What the segments of a line are.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Level {
    /// Words of a sentence.
    Words,
    /// Morphemes of a word; a line is a word.
    Morphemes,
}

impl Level {
    /// The level that the names of the nonterminals of segments speak for: those of morphemes contain `Morph`, `Stem`, `Prefix` or `Suffix`.
    pub fn of<'a>(mut segments: impl Iterator<Item = &'a str>) -> Level {
        let is_part =
            |name: &str| ["Morph", "Stem", "Prefix", "Suffix"].iter().any(|part| name.contains(part));
        if segments.any(is_part) { Level::Morphemes } else { Level::Words }
    }
}

/// Where a line is in the file that the text was made of.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Source {
    /// Identifier there.
    pub id: Option<String>,
    /// Who speaks.
    pub speaker: Option<String>,
    /// Begin and end in seconds.
    pub time: Option<(f64, f64)>,
}

/// A segment.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Segment {
    /// As it is printed: tokens with spaces between them.
    pub text: String,
    /// Nonterminal of its constituent, if a tree has it.
    pub category: Option<String>,
    /// Number of its symbols.
    pub n_symbols: u32,
}

/// A word: one segment, or its morphemes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Word {
    /// The word, as it is printed.
    pub text: String,
    /// Its segments, at least one.
    pub segments: Vec<Segment>,
}

/// One of the n best analyses of a line.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Alternative {
    /// Its probability, given the line.
    pub probability: f64,
    /// The analysis.
    #[serde(flatten)]
    pub analysis: Analysis,
    /// The analysis as the table has it.
    #[serde(skip)]
    pub text: String,
}

/// An analysis in JSON.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Analysis {
    /// Segments of the line.
    Segments(Vec<String>),
    /// A bracketed tree.
    Tree(String),
    /// By word the number of its head, from 1; 0 is the root.
    Heads(Vec<u32>),
}

impl Alternative {
    /// A tree in brackets.
    pub fn tree(probability: f64, tree: String) -> Alternative {
        Alternative { probability, analysis: Analysis::Tree(tree.clone()), text: tree }
    }

    /// The heads of words.
    pub fn heads(probability: f64, heads: Vec<u32>) -> Alternative {
        let text = heads.iter().map(u32::to_string).collect::<Vec<_>>().join(" ");
        Alternative { probability, analysis: Analysis::Heads(heads), text }
    }
}

/// A line of a text as it is segmented.
#[derive(Clone, PartialEq, Debug)]
pub struct Line {
    /// Number of the line, from 1.
    pub number: u32,
    /// The place in the original file.
    pub source: Source,
    /// Words; an empty line has none. A line without an analysis is one segment.
    pub words: Vec<Word>,
    /// What stands between segments in the text.
    pub separator: &'static str,
    /// The bracketed tree, if it is known.
    pub tree: Option<String>,
    /// The best analyses in order, if they are asked for.
    pub n_best: Vec<Alternative>,
    /// Segments of the gold segmentation, if the text has one.
    pub gold: Option<Vec<String>>,
    /// Natural logarithm of the inside value of the sentence.
    pub log_probability: Option<f64>,
    /// Probability of a boundary at each position between two symbols, if they are known.
    pub boundaries: Option<Vec<f64>>,
    /// Status of the analysis.
    pub status: Status,
}

impl Line {
    /// A line of these segments, which are words or the morphemes of one word with this text.
    pub fn new(number: u32, level: Level, text: String, segments: Vec<Segment>, status: Status) -> Line {
        let words = match level {
            Level::Words => {
                let word = |segment: Segment| Word { text: segment.text.clone(), segments: vec![segment] };
                segments.into_iter().map(word).collect()
            }
            Level::Morphemes => vec![Word { text, segments }],
        };
        Line { words, ..Line::empty(number, status) }
    }

    /// A line without words.
    pub fn empty(number: u32, status: Status) -> Line {
        Line {
            number,
            source: Source::default(),
            words: Vec::new(),
            separator: "",
            tree: None,
            n_best: Vec::new(),
            gold: None,
            log_probability: None,
            boundaries: None,
            status,
        }
    }

    /// All segments.
    pub fn segments(&self) -> impl Iterator<Item = &Segment> {
        self.words.iter().flat_map(|word| &word.segments)
    }

    /// The segmentation as the text marks it.
    pub fn segmentation(&self) -> String {
        let segments: Vec<&str> = self.segments().map(|segment| segment.text.as_str()).collect();
        segments.join(self.separator)
    }

    /// The row of a table. A line that is not segmented has no prediction.
    pub fn row(&self) -> String {
        let is_segmented = matches!(self.status, Status::Ok | Status::HeldOut | Status::NoModel);
        Row {
            line: self.number,
            gold: self.gold.as_ref().map(|gold| gold.join(self.separator)).as_deref(),
            predicted: is_segmented.then(|| self.segmentation()).as_deref(),
            log_probability: self.log_probability,
            status: self.status,
        }
        .to_string()
    }

    /// The words, with spaces between them.
    pub fn text(&self) -> String {
        self.words.iter().map(|word| word.text.as_str()).collect::<Vec<_>>().join(" ")
    }

    /// Words as `written`, spaces between them, their segments separated by hyphens.
    pub fn hyphenated(&self, written: impl Fn(&str) -> String) -> String {
        let word = |word: &Word| {
            word.segments.iter().map(|segment| written(&segment.text)).collect::<Vec<_>>().join("-")
        };
        self.words.iter().map(word).collect::<Vec<_>>().join(" ")
    }

    /// Refuses characters that most formats cannot have.
    ///
    /// # Errors
    /// A control character or a noncharacter, with its line.
    pub fn check(&self) -> Result<()> {
        let texts = self.words.iter().map(|word| &word.text).chain(self.segments().map(|it| &it.text));
        let texts = texts.chain(&self.source.id).chain(&self.source.speaker);
        let is_wrong = |letter: &char| letter.is_control() || matches!(letter, '\u{fffe}' | '\u{ffff}');
        if let Some(letter) = texts.flat_map(|text| text.chars()).find(is_wrong) {
            bail!(
                "line {}: the format cannot have the character U+{:04X}; remove it from the text, or use --format json",
                self.number,
                letter as u32
            );
        }
        Ok(())
    }
}

/// The lines of a speaker, in the order of time, each with its begin and end in seconds.
pub struct Speech<'a> {
    /// The speaker, if known.
    pub speaker: Option<&'a str>,
    /// Lines that are not empty.
    pub lines: Vec<(f64, f64, &'a Line)>,
}

/// The lines that are not empty by speaker, in the order of the first of each. Where the time of a line is not known, all of them last a second, one after
/// another.
///
/// # Errors
/// Lines of one speaker that overlap, and lines without duration.
pub fn speeches(lines: &[Line]) -> Result<Vec<Speech<'_>>> {
    let lines = || lines.iter().filter(|line| !line.words.is_empty());
    let are_timed = lines().all(|line| line.source.time.is_some());
    let mut found: Vec<Speech<'_>> = Vec::new();
    for (at, line) in lines().enumerate() {
        let made_up = (at as f64, at as f64 + 1.0);
        let (start, end) = line.source.time.filter(|_| are_timed).unwrap_or(made_up);
        let speaker = line.source.speaker.as_deref();
        let place = found.iter().position(|speech| speech.speaker == speaker).unwrap_or_else(|| {
            found.push(Speech { speaker, lines: Vec::new() });
            found.len() - 1
        });
        found[place].lines.push((start, end, line));
    }
    for speech in &mut found {
        speech.lines.sort_by(|a, b| a.0.total_cmp(&b.0));
        let whose = speech.speaker.map_or(String::new(), |speaker| format!(" of {speaker}"));
        for (at, (start, end, line)) in speech.lines.iter().enumerate() {
            let next = speech.lines.get(at + 1);
            if start >= end {
                bail!("line {}{whose} has no duration, which a tier needs; correct its times", line.number);
            }
            if let Some((_, _, other)) = next.filter(|(next, ..)| next < end) {
                let (a, b) = (line.number, other.number);
                bail!(
                    "lines {a} and {b}{whose} overlap in time, which a tier cannot have; correct their times"
                );
            }
        }
    }
    Ok(found)
}

/// Points that divide the time from `start` to `end` in proportion to these numbers: one more than there are numbers.
pub fn divided(start: f64, end: f64, sizes: impl Iterator<Item = u32> + Clone) -> Vec<f64> {
    let total: u32 = sizes.clone().sum();
    let mut done = 0;
    let mut points = vec![start];
    for size in sizes {
        done += size;
        let point = start + (end - start) * f64::from(done) / f64::from(total.max(1));
        points.push(if done == total { end } else { point });
    }
    points
}

#[cfg(test)]
pub(super) mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Any text without white space, with what is special in some format.
    pub fn any_text() -> impl Strategy<Value = String> {
        let special = prop::sample::select(vec![
            "]]>", "<", "&amp;", "\"", "'", "\\", "{", "}", "$", "#", "%", "_", "^", "~", "|", "-", "--",
            "[", "@", "&", "*", "0", "+", "xxx", "\u{0}", "\u{1}", "\u{7f}", "\u{85}x", "\u{15}", "\u{fffe}",
            "\u{feff}", "e\u{301}", "😀", "ა", "(", ".", "<!--", "?>",
        ]);
        let letter = prop_oneof![4 => "[a-z]{1,3}", 2 => special.prop_map(str::to_owned), 1 => any::<char>().prop_map(|it| it.to_string())];
        prop::collection::vec(letter, 1..5).prop_map(|parts| {
            let text: String = parts.concat().chars().filter(|letter| !letter.is_whitespace()).collect();
            if text.is_empty() { "x".to_owned() } else { text }
        })
    }

    pub fn segment(text: &str) -> Segment {
        Segment { text: text.to_owned(), category: None, n_symbols: text.chars().count() as u32 }
    }

    /// A line of words with these segments.
    pub fn line(number: u32, words: &[&[&str]]) -> Line {
        let word = |segments: &&[&str]| Word {
            text: segments.concat(),
            segments: segments.iter().map(|text| segment(text)).collect(),
        };
        Line { words: words.iter().map(word).collect(), ..Line::empty(number, Status::Ok) }
    }

    /// Lines of any text.
    pub fn any_lines() -> impl Strategy<Value = Vec<Line>> {
        let word = prop::collection::vec(any_text(), 1..4);
        let words = prop::collection::vec(prop::collection::vec(word, 0..4), 0..4);
        words.prop_map(|lines| {
            let borrowed = |words: &Vec<Vec<String>>, number: u32| {
                let words: Vec<Vec<&str>> =
                    words.iter().map(|word| word.iter().map(String::as_str).collect()).collect();
                line(number, &words.iter().map(Vec::as_slice).collect::<Vec<_>>())
            };
            lines.iter().zip(1..).map(|(words, number)| borrowed(words, number)).collect()
        })
    }

    #[test]
    fn levels_are_found_by_names() {
        let level = |names: &[&str]| Level::of(names.iter().copied());
        assert_eq!(level(&["Word"]), Level::Words);
        assert_eq!(level(&["FuncWord", "Word", "WithoutNucleus"]), Level::Words);
        assert_eq!(level(&["PrefixMorph", "Stem", "SuffixMorph"]), Level::Morphemes);
        assert_eq!((level(&["Morph"]), level(&[])), (Level::Morphemes, Level::Words));
    }

    proptest! {
        /// Law: points ascend from the start to the end, exactly, in proportion.
        #[test]
        fn times_are_divided_in_proportion(start in 0.0..1e4_f64, length in 1e-3..1e3_f64, sizes in prop::collection::vec(1..20_u32, 1..8)) {
            let end = start + length;
            let points = divided(start, end, sizes.iter().copied());
            prop_assert_eq!((points[0], points[sizes.len()]), (start, end));
            let total: u32 = sizes.iter().sum();
            for (pair, size) in points.windows(2).zip(sizes) {
                prop_assert!(pair[0] < pair[1]);
                prop_assert!((pair[1] - pair[0] - length * f64::from(size) / f64::from(total)).abs() < 1e-9);
            }
        }
    }

    #[test]
    fn lines_of_a_speaker_do_not_overlap() {
        let timed = |number, speaker: &str, time| {
            let source = Source { id: None, speaker: Some(speaker.to_owned()), time: Some(time) };
            Line { source, ..line(number, &[&["a"]]) }
        };
        let lines = [timed(1, "A", (0.0, 2.0)), timed(2, "B", (1.0, 3.0)), timed(3, "A", (2.0, 4.0))];
        let found = speeches(&lines).unwrap();
        assert_eq!(found.iter().map(|speech| speech.lines.len()).collect::<Vec<_>>(), [2, 1]);
        let overlapping = [timed(1, "A", (0.0, 2.0)), timed(2, "A", (1.0, 3.0))];
        let refused = speeches(&overlapping).map(|_| ()).unwrap_err().to_string();
        assert!(refused.contains("lines 1 and 2 of A overlap"), "{refused}");
        assert!(speeches(&[timed(1, "A", (1.0, 1.0))]).is_err());
        // A line without time: all are a second long.
        let found = [timed(1, "A", (0.0, 9.0)), line(2, &[]), line(3, &[&["a"]])];
        let found: Vec<(f64, f64)> =
            speeches(&found).unwrap().iter().flat_map(|it| &it.lines).map(|it| (it.0, it.1)).collect();
        assert_eq!(found, [(0.0, 1.0), (1.0, 2.0)]);
    }
}
