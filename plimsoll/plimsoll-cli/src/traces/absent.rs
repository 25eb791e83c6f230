//! What a program without the feature `telemetry` has in place of traces: an error.

use std::convert::Infallible;

use super::TraceLayer;

/// Traces that cannot be started.
#[derive(Debug)]
pub struct Traces(Infallible);

impl Traces {
    /// Refuses to send traces.
    ///
    /// # Errors
    ///
    /// Always: the program is built without the feature.
    pub fn start(_endpoint: &str, _instance: &str) -> Result<(Self, TraceLayer), anyhow::Error> {
        anyhow::bail!(
            "--otlp-endpoint: this program is built without traces; use the release image, or \
             build with `--features telemetry`"
        )
    }

    /// Sends what is left.
    pub async fn end(self) {
        match self.0 {}
    }
}

#[cfg(test)]
mod tests {
    //! The error says what to do.

    use super::*;

    #[test]
    fn an_endpoint_is_refused_with_what_to_build() {
        let error = Traces::start("http://localhost:4318", "a").map(|_| ()).unwrap_err();
        assert!(error.to_string().contains("--features telemetry"), "{error}");
    }
}
