//! Utterances of transcripts in CHAT, the format of CHILDES.
//!
//! In: a line. Out: its speaker, as written, and the words of the utterance without codes. Headers (`@`) and dependent tiers (`%`) have none.
//!
//! What is left out: codes in brackets (`[//]`, `[: word]`), pauses, time marks, punctuation, events (`&=laughs`), fragments (`&+w`), words that were
//! not said (`0is`) or not understood (`xxx`, `yyy`, `www`). What is read: words in angle brackets, fillers (`&-um`), shortened words as whole
//! (`(be)cause`), words before a form marker (`gumma@c`), compounds (`ice+cream` and `a_lot` are one word).
//!
//! MacWhinney (2000), The CHILDES Project, with the manual's later changes.

/// The speaker with the space after it, and the utterance; `None` for other lines.
pub fn utterance(line: &str) -> Option<(String, String)> {
    let rest = line.strip_prefix('*')?;
    let (speaker, rest) = rest.split_once(':').filter(|(speaker, _)| is_speaker(speaker))?;
    Some((format!("*{speaker}:\t"), words(rest)))
}

/// Whether a line begins as one of a transcript does: an utterance, a header, a dependent tier or the continuation of one.
pub fn is_line(line: &str) -> bool {
    line.starts_with(['@', '%', '\t']) || utterance(line).is_some()
}

fn is_speaker(name: &str) -> bool {
    let is_letter = |byte: u8| byte.is_ascii_uppercase() || byte.is_ascii_digit();
    (1..=7).contains(&name.len()) && name.bytes().all(is_letter)
}

/// The words of an utterance.
fn words(utterance: &str) -> String {
    let without = outside(&outside(utterance, '[', ']'), '\u{15}', '\u{15}');
    let words = without.split_whitespace().map(|word| word.trim_matches(['<', '>']));
    let words = words.filter(|word| !is_code(word)).map(word).filter(|word| !word.is_empty());
    words.collect::<Vec<_>>().join(" ")
}

/// The text without its parts from `open` to `close`.
fn outside(text: &str, open: char, close: char) -> String {
    let (mut outside, mut rest) = (String::new(), text);
    while let Some((before, inside)) = rest.split_once(open) {
        outside += before;
        outside.push(' ');
        rest = inside.split_once(close).map_or("", |(_, after)| after);
    }
    outside + rest
}

/// Whether a token is no word: a code, an event, an omitted word, a pause.
fn is_code(token: &str) -> bool {
    let is_pause = token.starts_with('(') && token.ends_with(')') && token.contains('.');
    is_pause
        || matches!(token, "xxx" | "yyy" | "www")
        || token.starts_with("&=")
        || token.starts_with("&+")
        || token.starts_with("&{")
        || token.starts_with("&}")
        || token.starts_with(['0', '+'])
}

/// A word without its marks.
fn word(token: &str) -> String {
    let token = token.strip_prefix("&-").or_else(|| token.strip_prefix("&~")).unwrap_or(token);
    let token = token.split_once('@').map_or(token, |(word, _)| word);
    token.chars().filter(|&letter| is_of_word(letter)).collect()
}

/// Whether a character belongs to a word: a letter or one of the signs that are written in words.
fn is_of_word(letter: char) -> bool {
    !letter.is_control()
        && !matches!(
            letter,
            '.' | ','
                | '?'
                | '!'
                | ';'
                | ':'
                | '"'
                | '“'
                | '”'
                | '‡'
                | '„'
                | '('
                | ')'
                | '<'
                | '>'
                | '+'
                | '_'
                | '^'
                | '/'
                | '\\'
                | '↑'
                | '↓'
                | '≠'
                | '∆'
                | '∇'
                | '⌈'
                | '⌉'
                | '⌊'
                | '⌋'
        )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_utterance_is_words_without_codes() {
        for (line, expected) in [
            ("*CHI:\tyu want it .", "yu want it"),
            (
                "*MOT:\t<the the> [//] the dog [: hund] runs (.) fast ! \u{15}123_456\u{15}",
                "the the the dog runs fast",
            ),
            (
                "*FA1: &-um &=laughs &+w (be)cause gumma@c ice+cream a_lot +...",
                "um because gumma icecream alot",
            ),
            ("*CHI:\txxx 0is don't (1.5) yyy , mother-in-law ?", "don't mother-in-law"),
            ("*CHI:\t+< well \u{201e} yes +/.", "well yes"),
            ("*CHI:\txxx .", ""),
            ("*CHI:\twas [x 3", "was"),
        ] {
            assert_eq!(utterance(line).unwrap().1, expected, "{line}");
        }
        assert_eq!(utterance("*CHI: a").unwrap().0, "*CHI:\t");
    }

    #[test]
    fn other_lines_have_no_utterance() {
        for line in
            ["@Begin", "%mor:\tdet|the n|dog .", "the dog: a", "*not a speaker: x", "* item: x", "**: x", ""]
        {
            assert_eq!(utterance(line), None, "{line}");
        }
        assert!(["@End", "%com:\tx", "\tmore", "*CHI:\tx"].map(is_line).iter().all(|&is_line| is_line));
    }
}
