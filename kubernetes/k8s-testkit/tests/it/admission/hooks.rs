//! A webhook over HTTPS on loopback: each path answers in its own way.
use std::convert::Infallible;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http::header::CONNECTION;
use http::{HeaderValue, Request, Response};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper_util::rt::TokioIo;
use rustls::ServerConfig;
use rustls::pki_types::PrivateKeyDer;
use serde_json::{Value, json};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

/// A listening webhook; it ends with this value.
pub(super) struct Hooks {
    /// `https://` and the address.
    pub(super) url: String,
    /// The certificate that it is known by, as configurations hold it.
    pub(super) ca_bundle: String,
    task: JoinHandle<()>,
}

impl Drop for Hooks {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Hooks {
    /// Begins to listen.
    pub(super) async fn listen() -> Self {
        let issued = rcgen::generate_simple_self_signed(vec!["127.0.0.1".to_owned()])
            .expect("a certificate can be made");
        let key = PrivateKeyDer::Pkcs8(issued.signing_key.serialize_der().into());
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .expect("the protocol versions are known")
            .with_no_client_auth()
            .with_single_cert(vec![issued.cert.der().clone()], key)
            .expect("the key belongs to the certificate");
        let acceptor = TlsAcceptor::from(Arc::new(config));
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let url = format!("https://{}", listener.local_addr().expect("it is bound"));
        let task = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let acceptor = acceptor.clone();
                tokio::spawn(async move {
                    let Ok(stream) = acceptor.accept(stream).await else { return };
                    let service = hyper::service::service_fn(serve);
                    // A client that goes away early is none of the test's business.
                    let _ended = hyper::server::conn::http1::Builder::new()
                        .serve_connection(TokioIo::new(Abrupt(stream)), service)
                        .await;
                });
            }
        });
        Self { url, ca_bundle: STANDARD.encode(issued.cert.pem()), task }
    }
}

/// A stream that ends without `close_notify`, as that of many webhooks does.
struct Abrupt(TlsStream<TcpStream>);

impl AsyncRead for Abrupt {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_read(cx, buffer)
    }
}

impl AsyncWrite for Abrupt {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.poll_flush(cx)
    }
}

async fn serve(request: Request<Incoming>) -> Result<Response<Full<Bytes>>, Infallible> {
    let path = request.uri().path().to_owned();
    let body = request.into_body().collect().await.map(|body| body.to_bytes()).unwrap_or_default();
    let review: Value = serde_json::from_slice(&body).unwrap_or_default();
    let (status, text) = answer(&path, &review).await;
    let mut response = Response::new(Full::new(Bytes::from(text)));
    if path == "/close" {
        response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    }
    *response.status_mut() = status.try_into().expect("a status");
    Ok(response)
}

fn patch(operations: &Value) -> Value {
    json!({
        "allowed": true,
        "patchType": "JSONPatch",
        "patch": STANDARD.encode(operations.to_string()),
    })
}

async fn answer(path: &str, review: &Value) -> (u16, String) {
    let request = &review["request"];
    if review["kind"] == "ConversionReview" && path.starts_with("/convert") {
        return (200, convert(path, request).to_string());
    }
    let mut response = match path {
        "/allow" | "/close" => json!({"allowed": true}),
        "/deny" => json!({"allowed": false}),
        "/deny-because" => json!({"allowed": false, "status": {"message": "not today"}}),
        "/deny-fully" => json!({"allowed": false, "status": {
            "code": 418, "reason": "Teapot", "details": {"causes": [{"message": "short and stout"}]},
        }}),
        "/deny-ok" => json!({"allowed": false, "status": {"code": 200, "status": "Success"}}),
        // Shows in its refusal what it was shown.
        "/tell" => json!({"allowed": false, "status": {"message": tell(request)}}),
        "/warn" => {
            json!({"allowed": true, "warnings": ["mind the gap", "mind the gap", "so \"it\" is"]})
        }
        "/label" => patch(&json!([{
            "op": "add", "path": "/metadata/labels", "value": {"hook": "seen"},
        }])),
        "/unknown-field" => patch(&json!([{"op": "add", "path": "/nothing", "value": 1}])),
        "/bad-patch" => patch(&json!([{"op": "remove", "path": "/nowhere"}])),
        "/bad-type" => patch(&json!([{"op": "add", "path": "/data", "value": 1}])),
        "/move" => patch(&json!([
            {"op": "replace", "path": "/metadata/namespace", "value": "kube-system"},
        ])),
        "/rename" => patch(&json!([{"op": "replace", "path": "/metadata/name", "value": "other"}])),
        "/uid" => patch(&json!([{"op": "add", "path": "/metadata/uid", "value": "1"}])),
        "/other-kind" => patch(&json!([{"op": "replace", "path": "/kind", "value": "Secret"}])),
        "/unknown-kind" => patch(&json!([{"op": "replace", "path": "/kind", "value": "Nope"}])),
        "/other-version" => {
            patch(&json!([{"op": "replace", "path": "/apiVersion", "value": "v2"}]))
        }
        "/copies" => {
            let list = json!({"op": "add", "path": "/metadata/finalizers", "value": ["a/b"]});
            let from = "/metadata/finalizers";
            let copy = json!({"op": "copy", "from": from, "path": format!("{from}/-")});
            patch(&Value::Array([vec![list], vec![copy; 40]].concat()))
        }
        "/no-list" => json!({"allowed": true, "patchType": "JSONPatch", "patch": "e30="}),
        "/no-patch-type" => json!({"allowed": true, "patch": "W10="}),
        "/no-patch" => json!({"allowed": true, "patchType": "JSONPatch"}),
        "/other-uid" => json!({"allowed": true, "uid": "1"}),
        "/error" => return (500, "out of order\n".to_owned()),
        "/missing" => return (404, String::new()),
        "/unavailable" => return (503, String::new()),
        "/garbage" => return (200, "{}".to_owned()),
        "/silent" => {
            std::future::pending::<()>().await;
            Value::Null
        }
        "/empty" => {
            return (
                200,
                r#"{"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1"}"#.to_owned(),
            );
        }
        _ => return (404, String::new()),
    };
    if response.get("uid").is_none() {
        response["uid"] = request["uid"].clone();
    }
    let answered = json!({"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1", "response": response});
    (200, answered.to_string())
}

/// Converts between `spec.size` of version `v1` and `spec.width` of `v2`.
fn convert(path: &str, request: &Value) -> Value {
    let desired = request["desiredAPIVersion"].as_str().unwrap_or_default();
    let mut objects = request["objects"].as_array().cloned().unwrap_or_default();
    let version = desired.rsplit('/').next().unwrap_or_default();
    let (from, to) = if version == "v2" { ("size", "width") } else { ("width", "size") };
    for object in &mut objects {
        object["apiVersion"] = desired.into();
        if let Some(spec) = object["spec"].as_object_mut()
            && let Some(value) = spec.remove(from)
        {
            spec.insert(to.to_owned(), value);
        }
        object["metadata"]["annotations"]["converted"] = version.into();
        object["metadata"]["finalizers"] = json!(["hooks.test/never"]);
        match path {
            "/convert-rename" => object["metadata"]["name"] = "other".into(),
            "/convert-wrong" => object["apiVersion"] = "hooks.test/v3".into(),
            _ => {}
        }
    }
    let mut result = json!({"status": "Success"});
    match path {
        "/convert-refuse" => result = json!({"status": "Failure", "message": "too wide"}),
        "/convert-silent" => result = json!({"status": "Failure"}),
        "/convert-drop" => objects.clear(),
        _ => {}
    }
    json!({
        "kind": "ConversionReview",
        "apiVersion": "apiextensions.k8s.io/v1",
        "response": {"uid": request["uid"], "result": result, "convertedObjects": objects},
    })
}

/// What a request says, without what differs between two clusters.
fn tell(request: &Value) -> String {
    let mut told = request.clone();
    for field in ["uid", "userInfo"] {
        told[field].take();
    }
    for object in ["object", "oldObject"] {
        if let Some(metadata) = told[object]["metadata"].as_object_mut() {
            for field in ["uid", "creationTimestamp", "managedFields", "resourceVersion"] {
                metadata.remove(field);
            }
        }
    }
    told.to_string()
}
