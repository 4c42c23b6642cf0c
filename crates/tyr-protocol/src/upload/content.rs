//! A transaction with what there is of its pieces, looked up by their names.

use std::sync::Arc;

use tyr_types::{Operation, Payload, PieceContent, PieceRef};

/// The operations with what `content` says there is of each piece that was uploaded ahead.
pub fn with_content(
    operations: &[Operation],
    content: impl Fn(&PieceRef) -> PieceContent,
) -> Vec<Operation> {
    let looked_up = |operation: &Operation| match operation.payload() {
        Some(Payload::Uploaded(uploaded)) => {
            operation.with_payload(Payload::Uploaded(Arc::new(uploaded.with_content(&content))))
        }
        Some(Payload::Inline(_) | Payload::Extents(_) | Payload::Stamped(_)) | None => {
            operation.clone()
        }
    };
    operations.iter().map(looked_up).collect()
}
