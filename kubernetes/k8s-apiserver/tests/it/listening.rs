//! The server behind a socket: connections of all sorts, and its end.
use http_body_util::{BodyExt as _, Empty};
use hyper_util::rt::{TokioExecutor, TokioIo};
use k8s_apiserver::faults::{Fault, Faults};
use k8s_apiserver::{ApiServer, Options, serve};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tower::Layer as _;

/// A server on a port of loopback.
struct Listening {
    address: std::net::SocketAddr,
    stop: Option<oneshot::Sender<()>>,
    ended: JoinHandle<std::io::Result<()>>,
}

impl Listening {
    async fn new(faults: &Faults) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (stop, stopped) = oneshot::channel();
        let service = faults.layer(ApiServer::new(Options::default()));
        let ended = tokio::spawn(serve(service, listener, async move {
            let _ = stopped.await;
        }));
        Self { address, stop: Some(stop), ended }
    }

    async fn connect(&self) -> TcpStream {
        TcpStream::connect(self.address).await.unwrap()
    }

    /// Sends bytes and reads until the connection ends.
    async fn exchange(&self, request: &[u8]) -> String {
        let mut stream = self.connect().await;
        // The server may have hung up before everything is sent.
        let _ = stream.write_all(request).await;
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer).await;
        String::from_utf8_lossy(&answer).into_owned()
    }

    async fn is_well(&self) {
        let answer = self
            .exchange(b"GET /api/v1/pods HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n")
            .await;
        assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
    }
}

/// Reads until the text has come.
async fn read_until(stream: &mut TcpStream, text: &str) -> String {
    let mut read = Vec::new();
    while !String::from_utf8_lossy(&read).contains(text) {
        let mut buffer = [0; 4096];
        let count = stream.read(&mut buffer).await.unwrap();
        assert!(count > 0, "ended before {text}: {}", String::from_utf8_lossy(&read));
        read.extend_from_slice(&buffer[..count]);
    }
    String::from_utf8_lossy(&read).into_owned()
}

#[tokio::test]
async fn connections_are_kept_for_the_next_request() {
    let server = Listening::new(&Faults::none()).await;
    let mut stream = server.connect().await;
    for _ in 0..3 {
        stream.write_all(b"GET /version HTTP/1.1\r\nhost: localhost\r\n\r\n").await.unwrap();
        let answer = read_until(&mut stream, "}").await;
        assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
    }
}

#[tokio::test]
async fn requests_that_are_none_end_their_connection_only() {
    let server = Listening::new(&Faults::none()).await;
    let huge =
        format!("GET /api HTTP/1.1\r\nhost: localhost\r\nx: {}\r\n\r\n", "x".repeat(1 << 20));
    let answer = server.exchange(huge.as_bytes()).await;
    assert!(answer.is_empty() || answer.starts_with("HTTP/1.1 431 "), "{answer}");
    let answer = server.exchange(b"\x16\x03\x01\x02\x00\x01\x00\r\n\r\n").await;
    assert!(answer.is_empty() || answer.starts_with("HTTP/1.1 400 "), "{answer}");
    // A body that never comes to its end, since the client goes away.
    let mut stream = server.connect().await;
    let head =
        b"POST /api/v1/namespaces HTTP/1.1\r\nhost: localhost\r\ncontent-length: 1000\r\n\r\n{\"me";
    stream.write_all(head).await.unwrap();
    drop(stream);
    let lying =
        b"POST /api/v1/namespaces HTTP/1.1\r\nhost: localhost\r\ncontent-length: 1000\r\n\r\n{\"me";
    let mut stream = server.connect().await;
    stream.write_all(lying).await.unwrap();
    stream.shutdown().await.unwrap();
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer).await;
    server.is_well().await;
}

#[tokio::test]
async fn a_body_that_comes_slowly_holds_up_no_other_request() {
    let server = Listening::new(&Faults::none()).await;
    let post = |body: &str, sent: usize| {
        format!(
            "POST /api/v1/namespaces HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\
             content-length: {}\r\n\r\n{}",
            body.len(),
            &body[..sent]
        )
    };
    let body = r#"{"metadata":{"name":"slow"}}"#;
    let mut slow = server.connect().await;
    slow.write_all(post(body, 10).as_bytes()).await.unwrap();
    let quick = r#"{"metadata":{"name":"quick"}}"#;
    let answer = server.exchange(post(quick, quick.len()).as_bytes()).await;
    assert!(answer.starts_with("HTTP/1.1 201 "), "{answer}");
    server.is_well().await;
    slow.write_all(&body.as_bytes()[10..]).await.unwrap();
    let mut answer = String::new();
    slow.read_to_string(&mut answer).await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 201 "), "{answer}");
}

#[tokio::test]
async fn only_local_programs_are_the_administrator_without_credentials() {
    let server = Listening::new(&Faults::none()).await;
    let created = "{\"metadata\":{\"generateName\":\"a-\"}}";
    for (method, headers, status) in [
        ("GET", "host: localhost", 200),
        ("GET", "host: 127.0.0.1\r\nauthorization: Basic YTpi", 401),
        ("GET", "host: 127.0.0.1\r\nauthorization: Bearer ", 401),
        ("GET", "host: 127.0.0.1\r\nauthorization: Bearer no", 401),
        ("GET", "host: 127.0.0.1\r\nauthorization: Negotiate x", 401),
        ("GET", "host: 127.0.0.1\r\nauthorization:", 401),
        ("GET", "host: evil.example.com", 403),
        ("GET", "host: localhost\r\norigin: http://evil.example.com", 403),
        ("POST", "host: localhost\r\norigin: null\r\ncontent-type: application/json", 403),
        ("POST", "host: localhost\r\norigin: http://evil.example.com", 403),
        ("POST", "host: localhost\r\ncontent-type: text/plain", 415),
        // As the client for Python sends it.
        ("POST", "host: localhost", 201),
    ] {
        let body = if method == "POST" { created } else { "" };
        let request = format!(
            "{method} /api/v1/namespaces HTTP/1.1\r\n{headers}\r\ncontent-length: {}\r\n\
             connection: close\r\n\r\n{body}",
            body.len()
        );
        let answer = server.exchange(request.as_bytes()).await;
        assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")), "{method} {headers}: {answer}");
    }
}

#[tokio::test]
async fn many_connections_are_served_at_once() {
    let server = Listening::new(&Faults::none()).await;
    let mut streams = Vec::new();
    for _ in 0..1_000 {
        streams.push(server.connect().await);
    }
    for stream in &mut streams {
        stream.write_all(b"GET /readyz HTTP/1.1\r\nhost: localhost\r\n\r\n").await.unwrap();
    }
    for stream in &mut streams {
        let answer = read_until(stream, "ok").await;
        assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
    }
}

#[tokio::test]
async fn watches_end_cleanly_and_requests_are_answered_when_the_server_stops() {
    let faults = Faults::none();
    faults.add("GET /version", Fault::Delayed(std::time::Duration::from_millis(50)));
    let mut server = Listening::new(&faults).await;
    let mut watch = server.connect().await;
    let request = b"GET /api/v1/namespaces?watch=true HTTP/1.1\r\nhost: localhost\r\n\r\n";
    watch.write_all(request).await.unwrap();
    read_until(&mut watch, "kube-system").await;
    let mut slow = server.connect().await;
    slow.write_all(b"GET /version HTTP/1.1\r\nhost: localhost\r\n\r\n").await.unwrap();
    while faults.fired().is_empty() {
        tokio::task::yield_now().await;
    }
    server.stop.take().unwrap().send(()).unwrap();
    let mut rest = String::new();
    watch.read_to_string(&mut rest).await.unwrap();
    assert!(rest.ends_with("0\r\n\r\n"), "the last chunk says that it is the last: {rest}");
    let answer = read_until(&mut slow, "gitVersion").await;
    assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
    server.ended.await.unwrap().unwrap();
    assert!(TcpStream::connect(server.address).await.is_err());
}

#[tokio::test]
async fn a_lost_connection_is_lost_on_the_wire() {
    let faults = Faults::none();
    let server = Listening::new(&faults).await;
    faults.add("GET /api/v1/pods", Fault::ConnectionLost);
    let answer = server.exchange(b"GET /api/v1/pods HTTP/1.1\r\nhost: localhost\r\n\r\n").await;
    assert_eq!(answer, "");
    server.is_well().await;
}

#[tokio::test]
async fn one_connection_of_http_2_carries_many_watches() {
    let server = Listening::new(&Faults::none()).await;
    let io = TokioIo::new(server.connect().await);
    let (sender, connection) =
        hyper::client::conn::http2::handshake(TokioExecutor::new(), io).await.unwrap();
    tokio::spawn(connection);
    let mut bodies = Vec::new();
    for _ in 0..300 {
        let uri = format!("http://{}/api/v1/namespaces?watch=true", server.address);
        let request = http::Request::get(uri).body(Empty::<bytes::Bytes>::new()).unwrap();
        bodies.push(sender.clone().send_request(request).await.unwrap().into_body());
    }
    for body in &mut bodies {
        let frame = body.frame().await.unwrap().unwrap().into_data().unwrap();
        assert!(frame.starts_with(b"{\"type\":\"ADDED\""));
    }
}
