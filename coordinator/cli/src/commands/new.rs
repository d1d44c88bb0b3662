//! `grammaton new`: prints a job file to start from.

use std::path::PathBuf;

use anyhow::{Result, bail};

use basics::streams;
use grammaton::data::corpus::Unit;
use grammaton::data::corpus::sniff::{Contents, Finding, Given, Reading, look};
use segment::dependencies::{Options, Parsing};
use training::input::format::{self, OpenText, SENTENCES_ALONE};

use super::Answer;

/// Arguments of `new`.
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:\n\
    \x20 grammaton new text.txt\n\
    \x20 grammaton new --kind morphemes words.txt\n\
    \x20 grammaton new train.conllu")]
pub struct Args {
    /// The corpus, which is read to choose the kind and the unit; the job file belongs into the folder from which its path is given
    corpus: Option<PathBuf>,
    /// Kind of job [default: dependencies in CoNLL-U, a treebank's grammar in bracketed trees, else words]
    #[arg(long, value_enum)]
    kind: Option<Kind>,
}

/// Kinds of job.
#[derive(Clone, Copy, PartialEq, Eq, Debug, clap::ValueEnum)]
enum Kind {
    /// Words in unsegmented text
    Words,
    /// Morphemes in words
    Morphemes,
    /// Heads of tagged words
    Dependencies,
    /// A grammar with latent annotations in trees
    Treebank,
}

/// Runs the command.
pub fn run(args: &Args) -> Result<Answer> {
    let (lines, path) = match &args.corpus {
        None => (Vec::new(), None),
        Some(path) => {
            let Some(name) = path.to_str() else {
                bail!("{}: the path is not UTF-8; rename the file", path.display())
            };
            (OpenText::open(path)?.sample()?, Some(name))
        }
    };
    let kind = args.kind.unwrap_or_else(|| guess(trimmed(&lines)));
    let (template, default_path) = match kind {
        Kind::Words => (include_str!("new/words.toml"), "corpus.txt"),
        Kind::Morphemes => (include_str!("new/morphemes.toml"), "words.txt"),
        Kind::Dependencies => (include_str!("new/dependencies.toml"), "train.conllu"),
        Kind::Treebank => (include_str!("new/treebank.toml"), "train.mrg"),
    };
    let name = path.unwrap_or(default_path);
    let job = fill(template, "\"@CORPUS@\"", &toml::Value::from(name).to_string());
    let job = match (kind, &args.corpus) {
        (Kind::Dependencies, Some(path)) => {
            let parsing = Parsing::read(path, Options::default())?;
            let job = fill(&job, "@TAGS@", parsing.tag_column());
            let job = fill(&job, "@LENGTH@", &parsing.max_length().to_string());
            fill(&job, "\"@RULES@\"", if parsing.has_rules() { "\"ud\"" } else { "\"none\"" })
        }
        (Kind::Dependencies, None) => {
            fill(&fill(&fill(&job, "@TAGS@", "upos"), "@LENGTH@", "10"), "@RULES@", "ud")
        }
        _ => job,
    };
    let contents = if kind == Kind::Morphemes { Contents::Words } else { Contents::Utterances };
    let (reading, findings) = match kind {
        Kind::Words | Kind::Morphemes => look(&lines, contents, Given::default(), &Reading::default()),
        Kind::Dependencies | Kind::Treebank => Default::default(),
    };
    let has_tokens = trimmed(&lines).any(|line| line.split(' ').any(|token| token == "|"));
    let unit = reading.unit.unwrap_or(if has_tokens { Unit::Token } else { Unit::Char });
    let mut job = fill(&job, "@UNIT@", unit.name());
    for finding in &findings {
        let Finding { evidence, reading, other } = finding;
        let other = other.as_ref().filter(|_| !finding.is_foreign());
        let has = match (other, finding.is_foreign()) {
            (Some(other), _) => {
                let [one, other] = [reading, other].map(format::keys);
                format!("{one} or {other} to choose from, as comments")
            }
            (None, true) => {
                format!("{} to choose from, as comments; or {SENTENCES_ALONE}", format::keys(reading))
            }
            (None, false) => format::keys(reading),
        };
        streams::tell(&format!("notice: {name}: {evidence}; the job has {has}"));
        let is_new = |(key, _): &(&str, String)| *key != "unit" || finding.other.is_some();
        let comment = if finding.other.is_some() { "# " } else { "" };
        let keys: String = [Some(reading), other]
            .into_iter()
            .flatten()
            .flat_map(|reading| reading.keys().into_iter().filter(is_new))
            .map(|(key, value)| format!("{comment}{key} = {}\n", toml::Value::from(value)))
            .collect();
        let at = job.find("\nunit = ").map_or(job.len(), |at| at + 1);
        job.insert_str(at, &keys);
    }
    streams::print(&job)?;
    Ok(Answer::Yes)
}

/// The lines that are not empty.
fn trimmed(lines: &[String]) -> impl Iterator<Item = &str> {
    lines.iter().map(|line| line.trim()).filter(|line| !line.is_empty())
}

/// Column of the comments after the values of a template.
const COMMENTS: usize = 40;

/// Replaces a placeholder of a template. The comment after it stays in its column if the value leaves room.
fn fill(template: &str, placeholder: &str, value: &str) -> String {
    let filled = |line: &str| {
        let Some((before, after)) = line.split_once(placeholder) else { return format!("{line}\n") };
        let (rest, comment) = after.split_at(after.find('#').unwrap_or(after.len()));
        let code = format!("{before}{value}{}", rest.trim_end());
        format!("{code:<width$} {comment}\n", width = COMMENTS - 1)
    };
    template.lines().map(filled).collect()
}

/// The kind of a corpus by its first lines.
fn guess<'a>(mut lines: impl Iterator<Item = &'a str>) -> Kind {
    let Some(first) = lines.find(|line| !line.starts_with('#')) else { return Kind::Words };
    let is_token = |line: &str| line.split('\t').count() == 10;
    if is_token(first) {
        Kind::Dependencies
    } else if first.starts_with('(') {
        Kind::Treebank
    } else {
        Kind::Words
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_stand_in_one_column() {
        let long = "\"a/very/long/path/to/a/corpus.txt\"";
        for template in [include_str!("new/words.toml"), include_str!("new/morphemes.toml")] {
            for path in ["\"c.txt\"", "\"corpora/brent.txt\""] {
                let job = fill(&fill(template, "\"@CORPUS@\"", path), "@UNIT@", "token");
                let commented = job.lines().filter_map(|line| line.split_once("\" ").and(line.find('#')));
                assert!(commented.filter(|&at| at > 0).all(|at| at == COMMENTS), "{job}");
            }
            assert!(fill(template, "\"@CORPUS@\"", long).contains(&format!("path = {long} #")));
        }
    }

    #[test]
    fn the_kind_is_guessed_from_the_lines() {
        let of = |text: &str| guess(text.lines());
        assert_eq!(of("# text = a\n1\ta\ta\tDET\t_\t_\t0\troot\t_\t_"), Kind::Dependencies);
        assert_eq!(of("(ROOT (S (NN a)))"), Kind::Treebank);
        assert_eq!(of("yu want tu"), Kind::Words);
        assert_eq!(of(""), Kind::Words);
    }
}
