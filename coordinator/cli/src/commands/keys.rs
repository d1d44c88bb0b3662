//! `grammaton keys`: shows the keys of the job file.

use anyhow::{Result, bail};
use basics::nearest::nearest;
use basics::streams;
use clap::Parser;
use grammaton::settings::key::Key;
use training::job::{Job, reference, typed};

use super::Answer;

/// Arguments of `keys`.
#[derive(Parser, Debug)]
#[command(after_help = "Examples:\n\
    \x20 grammaton keys\n\
    \x20 grammaton keys rho inference.alpha")]
pub struct Args {
    /// Keys to show, as in rho or inference.rho [default: all]
    keys: Vec<String>,
    /// Print the reference of all keys in Markdown
    #[arg(long, conflicts_with = "keys")]
    markdown: bool,
    /// Print the types of all keys as the module `grammaton._keys` of Python
    #[arg(long, hide = true, conflicts_with_all = ["keys", "markdown"])]
    python: bool,
}

/// Runs the command.
pub fn run(args: &Args) -> Result<Answer> {
    if args.markdown {
        streams::print(&reference::markdown())?;
        return Ok(Answer::Yes);
    }
    if args.python {
        streams::print(&typed::python())?;
        return Ok(Answer::Yes);
    }
    let keys = Job::keys();
    let named = |key: &&Key, name: &str| key.name == name || key.path() == name;
    for name in &args.keys {
        if !keys.iter().any(|key| named(&key, name)) {
            let way_out = match nearest(name, keys.iter().map(|key| key.name)) {
                Some(near) => format!("did you mean \"{near}\"?"),
                None => "`grammaton keys` shows all".to_owned(),
            };
            bail!("\"{name}\" is not a key of the job file; {way_out}");
        }
    }
    let wanted = |key: &&Key| args.keys.is_empty() || args.keys.iter().any(|name| named(key, name));
    let texts: Vec<String> = keys.iter().filter(wanted).map(reference::of_key).collect();
    streams::print(&texts.join("\n"))?;
    Ok(Answer::Yes)
}
