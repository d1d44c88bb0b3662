//! Writing a file of sentences again, with other heads.

use std::collections::BTreeMap;

use super::read::UNIVERSAL_PUNCTUATION;
use super::{Document, Punctuation, Sentence};

/// The column of heads in CoNLL-U, from 1.
const HEAD_COLUMN: usize = 7;

impl Document {
    /// The file as it came, but for the heads. Those of `found`, which [`super::select`] left of these sentences, are theirs, with
    /// punctuation as [`Sentence::with_punctuation`] says if it was `Removed`; all other sentences have `_`, except those of
    /// punctuation alone. Lines without a column of heads get one at their end.
    pub fn with_heads(&self, found: &[Sentence], punctuation: Punctuation) -> String {
        let found: BTreeMap<u32, &Sentence> =
            found.iter().map(|sentence| (sentence.line, sentence)).collect();
        let mut text = String::with_capacity(self.text.len());
        let mut copied = 0;
        for (sentence, columns) in self.sentences.iter().zip(&self.head_columns) {
            let heads = found.get(&sentence.line).and_then(|found| found.heads.as_deref());
            let heads = match punctuation {
                Punctuation::Kept => heads.map(<[u32]>::to_vec),
                Punctuation::Removed if sentence.punctuation.iter().all(|&mark| mark) => {
                    Some(sentence.with_punctuation(&[]))
                }
                Punctuation::Removed => heads.map(|heads| sentence.with_punctuation(heads)),
            };
            for (at, column) in columns.iter().enumerate() {
                text.push_str(&self.text[copied..column.start]);
                if column.is_empty() {
                    text.push('\t');
                }
                text.push_str(&heads.as_ref().map_or("_".to_owned(), |heads| heads[at].to_string()));
                copied = column.end;
            }
        }
        text + &self.text[copied..]
    }

    /// The file as it came, but for the tags: `tag` says that of a word, `None` for punctuation. In CoNLL-U it is the tag of the language; the universal tag is
    /// that of punctuation, or `_`.
    pub fn with_tags<'t>(&self, tag: impl Fn(&str) -> Option<&'t str>) -> String {
        let mut text = String::with_capacity(self.text.len());
        let mut copied = 0;
        for (sentence, columns) in self.sentences.iter().zip(&self.head_columns) {
            for (word, head) in sentence.words.iter().zip(columns) {
                let before = &self.text[..head.start];
                let start = before.rfind('\n').map_or(0, |at| at + 1);
                let mut columns: Vec<&str> = before[start..].split('\t').collect();
                let tag = tag(word);
                if columns.len() == HEAD_COLUMN {
                    columns[3] = if tag.is_some() { "_" } else { UNIVERSAL_PUNCTUATION };
                    columns[4] = tag.unwrap_or("_");
                } else {
                    columns[1] = tag.unwrap_or(UNIVERSAL_PUNCTUATION);
                }
                text.push_str(&self.text[copied..start]);
                text.push_str(&columns.join("\t"));
                copied = head.start;
            }
        }
        text + &self.text[copied..]
    }
}

/// Sentences of CoNLL-U, without tags and heads: a sentence for each line of a text that has words, which spaces separate.
pub fn of_text(text: &str) -> String {
    let sentence = |line: &str| -> String {
        let words = (1..).zip(line.split_whitespace());
        words.map(|(number, word)| format!("{number}\t{word}\t_\t_\t_\t_\t_\t_\t_\t_\n")).collect::<String>()
            + "\n"
    };
    let text = text.trim_start_matches('\u{feff}');
    text.lines().filter(|line| !line.trim().is_empty()).map(sentence).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::data::dependency::{Tags, read, select};

    /// Lines of a sentence, and whether each is a word.
    type Lines = Vec<(String, bool)>;

    /// A sentence of CoNLL-U with all that a file may have besides words and heads.
    fn conllu() -> impl Strategy<Value = Lines> {
        let word = (
            "[a#é]( ?[0-9-]){0,2}",
            "(NOUN|VERB|PUNCT)",
            "[a-z]{1,3}",
            0..4u32,
            any::<prop::sample::Index>(),
        );
        (prop::collection::vec(word, 1..7), any::<bool>(), any::<bool>()).prop_map(|(words, gold, commented)| {
            let mut lines = Lines::new();
            if commented {
                lines.push(("# text = a b\tc".to_owned(), false));
            }
            for ((form, upos, other, extra, head), before) in words.iter().zip(0..) {
                let at = before + 1;
                // A word's head is the root or before it, so there is no cycle.
                let head = if gold { head.index(at).to_string() } else { "_".to_owned() };
                if *extra == 1 {
                    lines.push((format!("{at}-{}\t{form}x\t_\t_\t_\t_\t_\t_\t_\tSpaceAfter=No", at + 1), false));
                }
                lines.push((
                    format!("{at}\t{form}\t{other}\t{upos}\tX\tA=b|C=d\t{head}\t{other}:x\t{before}:{other}\tM={form}"),
                    true,
                ));
                if *extra == 2 {
                    lines.push((format!("{at}.1\t{form}\t_\t_\t_\t_\t_\t_\t{at}:y\t_"), false));
                }
            }
            lines
        })
    }

    /// A sentence of words, tags and perhaps heads.
    fn plain() -> impl Strategy<Value = Lines> {
        let word = ("[aé]{1,2}", "(NN|VB|PUNCT|,)", any::<prop::sample::Index>());
        (prop::collection::vec(word, 1..7), 0..3).prop_map(|(words, kind)| {
            let line =
                |(before, (form, tag, head)): (usize, &(String, String, prop::sample::Index))| match kind {
                    0 => format!("{form}\t{tag}"),
                    1 => format!("{form}\t{tag}\t_"),
                    _ => format!("{form}\t{tag}\t{}", head.index(before + 1)),
                };
            words.iter().enumerate().map(|word| (line(word), true)).collect()
        })
    }

    /// A file of sentences of one format, and which of its lines are words.
    fn file(sentence: impl Strategy<Value = Lines>) -> impl Strategy<Value = (String, Vec<bool>)> {
        let with_blanks = (sentence, 1..3usize);
        let sentences = prop::collection::vec(with_blanks, 1..4);
        (sentences, any::<bool>(), any::<bool>(), any::<bool>()).prop_map(|(sentences, crlf, mark, open)| {
            let mut lines = Lines::new();
            for (sentence, n_blank) in sentences {
                lines.extend(sentence);
                lines.extend(std::iter::repeat_n((String::new(), false), n_blank));
            }
            if open {
                while lines.last().is_some_and(|line| line.0.is_empty()) {
                    lines.pop();
                }
            }
            let end = if crlf { "\r\n" } else { "\n" };
            let texts: Vec<&str> = lines.iter().map(|line| line.0.as_str()).collect();
            let text = if mark { "\u{feff}" } else { "" }.to_owned()
                + &texts.join(end)
                + if open { "" } else { end };
            (text, lines.iter().map(|line| line.1).collect())
        })
    }

    /// Writes the file with each word on the next one and the last one as root, and checks the law.
    fn check(text: &str, is_word: &[bool], head: usize, left_out: usize) -> Result<(), TestCaseError> {
        let document = Document::read(text.as_bytes(), "f", Tags::Upos).unwrap();
        for punctuation in [Punctuation::Removed, Punctuation::Kept] {
            let mut found = select(&document.sentences, punctuation, usize::MAX).sentences;
            for sentence in &mut found {
                sentence.heads = Some(crate::models::dmv::heads::flat(sentence.n_words()));
            }
            let all = document.with_heads(&found, punctuation);
            // What was written is trees, each with one root, and the heads of the words are those that were found.
            let again = Document::read(all.as_bytes(), "f", Tags::Upos).unwrap();
            let trees = select(&again.sentences, punctuation, usize::MAX).sentences;
            prop_assert_eq!(trees.len(), found.len());
            for (read, found) in trees.iter().zip(&found) {
                prop_assert_eq!((&read.words, &read.heads), (&found.words, &found.heads));
            }
            for sentence in &again.sentences {
                let heads = sentence.heads.as_deref().unwrap();
                prop_assert_eq!(heads.iter().filter(|&&head| head == 0).count(), 1);
            }
            // Without one of them, the other lines are the same.
            found.truncate(left_out.min(found.len()));
            for written in [all, document.with_heads(&found, punctuation)] {
                let (before, after): (Vec<&str>, Vec<&str>) =
                    (text.split('\n').collect(), written.split('\n').collect());
                prop_assert_eq!(before.len(), after.len());
                for ((before, after), is_word) in
                    before.iter().zip(&after).zip(is_word.iter().chain([&false]))
                {
                    if !is_word {
                        prop_assert_eq!(before, after);
                        continue;
                    }
                    let columns = |line: &str| -> Vec<String> {
                        line.trim_end_matches('\r').split('\t').map(str::to_owned).collect()
                    };
                    let (mut before, after) = (columns(before), columns(after));
                    before.resize(before.len().max(head + 1), String::new());
                    before[head].clone_from(&after[head]);
                    prop_assert_eq!(before, after);
                }
            }
        }
        Ok(())
    }

    proptest! {
        /// Law: a file that is written again differs in the column of heads alone, and has the same number of lines.
        #[test]
        fn heads_alone_differ_in_conllu((text, is_word) in file(conllu()), left_out in 0..3usize) {
            check(&text, &is_word, 6, left_out)?;
        }

        #[test]
        fn heads_alone_differ_in_plain_lines((text, is_word) in file(plain()), left_out in 0..3usize) {
            check(&text, &is_word, 2, left_out)?;
        }
    }

    #[test]
    fn punctuation_depends_on_the_nearest_word_before_it() {
        let text = "``\t``\na\tN\n,\t,\nb\tV\n.\t.\n\n.\t.\n!\t.\n\nc\tN\n";
        let document = Document::read(text.as_bytes(), "f", Tags::Upos).unwrap();
        let mut found = select(&document.sentences, Punctuation::Removed, usize::MAX).sentences;
        found[0].heads = Some(vec![2, 0]);
        assert_eq!(
            document.with_heads(&found, Punctuation::Removed),
            "``\t``\t2\na\tN\t4\n,\t,\t2\nb\tV\t0\n.\t.\t4\n\n.\t.\t0\n!\t.\t1\n\nc\tN\t_\n"
        );
        assert_eq!(read(text.as_bytes(), "f", Tags::Upos).unwrap(), document.sentences);
    }
}
