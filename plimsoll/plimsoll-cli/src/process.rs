//! What a process knows of itself: its clock, its name, when it is to end, and files for its user
//! alone.

use std::hash::{BuildHasher as _, Hasher as _, RandomState};
use std::path::Path;

use plimsoll_api::config::ClusterVersionSpec;
use plimsoll_controller::{Clock as _, SystemClock};
use plimsoll_source::whole_file::{self, FileAccess};
use tokio_util::sync::CancellationToken;

use crate::interruption;

/// A token that is cancelled by SIGINT or SIGTERM; a second signal ends the process at once.
///
/// # Errors
///
/// When the signals cannot be listened to.
pub(crate) fn stop_on_signal() -> Result<CancellationToken, anyhow::Error> {
    use tokio::signal::unix::{SignalKind, signal};
    let mut interrupts = signal(SignalKind::interrupt())?;
    let mut terminations = signal(SignalKind::terminate())?;
    interruption::stops_by_itself();
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

/// The spec of a new cluster's ClusterVersion, which has a random id.
pub(crate) fn new_cluster() -> ClusterVersionSpec {
    ClusterVersionSpec { cluster_id: new_cluster_id(), ..ClusterVersionSpec::default() }
}

/// A random UUID of version 4. Its bits come from the keys of a hasher, which the standard library
/// draws from the operating system.
fn new_cluster_id() -> String {
    let random = || RandomState::new().build_hasher().finish();
    let (high, low) = (random(), random());
    let version = 0x4000 | high & 0x0fff;
    let variant = 0x8000 | low >> 48 & 0x3fff;
    format!(
        "{:08x}-{:04x}-{version:04x}-{variant:04x}-{:012x}",
        high >> 32,
        high >> 16 & 0xffff,
        low & 0xffff_ffff_ffff
    )
}

/// Writes a file that only its owner can read, in place of one that is there.
///
/// # Errors
///
/// When it cannot be written.
pub(crate) fn write_secret(path: &Path, text: &str) -> std::io::Result<()> {
    use std::io::Write as _;
    whole_file::write_with(path, FileAccess::Owner, |mut file| file.write_all(text.as_bytes()))
}

/// Seconds since the epoch, for messages.
pub(crate) fn now() -> jiff::Timestamp {
    SystemClock.now()
}

#[cfg(test)]
mod tests {
    use super::{new_cluster_id, write_secret};

    #[test]
    fn a_secret_is_for_its_owner_only() {
        use std::os::unix::fs::PermissionsExt as _;
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("kubeconfig");
        std::fs::write(&path, "something longer than what follows").unwrap();
        write_secret(&path, "text").unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "text");
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    }

    #[test]
    fn an_id_is_a_uuid_of_version_4() {
        let id = new_cluster_id();
        let lengths: Vec<usize> = id.split('-').map(str::len).collect();
        assert_eq!(lengths, [8, 4, 4, 4, 12], "{id}");
        assert_eq!(&id[14..15], "4", "{id}");
        assert!(matches!(&id[19..20], "8" | "9" | "a" | "b"), "{id}");
        assert_ne!(id, new_cluster_id());
    }
}
