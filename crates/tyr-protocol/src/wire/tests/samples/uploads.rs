//! Pieces, what is said of them, and a transaction that has some.

use super::*;

pub(super) const PIECE: PieceId = PieceId(0xFEDC_BA98_7654_3210_0000_0000_0000_0007);

pub(super) fn staged() -> StagedPiece {
    let piece = PieceRef { id: PIECE, len: 3, sum: 0x1122_3344_5566_7788 };
    StagedPiece { piece, blob: blob("acht"), chunk: 300 }
}

pub(super) fn in_extents() -> PieceContent {
    let extent = ExtentRef { file: 3, position: 1 << 20, len: 3, compressed_len: 0 };
    PieceContent::Extents(vec![extent])
}

/// A transaction of level 10.
pub fn uploading() -> Arc<Transaction> {
    let other = PieceRef { id: PieceId(3), len: 1 << 22, sum: 9 };
    let uploaded = Uploaded::of([staged().piece, other]).unwrap();
    let operations = vec![Operation::Replace { payload: Payload::Uploaded(Arc::new(uploaded)) }];
    let blobs = vec![BlobOperations { blob: blob("eins"), operations }];
    Arc::new(Transaction { id: ID, blobs, reads: vec![] })
}

/// What is said of pieces.
pub(super) fn uploads() -> Vec<(&'static str, Body)> {
    use upload::Message;
    let bytes = Bytes::from_static(b"abc");
    let (transaction, ids) = (ID, vec![PIECE]);
    let messages = vec![
        ("stage", Message::Stage { number: 9, staged: staged(), bytes: bytes.clone() }),
        ("staged", Message::Staged { number: 9 }),
        ("pass", Message::Pass { staged: staged(), bytes }),
        ("passed", Message::Passed { id: PIECE }),
        ("fetch", Message::Fetch { id: PIECE, transaction }),
        ("lacking", Message::Lacking { id: PIECE, transaction }),
        ("drop", Message::Drop { blob: blob("acht"), chunk: 300, ids }),
        ("copy-piece", copying()),
        ("piece-copied", Message::Copied { number: 9, piece: staged().piece }),
    ];
    messages.into_iter().map(|(name, message)| (name, Body::Upload(message))).collect()
}

fn copying() -> upload::Message {
    let range = ByteRange { start: 5, end: 1 << 20 };
    let source = PieceSource { blob: blob("eins"), range, at: at(23) };
    upload::Message::Copy { number: 9, id: PIECE, blob: blob("acht"), chunk: 300, source }
}
