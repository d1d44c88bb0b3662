//! `grammaton demo`: a result to look at, again and again, which replaces nothing of anybody else's.

use std::fs;

use super::cli::{at, folder, grammaton, refused};

#[test]
fn the_demo_finds_words_and_replaces_no_other_text() {
    let dir = folder(&[]);
    let demo = at(&dir, "demo");
    for _ in 0..2 {
        grammaton(&["demo", &demo]).success();
        assert!(dir.path().join("demo/words/report.html").is_file());
    }
    let summary = fs::read_to_string(dir.path().join("demo/words/summary.json")).unwrap();
    let summary: serde_json::Value = serde_json::from_str(&summary).unwrap();
    let f1 = summary["scores"]["mbr-vote"]["token_f1"].as_f64().unwrap();
    assert!(f1 > 0.8, "{f1}");
    fs::write(dir.path().join("demo/text.txt"), "my own text\n").unwrap();
    refused(&["demo", &demo], &["text.txt: the file has another text", "grammaton demo OTHER"]);
}
