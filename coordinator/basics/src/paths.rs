//! Paths that others send, to be put below a folder.

use std::path::{Component, Path};

/// Largest number of bytes of a path, and of a part of it: file systems take no more.
pub const MAX_PATH: [usize; 2] = [512, 255];

/// Whether `path` stays below the folder that it is put in, can be displayed, and is short enough for a file system.
pub fn is_safe(path: &str) -> bool {
    let is_short = path.len() <= MAX_PATH[0] && path.split('/').all(|part| part.len() <= MAX_PATH[1]);
    let below = Path::new(path).components().all(|part| matches!(part, Component::Normal(_)));
    let is_visible = path.chars().all(|letter| !letter.is_control() && letter != '\\');
    !path.is_empty() && is_short && below && is_visible && !path.ends_with('/') && !path.contains("//")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_that_leave_their_folder_are_not_safe() {
        for path in ["a", "a/b.txt", "b&a <b>.txt", "a..b"] {
            assert!(is_safe(path), "{path}");
        }
        for path in ["", "/etc/passwd", "../a", "a/../../b", "./a", "a\nb", "a\\b", "a//b", "a/"] {
            assert!(!is_safe(path), "{path}");
        }
        let long = |n: usize| "a".repeat(n);
        assert!(is_safe(&format!("{}/{}", long(255), long(255))));
        assert!(!is_safe(&long(256)) && !is_safe(&format!("{0}/{0}/a", long(255))));
    }
}
