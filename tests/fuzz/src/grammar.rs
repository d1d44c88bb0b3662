//! Grammar files: an accepted grammar prints as a text that reads as the same grammar.

use std::time::Duration;

use grammaton::grammar::syntax::{parse, print};

use crate::bounds::Bounds;

/// Of a grammar that is read.
const BOUNDS: Bounds =
    Bounds { memory: (1 << 20, 500), time: (Duration::from_millis(500), Duration::from_micros(50)) };

/// Input: a grammar file.
pub fn run(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let Ok((grammar, _)) = BOUNDS.check(data.len(), || parse(&text, "fuzz.gr")) else { return };
    grammar.check().expect("what is parsed is valid");
    let printed = print(&grammar);
    let (again, _) = parse(&printed, "printed.gr").unwrap_or_else(|error| panic!("{printed}\n{error}"));
    assert_eq!(again, grammar, "{printed}");
}

/// Grammars in every notation.
pub fn seeds() -> Vec<Vec<u8>> {
    let tricky = "# comment\n\u{feff}1e-3 1 S --> A # 3W\n'a b\\'c' --> x\n2.5 0.5 1e2 A --> \\-x B\nA -->B\n3 B --> é\n";
    crate::GRAMMARS.iter().chain([&tricky]).map(|text| text.as_bytes().to_vec()).collect()
}
