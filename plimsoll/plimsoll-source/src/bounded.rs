//! Reading files that a user named: bounded in bytes and in time, whatever lies there.

use std::fs::{self, File, FileType};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::thread;
use std::time::Duration;

/// Largest file that people write for the program: an install-config, a kubeconfig, a list. Real
/// ones have some kilobytes.
pub const WRITTEN_SIZE_MAX: u64 = 16 << 20;
/// Largest file that the program wrote itself and reads back: a snapshot, a problem.
pub const GENERATED_SIZE_MAX: u64 = 1 << 30;
/// How long a pipe or a terminal may take to give all that it has.
const PIPE_TIME_MAX: Duration = Duration::from_secs(30);

/// Reads a file that a user named. A pipe, such as that of `<(command)`, is read to its end if
/// that comes soon.
///
/// # Errors
/// The error of the system; one of the kind [`io::ErrorKind::FileTooLarge`] when there are more
/// than `bytes_max` bytes, and of the kind [`io::ErrorKind::TimedOut`] when a pipe has no end in
/// time.
pub fn read_file(path: &Path, bytes_max: u64) -> io::Result<Vec<u8>> {
    read_file_within(path, bytes_max, PIPE_TIME_MAX)
}

/// Reads a text that a user named; see [`read_file`].
///
/// # Errors
/// As [`read_file`]; and one of the kind [`io::ErrorKind::InvalidData`] when it is not UTF-8.
pub fn read_text(path: &Path, bytes_max: u64) -> io::Result<String> {
    String::from_utf8(read_file(path, bytes_max)?)
        .map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error.utf8_error()))
}

fn read_file_within(path: &Path, bytes_max: u64, time_max: Duration) -> io::Result<Vec<u8>> {
    let metadata = fs::metadata(path)?;
    if metadata.is_dir() {
        return Err(io::ErrorKind::IsADirectory.into());
    }
    if metadata.is_file() {
        return read_bounded(File::open(path)?, bytes_max);
    }
    // Opening a pipe waits for its other end, and so does reading it. The thread of one that never
    // ends stays until the program does.
    let (sender, receiver) = sync_channel(1);
    let path = PathBuf::from(path);
    thread::spawn(move || {
        let read = File::open(path).and_then(|file| read_bounded(file, bytes_max));
        let _ = sender.send(read);
    });
    receiver.recv_timeout(time_max).unwrap_or_else(|error| match error {
        RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected => Err(io::Error::new(
            io::ErrorKind::TimedOut,
            format!(
                "{} that has no end within {} s; write its content to a file",
                kind_of(metadata.file_type()),
                time_max.as_secs()
            ),
        )),
    })
}

/// Opens a file of a store or a catalog, which is an ordinary one: opening a pipe would wait for its
/// other end, and a device may do anything.
///
/// # Errors
/// The error of the system, or that it is not an ordinary file.
pub(crate) fn open_ordinary(path: &Path) -> io::Result<File> {
    let kind = fs::metadata(path)?.file_type();
    if !kind.is_file() {
        return Err(io::Error::other(format!("{}, not an ordinary file", kind_of(kind))));
    }
    File::open(path)
}

/// Reads everything, unless there are more than so many bytes.
///
/// # Errors
/// The error of the stream, or one of the kind [`io::ErrorKind::FileTooLarge`].
pub(crate) fn read_bounded(from: impl Read, bytes_max: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    from.take(bytes_max.saturating_add(1)).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > bytes_max {
        return Err(too_large(bytes_max));
    }
    Ok(bytes)
}

/// The error of what has more bytes than are read.
pub(crate) fn too_large(bytes_max: u64) -> io::Error {
    let size = match bytes_max >> 20 {
        0 => format!("{bytes_max} bytes"),
        mebibytes => format!("{mebibytes} MiB"),
    };
    io::Error::new(io::ErrorKind::FileTooLarge, format!("larger than {size}"))
}

/// What something is that is no ordinary file.
#[cfg(unix)]
pub(crate) fn kind_of(kind: FileType) -> &'static str {
    use std::os::unix::fs::FileTypeExt as _;

    if kind.is_fifo() {
        "a named pipe"
    } else if kind.is_socket() {
        "a socket"
    } else if kind.is_dir() {
        "a directory"
    } else {
        "a device"
    }
}

/// What something is that is no ordinary file.
#[cfg(not(unix))]
pub(crate) fn kind_of(_: FileType) -> &'static str {
    "a device"
}

#[cfg(test)]
mod tests {
    //! What is read, and what is refused.

    use std::io::Write as _;

    use super::*;

    /// A pipe at a path.
    fn pipe(path: &Path) {
        let made = std::process::Command::new("mkfifo").arg(path).status();
        assert!(made.expect("mkfifo can be run").success());
    }

    #[test]
    fn files_are_read_up_to_their_bound() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("file");
        fs::write(&path, "12345").expect("a file");
        assert_eq!(read_file(&path, 5).expect("five bytes"), b"12345");
        let error = read_text(&path, 4).expect_err("too large");
        assert_eq!(error.to_string(), "larger than 4 bytes");
        let error = read_file(Path::new("/dev/zero"), 2 << 20).expect_err("endless");
        assert_eq!(error.to_string(), "larger than 2 MiB");
        let error = read_file(directory.path(), 5).expect_err("a directory");
        assert_eq!(error.kind(), io::ErrorKind::IsADirectory);
        fs::write(&path, b"\xff").expect("a file");
        assert_eq!(read_text(&path, 5).expect_err("no text").kind(), io::ErrorKind::InvalidData);
    }

    #[test]
    fn a_pipe_is_read_to_its_end_or_given_up() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("pipe");
        pipe(&path);
        let silent = read_file_within(&path, 100, Duration::ZERO).expect_err("no end");
        assert_eq!(
            silent.to_string(),
            "a named pipe that has no end within 0 s; write its content to a file"
        );
        let other = directory.path().join("other");
        pipe(&other);
        let end = other.clone();
        let writer = thread::spawn(move || {
            let mut pipe = fs::OpenOptions::new().write(true).open(end).expect("a pipe");
            pipe.write_all(b"text").expect("it can be written");
        });
        assert_eq!(read_file(&other, 100).expect("all of it"), b"text");
        writer.join().expect("the writer ends");
        let error = open_ordinary(&path).expect_err("a pipe");
        assert_eq!(error.to_string(), "a named pipe, not an ordinary file");
    }
}
