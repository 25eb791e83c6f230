//! Whatever is asked of the server: it answers, and what it refuses it refuses with a `Status`, or
//! where nobody is at home with the text that a kube-apiserver has for that.
//!
//! The input is a request for each paragraph: a line of method and target, a line with the content
//! type, and the body.
#![no_main]

use futures::executor::block_on;
use http::Request;
use http_body_util::{BodyExt, Full};
use libfuzzer_sys::fuzz_target;
use k8s_apiserver::{ApiServer, Options};
use serde_json::Value;
use tower::ServiceExt;

fuzz_target!(|text: &str| {
    let server = ApiServer::new(Options::default());
    for paragraph in text.split("\n\n").take(8) {
        let mut lines = paragraph.splitn(3, '\n');
        let mut words = lines.next().unwrap_or_default().split(' ');
        let (method, target) = (words.next().unwrap_or("GET"), words.next().unwrap_or("/"));
        // A watch has no end.
        if target.contains("watch") {
            continue;
        }
        let content_type = lines.next().unwrap_or_default();
        let body = lines.next().unwrap_or_default().as_bytes().to_vec();
        let body = Full::new(std::io::Cursor::new(body));
        let request = Request::builder()
            .method(method)
            .uri(target)
            .header("content-type", content_type)
            .body(body);
        let Ok(request) = request else { continue };
        let Ok(response) = block_on(server.clone().oneshot(request));
        let is_refusal = response.status().as_u16() >= 400 && method != "HEAD";
        let answer = block_on(response.into_body().collect()).map(|body| body.to_bytes());
        if let (true, Ok(answer)) = (is_refusal, answer)
            && answer != "404 page not found\n"
        {
            let status: Option<Value> = serde_json::from_slice(&answer).ok();
            assert!(status.is_some_and(|status| status["kind"] == "Status"), "{answer:?}");
        }
    }
});
