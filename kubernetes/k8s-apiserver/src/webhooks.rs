//! Calls to webhooks.
//!
//! A webhook is called over HTTPS, or in process: [`Webhooks::in_process`] puts a `tower::Service`
//! in the place of a host, so that a test needs no port and no certificates.
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
use futures::future::BoxFuture;
use http::{Request, Response};
use http_body_util::{BodyExt as _, Full};
use tower::ServiceExt as _;
use tower::util::BoxCloneSyncService;

mod call;
mod https;
mod trust;

use crate::semantics::webhook::Endpoint;
pub(crate) use call::call_all;

/// An error of a webhook that runs in process.
type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// A webhook that runs in process.
type Handler = BoxCloneSyncService<Request<Full<Bytes>>, Response<Bytes>, BoxError>;

/// Resolves the services of webhooks.
pub trait ServiceResolver: Send + Sync {
    /// The address, `host:port`, at which the port of a service listens.
    ///
    /// # Errors
    /// With the reason, which is part of the response to the client.
    fn resolve(&self, namespace: &str, name: &str, port: u16) -> Result<String, String>;
}

/// How the webhooks of a cluster are called.
///
/// Webhooks that are configured by URL are called over HTTPS. An embedded server does not route to
/// services, so a webhook that is configured by service needs a resolver, or a handler in process
/// under the host `NAME.NAMESPACE.svc`.
#[derive(Clone, Default)]
pub struct Webhooks {
    handlers: BTreeMap<String, Handler>,
    /// The handler of every host that has none of its own; `None` if those are called over HTTPS.
    other: Option<Handler>,
    services: Option<Arc<dyn ServiceResolver>>,
}

impl Webhooks {
    /// Webhooks are only called over HTTPS by URL.
    pub fn new() -> Self {
        Self::default()
    }

    /// Calls the webhook at `host` in process.
    ///
    /// The host is that of a webhook's URL without its port, or `NAME.NAMESPACE.svc` for a webhook
    /// that is configured by service. The service gets the same request as over HTTPS: a POST of an
    /// `AdmissionReview` or a `ConversionReview`.
    #[must_use]
    pub fn in_process<S, B>(mut self, host: &str, service: S) -> Self
    where
        S: tower::Service<Request<Full<Bytes>>, Response = Response<B>>
            + Clone
            + Send
            + Sync
            + 'static,
        S::Error: Into<BoxError>,
        S::Future: Send + 'static,
        B: http_body::Body + Send + 'static,
        B::Data: Send,
        B::Error: Into<BoxError>,
    {
        self.handlers.insert(host.to_owned(), handler(service));
        self
    }

    /// Calls the webhooks at all other hosts in process, as [`Webhooks::in_process`] does: nothing is
    /// called over HTTPS any more.
    #[must_use]
    pub fn otherwise_in_process<S, B>(mut self, service: S) -> Self
    where
        S: tower::Service<Request<Full<Bytes>>, Response = Response<B>>
            + Clone
            + Send
            + Sync
            + 'static,
        S::Error: Into<BoxError>,
        S::Future: Send + 'static,
        B: http_body::Body + Send + 'static,
        B::Data: Send,
        B::Error: Into<BoxError>,
    {
        self.other = Some(handler(service));
        self
    }

    /// Resolves the services of webhooks by `resolver`.
    #[must_use]
    pub fn with_services(mut self, resolver: Arc<dyn ServiceResolver>) -> Self {
        self.services = Some(resolver);
        self
    }

    /// Sends a request to a webhook.
    fn send(
        &self,
        endpoint: &Endpoint,
        request: Request<Full<Bytes>>,
    ) -> BoxFuture<'static, Result<Response<Bytes>, String>> {
        if let Some(handler) = self.handlers.get(endpoint.host()).or(self.other.as_ref()) {
            let response = handler.clone().oneshot(request);
            return Box::pin(async move { response.await.map_err(|error| error.to_string()) });
        }
        match self.address(endpoint) {
            Ok(address) => Box::pin(https::send(endpoint.clone(), address, request)),
            Err(why) => Box::pin(std::future::ready(Err(why))),
        }
    }

    /// The address of a webhook.
    fn address(&self, endpoint: &Endpoint) -> Result<String, String> {
        match (endpoint.service(), &self.services) {
            (None, _) => Ok(endpoint.authority()),
            (Some(service), Some(resolver)) => {
                resolver.resolve(&service.namespace, &service.name, service.port)
            }
            (Some(service), None) => Err(format!("service {:?} not found", service.name)),
        }
    }
}

/// Returns a service as the handler of webhooks.
fn handler<S, B>(service: S) -> Handler
where
    S: tower::Service<Request<Full<Bytes>>, Response = Response<B>> + Clone + Send + Sync + 'static,
    S::Error: Into<BoxError>,
    S::Future: Send + 'static,
    B: http_body::Body + Send + 'static,
    B::Data: Send,
    B::Error: Into<BoxError>,
{
    let handler = service.map_err(Into::into).and_then(|response: Response<B>| async move {
        let (parts, body) = response.into_parts();
        let bytes = body.collect().await.map_err(Into::into)?.to_bytes();
        Ok(Response::from_parts(parts, bytes))
    });
    BoxCloneSyncService::new(handler)
}

impl fmt::Debug for Webhooks {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Webhooks")
            .field("in_process", &self.handlers.keys().collect::<Vec<_>>())
            .field("otherwise_in_process", &self.other.is_some())
            .field("services", &self.services.is_some())
            .finish()
    }
}
