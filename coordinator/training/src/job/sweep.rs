//! Grids: a job with several values of some keys has one *point* for every combination.
//!
//! ```toml
//! [[sweep]]                  # 2 × 3 points
//! method = ["vb", "cvb"]
//! alpha = [1e-5, 1e-3, 0.1]
//!
//! [[sweep]]                  # and one more
//! method = "em"
//! ```
//!
//! On the command line, `--set inference.alpha=1e-5,1e-3` adds `alpha` to every table of the job file, or is the only table;
//! `--set inference.alpha=1e-5` removes `alpha` from the tables.

use std::collections::BTreeMap;

use super::located::{Fault, Node, Problem, Value};

/// One table `[[sweep]]`: lists of values by key of `[inference]`.
pub type SweepTable = BTreeMap<String, Vec<toml::Value>>;

/// Keys that vary with their values, table by table.
#[derive(Default)]
pub struct Sweep(Vec<Vec<(String, Vec<Node>)>>);

/// The values of a point by key.
pub type PointValues = Vec<(String, Node)>;

const TABLE: &str = "sweep";
/// The tables of a grid.
const OF: &str = "inference";

impl Sweep {
    /// Removes the tables `[[sweep]]` from a job file and returns them.
    pub fn take(root: &mut Node) -> Result<Sweep, Fault> {
        let Value::Table(entries) = &mut root.value else { return Ok(Sweep::default()) };
        let Some((_, node)) = entries.remove(TABLE) else { return Ok(Sweep::default()) };
        let wrong = |node: &Node, found: &str| {
            let expected = "tables, each beginning with [[sweep]]".to_owned();
            Fault::new(node, Problem::Mismatch { found: found.to_owned(), expected })
        };
        let Value::Array(tables) = node.value else { return Err(wrong(&node, "something else")) };
        let keys = |table: Node| match table.value {
            Value::Table(keys) => {
                Ok(keys.into_iter().map(|(key, (_, node))| (key.clone(), values(&key, node))).collect())
            }
            _ => Err(wrong(&table, "something else")),
        };
        Ok(Sweep(tables.into_iter().map(keys).collect::<Result<_, _>>()?))
    }

    /// Applies an assignment of the command line, and returns whether its key varies. `inference.KEY=A,B` varies; a single value removes
    /// the key from the tables.
    pub fn assign(&mut self, assignment: &str) -> Result<bool, Fault> {
        let Some((path, raw)) = assignment.split_once('=') else { return Ok(false) };
        let key = path.trim().strip_prefix(OF).and_then(|rest| rest.strip_prefix('.'));
        let Some(key) = key else { return Ok(false) };
        let varies = raw.contains(',') && !raw.trim().starts_with(['[', '"', '\'']);
        self.0.retain_mut(|table| {
            let before = table.len();
            table.retain(|(known, _)| known != key);
            varies || table.len() == before || !table.is_empty()
        });
        if !varies {
            return Ok(false);
        }
        let mut values = Vec::new();
        for part in raw.split(',') {
            let mut scratch = Node::empty();
            scratch.set(&format!("{OF}.{key}={part}"), |_| None)?;
            values.extend(scratch.find(&format!("{OF}.{key}")).cloned());
        }
        if self.0.is_empty() {
            self.0.push(Vec::new());
        }
        self.0.iter_mut().for_each(|table| table.push((key.to_owned(), values.clone())));
        Ok(true)
    }

    /// Keys that vary, with all their values.
    pub fn values_mut(&mut self) -> impl Iterator<Item = (&str, &mut Node)> {
        self.0
            .iter_mut()
            .flatten()
            .flat_map(|(key, values)| values.iter_mut().map(|value| (key.as_str(), value)))
    }

    /// Removes the keys of the file for which `is_unread` holds; returns their names.
    pub fn leave_out(&mut self, is_unread: impl Fn(&str) -> bool) -> Vec<String> {
        let mut names = Vec::new();
        for table in &mut self.0 {
            table.retain(|(key, values)| {
                let stays = values.iter().any(Node::is_override) || !is_unread(key);
                if !stays {
                    names.push(format!("{OF}.{key}"));
                }
                stays
            });
        }
        self.0.retain(|table| !table.is_empty());
        names
    }

    /// Whether a table varies the key.
    pub fn varies(&self, key: &str) -> bool {
        self.0.iter().flatten().any(|(known, _)| known == key)
    }

    /// Number of combinations, computed without creating them.
    pub fn n_points(&self) -> usize {
        let of_table = |table: &Vec<(String, Vec<Node>)>| {
            table.iter().fold(1, |n: usize, (_, values)| n.saturating_mul(values.len()))
        };
        if self.0.is_empty() { 1 } else { self.0.iter().map(of_table).fold(0, usize::saturating_add) }
    }

    /// All combinations, with the last key varying fastest; one empty combination if nothing varies.
    pub fn points(&self) -> Vec<PointValues> {
        if self.0.is_empty() {
            return vec![Vec::new()];
        }
        let of_table = |table: &Vec<(String, Vec<Node>)>| {
            table.iter().fold(vec![Vec::new()], |points: Vec<PointValues>, (key, values)| {
                let longer = |point: &PointValues| {
                    let point = point.clone();
                    values.iter().map(move |value| {
                        let mut point = point.clone();
                        point.push((key.clone(), value.clone()));
                        point
                    })
                };
                points.iter().flat_map(longer).collect()
            })
        };
        self.0.iter().flat_map(of_table).collect()
    }

    /// Converts the grid to tables of a job file.
    pub fn tables(&self) -> Vec<SweepTable> {
        let plain = |values: &Vec<Node>| values.iter().map(|value| value.value.plain()).collect();
        let table = |table: &Vec<(String, Vec<Node>)>| {
            table.iter().map(|(key, values)| (key.clone(), plain(values))).collect()
        };
        self.0.iter().map(table).collect()
    }
}

/// Keys whose value is a list.
const LISTS: [&str; 3] = ["fit", "components", "mixture"];

/// The values of a key: the entries of a list, or the single value.
fn values(key: &str, node: Node) -> Vec<Node> {
    let mut values = match node.value {
        // The entries of a list of lists are values; for a key whose value is a list, one list is one value.
        Value::Array(items)
            if !LISTS.contains(&key) || items.iter().any(|item| matches!(item.value, Value::Array(_))) =>
        {
            items
        }
        _ => vec![node],
    };
    values.iter_mut().for_each(|value| value.path = format!("{OF}.{key}"));
    values
}

/// Sets the values of a point in the document.
pub fn chosen(root: &Node, point: &PointValues) -> Node {
    let mut root = root.clone();
    for (key, value) in point {
        root.put(&[OF, key], value.clone())
            .expect("the tables of a job are tables, or it would have been refused");
    }
    root
}

/// The values of a point by key.
pub fn settings(point: &PointValues) -> BTreeMap<String, toml::Value> {
    point.iter().map(|(key, value)| (key.clone(), value.value.plain())).collect()
}

/// Name of a point: `alpha=1e-5 method=em`; empty if nothing varies.
pub fn name(point: &PointValues) -> String {
    let parts: Vec<String> =
        point.iter().map(|(key, value)| format!("{key}={}", value.value.text())).collect();
    parts.join(" ")
}
