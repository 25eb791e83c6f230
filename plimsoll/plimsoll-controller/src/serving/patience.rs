//! Streams whose answers have to be read in time: an answer that a client does not read stays in memory.

use std::io::{Error, ErrorKind, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Sleep, sleep};

/// How long a client may take to read an answer, from the first time that it is waited for.
pub(super) const READING: Duration = Duration::from_secs(60);

/// A stream that fails if what is written to it is not read within [`READING`].
pub(super) struct TimedWrites<S> {
    stream: S,
    /// When what is written has to be read; `None` if all of it was.
    deadline: Option<Pin<Box<Sleep>>>,
}

impl<S> TimedWrites<S> {
    pub(super) fn new(stream: S) -> Self {
        Self { stream, deadline: None }
    }

    /// Returns the progress of a write; a failure if the time is over and there is none.
    fn in_time<T>(
        &mut self,
        context: &mut Context<'_>,
        progress: Poll<Result<T, Error>>,
    ) -> Poll<Result<T, Error>> {
        if progress.is_pending() {
            let deadline = self.deadline.get_or_insert_with(|| Box::pin(sleep(READING)));
            if deadline.as_mut().poll(context).is_ready() {
                return Poll::Ready(Err(ErrorKind::TimedOut.into()));
            }
        }
        progress
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for TimedWrites<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<Result<(), Error>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for TimedWrites<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<Result<usize, Error>> {
        let progress = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.in_time(context, progress)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<(), Error>> {
        let progress = Pin::new(&mut self.stream).poll_flush(context);
        if progress.is_ready() {
            self.deadline = None;
        }
        self.in_time(context, progress)
    }

    fn poll_shutdown(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Result<(), Error>> {
        let progress = Pin::new(&mut self.stream).poll_shutdown(context);
        self.in_time(context, progress)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<Result<usize, Error>> {
        let progress = Pin::new(&mut self.stream).poll_write_vectored(context, slices);
        self.in_time(context, progress)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }
}
