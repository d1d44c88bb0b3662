//! `grammaton token`: creates a token for a service.

use std::path::PathBuf;

use anyhow::{Context, Result, ensure};
use basics::streams;
use fleet::access::{self, Role};

use super::Answer;

/// Arguments of `token`.
#[derive(clap::Args, Debug)]
#[command(
    after_help = "Roles: work (for workers), read (view jobs and download results), submit (also manage one's own jobs), operate (also manage the jobs of others).\n\
    The file holds the digest of each token. To revoke a token, remove its line; no restart is needed.\n\n\
    Examples:\n\
    \x20 grammaton token ann submit --tokens tokens"
)]
pub struct Args {
    /// Name of the token's owner
    pub name: String,
    /// Role of the token
    #[arg(value_parser = role, value_name = "work|read|submit|operate")]
    pub role: Role,
    /// File of tokens of the service (serve --tokens), to which the token's line is added
    #[arg(long, value_name = "FILE")]
    pub tokens: PathBuf,
}

fn role(text: &str) -> Result<Role, String> {
    text.parse()
}

/// Creates a token and prints it, which is the only time that it is shown.
pub fn run(args: &Args) -> Result<Answer> {
    let Args { name, role, tokens } = args;
    let is_plain =
        name.chars().all(|letter| !letter.is_whitespace() && !letter.is_control() && letter != '#');
    ensure!(
        is_plain && (1..=100).contains(&name.chars().count()),
        "{name:?}: expected a name of 1 to 100 visible letters"
    );
    let refused = || format!("{}: cannot add the token", tokens.display());
    let secret = access::secret().context("the operating system gives no random bytes")?;
    if tokens.exists() {
        access::Tokens::read(tokens)?;
    }
    let mut text = match std::fs::read_to_string(tokens) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => String::new(),
        Err(error) => return Err(error).with_context(refused),
    };
    if !text.is_empty() && !text.ends_with('\n') {
        text.push('\n');
    }
    text += &access::line(name, *role, &secret);
    let folder = tokens.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(".".as_ref());
    let temporary = tempfile::NamedTempFile::new_in(folder).with_context(refused)?;
    std::fs::write(&temporary, text).with_context(refused)?;
    temporary.persist(tokens).with_context(refused)?;
    streams::print(&format!("{secret}\n"))?;
    Ok(Answer::Yes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_are_added_to_those_there_are() {
        let dir = tempfile::tempdir().unwrap();
        let tokens = dir.path().join("tokens");
        for (name, role) in [("ann", Role::Submit), ("node", Role::Work)] {
            run(&Args { name: name.into(), role, tokens: tokens.clone() }).unwrap();
        }
        let text = std::fs::read_to_string(&tokens).unwrap();
        let lines: Vec<Vec<&str>> = text.lines().map(|line| line.split(' ').collect()).collect();
        assert_eq!(
            lines.iter().map(|line| (line[0], line[1])).collect::<Vec<_>>(),
            [("ann", "submit"), ("node", "work")]
        );
        assert_ne!(lines[0][2], lines[1][2]);
        assert!(run(&Args { name: "a b".into(), role: Role::Read, tokens }).is_err());
    }
}
