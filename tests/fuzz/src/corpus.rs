//! Corpora in every format, plain and gzip: an accepted corpus is within its limits, and its segmentation is a text that
//! reads as the same corpus.

use std::io::Write;
use std::time::Duration;

use flate2::Compression;
use flate2::write::GzEncoder;
use grammaton::data::corpus::layout::LineKind;
use grammaton::data::corpus::{Cleaning, Corpus, Format, Layout, Normalise, Options, Unit};

use crate::bounds::Bounds;

/// Of a corpus that is read. A compressed one may unpack to 16 MiB, however small it is (`shared/src/limits.rs`).
const PLAIN: Bounds =
    Bounds { memory: (1 << 20, 200), time: (Duration::from_millis(500), Duration::from_micros(50)) };
const PACKED: Bounds =
    Bounds { memory: (256 << 20, 10_000), time: (Duration::from_secs(8), Duration::from_micros(500)) };

/// Input: the first byte is the format, the second the maximum length of a sentence.
pub fn run(data: &[u8]) {
    let [how, limit, text @ ..] = data else { return };
    let options = Options {
        format: if how & 1 == 0 { Format::Segmented } else { Format::Tokens },
        unit: Unit::ALL[usize::from(how >> 3) % Unit::ALL.len()],
        max_symbols: 1 + u32::from(*limit),
        cleaning: Cleaning {
            normalise: [Normalise::None, Normalise::Nfc, Normalise::Nfkc][usize::from(how >> 5) % 3],
            lowercase: how & 2 != 0,
            ..Cleaning::default()
        },
        layout: Layout {
            lines: [LineKind::Text, LineKind::Plain, LineKind::Hex, LineKind::Chat][usize::from(*limit >> 6)],
            ..Layout::default()
        },
    };
    let (name, bounds) = if how & 4 == 0 { ("corpus.txt", PLAIN) } else { ("corpus.txt.gz", PACKED) };
    let Ok((corpus, _)) = bounds.check(data.len(), || Corpus::read(text, name, &options)) else { return };
    let n_symbols = corpus.symbols.len();
    for sentence in &corpus.sentences {
        assert!((1..=options.max_symbols as usize).contains(&sentence.len()));
        assert!(sentence.iter().all(|&symbol| (symbol as usize) < n_symbols));
    }
    for (ends, sentence) in corpus.segmentation().iter().zip(&corpus.sentences) {
        assert!(ends[0] > 0 && ends.is_sorted_by(|a, b| a < b));
        assert_eq!(ends.last().copied(), Some(sentence.len() as u32));
    }
    if options.format == Format::Segmented {
        let lines = corpus.segmentation();
        let lines: Vec<String> = lines.iter().enumerate().map(|(at, ends)| corpus.line(at, ends)).collect();
        // A byte order mark before the first line is removed; a second one is text.
        let written = format!("\u{feff}{}", lines.join("\n"));
        let longer = Options { max_symbols: 1 << 16, ..options.clone() };
        let (again, _) = Corpus::read(written.as_bytes(), "written.txt", &longer).expect("it is a corpus");
        assert_eq!(again.segmentation(), corpus.segmentation(), "{written}");
        assert_eq!(again.sentences, corpus.sentences, "{written}");
    }
}

/// A text in each format, plain and compressed, and a decompression bomb.
pub fn seeds() -> Vec<Vec<u8>> {
    let texts =
        ["yu want\r\n\ntu\u{3000}sí 😀\n", "y u | w a n t | t u\n| a |\n", "det noun  verb\nnoun verb\n"];
    let mut seeds = Vec::new();
    for (how, text) in [(0, texts[0]), (2, texts[1]), (1, texts[2])] {
        let mut gzip = GzEncoder::new(Vec::new(), Compression::fast());
        gzip.write_all(text.as_bytes()).expect("memory takes all that is written to it");
        let gzip = gzip.finish().expect("and so does its end");
        seeds.push([&[how, 40], text.as_bytes()].concat());
        seeds.push([&[how | 4, 40], &gzip[..]].concat());
    }
    let mut bomb = GzEncoder::new(Vec::new(), Compression::best());
    bomb.write_all(&vec![b'a'; 32 << 20]).expect("memory takes all that is written to it");
    seeds.push([&[4, 255], &bomb.finish().expect("and so does its end")[..]].concat());
    seeds
}
