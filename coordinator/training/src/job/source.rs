//! Values that are either a keyword, for something generated or built in, or a file.

use std::fmt;
use std::path::PathBuf;

use grammaton::grammar::auto::{Auto, NAMES};
use serde::de::{self, Deserializer};
use serde::{Deserialize, Serialize, Serializer};

/// Source of the grammar.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum GrammarSource {
    /// Made from the corpus, as `auto:unigram`.
    Auto(Auto),
    /// Chosen by trials among those that are made from the corpus: `auto`.
    Choose,
    /// A file in py-cfg's syntax.
    File(PathBuf),
    /// The rules of a treebank corpus: `auto:treebank`.
    Treebank,
    /// The dependency model over the corpus's tags: `auto:dmv`.
    Dmv,
}

const AUTO: &str = "auto:";
const CHOOSE: &str = "auto";
const TREEBANK: &str = "treebank";
const DMV: &str = "dmv";

impl GrammarSource {
    /// Whether a text is a keyword and not a file.
    pub fn is_word(text: &str) -> bool {
        text == CHOOSE || text.starts_with(AUTO)
    }

    /// Whether it is made from the corpus and `has` holds for it.
    pub fn is_made(&self, has: fn(Auto) -> bool) -> bool {
        self.made().is_some_and(has)
    }

    /// The grammar that is made from the corpus; before the choice, the one that choices have in common.
    pub fn made(&self) -> Option<Auto> {
        match self {
            GrammarSource::Auto(auto) => Some(*auto),
            GrammarSource::Choose => Some(Auto::COLLOC3_SYLLABLE),
            GrammarSource::File(_) | GrammarSource::Treebank | GrammarSource::Dmv => None,
        }
    }
}

impl fmt::Display for GrammarSource {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            GrammarSource::Auto(auto) => write!(out, "{AUTO}{auto}"),
            GrammarSource::Choose => write!(out, "{CHOOSE}"),
            GrammarSource::File(path) => write!(out, "{}", path.display()),
            GrammarSource::Treebank => write!(out, "{AUTO}{TREEBANK}"),
            GrammarSource::Dmv => write!(out, "{AUTO}{DMV}"),
        }
    }
}

impl Serialize for GrammarSource {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for GrammarSource {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<GrammarSource, D::Error> {
        let text = String::deserialize(deserializer)?;
        match text.strip_prefix(AUTO) {
            Some(TREEBANK) => Ok(GrammarSource::Treebank),
            Some(DMV) => Ok(GrammarSource::Dmv),
            Some(name) => {
                let auto = name.parse().map_err(|_| de::Error::unknown_variant(name, &NAMES));
                auto.map(GrammarSource::Auto)
            }
            None if text == CHOOSE => Ok(GrammarSource::Choose),
            None => Ok(GrammarSource::File(text.into())),
        }
    }
}
