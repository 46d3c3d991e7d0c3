//! `Readable`: what was read of a body, for the classifier. Bodies that are coded (gzip and its like) are decoded for its
//! eyes alone; the caller gets them as they came.

use std::borrow::Cow;

use async_compression::tokio::bufread::{
    BrotliDecoder, DeflateDecoder, GzipDecoder, ZlibDecoder, ZstdDecoder,
};
use bytes::Bytes;
use fuseline_llm::Body;
use http::header::{CONTENT_ENCODING, HeaderMap};
use tokio::io::{AsyncRead, AsyncReadExt as _};

/// No more of a coded body is decoded: a few bytes can stand for a lot.
const MOST_DECODED: usize = 1 << 20;

/// The text of a body, as far as there is any.
pub(crate) struct Readable<'b> {
    text: Option<Cow<'b, [u8]>>,
    is_whole: bool,
}

impl<'b> Readable<'b> {
    /// `is_whole` says whether all of the body is there.
    pub(crate) async fn new(headers: &HeaderMap, body: &'b Bytes, is_whole: bool) -> Self {
        let codings = codings(headers);
        match codings.as_slice() {
            [] => Self {
                text: Some(Cow::Borrowed(body)),
                is_whole,
            },
            [coding] => decoded(coding, body, is_whole).await,
            _ => Self::unread(),
        }
    }

    const fn unread() -> Self {
        Self {
            text: None,
            is_whole: false,
        }
    }

    /// In the classifier's terms.
    pub(crate) fn as_body(&self) -> Body<'_> {
        match (&self.text, self.is_whole) {
            (Some(text), true) => Body::Whole(text),
            (Some(text), false) => Body::Cut(text),
            (None, _) => Body::Unread,
        }
    }
}

/// The names of the codings of a body, in lower case, in the order in which they were applied.
fn codings(headers: &HeaderMap) -> Vec<String> {
    // Most have none.
    if !headers.contains_key(CONTENT_ENCODING) {
        return Vec::new();
    }
    let values = headers.get_all(CONTENT_ENCODING).iter();
    let names = values
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','));
    names
        .map(|name| name.trim().to_ascii_lowercase())
        .filter(|name| !name.is_empty() && name != "identity")
        .collect()
}

/// Whether a body is coded.
pub(crate) fn is_coded(headers: &HeaderMap) -> bool {
    !codings(headers).is_empty()
}

async fn decoded<'b>(coding: &str, body: &'b [u8], is_whole: bool) -> Readable<'b> {
    if body.is_empty() {
        return Readable {
            text: Some(Cow::Borrowed(body)),
            is_whole,
        };
    }
    match coding {
        "gzip" | "x-gzip" => read(GzipDecoder::new(body), is_whole).await,
        "br" => read(BrotliDecoder::new(body), is_whole).await,
        "zstd" => read(ZstdDecoder::new(body), is_whole).await,
        // Two things go by this name: the one that is meant begins with a header (RFC 1950), the other one has none.
        "deflate" if is_zlib(body) => read(ZlibDecoder::new(body), is_whole).await,
        "deflate" => read(DeflateDecoder::new(body), is_whole).await,
        _ => Readable::unread(),
    }
}

/// Reads what can be decoded; of what is broken from its first byte on, nothing.
async fn read(decoder: impl AsyncRead + Unpin, is_whole: bool) -> Readable<'static> {
    let mut text = Vec::new();
    let limit = u64::try_from(MOST_DECODED).unwrap_or(u64::MAX);
    let reading = decoder.take(limit).read_to_end(&mut text).await;
    if reading.is_err() && text.is_empty() {
        return Readable::unread();
    }
    Readable {
        is_whole: is_whole && reading.is_ok() && text.len() < MOST_DECODED,
        text: Some(Cow::Owned(text)),
    }
}

fn is_zlib(body: &[u8]) -> bool {
    match *body {
        [method, flags, ..] => {
            method & 0x0f == 8 && u16::from_be_bytes([method, flags]).is_multiple_of(31)
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use async_compression::tokio::bufread::{
        BrotliEncoder, DeflateEncoder, GzipEncoder, ZlibEncoder, ZstdEncoder,
    };

    use super::*;

    const TEXT: &[u8] = br#"{"error": {"type": "insufficient_quota"}}"#;

    async fn all(mut coder: impl AsyncRead + Unpin) -> Bytes {
        let mut bytes = Vec::new();
        coder.read_to_end(&mut bytes).await.unwrap();
        bytes.into()
    }

    fn headers(coding: &str) -> HeaderMap {
        std::iter::once((CONTENT_ENCODING, coding.parse().unwrap())).collect()
    }

    async fn text_of(coding: &str, body: &Bytes) -> Option<(Vec<u8>, bool)> {
        let readable = Readable::new(&headers(coding), body, true).await;
        readable
            .text
            .map(|text| (text.into_owned(), readable.is_whole))
    }

    #[tokio::test]
    async fn every_coding_that_providers_use_is_read() {
        for (coding, body) in [
            ("identity", Bytes::from(TEXT)),
            ("gzip", all(GzipEncoder::new(TEXT)).await),
            (" X-GZIP ", all(GzipEncoder::new(TEXT)).await),
            ("br", all(BrotliEncoder::new(TEXT)).await),
            ("zstd", all(ZstdEncoder::new(TEXT)).await),
            ("deflate", all(ZlibEncoder::new(TEXT)).await),
            ("deflate", all(DeflateEncoder::new(TEXT)).await),
        ] {
            assert_eq!(
                text_of(coding, &body).await,
                Some((TEXT.to_vec(), true)),
                "{coding}"
            );
        }
    }

    #[tokio::test]
    async fn what_cannot_be_decoded_is_unread_and_what_is_cut_is_read_as_far_as_it_goes() {
        let gzip = all(GzipEncoder::new(TEXT)).await;
        for (coding, body) in [
            ("compress", Bytes::from(TEXT)),
            ("gzip, br", gzip.clone()),
            ("gzip", Bytes::from(TEXT)),
            ("zstd", gzip.clone()),
        ] {
            assert_eq!(text_of(coding, &body).await, None, "{coding}");
        }
        let (_, is_whole) = text_of("gzip", &gzip.slice(..gzip.len() - 6))
            .await
            .unwrap();
        assert!(!is_whole);
    }

    #[tokio::test]
    async fn a_bomb_is_read_to_the_limit() {
        let bomb = all(GzipEncoder::new(vec![b' '; 64 << 20].as_slice())).await;
        assert!(bomb.len() < 1 << 17);
        let (text, is_whole) = text_of("gzip", &bomb).await.unwrap();
        assert_eq!((text.len(), is_whole), (MOST_DECODED, false));
    }
}
