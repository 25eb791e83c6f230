//! Logs: for a terminal, warnings alone beside the live view; in a pipe, structured JSON lines.

use tracing_subscriber::EnvFilter;
use tracing_subscriber::filter::LevelFilter;

/// Starts logging to stderr; `RUST_LOG` sets what is logged.
pub fn init(interactive: bool) {
    start(interactive, if interactive { LevelFilter::WARN } else { LevelFilter::INFO });
}

/// Logs nothing unless `RUST_LOG` asks for it: for commands whose report tells everything.
pub fn init_quiet() {
    start(true, LevelFilter::OFF);
}

fn start(interactive: bool, level: LevelFilter) {
    let filter = EnvFilter::builder().with_default_directive(level.into()).from_env_lossy();
    let builder = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr);
    // A second initialisation, as in tests, keeps the first.
    let _ = if interactive {
        builder.compact().without_time().with_target(false).try_init()
    } else {
        builder.json().flatten_event(true).try_init()
    };
}
