//! What an interruption of this process ends besides: the programs that render the components of a
//! release, which are in process groups of their own, where no terminal interrupts them.

use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Once, mpsc};
use std::thread;

use plimsoll_content::authoring::BuiltRelease;
use plimsoll_source::authoring::{self, BuildError, kill_programs};
use tokio::signal::unix::{SignalKind, signal};

/// Exit code of a command that was interrupted.
const INTERRUPTED: i32 = 130;
/// Exit code of a command that was terminated.
const TERMINATED: i32 = 143;

/// Whether this process stops by itself on a signal.
static STOPS_BY_ITSELF: AtomicBool = AtomicBool::new(false);

/// Says that this process stops by itself on a signal: it is not ended at once.
pub(crate) fn stops_by_itself() {
    STOPS_BY_ITSELF.store(true, Ordering::SeqCst);
}

/// Builds the release of a source directory; the programs that it runs are killed when this process is
/// interrupted or terminated.
///
/// # Errors
///
/// [`BuildError`] with everything that is wrong with the source.
pub(crate) fn build(directory: &Path, version: Option<&str>) -> Result<BuiltRelease, BuildError> {
    static WATCHED: Once = Once::new();
    WATCHED.call_once(|| {
        if let Err(error) = watch() {
            tracing::debug!(%error, "no program is killed when this one is interrupted");
        }
    });
    authoring::build(directory, version)
}

/// Watches signals from now on, on a thread of its own.
fn watch() -> io::Result<()> {
    let (sender, watched) = mpsc::channel();
    thread::Builder::new().name("signals".to_owned()).spawn(move || {
        if let Err(error) = handle(&sender) {
            // The receiver is there until it has an answer.
            let _ = sender.send(Err(error));
        }
    })?;
    watched.recv().map_err(io::Error::other)?
}

fn handle(watched: &mpsc::Sender<io::Result<()>>) -> io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(handle_signals(watched))
}

async fn handle_signals(watched: &mpsc::Sender<io::Result<()>>) -> io::Result<()> {
    let mut interrupts = signal(SignalKind::interrupt())?;
    let mut terminations = signal(SignalKind::terminate())?;
    // The receiver waits for it.
    let _ = watched.send(Ok(()));
    loop {
        let code = tokio::select! {
            _ = interrupts.recv() => INTERRUPTED,
            _ = terminations.recv() => TERMINATED,
        };
        kill_programs();
        if !STOPS_BY_ITSELF.load(Ordering::SeqCst) {
            #[expect(clippy::exit, reason = "the signal would have ended the process at once")]
            std::process::exit(code);
        }
    }
}
