//! Files that are written as a whole: whatever happens meanwhile, there is what was there before, or all of
//! the new content.

use std::ffi::OsString;
use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{self, ErrorKind, Write as _};
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

/// Permissions of a new file, less those that the user's umask takes away.
const MODE: u32 = 0o666;
/// Permissions of a file for its owner alone.
const OWNER_MODE: u32 = 0o600;

/// Where names lead to files that are open, such as `/dev/stdout`: who writes to them goes on doing so.
const OPEN_FILES: [&str; 2] = ["/dev", "/proc"];

/// Who may read and write a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileAccess {
    /// Whoever may already; of a new file, whoever the user's umask allows.
    Kept,
    /// Its owner alone, whoever it was before.
    Owner,
}

/// Writes a file that a user named, as [`write_with`] does, with the permissions that it has.
///
/// # Errors
/// The error of the system.
pub fn write(path: &Path, content: &[u8]) -> io::Result<()> {
    write_with(path, FileAccess::Kept, |mut file| file.write_all(content))
}

/// Writes a file that a user named: to one beside it first, which takes its place. What a symbolic link leads
/// to is replaced, not the link. What is no ordinary file, such as a pipe, is written to, and so is a file in a
/// directory where none can be made.
///
/// # Errors
/// The error of the system or of `content`; what was there stays.
pub fn write_with(
    path: &Path,
    access: FileAccess,
    content: impl FnOnce(&File) -> io::Result<()>,
) -> io::Result<()> {
    if OPEN_FILES.iter().any(|directory| path.starts_with(directory)) {
        return content(&new_file(path, access, false)?);
    }
    let target = match fs::canonicalize(path) {
        Ok(target) => target,
        Err(error) if error.kind() == ErrorKind::NotFound => {
            if fs::symlink_metadata(path).is_ok() {
                // A link to nothing: only the system knows where the file is to be.
                return content(&new_file(path, access, false)?);
            }
            return replace(path, access, None, content);
        }
        Err(error) => return Err(error),
    };
    // A file that may not be written to is not replaced either.
    let there = OpenOptions::new().write(true).open(&target)?;
    if !there.metadata()?.is_file() {
        return content(&there);
    }
    replace(&target, access, Some(&there), content)
}

fn replace(
    target: &Path,
    access: FileAccess,
    there: Option<&File>,
    content: impl FnOnce(&File) -> io::Result<()>,
) -> io::Result<()> {
    let beside = beside(target);
    // Of a process with the same number that was killed.
    let _ = fs::remove_file(&beside);
    let file = match (new_file(&beside, access, true), there) {
        (Ok(file), _) => file,
        (Err(error), Some(there)) if error.kind() == ErrorKind::PermissionDenied => {
            set_permissions(there, access, None)?;
            there.set_len(0)?;
            return content(there);
        }
        (Err(error), _) => return Err(error),
    };
    let write = || -> io::Result<()> {
        set_permissions(&file, access, there)?;
        content(&file)?;
        file.sync_all()?;
        fs::rename(&beside, target)
    };
    let result = write();
    if result.is_err() {
        let _ = fs::remove_file(&beside);
    }
    result
}

/// The path of the file that is written first. It is hidden, and its name has the ending of nothing that is read.
fn beside(target: &Path) -> PathBuf {
    let mut name = OsString::from(".");
    name.push(target.file_name().unwrap_or_default());
    name.push(format!(".{}.new", std::process::id()));
    target.with_file_name(name)
}

fn new_file(path: &Path, access: FileAccess, must_be_new: bool) -> io::Result<File> {
    let mode = match access {
        FileAccess::Kept => MODE,
        FileAccess::Owner => OWNER_MODE,
    };
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(true).create_new(must_be_new).mode(mode);
    options.open(path)
}

/// Sets the permissions of a file: those of the one that it replaces, if they are kept.
fn set_permissions(file: &File, access: FileAccess, replaced: Option<&File>) -> io::Result<()> {
    match (access, replaced) {
        (FileAccess::Owner, _) => file.set_permissions(Permissions::from_mode(OWNER_MODE)),
        (FileAccess::Kept, Some(replaced)) => {
            file.set_permissions(replaced.metadata()?.permissions())
        }
        (FileAccess::Kept, None) => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    //! Files, and what they are after they were written.

    use super::*;

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).expect("a file").permissions().mode() & 0o777
    }

    #[test]
    fn a_file_has_all_of_the_new_content_or_what_it_had() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("lock.yaml");
        write(&path, b"first and longer\n").expect("it is new");
        write(&path, b"second\n").expect("it is there");
        assert_eq!(fs::read_to_string(&path).expect("a file"), "second\n");
        let failed = write_with(&path, FileAccess::Kept, |mut file| {
            file.write_all(b"half")?;
            Err(io::Error::other("the disk is full"))
        });
        assert_eq!(failed.expect_err("it is incomplete").to_string(), "the disk is full");
        assert_eq!(fs::read_to_string(&path).expect("a file"), "second\n");
        let names = fs::read_dir(directory.path()).expect("a directory").count();
        assert_eq!(names, 1, "nothing is left beside it");
        let missing = write(&directory.path().join("no/file"), b"").expect_err("no directory");
        assert_eq!(missing.kind(), ErrorKind::NotFound);
        write(directory.path(), b"").expect_err("it is a directory");
    }

    #[test]
    fn permissions_and_links_stay() {
        let directory = tempfile::tempdir().expect("a directory");
        let (path, link) = (directory.path().join("a.yaml"), directory.path().join("link"));
        write(&path, b"a").expect("it is new");
        fs::set_permissions(&path, Permissions::from_mode(0o664)).expect("our own file");
        std::os::unix::fs::symlink("a.yaml", &link).expect("a link");
        write(&link, b"b").expect("it can be written");
        assert_eq!(fs::read_to_string(&path).expect("a file"), "b");
        assert_eq!(mode(&path), 0o664);
        assert!(fs::symlink_metadata(&link).expect("it is there").is_symlink());
        write_with(&link, FileAccess::Owner, |mut file| file.write_all(b"c")).expect("a file");
        assert_eq!((mode(&path), &*fs::read(&path).expect("a file")), (0o600, &b"c"[..]));
        // A link to nothing makes what it leads to.
        std::os::unix::fs::symlink("later.yaml", directory.path().join("early")).expect("a link");
        write(&directory.path().join("early"), b"d").expect("it is made");
        assert_eq!(fs::read(directory.path().join("later.yaml")).expect("a file"), b"d");
    }

    #[test]
    fn a_device_is_written_to_and_stays() {
        write(Path::new("/dev/null"), b"gone").expect("it takes everything");
        assert!(!fs::metadata("/dev/null").expect("a device").is_file());
    }
}
