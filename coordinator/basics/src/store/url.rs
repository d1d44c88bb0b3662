//! URLs of objects, compared as texts: what is allowed as a whole is allowed in parts, and nothing beside it.

/// Whether the object at `url` is `place`, or below it. Two texts that name one object in different ways count as different, and a text that
/// might be read in two ways is below nothing.
pub fn is_below(url: &str, place: &str) -> bool {
    let (Some((authority, path)), Some((allowed, folder))) = (parts(url), parts(place.trim_end_matches('/')))
    else {
        return false;
    };
    authority == allowed && path.len() >= folder.len() && path[..folder.len()] == folder[..]
}

/// The scheme with the authority, and the segments of the path; `None` if a reader of URLs might see others.
fn parts(url: &str) -> Option<(&str, Vec<&str>)> {
    let begin = url.find("://")? + "://".len();
    let end = url[begin..].find('/').map_or(url.len(), |at| begin + at);
    let path: Vec<&str> = url[end..].split('/').skip(1).collect();
    let is_plain = |segment: &&str| {
        let lower = segment.to_ascii_lowercase();
        !matches!(&lower[..], "" | "." | "..")
            && !["%2e", "%2f", "%5c"].iter().any(|code| lower.contains(code))
    };
    let is_odd = |letter: char| letter.is_control() || letter.is_whitespace() || "\\?#".contains(letter);
    (begin < end
        && !url[..end].contains(is_odd)
        && path.iter().all(is_plain)
        && !url.contains(['\\', '?', '#']))
    .then_some((&url[..end], path))
}

#[cfg(test)]
mod tests {
    use object_store::path::Path;
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_place_has_what_is_below_it_and_nothing_beside() {
        for url in ["s3://b/pub", "s3://b/pub/a", "s3://b/pub/a b/%20.txt", "s3://b/pub/..a"] {
            for place in ["s3://b/pub", "s3://b/pub/", "s3://b", "s3://b/"] {
                assert!(is_below(url, place), "{url} {place}");
            }
        }
        let beside = [
            "s3://b/public-secret/a",
            "s3://b/pub.txt",
            "s3://b/pub/../secret",
            "s3://b/pub/./a",
            "s3://b/pub//a",
            "s3://b/pub/%2e%2E/secret",
            "s3://b/pub/..%2fsecret",
            "s3://b/pub%2Fa",
            "s3://b/pub\\a",
            "s3://b/pub/?x",
            "s3://b/pub/#x",
            "s3://b/PUB/a",
            "s3://B/pub/a",
            "S3://b/pub/a",
            "s3a://b/pub/a",
            "s3://b:443/pub/a",
            "s3://b:80/pub/a",
            "s3://b@c/pub/a",
            "s3://c@b/pub/a",
            "s3://b.c/pub/a",
            "s3:///pub/a",
            "s3://",
            "pub/a",
            "",
        ];
        for url in beside {
            assert!(!is_below(url, "s3://b/pub"), "{url}");
        }
        for url in ["s3://bucket/a", "s3://b@c/a", "s3://b:1/a"] {
            assert!(!is_below(url, "s3://b"), "{url}");
        }
        assert!(is_below(
            "abfss://texts@account.dfs.core.windows.net/a",
            "abfss://texts@account.dfs.core.windows.net/"
        ));
        assert!(["", "s3", "s3://"].iter().all(|place| !is_below("s3://b/pub/a", place)));
    }

    proptest! {
        /// What is allowed is read as an object in the folder that is allowed, by the reader of paths that stores use.
        #[test]
        fn an_allowed_object_is_in_the_folder(
            url in "(s3|S3)://[bB]([@:.][a-c0-9]{1,2})?(/(pub|public|secret|[.]{1,2}|%2[eEfF]|a|[\\\\?# ]|)){0,4}",
        ) {
            if is_below(&url, "s3://b/pub") {
                let path = url.strip_prefix("s3://b/");
                prop_assert!(path.is_some(), "{}", url);
                let path = Path::parse(path.unwrap()).unwrap();
                prop_assert!(path.prefix_matches(&Path::parse("pub").unwrap()), "{}", url);
            }
        }
    }
}
