//! The n best analyses of each line: a table with a row for each analysis, or an object for each line.

use anyhow::Result;
use serde::Serialize;

use super::line::{Alternative, Line};

/// Names of the columns of the table.
pub const HEADER: &str = "line\trank\tprobability\tanalysis";

/// The rows of a line with their line ends; none without an analysis.
pub fn rows(line: &Line) -> String {
    let row = |(rank, of): (usize, &Alternative)| {
        format!("{}\t{rank}\t{}\t{}\n", line.number, of.probability, of.text)
    };
    (1..).zip(&line.n_best).map(row).collect()
}

#[derive(Serialize)]
struct Object<'a> {
    line: u32,
    analyses: &'a [Alternative],
    status: String,
}

/// The object of a line, with a line end.
pub fn object(line: &Line) -> Result<String> {
    let object = Object { line: line.number, analyses: &line.n_best, status: line.status.to_string() };
    Ok(serde_json::to_string(&object)? + "\n")
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::super::line::Analysis;
    use super::*;
    use crate::row::Status;

    #[test]
    fn a_line_has_its_analyses_in_order() {
        let segments = Alternative {
            probability: 0.5,
            analysis: Analysis::Segments(vec!["a b".to_owned(), "c".to_owned()]),
            text: "a b | c".to_owned(),
        };
        let n_best = vec![
            segments,
            Alternative::tree(0.25, "(S a)".to_owned()),
            Alternative::heads(0.125, vec![2, 0]),
        ];
        let line = Line { n_best, ..Line::empty(3, Status::Ok) };
        assert_eq!(rows(&line), "3\t1\t0.5\ta b | c\n3\t2\t0.25\t(S a)\n3\t3\t0.125\t2 0\n");
        let found: Value = serde_json::from_str(&object(&line).unwrap()).unwrap();
        let expected = json!({"line": 3, "status": "ok", "analyses": [
            {"probability": 0.5, "segments": ["a b", "c"]},
            {"probability": 0.25, "tree": "(S a)"},
            {"probability": 0.125, "heads": [2, 0]},
        ]});
        assert_eq!(found, expected);
        let empty = Line::empty(4, Status::Empty);
        assert_eq!((rows(&empty), object(&empty).unwrap().contains("[]")), (String::new(), true));
    }
}
