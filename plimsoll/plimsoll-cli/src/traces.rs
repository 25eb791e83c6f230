//! Traces of the controller's work for an OpenTelemetry collector, in programs that are built with
//! the feature `telemetry`, as the release image is.

#[cfg(not(feature = "telemetry"))]
mod absent;
#[cfg(feature = "telemetry")]
mod otlp;

use tracing_subscriber::{Layer, Registry};

#[cfg(not(feature = "telemetry"))]
pub use absent::Traces;
#[cfg(feature = "telemetry")]
pub use otlp::Traces;

/// A layer that turns spans into traces.
pub type TraceLayer = Box<dyn Layer<Registry> + Send + Sync>;
