//! Files that people write by hand, which may be pipes and devices instead.

use std::fs::File;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

/// Most bytes of a file: far more than anybody writes, and no burden for memory.
const BYTES_MAX: u64 = 16 << 20;
/// How long a file may take: longer than any disk, and that of a pipe until its writer begins.
const WAIT_MAX: Duration = Duration::from_secs(10);

/// Reads a file, within limits of size and time.
///
/// # Errors
///
/// When it cannot be read, is larger than 16 MiB, is not UTF-8, or nothing comes within 10 seconds.
pub(crate) fn read_text(path: &Path) -> io::Result<String> {
    read_within(path.to_owned(), WAIT_MAX)
}

fn read_within(path: PathBuf, wait: Duration) -> io::Result<String> {
    let (sender, receiver) = mpsc::channel();
    // A thread that waits for a pipe cannot be interrupted; it ends with the process.
    thread::spawn(move || sender.send(read(&path)));
    receiver.recv_timeout(wait).unwrap_or_else(|_| {
        let seconds = wait.as_secs_f32();
        let message = format!("nothing could be read within {seconds} s; is it a pipe?");
        Err(io::Error::new(io::ErrorKind::TimedOut, message))
    })
}

fn read(path: &Path) -> io::Result<String> {
    let mut bytes = Vec::new();
    File::open(path)?.take(BYTES_MAX + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > BYTES_MAX {
        let message = format!("it is larger than {} MiB", BYTES_MAX >> 20);
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, message));
    }
    String::from_utf8(bytes).map_err(|_| io::Error::other("it is not UTF-8"))
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    fn check(path: &Path, expected: &str) {
        let error = read_within(path.to_owned(), Duration::from_secs(2)).unwrap_err();
        assert_eq!(error.to_string(), expected);
    }

    #[test]
    fn what_has_no_end_or_no_beginning_is_refused() {
        let directory = tempfile::tempdir().unwrap();
        let bytes = directory.path().join("bytes");
        std::fs::write(&bytes, [0xff]).unwrap();
        check(&bytes, "it is not UTF-8");
        check(Path::new("/dev/zero"), "it is larger than 16 MiB");
        let pipe = directory.path().join("pipe");
        assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        let error = read_within(pipe, Duration::ZERO).unwrap_err();
        assert_eq!(error.to_string(), "nothing could be read within 0 s; is it a pipe?");
    }
}
