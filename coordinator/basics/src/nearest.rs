//! Suggestions for mistyped names.

/// The known name that begins with `found`, or else differs from it by a typing error, if there is one.
pub fn nearest<'a>(found: &str, known: impl IntoIterator<Item = &'a str> + Clone) -> Option<&'a str> {
    let length = |name: &str| name.chars().count();
    if length(found) >= 3
        && let Some(name) = known.clone().into_iter().find(|name| name.starts_with(found))
    {
        return Some(name);
    }
    let distances = known.into_iter().map(|name| (strsim::damerau_levenshtein(found, name), name));
    let (distance, name) = distances.min_by_key(|&(distance, _)| distance)?;
    (distance <= length(name).max(length(found)).div_ceil(3)).then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slips_and_beginnings_are_understood_and_nothing_else() {
        let known = ["truncation", "tolerance", "seed", "rho"];
        let meant = |found| nearest(found, known);
        assert_eq!(meant("truncatoin"), Some("truncation"));
        assert_eq!(meant("trunc"), Some("truncation"));
        assert_eq!(meant("sede"), Some("seed"));
        assert_eq!(meant("ro"), Some("rho"));
        assert_eq!(meant("adaptor"), None);
        assert_eq!(nearest("x", []), None);
    }
}
