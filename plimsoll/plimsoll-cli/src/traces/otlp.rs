//! Traces of the controller's work, sent to an OpenTelemetry collector: OTLP, as protobuf over
//! HTTP.
//!
//! Spans are sent in batches by a thread of their own, which has the program's runtime do the
//! requests. A collector that does not answer costs spans, never work.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use async_trait::async_trait;
use hyper_rustls::HttpsConnectorBuilder;
use opentelemetry::trace::TracerProvider as _;
use opentelemetry_http::hyper::HyperClient;
use opentelemetry_http::{Bytes, HttpClient, HttpError, Request, Response};
use opentelemetry_otlp::{SpanExporter, WithExportConfig as _, WithHttpConfig as _};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::trace::SdkTracerProvider;
use tokio::runtime::Handle;
use tracing::level_filters::LevelFilter;
use tracing_subscriber::Layer as _;
use tracing_subscriber::filter::Targets;

use super::TraceLayer;

/// How long one request to the collector may take.
const REQUEST_TIME_MAX: Duration = Duration::from_secs(10);
/// Where collectors take traces, below their address.
const PATH: &str = "/v1/traces";
/// Under which name the spans are found.
const SERVICE: &str = "plimsoll";
/// Whose spans are sent.
const TARGET: &str = "plimsoll_controller";

/// Sends traces until it is ended.
#[derive(Debug)]
pub struct Traces(SdkTracerProvider);

impl Traces {
    /// Starts to send the spans of the returned layer to the collector at `endpoint`, such as
    /// `http://localhost:4318`. To be called within a runtime of tokio.
    ///
    /// # Errors
    ///
    /// When the endpoint is no URL, or the certificates of this machine cannot be read.
    pub fn start(endpoint: &str, instance: &str) -> Result<(Self, TraceLayer), anyhow::Error> {
        let url = format!("{}{PATH}", endpoint.trim_end_matches('/'));
        let uri: http::Uri =
            url.parse().with_context(|| format!("--otlp-endpoint: {endpoint:?} is no URL"))?;
        let client: Arc<dyn HttpClient> = match uri.scheme_str() {
            Some("http") => Arc::new(HyperClient::with_default_connector(REQUEST_TIME_MAX, None)),
            Some("https") => {
                let provider = rustls::crypto::ring::default_provider();
                let connector = HttpsConnectorBuilder::new()
                    .with_provider_and_native_roots(provider)
                    .context("--otlp-endpoint: there are no certificates to trust")?
                    .https_only()
                    .enable_http1()
                    .build();
                Arc::new(HyperClient::new(connector, REQUEST_TIME_MAX, None))
            }
            _ => anyhow::bail!(
                "--otlp-endpoint: {endpoint:?} begins neither with http:// nor with https://"
            ),
        };
        let exporter = SpanExporter::builder()
            .with_http()
            .with_http_client(OnRuntime { client, runtime: Handle::current() })
            .with_endpoint(url)
            .build()
            .context("--otlp-endpoint: traces cannot be sent there")?;
        let resource = Resource::builder()
            .with_service_name(SERVICE)
            .with_attribute(opentelemetry::KeyValue::new(
                "service.instance.id",
                instance.to_owned(),
            ))
            .build();
        let provider = SdkTracerProvider::builder()
            .with_batch_exporter(exporter)
            .with_resource(resource)
            .build();
        let layer = tracing_opentelemetry::layer()
            .with_tracer(provider.tracer(SERVICE))
            .with_filter(Targets::new().with_target(TARGET, LevelFilter::DEBUG))
            .boxed();
        Ok((Self(provider), layer))
    }

    /// Sends what is left; waits a few seconds at most.
    pub async fn end(self) {
        let ended = tokio::task::spawn_blocking(move || self.0.shutdown()).await;
        if let Ok(Err(error)) = ended {
            tracing::warn!(%error, "not all traces could be sent");
        }
    }
}

/// Has a runtime do the requests of threads that are none of its own.
struct OnRuntime {
    client: Arc<dyn HttpClient>,
    runtime: Handle,
}

impl fmt::Debug for OnRuntime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OnRuntime").finish_non_exhaustive()
    }
}

#[async_trait]
impl HttpClient for OnRuntime {
    async fn send_bytes(&self, request: Request<Bytes>) -> Result<Response<Bytes>, HttpError> {
        let client = Arc::clone(&self.client);
        self.runtime.spawn(async move { client.send_bytes(request).await }).await?
    }
}
