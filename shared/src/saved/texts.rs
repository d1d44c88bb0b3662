//! A model for reading: the texts `grammar.txt` and `sticks.tsv`, and the strings that are used most.

use std::fmt::Write as _;
use std::io;

use serde::Serialize;

use super::Model;
use crate::data::corpus::Unit;
use crate::data::treebank::{Rhs, Rule};
use crate::grammar::{Adaptor, Grammar, StickId, SymbolId, syntax};
use crate::models::adaptor::Stick;
use crate::models::logistic_normal::{self, PointEstimate};
use crate::models::{Model as GrammarModel, Params, Trained, latent, pcfg};

/// A string of a nonterminal that has strings ([`Model::strings`]), for display.
///
/// ```
/// use grammaton::{Corpus, Fit, Grammar, Method};
///
/// let grammar: Grammar = "1 1 S --> Word\n1 1 S --> Word S\nWord --> a\nWord --> a b\n".parse()?;
/// let model = Fit::new(&grammar, Method::vb()).run(&Corpus::of_tokens("a b a b a\na b\n")?)?;
/// let words = model.strings("Word", 1).expect("Word is adapted");
/// assert_eq!((words[0].rank, &words[0].string[..]), (1, "a b"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Entry {
    /// Rank, from 1.
    pub rank: usize,
    /// Symbols, joined without spaces if symbols are characters.
    pub string: String,
    /// Expected uses in corpus and strings: γ¹ − 1 + discount.
    pub uses: f64,
    /// Mean of its weight: `E[π]`.
    pub weight: f64,
}

/// A string of a stick with its numbers, as [`Entry`] has them.
struct Ranked {
    rank: usize,
    param: u32,
    uses: f64,
    weight: f64,
}

/// The strings of stick number `at`: of an adaptor grammar in stick order, of a PCFG the used strings.
fn ranked(model: &GrammarModel, at: usize) -> Box<dyn Iterator<Item = Ranked> + '_> {
    match &model.params {
        Params::Adaptor(params) => {
            let stick = &params.sticks[at];
            let atoms = mean_weights(stick).zip(&stick.order).zip(&stick.gamma1).zip(1..);
            Box::new(atoms.map(move |(((weight, param), gamma1), rank)| Ranked {
                rank,
                param: param.0,
                uses: (gamma1 - 1.0 + stick.discount).max(0.0),
                weight,
            }))
        }
        Params::Pcfg(pcfg::Params { estimate, .. }) => {
            let range = model.lexicon.space(&model.grammar).stick(StickId(at as u32));
            let posterior = |param: u32| estimate.alpha[param as usize] + estimate.counts[param as usize];
            let total: f64 = range.clone().map(posterior).sum();
            let used = range.filter(|&param| estimate.counts[param as usize] > LEAST_USE);
            Box::new(used.zip(1..).map(move |(param, rank)| Ranked {
                rank,
                param,
                uses: estimate.counts[param as usize],
                weight: posterior(param) / total,
            }))
        }
        Params::LogisticNormal(_) => Box::new(std::iter::empty()),
    }
}

/// Minimum expected uses of a listed string of a PCFG; most substrings of a corpus have fewer.
const LEAST_USE: f64 = 1e-3;

/// The `limit` strings with the most expected uses, the most used first.
pub fn top(saved: &Model, at: usize, limit: usize) -> Vec<Entry> {
    let Trained::Grammar(model) = &saved.model else { return Vec::new() };
    let mut most: Vec<Ranked> = ranked(model, at).collect();
    most.sort_by(|a, b| b.uses.total_cmp(&a.uses).then(a.rank.cmp(&b.rank)));
    most.truncate(limit);
    most.into_iter().map(spelled(model, at, saved.unit)).collect()
}

/// The strings of the nonterminals whose constituents are segments, as they are printed, with their mean weights.
pub fn segment_weights(model: &GrammarModel, unit: Unit) -> impl Iterator<Item = (&str, String, f64)> {
    let sticks = model.lexicon.sticks.iter().enumerate();
    let of_segments = sticks.filter(|(_, stick)| model.segments.contains(&stick.symbol));
    of_segments.flat_map(move |(at, stick)| {
        let entries = ranked(model, at).map(spelled(model, at, unit));
        entries.map(|Entry { string, weight, .. }| (model.grammar.name(stick.symbol), string, weight))
    })
}

/// Puts the strings of stick number `at` to their numbers.
fn spelled(model: &GrammarModel, at: usize, unit: Unit) -> impl Fn(Ranked) -> Entry + '_ {
    let first = model.lexicon.space(&model.grammar).stick(StickId(at as u32)).start;
    let strings = &model.lexicon.sticks[at].strings;
    move |Ranked { rank, param, uses, weight }| {
        let string = spell(&model.grammar, &strings[(param - first) as usize], unit);
        Entry { rank, string, uses, weight }
    }
}

/// E[π_i] = E[v_i] Π_{j<i} (1 − E[v_j]), the breaks being independent under q; the last break is 1.
fn mean_weights(stick: &Stick) -> impl Iterator<Item = f64> + '_ {
    let last = stick.order.len().saturating_sub(1);
    let mut left = 1.0;
    (0..stick.order.len()).map(move |at| {
        let (one, two) = (stick.gamma1[at], stick.gamma2[at]);
        let share = if at == last { 1.0 } else { one / (one + two) };
        let weight = left * share;
        left *= 1.0 - share;
        weight
    })
}

/// The symbols as text.
pub fn spell(grammar: &Grammar, symbols: &[SymbolId], unit: Unit) -> String {
    let names: Vec<&str> = symbols.iter().map(|&symbol| grammar.name(symbol)).collect();
    names.join(unit.separators().0)
}

/// Writes `sticks.tsv`: every string in use, stick by stick.
pub fn write_sticks(saved: &Model, to: &mut dyn io::Write) -> io::Result<()> {
    writeln!(to, "nonterminal\trank\tstring\tuses\tweight")?;
    let Trained::Grammar(model) = &saved.model else { return Ok(()) };
    for (at, stick) in model.lexicon.sticks.iter().enumerate() {
        let name = model.grammar.name(stick.symbol);
        for Entry { rank, string, uses, weight } in ranked(model, at).map(spelled(model, at, saved.unit)) {
            writeln!(to, "{name}\t{rank}\t{string}\t{uses:.4}\t{weight:.6e}")?;
        }
    }
    Ok(())
}

/// Formats `grammar.txt`: the grammar with its learned hyper-parameters, as a valid grammar file, and in comments the probability
/// of every rule: the estimate of EM and MAP-EM, the posterior mean of other methods; for logistic-normal priors the weight of every rule in decoding; for latent annotations the rules of the treebank,
/// each with its relative frequency.
pub fn grammar_text(model: &Trained) -> String {
    let model = match model {
        Trained::Grammar(model) => model,
        Trained::Treebank(model) => return treebank_text(model),
    };
    let mut grammar = model.grammar.clone();
    let (alpha, heading, probabilities) = match &model.params {
        Params::Adaptor(params) => {
            for stick in &params.sticks {
                grammar.adaptors[stick.symbol.index()] = Some(Adaptor {
                    discount: Some(stick.discount),
                    concentration: Some(stick.concentration),
                });
            }
            let mut totals = vec![0.0; grammar.n_nonterminals as usize];
            for (rule, tau) in grammar.rules.iter().zip(&params.tau) {
                totals[rule.parent.index()] += tau;
            }
            let means = grammar.rules.iter().zip(&params.tau);
            let means = means.map(|(rule, tau)| tau / totals[rule.parent.index()]);
            (params.alpha.clone(), MEANS, means.collect::<Vec<f64>>())
        }
        Params::Pcfg(params) => {
            let heading = if params.is_point { "Probability of each rule" } else { MEANS };
            let alpha = params.estimate.alpha[grammar.space().rules()].to_vec();
            (alpha, heading, params.rule_probabilities(&grammar))
        }
        Params::LogisticNormal(params) => return syntax::print(&grammar) + &weights_text(&grammar, params),
    };
    for (rule, &alpha) in grammar.rules.iter_mut().zip(&alpha) {
        rule.alpha = alpha;
    }
    let mut text = format!("{}\n# {heading}:\n", syntax::print(&grammar));
    for (rule, probability) in grammar.rules.iter().zip(probabilities) {
        let children: Vec<&str> = rule.children.iter().map(|&child| grammar.name(child)).collect();
        let parent = grammar.name(rule.parent);
        writeln!(text, "# {probability:.6e} {parent} --> {}", children.join(" "))
            .expect("a string takes all text");
    }
    text
}

const MEANS: &str = "Mean probability of each rule";

/// Weights of all rules with logistic-normal priors.
fn weights_text(grammar: &Grammar, params: &logistic_normal::Params) -> String {
    let mut text = String::from(match params.estimate {
        PointEstimate::Softmax => "\n# Probability of each rule, softmax(μ):\n",
        PointEstimate::Raw => "\n# Weight of each rule, e^μ:\n",
    });
    let weights = params.decoding_weights(grammar);
    for (rule, weight) in grammar.rules.iter().zip(&weights[grammar.space().rules()]) {
        let children: Vec<&str> = rule.children.iter().map(|&child| grammar.name(child)).collect();
        let (weight, parent) = (weight.to_f64(), grammar.name(rule.parent));
        writeln!(text, "# {weight:.6e} {parent} --> {}", children.join(" "))
            .expect("a string takes all text");
    }
    text
}

/// The rules of a treebank. They are not a valid grammar file, since a word may have the name of a label.
fn treebank_text(model: &latent::parse::Model) -> String {
    let rules = &model.rules;
    let n = model.n_subtypes;
    let mut text = format!("# Every label has {n} subtypes, so each line is a block of rules.\n");
    for (Rule { parent, right }, frequency) in rules.rules.iter().zip(rules.relative_frequencies()) {
        let children: Vec<&str> = match right {
            Rhs::Lexical(word) => vec![&rules.words[word.0 as usize]],
            Rhs::Binary(..) | Rhs::Unary(_) => {
                right.labels().map(|label| rules.labels[label.index()].as_str()).collect()
            }
        };
        let parent = &rules.labels[parent.index()];
        writeln!(text, "{frequency:.6e} {parent} --> {}", children.join(" "))
            .expect("a string takes all text");
    }
    text
}
