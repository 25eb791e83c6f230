//! A registry in this process: what the distribution specification asks for, and faults on request.

use std::collections::{BTreeMap, VecDeque};
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

use super::super::reference::ImageReference;
use crate::store::oci::write::digest_of;

/// What goes wrong with a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fault {
    /// It is answered with a status, and `Retry-After` if it is 429.
    Status(u16),
    /// The connection ends after half of the answer.
    Half,
    /// One byte of the answer is another one.
    Wrong,
    /// There is no answer, for as long as the client waits.
    Silence,
    /// There is more than was announced.
    Longer,
    /// The answer has no end.
    Endless,
}

/// What the registry has, and what is asked of it.
#[derive(Debug, Default)]
pub(super) struct State {
    /// By repository and tag or digest: media type and content.
    pub(super) manifests: BTreeMap<(String, String), (String, Vec<u8>)>,
    /// By digest.
    pub(super) blobs: BTreeMap<String, Vec<u8>>,
    /// The faults of coming requests whose method and path contain a text.
    pub(super) faults: VecDeque<(&'static str, Fault)>,
    /// The `Authorization` that is required; empty for none.
    pub(super) authorization: String,
    /// Whether requests for a part of a blob are answered with all of it.
    pub(super) is_without_ranges: bool,
    /// Method, path and range of each request.
    pub(super) requests: Vec<String>,
}

/// A registry that serves until it is dropped.
pub(super) struct Server {
    pub(super) host: String,
    pub(super) state: Arc<Mutex<State>>,
}

impl Server {
    pub(super) fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a socket");
        let host = listener.local_addr().expect("an address").to_string();
        let state = Arc::new(Mutex::new(State::default()));
        let shared = Arc::downgrade(&state);
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let (Ok(stream), Some(state)) = (stream, shared.upgrade()) else { return };
                std::thread::spawn(move || serve(stream, &state));
            }
        });
        Self { host, state }
    }

    /// An image or a repository of it.
    pub(super) fn reference(&self, path: &str) -> ImageReference {
        format!("{}/{path}", self.host).parse().expect("a reference")
    }

    pub(super) fn set(&self, change: impl FnOnce(&mut State)) {
        change(&mut self.state.lock().expect("no thread panics while it holds the lock"));
    }

    /// The requests so far whose text contains another one.
    pub(super) fn requests(&self, with: &str) -> Vec<String> {
        let state = self.state.lock().expect("no thread panics while it holds the lock");
        state.requests.iter().filter(|it| it.contains(with)).cloned().collect()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // The thread that accepts connections looks once more, and finds nothing to serve.
        self.state = Arc::default();
        let _ = TcpStream::connect(&self.host);
    }
}

struct Response {
    status: u16,
    headers: Vec<(&'static str, String)>,
    body: Vec<u8>,
}

fn response(status: u16, headers: &[(&'static str, &str)], body: &[u8]) -> Response {
    let headers = headers.iter().map(|(name, value)| (*name, (*value).to_owned())).collect();
    Response { status, headers, body: body.to_vec() }
}

fn error(status: u16, code: &str) -> Response {
    let body = format!(r#"{{"errors":[{{"code":"{code}","message":"said by the registry"}}]}}"#);
    response(status, &[], body.as_bytes())
}

/// A request that was read.
struct Request {
    method: String,
    path: String,
    /// The lines of its head.
    lines: Vec<String>,
    body: Vec<u8>,
}

impl Request {
    /// Reads the request of a connection; `None` if it is not whole.
    fn read(reader: &mut BufReader<TcpStream>) -> Option<Self> {
        let mut lines = Vec::new();
        loop {
            let mut line = Vec::new();
            match reader.read_until(b'\n', &mut line) {
                Ok(0) | Err(_) => return None,
                Ok(_) => {}
            }
            // What is not text is a greeting of TLS.
            let line = String::from_utf8(line).ok()?;
            match line.trim_end() {
                "" => break,
                line => lines.push(line.to_owned()),
            }
        }
        let mut words = lines[0].split(' ');
        let (method, path) = (words.next()?.to_owned(), words.next()?.to_owned());
        let mut request = Self { method, path, lines, body: Vec::new() };
        request.body = vec![0; request.header("content-length").parse().unwrap_or_default()];
        reader.read_exact(&mut request.body).ok()?;
        Some(request)
    }

    /// Returns the value of a header; empty without it.
    fn header(&self, name: &str) -> String {
        let value = |line: &String| {
            let (key, value) = line.split_once(": ")?;
            key.eq_ignore_ascii_case(name).then(|| value.to_owned())
        };
        self.lines.iter().find_map(value).unwrap_or_default()
    }
}

/// Answers the one request of a connection.
fn serve(stream: TcpStream, state: &Mutex<State>) {
    let mut reader = BufReader::new(stream.try_clone().expect("a socket"));
    let Some(request) = Request::read(&mut reader) else { return };
    let (response, fault) = {
        let mut state = state.lock().expect("no thread panics while it holds the lock");
        state.respond(&request)
    };
    let mut text = format!("HTTP/1.1 {} X\r\nConnection: close\r\n", response.status);
    for (name, value) in &response.headers {
        text.push_str(&format!("{name}: {value}\r\n"));
    }
    let mut body = if request.method == "HEAD" { Vec::new() } else { response.body };
    if fault == Some(Fault::Longer) {
        body.push(0);
    }
    let length = if fault == Some(Fault::Endless) { usize::MAX >> 1 } else { body.len() };
    text.push_str(&format!("Content-Length: {length}\r\n\r\n"));
    match fault {
        Some(Fault::Half) => body.truncate(body.len() / 2),
        Some(Fault::Wrong) => body[0] ^= 1,
        Some(Fault::Silence) => {
            // The client gives up and closes the connection.
            let _ = reader.read(&mut [0]);
            return;
        }
        _ => {}
    }
    let mut stream = stream;
    let _ = stream.write_all(text.as_bytes()).and_then(|()| stream.write_all(&body));
    // Byte by byte, until the client gives up.
    while fault == Some(Fault::Endless) && stream.write_all(b"0").is_ok() {}
}

impl State {
    /// Returns the response to a request, and the fault that it meets.
    fn respond(&mut self, request: &Request) -> (Response, Option<Fault>) {
        let Request { method, path, body, .. } = request;
        let (range, media_type) = (request.header("range"), request.header("content-type"));
        let line = format!("{method} {path} {range}");
        let at = self.faults.iter().position(|(text, _)| line.contains(text));
        let fault = at.and_then(|at| self.faults.remove(at)).map(|(_, fault)| fault);
        self.requests.push(line);
        let response = match fault {
            _ if !self.authorization.is_empty()
                && request.header("authorization") != self.authorization =>
            {
                let mut refusal = error(401, "UNAUTHORIZED");
                refusal.headers.push(("WWW-Authenticate", "Basic realm=\"here\"".to_owned()));
                refusal
            }
            Some(Fault::Status(429)) => response(429, &[("Retry-After", "0")], b""),
            Some(Fault::Status(status)) => error(status, "UNKNOWN"),
            _ => self.answer(method, path, &range, &media_type, body),
        };
        (response, fault)
    }

    fn answer(
        &mut self,
        method: &str,
        path: &str,
        range: &str,
        media_type: &str,
        body: &[u8],
    ) -> Response {
        let (path, query) = path.split_once('?').unwrap_or((path, ""));
        let Some(path) = path.strip_prefix("/v2/") else { return response(404, &[], b"") };
        if path.is_empty() {
            return response(200, &[], b"{}");
        }
        if let Some(repository) = path.strip_suffix("/tags/list") {
            let names = self.manifests.keys().filter(|(name, _)| name == repository);
            let tags: Vec<&String> =
                names.map(|(_, tag)| tag).filter(|it| !it.contains(':')).collect();
            let body = serde_json::json!({ "name": repository, "tags": tags }).to_string();
            let is_there = self.manifests.keys().any(|(name, _)| name == repository);
            return if is_there {
                response(200, &[], body.as_bytes())
            } else {
                error(404, "NAME_UNKNOWN")
            };
        }
        if let Some((repository, image)) = path.split_once("/manifests/") {
            let key = |image: &str| (repository.to_owned(), image.to_owned());
            if method == "PUT" {
                let manifest = (media_type.to_owned(), body.to_vec());
                self.manifests.insert(key(image), manifest.clone());
                self.manifests.insert(key(&digest_of(body)), manifest);
                return response(201, &[("Location", "/there")], b"");
            }
            return match self.manifests.get(&key(image)) {
                Some((media_type, bytes)) => response(200, &[("Content-Type", media_type)], bytes),
                None => error(404, "MANIFEST_UNKNOWN"),
            };
        }
        if path.ends_with("/blobs/uploads/") {
            return response(202, &[("Location", "/v2/upload/of/one")], b"");
        }
        if path == "upload/of/one" {
            let digest = query.trim_start_matches("digest=").replace("%3A", ":");
            if digest != digest_of(body) {
                return error(400, "DIGEST_INVALID");
            }
            self.blobs.insert(digest, body.to_vec());
            return response(201, &[("Location", "/there")], b"");
        }
        let digest = path.rsplit('/').next().unwrap_or_default();
        let Some(blob) = self.blobs.get(digest) else { return error(404, "BLOB_UNKNOWN") };
        let begin = range.strip_prefix("bytes=").and_then(|it| it.strip_suffix('-'));
        match begin.and_then(|it| it.parse::<usize>().ok()) {
            Some(begin) if !self.is_without_ranges => response(206, &[], &blob[begin..]),
            _ => response(200, &[], blob),
        }
    }
}
