//! A synthetic language: words of consonants and vowels, whose r-th most frequent has a probability in proportion to 1/(r + 2.7)
//! (Mandelbrot), so that new words keep appearing, as in texts.

use std::collections::BTreeSet;

use grammaton::grammar::Grammar;
use grammaton::grammar::syntax;
use grammaton::num::Noise;

/// The words, most frequent first.
const WORDS: u64 = 20_000;

const CONSONANTS: &[u8] = b"bdfgklmnprstvz";
const VOWELS: &[u8] = b"aeiou";

/// The grammar: sentences of one or more words, three on average, below `Word`.
pub fn language() -> Grammar {
    let mut text = "1 1 Sentence --> Words\n1 1 Words --> Word\n2 1 Words --> Word Words\n".to_owned();
    for (rank, word) in words().iter().enumerate() {
        let letters: Vec<String> = word.chars().map(String::from).collect();
        text += &format!("{} 1 Word --> {}\n", 1e5 / (rank as f64 + 3.7), letters.join(" "));
    }
    syntax::parse(&text, "synthetic language").expect("rules without cycles, all reachable").0
}

/// Distinct words; mostly the shorter words come first.
fn words() -> Vec<String> {
    let noise = Noise::new(0, 0);
    let mut place = 0;
    let mut pick = |letters: &[u8]| {
        place += 1;
        let chance = (noise.symmetric(place) + 1.0) / 2.0;
        char::from(letters[(chance * letters.len() as f64) as usize])
    };
    let (mut known, mut words) = (BTreeSet::new(), Vec::new());
    for rank in 0..WORDS {
        // There are 70 syllables and 4,900 pairs of them, so there is always another word.
        let n_syllables = 1 + (rank + 1).ilog(30) as usize;
        let mut word = String::new();
        while word.is_empty() || !known.insert(word.clone()) {
            word.clear();
            (0..n_syllables).for_each(|_| word.extend([pick(CONSONANTS), pick(VOWELS)]));
            if pick(b"01") == '1' {
                word.push(pick(CONSONANTS));
            }
        }
        words.push(word);
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_differ_and_the_frequent_are_short() {
        let words = words();
        let different: BTreeSet<&String> = words.iter().collect();
        assert_eq!((words.len(), different.len()), (WORDS as usize, WORDS as usize));
        let length = |words: &[String]| words.iter().map(String::len).sum::<usize>() / words.len();
        assert!(length(&words[..100]) < length(&words[10_000..]));
    }
}
