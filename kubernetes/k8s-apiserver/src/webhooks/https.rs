//! One request over HTTPS.
use std::io;
use std::sync::Arc;

use bytes::Bytes;
use http::header::HOST;
use http::uri::PathAndQuery;
use http::{HeaderValue, Request, Response, Uri};
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use rustls::pki_types::ServerName;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use super::Endpoint;
use super::trust::trust;

/// Largest response of a webhook, in bytes.
const ANSWER_LEN_MAX: usize = 16 << 20;

/// Sends a request to `address`, where the webhook of `endpoint` listens.
///
/// # Errors
/// When connecting or the exchange fails; with Go's messages where they are known.
pub(super) async fn send(
    endpoint: Endpoint,
    address: String,
    mut request: Request<Full<Bytes>>,
) -> Result<Response<Bytes>, String> {
    let config = trust(endpoint.ca_bundle())?;
    let name =
        ServerName::try_from(endpoint.host().to_owned()).map_err(|error| error.to_string())?;
    let stream = TcpStream::connect(&address)
        .await
        .map_err(|error| format!("dial tcp {address}: connect: {}", describe(&error)))?;
    let stream = TlsConnector::from(Arc::new(config))
        .connect(name, stream)
        .await
        .map_err(|error| format!("tls: failed to verify certificate: {error}"))?;
    let (mut sender, connection) =
        http1::handshake(TokioIo::new(stream)).await.map_err(|error| error.to_string())?;
    let path = request.uri().path_and_query().cloned();
    *request.uri_mut() = Uri::from(path.unwrap_or_else(|| PathAndQuery::from_static("/")));
    let host = HeaderValue::from_str(&endpoint.authority()).map_err(|error| error.to_string())?;
    request.headers_mut().insert(HOST, host);
    let exchange = async move {
        let response = sender.send_request(request).await.map_err(|error| error.to_string())?;
        let (parts, body) = response.into_parts();
        let body = Limited::new(body, ANSWER_LEN_MAX).collect().await;
        let bytes = body.map_err(|error| error.to_string())?.to_bytes();
        Ok(Response::from_parts(parts, bytes))
    };
    let mut exchange = std::pin::pin!(exchange);
    // The connection future has to be polled along with the exchange.
    tokio::select! {
        response = &mut exchange => response,
        // A peer that closes without saying so (`close_notify`) may have answered completely.
        ended = connection => exchange.await.map_err(|why| ended.map_or_else(|error| error.to_string(), |()| why)),
    }
}

fn describe(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::ConnectionRefused => "connection refused".to_owned(),
        io::ErrorKind::ConnectionReset => "connection reset by peer".to_owned(),
        io::ErrorKind::HostUnreachable => "no route to host".to_owned(),
        io::ErrorKind::NetworkUnreachable => "network is unreachable".to_owned(),
        _ => error.to_string(),
    }
}
