//! Faults in the response streams of watches.
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http_body::{Body, Frame};
use http_body_util::combinators::UnsyncBoxBody;
use tokio::time::{Sleep, sleep};
use tower::BoxError;

/// The body of a response that may fail while it is sent.
pub type FaultyBody = UnsyncBoxBody<Bytes, BoxError>;

/// A fault in a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum StreamFault {
    /// It ends after the time.
    Closed,
    /// It fails after the time.
    Broken,
    /// Its events are lost, and after the time it ends with an error.
    Expired,
    /// Its events come twice.
    Duplicated,
}

/// The last event of an expired watch.
const EXPIRED: &[u8] =
    b"{\"type\":\"ERROR\",\"object\":{\"kind\":\"Status\",\"apiVersion\":\"v1\",\
    \"metadata\":{},\"status\":\"Failure\",\"message\":\"too old resource version\",\
    \"reason\":\"Expired\",\"code\":410}}\n";

/// A body with a fault.
pub(super) struct WatchBody {
    inner: FaultyBody,
    change: StreamFault,
    end: Pin<Box<Sleep>>,
    ended: bool,
    /// The beginning of a line that is not complete yet.
    pending: BytesMut,
}

impl WatchBody {
    /// Injects a fault into `inner`; those in time after `after`.
    pub(super) fn new(inner: FaultyBody, change: StreamFault, after: Duration) -> Self {
        let end = Box::pin(sleep(after));
        Self { inner, change, end, ended: false, pending: BytesMut::new() }
    }

    fn last(&mut self) -> Option<Result<Frame<Bytes>, BoxError>> {
        self.ended = true;
        match self.change {
            StreamFault::Closed | StreamFault::Duplicated => None,
            StreamFault::Broken => Some(Err(connection_lost())),
            StreamFault::Expired => Some(Ok(Frame::data(Bytes::from_static(EXPIRED)))),
        }
    }
}

impl Body for WatchBody {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        loop {
            if self.ended {
                return Poll::Ready(None);
            }
            if self.change != StreamFault::Duplicated && self.end.as_mut().poll(cx).is_ready() {
                return Poll::Ready(self.last());
            }
            let frame = ready!(Pin::new(&mut self.inner).poll_frame(cx));
            match (frame, self.change) {
                (Some(Ok(frame)), StreamFault::Duplicated) => match frame.into_data() {
                    Ok(data) => {
                        self.pending.extend_from_slice(&data);
                        let lines = twice(&mut self.pending);
                        if !lines.is_empty() {
                            return Poll::Ready(Some(Ok(Frame::data(lines))));
                        }
                    }
                    Err(frame) => return Poll::Ready(Some(Ok(frame))),
                },
                (Some(Ok(_)), StreamFault::Expired) => {}
                (frame, _) => return Poll::Ready(frame),
            }
        }
    }
}

/// The error of a connection that was reset.
pub(super) fn connection_lost() -> BoxError {
    io::Error::new(io::ErrorKind::ConnectionReset, "the connection was lost, as was asked for")
        .into()
}

/// Takes the complete lines, and duplicates those with an event.
fn twice(pending: &mut BytesMut) -> Bytes {
    let Some(end) = pending.iter().rposition(|byte| *byte == b'\n') else {
        return Bytes::new();
    };
    let lines = pending.split_to(end + 1);
    let mut out = Vec::with_capacity(2 * lines.len());
    for line in lines.split_inclusive(|byte| *byte == b'\n') {
        out.extend_from_slice(line);
        let is_event = [&b"{\"type\":\"BOOKMARK\""[..], b"{\"type\":\"ERROR\""]
            .iter()
            .all(|other| !line.starts_with(other));
        if is_event {
            out.extend_from_slice(line);
        }
    }
    out.into()
}
