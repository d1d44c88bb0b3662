//! Grammar files: the syntax of Mark Johnson's py-cfg, read and written.
//!
//! One rule a line, `[weight [discount [concentration]]] Parent --> Child …`:
//!
//! ```text
//! # A sentence is words; words are adapted, the other symbols are not (discount 1).
//! 1 1 Sentence --> Words
//! 1 1 Words --> Word
//! 1 1 Words --> Word Words
//! Word --> Chars
//! 1 1 Chars --> Char
//! 1 1 Chars --> Char Chars
//! 1 1 Char --> a
//! 1 1 Char --> b
//! ```
//!
//! - The first parent is the start symbol. A symbol that is never a parent is a terminal.
//! - The weight is a Dirichlet pseudo-count; without one, or with one ≤ 0 (noticed), it is 1. Identical rules are
//!   one rule with the sum of their weights (noticed).
//! - Discount and concentration belong to the parent, whichever of its rules gives them. Discount 1 means that the
//!   parent is not adapted; a parent without a discount *is*, with values left to the job.
//! - `X --> <substrings>` lets X rewrite to every string of symbols that occurs in the corpus, each with the rule's weight
//!   as its pseudo-count (Johnson, Griffiths & Goldwater 2007, §6); X then has no other rule.
//! - `-->` must be preceded by white space; a child may follow it at once. White space is any of Unicode's.
//! - A parent may be quoted, `'a b'`, or use backslashes; children are taken literally.
//!
//! Differences from py-cfg: a line whose first character is `#` is a comment. Inside a rule a word that begins with `#` is a symbol if it is somewhere a
//! parent or an only child; else what follows it is a comment (noticed) if none of its words is a symbol of the grammar, and an error otherwise;
//! empty right-hand sides, unary cycles, and symbols that are unreachable or derive nothing are errors; the last word
//! before `-->` is the parent, so that `3W` is a symbol (py-cfg reads a weight 3 of `W`; noticed), while a parent
//! that is all number must be quoted; names with white space are errors, since no child could refer to them.

use std::fmt;
use std::str::FromStr;

use rustc_hash::{FxHashMap, FxHashSet};

use super::check::{Defect, Place};
use super::{Adaptor, Grammar, Rule, SymbolId};

/// Position in a text: both counted from 1, columns in characters.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Position {
    /// Line, counted from 1.
    pub line: u32,
    /// Column, counted from 1.
    pub column: u32,
}

/// Why a text is not a grammar, and where.
#[derive(Clone, PartialEq, Debug, thiserror::Error)]
#[error("{source_name}:{}:{}: {kind}", at.line, at.column)]
pub struct GrammarError {
    /// Name of the text, usually its file's.
    pub source_name: String,
    /// Place in the text.
    pub at: Position,
    /// Kind of the error.
    pub kind: GrammarErrorKind,
}

/// Why a text is not a grammar.
#[derive(Clone, PartialEq, Debug, thiserror::Error)]
pub enum GrammarErrorKind {
    /// A line without an arrow.
    #[error(
        "expected `-->` after the parent, found none; write `Parent --> Child …`, or `#` before a comment"
    )]
    NoArrow,
    /// Another arrow.
    #[error("found `{found}`, expected `-->`")]
    BadArrow {
        /// Text at that place.
        found: String,
    },
    /// An arrow that touches the word before it.
    #[error("`-->` must be preceded by white space, found `{found}`")]
    GluedArrow {
        /// The word with the arrow.
        found: String,
    },
    /// An arrow without a parent before it.
    #[error("expected a parent before `-->`, found none")]
    NoParent,
    /// A number where the parent should be.
    #[error("expected a parent before `-->`, found the number {found}; if it is a name, quote it: '{found}'")]
    ParentIsNumber {
        /// The number.
        found: String,
    },
    /// A word other than a number before the parent.
    #[error(
        "expected a number before the parent, found `{found}`; a rule is `[weight [discount [concentration]]] Parent --> Child …`"
    )]
    NotANumber {
        /// The word.
        found: String,
    },
    /// More than three numbers.
    #[error("expected at most weight, discount and concentration before the parent, found `{found}` as well")]
    TooManyNumbers {
        /// The fourth.
        found: String,
    },
    /// A number that is infinite or NaN.
    #[error("the {what} must be finite, found {found}")]
    NotFinite {
        /// Weight, discount or concentration.
        what: &'static str,
        /// The text of the number.
        found: String,
    },
    /// A discount outside of [0, 1].
    #[error("the discount must be at least 0 and less than 1 (or 1: not adapted), found {found}")]
    Discount {
        /// The value found.
        found: f64,
    },
    /// A concentration that is not positive.
    #[error("the concentration must be positive, found {found}")]
    Concentration {
        /// The value found.
        found: f64,
    },
    /// A quoted parent without its second quote.
    #[error("the quote is not closed; expected ' before the end of the line")]
    OpenQuote,
    /// Text that touches a closing quote.
    #[error("expected white space after the closing quote, found `{found}`")]
    AfterQuote {
        /// The character.
        found: char,
    },
    /// A backslash with nothing behind it.
    #[error("expected a character after the backslash, found the end of the line")]
    OpenEscape,
    /// A `#` inside of a rule that may be a symbol or begin a comment.
    #[error(
        "`{found}` may be a symbol or begin a comment; put a comment on a line of its own, or give the symbol a rule as its only child, as in `Mark --> {found}`"
    )]
    AmbiguousComment {
        /// The word that begins with `#`.
        found: String,
    },
    /// Well written, but not a valid grammar.
    #[error(transparent)]
    Defect(#[from] Defect),
}

/// Something in a grammar file that is accepted, but may not be meant.
#[derive(Clone, PartialEq, Debug)]
pub struct Notice {
    /// Name of the text, usually its file's.
    pub source_name: String,
    /// Place in the text.
    pub at: Position,
    /// Kind of the notice.
    pub kind: NoticeKind,
}

impl fmt::Display for Notice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}: {}", self.source_name, self.at.line, self.at.column, self.kind)
    }
}

/// Subjects of a [`Notice`].
#[derive(Clone, PartialEq, Debug)]
pub enum NoticeKind {
    /// A weight ≤ 0, read as 1.
    DefaultWeight {
        /// The value written.
        found: f64,
    },
    /// A repeated rule, whose weights were added.
    MergedRule {
        /// The line where it was first.
        first_line: u32,
        /// The sum.
        alpha: f64,
    },
    /// A discount or concentration other than that of an earlier rule of the same parent; this one holds.
    AdaptorChanged {
        /// The parent.
        name: String,
    },
    /// Rules of one parent with and without a discount, the first of which are not adapted.
    PartlyAdapted {
        /// The parent.
        name: String,
    },
    /// A comment behind a rule.
    Comment {
        /// The comment.
        found: String,
    },
    /// An adapted nonterminal that occurs below itself.
    RecursiveAdapted {
        /// The nonterminal.
        name: String,
    },
    /// A parent that begins with a digit.
    DigitParent {
        /// The parent.
        name: String,
    },
    /// A child `|`, read as a terminal.
    Bar,
    /// A terminal whose name is nearly that of a nonterminal.
    NearlyNonterminal {
        /// The terminal.
        name: String,
        /// The nonterminal.
        nearest: String,
    },
}

impl fmt::Display for NoticeKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NoticeKind::DefaultWeight { found } => write!(f, "a weight of {found} is read as the default, 1"),
            NoticeKind::MergedRule { first_line, alpha } => {
                write!(f, "the same rule as in line {first_line}; the weights add up to {alpha}")
            }
            NoticeKind::AdaptorChanged { name } => {
                write!(f, "an earlier rule of `{name}` has another discount or concentration; this one holds")
            }
            NoticeKind::PartlyAdapted { name } => write!(
                f,
                "a rule of `{name}` has discount 1 (not adapted) and this one has none (adapted); the 1 holds for all of them: to adapt `{name}`, \
                 leave the discount away in all its rules"
            ),
            NoticeKind::Comment { found } => write!(f, "`{found}` is read as a comment"),
            NoticeKind::RecursiveAdapted { name } => write!(
                f,
                "the adapted nonterminal `{name}` occurs below itself; variational inference allows it, but a \
                 string never contains itself as its own part"
            ),
            NoticeKind::DigitParent { name } => write!(
                f,
                "`{name}` is read as one name, where py-cfg reads a weight and a shorter name; quote it: '{name}'"
            ),
            NoticeKind::Bar => {
                write!(f, "`|` is read as a terminal; alternatives are written as rules of their own")
            }
            NoticeKind::NearlyNonterminal { name, nearest } => {
                write!(f, "`{name}` is never a parent, so it is a terminal; did you mean `{nearest}`?")
            }
        }
    }
}

/// Reads a grammar in py-cfg's syntax.
impl FromStr for Grammar {
    type Err = GrammarError;

    fn from_str(text: &str) -> Result<Grammar, GrammarError> {
        Ok(parse(text, "grammar")?.0)
    }
}

/// The grammar in py-cfg's syntax.
impl fmt::Display for Grammar {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&print(self))
    }
}

/// Reads a grammar; `source_name` is what errors and notices call the text.
///
/// # Errors
/// The first thing wrong with it, with its line and column.
pub fn parse(text: &str, source_name: &str) -> Result<(Grammar, Vec<Notice>), GrammarError> {
    let error = |at, kind| GrammarError { source_name: source_name.to_owned(), at, kind };
    let mut notices = Vec::new();
    let mut lines = Vec::new();
    for (number, text) in text.strip_prefix('\u{feff}').unwrap_or(text).lines().enumerate() {
        let line = read_line(text, number as u32 + 1).map_err(|(at, kind)| error(at, kind))?;
        if let Some((line, noticed)) = line {
            lines.push(line);
            notices.extend(noticed);
        }
    }
    comments(&mut lines, &mut notices).map_err(|(at, kind)| error(at, kind))?;
    let assembled = assemble(&lines, &mut notices);
    let grammar = assembled.grammar;
    grammar.check().map_err(|defect| {
        let at = match defect.place() {
            Place::Grammar => Position { line: 1, column: 1 },
            Place::Symbol(symbol) => assembled.symbols_at[symbol.index()],
            Place::Rule(rule) => assembled.rules_at[rule],
        };
        error(at, defect.into())
    })?;
    for symbol in grammar.recursive_adapted() {
        let name = grammar.name(symbol).to_owned();
        notices.push((assembled.symbols_at[symbol.index()], NoticeKind::RecursiveAdapted { name }));
    }
    nearly_nonterminals(&grammar, &assembled.symbols_at, &mut notices);
    notices.sort_by_key(|&(at, _)| at);
    let notices = notices
        .into_iter()
        .map(|(at, kind)| Notice { source_name: source_name.to_owned(), at, kind })
        .collect();
    Ok((grammar, notices))
}

/// Writes a grammar in a form that [`parse`] and py-cfg read back as the same grammar.
pub fn print(grammar: &Grammar) -> String {
    let mut text = String::new();
    for rule in &grammar.rules {
        let mut numbers = vec![rule.alpha];
        match grammar.adaptors[rule.parent.index()] {
            None => numbers.push(1.0),
            Some(Adaptor { discount, concentration }) => {
                numbers.extend(discount.into_iter().chain(concentration))
            }
        }
        for number in numbers {
            text += &print_number(number);
            text.push(' ');
        }
        text += &print_parent(grammar.name(rule.parent));
        text += " -->";
        for &child in &rule.children {
            text.push(' ');
            text += grammar.name(child);
        }
        text.push('\n');
    }
    text
}

fn print_number(number: f64) -> String {
    let plain = number == 0.0 || (1e-4..1e15).contains(&number);
    if plain { format!("{number}") } else { format!("{number:e}") }
}

fn print_parent(name: &str) -> String {
    let quote = name.starts_with(['\'', '#', '+', '-', '.'])
        || name.starts_with(|first: char| first.is_ascii_digit())
        || name.contains('\\')
        || name.parse::<f64>().is_ok();
    if !quote {
        return name.to_owned();
    }
    let mut text = String::from("'");
    for letter in name.chars() {
        if matches!(letter, '\'' | '\\') {
            text.push('\\');
        }
        text.push(letter);
    }
    text.push('\'');
    text
}

/// A rule as written.
#[derive(Clone)]
pub(super) struct Line<'a> {
    pub(super) at: Position,
    pub(super) alpha: f64,
    pub(super) discount: Option<f64>,
    pub(super) concentration: Option<f64>,
    pub(super) parent: String,
    pub(super) children: Vec<(Position, &'a str)>,
}

/// A word before the arrow.
struct Word {
    at: Position,
    text: String,
    /// Whether quotes or backslashes were used, so that it can only be a name.
    quoted: bool,
}

type Failure = (Position, GrammarErrorKind);
type Noticed = (Position, NoticeKind);

/// Reads one line; `None` if it is blank or a comment.
pub(super) fn read_line(text: &str, line: u32) -> Result<Option<(Line<'_>, Vec<Noticed>)>, Failure> {
    let position = |byte: usize| Position { line, column: text[..byte].chars().count() as u32 + 1 };
    let first = text.find(|letter: char| !letter.is_whitespace());
    let Some(first) = first.filter(|&first| !text[first..].starts_with('#')) else { return Ok(None) };

    let mut words: Vec<Word> = Vec::new();
    let mut at = first;
    let right = loop {
        let blank = text[at..].find(|letter: char| !letter.is_whitespace());
        let Some(blank) = blank else { return Err(no_arrow(&words, position(first))) };
        at += blank;
        if let Some(right) = text[at..].strip_prefix("-->") {
            break right;
        }
        let (word, length) = read_word(&text[at..]).map_err(|(byte, kind)| (position(at + byte), kind))?;
        words.push(Word { at: position(at), ..word });
        at += length;
    };
    let arrow = position(at);
    let mut children = Vec::new();
    let (mut seen, mut column) = (at, arrow.column);
    for child in right.split_whitespace() {
        let byte = child.as_ptr() as usize - text.as_ptr() as usize;
        column += text[seen..byte].chars().count() as u32;
        seen = byte;
        children.push((Position { line, column }, child));
    }
    let Some(parent) = words.pop() else { return Err((arrow, GrammarErrorKind::NoParent)) };
    let mut notices = Vec::new();
    if !parent.quoted && parent.text.starts_with(|first: char| "+-.0123456789".contains(first)) {
        if parent.text.parse::<f64>().is_ok() {
            return Err((parent.at, GrammarErrorKind::ParentIsNumber { found: parent.text }));
        }
        if parent.text.starts_with(|first: char| first.is_ascii_digit()) {
            notices.push((parent.at, NoticeKind::DigitParent { name: parent.text.clone() }));
        }
    }
    let numbers = read_numbers(&words)?;
    let mut alpha = numbers[0].unwrap_or(1.0);
    if alpha <= 0.0 {
        notices.push((words[0].at, NoticeKind::DefaultWeight { found: alpha }));
        alpha = 1.0;
    }
    if let Some(found) = numbers[1].filter(|discount| !(0.0..=1.0).contains(discount)) {
        return Err((words[1].at, GrammarErrorKind::Discount { found }));
    }
    if let Some(found) = numbers[2].filter(|&concentration| concentration <= 0.0) {
        return Err((words[2].at, GrammarErrorKind::Concentration { found }));
    }
    notices.extend(children.iter().filter(|(_, child)| *child == "|").map(|&(at, _)| (at, NoticeKind::Bar)));
    if children.is_empty() {
        // Said here rather than by the check, which would see all rules of the parent before it.
        let defect = Defect::EmptyRight { rule: 0, parent: parent.text };
        return Err((arrow, defect.into()));
    }
    let line = Line {
        at: parent.at,
        alpha,
        discount: numbers[1],
        concentration: numbers[2],
        parent: parent.text,
        children,
    };
    Ok(Some((line, notices)))
}

/// Reads a word with its quotes and backslashes; returns its length in bytes, or the byte where it fails.
fn read_word(text: &str) -> Result<(Word, usize), (usize, GrammarErrorKind)> {
    let mut word = Word { at: Position { line: 0, column: 0 }, text: String::new(), quoted: false };
    let in_quotes = text.starts_with('\'');
    let mut letters = text.char_indices().skip(usize::from(in_quotes));
    word.quoted = in_quotes;
    while let Some((byte, letter)) = letters.next() {
        match letter {
            '\\' => {
                let (_, escaped) = letters.next().ok_or((byte, GrammarErrorKind::OpenEscape))?;
                word.text.push(escaped);
                word.quoted = true;
            }
            '\'' if in_quotes => {
                let end = byte + 1;
                return match text[end..].chars().next() {
                    Some(found) if !found.is_whitespace() => {
                        Err((end, GrammarErrorKind::AfterQuote { found }))
                    }
                    _ => Ok((word, end)),
                };
            }
            _ if !in_quotes && letter.is_whitespace() => return Ok((word, byte)),
            _ => word.text.push(letter),
        }
    }
    if in_quotes { Err((0, GrammarErrorKind::OpenQuote)) } else { Ok((word, text.len())) }
}

/// Weight, discount and concentration.
fn read_numbers(words: &[Word]) -> Result<[Option<f64>; 3], Failure> {
    let mut numbers = [None; 3];
    for (place, word) in words.iter().enumerate() {
        let found = word.text.clone();
        let number = word.text.parse::<f64>().ok().filter(|_| !word.quoted);
        let Some(number) = number else { return Err((word.at, GrammarErrorKind::NotANumber { found })) };
        let Some(what) = ["weight", "discount", "concentration"].get(place) else {
            return Err((word.at, GrammarErrorKind::TooManyNumbers { found }));
        };
        if !number.is_finite() {
            return Err((word.at, GrammarErrorKind::NotFinite { what, found }));
        }
        numbers[place] = Some(number);
    }
    Ok(numbers)
}

/// Describes a line without ` -->`.
fn no_arrow(words: &[Word], first: Position) -> Failure {
    const ARROWS: [&str; 7] = ["->", "=>", "→", "::=", ":", "--->", "=="];
    for word in words {
        let found = || word.text.clone();
        if word.text.contains("-->") && !word.text.contains("--->") {
            return (word.at, GrammarErrorKind::GluedArrow { found: found() });
        }
        if ARROWS.contains(&word.text.as_str()) || word.text.contains("->") {
            return (word.at, GrammarErrorKind::BadArrow { found: found() });
        }
    }
    (first, GrammarErrorKind::NoArrow)
}

/// Removes comments behind rules: all from a word on that begins with `#`, is never a parent or an only child, and is followed by words that no rule has.
fn comments(lines: &mut [Line<'_>], notices: &mut Vec<Noticed>) -> Result<(), Failure> {
    let begins = |(_, child): &(Position, &str)| child.starts_with('#');
    let n_children = |line: &Line<'_>| line.children.iter().position(begins).unwrap_or(line.children.len());
    let mut symbols: FxHashSet<String> = lines.iter().map(|line| line.parent.clone()).collect();
    for line in lines.iter() {
        let known = if line.children.len() == 1 { 1 } else { n_children(line) };
        symbols.extend(line.children[..known].iter().map(|&(_, child)| child.to_owned()));
    }
    for line in lines {
        let Some(at) = line.children.iter().position(|child| begins(child) && !symbols.contains(child.1))
        else {
            continue;
        };
        let comment = line.children.split_off(at);
        let (position, found) = comment[0];
        let is_known = |(_, word): &(Position, &str)| symbols.contains(*word);
        if at == 0 || comment.len() == 1 && found == "#" || comment[1..].iter().any(is_known) {
            return Err((position, GrammarErrorKind::AmbiguousComment { found: found.to_owned() }));
        }
        let found = comment.iter().map(|&(_, word)| word).collect::<Vec<_>>().join(" ");
        notices.push((position, NoticeKind::Comment { found }));
    }
    Ok(())
}

/// A grammar, not yet checked, and where its parts were written.
pub(super) struct Assembled {
    pub(super) grammar: Grammar,
    symbols_at: Vec<Position>,
    rules_at: Vec<Position>,
}

/// Numbers the symbols, groups the rules by parent and merges identical ones.
pub(super) fn assemble(lines: &[Line<'_>], notices: &mut Vec<Noticed>) -> Assembled {
    let mut ids: FxHashMap<&str, SymbolId> = FxHashMap::default();
    let mut symbols = Vec::new();
    let mut symbols_at = Vec::new();
    let mut by_parent: Vec<Vec<&Line<'_>>> = Vec::new();
    for line in lines {
        let parent = *ids.entry(&line.parent).or_insert_with(|| {
            symbols.push(line.parent.clone());
            symbols_at.push(line.at);
            by_parent.push(Vec::new());
            SymbolId(symbols.len() as u32 - 1)
        });
        by_parent[parent.index()].push(line);
    }
    let n_nonterminals = symbols.len() as u32;

    let mut rules: Vec<Rule> = Vec::new();
    let mut rules_at: Vec<Position> = Vec::new();
    let mut adaptors = Vec::new();
    for (parent, lines) in by_parent.iter().enumerate() {
        let mut seen: FxHashMap<Vec<SymbolId>, usize> = FxHashMap::default();
        let (mut discount, mut concentration) = (None, None);
        for line in lines {
            let mut children = Vec::with_capacity(line.children.len());
            for &(at, child) in &line.children {
                children.push(*ids.entry(child).or_insert_with(|| {
                    symbols.push(child.to_owned());
                    symbols_at.push(at);
                    SymbolId(symbols.len() as u32 - 1)
                }));
            }
            let changed = |old: Option<f64>, new: Option<f64>| old.is_some() && new.is_some() && old != new;
            if changed(discount, line.discount) || changed(concentration, line.concentration) {
                notices.push((line.at, NoticeKind::AdaptorChanged { name: line.parent.clone() }));
            }
            discount = line.discount.or(discount);
            concentration = line.concentration.or(concentration);
            if let Some(&first) = seen.get(&children) {
                rules[first].alpha += line.alpha;
                let (first_line, alpha) = (rules_at[first].line, rules[first].alpha);
                notices.push((line.at, NoticeKind::MergedRule { first_line, alpha }));
            } else {
                seen.insert(children.clone(), rules.len());
                rules.push(Rule { parent: SymbolId(parent as u32), children, alpha: line.alpha });
                rules_at.push(line.at);
            }
        }
        let without = lines.iter().find(|line| line.discount.is_none()).filter(|_| discount == Some(1.0));
        if let Some(line) = without {
            notices.push((line.at, NoticeKind::PartlyAdapted { name: line.parent.clone() }));
        }
        adaptors.push((discount != Some(1.0)).then_some(Adaptor { discount, concentration }));
    }
    Assembled {
        grammar: Grammar { symbols, n_nonterminals, rules, adaptors, factors: None },
        symbols_at,
        rules_at,
    }
}

/// Letters of a name in which a typing error is looked for: shorter names are near many, and for longer ones it would cost the
/// square of their length.
const TYPED: std::ops::RangeInclusive<usize> = 4..=64;

/// Notices terminals of four letters or more that are one letter away from a nonterminal.
fn nearly_nonterminals(grammar: &Grammar, symbols_at: &[Position], notices: &mut Vec<Noticed>) {
    let (nonterminals, terminals) = grammar.symbols.split_at(grammar.n_nonterminals as usize);
    // Lexicons of thousands of whole-word terminals are not typing errors, and would cost a product of sizes.
    if terminals.len() > 1000 {
        return;
    }
    for (terminal, at) in terminals.iter().zip(&symbols_at[nonterminals.len()..]) {
        if !TYPED.contains(&terminal.chars().count()) {
            continue;
        }
        let near = |name: &&String| strsim::damerau_levenshtein(name, terminal) == 1;
        let typed = nonterminals.iter().filter(|name| TYPED.contains(&name.chars().count()));
        if let Some(nearest) = typed.take(1000).find(near) {
            let (name, nearest) = (terminal.clone(), nearest.clone());
            notices.push((*at, NoticeKind::NearlyNonterminal { name, nearest }));
        }
    }
}
