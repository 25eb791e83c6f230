//! What a process knows of itself: its clock, its name, and when it is to end.

use plimsoll_controller::{Clock as _, SystemClock};
use tokio_util::sync::CancellationToken;

/// A token that is cancelled by SIGINT or SIGTERM; a second signal ends the process at once.
///
/// # Errors
///
/// When the signals cannot be listened to.
pub(crate) fn stop_on_signal() -> Result<CancellationToken, anyhow::Error> {
    use tokio::signal::unix::{SignalKind, signal};
    let mut interrupts = signal(SignalKind::interrupt())?;
    let mut terminations = signal(SignalKind::terminate())?;
    let stop = CancellationToken::new();
    let stopping = stop.clone();
    tokio::spawn(async move {
        tokio::select! {
            _ = interrupts.recv() => {}
            _ = terminations.recv() => {}
        }
        stopping.cancel();
        tokio::select! {
            _ = interrupts.recv() => {}
            _ = terminations.recv() => {}
        }
        #[expect(clippy::exit, reason = "asked twice to stop: whatever is stuck stays so")]
        std::process::exit(130);
    });
    Ok(stop)
}

/// Who this process is to other controllers: its host and a number that no restart repeats.
pub(crate) fn identity() -> String {
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let host = if host.trim().is_empty() { "localhost" } else { host.trim() };
    format!("{host}_{}", new_cluster_id())
}

/// A random UUID of version 4.
pub(crate) fn new_cluster_id() -> String {
    uuid::Uuid::new_v4().to_string()
}

/// Seconds since the epoch, for messages.
pub(crate) fn now() -> jiff::Timestamp {
    SystemClock.now()
}
