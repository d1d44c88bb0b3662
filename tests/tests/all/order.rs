//! The order of the modules of a crate. Law: a module uses only modules before it, and there are no cycles.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// Modules of a crate in the order of their declarations.
fn order(of: &str) -> Vec<String> {
    let library = fs::read_to_string(sources(of).join("lib.rs")).unwrap();
    let declared = library.lines().filter(|line| !line.trim_start().starts_with("//"));
    let names =
        declared.filter_map(|line| line.trim_start_matches("pub ").strip_prefix("mod ")?.strip_suffix(';'));
    names.map(str::to_owned).collect()
}

fn sources(of: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(of).join("src")
}

/// Crates whose modules are declared in the order of use.
const ORDERED: [&str; 4] = ["shared", "coordinator/basics", "coordinator/training", "coordinator/segment"];

/// Crates without cycles of modules. Cargo allows no cycle of crates.
const CRATES: [&str; 8] = [
    "shared",
    "coordinator/basics",
    "coordinator/fleet",
    "coordinator/training",
    "coordinator/segment",
    "coordinator/service",
    "coordinator/client",
    "coordinator/cli",
];

/// The text of every module by its path, as in `grammar::tree`, without comments and tests.
fn modules(folder: &Path, path: &str, found: &mut BTreeMap<String, String>) {
    let mut entries: Vec<_> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    entries.sort();
    for entry in entries {
        let stem = entry.file_stem().unwrap().to_str().unwrap().to_owned();
        let inner = if path.is_empty() { stem.clone() } else { format!("{path}::{stem}") };
        if entry.is_dir() {
            modules(&entry, &inner, found);
        } else if entry.extension().is_some_and(|extension| extension == "rs") && stem != "lib" {
            let text = fs::read_to_string(&entry).unwrap();
            let code = text.split("#[cfg(test)]").next().unwrap().lines();
            let code =
                code.filter(|line| !line.trim_start().starts_with("//")).map(|line| format!("{line}\n"));
            found.insert(inner, code.collect());
        }
    }
}

/// Existing modules that a text names with `crate::` and `super::`.
fn used(of: &str, text: &str, modules: &BTreeMap<String, String>) -> BTreeSet<String> {
    let parent = of.rsplit_once("::").map_or("", |(parent, _)| parent);
    let roots = [("crate::", String::new()), ("super::", format!("{parent}::"))];
    let mut found = BTreeSet::new();
    for (root, prefix) in &roots {
        for (at, _) in text.match_indices(root) {
            let is_whole = !text[..at].ends_with(|c: char| c.is_alphanumeric() || c == '_' || c == ':');
            let rest = &text[at + root.len()..];
            let end =
                rest.find(|c: char| !(c.is_alphanumeric() || c == '_' || c == ':')).unwrap_or(rest.len());
            let named = format!("{prefix}{}", &rest[..end]);
            let group = rest[end..].strip_prefix('{').and_then(|group| group.split(['}', ';']).next());
            let members = group.into_iter().flat_map(|group| group.split(','));
            let paths: Vec<String> = match group {
                Some(_) => members.map(|member| format!("{named}{}", member.trim())).collect(),
                None => vec![named],
            };
            let longest = |path: &String| {
                let mut path = path.trim_start_matches("::").to_owned();
                while !modules.contains_key(&path) {
                    path = path.rsplit_once("::")?.0.to_owned();
                }
                Some(path)
            };
            found.extend(paths.iter().filter(|_| is_whole).filter_map(longest));
        }
    }
    found
}

fn all(of: &str) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    modules(&sources(of), "", &mut found);
    // Modules for tests may use all others.
    found.retain(|module, _| {
        !["main", "fixture"].contains(&module.as_str())
            && !module.ends_with("::tests")
            && !module.ends_with("::laws")
    });
    found
}

fn top(path: &str) -> &str {
    path.split("::").next().unwrap()
}

#[test]
fn modules_use_only_earlier_modules() {
    let mut n_uses = 0;
    for of in ORDERED {
        let (modules, order) = (all(of), order(of));
        let place = |path: &str| {
            let place = order.iter().position(|known| known == top(path));
            place.unwrap_or_else(|| panic!("{of}: {path} is not declared"))
        };
        let mut problems = Vec::new();
        for (module, text) in &modules {
            for other in used(module, text, &modules) {
                n_uses += 1;
                if place(&other) > place(module) {
                    problems.push(format!("{of}: {module} uses {other}, which comes after it"));
                }
            }
        }
        assert!(problems.is_empty(), "{}", problems.join("\n"));
    }
    assert!(n_uses > 200, "the test reads what modules use: {n_uses}");
}

/// Sibling modules are in no cycle; a module and the modules in its folder may use each other.
#[test]
fn sibling_modules_are_in_no_cycle() {
    let circles: Vec<String> = CRATES.iter().flat_map(|of| circles(&all(of))).collect();
    assert!(circles.is_empty(), "modules in a cycle, or after one:\n{}", circles.join("\n"));
}

fn circles(modules: &BTreeMap<String, String>) -> Vec<String> {
    let mut edges: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for (module, text) in modules {
        for other in used(module, text, modules) {
            let (ours, theirs): (Vec<&str>, Vec<&str>) =
                (module.split("::").collect(), other.split("::").collect());
            let common = ours.iter().zip(&theirs).take_while(|(a, b)| a == b).count();
            if common < ours.len() && common < theirs.len() {
                edges.entry(ours[..=common].join("::")).or_default().insert(theirs[..=common].join("::"));
            }
        }
    }
    // Repeatedly removes modules that use no remaining module; without cycles none remains.
    let mut left: BTreeSet<String> = edges.keys().cloned().collect();
    loop {
        let is_free = |module: &String| edges[module].iter().all(|other| !left.contains(other));
        let read: Vec<String> = left.iter().filter(|module| is_free(module)).cloned().collect();
        if read.is_empty() {
            break;
        }
        left.retain(|module| !read.contains(module));
    }
    let within = |module: &String| edges[module].intersection(&left).cloned().collect::<Vec<_>>();
    left.iter().map(|module| format!("{module} uses {}", within(module).join(", "))).collect()
}

/// Files named in backquotes in the documentation exist.
#[test]
fn documentation_names_files_that_exist() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut files = Vec::new();
    for of in ["shared", "proto", "coordinator", "worker", "tests", "python/src"] {
        sources_below(&root.join(of), &mut files);
    }
    let mut unknown = Vec::new();
    let mut n_names = 0;
    for document in ["docs/ARCHITECTURE.md", "docs/MATHS.md", "CONTRIBUTING.md"] {
        let text = fs::read_to_string(root.join(document)).unwrap();
        for name in text.split('`').skip(1).step_by(2).filter(|name| name.ends_with(".rs")) {
            for name in without_braces(name).into_iter().filter(|name| !name.contains(['*', '<'])) {
                n_names += 1;
                if !files.iter().any(|file| file.ends_with(&format!("/{name}"))) {
                    unknown.push(format!("{document}: {name}"));
                }
            }
        }
    }
    assert!(unknown.is_empty(), "no such files:\n{}", unknown.join("\n"));
    assert!(n_names > 100, "the test reads names: {n_names}");
}

/// Functions, types, fields and tests in backquotes in the mathematics are in the code, those of a path in one file or in the one that it begins with.
#[test]
fn the_mathematics_names_what_the_code_has() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut files = Vec::new();
    sources_below(&root, &mut files);
    let is_word = |letter: char| letter.is_alphanumeric() || letter == '_';
    let words: Vec<(String, BTreeSet<String>)> = files
        .into_iter()
        .map(|file| {
            let text = fs::read_to_string(&file).unwrap();
            let code = text.lines().filter(|line| !line.trim_start().starts_with("//"));
            let words =
                code.flat_map(|line| line.split(|letter| !is_word(letter))).map(str::to_owned).collect();
            (file, words)
        })
        .collect();
    let has = |path: &str| {
        let names: Vec<&str> = path.split("::").collect();
        let (module, last) = (format!("/{}.rs", names[0]), names[names.len() - 1]);
        words.iter().any(|(file, words)| {
            names.iter().all(|name| words.contains(*name))
                || (file.ends_with(&module) && words.contains(last))
        })
    };
    let text = fs::read_to_string(root.join("docs/MATHS.md")).unwrap();
    let names: BTreeSet<&str> = text
        .lines()
        .flat_map(|line| line.split('`').skip(1).step_by(2))
        .filter(|name| name.starts_with(|first: char| first.is_ascii_alphabetic()))
        .filter(|name| name.replace("::", "_").chars().all(is_word))
        .collect();
    let unknown: Vec<&&str> = names.iter().filter(|name| !has(name)).collect();
    assert!(unknown.is_empty(), "docs/MATHS.md names what the code lacks: {unknown:?}");
    assert!(names.len() > 100, "the test reads names: {}", names.len());
}

fn sources_below(folder: &Path, found: &mut Vec<String>) {
    for entry in fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
        if entry.is_dir() && !entry.ends_with("target") {
            sources_below(&entry, found);
        } else if entry.extension().is_some_and(|extension| extension == "rs") {
            found.push(entry.display().to_string());
        }
    }
}

/// `a/{b,c}.rs` as `a/b.rs` and `a/c.rs`.
fn without_braces(name: &str) -> Vec<String> {
    let Some((before, (inside, after))) =
        name.split_once('{').and_then(|(before, rest)| Some((before, rest.split_once('}')?)))
    else {
        return vec![name.to_owned()];
    };
    inside.split(',').map(|middle| format!("{before}{middle}{after}")).collect()
}
