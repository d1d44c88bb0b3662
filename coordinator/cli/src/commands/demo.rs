//! `grammaton demo`: finds the words of a small text of our own invention, and opens the report.
//!
//! It is `grammaton segment` on a corpus that is drawn from a grammar (`demo.gr`), and prints the command that it runs.

use std::fs;
use std::io::IsTerminal as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, bail, ensure};
use basics::streams;
use grammaton::data::generate::{self, Options};
use grammaton::grammar::syntax;
use proto::log::Form;

use super::sample::{segmented, unit};
use super::{Answer, segment};

/// Arguments of `demo`.
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:\n\
    \x20 grammaton demo\n\
    \x20 grammaton demo trial --no-browser")]
pub struct Args {
    /// Folder for the text and the results
    #[arg(value_name = "DIR", default_value = "demo")]
    dir: PathBuf,
    /// Do not open the report in a browser
    #[arg(long)]
    no_browser: bool,
}

const GRAMMAR: &str = include_str!("demo.gr");
const N: usize = 600;
const SEED: u64 = 1;

/// Runs the command.
pub fn run(args: &Args, log: Form) -> Result<Answer> {
    let (corpus, results) = (args.dir.join("text.txt"), args.dir.join("words"));
    fs::create_dir_all(&args.dir)
        .with_context(|| format!("{}: cannot create the folder", args.dir.display()))?;
    write(&corpus, &text()?)?;
    streams::tell(&format!(
        "{}: {N} made-up utterances, whose spaces are only compared with what is found",
        corpus.display()
    ));
    let (corpus, results_dir) = (corpus.display().to_string(), results.display().to_string());
    let line =
        ["segment", &corpus, "--grammar", "colloc", "--chains", "2", "--sweeps", "60", "--out", &results_dir];
    streams::tell(&format!("$ grammaton {}", line.join(" ")));
    let again = results.join("summary.json").exists().then_some("--overwrite");
    let command = crate::parsed(["grammaton"].into_iter().chain(line).chain(again))?;
    let crate::Command::Segment(of_segment) = command.command else { bail!("the command is not `segment`") };
    let answer = segment::run(&of_segment, log)?;
    let report = results.join("report.html");
    if answer == Answer::Yes && report.is_file() {
        streams::tell(&format!("{}: the report; open it in a browser", report.display()));
        if !args.no_browser && std::io::stderr().is_terminal() {
            open(&report);
        }
    }
    Ok(answer)
}

/// Utterances with spaces between words.
fn text() -> Result<String> {
    let (grammar, _) = syntax::parse(GRAMMAR, "demo.gr")?;
    let words: Vec<String> = words(GRAMMAR).map(str::to_owned).collect();
    let trees = generate::sample(&grammar, N, SEED, &Options::default())?;
    Ok(trees.iter().map(|tree| segmented(tree, &words, unit(&grammar)) + "\n").collect())
}

/// The nonterminals whose constituents are words, as a comment of the grammar lists them.
fn words(grammar: &str) -> impl Iterator<Item = &str> {
    let list = grammar.lines().find_map(|line| line.strip_prefix("# Segments: "));
    list.unwrap_or_default().trim_end_matches('.').split(", ")
}

/// Writes the text, but not over a file with another one.
fn write(path: &Path, text: &str) -> Result<()> {
    match fs::read(path) {
        Ok(found) => {
            ensure!(
                found == text.as_bytes(),
                "{}: the file has another text; choose another folder, as in: grammaton demo OTHER",
                path.display()
            );
            Ok(())
        }
        Err(_) => fs::write(path, text).with_context(|| format!("{}: cannot be written", path.display())),
    }
}

/// Opens a page in the browser of the desktop, if there is one.
fn open(page: &Path) {
    let program = if cfg!(target_os = "macos") { "open" } else { "xdg-open" };
    // Without a desktop the path that was printed is enough.
    let _ = Command::new(program)
        .arg(page)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_has_words_of_the_grammar() {
        let text = text().unwrap();
        assert_eq!(text.lines().count(), N);
        assert!(text.lines().all(|line| line.split(' ').count() >= 3), "{text}");
        let known = |word: &str| {
            GRAMMAR.contains(&format!("--> {}\n", word.split("").collect::<Vec<_>>().join(" ").trim()))
        };
        assert!(text.split_whitespace().all(known));
    }
}
