//! Files that are written under a temporary name, synced and renamed, so that none is ever incomplete.

use std::fs::{self, File};
use std::io;
use std::path::Path;

use tempfile::NamedTempFile;

/// Prefix of temporary names.
const PREFIX: &str = ".writing-";

/// Creates a temporary file in the folder of `place`, which is created if it does not exist. The file is removed when it is dropped.
pub fn create(place: &Path) -> io::Result<NamedTempFile> {
    let folder = folder_of(place);
    fs::create_dir_all(folder)?;
    let mut builder = tempfile::Builder::new();
    // Temporary files are private by default; results have the permissions of the umask.
    builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666));
    builder.prefix(PREFIX).tempfile_in(folder)
}

/// Renames a file from [`create`] to `place`, where it stays even after a power failure.
pub fn commit(file: NamedTempFile, place: &Path) -> io::Result<()> {
    file.as_file().sync_all()?;
    file.persist(place).map_err(|error| error.error)?;
    File::open(folder_of(place))?.sync_all()
}

/// Removes the files from [`create`] that killed processes left in `folder`; no other process may write there.
pub fn remove_temporary(folder: &Path) {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    for entry in entries.filter(|entry| entry.file_name().to_string_lossy().starts_with(PREFIX)) {
        if let Err(error) = fs::remove_file(entry.path()) {
            tracing::warn!(path = %entry.path().display(), %error, "cannot remove what a killed process left");
        }
    }
}

fn folder_of(place: &Path) -> &Path {
    match place.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_appears_complete_and_temporary_ones_are_removed() {
        let dir = tempfile::tempdir().unwrap();
        let place = dir.path().join("model/model.bin");
        drop(create(&place).unwrap());
        let left = create(&place).unwrap().keep().unwrap().1;
        fs::write(dir.path().join("model/other"), "").unwrap();
        assert!(left.exists() && !place.exists());
        commit(create(&place).unwrap(), &place).unwrap();
        remove_temporary(&dir.path().join("model"));
        assert!(!left.exists() && place.exists() && dir.path().join("model/other").exists());
        assert_eq!(fs::read_dir(dir.path().join("model")).unwrap().count(), 2);
    }
}
