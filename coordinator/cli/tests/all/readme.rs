//! Checks of the documentation: keys, examples and grammars. `tests/tests/all/book.rs` checks links and commands.

use std::path::{Path, PathBuf};

use training::job::Job;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

#[test]
fn the_reference_of_the_job_file_is_generated_from_its_keys() {
    let page = std::fs::read_to_string(root().join("docs/JOB.md")).unwrap();
    assert!(
        page == training::job::reference::markdown(),
        "docs/JOB.md is not what `grammaton keys --markdown` prints"
    );
    let module = std::fs::read_to_string(root().join("python/grammaton/_keys.py")).unwrap();
    assert!(
        module == training::job::typed::python(),
        "python/grammaton/_keys.py is not what `grammaton keys --python` prints"
    );
}

#[test]
fn the_reference_of_the_commands_is_generated_from_the_program() {
    let page = std::fs::read_to_string(root().join("docs/reference/commands.md")).unwrap();
    assert!(
        page == cli::commands::man::markdown(cli::definition()),
        "docs/reference/commands.md is not what `grammaton man --markdown` prints"
    );
}

#[test]
fn every_example_is_a_job_whose_keys_are_all_read() {
    let mut folders = vec![root().join("examples")];
    let mut n_jobs = 0;
    while let Some(folder) = folders.pop() {
        for path in std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|ending| ending == "toml") {
                match Job::load(&path, &[]) {
                    Ok(job) => assert_eq!(job.notices, [""; 0], "{}", path.display()),
                    Err(error) => panic!("{error}"),
                }
                n_jobs += 1;
            }
        }
    }
    assert!(n_jobs > 20, "{n_jobs}");
}

#[test]
fn the_grammar_of_the_documentation_is_valid() {
    for page in ["README.md", "docs/reference/grammars.md"] {
        let text = std::fs::read_to_string(root().join(page)).unwrap();
        let grammar = text.split("```text\n# A sentence").nth(1).unwrap().split("```").next().unwrap();
        let (grammar, notices) = grammaton::grammar::syntax::parse(&format!("# {grammar}"), page).unwrap();
        assert_eq!(notices, []);
        let adapted: Vec<&str> = grammar.adapted().map(|symbol| grammar.name(symbol)).collect();
        assert_eq!(adapted, ["Word"]);
    }
}

#[test]
fn every_example_has_its_line() {
    let examples = root().join("examples");
    let text = std::fs::read_to_string(examples.join("README.md")).unwrap();
    for folder in ["segmentation", "brent", "grammars", "morphemes"] {
        for entry in std::fs::read_dir(examples.join(folder)).unwrap().map(|entry| entry.unwrap().path()) {
            let name = entry.file_name().unwrap().to_str().unwrap();
            if name.ends_with(".gr") || name.ends_with(".toml") {
                assert!(text.contains(&format!("({folder}/{name})")), "{folder}/{name}");
            }
        }
    }
}
