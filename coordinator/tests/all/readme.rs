//! Checks of the documentation: keys, examples, grammars and file names.

use std::path::{Path, PathBuf};

use coordinator::job::Job;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn readme() -> String {
    std::fs::read_to_string(root().join("README.md")).unwrap()
}

#[test]
fn the_reference_of_the_job_file_is_generated_from_its_keys() {
    let page = std::fs::read_to_string(root().join("docs/JOB.md")).unwrap();
    assert!(
        page == coordinator::job::reference::markdown(),
        "docs/JOB.md is not what `grammaton keys --markdown` prints"
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
fn the_grammar_of_the_readme_is_valid() {
    let readme = readme();
    let section = readme.split("## Grammars").nth(1).unwrap();
    let grammar = section.split("```text\n").nth(1).unwrap().split("```").next().unwrap();
    let (grammar, notices) = shared::grammar::syntax::parse(grammar, "README.md").unwrap();
    assert_eq!(notices, []);
    assert_eq!(grammar.adapted().map(|symbol| grammar.name(symbol)).collect::<Vec<_>>(), ["Word"]);
}

#[test]
fn every_file_named_in_the_documentation_exists() {
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
