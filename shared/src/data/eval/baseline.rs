//! Comparison of scores with those of trivial analyses, which take no training.
//!
//! In: a score by decoder, and the same score of every baseline. Out: a sentence that names the decoders below the best baseline.

/// Values of a score, each with the name of its decoder, which may be empty; `None` if the score is undefined.
pub type Values<'a> = [(&'a str, Option<f64>)];

/// A sentence on the values of `score` that are below the best of the baselines, each named as in "that of …"; `None` if no value is.
///
/// ```
/// use grammaton::data::eval::baseline::below;
///
/// let found = [("mbr", Some(0.5)), ("viterbi", Some(0.25)), ("vote", None)];
/// let baselines = [("every symbol as a segment", Some(0.3)), ("every sentence as a segment", Some(0.1))];
/// assert_eq!(
///     below("token F1", &found, &baselines).unwrap(),
///     "token F1 0.2500 (viterbi) is below 0.3000, that of every symbol as a segment"
/// );
/// ```
pub fn below(score: &str, values: &Values<'_>, baselines: &Values<'_>) -> Option<String> {
    let known = baselines.iter().filter_map(|&(name, value)| Some((name, value?)));
    let (name, best) = known.max_by(|(_, a), (_, b)| a.total_cmp(b))?;
    let low =
        values.iter().filter_map(|&(decoder, value)| Some((decoder, value.filter(|&value| value < best)?)));
    let shown: Vec<String> = low
        .map(|(decoder, value)| match decoder {
            "" => format!("{value:.4}"),
            _ => format!("{value:.4} ({decoder})"),
        })
        .collect();
    (!shown.is_empty()).then(|| format!("{score} {} is below {best:.4}, that of {name}", shown.join(", ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_best_known_baseline_counts() {
        let values = [("", Some(0.2))];
        let found = below("score", &values, &[("a", None), ("b", Some(0.3)), ("c", Some(0.25))]);
        assert_eq!(found.unwrap(), "score 0.2000 is below 0.3000, that of b");
        assert_eq!(
            below("score", &values, &[("a", None), ("b", Some(0.2))]),
            None,
            "an equal score is not below"
        );
        assert_eq!(below("score", &values, &[("a", None)]), None);
        assert_eq!(below("score", &[("", None)], &[("a", Some(0.5))]), None);
    }

    #[test]
    fn every_decoder_below_is_named() {
        let values = [("mbr", Some(0.1)), ("viterbi", Some(0.2)), ("vote", Some(0.9))];
        let found = below("score", &values, &[("a", Some(0.3))]).unwrap();
        assert_eq!(found, "score 0.1000 (mbr), 0.2000 (viterbi) is below 0.3000, that of a");
    }
}
