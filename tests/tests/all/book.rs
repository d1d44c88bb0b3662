//! The documentation: links, the table of contents of the book, and its shell commands, word for word.
//!
//! A block of the language `sh` in the README and in the tutorials and how-to guides of the book is run, unless a line
//! `<!-- not run: REASON -->` stands before it; then its options are checked. The blocks of a page run in its order, in one folder that
//! has a copy of `examples`. A block `text` right after a block that ran is its output: `…` stands for any text, a line `…` for any
//! lines, and times are not compared.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use grammaton_tests::binary;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..").canonicalize().unwrap()
}

/// All pages below `folder`, sorted.
fn pages(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
        let name = entry.file_name().unwrap().to_str().unwrap();
        if entry.is_dir() && name != "target" && name != ".git" && !name.starts_with("out") {
            found.extend(pages(&entry));
        } else if name.ends_with(".md") {
            found.push(entry);
        }
    }
    found.sort();
    found
}

/// The text without blocks of code and code in backquotes, which have no links.
fn prose(text: &str) -> String {
    let mut is_code = false;
    let outside = text.lines().filter(|line| {
        let is_fence = line.trim_start().starts_with("```");
        is_code ^= is_fence;
        !is_code && !is_fence
    });
    outside.map(|line| line.split('`').step_by(2).collect::<Vec<_>>().join("`") + "\n").collect::<String>()
}

/// Targets of the links and pictures of a page.
fn links(text: &str) -> Vec<String> {
    let prose = prose(text);
    prose.split("](").skip(1).map(|rest| rest.split(')').next().unwrap().to_owned()).collect()
}

/// Anchors of the headings of a page.
fn anchors(text: &str) -> BTreeSet<String> {
    let mut is_code = false;
    let mut found = BTreeSet::new();
    for line in text.lines() {
        is_code ^= line.starts_with("```");
        if let Some(heading) = line.strip_prefix('#').filter(|_| !is_code) {
            let heading = heading.trim_start_matches('#').trim().to_lowercase();
            let kept = heading.chars().filter(|c| c.is_alphanumeric() || [' ', '-', '_'].contains(c));
            found.insert(kept.map(|c| if c == ' ' { '-' } else { c }).collect());
        }
    }
    found
}

#[test]
fn links_and_anchors_exist() {
    let root = root();
    let (mut broken, mut n_links) = (Vec::new(), 0);
    for page in pages(&root) {
        let text = fs::read_to_string(&page).unwrap();
        let folder = page.parent().unwrap();
        for link in links(&text).into_iter().filter(|link| !link.starts_with("http")) {
            n_links += 1;
            let (file, anchor) = link.split_once('#').unwrap_or((&link, ""));
            let target = if file.is_empty() { page.clone() } else { folder.join(file) };
            let is_there = target.exists()
                && (anchor.is_empty() || anchors(&fs::read_to_string(&target).unwrap()).contains(anchor));
            // A book has no files from outside of its folder.
            let is_in_book = !page.starts_with(root.join("docs"))
                || target.canonicalize().is_ok_and(|target| target.starts_with(root.join("docs")));
            if !is_there || !is_in_book {
                broken.push(format!("{}: {link}", page.display()));
            }
        }
    }
    assert!(broken.is_empty(), "links to nothing, or from the book to outside:\n{}", broken.join("\n"));
    assert!(n_links > 100, "the test reads links: {n_links}");
}

#[test]
fn the_table_of_contents_has_every_page_once() {
    let docs = root().join("docs");
    let contents = fs::read_to_string(docs.join("SUMMARY.md")).unwrap();
    let mut listed: Vec<PathBuf> = links(&contents).iter().map(|link| docs.join(link)).collect();
    listed.sort();
    let mut there = pages(&docs);
    there.retain(|page| !page.ends_with("SUMMARY.md"));
    assert_eq!(listed, there);
}

#[test]
fn the_readme_is_short() {
    let readme = fs::read_to_string(root().join("README.md")).unwrap();
    assert!(readme.lines().count() <= 150, "{} lines", readme.lines().count());
}

/// A block of code of a page.
struct Block {
    language: String,
    code: String,
    /// Whether a line before it says that it is not run.
    is_skipped: bool,
    /// Whether only empty lines are between it and the block before.
    follows: bool,
}

fn blocks(text: &str) -> Vec<Block> {
    let mut found: Vec<Block> = Vec::new();
    let (mut is_code, mut is_skipped, mut follows) = (false, false, false);
    for line in text.lines() {
        if let Some(language) = line.strip_prefix("```") {
            if !is_code {
                let language = language.to_owned();
                found.push(Block { language, code: String::new(), is_skipped, follows });
            }
            (is_code, is_skipped, follows) = (!is_code, false, true);
        } else if is_code {
            let code = &mut found.last_mut().unwrap().code;
            code.push_str(line);
            code.push('\n');
        } else if !line.is_empty() {
            is_skipped = line.starts_with("<!-- not run: ") && line.ends_with(" -->");
            follows = false;
        }
    }
    found
}

/// Pages whose commands are run.
fn pages_with_commands() -> Vec<PathBuf> {
    let docs = root().join("docs");
    let mut found = vec![root().join("README.md"), docs.join("README.md")];
    for folder in ["tutorials", "how-to", "reference"] {
        found.extend(pages(&docs.join(folder)));
    }
    found
}

/// The line as it is run: cargo builds nothing in a test.
fn without_cargo(line: &str) -> String {
    let is_built = ["cargo test ", "cargo build "].iter().any(|command| line.starts_with(command));
    if is_built { String::new() } else { line.replace("cargo run --release -- ", "grammaton ") }
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap().map(|entry| entry.unwrap().path()) {
        let name = entry.file_name().unwrap().to_str().unwrap();
        if entry.is_dir() && name != "out" && !name.starts_with("out-") {
            copy(&entry, &to.join(name));
        } else if entry.is_file() {
            fs::copy(&entry, to.join(name)).unwrap();
        }
    }
}

/// Runs a block in a folder; returns what it prints to both streams, or a description of its failure.
fn run(code: &str, folder: &Path) -> Result<String, String> {
    let programs = binary("grammaton").parent().unwrap().display().to_string();
    let path = format!("{programs}:{}", std::env::var("PATH").unwrap_or_default());
    let lines: String = code.lines().map(|line| without_cargo(line) + "\n").collect();
    let output = Command::new("sh")
        .args(["-ec", &format!("exec 2>&1\n{lines}")])
        .current_dir(folder)
        .env("PATH", path)
        .env("COLUMNS", "100")
        .env_remove("GRAMMATON_TOKEN")
        .env_remove("GRAMMATON_LOG")
        .output()
        .unwrap();
    let printed = String::from_utf8(output.stdout).unwrap();
    if output.status.success() { Ok(printed) } else { Err(format!("{}: {printed}", output.status)) }
}

/// The line with `#` in place of times and rates.
fn without_times(line: &str) -> String {
    let words: Vec<&str> = line.split(' ').collect();
    let is_time = |at: usize| {
        let unit = words.get(at + 1).map_or("", |unit| unit.trim_end_matches([',', ';']));
        ["s", "min", "sentences/s"].contains(&unit) && words[at].parse::<f64>().is_ok()
    };
    let shown = (0..words.len()).map(|at| if is_time(at) { "#" } else { words[at] });
    shown.collect::<Vec<_>>().join(" ").trim_end().to_owned()
}

/// Whether a line is as described, where `…` stands for any text.
fn matches_line(pattern: &str, line: &str) -> bool {
    let (pattern, line) = (without_times(pattern), without_times(line));
    let Some((first, rest)) = pattern.split_once('…') else {
        return pattern == line;
    };
    let last = rest.rsplit('…').next().unwrap();
    line.strip_prefix(first).is_some_and(|rest| rest.ends_with(last))
}

/// Whether lines are as described, where a line `…` stands for any lines.
fn matches(pattern: &[&str], lines: &[&str]) -> bool {
    match (pattern.split_first(), lines.split_first()) {
        (None, None) => true,
        (Some((&"…", rest)), _) => (0..=lines.len()).any(|skipped| matches(rest, &lines[skipped..])),
        (Some((first, rest)), Some((line, lines))) => matches_line(first, line) && matches(rest, lines),
        _ => false,
    }
}

fn are_as_described(description: &str, printed: &str) -> bool {
    matches(&description.lines().collect::<Vec<_>>(), &printed.lines().collect::<Vec<_>>())
}

#[test]
fn output_is_compared_without_times() {
    let same = are_as_described;
    assert!(same("a\n…\nc 1.5 s, d", "a\nb\nb\nc 20 s, d"));
    assert!(!same("a\n…\nc 1.5 s, d", "a\nb\nc 20 s, e"));
    assert!(same("round 1  … strings", "round 1  2 of 3 strings"));
    assert!(!same("F1 0.5", "F1 0.6") && !same("a", "a\nb") && !same("a\nb", "a"));
}

#[test]
#[ignore = "slow"]
fn commands_of_the_book_print_what_it_says() {
    let (mut wrong, mut n_run, mut n_compared) = (Vec::new(), 0, 0);
    for page in pages_with_commands() {
        let folder = tempfile::tempdir().unwrap();
        copy(&root().join("examples"), &folder.path().join("examples"));
        let mut printed = None;
        for block in blocks(&fs::read_to_string(&page).unwrap()) {
            match &block.language[..] {
                "sh" if !block.is_skipped => {
                    n_run += 1;
                    match run(&block.code, folder.path()) {
                        Ok(output) => printed = Some(output),
                        Err(error) => {
                            wrong.push(format!("{}:\n{}{error}", page.display(), block.code));
                            break;
                        }
                    }
                }
                "text" if block.follows => {
                    if let Some(output) = printed.take() {
                        n_compared += 1;
                        if !are_as_described(&block.code, &output) {
                            let says = format!("says\n{}but it is\n{output}", block.code);
                            wrong.push(format!("{}: {says}", page.display()));
                        }
                    }
                }
                _ => printed = None,
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(n_run > 20 && n_compared > 12, "the test runs blocks: {n_run}, {n_compared} with output");
}

/// Commands of a block that is not run, with their options.
fn options(code: &str) -> Vec<(Vec<String>, Vec<String>)> {
    let mut found = Vec::new();
    for line in code.lines() {
        let command = line.split(" #").next().unwrap();
        for part in command.split(['|', '&', ';', '(', ')']) {
            let words: Vec<&str> = part.split_whitespace().collect();
            let Some(at) = words.iter().position(|word| ["grammaton", "grammaton-worker"].contains(word))
            else {
                continue;
            };
            let mut command = vec![words[at].to_owned()];
            if words[at] == "grammaton" {
                // Some commands have commands.
                let n_words =
                    if words.get(at + 1).is_some_and(|word| ["eval", "up"].contains(word)) { 2 } else { 1 };
                command.extend(words[at + 1..].iter().take(n_words).map(|&word| word.to_owned()));
            }
            let options = words[at..].iter().filter(|word| word.starts_with("--"));
            found.push((command, options.map(|&word| word.to_owned()).collect()));
        }
    }
    found
}

#[test]
fn options_of_commands_that_are_not_run_exist() {
    let (mut unknown, mut n_options) = (Vec::new(), 0);
    let mut all = pages_with_commands();
    all.push(root().join("docs/OPERATIONS.md"));
    for page in all {
        let is_run = !page.ends_with("OPERATIONS.md");
        for block in blocks(&fs::read_to_string(&page).unwrap()) {
            if block.language != "sh" || is_run && !block.is_skipped {
                continue;
            }
            for (command, options) in options(&block.code) {
                let help = Command::new(binary(&command[0])).args(&command[1..]).arg("--help").output();
                let help = String::from_utf8(help.unwrap().stdout).unwrap();
                let known: BTreeSet<&str> =
                    help.split(|c: char| !(c.is_alphanumeric() || c == '-')).collect();
                for option in options {
                    n_options += 1;
                    if !known.contains(option.split('=').next().unwrap()) {
                        unknown.push(format!("{}: {} {option}", page.display(), command.join(" ")));
                    }
                }
            }
        }
    }
    assert!(unknown.is_empty(), "no such options:\n{}", unknown.join("\n"));
    assert!(n_options > 40, "the test reads options: {n_options}");
}
