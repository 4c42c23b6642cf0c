//! A transaction with what there is of its pieces, looked up by their names.

use std::sync::Arc;

use tyr_types::{Operation, Payload, PieceContent, PieceRef};

/// The operations with what `content` says there is of each piece that was uploaded ahead.
pub fn with_content(
    operations: &[Operation],
    content: impl Fn(&PieceRef) -> PieceContent,
) -> Vec<Operation> {
    let found = |payload: &Payload| match payload {
        Payload::Uploaded(uploaded) => Payload::Uploaded(Arc::new(uploaded.with_content(&content))),
        Payload::Inline(_) | Payload::Extents(_) | Payload::Stamped(_) => payload.clone(),
    };
    let looked_up = |operation: &Operation| match operation {
        Operation::Write { offset, payload } => {
            Operation::Write { offset: *offset, payload: found(payload) }
        }
        Operation::Append { payload, expected } => {
            Operation::Append { payload: found(payload), expected: *expected }
        }
        Operation::Replace { payload } => Operation::Replace { payload: found(payload) },
        Operation::Create
        | Operation::Truncate { .. }
        | Operation::Clear { .. }
        | Operation::Delete
        | Operation::Apply { .. }
        | Operation::Compare { .. }
        | Operation::Expect { .. } => operation.clone(),
    };
    operations.iter().map(looked_up).collect()
}
