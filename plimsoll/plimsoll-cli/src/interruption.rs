//! What an interruption of this process ends besides: the programs that render the components of a
//! release, which are in process groups of their own, where no terminal interrupts or hangs up on them. And
//! interruptions of commands that wait.

use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Once, mpsc};
use std::thread;

use plimsoll_content::authoring::BuiltRelease;
use plimsoll_source::authoring::{self, BuildError, kill_programs};
use tokio::signal::unix::{Signal, SignalKind, signal};

/// Exit code of a command whose terminal was closed.
const HUNG_UP: i32 = 129;
/// Exit code of a command that was interrupted.
const INTERRUPTED: i32 = 130;
/// Exit code of a command that was quit.
const QUIT: i32 = 131;
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
    let state = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let watch = |kind| if is_ignored(&state, kind) { Ok(None) } else { signal(kind).map(Some) };
    let mut hangups = watch(SignalKind::hangup())?;
    let mut interrupts = watch(SignalKind::interrupt())?;
    let mut quits = watch(SignalKind::quit())?;
    let mut terminations = watch(SignalKind::terminate())?;
    // The receiver waits for it.
    let _ = watched.send(Ok(()));
    loop {
        let (code, is_awaited) = tokio::select! {
            () = received(&mut hangups) => (HUNG_UP, false),
            () = received(&mut interrupts) => (INTERRUPTED, true),
            () = received(&mut quits) => (QUIT, false),
            () = received(&mut terminations) => (TERMINATED, true),
        };
        kill_programs();
        if !is_awaited || !STOPS_BY_ITSELF.load(Ordering::SeqCst) {
            #[expect(clippy::exit, reason = "the signal would have ended the process at once")]
            std::process::exit(code);
        }
    }
}

/// Waits until this process is interrupted, which does not end it from then on; for ever if it ignores
/// interruptions, as in the background of a script.
pub(crate) async fn interrupted() {
    let state = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let kind = SignalKind::interrupt();
    // Without its handler an interruption ends the process at once.
    let mut interrupts = if is_ignored(&state, kind) { None } else { signal(kind).ok() };
    received(&mut interrupts).await;
}

/// Waits for a signal; for ever for one that is not watched.
async fn received(signal: &mut Option<Signal>) {
    match signal {
        Some(signal) => {
            signal.recv().await;
        }
        None => std::future::pending().await,
    }
}

/// Returns whether a process ignores a signal, as one under `nohup` does, by its state in `/proc`.
fn is_ignored(state: &str, kind: SignalKind) -> bool {
    let mask = state.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or_default();
    let bit = u32::try_from(kind.as_raw_value() - 1).ok();
    bit.and_then(|bit| mask.checked_shr(bit)).is_some_and(|shifted| shifted & 1 == 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ignored_signals_are_those_of_the_mask() {
        let state = "Name:\tplimsoll\nSigBlk:\t0000000000000004\nSigIgn:\t0000000000001001\n";
        assert!(is_ignored(state, SignalKind::hangup()));
        assert!(!is_ignored(state, SignalKind::interrupt()));
        assert!(!is_ignored(state, SignalKind::quit()));
        assert!(!is_ignored("", SignalKind::hangup()));
    }
}
