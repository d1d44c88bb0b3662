//! The model folder: `model.bin`, which `parse` loads ([`grammaton::saved`]), and the texts `grammar.txt` and `sticks.tsv`.

use std::fmt::Write as _;
use std::io;

use grammaton::data::corpus::Unit;
use grammaton::data::treebank::{Rhs, Rule};
use grammaton::grammar::{Adaptor, Grammar, StickId, SymbolId, syntax};
use grammaton::models::adaptor::Stick;
use grammaton::models::logistic_normal::{self, PointEstimate};
use grammaton::models::{Model, Params, Trained, latent, pcfg};
pub use grammaton::saved::{ModelError, SEAL, SavedModel, parameters_sha256};
use serde::Serialize;

/// A string of a stick, for display.
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
fn ranked(model: &Model, at: usize) -> Box<dyn Iterator<Item = Ranked> + '_> {
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
pub fn top(saved: &SavedModel, at: usize, limit: usize) -> Vec<Entry> {
    let Trained::Grammar(model) = &saved.model else { return Vec::new() };
    let mut most: Vec<Ranked> = ranked(model, at).collect();
    most.sort_by(|a, b| b.uses.total_cmp(&a.uses).then(a.rank.cmp(&b.rank)));
    most.truncate(limit);
    most.into_iter().map(spelled(model, at, saved.unit)).collect()
}

/// The strings of the nonterminals whose constituents are segments, as they are printed, with their mean weights.
pub fn segment_weights(model: &Model, unit: Unit) -> impl Iterator<Item = (&str, String, f64)> {
    let sticks = model.lexicon.sticks.iter().enumerate();
    let of_segments = sticks.filter(|(_, stick)| model.segments.contains(&stick.symbol));
    of_segments.flat_map(move |(at, stick)| {
        let entries = ranked(model, at).map(spelled(model, at, unit));
        entries.map(|Entry { string, weight, .. }| (model.grammar.name(stick.symbol), string, weight))
    })
}

/// Puts the strings of stick number `at` to their numbers.
fn spelled(model: &Model, at: usize, unit: Unit) -> impl Fn(Ranked) -> Entry + '_ {
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
pub fn write_sticks(saved: &SavedModel, to: &mut dyn io::Write) -> io::Result<()> {
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

#[cfg(test)]
pub(crate) mod tests {
    use std::path::Path;

    use grammaton::data::corpus::{Cleaning, Format, Marks, Normalise};
    use grammaton::data::treebank::{Classes, Treebank};
    use grammaton::decoding::Decoding;
    use grammaton::grammar::ParamId;
    use grammaton::grammar::Rule;
    use grammaton::grammar::lexicon::Lexicon;
    use grammaton::grammar::lexicon::StickStrings;
    use grammaton::grammar::tree::Tree;
    use grammaton::models::adaptor;
    use grammaton::models::decode::Decoder;
    use grammaton::models::logistic_normal::Prior;

    use super::*;

    /// The grammar S → Word | Word S over the letters a and b, with three words.
    pub(crate) fn small() -> SavedModel {
        let symbol = SymbolId;
        let rule = |parent: u32, children: &[u32]| Rule {
            parent: symbol(parent),
            children: children.iter().map(|&at| symbol(at)).collect(),
            alpha: 1.0,
        };
        let grammar = Grammar {
            symbols: ["Sentence", "Word", "Phon", "a", "b"].map(str::to_owned).to_vec(),
            n_nonterminals: 3,
            rules: vec![
                rule(0, &[1]),
                rule(0, &[1, 0]),
                rule(1, &[2]),
                rule(1, &[2, 1]),
                rule(2, &[3]),
                rule(2, &[4]),
            ],
            adaptors: vec![None, Some(Adaptor::default()), None],
        };
        let strings = [vec![3], vec![3, 4], vec![4, 4, 3]];
        let strings = strings
            .map(|string: Vec<u32>| string.into_iter().map(symbol).collect::<Vec<_>>())
            .iter()
            .collect();
        let stick = Stick {
            symbol: symbol(1),
            order: vec![ParamId(8), ParamId(7), ParamId(9)],
            gamma1: vec![7.5, 3.5, 1.5],
            gamma2: vec![7.5, 3.5, 1.0],
            discount: 0.5,
            concentration: 1.0,
        };
        let (tau, alpha) = (vec![1.0, 3.0, 1.0, 1.0, 1.0, 1.0], vec![1.0; 6]);
        let params = Params::Adaptor(adaptor::Params { tau, alpha, sticks: vec![stick] });
        let lexicon = Lexicon { sticks: vec![StickStrings { symbol: symbol(1), strings }] };
        SavedModel {
            unit: Unit::Char,
            format: Format::Segmented,
            cleaning: Cleaning::default(),
            model: Trained::Grammar(Model { grammar, lexicon, params, segments: vec![symbol(1)] }),
            corrections: None,
        }
    }

    /// The grammar S → A | A S over the letters a and b, with one rule of A for each letter.
    fn normal() -> SavedModel {
        let text = "1 1 S --> A\n1 1 S --> A S\n1 1 A --> a\n1 1 A --> b\n";
        let (grammar, _) = syntax::parse(text, "g").unwrap();
        let prior = |mean: [f64; 2], variances: [f64; 2], covariance| {
            Prior::new(mean.to_vec(), vec![variances[0], covariance, covariance, variances[1]]).unwrap()
        };
        let priors = vec![prior([0.5, 0.5], [1.0, 1.0], 0.5), prior([0.0, -2.0], [0.25, 4.0], 0.0)];
        let params = Params::LogisticNormal(logistic_normal::Params { priors, estimate: PointEstimate::Raw });
        let model = Model { grammar, lexicon: Lexicon::default(), params, segments: Vec::new() };
        SavedModel {
            unit: Unit::Token,
            format: Format::Tokens,
            cleaning: Cleaning::default(),
            model: Trained::Grammar(model),
            corrections: None,
        }
    }

    /// A saved model that is one of a grammar.
    pub(crate) trait OfGrammar {
        /// The model.
        fn of_grammar(&mut self) -> &mut Model;
    }

    impl OfGrammar for SavedModel {
        fn of_grammar(&mut self) -> &mut Model {
            match &mut self.model {
                Trained::Grammar(model) => model,
                Trained::Treebank(_) => panic!("a model of a treebank"),
            }
        }
    }

    /// Two subtypes of each label of two trees.
    fn of_treebank() -> latent::parse::Model {
        let trees = ["(ROOT (S (N a) (V b)))", "(ROOT (N a))"].map(|text| Tree::parse(text).unwrap());
        let Treebank { rules, vocabulary, chains, .. } = Treebank::new(&trees, 0, Classes::Generic);
        let weights = vec![0.5; latent::Layout::new(&rules, 2).n_params()];
        latent::parse::Model { rules, vocabulary, chains, n_subtypes: 2, weights }
    }

    fn priors(model: &mut Model) -> &mut logistic_normal::Params {
        match &mut model.params {
            Params::LogisticNormal(params) => params,
            _ => panic!("no logistic-normal priors"),
        }
    }

    fn sticks(model: &mut Model) -> &mut adaptor::Params {
        match &mut model.params {
            Params::Adaptor(params) => params,
            _ => panic!("not an adaptor grammar"),
        }
    }

    fn refusal(bytes: &[u8]) -> String {
        SavedModel::from_bytes(bytes, Path::new("model.bin")).unwrap_err().to_string()
    }

    #[test]
    fn saved_models_load() {
        let cleaning = Cleaning {
            normalise: Normalise::Nfkc,
            lowercase: true,
            punctuation: Marks::Boundary,
            digraphs: vec!["sh".to_owned()],
        };
        let cleaned = SavedModel { unit: Unit::Grapheme, cleaning, ..small() };
        for saved in [small(), normal(), cleaned] {
            let loaded = SavedModel::from_bytes(&saved.to_bytes(), Path::new("model.bin")).unwrap();
            assert_eq!(loaded, saved);
        }
    }

    #[test]
    fn models_are_written_as_they_always_were() {
        let golden: [(SavedModel, &[u8]); 2] = [
            (small(), include_bytes!("../tests/golden/model-4.bin")),
            (normal(), include_bytes!("../tests/golden/model-4-logistic-normal.bin")),
        ];
        for (saved, golden) in golden {
            assert_eq!(SavedModel::from_bytes(golden, Path::new("model.bin")).unwrap(), saved);
            assert_eq!(saved.to_bytes(), golden);
        }
    }

    #[test]
    fn a_model_of_a_treebank_is_written_with_a_grammar_that_nothing_reads() {
        let latent = of_treebank();
        let written = |grammar: Grammar| {
            let fields = (Unit::Token, Format::Tokens, grammar, Lexicon::default(), 2u32, &latent, [0u64; 1]);
            let no_corrections = 0u8;
            let fields = (Cleaning::default(), fields, no_corrections);
            SEAL.close(&bincode::serde::encode_to_vec(fields, bincode::config::legacy()).unwrap())
        };
        let model = Trained::Treebank(latent.clone());
        let saved = SavedModel::new(model, Format::Tokens, Unit::Token, Cleaning::default());
        assert_eq!(saved.to_bytes(), written(latent::grammar_in_formats()));
        assert_eq!(SavedModel::from_bytes(&saved.to_bytes(), Path::new("model.bin")).unwrap(), saved);
        let other = refusal(&written(small().of_grammar().grammar.clone()));
        assert!(other.contains("the model of a treebank has a grammar"), "{other}");
    }

    #[test]
    #[ignore = "writes what the tests above read"]
    fn by_hand_write_golden() {
        let path = format!("{}/tests/golden/model-{}", env!("CARGO_MANIFEST_DIR"), SEAL.version);
        std::fs::write(path.clone() + ".bin", small().to_bytes()).unwrap();
        std::fs::write(path + "-logistic-normal.bin", normal().to_bytes()).unwrap();
    }

    #[test]
    fn every_cut_and_every_flipped_byte_is_refused() {
        let bytes = small().to_bytes();
        for length in 0..bytes.len() {
            refusal(&bytes[..length]);
        }
        for at in 0..bytes.len() {
            let mut bytes = bytes.clone();
            bytes[at] ^= 0x40;
            refusal(&bytes);
        }
    }

    #[test]
    fn refusals_name_the_reason() {
        let bytes = small().to_bytes();
        assert!(refusal(b"PK\x03\x04 something else").contains("not a model file"));
        assert!(refusal(&bytes[..bytes.len() - 1]).contains("cut short"));
        let mut longer = bytes.clone();
        longer.push(0);
        assert!(refusal(&longer).contains("1 bytes too many"));
        let mut newer = bytes.clone();
        newer[8] = 9;
        assert!(refusal(&newer).contains("format 9 is newer than this build reads (4)"));
        let mut damaged = bytes;
        damaged[grammaton::sealed::HEADER + 9] ^= 1;
        assert!(refusal(&damaged).contains("checksum"));
    }

    #[test]
    fn inconsistent_model_is_refused_even_with_a_good_checksum() {
        let mut saved = small();
        sticks(saved.of_grammar()).sticks[0].order[0] = ParamId(99);
        assert!(refusal(&saved.to_bytes()).contains("a stick has a string it lacks"));
    }

    #[test]
    fn numbers_and_symbols_that_make_no_model_are_refused_even_with_a_good_checksum() {
        type Edit = fn(&mut Model);
        let edits: [(&str, Edit); 9] = [
            ("a rule has no weight", |model| sticks(model).tau[0] = f64::NAN),
            ("a rule has no weight", |model| sticks(model).alpha[1] = 0.0),
            ("a stick has a string twice", |model| sticks(model).sticks[0].order[0] = ParamId(7)),
            ("a string of a stick has no weight", |model| sticks(model).sticks[0].gamma1[2] = -1.0),
            ("a string of a stick has no weight", |model| sticks(model).sticks[0].gamma2[0] = f64::INFINITY),
            ("a stick has no prior", |model| sticks(model).sticks[0].discount = 1.0),
            ("a stick has no prior", |model| sticks(model).sticks[0].concentration = -0.5),
            ("not of the grammar's terminals", |model| {
                model.lexicon.sticks[0].strings.push(&[SymbolId(0)]);
            }),
            ("segments are not nonterminals", |model| model.segments[0] = SymbolId(3)),
        ];
        for (why, edit) in edits {
            let mut saved = small();
            edit(saved.of_grammar());
            let refusal = refusal(&saved.to_bytes());
            assert!(refusal.contains(why), "{refusal}, expected {why}");
        }
    }

    #[test]
    fn entries_show_uses_and_mean_weights() {
        let rows = top(&small(), 0, 10);
        let rows: Vec<_> = rows.iter().map(|e| (e.string.as_str(), e.uses, e.weight)).collect();
        assert_eq!(rows, [("ab", 7.0, 0.5), ("a", 3.0, 0.25), ("bba", 1.0, 0.25)]);
        let mut sticks = Vec::new();
        write_sticks(&small(), &mut sticks).unwrap();
        assert!(String::from_utf8(sticks).unwrap().contains("\nWord\t1\tab\t7.0000\t5.000000e-1\n"));
    }

    #[test]
    fn grammar_text_is_a_grammar() {
        let text = grammar_text(&small().model);
        let (grammar, _) = syntax::parse(&text, "grammar.txt").unwrap();
        assert_eq!(grammar.symbols, small().of_grammar().grammar.symbols);
        assert_eq!(grammar.adaptors[1], Some(Adaptor { discount: Some(0.5), concentration: Some(1.0) }));
        assert!(text.contains("# 2.500000e-1 Sentence --> Word\n"));
    }

    #[test]
    fn weights_of_logistic_normal_priors_are_described() {
        let mut saved = normal();
        let text = grammar_text(&saved.model);
        let (grammar, _) = syntax::parse(&text, "grammar.txt").unwrap();
        assert_eq!(grammar, saved.of_grammar().grammar);
        let weights = "\n# Weight of each rule, e^μ:\n# 1.648721e0 S --> A\n# 1.648721e0 S --> A S\n\
            # 1.000000e0 A --> a\n# 1.353353e-1 A --> b\n";
        assert!(text.ends_with(weights), "{text}");
        priors(saved.of_grammar()).estimate = PointEstimate::Softmax;
        let text = grammar_text(&saved.model);
        let weights = "\n# Probability of each rule, softmax(μ):\n# 5.000000e-1 S --> A\n# 5.000000e-1 S --> A S\n\
            # 8.807971e-1 A --> a\n# 1.192029e-1 A --> b\n";
        assert!(text.ends_with(weights), "{text}");
        priors(saved.of_grammar()).priors.truncate(1);
        assert!(refusal(&saved.to_bytes()).contains("1 priors, expected 2"));
    }

    #[test]
    fn digest_sees_every_parameter_and_the_order_of_strings() {
        let saved = small();
        let digest = parameters_sha256(&saved.model);
        assert_eq!(digest.len(), 64);
        assert_eq!(digest, parameters_sha256(&saved.model.clone()));
        let change = |edit: &dyn Fn(&mut Model)| {
            let mut other = saved.clone();
            edit(other.of_grammar());
            parameters_sha256(&other.model)
        };
        assert_ne!(digest, change(&|m| sticks(m).tau[0] = 1.0 + f64::EPSILON));
        assert_ne!(digest, change(&|m| sticks(m).sticks[0].order.swap(0, 1)));
        assert_ne!(digest, change(&|m| sticks(m).sticks[0].discount = 0.25));
        let (saved, mut other) = (normal(), normal());
        priors(other.of_grammar()).priors[1] = Prior::independent(vec![0.0, -2.0]).unwrap();
        assert_ne!(parameters_sha256(&saved.model), parameters_sha256(&other.model));
    }

    fn segmentation(decoder: Decoder, sentence: &str, closed: bool) -> Option<Vec<u32>> {
        let model = small().of_grammar().clone();
        let letter = |letter: char| model.grammar.symbol(&letter.to_string()).unwrap();
        let tokens: Vec<SymbolId> = sentence.chars().map(letter).collect();
        let decoded = Decoding::new(model, decoder, true, closed).all(&[Some(tokens)]).unwrap().remove(0);
        decoded.map(|decoded| decoded.segmentations[0].clone())
    }

    #[test]
    fn learned_strings_are_preferred() {
        for decoder in [Decoder::Viterbi, Decoder::Mbr, Decoder::MbrTree] {
            assert_eq!(segmentation(decoder, "ababbbaa", true), Some(vec![2, 4, 7, 8]));
        }
    }

    #[test]
    fn sentence_that_needs_new_strings_gets_them() {
        assert_eq!(segmentation(Decoder::Viterbi, "abbb", true), None);
        let ends = segmentation(Decoder::Viterbi, "abbb", false).unwrap();
        assert_eq!(ends.last(), Some(&4));
    }
}
