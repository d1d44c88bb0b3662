//! Files that hold secrets.
//!
//! Whoever else can read such a file knows the secret: that is worth a warning, and not an error, since only its
//! owner can say who shares the machine.

use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

/// Anybody on the machine may read.
const OTHERS_READ: u32 = 0o004;

/// The text of the file; warns if others may read it as well.
pub(crate) fn read(path: &Path) -> io::Result<String> {
    if is_exposed(path)? {
        let path = path.display();
        tracing::warn!("{path}: everybody on this machine may read this secret; run `chmod 600 {path}`");
    }
    std::fs::read_to_string(path)
}

fn is_exposed(path: &Path) -> io::Result<bool> {
    Ok(std::fs::metadata(path)?.permissions().mode() & OTHERS_READ != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_that_others_may_read_is_noticed() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("token");
        std::fs::write(&path, "s3cret").unwrap();
        for (mode, exposed) in [(0o600, false), (0o640, false), (0o644, true), (0o604, true)] {
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
            assert_eq!(is_exposed(&path).unwrap(), exposed, "{mode:o}");
            assert_eq!(read(&path).unwrap(), "s3cret");
        }
        assert!(read(&dir.path().join("none")).is_err());
    }
}
