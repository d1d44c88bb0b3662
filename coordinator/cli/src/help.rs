//! The commands in groups, by what one wants, as `grammaton --help` lists them.

use std::fmt::Write as _;

use clap::Command;

/// Groups of commands, in the order of the list.
const GROUPS: [(&str, &[&str]); 8] = [
    ("Begin", &["demo"]),
    ("Find structure", &["segment", "morphemes", "dependencies", "train", "parse"]),
    ("Look at results", &["inspect", "compare", "eval", "export"]),
    ("Say what you know", &["suggest", "annotate"]),
    ("Prepare a job", &["new", "check", "keys", "grammars", "treebank", "sample"]),
    ("Train on a cluster", &["run", "up", "worker", "plan", "bench"]),
    (
        "Train on a service",
        &[
            "serve", "submit", "jobs", "status", "logs", "fetch", "cancel", "resume", "delete", "workers",
            "token",
        ],
    ),
    ("Other", &["completions", "man"]),
];

/// The command with a list in groups in the place of one list.
pub fn in_groups(command: Command) -> Command {
    let header = *command.get_styles().get_header();
    let literal = *command.get_styles().get_literal();
    let mut list = String::new();
    for (group, names) in GROUPS {
        writeln!(list, "{header}{group}:{header:#}").expect("a String takes all that is written to it");
        for name in names {
            let about = command.find_subcommand(name).and_then(Command::get_about);
            let about = about.map(ToString::to_string).unwrap_or_default();
            writeln!(list, "  {literal}{name:<12}{literal:#}  {about}")
                .expect("a String takes all that is written to it");
        }
        list.push('\n');
    }
    command.help_template(format!(
        "{{before-help}}{{about-with-newline}}\n{{usage-heading}} {{usage}}\n\n{list}{header}Options:{header:#}\n{{options}}{{after-help}}"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every command is in one group, on one line of the list.
    #[test]
    fn every_command_is_in_the_list() {
        let mut command = crate::definition();
        let shown = |command: &&Command| !command.is_hide_set();
        let mut names: Vec<&str> = command.get_subcommands().filter(shown).map(Command::get_name).collect();
        let mut listed: Vec<&str> = GROUPS.iter().flat_map(|(_, names)| *names).copied().collect();
        names.sort_unstable();
        listed.sort_unstable();
        assert_eq!(names, listed);
        let help = command.render_help().to_string();
        assert!(help.lines().all(|line| line.len() <= 100), "{help}");
    }
}
