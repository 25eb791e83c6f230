//! When a watch is continued and when objects are listed again. On a paused clock.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use futures::stream;
use http::{Request, Response};
use http_body_util::{BodyExt as _, StreamBody};
use hyper::body::Frame;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::Client;
use kube::client::Body;

use super::*;

type Requests = Arc<Mutex<Vec<String>>>;

/// A server whose first watch ends after some seconds as one that is complete does, and whose others last.
/// Notes what is requested.
fn server(seconds: u64, requests: Requests) -> Client {
    let watches = Arc::new(AtomicUsize::new(0));
    let service = tower::service_fn(move |request: Request<Body>| {
        let query = request.uri().query().unwrap_or_default().to_owned();
        let is_watch = query.contains("watch=true");
        let count = if is_watch { watches.fetch_add(1, Ordering::SeqCst) } else { 0 };
        let note = match (is_watch, query.contains("resourceVersion=7")) {
            (false, _) => "list",
            (true, true) => "watch from 7",
            (true, false) => "watch from elsewhere",
        };
        requests.lock().unwrap().push(note.to_owned());
        let body = stream::once(async move {
            let text = match is_watch {
                false => r#"{"metadata":{"resourceVersion":"7"},"items":[]}"#,
                true if count == 0 => {
                    tokio::time::sleep(Duration::from_secs(seconds)).await;
                    ""
                }
                true => std::future::pending().await,
            };
            Ok::<_, std::convert::Infallible>(Frame::data(Bytes::from_static(text.as_bytes())))
        });
        let response = Response::new(StreamBody::new(body).boxed_unsync());
        std::future::ready(Ok::<_, std::convert::Infallible>(response))
    });
    Client::new(service, "default")
}

/// Has a watch end after some seconds; what is requested, and whether a list is announced as one after
/// a loss.
async fn check(seconds: u64, expected: &str, is_announced: bool) {
    let requests = Requests::default();
    let api: Api<ConfigMap> = Api::all(server(seconds, Arc::clone(&requests)));
    let mut watched = ListingWatch::new(api, watcher::Config::default());
    assert!(matches!(watched.next().await, Ok(Event::Init)), "{seconds}");
    assert!(!watched.lists_again(), "{seconds}");
    assert!(matches!(watched.next().await, Ok(Event::InitDone)), "{seconds}");
    let limit = Duration::from_secs(seconds.min(300) + 10);
    let mut announced = false;
    let _ = tokio::time::timeout(limit, async {
        loop {
            let _ = watched.next().await;
            announced |= watched.lists_again();
        }
    })
    .await;
    assert_eq!(announced, is_announced, "{seconds}");
    assert_eq!(requests.lock().unwrap().join(", "), expected, "{seconds}");
}

#[tokio::test(start_paused = true)]
async fn a_watch_that_ends_in_time_is_continued() {
    check(u64::from(WATCH_SECONDS), "list, watch from 7, watch from 7", false).await;
}

#[tokio::test(start_paused = true)]
async fn objects_are_listed_again_after_a_watch_that_ends_early_or_not_at_all() {
    let expected = "list, watch from 7, list, watch from 7";
    check(0, expected, true).await;
    check(60, expected, true).await;
    check(3600, expected, true).await;
}
