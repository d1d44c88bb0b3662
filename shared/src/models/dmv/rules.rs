//! Rules: soft knowledge of dependency trees, as factors of arcs ([`super::factors`]).
//!
//! A rule says of a class of arcs, or of roots, that trees with them are more or less probable: each multiplies a tree by e^(strength · weight) as
//! often as the tree has such an arc. Five things can be said:
//!
//! ```toml
//! { head = ["VERB"], child = ["NOUN", "PRON"], weight = 1 }                 # an arc by its tags,
//! { head = ["NOUN"], child = ["CCONJ"], side = "left", weight = 1 }         # and by the side of the head that the child is on
//! { leaf = ["DET", "AUX"], weight = -1 }                                    # any child of these tags
//! { root = ["VERB"], weight = 1 }                                           # the tag of the root
//! { longest_arc = 7, weight = -1 }                                          # an arc of more words
//! { across = "punctuation", weight = -0.75 }                                # an arc over removed punctuation
//! ```
//!
//! Lists name tags and classes of tags ([`crate::data::tags::classes`]). The weights of all rules that an arc obeys add up.
//!
//! The built-in rules `ud` say what the guidelines of Universal Dependencies say of the universal tags: function words have no dependents, content
//! words govern, the first verb of a sentence is more often its root than a noun, a conjunction precedes the conjunct that it depends on. They are
//! fitted to no treebank. Naseem, Chen, Barzilay & Johnson (2010) learn with thirteen such rules, as constraints on the expected share of arcs.

use std::fmt;

use serde::de::value::SeqAccessDeserializer;
use serde::de::{Error, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::layout::Side;
use crate::data::tags::classes::{self, ANY, UnknownTags};
use crate::grammar::factors::ArcFactors;

/// A rule and its weight.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(try_from = "Table", into = "Table")]
pub struct Rule {
    /// What it is of.
    pub of: RuleOf,
    /// Its weight, in units of the strength: positive for trees that are more probable.
    pub weight: f64,
}

/// What a rule is of.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum RuleOf {
    /// Arcs from a head to a child.
    Arc {
        /// Tags of the head.
        head: Vec<String>,
        /// Tags of the child.
        child: Vec<String>,
        /// The side of the head that the child is on; `None` for both.
        side: Option<Side>,
    },
    /// Arcs from a head with one of these tags.
    Leaf(Vec<String>),
    /// Roots with one of these tags.
    Root(Vec<String>),
    /// Arcs of more words.
    LongerThan(u32),
    /// Arcs across removed punctuation.
    AcrossPunctuation,
}

/// A rule as it is written.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Table {
    #[serde(skip_serializing_if = "Option::is_none")]
    head: Option<Vec<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    child: Option<Vec<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    side: Option<Side>,
    #[serde(skip_serializing_if = "Option::is_none")]
    leaf: Option<Vec<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    root: Option<Vec<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    longest_arc: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    across: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    weight: Option<f64>,
}

/// Largest absolute weight of a rule.
const MOST: f64 = 10.0;
const PUNCTUATION: &str = "punctuation";

impl TryFrom<Table> for Rule {
    type Error = String;

    fn try_from(table: Table) -> Result<Rule, String> {
        let weight =
            table.weight.ok_or("a rule needs a `weight`, as in { root = [\"VERB\"], weight = 1 }")?;
        if weight.is_nan() || weight.abs() > MOST {
            return Err(format!("the weight of a rule must be from -{MOST} to {MOST}, found {weight}"));
        }
        let of = match table {
            Table { head, child, side, leaf: None, root: None, longest_arc: None, across: None, .. }
                if head.is_some() || child.is_some() =>
            {
                let any = || vec![ANY.to_owned()];
                RuleOf::Arc { head: head.unwrap_or_else(any), child: child.unwrap_or_else(any), side }
            }
            Table {
                head: None,
                child: None,
                side: None,
                leaf: Some(tags),
                root: None,
                longest_arc: None,
                across: None,
                ..
            } => RuleOf::Leaf(tags),
            Table {
                head: None,
                child: None,
                side: None,
                leaf: None,
                root: Some(tags),
                longest_arc: None,
                across: None,
                ..
            } => RuleOf::Root(tags),
            Table {
                head: None,
                child: None,
                side: None,
                leaf: None,
                root: None,
                longest_arc: Some(length),
                across: None,
                ..
            } => RuleOf::LongerThan(length),
            Table {
                head: None,
                child: None,
                side: None,
                leaf: None,
                root: None,
                longest_arc: None,
                across: Some(what),
                ..
            } if what == PUNCTUATION => RuleOf::AcrossPunctuation,
            _ => {
                return Err(format!(
                    "a rule is of one thing: `head`, `child` and `side`, or `leaf`, or `root`, or `longest_arc`, or `across = \"{PUNCTUATION}\"`"
                ));
            }
        };
        Ok(Rule { of, weight })
    }
}

impl From<Rule> for Table {
    fn from(Rule { of, weight }: Rule) -> Table {
        let table = Table { weight: Some(weight), ..Table::default() };
        match of {
            RuleOf::Arc { head, child, side } => {
                Table { head: Some(head), child: Some(child), side, ..table }
            }
            RuleOf::Leaf(tags) => Table { leaf: Some(tags), ..table },
            RuleOf::Root(tags) => Table { root: Some(tags), ..table },
            RuleOf::LongerThan(length) => Table { longest_arc: Some(length), ..table },
            RuleOf::AcrossPunctuation => Table { across: Some(PUNCTUATION.to_owned()), ..table },
        }
    }
}

/// The rules of a job.
#[derive(Clone, PartialEq, Debug, Default)]
pub enum RuleSet {
    /// No rules.
    #[default]
    None,
    /// The built-in rules of universal tags.
    Ud,
    /// These.
    Own(Vec<Rule>),
}

/// Why rules say nothing of some tags.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Unsuited {
    /// A list of a rule names none of them.
    #[error(transparent)]
    Tags(#[from] UnknownTags),
    /// No rule of `ud` has a tag of the corpus.
    #[error(
        "the rules \"ud\" are of universal tags, and the corpus has none; choose the column with corpus.tags, or \"none\""
    )]
    NotUniversal,
    /// Too many lengths.
    #[error("{0} rules with `longest_arc`, expected at most {max}", max = ArcFactors::MOST_LENGTHS)]
    Lengths(usize),
}

impl RuleSet {
    /// The rules.
    pub fn rules(&self) -> Vec<Rule> {
        match self {
            RuleSet::None => Vec::new(),
            RuleSet::Ud => ud(),
            RuleSet::Own(rules) => rules.clone(),
        }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        match self {
            RuleSet::None => true,
            RuleSet::Ud => false,
            RuleSet::Own(rules) => rules.is_empty(),
        }
    }

    /// Their factors on a tag set with this strength; `None` without rules.
    ///
    /// # Errors
    /// [`Unsuited`] if a list names none of `tags`.
    ///
    /// ```
    /// use grammaton::models::dmv::rules::RuleSet;
    ///
    /// let tags = ["DET", "NOUN", "VERB"].map(str::to_owned);
    /// let factors = RuleSet::Ud.factors(&tags, 2.0)?.expect("there are rules");
    /// assert_eq!(factors.roots, [0.0, 1.0, 2.0]);
    /// assert_eq!((factors.arcs[0 * 3 + 1], factors.arcs[2 * 3 + 1]), ([-2.0; 2], [2.0; 2]));
    /// # Ok::<(), grammaton::models::dmv::rules::Unsuited>(())
    /// ```
    pub fn factors(&self, tags: &[String], strength: f64) -> Result<Option<ArcFactors>, Unsuited> {
        if self.is_empty() {
            return Ok(None);
        }
        let n = tags.len();
        let mut factors = ArcFactors::ones(n);
        // Of the built-in rules every corpus has a part of the tags.
        let among = |what: &str, named: &[String]| match self {
            RuleSet::Ud => Ok(tags.iter().map(|tag| named.contains(tag)).collect()),
            _ => classes::among(tags, named, &format!("`{what}` of a rule")),
        };
        for Rule { of, weight } in self.rules() {
            let ln_factor = strength * weight;
            let mut add = |heads: &[bool], children: &[bool], side: Option<Side>| {
                for (head, child) in (0..n).flat_map(|head| (0..n).map(move |child| (head, child))) {
                    for of_side in [Side::Left, Side::Right] {
                        if heads[head] && children[child] && side.is_none_or(|only| only == of_side) {
                            factors.arcs[head * n + child][of_side as usize] += ln_factor;
                        }
                    }
                }
            };
            match of {
                RuleOf::Arc { head, child, side } => {
                    let (heads, children): (Vec<bool>, Vec<bool>) =
                        (among("head", &head)?, among("child", &child)?);
                    add(&heads, &children, side);
                }
                RuleOf::Leaf(tags) => add(&among("leaf", &tags)?, &vec![true; n], None),
                RuleOf::Root(tags) => {
                    let roots: Vec<bool> = among("root", &tags)?;
                    let with_rule = factors.roots.iter_mut().zip(roots).filter(|(_, is_root)| *is_root);
                    with_rule.for_each(|(root, _)| *root += ln_factor);
                }
                RuleOf::LongerThan(length) => factors.longer.push((length, ln_factor)),
                RuleOf::AcrossPunctuation => factors.crossing += ln_factor,
            }
        }
        if factors.longer.len() > ArcFactors::MOST_LENGTHS {
            return Err(Unsuited::Lengths(factors.longer.len()));
        }
        if *self == RuleSet::Ud && factors.arcs.as_flattened().iter().all(|&arc| arc == 0.0) {
            return Err(Unsuited::NotUniversal);
        }
        Ok(Some(factors))
    }
}

/// The built-in rules. `CONJ` is the tag of `CCONJ` in version 1, where a conjunction may depend on the first conjunct.
fn ud() -> Vec<Rule> {
    let tags = |names: &str| names.split(' ').map(str::to_owned).collect();
    let arc = |head: &str, child: &str, side, weight| Rule {
        of: RuleOf::Arc { head: tags(head), child: tags(child), side },
        weight,
    };
    vec![
        Rule { of: RuleOf::Leaf(tags("ADP DET AUX CCONJ CONJ SCONJ PART INTJ PUNCT")), weight: -1.0 },
        arc("VERB", "VERB NOUN PROPN PRON ADV AUX ADP SCONJ PART CCONJ CONJ", None, 1.0),
        arc("NOUN PROPN", "ADJ DET NOUN PROPN NUM ADP CCONJ CONJ", None, 1.0),
        arc("ADJ", "ADV AUX", None, 1.0),
        arc("PRON", "ADP", None, 1.0),
        arc("NOUN PROPN PRON VERB ADJ", "CCONJ", Some(Side::Left), 1.0),
        Rule { of: RuleOf::Root(tags("VERB")), weight: 1.0 },
        Rule { of: RuleOf::Root(tags("NOUN PROPN")), weight: 0.5 },
        Rule { of: RuleOf::AcrossPunctuation, weight: -0.75 },
    ]
}

impl fmt::Display for RuleSet {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RuleSet::None => write!(out, "no rules"),
            RuleSet::Ud => write!(out, "the rules \"ud\""),
            RuleSet::Own(rules) => write!(out, "{} rules", rules.len()),
        }
    }
}

impl Serialize for RuleSet {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            RuleSet::None => serializer.serialize_str("none"),
            RuleSet::Ud => serializer.serialize_str("ud"),
            RuleSet::Own(rules) => rules.serialize(serializer),
        }
    }
}

impl<'de> Deserialize<'de> for RuleSet {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<RuleSet, D::Error> {
        deserializer.deserialize_any(WordOrList)
    }
}

struct WordOrList;

impl<'de> Visitor<'de> for WordOrList {
    type Value = RuleSet;

    fn expecting(&self, out: &mut fmt::Formatter) -> fmt::Result {
        out.write_str("\"none\", \"ud\", or a list of rules")
    }

    fn visit_str<E: Error>(self, word: &str) -> Result<RuleSet, E> {
        match word {
            "none" => Ok(RuleSet::None),
            "ud" => Ok(RuleSet::Ud),
            _ => Err(E::unknown_variant(word, &["none", "ud"])),
        }
    }

    fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> Result<RuleSet, A::Error> {
        Vec::deserialize(SeqAccessDeserializer::new(list)).map(RuleSet::Own)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(json: &str) -> Result<RuleSet, String> {
        serde_json::from_str(json).map_err(|error| error.to_string())
    }

    fn owned(names: &str) -> Vec<String> {
        names.split(' ').map(str::to_owned).collect()
    }

    #[test]
    fn rules_are_read_and_written() {
        let json = r#"[{"head":["VERB"],"child":["any"],"weight":1.0},{"leaf":["DET"],"weight":-1.0},
            {"root":["VERB"],"weight":0.5},{"longest_arc":7,"weight":-1.0},{"across":"punctuation","weight":-0.75}]"#;
        let own = read(json).unwrap();
        assert_eq!(read(&serde_json::to_string(&own).unwrap()), Ok(own.clone()));
        assert_eq!(read(r#"[{"head":["VERB"],"weight":1.0}]"#).unwrap().rules(), own.rules()[..1]);
        for word in ["none", "ud"] {
            let text = format!("{word:?}");
            assert_eq!(serde_json::to_string(&read(&text).unwrap()).unwrap(), text);
        }
        for (json, expected) in [
            (r#""ptb""#, "unknown variant `ptb`, expected `none` or `ud`"),
            (r#"[{"root":["VERB"]}]"#, "a rule needs a `weight`"),
            (r#"[{"root":["VERB"],"weight":11}]"#, "must be from -10 to 10, found 11"),
            (r#"[{"root":["VERB"],"leaf":["DET"],"weight":1}]"#, "a rule is of one thing"),
            (r#"[{"side":"left","weight":1}]"#, "a rule is of one thing"),
            (r#"[{"across":"commas","weight":1}]"#, "a rule is of one thing"),
            (r#"[{"heads":["VERB"],"weight":1}]"#, "unknown field `heads`"),
            ("3", "expected \"none\", \"ud\", or a list of rules"),
        ] {
            let error = read(json).unwrap_err();
            assert!(error.contains(expected), "{error}");
        }
    }

    #[test]
    fn weights_of_all_rules_of_an_arc_add_up() {
        let rules = r#"[{"head":["verb"],"child":["noun"],"weight":1},{"child":["NOUN"],"side":"left","weight":2},
            {"leaf":["NOUN"],"weight":-1},{"root":["any"],"weight":0.5},{"longest_arc":3,"weight":-2},
            {"across":"punctuation","weight":-1}]"#;
        let factors = read(rules).unwrap().factors(&owned("NOUN VERB"), 2.0).unwrap().unwrap();
        assert_eq!(factors.arcs, [[2.0, -2.0], [-2.0, -2.0], [6.0, 2.0], [0.0, 0.0]]);
        assert_eq!((factors.roots, factors.crossing, factors.longer), (vec![1.0; 2], -2.0, vec![(3, -4.0)]));
        assert_eq!(RuleSet::None.factors(&owned("NOUN VERB"), 2.0), Ok(None));
    }

    #[test]
    fn rules_of_other_tags_are_refused() {
        let error = RuleSet::Ud.factors(&owned("NN VBZ"), 2.0).unwrap_err().to_string();
        assert!(error.starts_with("the rules \"ud\" are of universal tags"), "{error}");
        let own = read(r#"[{"leaf":["DT"],"weight":-1}]"#).unwrap();
        let error = own.factors(&owned("NOUN DET"), 2.0).unwrap_err().to_string();
        assert!(error.starts_with("`leaf` of a rule: nothing in [\"DT\"] is a tag"), "{error}");
        assert!(RuleSet::Ud.factors(&owned("NOUN X"), 2.0).unwrap().is_some());
    }
}
