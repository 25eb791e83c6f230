//! Logs: for a terminal, warnings alone beside the live view; in a pipe, structured JSON lines.

use tracing_subscriber::filter::LevelFilter;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;
use tracing_subscriber::{EnvFilter, Layer as _};

use crate::traces::TraceLayer;

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
    init_as(interactive, None, None);
}

/// The same in a format that was asked for, with traces if they are sent anywhere.
pub fn init_as(interactive: bool, format: Option<Format>, traces: Option<TraceLayer>) {
    let level = if interactive { LevelFilter::WARN } else { LevelFilter::INFO };
    start(format.map_or(interactive, |format| format == Format::Text), level, traces);
}

/// Logs nothing unless `RUST_LOG` asks for it: for commands whose report tells everything.
pub fn init_quiet() {
    start(true, LevelFilter::OFF, None);
}

fn start(text: bool, level: LevelFilter, traces: Option<TraceLayer>) {
    let filter = EnvFilter::builder().with_default_directive(level.into()).from_env_lossy();
    let lines = tracing_subscriber::fmt::layer().with_writer(std::io::stderr);
    let lines = if text {
        lines.compact().without_time().with_target(false).with_filter(filter).boxed()
    } else {
        lines.json().flatten_event(true).with_filter(filter).boxed()
    };
    // A second initialisation, as in tests, keeps the first.
    let _ = tracing_subscriber::registry().with(traces).with(lines).try_init();
}
