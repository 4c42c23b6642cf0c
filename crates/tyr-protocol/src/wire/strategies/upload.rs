//! Pieces that are uploaded ahead of their transaction, and what is said of them.

use proptest::collection::vec;
use proptest::prelude::*;

use super::words::{
    blob_name, byte_range, bytes, number_u64, piece_content, piece_id, piece_ref, timestamp,
    transaction_id,
};
use crate::member::Record;
use crate::upload::{Message, PieceSource, StagedPiece};

/// A piece that is uploaded.
pub fn staged() -> BoxedStrategy<StagedPiece> {
    (piece_ref(), blob_name(), number_u64())
        .prop_map(|(piece, blob, chunk)| StagedPiece { piece, blob, chunk })
        .boxed()
}

/// A message about pieces.
pub fn upload_message() -> BoxedStrategy<Message> {
    let (id, transaction) = (piece_id, transaction_id);
    prop_oneof![
        (number_u64(), staged(), bytes()).prop_map(|(number, staged, bytes)| Message::Stage {
            number,
            staged,
            bytes
        }),
        number_u64().prop_map(|number| Message::Staged { number }),
        (staged(), bytes()).prop_map(|(staged, bytes)| Message::Pass { staged, bytes }),
        id().prop_map(|id| Message::Passed { id }),
        (id(), transaction()).prop_map(|(id, transaction)| Message::Fetch { id, transaction }),
        (id(), transaction()).prop_map(|(id, transaction)| Message::Lacking { id, transaction }),
        (blob_name(), number_u64(), vec(id(), 0..4)).prop_map(|(blob, chunk, ids)| Message::Drop {
            blob,
            chunk,
            ids
        }),
    ]
    .boxed()
}

/// A message about pieces that are filled inside the cluster.
pub fn copy_message() -> BoxedStrategy<Message> {
    let source = (blob_name(), byte_range(), timestamp())
        .prop_map(|(blob, range, at)| PieceSource { blob, range, at });
    prop_oneof![
        (number_u64(), piece_id(), blob_name(), number_u64(), source).prop_map(
            |(number, id, blob, chunk, source)| Message::Copy { number, id, blob, chunk, source }
        ),
        (number_u64(), piece_ref()).prop_map(|(number, piece)| Message::Copied { number, piece }),
    ]
    .boxed()
}

/// A record about pieces.
pub fn upload_record() -> BoxedStrategy<Record> {
    prop_oneof![
        (staged(), any::<u64>(), piece_content())
            .prop_map(|(staged, until_us, content)| Record::Staged { staged, until_us, content }),
        vec(piece_id(), 0..4).prop_map(|ids| Record::Unstaged { ids }),
    ]
    .boxed()
}
