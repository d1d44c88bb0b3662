//! Files that hold secrets.
//!
//! If every user of the machine can read the file, that is a warning and not an error, since only the owner knows who
//! uses the machine. A folder that other users cannot enter protects its files whatever their mode: so does the folder of secrets of Docker
//! Compose, whose containers read them as another user. In a container the secrets that it was given have the mode of a file on another
//! machine, and no other user.

use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

/// Permission bit: other users may read.
const OTHERS_READ: u32 = 0o004;

/// Permission bit: other users may enter the folder.
const OTHERS_ENTER: u32 = 0o001;

/// Folders in which containers find their secrets.
const GIVEN: [&str; 2] = ["/run/secrets", "/var/run/secrets"];

/// Reads the text of the file; warns if other users may read it too.
pub(crate) fn read(path: &Path) -> io::Result<String> {
    if is_exposed(path)? && !GIVEN.iter().any(|folder| path.starts_with(folder)) {
        let path = path.display();
        tracing::warn!("{path}: every user of this machine can read this secret; run `chmod 600 {path}`");
    }
    std::fs::read_to_string(path)
}

/// Whether other users may read the file and enter its folder.
fn is_exposed(path: &Path) -> io::Result<bool> {
    let has = |path: &Path, bit| std::fs::metadata(path).map(|file| file.permissions().mode() & bit != 0);
    if !has(path, OTHERS_READ)? {
        return Ok(false);
    }
    match path.canonicalize()?.parent() {
        Some(folder) => has(folder, OTHERS_ENTER),
        None => Ok(true),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_that_others_may_read_is_noticed() {
        let dir = tempfile::tempdir().unwrap();
        let others_enter = |mode| {
            std::fs::set_permissions(dir.path(), std::fs::Permissions::from_mode(mode)).unwrap();
        };
        others_enter(0o755);
        let path = dir.path().join("token");
        std::fs::write(&path, "s3cret").unwrap();
        for (mode, exposed) in [(0o600, false), (0o640, false), (0o644, true), (0o604, true)] {
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
            assert_eq!(is_exposed(&path).unwrap(), exposed, "{mode:o}");
            assert_eq!(read(&path).unwrap(), "s3cret");
            others_enter(0o700);
            assert!(!is_exposed(&path).unwrap(), "{mode:o}");
            others_enter(0o755);
        }
        assert!(read(&dir.path().join("none")).is_err());
    }
}
