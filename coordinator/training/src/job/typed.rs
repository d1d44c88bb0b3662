//! The keys of a job as a type of Python, for editors and type checkers: `python/grammaton/_keys.py`.

use grammaton::settings::key::Key;

use super::Job;

const HEAD: &str = "\
\"\"\"Types of the keys of `train`. Made by `grammaton keys --python`; do not edit.\"\"\"

from __future__ import annotations

import os
from typing import Any, Literal, TypedDict


class Keys(TypedDict, total=False):
    \"\"\"Keys of a job file, which are arguments of `train`; `None` is the default.\"\"\"
";

/// Keys that are arguments of their own.
const ARGUMENTS: [&str; 4] = ["path", "grammar", "method", "dir"];

/// The module.
pub fn python() -> String {
    let mut text = HEAD.to_owned();
    for key in Job::keys().iter().filter(|key| !ARGUMENTS.contains(&key.name)) {
        let help = key.help.replace('\\', "\\\\").replace("\"\"\"", "'''");
        text += &format!("\n    {}: {} | None\n    \"\"\"{help}\"\"\"\n", key.name, type_of(key));
    }
    text + "\n    sweep: dict[str, Any] | list[dict[str, Any]] | None\n    \"\"\"Lists of values of keys, whose combinations are trained.\"\"\"\n"
}

fn type_of(key: &Key) -> String {
    let is_column = key.name == "column"; // a number or a name
    match (type_of_values(&key.values).as_str(), key.path) {
        ("str", Some(_)) => "str | os.PathLike[str]".to_owned(),
        ("str", None) if is_column => "int | str".to_owned(),
        (found, _) => found.to_owned(),
    }
}

/// The type of the values of this description (`grammaton::settings::key::values_of`).
fn type_of_values(values: &str) -> String {
    if let Some(entry) = values.strip_prefix("a list, each ") {
        let entry = type_of_values(entry);
        return format!("list[{entry}] | tuple[{entry}, ...]");
    }
    if let Some((n, entry)) = values.strip_prefix("a list of ").and_then(|rest| rest.split_once(", each ")) {
        let entry = type_of_values(entry);
        let entries = vec![entry.as_str(); n.parse().unwrap_or(1)].join(", ");
        return format!("list[{entry}] | tuple[{entries}]");
    }
    if let Some(names) = values.strip_prefix("one of ") {
        return format!("Literal[{}]", names.replace('`', ""));
    }
    match values {
        "`true` or `false`" => "bool",
        "a whole number" => "int",
        "a number" => "float",
        "text" => "str",
        "a table" => "dict[str, Any]",
        _ => "Any",
    }
    .to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_key_has_a_type() {
        let text = python();
        for key in Job::keys() {
            let is_there = text.contains(&format!("\n    {}: ", key.name));
            assert_eq!(is_there, !ARGUMENTS.contains(&key.name), "{}", key.name);
            assert!(type_of(&key) != "Any", "{}: {}", key.name, key.values);
        }
        for line in [
            "max_rounds: int | None",
            "rho: float | None",
            "kind: Literal[\"adaptor\", \"pcfg\", \"pcfg-la\", \"dmv\"] | None",
            "prefixes: str | os.PathLike[str] | None",
            "column: int | str | None",
        ] {
            assert!(text.contains(&format!("    {line}\n")), "{line}: {text}");
        }
    }
}
