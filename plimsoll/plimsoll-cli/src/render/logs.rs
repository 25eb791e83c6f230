//! Logs: for a terminal, warnings alone beside the live view; in a pipe, structured JSON lines.

use std::io::{self, IsTerminal as _};

use tracing::Subscriber;
use tracing_subscriber::filter::{FilterExt as _, LevelFilter, filter_fn};
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::registry::LookupSpan;
use tracing_subscriber::util::SubscriberInitExt as _;
use tracing_subscriber::{EnvFilter, Layer};

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
    let lines = lines(text, filter, move || AboveView(view.clone()));
    // A second initialisation, as in tests, keeps the first.
    let _ = tracing_subscriber::registry().with(traces).with(lines).try_init();
}

/// Writes what passes a filter as lines, without what the client logs of answers.
fn lines<S, W>(
    text: bool,
    filter: EnvFilter,
    writer: impl Fn() -> W + Send + Sync + 'static,
) -> Box<dyn Layer<S> + Send + Sync>
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    W: io::Write + 'static,
{
    let lines =
        tracing_subscriber::fmt::layer().with_ansi(io::stderr().is_terminal()).with_writer(writer);
    let filter = filter.and(filter_fn(|metadata| metadata.target() != QUOTING_TARGET));
    if text {
        lines.compact().without_time().with_target(false).with_filter(filter).boxed()
    } else {
        lines.json().flatten_event(true).with_filter(filter).boxed()
    }
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

#[cfg(test)]
mod tests {
    //! What is logged of a request that the server refuses and quotes.

    use std::sync::{Arc, Mutex};

    use k8s_openapi::api::core::v1::ConfigMap;
    use k8s_testkit::faults::{Refusal, Requests};
    use k8s_testkit::{Fault, Faults, TestCluster};
    use kube::Api;
    use kube::api::ListParams;

    use super::*;

    /// What a refusal quotes.
    const PIN: &str = "987654321";

    /// Log lines in memory.
    #[derive(Clone, Default)]
    struct Captured(Arc<Mutex<Vec<u8>>>);

    impl Captured {
        fn text(&self) -> String {
            String::from_utf8_lossy(&self.0.lock().expect("no thread panics")).into_owned()
        }
    }

    impl io::Write for Captured {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().expect("no thread panics").write(bytes)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn what_a_refusal_quotes_is_not_logged_whatever_is_asked_for() {
        for text in [true, false] {
            let (ours, everything) = (Captured::default(), Captured::default());
            let (writer, unfiltered) = (ours.clone(), everything.clone());
            let lines = lines(text, EnvFilter::new("trace"), move || writer.clone());
            let all = tracing_subscriber::fmt::layer().with_writer(move || unfiltered.clone());
            let subscriber = tracing_subscriber::registry().with(lines).with(all);
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            let runtime = runtime.expect("a runtime");
            tracing::subscriber::with_default(subscriber, || {
                runtime.block_on(async {
                    let faults = Faults::none();
                    let refusal = Refusal::new(500).message(&format!("no such value: {PIN}"));
                    faults.add(Requests::any().resource("configmaps"), Fault::Refused(refusal));
                    let client = TestCluster::embedded().client_with_faults(faults);
                    let maps: Api<ConfigMap> = Api::default_namespaced(client);
                    let refused = maps.list(&ListParams::default()).await;
                    assert!(refused.is_err_and(|error| error.to_string().contains(PIN)));
                    tracing::info!("ConfigMaps cannot be listed");
                });
            });
            let (ours, everything) = (ours.text(), everything.text());
            assert!(everything.contains(PIN), "the client logs it: {everything}");
            assert!(!ours.contains(PIN), "{ours}");
            assert!(ours.contains("ConfigMaps cannot be listed"), "{ours}");
        }
    }
}
