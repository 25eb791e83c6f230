//! A fence around a client: once it is up nothing is written any more, whoever holds the client.
//!
//! A controller that lost its lease may have writes in flight, statuses to finish and executions
//! that have not noticed. Reads go on, since they do no harm.

use http::{Method, Request};
use kube::Client;
use kube::client::Body;
use tokio_util::sync::CancellationToken;
use tower::BoxError;

/// Why a write was not sent, or its answer not waited for.
#[derive(Debug, thiserror::Error)]
#[error("the lease is lost: nothing is written any more")]
struct Fenced;

/// A client that writes nothing once `up`, and cuts off what it is writing then.
pub(crate) fn fenced(client: Client, up: CancellationToken) -> Client {
    let namespace = client.default_namespace().to_owned();
    let service = tower::service_fn(move |request: Request<Body>| {
        let (client, up) = (client.clone(), up.clone());
        async move {
            if matches!(*request.method(), Method::GET | Method::HEAD) {
                return client.send(request).await.map_err(BoxError::from);
            }
            tokio::select! {
                biased;
                () = up.cancelled() => Err(Fenced.into()),
                answer = client.send(request) => answer.map_err(BoxError::from),
            }
        }
    });
    Client::new(service, namespace)
}

#[cfg(test)]
mod tests {
    //! What passes a fence.

    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use bytes::Bytes;
    use http::Response;
    use http_body_util::Full;

    use super::*;

    #[tokio::test]
    async fn nothing_is_written_once_the_fence_is_up_and_writes_in_flight_end() {
        let arrived = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&arrived);
        let up = CancellationToken::new();
        let server = tower::service_fn(move |request: Request<Body>| {
            let arrived = Arc::clone(&counted);
            async move {
                arrived.fetch_add(1, Ordering::SeqCst);
                if request.uri().path() == "/hangs" {
                    std::future::pending::<()>().await;
                }
                Ok::<_, std::convert::Infallible>(Response::new(Full::new(Bytes::new())))
            }
        });
        let client = fenced(Client::new(server, "default"), up.clone());
        let send = |method: Method, path: &str| {
            let request = Request::builder().method(method).uri(path).body(Body::empty()).unwrap();
            let client = client.clone();
            async move { client.send(request).await }
        };
        assert!(send(Method::PATCH, "/").await.is_ok());
        let hanging = tokio::spawn(send(Method::PATCH, "/hangs"));
        while arrived.load(Ordering::SeqCst) < 2 {
            tokio::task::yield_now().await;
        }
        up.cancel();
        assert!(hanging.await.unwrap().is_err());
        for method in [Method::PATCH, Method::POST, Method::PUT, Method::DELETE] {
            assert!(send(method.clone(), "/").await.is_err(), "{method}");
        }
        assert_eq!(arrived.load(Ordering::SeqCst), 2);
        assert!(send(Method::GET, "/").await.is_ok());
    }
}
