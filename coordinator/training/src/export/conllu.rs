//! CoNLL-U: a sentence for each line that is not empty, a token for each word.
//!
//! Morphemes are in column MISC, as treebanks of Universal Dependencies have them: `MSeg=un-do`. A vertical bar, a backslash and a hyphen inside of a morpheme
//! have a backslash before them there (`\p` for the bar, as in `SpacesAfter`). Heads are not known: `_`.

use std::fmt::Write as _;

use anyhow::Result;

use super::line::{Line, Word};
use crate::row::Status;

/// The sentence of a line, and an empty line; nothing for an empty line.
pub fn line(line: &Line) -> Result<String> {
    line.check()?;
    if line.words.is_empty() {
        return Ok(String::new());
    }
    let id = line.source.id.clone().unwrap_or_else(|| format!("line-{}", line.number));
    let mut text = format!("# sent_id = {id}\n# text = {}\n", line.text());
    if let Some(speaker) = &line.source.speaker {
        writeln!(text, "# speaker = {speaker}")?;
    }
    if let Some((start, end)) = line.source.time {
        writeln!(text, "# start = {start}\n# end = {end}")?;
    }
    if let Some(number) = line.log_probability {
        writeln!(text, "# log_probability = {number}")?;
    }
    if line.status != Status::Ok {
        writeln!(text, "# status = {}", line.status)?;
    }
    for (word, at) in line.words.iter().zip(1..) {
        writeln!(text, "{at}\t{}\t_\t_\t_\t_\t_\t_\t_\t{}", word.text, misc(word))?;
    }
    Ok(text + "\n")
}

/// Morphemes of a word, and the categories of its segments.
fn misc(word: &Word) -> String {
    let joined = |texts: Vec<String>| texts.join("-");
    let morphemes = joined(word.segments.iter().map(|segment| escaped(&segment.text)).collect());
    let categories: Option<Vec<String>> =
        word.segments.iter().map(|segment| segment.category.as_deref().map(escaped)).collect();
    let parts = [
        categories.map(|categories| format!("Category={}", joined(categories))),
        (word.segments.len() > 1).then(|| format!("MSeg={morphemes}")),
    ];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    if parts.is_empty() { "_".to_owned() } else { parts.join("|") }
}

fn escaped(text: &str) -> String {
    text.replace('\\', "\\\\").replace('|', "\\p").replace('-', "\\-")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::line::tests::{any_lines, line as words};
    use super::*;

    /// The parts of a value between hyphens.
    fn read(value: &str) -> Vec<String> {
        let (mut parts, mut letters) = (vec![String::new()], value.chars());
        while let Some(letter) = letters.next() {
            let last = parts.last_mut().unwrap();
            match letter {
                '\\' => match letters.next().unwrap() {
                    'p' => last.push('|'),
                    other => last.push(other),
                },
                '-' => parts.push(String::new()),
                other => last.push(other),
            }
        }
        parts
    }

    proptest! {
        /// Law: each word is a row of ten columns, with its segments; a text that a row cannot have is refused.
        #[test]
        fn any_text_is_read_back_or_refused(lines in any_lines()) {
            for found in lines {
                let Ok(text) = line(&found) else {
                    prop_assert!(found.check().is_err());
                    continue;
                };
                let rows: Vec<Vec<&str>> =
                    text.split('\n').filter(|row| !row.is_empty() && row.contains('\t')).map(|row| row.split('\t').collect()).collect();
                prop_assert_eq!(rows.len(), found.words.len());
                for (row, word) in rows.iter().zip(&found.words) {
                    prop_assert_eq!((row.len(), row[1]), (10, word.text.as_str()));
                    let morphemes: Vec<String> = word.segments.iter().map(|segment| segment.text.clone()).collect();
                    let misc = row[9].split('|').find_map(|part| part.strip_prefix("MSeg="));
                    prop_assert_eq!(misc.map_or_else(|| vec![row[1].to_owned()], read), morphemes);
                }
            }
        }
    }

    #[test]
    fn a_sentence_has_its_id_and_morphemes() {
        let found = Line { log_probability: Some(-2.5), ..words(7, &[&["un", "do"], &["it"]]) };
        let expected = "# sent_id = line-7\n# text = undo it\n# log_probability = -2.5\n\
            1\tundo\t_\t_\t_\t_\t_\t_\t_\tMSeg=un-do\n2\tit\t_\t_\t_\t_\t_\t_\t_\t_\n\n";
        assert_eq!(line(&found).unwrap(), expected);
        assert_eq!(line(&words(8, &[])).unwrap(), "");
    }
}
