//! `Gathered`: a body as its pieces come. One that comes in a single piece, as most do, is not copied.

use bytes::{Bytes, BytesMut};

/// The pieces so far.
#[derive(Default)]
pub(crate) struct Gathered {
    /// As long as there are no more.
    first: Bytes,
    /// All of them, from the second one on.
    all: BytesMut,
}

impl Gathered {
    pub(crate) fn push(&mut self, piece: Bytes) {
        if self.is_empty() {
            self.first = piece;
            return;
        }
        let first = std::mem::take(&mut self.first);
        self.all.extend_from_slice(&first);
        self.all.extend_from_slice(&piece);
    }

    pub(crate) fn len(&self) -> usize {
        self.first.len() + self.all.len()
    }

    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// All of them in one.
    pub(crate) fn whole(self) -> Bytes {
        if self.all.is_empty() {
            self.first
        } else {
            self.all.freeze()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_come_out_as_one_and_a_single_one_where_it_lay() {
        for pieces in [
            &[][..],
            &[""],
            &["", "a"],
            &["a", "", "b"],
            &["ab", "c", "d"],
        ] {
            let mut gathered = Gathered::default();
            for piece in pieces {
                gathered.push(Bytes::from_static(piece.as_bytes()));
            }
            let text = pieces.concat();
            assert_eq!(gathered.len(), text.len());
            assert_eq!(gathered.whole(), text);
        }
        let piece = Bytes::from("alone".to_owned());
        let mut gathered = Gathered::default();
        gathered.push(piece.clone());
        assert_eq!(gathered.whole().as_ptr(), piece.as_ptr());
    }
}
