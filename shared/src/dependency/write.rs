//! Writing sentences as CoNLL-U.

use super::{Sentence, Tags};

/// The sentences as CoNLL-U: words, heads, and the tags in the column of `tags`, `_` in all others. Numbered from 1 as they are
/// here, so punctuation that was removed is not there; punctuation that was kept has the universal tag `PUNCT` if `tags` are others.
///
/// Reading it gives the same sentences, but for their lines. Tabs and line ends, which no word that was read has, become `_`.
pub fn conllu(sentences: &[Sentence], tags: Tags) -> String {
    let mut text = String::new();
    for sentence in sentences {
        for at in 0..sentence.n_words() {
            let tag = plain(&sentence.tags[at]);
            let (upos, xpos) = match tags {
                Tags::Upos => (tag.as_str(), "_"),
                Tags::Xpos if sentence.punctuation[at] => ("PUNCT", tag.as_str()),
                Tags::Xpos => ("_", tag.as_str()),
            };
            let head = sentence.heads.as_ref().map_or("_".to_owned(), |heads| heads[at].to_string());
            let (number, word) = (at + 1, plain(&sentence.words[at]));
            text.push_str(&format!("{number}\t{word}\t_\t{upos}\t{xpos}\t_\t{head}\t_\t_\t_\n"));
        }
        text.push('\n');
    }
    text
}

/// `column` such that it stays one, and not an empty one.
fn plain(column: &str) -> String {
    match column {
        "" => "_".to_owned(),
        _ => column.replace(['\t', '\n', '\r'], "_"),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::dependency::{Punctuation, read, select};

    fn sentence() -> impl Strategy<Value = Sentence> {
        let word = ("[a#é]( ?[0-9-]){0,2}", "[A-Z$_]{1,3}", any::<bool>(), any::<prop::sample::Index>());
        (prop::collection::vec(word, 1..7), any::<bool>()).prop_map(|(words, has_heads)| Sentence {
            words: words.iter().map(|word| word.0.clone()).collect(),
            tags: words.iter().map(|word| word.1.clone()).collect(),
            // A word's head is the root or before it, so there is no cycle.
            heads: has_heads
                .then(|| words.iter().zip(1..).map(|(word, at)| word.3.index(at) as u32).collect()),
            punctuation: words.iter().map(|word| word.2).collect(),
            line: 1,
        })
    }

    proptest! {
        #[test]
        fn what_was_written_reads_as_the_same(mut sentences in prop::collection::vec(sentence(), 1..4)) {
            let without_lines = |mut sentences: Vec<Sentence>| {
                sentences.iter_mut().for_each(|sentence| sentence.line = 0);
                sentences
            };
            let xpos = read(conllu(&sentences, Tags::Xpos).as_bytes(), "f", Tags::Xpos).unwrap();
            prop_assert_eq!(without_lines(xpos), without_lines(sentences.clone()));
            for sentence in &mut sentences {
                let is_punctuation = |tag: &String| tag == "PUNCT";
                sentence.punctuation = sentence.tags.iter().map(is_punctuation).collect();
            }
            let upos = read(conllu(&sentences, Tags::Upos).as_bytes(), "f", Tags::Upos).unwrap();
            prop_assert_eq!(without_lines(upos), without_lines(sentences));
        }

        #[test]
        fn words_left_are_written_and_numbered_anew(sentence in sentence()) {
            let left = select(std::slice::from_ref(&sentence), Punctuation::Removed, usize::MAX).sentences;
            let text = conllu(&left, Tags::Xpos);
            let kept = sentence.punctuation.iter().filter(|&&punctuation| !punctuation).count();
            prop_assert_eq!(text.lines().filter(|line| !line.is_empty()).count(), kept);
            if kept > 0 {
                let again = read(text.as_bytes(), "f", Tags::Xpos).unwrap();
                prop_assert_eq!(&again[0].words, &left[0].words);
                prop_assert_eq!(&again[0].heads, &left[0].heads);
            }
        }
    }

    #[test]
    fn columns_stay_columns() {
        let words = vec![String::new(), "a\tb\nc".to_owned()];
        let (tags, punctuation) = (vec!["N".to_owned(); 2], vec![false; 2]);
        let sentence = Sentence { words, tags, heads: Some(vec![0, 1]), punctuation, line: 1 };
        assert_eq!(
            conllu(&[sentence], Tags::Upos),
            "1\t_\t_\tN\t_\t_\t0\t_\t_\t_\n2\ta_b_c\t_\tN\t_\t_\t1\t_\t_\t_\n\n"
        );
    }
}
