//! The program as a process of its own that says how much memory it has allocated.

use std::alloc::System;
use std::ffi::OsString;
use std::io::{self, Write as _};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::process::{Child, Command, ExitCode, Stdio};

use anyhow::Context as _;
use cap::Cap;

/// The path of the socket of a process that is the program and does not measure.
const SOCKET: &str = "PLIMSOLL_BENCH_SOCKET";

#[global_allocator]
static ALLOCATOR: Cap<System> = Cap::new(System, usize::MAX);

/// Runs the program if this process is to be it, and answers who connects to its socket with the number
/// of bytes that are allocated. Returns its exit code; `None` if this process is to measure.
pub(crate) fn run() -> Option<Result<ExitCode, anyhow::Error>> {
    let socket = std::env::var_os(SOCKET)?;
    let listener = UnixListener::bind(&socket).context("failed to open the socket");
    Some(listener.map(|listener| {
        std::thread::spawn(move || {
            for connection in listener.incoming().flatten() {
                // Who asked may be gone.
                let _ = write!(&connection, "{}", ALLOCATOR.allocated());
            }
        });
        plimsoll_cli::main()
    }))
}

/// The program, as a process of its own that ends with this.
pub(crate) struct Program {
    child: Child,
    socket: PathBuf,
}

impl Program {
    /// Starts the program with arguments; `socket` is a path where no file is.
    pub(crate) fn start(arguments: &[OsString], socket: PathBuf) -> Result<Self, anyhow::Error> {
        let child = Command::new(std::env::current_exe()?)
            .args(arguments)
            .env(SOCKET, &socket)
            .env("RUST_LOG", "warn")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .spawn()
            .context("failed to start the program")?;
        Ok(Self { child, socket })
    }

    /// Returns the id of the process.
    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// Returns how many bytes are allocated.
    pub(crate) fn allocated(&self) -> Result<i64, anyhow::Error> {
        let answer = io::read_to_string(UnixStream::connect(&self.socket)?)?;
        answer.parse().context("the program answers with a number")
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        // The program has ended by itself if this fails.
        let _ = self.child.kill().and_then(|()| self.child.wait());
        let _ = std::fs::remove_file(&self.socket);
    }
}
