//! What the README says of jobs and grammars holds.

use std::path::{Path, PathBuf};

use coordinator::job::Job;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn readme() -> String {
    std::fs::read_to_string(root().join("README.md")).unwrap()
}

/// The keys of a job by table, each with its default, as the table of the README has them.
fn rows(readme: &str) -> Vec<(String, String, String)> {
    let mut table = String::new();
    let mut rows = Vec::new();
    let section = readme.split("## The job file").nth(1).unwrap().split("\n## ").next().unwrap();
    for line in section.lines().filter(|line| line.starts_with("| ")) {
        let cells: Vec<&str> = line.split('|').map(|cell| cell.trim().trim_matches(['*', '`'])).collect();
        match cells[1].strip_prefix('[').and_then(|name| name.strip_suffix(']')) {
            Some(name) => table = name.to_owned(),
            None if table.is_empty() => {}
            None => rows.push((table.clone(), cells[1].to_owned(), cells[2].to_owned())),
        }
    }
    rows
}

#[test]
fn every_key_of_a_job_has_its_row_and_default() {
    let minimal =
        "[model]\ngrammar = \"/required\"\n[corpus]\npath = \"/required\"\n[output]\ndir = \"/out\"\n";
    let job = Job::parse(minimal, "job.toml", Path::new("/"), &[]).unwrap();
    let job: toml::Table = job.to_toml().parse().unwrap();
    let expected = job.iter().flat_map(|(table, keys)| {
        keys.as_table().unwrap().iter().map(|(key, value)| {
            let value = match value.as_str() {
                Some("/required") => "required".to_owned(),
                Some("/out") => "\"out\"".to_owned(),
                _ => value.to_string(),
            };
            (table.clone(), key.clone(), value)
        })
    });
    let (without, mut found): (Vec<_>, Vec<_>) =
        rows(&readme()).into_iter().partition(|row| row.2.is_empty());
    let without: Vec<&str> = without.iter().map(|(_, key, _)| key.as_str()).collect();
    assert_eq!(without, ["tolerance", "alpha"], "keys without a default");
    let mut expected: Vec<_> = expected.collect();
    expected.sort();
    found.sort();
    let number = |rows: &mut Vec<(String, String, String)>| {
        for (.., value) in rows {
            if let Ok(number) = value.parse::<f64>() {
                *value = number.to_string();
            }
        }
    };
    number(&mut expected);
    number(&mut found);
    assert_eq!(found, expected);
}

#[test]
fn its_grammar_is_one() {
    let readme = readme();
    let section = readme.split("## Grammars").nth(1).unwrap();
    let grammar = section.split("```text\n").nth(1).unwrap().split("```").next().unwrap();
    let (grammar, notices) = shared::grammar::syntax::parse(grammar, "README.md").unwrap();
    assert_eq!(notices, []);
    assert_eq!(grammar.adapted().map(|symbol| grammar.name(symbol)).collect::<Vec<_>>(), ["Word"]);
}

#[test]
fn every_file_that_the_documentation_names_is_there() {
    for page in ["README.md", "examples/README.md", "docs/ARCHITECTURE.md", "docs/MATHS.md"] {
        let path = root().join(page);
        let text = std::fs::read_to_string(&path).unwrap();
        let folder = path.parent().unwrap();
        for link in text.split("](").skip(1).map(|rest| rest.split(')').next().unwrap()) {
            assert!(link.starts_with("http") || folder.join(link).exists(), "{page}: {link}");
        }
    }
    let readme = readme();
    for command in ["train examples/segmentation/job.toml", "--listen", "grammaton-worker --coordinator"] {
        assert!(readme.contains(command), "{command}");
    }
}

#[test]
fn every_example_has_its_line() {
    let examples = root().join("examples");
    let text = std::fs::read_to_string(examples.join("README.md")).unwrap();
    for folder in ["segmentation", "brent", "grammars"] {
        for entry in std::fs::read_dir(examples.join(folder)).unwrap().map(|entry| entry.unwrap().path()) {
            let name = entry.file_name().unwrap().to_str().unwrap();
            if name.ends_with(".gr") || name.ends_with(".toml") {
                assert!(text.contains(&format!("({folder}/{name})")), "{folder}/{name}");
            }
        }
    }
}
