//! Fills in a template for the symbols of a corpus. The head of `templates/utterances.gr` describes the syntax of templates.

use std::collections::BTreeSet;

use rustc_hash::FxHashSet;

use super::{AutoGrammar, BEGIN, END};
use crate::grammar::SymbolId;
use crate::grammar::check::Defect;
use crate::grammar::syntax::{Line, assemble, read_line};

/// Makes the grammar of a template. `holds` tells whether an option holds; `strings` returns the strings of a set, such as `vowel`, or of a
/// mark, as indices of `symbols`.
pub(super) fn fill(
    template: &str,
    symbols: &[String],
    holds: &dyn Fn(&str) -> bool,
    strings: &dyn Fn(&str) -> Vec<Vec<usize>>,
) -> Result<AutoGrammar, Defect> {
    let (mut text, mut segments) = (String::new(), FxHashSet::default());
    for line in template.lines().filter_map(|line| chosen(line, holds)) {
        match line.strip_prefix("# Segments: ") {
            Some(names) => segments.extend(names.trim_end_matches('.').split(", ")),
            None => text.extend(alternatives(line)),
        }
    }
    // Symbols are written as indices, since their names may be those of nonterminals.
    let index: Vec<String> = (0..symbols.len()).map(|at| at.to_string()).collect();
    for mark in [BEGIN, END] {
        text = text.replace(mark, strings(mark).first().map_or("", |string| &index[string[0]]));
    }
    let mut lines = Vec::new();
    for line in text.lines() {
        let Some((line, _)) = read_line(line, 0).expect("templates are well written") else { continue };
        match line.children[..] {
            [(at, set)] if set.starts_with('<') => {
                for string in BTreeSet::from_iter(strings(set.trim_matches(['<', '>']))) {
                    let children = string.iter().map(|&symbol| (at, &index[symbol][..])).collect();
                    lines.push(Line { children, ..line.clone() });
                }
            }
            _ => lines.push(line),
        }
    }
    drop_unproductive(&mut lines);
    let mut grammar = assemble(&lines, &mut Vec::new()).grammar;
    let is_segment = |symbol: &SymbolId| segments.contains(grammar.name(*symbol));
    let segments = (0..grammar.n_nonterminals).map(SymbolId).filter(is_segment).collect();
    for name in &mut grammar.symbols {
        match name.parse::<usize>() {
            Ok(at) => name.clone_from(&symbols[at]),
            Err(_) => {
                while symbols.contains(name) {
                    name.push('_')
                }
            }
        }
    }
    grammar.check()?;
    Ok(AutoGrammar { grammar, segments })
}

/// The line without its options; `None` if one of them does not hold.
pub(super) fn chosen<'t>(line: &'t str, holds: &dyn Fn(&str) -> bool) -> Option<&'t str> {
    let Some((options, line)) = line.strip_prefix('[').and_then(|line| line.split_once("] ")) else {
        return Some(line);
    };
    let (wanted, options) = options.strip_prefix("not ").map_or((true, options), |options| (false, options));
    (options.split(' ').any(holds) == wanted).then(|| chosen(line, holds)).flatten()
}

/// The rules that a line with parts in parentheses stands for, first without a part, then with it.
fn alternatives(line: &str) -> Vec<String> {
    let parts = line.split_once('(').and_then(|(before, rest)| Some((before, rest.split_once(')')?)));
    let Some((before, (part, after))) = parts else { return vec![line.to_owned() + "\n"] };
    ["", part].iter().flat_map(|part| alternatives(&format!("{before}{part}{after}"))).collect()
}

/// Drops rules with a nonterminal that derives nothing, such as onsets in a corpus without consonants, and those that are then out of
/// reach of the first one.
fn drop_unproductive(lines: &mut Vec<Line<'_>>) {
    let is_nonterminal = |name: &str| !name.starts_with(|first: char| first.is_ascii_digit());
    let derives = |line: &Line<'_>, productive: &FxHashSet<String>| {
        line.children.iter().all(|(_, child)| !is_nonterminal(child) || productive.contains(*child))
    };
    let mut productive = FxHashSet::default();
    while lines.iter().any(|line| derives(line, &productive) && productive.insert(line.parent.clone())) {}
    lines.retain(|line| derives(line, &productive));
    let mut reached = FxHashSet::from_iter(lines.first().map(|line| line.parent.clone()));
    let mut reaches = |line: &Line<'_>| {
        let mut nonterminals = line.children.iter().filter(|(_, child)| is_nonterminal(child));
        reached.contains(&line.parent) && nonterminals.any(|(_, child)| reached.insert((*child).to_owned()))
    };
    while lines.iter().any(&mut reaches) {}
    lines.retain(|line| reached.contains(&line.parent));
}
