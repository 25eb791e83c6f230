//! The way to the server, which restarts, goes back to an earlier state, or is cut off from a
//! process.

use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use futures::future::BoxFuture;
use http_body::{Body as HttpBody, Frame, SizeHint};
use http_body_util::BodyExt as _;
use http_body_util::combinators::UnsyncBoxBody;
use k8s_apiserver::ApiServer;
use kube::client::Body;
use tokio::time::Instant;
use tokio_util::sync::{CancellationToken, WaitForCancellationFutureOwned};
use tower::{BoxError, Service};

/// The body of an answer, which fails when the connection does.
pub(crate) type GatewayBody = UnsyncBoxBody<Bytes, BoxError>;

struct Connections {
    server: ApiServer,
    /// Cancelled when the server goes away.
    all: CancellationToken,
    /// Until when processes are cut off, and what breaks their connections.
    of_process: BTreeMap<usize, (Option<Instant>, CancellationToken)>,
    /// How often the server went back to an earlier state.
    rollbacks: usize,
    /// Whether watches end in order when the server goes away, as with one that is stopped; otherwise
    /// their connections break.
    ends_watches: bool,
}

/// A client's way to the server; clones share the server.
#[derive(Clone)]
pub(crate) struct Gateway {
    connections: Arc<Mutex<Connections>>,
    /// The process that uses it; `None` for everybody else, whom nothing cuts off.
    process: Option<usize>,
}

impl Gateway {
    pub(crate) fn new(server: ApiServer) -> Self {
        let all = CancellationToken::new();
        let connections = Connections {
            server,
            all,
            of_process: BTreeMap::new(),
            rollbacks: 0,
            ends_watches: false,
        };
        Self { connections: Arc::new(Mutex::new(connections)), process: None }
    }

    /// The same for a process.
    pub(crate) fn of(&self, process: usize) -> Self {
        Self { process: Some(process), ..self.clone() }
    }

    pub(crate) fn server(&self) -> ApiServer {
        self.lock().server.clone()
    }

    /// Returns how often the server went back to an earlier state.
    pub(crate) fn rollbacks(&self) -> usize {
        self.lock().rollbacks
    }

    /// From now on a server that is replaced ends its watches in order.
    pub(crate) fn end_watches(&self) {
        self.lock().ends_watches = true;
    }

    /// Another server takes the place of this one: all connections are lost.
    pub(crate) fn replace(&self, server: ApiServer, is_rollback: bool) {
        let mut connections = self.lock();
        connections.server = server;
        connections.rollbacks += usize::from(is_rollback);
        std::mem::take(&mut connections.all).cancel();
        connections.of_process.clear();
    }

    /// A process does not reach the server for a while, and its connections are lost.
    pub(crate) fn cut_off(&self, process: usize, lasts: Duration) {
        let mut connections = self.lock();
        let of_all = connections.all.clone();
        let entry = connections.of_process.entry(process);
        let (until, token) = entry.or_insert_with(|| (None, of_all.child_token()));
        *until = Some(Instant::now() + lasts);
        std::mem::replace(token, of_all.child_token()).cancel();
    }

    fn lock(&self) -> MutexGuard<'_, Connections> {
        self.connections.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The server, and what breaks the connection; `None` if there is no way to it.
    fn connect(&self) -> Option<(ApiServer, CancellationToken)> {
        let mut connections = self.lock();
        let (server, of_all) = (connections.server.clone(), connections.all.clone());
        let Some(process) = self.process else { return Some((server, of_all)) };
        let entry = connections.of_process.entry(process);
        let (until, token) = entry.or_insert_with(|| (None, of_all.child_token()));
        until.is_none_or(|until| until <= Instant::now()).then(|| (server, token.clone()))
    }
}

impl Service<http::Request<Body>> for Gateway {
    type Response = http::Response<GatewayBody>;
    type Error = BoxError;
    type Future = BoxFuture<'static, Result<Self::Response, Self::Error>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: http::Request<Body>) -> Self::Future {
        let connection = self.connect();
        let is_watch = request.uri().query().is_some_and(|it| it.contains("watch=true"));
        let ends_in_order = is_watch && self.lock().ends_watches;
        Box::pin(async move {
            let (mut server, broken) = connection.ok_or_else(lost)?;
            let answer = server.call(request).await?;
            let broken = Box::pin(broken.cancelled_owned());
            Ok(answer.map(|body| {
                let inner = body.map_err(Into::into).boxed_unsync();
                Connection { inner, broken, ends_in_order }.boxed_unsync()
            }))
        })
    }
}

/// The body of an answer that breaks off when the connection is lost.
struct Connection {
    inner: GatewayBody,
    broken: Pin<Box<WaitForCancellationFutureOwned>>,
    /// Whether it looks complete then.
    ends_in_order: bool,
}

impl HttpBody for Connection {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        // What was sent before arrives.
        match Pin::new(&mut self.inner).poll_frame(cx) {
            Poll::Ready(frame) => Poll::Ready(frame),
            Poll::Pending if self.broken.as_mut().poll(cx).is_ready() => {
                Poll::Ready((!self.ends_in_order).then(|| Err(lost())))
            }
            Poll::Pending => Poll::Pending,
        }
    }

    fn is_end_stream(&self) -> bool {
        self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.inner.size_hint()
    }
}

fn lost() -> BoxError {
    std::io::Error::new(std::io::ErrorKind::ConnectionReset, "the connection was lost").into()
}
