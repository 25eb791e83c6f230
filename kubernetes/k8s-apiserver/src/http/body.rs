//! Response bodies: complete ones, and the streams of watches.
use std::any::Any;
use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use futures::{Stream, StreamExt as _};
use http_body::{Body as HttpBody, Frame, SizeHint};

/// The body of a response.
pub struct Body {
    kind: BodyKind,
    /// Dropped with the body, when it was sent or the client is gone.
    _guard: Option<Box<dyn Any + Send>>,
}

enum BodyKind {
    Whole(Option<Bytes>),
    /// A complete body that is encoded while it is read, and the number of bytes that are left.
    Pieces(usize, Box<dyn Iterator<Item = Bytes> + Send>),
    Stream(Pin<Box<dyn Stream<Item = Bytes> + Send>>),
}

impl Body {
    /// A complete body.
    pub(crate) fn whole(bytes: impl Into<Bytes>) -> Self {
        Self { kind: BodyKind::Whole(Some(bytes.into())), _guard: None }
    }

    /// A complete body of `length` bytes that is encoded piece by piece while it is read.
    pub(crate) fn pieces(
        length: usize,
        pieces: impl Iterator<Item = Bytes> + Send + 'static,
    ) -> Self {
        Self { kind: BodyKind::Pieces(length, Box::new(pieces)), _guard: None }
    }

    /// The bytes of a complete body that was not read yet; none of a stream.
    pub(crate) fn as_whole(&mut self) -> Option<&Bytes> {
        if let BodyKind::Pieces(_, pieces) = &mut self.kind {
            self.kind = BodyKind::Whole(Some(concatenated(pieces)));
        }
        match &self.kind {
            BodyKind::Whole(bytes) => bytes.as_ref(),
            BodyKind::Pieces(..) | BodyKind::Stream(_) => None,
        }
    }

    /// The body as a stream.
    pub(crate) fn into_stream(self) -> Pin<Box<dyn Stream<Item = Bytes> + Send>> {
        match self.kind {
            BodyKind::Whole(bytes) => Box::pin(futures::stream::iter(bytes)),
            BodyKind::Pieces(_, pieces) => Box::pin(futures::stream::iter(pieces)),
            BodyKind::Stream(stream) => stream,
        }
    }

    /// A body that ends when `stream` ends.
    pub(crate) fn stream(stream: impl Stream<Item = Bytes> + Send + 'static) -> Self {
        Self { kind: BodyKind::Stream(Box::pin(stream)), _guard: None }
    }

    /// The same body with a guard that is dropped with it.
    pub(crate) fn with_guard(self, guard: impl Any + Send) -> Self {
        Self { _guard: Some(Box::new(guard)), ..self }
    }

    /// The bytes of a complete body.
    ///
    /// # Errors
    /// With the body itself, when it is a stream.
    pub(crate) fn into_whole(self) -> Result<Bytes, Self> {
        match self.kind {
            BodyKind::Whole(bytes) => Ok(bytes.unwrap_or_default()),
            BodyKind::Pieces(_, mut pieces) => Ok(concatenated(&mut pieces)),
            BodyKind::Stream(stream) => {
                Err(Self { kind: BodyKind::Stream(stream), _guard: self._guard })
            }
        }
    }

    /// The same body with `change` applied to each piece.
    pub(crate) fn map(self, change: impl FnMut(Bytes) -> Bytes + Send + 'static) -> Self {
        let kind = match self.kind {
            BodyKind::Whole(bytes) => BodyKind::Whole(bytes.map(change)),
            BodyKind::Pieces(_, pieces) => {
                BodyKind::Stream(Box::pin(futures::stream::iter(pieces).map(change)))
            }
            BodyKind::Stream(stream) => BodyKind::Stream(Box::pin(stream.map(change))),
        };
        Self { kind, _guard: self._guard }
    }
}

fn concatenated(pieces: &mut dyn Iterator<Item = Bytes>) -> Bytes {
    let mut whole = Vec::new();
    pieces.for_each(|piece| whole.extend_from_slice(&piece));
    whole.into()
}

impl HttpBody for Body {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        match &mut self.kind {
            BodyKind::Whole(bytes) => Poll::Ready(
                bytes.take().filter(|bytes| !bytes.is_empty()).map(|bytes| Ok(Frame::data(bytes))),
            ),
            BodyKind::Pieces(left, pieces) => {
                let piece = pieces.next();
                *left = left.saturating_sub(piece.as_ref().map_or(0, Bytes::len));
                Poll::Ready(piece.map(|bytes| Ok(Frame::data(bytes))))
            }
            BodyKind::Stream(stream) => {
                stream.as_mut().poll_next(cx).map(|item| item.map(|bytes| Ok(Frame::data(bytes))))
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        matches!(&self.kind, BodyKind::Whole(None))
    }

    fn size_hint(&self) -> SizeHint {
        match &self.kind {
            BodyKind::Whole(bytes) => {
                SizeHint::with_exact(bytes.as_ref().map_or(0, |bytes| bytes.len() as u64))
            }
            BodyKind::Pieces(left, _) => SizeHint::with_exact(*left as u64),
            BodyKind::Stream(_) => SizeHint::default(),
        }
    }
}

impl std::fmt::Debug for Body {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.kind {
            BodyKind::Whole(bytes) => write!(out, "Body({})", bytes.as_ref().map_or(0, Bytes::len)),
            BodyKind::Pieces(left, _) => write!(out, "Body({left} in pieces)"),
            BodyKind::Stream(_) => out.write_str("Body(stream)"),
        }
    }
}
