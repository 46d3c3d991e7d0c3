//! `Whole`: a body that is at hand, sent in pieces.
//!
//! Whatever is given to the HTTP library at once it copies into a buffer that stays as large until the caller leaves.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};

const PIECE: usize = 16 << 10;

/// Bytes that are sent piece by piece.
#[derive(Default)]
pub(crate) struct Whole(Bytes);

impl Whole {
    /// The next piece; none when all are given.
    pub(crate) fn piece(&mut self) -> Option<Bytes> {
        let length = self.0.len().min(PIECE);
        (length > 0).then(|| self.0.split_to(length))
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// How many bytes are left.
    pub(crate) fn left(&self) -> u64 {
        self.0.len() as u64
    }
}

impl From<Bytes> for Whole {
    fn from(bytes: Bytes) -> Self {
        Self(bytes)
    }
}

impl Body for Whole {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        Poll::Ready(self.piece().map(|piece| Ok(Frame::data(piece))))
    }

    fn is_end_stream(&self) -> bool {
        self.is_empty()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.left())
    }
}

#[cfg(test)]
mod tests {
    use http_body_util::BodyExt as _;

    use super::*;

    #[tokio::test]
    async fn every_byte_is_sent_once_in_pieces_of_bounded_length() {
        for length in [0, 1, PIECE - 1, PIECE, PIECE + 1, 5 * PIECE + 7] {
            let bytes: Bytes = (0..length).map(|at| (at % 251) as u8).collect();
            let mut whole = Whole::from(bytes.clone());
            assert_eq!(whole.size_hint().exact(), Some(length as u64));
            let mut sent = Vec::new();
            while let Some(frame) = whole.frame().await {
                let piece = frame.unwrap().into_data().unwrap();
                assert!((1..=PIECE).contains(&piece.len()), "{}", piece.len());
                sent.extend_from_slice(&piece);
            }
            assert_eq!(sent, bytes);
            assert!(whole.is_end_stream());
        }
    }
}
