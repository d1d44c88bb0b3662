//! Corpora: formats, limits, messages, the mapping to a grammar, and lines written back.

use std::io::Write as _;

use flate2::Compression;
use flate2::write::GzEncoder;
use grammaton::data::corpus::{Cleaning, Corpus, Format, Layout, Marks, Normalise, Options, ReadError, Unit};
use grammaton::grammar::{SymbolId, syntax};
use grammaton::work::shard;
use grammaton::work::shard::Shard;
use proptest::prelude::*;

const CHARS: Options = options(Format::Segmented, Unit::Char);
const MARKED: Options = options(Format::Segmented, Unit::Token);
const TOKENS: Options = options(Format::Tokens, Unit::Char);

const fn options(format: Format, unit: Unit) -> Options {
    let (normalise, punctuation) = (Normalise::None, Marks::Keep);
    let cleaning = Cleaning { normalise, lowercase: false, punctuation, digraphs: Vec::new() };
    Options { format, unit, max_symbols: 100, layout: Layout::TEXT, cleaning }
}

fn read(text: impl AsRef<[u8]>, options: &Options) -> Result<Corpus, ReadError> {
    Corpus::read(text.as_ref(), "c.txt", options).map(|(corpus, _)| corpus)
}

fn notices(text: &str, options: &Options) -> Vec<String> {
    let (_, notices) = Corpus::read(text.as_bytes(), "c.txt", options).expect("the text is a corpus");
    notices.iter().map(ToString::to_string).collect()
}

#[test]
fn characters_are_symbols_and_blanks_separate_words() {
    let corpus = read("\u{feff}ab a\r\n\n \t\n  bé\u{3000}a  ", &CHARS).unwrap();
    assert_eq!(corpus.symbols, ["a", "b", "é"]);
    assert_eq!(corpus.sentences, [vec![0, 1, 0], vec![1, 2, 0]]);
    assert_eq!(corpus.gold, Some(vec![vec![vec![2, 3]], vec![vec![2, 3]]]));
    assert_eq!(corpus.lines, [1, 4]);
    assert_eq!(corpus.n_symbols(), 6);
    assert_eq!(corpus.line(1, &[2, 3]), "bé a");
    assert_eq!(corpus.line(1, &[1, 2, 3]), "b é a");
}

#[test]
fn tokens_are_symbols_and_bars_separate_words() {
    let corpus = read("| D iy | | k ae t |\n|\ns ih t\n", &MARKED).unwrap();
    assert_eq!(corpus.symbols, ["D", "iy", "k", "ae", "t", "s", "ih"]);
    assert_eq!(corpus.gold, Some(vec![vec![vec![2, 5]], vec![vec![3]]]));
    assert_eq!(corpus.lines, [1, 3]);
    assert_eq!(corpus.line(0, &[2, 5]), "D iy | k ae t");
}

#[test]
fn plain_tokens_have_no_gold_and_a_bar_is_one_of_them() {
    let corpus = read("D iy | k\n", &TOKENS).unwrap();
    assert_eq!(corpus.symbols, ["D", "iy", "|", "k"]);
    assert_eq!(corpus.gold, None);
    assert_eq!(corpus.segmentation(), [vec![4]]);
    assert_eq!(corpus.line(0, &[2, 4]), "D iy | | k");
}

#[test]
fn a_file_without_boundaries_has_no_gold() {
    for (text, options) in [("abc\nd\n", &CHARS), ("ab c\nd\n", &MARKED)] {
        assert_eq!(read(text, options).unwrap().gold, None);
        assert!(notices(text, options)[0].contains("there is no gold segmentation"));
    }
    assert_eq!(notices("a b\n\nc\n", &CHARS), ["c.txt:2: skipped 1 empty line"]);
    assert_eq!(notices("a b\n\nc\n \n", &CHARS), ["c.txt:2: skipped 2 empty lines, this being the first"]);
}

#[test]
fn gzip_is_known_by_content_and_by_name() {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(b"ab c\n").unwrap();
    let packed = encoder.finish().unwrap();
    let expected = read("ab c\n", &CHARS).unwrap();
    assert_eq!(read(&packed, &CHARS).unwrap(), expected);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("c.txt.gz");
    std::fs::write(&path, &packed).unwrap();
    let (corpus, _) = Corpus::open_with(&path, &CHARS).unwrap();
    assert_eq!(corpus.sentences, expected.sentences);
    std::fs::write(&path, "ab c\n").unwrap();
    assert!(matches!(Corpus::open_with(&path, &CHARS), Err(ReadError::Damaged { .. })));
    assert!(matches!(read(&packed[..packed.len() - 9], &CHARS), Err(ReadError::Damaged { .. })));
    assert!(matches!(Corpus::open_with(&folder.path().join("none"), &CHARS), Err(ReadError::Open { .. })));
}

#[test]
fn errors_name_the_line_the_byte_and_the_way_out() {
    let short = Options { max_symbols: 3, ..CHARS };
    for (text, options, expected) in [
        (
            &b"ab\na\xffb"[..],
            &CHARS,
            "c.txt:2: byte 4 is not UTF-8; convert the file, for instance with iconv",
        ),
        (
            b"\xef\xbb\xbfa\0b",
            &CHARS,
            "c.txt:1: control character U+0000 at byte 4, expected text; remove it",
        ),
        (b"", &CHARS, "c.txt: the corpus has no sentences (0 empty lines), expected one a line"),
        (b"\n", &CHARS, "c.txt: the corpus has no sentences (1 empty line), expected one a line"),
        (b"\n \n", &CHARS, "c.txt: the corpus has no sentences (2 empty lines), expected one a line"),
        (
            b"abc\na bcd\n",
            &short,
            "c.txt:2: the line that begins at byte 4 is longer than 3 symbols (of 64 bytes); split it, or raise max_symbols",
        ),
    ] {
        assert_eq!(read(text, options).unwrap_err().to_string(), expected);
    }
}

#[test]
fn an_endless_line_is_refused_before_it_is_read() {
    let endless = std::io::repeat(b' ');
    let read = Corpus::read(endless, "c.txt", &CHARS);
    assert!(matches!(read, Err(ReadError::TooLong { line: 1, byte: 0, max_symbols: 100, .. })));
}

#[test]
fn symbols_that_the_grammar_lacks_are_named() {
    let grammar = syntax::parse("1 1 S --> T S\n1 1 S --> T\n1 1 T --> a\n1 1 T --> b\n", "g").unwrap().0;
    let corpus = read("ab\nbaa\n", &CHARS).unwrap();
    let tokens = corpus.tokens_for(&grammar).unwrap();
    let names = tokens[1].iter().map(|&token| grammar.name(token)).collect::<String>();
    assert_eq!(names, "baa");
    assert_eq!(
        read("ab\nb ca\n", &CHARS).unwrap().tokens_for(&grammar).unwrap_err().to_string(),
        "c.txt:2: the grammar has no terminal `c` (add a rule that has it as a child, or correct the text), \
         needed by the sentence `bca`"
    );
    let corpus = read("ca\nab\nacd\n", &CHARS).unwrap();
    let each: Vec<_> = corpus.each_tokens_for(&grammar).map(|tokens| tokens.map_err(|e| e.symbol)).collect();
    assert_eq!(each, [Err("c".to_owned()), Ok(tokens[0].clone()), Err("c".to_owned())]);
    assert!(
        read("aT\n", &CHARS)
            .unwrap()
            .tokens_for(&grammar)
            .unwrap_err()
            .to_string()
            .contains("it is a nonterminal")
    );
    let quoted = syntax::parse("1 1 S --> \"a\"\n1 1 S --> 'b'\n1 1 S --> c\n", "g").unwrap().0;
    for text in ["a\n", "b\n"] {
        let refused = read(text, &CHARS).unwrap().tokens_for(&quoted).unwrap_err().to_string();
        assert!(refused.contains("it has one in quotes, which are part of its name"), "{refused}");
    }
    assert!(read("c\n", &CHARS).unwrap().tokens_for(&quoted).is_ok());
}

proptest! {
    #[test]
    fn lines_written_back_read_the_same(
        sentences in prop::collection::vec(prop::collection::vec("[a-eé]{1,4}", 1..5), 1..5),
    ) {
        for (options, symbol, word) in [(&CHARS, "", " "), (&MARKED, " ", " | ")] {
            let spell = |text: &String| text.chars().map(String::from).collect::<Vec<_>>().join(symbol);
            let line = |words: &Vec<String>| words.iter().map(spell).collect::<Vec<_>>().join(word);
            let lines: Vec<String> = sentences.iter().map(line).collect();
            let corpus = read(lines.join("\n"), options).unwrap();
            for (place, ends) in corpus.segmentation().iter().enumerate() {
                prop_assert_eq!(&corpus.line(place, ends), &lines[place]);
            }
        }
    }

    #[test]
    fn shards_hold_every_sentence_once_and_know_its_places(
        sentences in prop::collection::vec(prop::collection::vec(0..2u32, 1..4), 0..40),
        shard_symbols in 1..20u32,
    ) {
        let sentences: Vec<Vec<SymbolId>> =
            sentences.into_iter().map(|tokens| tokens.into_iter().map(SymbolId).collect()).collect();
        let cut = shard::cut(&sentences, shard_symbols);
        let mut back = vec![None; sentences.len()];
        for (place, shard) in cut.iter().enumerate() {
            let Shard::Sentences(distinct) = &shard.shard else { panic!("sentences make shards of sentences") };
            prop_assert_eq!(distinct.len(), shard.positions.len());
            for (sentence, positions) in distinct.iter().zip(&shard.positions) {
                prop_assert_eq!(sentence.multiplicity as usize, positions.len());
                for &position in positions {
                    prop_assert!(back[position as usize].replace(sentence.tokens.clone()).is_none());
                }
            }
            let n_symbols: usize = distinct.iter().map(|sentence| sentence.tokens.len()).sum();
            prop_assert!(n_symbols >= shard_symbols as usize || place + 1 == cut.len());
        }
        let back: Vec<Vec<SymbolId>> = back.into_iter().flatten().collect();
        prop_assert_eq!(back, sentences);
    }

    #[test]
    fn no_bytes_make_the_reader_panic(bytes in prop::collection::vec(any::<u8>(), 0..60)) {
        let _ = read(&bytes, &CHARS);
        let _ = read(&bytes, &TOKENS);
    }
}

/// Symbols of a sentence as text.
fn names(corpus: &Corpus) -> Vec<&str> {
    corpus.sentences[0].iter().map(|&symbol| corpus.symbols[symbol as usize].as_str()).collect()
}

proptest! {
    #[test]
    fn segments_of_the_ipa_join_to_the_text_and_do_not_depend_on_spaces(
        text in "[taɪʃ ʰːⁿᵐˈ⁵˥.\u{361}\u{303}]{1,12}",
    ) {
        let ipa = Options { unit: Unit::Ipa, ..CHARS };
        prop_assume!(!text.trim().is_empty());
        let plain = text.replace(' ', "");
        let corpus = read(&text, &ipa).unwrap();
        prop_assert_eq!(names(&corpus).concat(), plain.clone());
        let unspaced = read(&plain, &ipa).unwrap();
        prop_assert_eq!(names(&corpus), names(&unspaced));
        let mut symbols = Vec::new();
        grammaton::data::corpus::clean::symbols(&plain, Unit::Ipa, &[], |symbol| symbols.push(symbol));
        prop_assert_eq!(names(&corpus), symbols);
    }
}

#[test]
fn segments_of_the_ipa_may_be_apart_in_the_file() {
    let ipa = Options { unit: Unit::Ipa, ..CHARS };
    let corpus = read("t\u{361} ʃ ʰ a ː n", &ipa).unwrap();
    assert_eq!((names(&corpus), corpus.segmentation()), (vec!["t\u{361}ʃʰ", "aː", "n"], vec![vec![1, 2, 3]]));
}

#[test]
fn graphemes_do_not_depend_on_spaces() {
    let graphemes = Options { unit: Unit::Grapheme, ..CHARS };
    for text in
        ["e\u{301}ta", "e \u{301} ta", "e\u{301} t a", "e \u{301}t\u{304}a", "👩 \u{200d}👧 x", "कि ता ब"]
    {
        let corpus = read(text, &graphemes).unwrap();
        let plain = read(text.replace(' ', ""), &graphemes).unwrap();
        assert_eq!(names(&corpus), names(&plain), "{text}");
        let ends = &corpus.segmentation()[0];
        assert!(
            ends.is_sorted_by(|a, b| a < b) && ends.last() == Some(&(names(&plain).len() as u32)),
            "{text}"
        );
    }
    let corpus = read("e \u{301}ta no", &graphemes).unwrap();
    assert_eq!(
        (names(&corpus), corpus.segmentation()),
        (vec!["e\u{301}", "t", "a", "n", "o"], vec![vec![3, 5]])
    );
}

#[test]
fn a_cleaned_text_has_the_lines_of_the_text() {
    let cleaning = Cleaning {
        normalise: Normalise::Nfc,
        lowercase: true,
        punctuation: Marks::Boundary,
        digraphs: vec!["sh".to_owned()],
    };
    let options = Options { cleaning, ..CHARS };
    let corpus = read("E\u{301}t-SHi\n...\nno,", &options).unwrap();
    assert_eq!(corpus.lines, [1, 3]);
    assert_eq!((names(&corpus), &corpus.segmentation()[0][..]), (vec!["é", "t", "sh", "i"], &[2, 4][..]));
    assert_eq!(corpus.line(0, &[1, 4]), "é tshi");
    let tokens = Options { unit: Unit::Token, ..options };
    let corpus = read("A , B ' c", &tokens).unwrap();
    assert_eq!((names(&corpus), &corpus.segmentation()[0][..]), (vec!["a", "b", "c"], &[1, 2, 3][..]));
}
