//! `grammaton eval boundaries`: the probabilities of a result beside gold, as a count by hand has it.

use super::cli::{at, folder, grammaton, refused, stdout};

#[test]
fn probabilities_are_compared_with_gold() {
    let dir = folder(&[("words.txt", b"loking\nloks\npating\nlok\npats\n".repeat(3).as_slice())]);
    let (text, out) = (at(&dir, "words.txt"), at(&dir, "out"));
    grammaton(&["morphemes", &text, "--out", &out, "--quiet", "--chains", "2", "--sweeps", "4"]).success();
    std::fs::write(dir.path().join("gold.txt"), "lok ing\nloks\tlok s, loks\nother\n").unwrap();
    let gold = at(&dir, "gold.txt");
    let json = stdout(&grammaton(&["eval", "boundaries", &out, &gold, "--json"]).success());
    let found: serde_json::Value = serde_json::from_str(&json).unwrap();
    let table = std::fs::read_to_string(dir.path().join("out/boundaries.tsv")).unwrap();
    // Of `loks`, the analysis that the probability is nearer to.
    let (mut n, mut squares) = (0, 0.0);
    for row in table.lines().skip(1) {
        let columns: Vec<&str> = row.split('\t').collect();
        let (line, position, p): (usize, usize, f64) =
            (columns[0].parse().unwrap(), columns[1].parse().unwrap(), columns[2].parse().unwrap());
        let is_there = match ((line - 1) % 5, position) {
            (0, position) => position == 3,
            (1, 3) => p >= 0.5,
            (1, _) => false,
            _ => continue,
        };
        let error = if is_there { 1.0 - p } else { p };
        (n, squares) = (n + 1, squares + error * error);
    }
    assert_eq!((found["positions"].as_u64(), found["sentences"].as_u64()), (Some(n), Some(6)));
    let brier = squares / n as f64;
    assert!((found["brier"].as_f64().unwrap() - brier).abs() < 1e-9, "{json}, expected {brier}");
    let text = stdout(&grammaton(&["eval", "boundaries", &out, &gold]).success());
    assert!(text.contains("Brier score") && text.contains("0.9 to 1.0"), "{text}");

    std::fs::write(dir.path().join("gold.txt"), "another\n").unwrap();
    refused(&["eval", "boundaries", &out, &gold], &["gold.txt", "no line is a sentence of the results"]);
    refused(&["eval", "boundaries", &at(&dir, "nowhere"), &gold], &["nowhere", "no finished result"]);
    refused(&["eval", "boundaries", &out, &at(&dir, "nothing")], &["nothing"]);
}
