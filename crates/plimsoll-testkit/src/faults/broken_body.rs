//! The body of a watch that ends before its time.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http_body::{Body, Frame};
use tokio::time::{Sleep, sleep};
use tower::BoxError;

use crate::service::AnswerBody;

/// Passes a body on until a time is over, then ends it.
pub(super) struct BrokenBody {
    inner: AnswerBody,
    end: Pin<Box<Sleep>>,
    cleanly: bool,
    ended: bool,
}

impl BrokenBody {
    /// Ends `inner` after a time: as a server does that closes, or as a connection that fails.
    pub(super) fn new(inner: AnswerBody, after: Duration, cleanly: bool) -> Self {
        Self { inner, end: Box::pin(sleep(after)), cleanly, ended: false }
    }
}

impl Body for BrokenBody {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        if self.ended {
            return Poll::Ready(None);
        }
        if self.end.as_mut().poll(context).is_pending() {
            return Pin::new(&mut self.inner).poll_frame(context);
        }
        self.ended = true;
        if self.cleanly {
            return Poll::Ready(None);
        }
        let error = io::Error::new(io::ErrorKind::ConnectionReset, "the watch broke, as wanted");
        Poll::Ready(Some(Err(error.into())))
    }
}
