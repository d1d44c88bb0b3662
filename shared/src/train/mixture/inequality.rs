//! Linear inequalities as people write them: `base >= 0.85`, `right-attach = 2 * short-dep`, `a + b <= 0.5 - c`.
//!
//! Names may have hyphens in them, so all is parted by spaces. Either side is a sum of terms: a number, a name, or a number `*` a name.

/// Relation of a weighted sum to its bound.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Relation {
    /// At least the bound.
    AtLeast,
    /// At most the bound.
    AtMost,
    /// The bound.
    Equal,
}

/// Σ `weights` λ, `relation`, `bound`.
#[derive(Clone, PartialEq, Debug)]
pub struct Inequality {
    /// The text as written.
    pub text: String,
    /// `[n]`, not all zero.
    pub weights: Vec<f64>,
    /// Between the sum and the bound.
    pub relation: Relation,
    /// The bound of the sum.
    pub bound: f64,
}

/// Why a text is no inequality.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("`{text}`: {kind}")]
pub struct BadInequality {
    /// The text.
    pub text: String,
    /// Kind of the error.
    pub kind: BadInequalityKind,
}

/// Why a text is no inequality.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum BadInequalityKind {
    /// A text without a relation, or with several.
    #[error("expected one of `<=`, `>=` and `=` with spaces about it, found {found}")]
    Relations {
        /// Number of relations.
        found: usize,
    },
    /// A word that cannot be where it stands; none at the end of a side.
    #[error("found {found}, expected {expected}; put spaces between all words, numbers and signs")]
    Unexpected {
        /// The text found.
        found: String,
        /// Expected text.
        expected: String,
    },
    /// An inequality that holds for all weights, or for none.
    #[error("it says nothing of any component; name one, or remove it")]
    Nothing,
}

impl Inequality {
    /// Reads one about the components of these names.
    ///
    /// # Errors
    /// [`BadInequality`] says where it cannot be read.
    pub fn parse(text: &str, names: &[String]) -> Result<Inequality, BadInequality> {
        parse(text, names).map_err(|kind| BadInequality { text: text.to_owned(), kind })
    }
}

fn parse(text: &str, names: &[String]) -> Result<Inequality, BadInequalityKind> {
    let words: Vec<&str> = text.split_whitespace().collect();
    let relation = |word: &str| match word {
        "<=" => Some(Relation::AtMost),
        ">=" => Some(Relation::AtLeast),
        "=" => Some(Relation::Equal),
        _ => None,
    };
    let relations: Vec<_> =
        words.iter().enumerate().filter_map(|(at, word)| Some((at, relation(word)?))).collect();
    let [(at, relation)] = relations[..] else {
        return Err(BadInequalityKind::Relations { found: relations.len() });
    };
    let (mut weights, constant) = sum(&words[..at], names)?;
    let (right, bound) = sum(&words[at + 1..], names)?;
    weights.iter_mut().zip(right).for_each(|(weight, right)| *weight -= right);
    if weights.iter().all(|&weight| weight == 0.0) {
        return Err(BadInequalityKind::Nothing);
    }
    Ok(Inequality { text: text.to_owned(), weights, relation, bound: bound - constant })
}

/// The weights of a side, `[n]`, and its constant.
fn sum(mut words: &[&str], names: &[String]) -> Result<(Vec<f64>, f64), BadInequalityKind> {
    let (mut weights, mut constant, mut sign) = (vec![0.0; names.len()], 0.0, 1.0);
    let number = |word: &str| word.parse().ok().filter(|number: &f64| number.is_finite());
    let name = |word: &str| names.iter().position(|name| name == word);
    let unexpected = |word: Option<&&str>, expected: &str| BadInequalityKind::Unexpected {
        found: word.map_or("nothing".to_owned(), |word| format!("`{word}`")),
        expected: expected.to_owned(),
    };
    let a_name = || format!("one of {}", names.join(", "));
    loop {
        let rest = match words {
            [factor, "*", rest @ ..] if let Some(factor) = number(factor) => {
                let at = rest.first().and_then(|word| name(word));
                weights[at.ok_or_else(|| unexpected(rest.first(), &a_name()))?] += sign * factor;
                &rest[1..]
            }
            [word, rest @ ..] if let Some(at) = name(word) => {
                weights[at] += sign;
                rest
            }
            [word, rest @ ..] if let Some(number) = number(word) => {
                constant += sign * number;
                rest
            }
            _ => return Err(unexpected(words.first(), &format!("a number or {}", a_name()))),
        };
        (words, sign) = match rest {
            [] => return Ok((weights, constant)),
            ["+", rest @ ..] => (rest, 1.0),
            ["-", rest @ ..] => (rest, -1.0),
            _ => return Err(unexpected(rest.first(), "`+`, `-` or a relation")),
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<(Vec<f64>, Relation, f64), String> {
        let names = ["base", "right-attach", "short-dep"].map(str::to_owned);
        let read = Inequality::parse(text, &names).map_err(|error| error.to_string())?;
        assert_eq!(read.text, text);
        Ok((read.weights, read.relation, read.bound))
    }

    #[test]
    fn sides_are_sums() {
        for (text, weights, relation, bound) in [
            ("base >= 0.85", [1.0, 0.0, 0.0], Relation::AtLeast, 0.85),
            ("right-attach = short-dep", [0.0, 1.0, -1.0], Relation::Equal, 0.0),
            ("0.5 - base <= 2 * short-dep - 1 + base", [-2.0, 0.0, -2.0], Relation::AtMost, -1.5),
            ("base + base + 0.5 * right-attach <= 1", [2.0, 0.5, 0.0], Relation::AtMost, 1.0),
            ("-1e-1 * base = 0", [-0.1, 0.0, 0.0], Relation::Equal, 0.0),
        ] {
            assert_eq!(parse(text), Ok((weights.to_vec(), relation, bound)), "{text}");
        }
    }

    #[test]
    fn what_is_none_is_refused() {
        let spaces = "put spaces between all words, numbers and signs";
        let names = "one of base, right-attach, short-dep";
        for (text, expected) in [
            ("", "expected one of `<=`, `>=` and `=` with spaces about it, found 0".to_owned()),
            ("base>=0.85", "expected one of `<=`, `>=` and `=` with spaces about it, found 0".to_owned()),
            ("0 <= base <= 1", "expected one of `<=`, `>=` and `=` with spaces about it, found 2".to_owned()),
            ("all-right >= 0", format!("found `all-right`, expected a number or {names}; {spaces}")),
            ("base >=", format!("found nothing, expected a number or {names}; {spaces}")),
            ("base >= inf", format!("found `inf`, expected a number or {names}; {spaces}")),
            ("base * 2 >= 1", format!("found `*`, expected `+`, `-` or a relation; {spaces}")),
            ("2 * 3 >= base", format!("found `3`, expected {names}; {spaces}")),
            ("base -short-dep = 0", format!("found `-short-dep`, expected `+`, `-` or a relation; {spaces}")),
            ("base = base", "it says nothing of any component; name one, or remove it".to_owned()),
        ] {
            assert_eq!(parse(text), Err(format!("`{text}`: {expected}")));
        }
    }
}
