//! Description of a key of the job file: help, range, default and readers.
//!
//! The tables (`tables.rs`) declare each key once. Parsing, checks, the written `job.toml`, `docs/JOB.md` and the tests that set every
//! key for every method are derived from that declaration.

use std::any::Any;
use std::fmt;
use std::ops::Bound;

use serde::de::{Deserializer, Visitor};
use serde::{Deserialize, forward_to_deserialize_any};

use super::Inference;
use super::method::{Estimator, Model, ModelKind, Readers};
use crate::grammar::auto::Auto;

/// Declares a table: a struct that serde reads, its defaults, and its keys.
#[doc(hidden)]
#[macro_export]
macro_rules! table {
    (
        $(#[$doc:meta])* $name:ident = $table:literal;
        $( $(#[doc = $help:literal])+ $key:ident: $type:ty = $default:expr, $rules:expr; )+
    ) => {
        $(#[$doc])*
        #[derive(Clone, PartialEq, Debug, serde::Serialize, serde::Deserialize)]
        #[serde(deny_unknown_fields, default)]
        pub struct $name {
            $( $(#[doc = $help])+ pub $key: $type, )+
        }

        impl Default for $name {
            fn default() -> $name {
                $name { $( $key: $default, )+ }
            }
        }

        impl $name {
            #[doc(hidden)]
            /// Its keys, in the order of the reference.
            pub fn keys() -> Vec<$crate::settings::key::Key> {
                vec![ $( $rules.named($table, stringify!($key), &[$($help),+], $crate::settings::key::values_of::<$type>()), )+ ]
            }

            #[doc(hidden)]
            /// The first key with a number outside its range.
            pub fn out_of_range(&self) -> Option<$crate::settings::key::OutOfRange> {
                $crate::settings::key::out_of_range($name::keys(), &[ $( &self.$key, )+ ])
            }
        }
    };
}

/// What a job has besides its method, as far as it decides which keys have an effect.
pub trait Facts {
    /// The model.
    fn model(&self) -> Model;

    /// Whether it has held-out sentences,
    fn is_held_out(&self) -> bool {
        false
    }

    /// and whether these are a share of its corpus.
    fn is_split(&self) -> bool {
        false
    }

    /// Whether several grammars vote.
    fn has_voters(&self) -> bool {
        false
    }

    /// Whether one of its grammars is made from the corpus and such a one.
    fn has_grammar(&self, _is: fn(Auto) -> bool) -> bool {
        false
    }

    /// Whether its symbols stand between spaces.
    fn has_tokens(&self) -> bool {
        false
    }
}

impl Facts for Model {
    fn model(&self) -> Model {
        *self
    }
}

/// A condition on other keys, without which a key has no effect.
#[derive(Clone, Copy)]
pub struct Need {
    /// The condition, as a phrase after "with".
    pub text: &'static str,
    /// Whether the condition holds for a job with these settings.
    pub holds: fn(&dyn Facts, &Inference) -> bool,
}

/// Range of the numbers of a key.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Range {
    low: Bound<f64>,
    high: Bound<f64>,
}

impl Range {
    /// Whether a number is in the range; NaN never is.
    pub fn contains(&self, number: f64) -> bool {
        (self.low, self.high).contains_number(number)
    }
}

trait ContainsNumber {
    fn contains_number(&self, number: f64) -> bool;
}

impl ContainsNumber for (Bound<f64>, Bound<f64>) {
    fn contains_number(&self, number: f64) -> bool {
        use std::ops::RangeBounds;
        RangeBounds::contains(self, &number)
    }
}

impl fmt::Display for Range {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [low, high] = [self.low, self.high].map(|bound| bound.map(exact));
        match (low, high) {
            (Bound::Included(low), Bound::Included(high)) => write!(out, "from {low} to {high}"),
            (Bound::Included(low), Bound::Excluded(high)) => write!(out, "{low} or more and below {high}"),
            (Bound::Excluded(low), Bound::Included(high)) => write!(out, "above {low} and at most {high}"),
            (Bound::Excluded(low), Bound::Excluded(high)) => write!(out, "above {low} and below {high}"),
            (Bound::Included(low), Bound::Unbounded) => write!(out, "{low} or more"),
            _ => write!(out, "any number"),
        }
    }
}

/// A number outside the range of its key.
pub struct OutOfRange {
    /// The key.
    pub key: Key,
    /// The number.
    pub found: String,
    /// The range.
    pub expected: String,
}

/// The first of some keys whose value, at the same position in `values`, is or lists a number outside its range.
pub fn out_of_range(keys: Vec<Key>, values: &[&dyn Any]) -> Option<OutOfRange> {
    keys.into_iter().zip(values).find_map(|(key, &value)| {
        let range = key.range?;
        let outside = numbers(value).into_iter().find(|&number| !range.contains(number))?;
        Some(OutOfRange { key, found: exact(outside), expected: range.to_string() })
    })
}

/// The numbers of a value that is a number, a pair of numbers or an optional number; none of others.
fn numbers(value: &dyn Any) -> Vec<f64> {
    if let Some(pair) = value.downcast_ref::<[f64; 2]>() {
        return pair.to_vec();
    }
    let number = value.downcast_ref::<f64>().copied();
    let number = number.or_else(|| *value.downcast_ref::<Option<f64>>()?);
    let number = number.or_else(|| value.downcast_ref::<u32>().map(|&number| f64::from(number)));
    let number = number.or_else(|| value.downcast_ref::<u64>().map(|&number| number as f64));
    let number = number.or_else(|| value.downcast_ref::<usize>().map(|&number| number as f64));
    number.into_iter().collect()
}

/// A number with all its digits, short where it is very large or small.
pub fn exact(number: f64) -> String {
    match number.abs() {
        size if size != 0.0 && size.is_finite() && !(1e-7..1e16).contains(&size) => format!("{number:e}"),
        _ => number.to_string(),
    }
}

/// A key of the job file.
#[derive(Clone)]
pub struct Key {
    /// Name of its table, without brackets.
    pub table: &'static str,
    /// Its name.
    pub name: &'static str,
    /// Help text, of a sentence or two.
    pub help: String,
    /// Description of its values.
    pub values: String,
    /// Range of its number, or of each entry of its list; `None`: unlimited.
    pub range: Option<Range>,
    /// The models and estimators that read it.
    pub readers: Readers,
    /// Condition without which it has no effect.
    pub need: Option<Need>,
    /// Whether a job file without it is refused.
    pub required: bool,
    /// Defaults of some kinds of model in place of the general one, as TOML.
    pub defaults: &'static [(ModelKind, &'static str)],
    /// Whether it acts before the rounds: points that differ in it are then prepared apart.
    pub prepares: fn(Model, &Inference) -> bool,
    /// Properties of its value as a path; `None` if the value is no path.
    pub path: Option<PathOf>,
}

/// Properties of a path in the job file.
#[derive(Clone, Copy)]
pub struct PathOf {
    /// Whether the job reads the path, so that it is uploaded with the job.
    pub is_read: bool,
    /// Whether a value is a keyword and not a path.
    pub is_word: fn(&str) -> bool,
}

/// Declaration of a key in a table, besides name, type, help and default.
pub struct Rules(Key);

impl Rules {
    /// Rules of a key with these readers.
    pub fn read_by(readers: Readers) -> Rules {
        Rules(Key {
            table: "",
            name: "",
            help: String::new(),
            values: String::new(),
            range: None,
            readers,
            need: None,
            required: false,
            defaults: &[],
            prepares: |_, _| false,
            path: None,
        })
    }

    /// Limits numbers to `low` to `high`, inclusive.
    pub fn from_to(self, low: f64, high: f64) -> Rules {
        self.range(Bound::Included(low), Bound::Included(high))
    }

    /// Limits numbers to above `low` and at most `high`.
    pub fn above_to(self, low: f64, high: f64) -> Rules {
        self.range(Bound::Excluded(low), Bound::Included(high))
    }

    /// Limits numbers to at least `low` and below `high`.
    pub fn from_below(self, low: f64, high: f64) -> Rules {
        self.range(Bound::Included(low), Bound::Excluded(high))
    }

    /// Limits numbers to above `low` and below `high`.
    pub fn above_below(self, low: f64, high: f64) -> Rules {
        self.range(Bound::Excluded(low), Bound::Excluded(high))
    }

    /// Limits numbers to at least `low`.
    pub fn at_least(self, low: f64) -> Rules {
        self.range(Bound::Included(low), Bound::Unbounded)
    }

    fn range(mut self, low: Bound<f64>, high: Bound<f64>) -> Rules {
        self.0.range = Some(Range { low, high });
        self
    }

    /// Adds a condition without which the key has no effect.
    pub fn with(mut self, need: Need) -> Rules {
        self.0.need = Some(need);
        self
    }

    /// Makes the key required.
    pub fn required(mut self) -> Rules {
        self.0.required = true;
        self
    }

    /// Sets defaults for some kinds of model.
    pub fn defaults(mut self, defaults: &'static [(ModelKind, &'static str)]) -> Rules {
        self.0.defaults = defaults;
        self
    }

    /// Declares that the key has an effect before the rounds if `when` holds.
    pub fn prepares(mut self, when: fn(Model, &Inference) -> bool) -> Rules {
        self.0.prepares = when;
        self
    }

    /// Declares that the value is a file that the job reads, unless it is a keyword.
    pub fn file_unless(mut self, is_word: fn(&str) -> bool) -> Rules {
        self.0.path = Some(PathOf { is_read: true, is_word });
        self
    }

    /// Declares that the value is a folder that the job writes to.
    pub fn folder(mut self) -> Rules {
        self.0.path = Some(PathOf { is_read: false, is_word: |_| false });
        self
    }

    /// A key with its table and name; `help` is its documentation, line by line.
    pub fn named(self, table: &'static str, name: &'static str, help: &[&str], values: String) -> Key {
        let help = help.iter().map(|line| line.trim()).collect::<Vec<_>>().join(" ");
        Key { table, name, help, values, ..self.0 }
    }
}

impl Key {
    /// Dotted path, as in `inference.rho`.
    pub fn path(&self) -> String {
        format!("{}.{}", self.table, self.name)
    }

    /// Whether the model with that estimator reads it.
    pub fn is_read_by(&self, model: Model, estimator: Estimator) -> bool {
        self.readers.iter().any(|(models, by)| models.contains(&model) && by.contains(&estimator))
    }

    /// Description of its readers, with models of the same estimators together.
    pub fn readers_in_words(&self) -> String {
        let estimators = |model: Model| -> Vec<Estimator> {
            model.estimators().iter().copied().filter(|&by| self.is_read_by(model, by)).collect()
        };
        if Model::all().all(|model| estimators(model) == model.estimators()) {
            return "every model and method".to_owned();
        }
        let mut groups: Vec<(Vec<Model>, Vec<Estimator>)> = Vec::new();
        for model in Model::all() {
            let by = estimators(model);
            // Models with all their methods are described together.
            let same = |(models, known): &&mut (Vec<Model>, Vec<Estimator>)| {
                let all = |model: Model, by: &Vec<Estimator>| by == model.estimators();
                *known == by || all(models[0], known) && all(model, &by)
            };
            match groups.iter_mut().find(same) {
                _ if by.is_empty() => {}
                Some((models, _)) => models.push(model),
                None => groups.push((vec![model], by)),
            }
        }
        let part = |(models, by): &(Vec<Model>, Vec<Estimator>)| {
            let names = |names: Vec<&str>| match &names[..] {
                [one] => (*one).to_owned(),
                [others @ .., last] => format!("{} and {last}", others.join(", ")),
                [] => String::new(),
            };
            let of = names(models.iter().map(|model| model.name()).collect());
            if by == models[0].estimators() {
                of
            } else {
                format!("{of} by {}", names(by.iter().map(|by| by.name()).collect()))
            }
        };
        groups.iter().map(part).collect::<Vec<_>>().join("; ")
    }
}

/// Description of the values of a type, from its `Deserialize`.
pub fn values_of<T: for<'de> Deserialize<'de>>() -> String {
    match T::deserialize(Asking) {
        Err(Description(text)) => text,
        Ok(_) => "anything".to_owned(),
    }
}

/// A deserialiser without a value, whose error describes the requested type.
struct Asking;

/// Description of the requested type.
#[derive(Debug)]
struct Description(String);

impl fmt::Display for Description {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.0)
    }
}

impl std::error::Error for Description {}

impl serde::de::Error for Description {
    fn custom<T: fmt::Display>(message: T) -> Description {
        Description(message.to_string())
    }
}

/// A sequence of one entry, to describe the type of a list's entries.
struct OneEntry;

impl<'de> serde::de::SeqAccess<'de> for OneEntry {
    type Error = Description;

    fn next_element_seed<T: serde::de::DeserializeSeed<'de>>(
        &mut self,
        seed: T,
    ) -> Result<Option<T::Value>, Description> {
        seed.deserialize(Asking).map(Some)
    }
}

macro_rules! tells {
    ($($method:ident => $text:literal),+ $(,)?) => {
        $(fn $method<V: Visitor<'de>>(self, _: V) -> Result<V::Value, Description> { Err(Description($text.to_owned())) })+
    };
}

impl<'de> Deserializer<'de> for Asking {
    type Error = Description;

    tells! {
        deserialize_bool => "`true` or `false`",
        deserialize_u32 => "a whole number",
        deserialize_u64 => "a whole number",
        deserialize_f64 => "a number",
        deserialize_str => "text",
        deserialize_string => "text",
        deserialize_any => "a table",
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Description> {
        visitor.visit_some(self)
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Description> {
        visitor.visit_seq(OneEntry).map_err(|Description(entry)| Description(format!("a list, each {entry}")))
    }

    fn deserialize_tuple<V: Visitor<'de>>(self, len: usize, visitor: V) -> Result<V::Value, Description> {
        visitor
            .visit_seq(OneEntry)
            .map_err(|Description(entry)| Description(format!("a list of {len}, each {entry}")))
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        variants: &'static [&'static str],
        _: V,
    ) -> Result<V::Value, Description> {
        let names: Vec<String> = variants.iter().map(|name| format!("`\"{name}\"`")).collect();
        Err(Description(format!("one of {}", names.join(", "))))
    }

    forward_to_deserialize_any! {
        i8 i16 i32 i64 i128 u8 u16 u128 f32 char bytes byte_buf
        unit unit_struct newtype_struct tuple_struct map struct identifier ignored_any
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exact_numbers_are_short_and_read_back() {
        for (number, text) in
            [(1e-300, "1e-300"), (0.25, "0.25"), (0.0, "0"), (1e6, "1000000"), (-2e99, "-2e99")]
        {
            assert_eq!(exact(number), text);
            assert_eq!(text.parse(), Ok(number));
        }
        assert_eq!([f64::NAN, f64::INFINITY].map(exact), ["NaN", "inf"]);
    }
}
