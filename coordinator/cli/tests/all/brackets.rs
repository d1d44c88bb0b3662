//! Known constituents (`corpus.brackets`): trees agree with them, whatever the method, and what cannot be is named.

use std::fs;

use super::cli::{at, folder, grammaton, refused};

const GRAMMAR: &str = "1 1 S --> X\n1 1 X --> X X\n1 1 X --> a\n1 1 X --> b\n1 1 X --> c\n";

fn job(method: &str) -> String {
    format!(
        "[model]\nkind = \"pcfg\"\ngrammar = \"g.gr\"\n[corpus]\npath = \"text.txt\"\nformat = \"tokens\"\nbrackets = \"known.txt\"\n\
         [inference]\nmethod = \"{method}\"\nmax_rounds = 4\n[output]\ndir = \"out\"\nkeep_checkpoints = 0\n"
    )
}

/// The spans of the brackets of a tree, in terminals.
fn spans(tree: &str) -> Vec<(usize, usize)> {
    let (mut open, mut n, mut spans) = (Vec::new(), 0, Vec::new());
    let spaced = tree.replace('(', " ( ").replace(')', " ) ");
    let mut before = "";
    for token in spaced.split_whitespace() {
        match token {
            "(" => open.push(n),
            ")" => spans.push((open.pop().expect("brackets match"), n)),
            _ => n += usize::from(before != "("),
        }
        before = token;
    }
    spans
}

#[test]
fn trees_agree_with_known_constituents_by_every_method() {
    for method in ["em", "map-em", "vb", "vb-em", "svb", "oem", "cvb", "gibbs", "hastings"] {
        let job = job(method);
        let files = [
            ("g.gr", GRAMMAR.as_bytes()),
            ("text.txt", b"a b c a\nc b a\na b c a\nb b b b b\n"),
            ("known.txt", b"a (b (X c a))\n(c b) a\nc c\n"),
            ("job.toml", job.as_bytes()),
        ];
        let dir = folder(&files);
        let ran = grammaton(&["train", &at(&dir, "job.toml")]).success();
        let printed = String::from_utf8_lossy(&ran.get_output().stderr).into_owned();
        assert!(
            printed.contains("2 of 3 lines are sentences of the corpus")
                && printed.contains("known.txt:3: `c c`"),
            "{printed}"
        );
        let printed = fs::read_dir(dir.path().join("out")).unwrap().map(|file| file.unwrap().path());
        let parses: Vec<_> = printed
            .filter(|path| path.file_name().unwrap().to_string_lossy().starts_with("parses"))
            .collect();
        assert!(!parses.is_empty(), "{method}");
        for path in parses {
            let text = fs::read_to_string(&path).unwrap();
            let trees: Vec<&str> = text.lines().collect();
            for (line, known) in [(0, [(1, 4), (2, 4)]), (2, [(1, 4), (2, 4)]), (1, [(0, 2), (0, 2)])] {
                let found = spans(trees[line]);
                assert!(known.iter().all(|span| found.contains(span)), "{method}: {}", trees[line]);
            }
        }
    }
}

#[test]
fn brackets_without_a_tree_and_of_other_models_are_refused() {
    let text = b"a b c\n";
    let with = |known: &[u8]| {
        let dir = folder(&[
            ("g.gr", GRAMMAR.as_bytes()),
            ("text.txt", text),
            ("known.txt", known),
            ("job.toml", job("em").as_bytes()),
        ]);
        let path = at(&dir, "job.toml");
        (dir, path)
    };
    for (known, parts) in [
        ("(a b) c\na (b c)\n", vec!["text.txt:1", "known.txt:1", "known.txt:2", "cannot derive"]),
        ("(S a b) c\n", vec!["text.txt:1", "known.txt:1", "cannot derive"]),
        ("(a b c\n", vec!["known.txt:1", "end of the line"]),
        ("(NP a b) c\n", vec!["none of 1 lines", "NP a b c", "nonterminals"]),
    ] {
        let (_dir, path) = with(known.as_bytes());
        refused(&["train", &path, "-q"], &parts);
    }
    let adaptor = job("vb").replace("kind = \"pcfg\"\n", "");
    let dir = folder(&[
        ("g.gr", GRAMMAR.as_bytes()),
        ("text.txt", text),
        ("known.txt", b"(a b) c\n"),
        ("job.toml", adaptor.as_bytes()),
    ]);
    refused(&["train", &at(&dir, "job.toml"), "-q"], &["brackets", "not read"]);
}
