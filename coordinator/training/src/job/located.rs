//! TOML values with their locations, for error messages.
//!
//! In: the text of a job file, and `--set key=value` overrides. Out: a tree of [`Node`]s which serde reads like
//! any other format. The error type keeps what serde reports (the unknown key and the known keys, what was
//! expected and what was found); the location and the path of the value are added where the error passes its node.

use std::collections::BTreeMap;
use std::collections::btree_map;
use std::fmt;

use basics::nearest::nearest;
use serde::de::value::StringDeserializer;
use serde::de::{self, DeserializeSeed, Deserializer, Expected, IntoDeserializer, Unexpected, Visitor};
use serde::forward_to_deserialize_any;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// A value with its location.
#[derive(Clone, Debug)]
pub struct Node {
    /// The value.
    pub value: Value,
    /// Location: `job.toml:7:3`, or `--set inference.rho=2`.
    pub place: String,
    /// Dotted path from the root; empty at the root.
    pub path: String,
    /// Text after `--set key=`, which is the value if a string is expected.
    raw: Option<String>,
}

/// A TOML value. Dates are read as strings.
#[derive(Clone, Debug)]
pub enum Value {
    /// `true` or `false`.
    Boolean(bool),
    /// A whole number; wider than TOML's, so that an error can show a number that is too large.
    Integer(i128),
    /// A number with a point or an exponent.
    Float(f64),
    /// Text.
    String(String),
    /// A list.
    Array(Vec<Node>),
    /// Values by key, with the location of each key.
    Table(BTreeMap<String, (String, Node)>),
}

impl Value {
    /// The value without locations.
    pub fn plain(&self) -> toml::Value {
        match self {
            Value::Boolean(value) => toml::Value::Boolean(*value),
            Value::Integer(value) => i64::try_from(*value)
                .map_or_else(|_| toml::Value::String(value.to_string()), toml::Value::Integer),
            Value::Float(value) => toml::Value::Float(*value),
            Value::String(value) => toml::Value::String(value.clone()),
            Value::Array(items) => toml::Value::Array(items.iter().map(|item| item.value.plain()).collect()),
            Value::Table(entries) => toml::Value::Table(
                entries.iter().map(|(key, (_, node))| (key.clone(), node.value.plain())).collect(),
            ),
        }
    }

    /// Formats the value for messages: numbers in their shortest form, text without quotes.
    pub fn text(&self) -> String {
        match self {
            Value::Float(value) if *value != 0.0 && !(1e-3..1e6).contains(&value.abs()) => {
                format!("{value:e}")
            }
            Value::Float(value) => value.to_string(),
            Value::String(value) => value.clone(),
            other => other.plain().to_string(),
        }
    }
}

/// Error of a job, with its location.
#[derive(Clone, PartialEq, Debug)]
pub struct Fault {
    place: Option<String>,
    path: String,
    problem: Problem,
}

/// The problem with a value.
#[derive(Clone, PartialEq, Debug)]
pub enum Problem {
    /// The text is not TOML.
    Syntax(String),
    /// The text after `--set` does not name a key and its value.
    Assignment(String),
    /// A key that the table does not have.
    UnknownKey {
        /// The word in the file.
        key: String,
        /// The known words.
        known: Vec<&'static str>,
    },
    /// A required key is missing.
    MissingKey(&'static str),
    /// A word outside the set of choices.
    UnknownName {
        /// The word in the file.
        found: String,
        /// The known words.
        known: Vec<&'static str>,
    },
    /// A value of the wrong type, or outside its range.
    Mismatch {
        /// Description of the value found.
        found: String,
        /// Description of the expected value.
        expected: String,
    },
    /// A key that nothing reads in this job.
    Unread {
        /// Model and estimator of the job.
        by: String,
        /// Models and estimators that read the key.
        readers: String,
    },
    /// Any other problem.
    Other(String),
}

impl Fault {
    /// The error without its location, for a job that is not of a file.
    pub fn without_place(self) -> Fault {
        Fault { place: None, ..self }
    }

    /// Error of the value at `node`.
    pub fn new(node: &Node, problem: Problem) -> Fault {
        Fault { place: Some(node.place.clone()), path: node.path.clone(), problem }
    }

    /// Error of a whole file.
    pub fn whole(name: &str, message: String) -> Fault {
        Fault { place: Some(name.to_owned()), path: String::new(), problem: Problem::Other(message) }
    }

    fn of(problem: Problem) -> Fault {
        Fault { place: None, path: String::new(), problem }
    }

    /// Adds a location unless there is one already.
    fn at(mut self, place: &str, path: &str) -> Fault {
        if self.place.is_none() {
            self.place = Some(place.to_owned());
            self.path = path.to_owned();
        }
        self
    }
}

fn way_out(found: &str, known: &[&'static str], what: &str) -> String {
    match nearest(found, known.iter().copied()) {
        Some(name) => format!("did you mean \"{name}\"?"),
        None => format!("{what}: {}", known.join(", ")),
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(place) = &self.place {
            write!(out, "{place}: ")?;
        }
        match &self.problem {
            Problem::Syntax(message) => write!(out, "not valid TOML: {message}"),
            Problem::Assignment(message) => out.write_str(message),
            Problem::UnknownKey { key, known } if self.path.is_empty() => {
                write!(out, "unknown table [{key}]; {}", way_out(key, known, "the tables are"))
            }
            Problem::UnknownKey { key, known } => {
                let way_out = way_out(key, known, "the keys are");
                write!(out, "unknown key \"{key}\" in [{}]; {way_out}", self.path)
            }
            Problem::MissingKey(key) if self.path.is_empty() => write!(out, "table [{key}] is missing"),
            Problem::MissingKey(key) => write!(out, "[{}] lacks the key \"{key}\"", self.path),
            Problem::UnknownName { found, known } => {
                let way_out = way_out(found, known, "the choices are");
                write!(out, "unknown {} \"{found}\"; {way_out}", self.path)
            }
            Problem::Mismatch { found, expected } => {
                write!(out, "{} must be {expected}, found {found}", self.path)
            }
            Problem::Unread { by, readers } => {
                write!(out, "{} is not read in this job ({by}), only by {readers}; leave it out", self.path)
            }
            Problem::Other(message) if self.path.is_empty() => out.write_str(message),
            Problem::Other(message) => write!(out, "{}: {message}", self.path),
        }
    }
}

impl std::error::Error for Fault {}

/// Replaces serde's names of Rust types by descriptions for users.
fn in_words(expected: &dyn Expected) -> String {
    let expected = expected.to_string();
    match expected.as_str() {
        "u8" | "u16" | "u32" | "u64" | "usize" => "a whole number, 0 or more".to_owned(),
        "f32" | "f64" => "a number".to_owned(),
        "a boolean" => "true or false".to_owned(),
        "a sequence" => "a list".to_owned(),
        "a map" => "a table".to_owned(),
        struct_name if struct_name.starts_with("struct ") => "a table".to_owned(),
        _ => expected,
    }
}

fn found_in_words(found: Unexpected<'_>) -> String {
    match found {
        Unexpected::Bool(value) => value.to_string(),
        Unexpected::Unsigned(value) => value.to_string(),
        Unexpected::Signed(value) => value.to_string(),
        Unexpected::Float(value) => value.to_string(),
        Unexpected::Str(value) => format!("\"{value}\""),
        Unexpected::Seq => "a list".to_owned(),
        Unexpected::Map => "a table".to_owned(),
        other => other.to_string(),
    }
}

impl de::Error for Fault {
    fn custom<T: fmt::Display>(message: T) -> Fault {
        Fault::of(Problem::Other(message.to_string()))
    }

    fn invalid_type(found: Unexpected<'_>, expected: &dyn Expected) -> Fault {
        Fault::of(Problem::Mismatch { found: found_in_words(found), expected: in_words(expected) })
    }

    fn invalid_value(found: Unexpected<'_>, expected: &dyn Expected) -> Fault {
        de::Error::invalid_type(found, expected)
    }

    fn unknown_variant(found: &str, known: &'static [&'static str]) -> Fault {
        Fault::of(Problem::UnknownName { found: found.to_owned(), known: known.to_vec() })
    }

    fn unknown_field(key: &str, known: &'static [&'static str]) -> Fault {
        Fault::of(Problem::UnknownKey { key: key.to_owned(), known: known.to_vec() })
    }

    fn missing_field(key: &'static str) -> Fault {
        Fault::of(Problem::MissingKey(key))
    }
}

impl Node {
    /// Reads a TOML document; `name` is the file's name in locations.
    pub fn document(text: &str, name: &str) -> Result<Node, Fault> {
        let lines = Lines::of(text);
        let place = |at: usize| {
            let (line, column) = lines.place(at);
            format!("{name}:{line}:{column}")
        };
        let table = DeTable::parse(text).map_err(|error| {
            let at = error.span().map_or(0, |span| span.start);
            Fault { place: Some(place(at)), path: String::new(), problem: syntax(&error) }
        })?;
        let mut root = Node::new(DeValue::Table(table.into_inner()), 0, String::new(), &place);
        root.place = name.to_owned();
        Ok(root)
    }

    /// Whether the value was given on the command line.
    pub fn is_override(&self) -> bool {
        self.raw.is_some()
    }

    /// Number of values, including itself and all below it.
    pub fn n_values(&self) -> usize {
        1 + match &self.value {
            Value::Array(items) => items.iter().map(Node::n_values).sum(),
            Value::Table(entries) => entries.values().map(|(_, node)| node.n_values()).sum(),
            _ => 0,
        }
    }

    /// A table without entries.
    pub fn empty() -> Node {
        let value = Value::Table(BTreeMap::new());
        Node { value, place: String::new(), path: String::new(), raw: None }
    }

    /// Parses `key.key=value` and sets the value. The value is TOML, or else a string. `full` completes the name of a key without its table,
    /// for the message.
    pub fn set(&mut self, assignment: &str, full: impl Fn(&str) -> Option<String>) -> Result<(), Fault> {
        let place = format!("--set {assignment}");
        let fail = |message: &str| Fault {
            place: Some(place.clone()),
            path: String::new(),
            problem: Problem::Assignment(message.to_owned()),
        };
        let (path, raw) = assignment
            .split_once('=')
            .ok_or_else(|| fail("no value; write key=value, as in inference.seed=2"))?;
        let (path, raw) = (path.trim(), raw.trim());
        let mut node = match DeValue::parse(raw) {
            Ok(value) => Node::new(value.into_inner(), 0, path.to_owned(), &|_| place.clone()),
            Err(_) => Node {
                value: Value::String(raw.to_owned()),
                place: place.clone(),
                path: path.to_owned(),
                raw: None,
            },
        };
        node.raw = Some(raw.to_owned());
        let keys: Vec<&str> = path.split('.').map(str::trim).collect();
        if keys.len() < 2 || keys.iter().any(|key| key.is_empty()) {
            let meant = full(path).map(|full| format!("{path} is a key of a table: write {full}={raw}"));
            let meant = meant.unwrap_or_else(|| "write table.key=value, as in inference.seed=2".to_owned());
            return Err(fail(&meant));
        }
        self.put(&keys, node).map_err(|depth| fail(&format!("{} is not a table", keys[..depth].join("."))))
    }

    /// Sets the node at `keys`; an error is the number of keys up to the one that is not a table.
    pub fn put(&mut self, keys: &[&str], node: Node) -> Result<(), usize> {
        let mut at = self;
        for (depth, &key) in keys.iter().enumerate() {
            let Value::Table(entries) = &mut at.value else { return Err(depth) };
            let (_, entry) = entries.entry(key.to_owned()).or_insert_with(|| {
                let (path, place) = (keys[..=depth].join("."), node.place.clone());
                let value = Value::Table(BTreeMap::new());
                (place.clone(), Node { value, place, path, raw: None })
            });
            at = entry;
        }
        *at = node;
        Ok(())
    }

    /// The node at dotted keys.
    pub fn find(&self, path: &str) -> Option<&Node> {
        path.split('.').try_fold(self, |node, key| match &node.value {
            Value::Table(entries) => entries.get(key).map(|(_, node)| node),
            _ => None,
        })
    }

    /// The node at dotted keys, mutable.
    pub fn find_mut(&mut self, path: &str) -> Option<&mut Node> {
        path.split('.').try_fold(self, |node, key| match &mut node.value {
            Value::Table(entries) => entries.get_mut(key).map(|(_, node)| node),
            _ => None,
        })
    }

    /// The text, if the value is a string.
    pub fn string(&self) -> Option<&str> {
        match &self.value {
            Value::String(text) => Some(text),
            _ => None,
        }
    }

    fn new(value: DeValue<'_>, at: usize, path: String, place: &dyn Fn(usize) -> String) -> Node {
        let value = match value {
            DeValue::String(text) => Value::String(text.into_owned()),
            DeValue::Integer(digits) => i128::from_str_radix(digits.as_str(), digits.radix())
                .map_or_else(|_| Value::String(digits.to_string()), Value::Integer),
            DeValue::Float(digits) => {
                digits.as_str().parse().map_or_else(|_| Value::String(digits.to_string()), Value::Float)
            }
            DeValue::Boolean(value) => Value::Boolean(value),
            DeValue::Datetime(date) => Value::String(date.to_string()),
            DeValue::Array(items) => Value::Array(
                items.into_iter().map(|item| Node::of_spanned(item, path.clone(), place)).collect(),
            ),
            DeValue::Table(entries) => Value::Table(
                entries
                    .into_iter()
                    .map(|(key, value)| {
                        let key_place = place(key.span().start);
                        let key = key.into_inner().into_owned();
                        let path = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
                        (key, (key_place, Node::of_spanned(value, path, place)))
                    })
                    .collect(),
            ),
        };
        Node { value, place: place(at), path, raw: None }
    }

    fn of_spanned(value: Spanned<DeValue<'_>>, path: String, place: &dyn Fn(usize) -> String) -> Node {
        let at = value.span().start;
        Node::new(value.into_inner(), at, path, place)
    }
}

/// Index of a text's lines and characters, for fast lookup of locations.
struct Lines {
    /// Byte offset of each line, ascending.
    starts: Vec<usize>,
    /// Number of characters before each byte and before the end.
    characters: Vec<u32>,
}

impl Lines {
    fn of(text: &str) -> Lines {
        let ends = text.bytes().enumerate().filter(|&(_, byte)| byte == b'\n').map(|(at, _)| at + 1);
        let starts = std::iter::once(0).chain(ends).collect();
        // Continuation bytes of UTF-8 are 10xxxxxx.
        let is_first = |byte: u8| u32::from(byte & 0b1100_0000 != 0b1000_0000);
        let characters = text.bytes().scan(0, |before, byte| {
            *before += is_first(byte);
            Some(*before)
        });
        Lines { starts, characters: std::iter::once(0).chain(characters).collect() }
    }

    /// Line and column of a byte offset, both from 1.
    fn place(&self, at: usize) -> (usize, u32) {
        let at = at.min(self.characters.len() - 1);
        let line = self.starts.partition_point(|&start| start <= at);
        (line, self.characters[at] - self.characters[self.starts[line - 1]] + 1)
    }
}

fn syntax(error: &toml::de::Error) -> Problem {
    Problem::Syntax(error.message().lines().collect::<Vec<_>>().join("; "))
}

impl<'de> Deserializer<'de> for Node {
    type Error = Fault;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        let Node { value, place, path, .. } = self;
        let result = match value {
            Value::Boolean(value) => visitor.visit_bool(value),
            Value::Integer(value) => match i64::try_from(value) {
                Ok(value) if value < 0 => visitor.visit_i64(value),
                Ok(value) => visitor.visit_u64(value as u64),
                Err(_) => {
                    let expected = format!("a whole number from {} to {}", i64::MIN, i64::MAX);
                    Err(Fault::of(Problem::Mismatch { found: value.to_string(), expected }))
                }
            },
            Value::Float(value) => visitor.visit_f64(value),
            Value::String(value) => visitor.visit_string(value),
            Value::Array(items) => visitor.visit_seq(de::value::SeqDeserializer::new(items.into_iter())),
            Value::Table(entries) => {
                visitor.visit_map(Entries { path: path.clone(), entries: entries.into_iter(), value: None })
            }
        };
        result.map_err(|fault| fault.at(&place, &path))
    }

    fn deserialize_string<V: Visitor<'de>>(mut self, visitor: V) -> Result<V::Value, Fault> {
        if let Some(raw) = self.raw.take()
            && !matches!(self.value, Value::String(_))
        {
            self.value = Value::String(raw);
        }
        self.deserialize_any(visitor)
    }

    fn deserialize_str<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        self.deserialize_string(visitor)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _name: &'static str,
        _variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Fault> {
        let Value::String(text) = self.value else {
            return self.deserialize_any(WantsString(visitor));
        };
        let word: StringDeserializer<Fault> = text.into_deserializer();
        visitor.visit_enum(word).map_err(|fault| fault.at(&self.place, &self.path))
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        visitor.visit_some(self)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        visitor: V,
    ) -> Result<V::Value, Fault> {
        visitor.visit_newtype_struct(self)
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char bytes byte_buf
        unit unit_struct seq tuple tuple_struct map struct identifier ignored_any
    }
}

/// A visitor that refuses every value, since a string is expected.
struct WantsString<V>(V);

impl<'de, V: Visitor<'de>> Visitor<'de> for WantsString<V> {
    type Value = V::Value;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("a string")
    }
}

impl IntoDeserializer<'_, Fault> for Node {
    type Deserializer = Node;

    fn into_deserializer(self) -> Node {
        self
    }
}

struct Entries {
    path: String,
    entries: btree_map::IntoIter<String, (String, Node)>,
    value: Option<Node>,
}

impl<'de> de::MapAccess<'de> for Entries {
    type Error = Fault;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, Fault> {
        let Some((key, (place, value))) = self.entries.next() else { return Ok(None) };
        self.value = Some(value);
        let key: StringDeserializer<Fault> = key.into_deserializer();
        seed.deserialize(key).map(Some).map_err(|fault| fault.at(&place, &self.path))
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, Fault> {
        let value = self.value.take().expect("serde asks for a key before its value");
        let (place, path) = (value.place.clone(), value.path.clone());
        seed.deserialize(value).map_err(|fault| fault.at(&place, &path))
    }
}
