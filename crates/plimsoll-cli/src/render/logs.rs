//! Logs: for a terminal, warnings alone beside the live view; in a pipe, structured JSON lines.

use tracing_subscriber::EnvFilter;
use tracing_subscriber::filter::LevelFilter;

/// How log lines are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Format {
    /// For people.
    Text,
    /// One JSON object a line.
    Json,
}

/// Starts logging to stderr; `RUST_LOG` sets what is logged.
pub fn init(interactive: bool) {
    init_as(interactive, None);
}

/// The same in a format that was asked for.
pub fn init_as(interactive: bool, format: Option<Format>) {
    let level = if interactive { LevelFilter::WARN } else { LevelFilter::INFO };
    start(format.map_or(interactive, |format| format == Format::Text), level);
}

/// Logs nothing unless `RUST_LOG` asks for it: for commands whose report tells everything.
pub fn init_quiet() {
    start(true, LevelFilter::OFF);
}

fn start(text: bool, level: LevelFilter) {
    let filter = EnvFilter::builder().with_default_directive(level.into()).from_env_lossy();
    let builder = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr);
    // A second initialisation, as in tests, keeps the first.
    let _ = if text {
        builder.compact().without_time().with_target(false).try_init()
    } else {
        builder.json().flatten_event(true).try_init()
    };
}
