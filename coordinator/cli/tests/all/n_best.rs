//! `grammaton parse --n-best`: the best analyses of each line with their probabilities, by each kind of model.

use serde_json::Value;

use super::cli::{at, folder, grammaton, refused, stdout};

fn parsed(args: &[&str]) -> String {
    stdout(&grammaton(&[&["parse"], args].concat()).success())
}

/// Line, rank, probability and analysis of each row.
fn rows(table: &str) -> Vec<(usize, usize, f64, String)> {
    let mut lines = table.lines();
    assert_eq!(lines.next(), Some("line\trank\tprobability\tanalysis"));
    let row = |row: &str| {
        let columns: Vec<&str> = row.split('\t').collect();
        let [line, rank, probability, analysis] = columns[..] else { panic!("four columns: {row:?}") };
        (line.parse().unwrap(), rank.parse().unwrap(), probability.parse().unwrap(), analysis.to_owned())
    };
    lines.map(row).collect()
}

/// Asserts that ranks of a line ascend from 1 with probabilities, and no analysis comes twice.
fn assert_ranked(rows: &[(usize, usize, f64, String)]) {
    for (at, (line, rank, probability, analysis)) in rows.iter().enumerate() {
        let before = at.checked_sub(1).map(|at| &rows[at]).filter(|before| before.0 == *line);
        assert_eq!(*rank, before.map_or(1, |before| before.1 + 1));
        assert!((0.0..=1.0).contains(probability));
        assert!(rows[..at].iter().all(|(other, .., same)| other != line || same != analysis), "{analysis}");
    }
}

/// The analyses of rank 1 as the command prints them without `--n-best`, of lines that have some.
fn first(rows: &[(usize, usize, f64, String)]) -> Vec<(usize, &str)> {
    rows.iter()
        .filter(|(_, rank, ..)| *rank == 1)
        .map(|(line, _, _, analysis)| (*line, &**analysis))
        .collect()
}

#[test]
fn segmentations_are_ranked_by_every_decoder_and_the_first_is_the_ordinary_one() {
    let words = ["lok", "pa", "tier", "mun", "zabo"];
    let text: String = (0..40)
        .map(|n| {
            (0..2 + n % 3).map(|at| words[(n * 7 + at * (3 + n % 4)) % words.len()]).collect::<String>()
                + "\n"
        })
        .collect();
    let new = text.lines().take(6).map(|line| line.to_owned() + "\n").collect::<String>() + "\nlokqu\npa\n";
    let known: String = ["lokpa\tlok pa", "munzabo\tmun zabo", "tierlok\ttier lok"]
        .map(|line| line.to_owned() + "\n")
        .concat();
    let files = [("text.txt", text.as_bytes()), ("new.txt", new.as_bytes()), ("known.tsv", known.as_bytes())];
    let dir = folder(&files);
    let [corpus, file, out, annotated] =
        ["text.txt", "new.txt", "out", "known.tsv"].map(|name| at(&dir, name));
    let run =
        ["--quiet", "--grammar", "unigram", "--sweeps", "3", "--chains", "2", "--annotated", &annotated];
    let contexts = ["--set", "output.threshold=0.4", "--set", "output.contexts=true"];
    grammaton(&[&["segment", &corpus, "--out", &out], &run[..], &contexts].concat()).success();
    for decoder in ["viterbi", "mbr", "vote", "contexts", "crf"] {
        let table = rows(&parsed(&[&out, &file, "--decoder", decoder, "--n-best", "5"]));
        assert_ranked(&table);
        assert!(table.iter().any(|(_, rank, ..)| *rank == 5), "{decoder}");
        let one = parsed(&[&out, &file, "--decoder", decoder]);
        let ordinary: Vec<&str> = one.lines().collect();
        let found = first(&table);
        // A line with a symbol that is new has analyses by contexts, and above these.
        let reads_all = ["contexts", "crf"].contains(&decoder);
        let lines: Vec<usize> = found.iter().map(|(line, _)| *line).collect();
        assert_eq!(
            lines,
            [&[1, 2, 3, 4, 5, 6][..], if reads_all { &[8, 9] } else { &[9] }].concat(),
            "{decoder}"
        );
        assert!(found.iter().all(|(line, analysis)| ordinary[line - 1] == *analysis), "{decoder}");
        let alone = rows(&parsed(&[&out, &file, "--decoder", decoder, "--n-best", "1", "--format", "tsv"]));
        assert_eq!(first(&alone), found);
        // Two symbols have two segmentations.
        let all = rows(&parsed(&[&out, &file, "--decoder", decoder, "--n-best", "1000"]));
        let of_last: Vec<&str> = all.iter().filter(|row| row.0 == 9).map(|row| &*row.3).collect();
        assert!(
            of_last.len() == 2 && of_last.contains(&"pa") && of_last.contains(&"p a"),
            "{decoder}: {of_last:?}"
        );
        if decoder != "viterbi" {
            let sum: f64 = all.iter().filter(|row| row.0 == 9).map(|row| row.2).sum();
            assert!((sum - 1.0).abs() < 1e-6, "{decoder}: {sum}");
        }
        let json = parsed(&[&out, &file, "--decoder", decoder, "--n-best", "5", "--format", "json"]);
        let objects: Vec<Value> = json.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert_eq!(objects.len(), new.lines().count());
        assert_eq!(objects[6]["status"], "empty");
        assert_eq!(objects[7]["analyses"].as_array().unwrap().is_empty(), !reads_all);
        let of_json = objects.iter().flat_map(|object| {
            let segments = |it: &Value| {
                it["segments"]
                    .as_array()
                    .unwrap()
                    .iter()
                    .map(|it| it.as_str().unwrap().to_owned())
                    .collect::<Vec<_>>()
                    .join(" ")
            };
            object["analyses"]
                .as_array()
                .unwrap()
                .iter()
                .map(move |it| (segments(it), it["probability"].as_f64().unwrap()))
                .collect::<Vec<_>>()
        });
        assert!(of_json.eq(table.iter().map(|row| (row.3.clone(), row.2))));
    }
    let trees = rows(&parsed(&[&out, &file, "--format", "brackets", "--n-best", "3"]));
    assert_ranked(&trees);
    let one = parsed(&[&out, &file, "--format", "brackets"]);
    let ordinary: Vec<&str> = one.lines().collect();
    assert!(first(&trees).iter().all(|(line, tree)| ordinary[line - 1] == *tree));
    for (args, parts) in [
        (&["--n-best", "0"][..], &["--n-best"][..]),
        (&["--n-best", "many"], &["--n-best", "many"]),
        (&["--n-best", "2", "--decoder", "mbr-tree"], &["mbr-tree has no n best", "--decoder viterbi"]),
        (&["--n-best", "2", "--format", "conllu"], &["--n-best", "--format json", "conllu"]),
        (&["--n-best", "2", "--format", "brackets", "--decoder", "vote"], &["vote gives no trees"]),
        (&["--n-best", "2", "--format", "json", "--level", "words"], &["--level"]),
    ] {
        refused(&[&["parse", &out, &file], args].concat(), parts);
    }
}

const TREES: &str = "(ROOT (S (N dogs) (V (V see) (N cats))))\n(ROOT (S (N cats) (V (V see) (N dogs))))\n\
    (ROOT (S (S (N dogs) (V run)) (V run)))\n(ROOT (S (N dogs) (V (V run) (V run))))\n";

#[test]
fn trees_of_a_model_of_trees_are_ranked() {
    let job = "[model]\nkind = \"pcfg-la\"\n[corpus]\npath = \"trees.mrg\"\n[inference]\nmethod = \"em\"\nsubtypes = 2\nmax_rounds = 5\n[output]\ndir = \"out\"\n";
    let files = [
        ("trees.mrg", TREES.as_bytes()),
        ("job.toml", job.as_bytes()),
        ("new.txt", b"dogs run run\n\ndogs see cats\n".as_slice()),
    ];
    let dir = folder(&files);
    grammaton(&["train", &at(&dir, "job.toml"), "-q"]).success();
    let [out, file] = ["out", "new.txt"].map(|name| at(&dir, name));
    let table = rows(&parsed(&[&out, &file, "--n-best", "4"]));
    assert_ranked(&table);
    assert!(table.iter().filter(|row| row.0 == 1).count() >= 2, "{table:?}");
    assert!(table.windows(2).all(|pair| pair[0].0 != pair[1].0 || pair[0].2 >= pair[1].2));
    let one = parsed(&[&out, &file]);
    let ordinary: Vec<&str> = one.lines().collect();
    assert!(first(&table).iter().all(|(line, tree)| ordinary[line - 1] == *tree), "{one}");
    let json = parsed(&[&out, &file, "--n-best", "4", "--format", "json"]);
    let objects: Vec<Value> = json.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!((objects.len(), &objects[0]["analyses"][0]["tree"]), (3, &Value::from(ordinary[0])));
    refused(&["parse", &out, &file, "--n-best", "2", "--decoder", "max-rule"], &["max-rule has no n best"]);
}

#[test]
fn heads_of_a_dependency_model_are_ranked() {
    let line = |at: usize, word: &str, tag: &str| format!("{at}\t{word}\t_\t{tag}\t_\t_\t_\t_\t_\t_\n");
    let sentence = |words: &[(&str, &str)]| -> String {
        (1..).zip(words).map(|(at, (word, tag))| line(at, word, tag)).collect::<String>() + "\n"
    };
    let (the, dog, barks, dot) = (("the", "DET"), ("dog", "NOUN"), ("barks", "VERB"), (".", "PUNCT"));
    let text = sentence(&[the, dog, barks, dot])
        + &sentence(&[dog, barks])
        + &sentence(&[dog, dot, barks, the, dog]);
    let dir = folder(&[("text.conllu", text.repeat(3).as_bytes()), ("new.conllu", text.as_bytes())]);
    let [corpus, file, out] = ["text.conllu", "new.conllu", "out"].map(|name| at(&dir, name));
    grammaton(&["dependencies", &corpus, "--quiet", "--out", &out]).success();
    let table = rows(&parsed(&[&out, &file, "--decoder", "viterbi", "--n-best", "100"]));
    assert_ranked(&table);
    assert_eq!(table.iter().map(|row| row.0).collect::<std::collections::BTreeSet<_>>(), [1, 6, 9].into());
    // Two words have two projective trees with one root, and these are all.
    let of_two: Vec<&(usize, usize, f64, String)> = table.iter().filter(|row| row.0 == 6).collect();
    assert_eq!(of_two.len(), 2);
    assert!((of_two.iter().map(|row| row.2).sum::<f64>() - 1.0).abs() < 1e-6);
    // Three words have seven, whatever the punctuation.
    assert_eq!(table.iter().filter(|row| row.0 == 1).count(), 7);
    assert!((table.iter().filter(|row| row.0 == 1).map(|row| row.2).sum::<f64>() - 1.0).abs() < 1e-6);
    let conllu = parsed(&[&out, &file, "--decoder", "viterbi"]);
    let heads = |conllu: &str| -> String {
        let heads = conllu.lines().map(|line| line.split('\t').nth(6).unwrap());
        heads.collect::<Vec<_>>().join(" ")
    };
    let ordinary: Vec<String> = conllu.trim_end().split("\n\n").map(heads).collect();
    assert!(first(&table).iter().map(|(_, heads)| *heads).eq(ordinary.iter().map(String::as_str)));
    let json = parsed(&[&out, &file, "--decoder", "viterbi", "--n-best", "1", "--format", "json"]);
    let object: Value = serde_json::from_str(json.lines().nth(1).unwrap()).unwrap();
    assert_eq!((json.lines().count(), object["analyses"][0]["heads"].as_array().unwrap().len()), (3, 2));
    refused(&["parse", &out, &file, "--n-best", "2"], &["mbr-arcs has no n best", "--decoder viterbi"]);
}
