//! A lease that cannot be renewed is given up before others may take it. On a paused clock.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use http::{Method, Request, Response};
use http_body_util::{BodyExt as _, Full};
use kube::client::Body;

use super::*;
use crate::clock::SystemClock;

/// What the API server does with renewals after the first ones.
#[derive(Clone, Copy, PartialEq)]
enum Trouble {
    Hangs,
    Fails,
    Taken,
    /// It was deleted, and a renewal is answered with this code.
    Deleted(u16),
}

fn answer(code: u16, body: impl Into<Bytes>) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(body.into()));
    *response.status_mut() = http::StatusCode::from_u16(code).unwrap();
    response
}

fn status(code: u16) -> Response<Full<Bytes>> {
    let body = serde_json::json!({
        "kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code,
        "message": "no", "reason": if code == 404 { "NotFound" } else { "" },
    });
    answer(code, body.to_string())
}

/// A server that lets the lease be taken and renewed twice, and then is in trouble.
fn server(trouble: Trouble) -> Client {
    let renewals = Arc::new(AtomicUsize::new(0));
    let service = tower::service_fn(move |request: Request<Body>| {
        let renewals = Arc::clone(&renewals);
        async move {
            let method = request.method().clone();
            let body = request.into_body().collect().await.unwrap().to_bytes();
            let mut lease: serde_json::Value = serde_json::from_slice(&body).unwrap_or_default();
            // One with a resourceVersion is replaced from then on, and not created.
            lease["metadata"]["resourceVersion"] = "1".into();
            let body = lease.to_string();
            let renewed = renewals.load(Ordering::SeqCst);
            let other = r#"{"metadata":{},"spec":{"holderIdentity":"other"}}"#;
            Ok::<_, std::convert::Infallible>(match method {
                Method::GET if renewed < 2 => status(404),
                Method::GET if matches!(trouble, Trouble::Deleted(_)) => {
                    renewals.store(0, Ordering::SeqCst);
                    status(404)
                }
                Method::GET => answer(200, other),
                Method::POST => answer(200, body),
                _ if renewed < 2 => {
                    renewals.fetch_add(1, Ordering::SeqCst);
                    answer(200, body)
                }
                _ => match trouble {
                    Trouble::Hangs => std::future::pending().await,
                    Trouble::Fails => status(500),
                    Trouble::Taken => status(409),
                    Trouble::Deleted(code) => status(code),
                },
            })
        }
    });
    Client::new(service, "default")
}

#[tokio::test(start_paused = true)]
async fn a_lease_that_cannot_be_renewed_is_given_up_before_others_may_take_it() {
    for (trouble, expected) in [
        (Trouble::Hangs, LeaseLoss::Expired),
        (Trouble::Fails, LeaseLoss::Expired),
        (Trouble::Taken, LeaseLoss::Taken),
    ] {
        let stop = CancellationToken::new();
        let clock = Arc::new(SystemClock);
        let held = acquire(server(trouble), clock, LEASE_NAME, "us".to_owned(), &stop);
        let held = timeout_at(Instant::now() + LEASE_DURATION, held).await.unwrap().unwrap();
        let begun = Instant::now();
        assert_eq!(held.keep(stop).await, expected);
        // Renewed twice: the second time after two intervals.
        let since = begun.elapsed() - 2 * LEASE_RENEWAL;
        assert!(since >= LEASE_RENEWAL && since < LEASE_DURATION, "{since:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_deleted_lease_is_made_again_by_its_holder() {
    for code in [404, 409] {
        let stop = CancellationToken::new();
        let clock = Arc::new(SystemClock);
        let held =
            acquire(server(Trouble::Deleted(code)), clock, LEASE_NAME, "us".to_owned(), &stop)
                .await;
        let ends = tokio::spawn(held.expect("it is free").keep(stop.clone()));
        sleep(20 * LEASE_DURATION).await;
        assert!(!ends.is_finished(), "{code}");
        stop.cancel();
        assert_eq!(ends.await.unwrap(), LeaseLoss::Released, "{code}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_lease_that_was_held_is_not_taken_at_once_when_it_is_deleted() {
    let requests = Arc::new(AtomicUsize::new(0));
    let service = tower::service_fn(move |request: Request<Body>| {
        let number = requests.fetch_add(1, Ordering::SeqCst);
        async move {
            let method = request.method().clone();
            let body = request.into_body().collect().await.unwrap().to_bytes();
            let other = r#"{"metadata":{"resourceVersion":"7"},"spec":{"holderIdentity":"other"}}"#;
            Ok::<_, std::convert::Infallible>(match method {
                Method::GET if number == 0 => answer(200, other),
                Method::GET => status(404),
                _ => answer(200, body),
            })
        }
    });
    let begun = Instant::now();
    let stop = CancellationToken::new();
    let client = Client::new(service, "default");
    let held = acquire(client, Arc::new(SystemClock), LEASE_NAME, "us".to_owned(), &stop).await;
    assert!(held.is_some());
    assert!(begun.elapsed() > LEASE_DURATION, "{:?}", begun.elapsed());
}
