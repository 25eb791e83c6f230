//! Logs: for a terminal, warnings alone beside the live view; in a pipe, structured JSON lines.

use std::io::{self, IsTerminal as _};

use tracing_subscriber::filter::{FilterExt as _, LevelFilter, filter_fn};
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;
use tracing_subscriber::{EnvFilter, Layer as _};

use super::live::LiveView;
use crate::traces::TraceLayer;

/// The module of the client that logs answers as they come, with the values of Secrets that a
/// refusal quotes: never logged, whatever `RUST_LOG` asks for. What concerns us is logged by us.
const QUOTING_TARGET: &str = "kube_client::client";

/// How log lines are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Format {
    /// For people.
    Text,
    /// One JSON object a line.
    Json,
}

/// Starts logging to stderr, above the live view; `RUST_LOG` sets what is logged.
pub fn init(interactive: bool, view: &LiveView) {
    init_as(interactive, None, None, view);
}

/// The same in a format that the command line sets, with traces if they are sent anywhere.
pub fn init_as(
    interactive: bool,
    format: Option<Format>,
    traces: Option<TraceLayer>,
    view: &LiveView,
) {
    let level = if interactive { LevelFilter::WARN } else { LevelFilter::INFO };
    start(format.map_or(interactive, |format| format == Format::Text), level, traces, view);
}

/// Logs nothing unless `RUST_LOG` asks for it: for commands whose output contains everything.
pub fn init_quiet() {
    start(true, LevelFilter::OFF, None, &LiveView::of_stderr());
}

fn start(text: bool, level: LevelFilter, traces: Option<TraceLayer>, view: &LiveView) {
    let filter = EnvFilter::builder().with_default_directive(level.into()).from_env_lossy();
    let view = view.clone();
    let lines = tracing_subscriber::fmt::layer()
        .with_ansi(io::stderr().is_terminal())
        .with_writer(move || AboveView(view.clone()));
    let filter = filter.and(filter_fn(|metadata| metadata.target() != QUOTING_TARGET));
    let lines = if text {
        lines.compact().without_time().with_target(false).with_filter(filter).boxed()
    } else {
        lines.json().flatten_event(true).with_filter(filter).boxed()
    };
    // A second initialisation, as in tests, keeps the first.
    let _ = tracing_subscriber::registry().with(traces).with(lines).try_init();
}

/// Writes above the live view; each event comes in one piece.
struct AboveView(LiveView);

impl io::Write for AboveView {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write_above(bytes).map(|()| bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
