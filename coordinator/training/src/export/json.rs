//! JSON Lines: an object for each line of the text, empty ones included.
//!
//! Law: what is written is read back, whatever the text.

use anyhow::Result;
use serde::Serialize;

use super::line::{Line, Word};

#[derive(Serialize)]
struct Object<'a> {
    line: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    speaker: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    start: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    end: Option<f64>,
    segments: Vec<&'a str>,
    /// Nonterminals of the segments, if any is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    categories: Option<Vec<Option<&'a str>>>,
    /// Segments by word, if a word has several.
    #[serde(skip_serializing_if = "Option::is_none")]
    words: Option<Vec<Vec<&'a str>>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    boundaries: Option<&'a [f64]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    gold: Option<&'a [String]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    log_probability: Option<f64>,
    status: String,
}

/// The object of a line, with a line end.
pub fn line<'a>(line: &'a Line) -> Result<String> {
    let has_category = line.segments().any(|segment| segment.category.is_some());
    let categories = || line.segments().map(|segment| segment.category.as_deref()).collect();
    let has_morphemes = line.words.iter().any(|word| word.segments.len() > 1);
    let texts = |word: &'a Word| word.segments.iter().map(|segment| segment.text.as_str()).collect();
    let words = || line.words.iter().map(texts).collect();
    let object = Object {
        line: line.number,
        id: line.source.id.as_deref(),
        speaker: line.source.speaker.as_deref(),
        start: line.source.time.map(|(start, _)| start),
        end: line.source.time.map(|(_, end)| end),
        segments: line.segments().map(|segment| segment.text.as_str()).collect(),
        categories: has_category.then(categories),
        words: has_morphemes.then(words),
        boundaries: line.boundaries.as_deref(),
        gold: line.gold.as_deref(),
        log_probability: line.log_probability,
        status: line.status.to_string(),
    };
    Ok(serde_json::to_string(&object)? + "\n")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::line::tests::any_lines;
    use super::*;

    proptest! {
        #[test]
        fn any_text_is_read_back(lines in any_lines(), boundaries in prop::collection::vec(0.0..1.0, 0..4)) {
            for found in lines {
                let found = Line { boundaries: Some(boundaries.clone()), log_probability: Some(-1.5), ..found };
                let written = line(&found).unwrap();
                prop_assert_eq!(written.matches('\n').count(), 1);
                let read: serde_json::Value = serde_json::from_str(&written).unwrap();
                let segments: Vec<&str> = found.segments().map(|segment| segment.text.as_str()).collect();
                prop_assert_eq!(&read["segments"], &serde_json::json!(segments));
                prop_assert_eq!(&read["boundaries"], &serde_json::json!(boundaries));
                prop_assert_eq!(read["line"].as_u64(), Some(u64::from(found.number)));
                prop_assert_eq!(read["status"].as_str(), Some("ok"));
                let words: Vec<Vec<&str>> =
                    found.words.iter().map(|word| word.segments.iter().map(|it| it.text.as_str()).collect()).collect();
                if words.iter().any(|word| word.len() > 1) {
                    prop_assert_eq!(&read["words"], &serde_json::json!(words));
                }
            }
        }
    }
}
