//! A snapshot: everything as it was at one moment.

use std::sync::Arc;

use crate::answer::Answer;
use crate::call::Call;
use crate::failure::Failure;
use crate::handle::HANDLES;
use crate::op;
use crate::packed::{self, count, unknown};
use crate::store::{Store, bytes};

/// A read-only view of a store at one moment.
#[derive(Debug)]
pub struct Snapshot {
    store: Arc<Store>,
    inner: tyr::Snapshot,
}

impl Snapshot {
    /// The answer that a snapshot was taken.
    pub fn taken(store: &Arc<Store>, inner: tyr::Snapshot) -> Answer {
        let version = inner.version();
        let store = Arc::clone(store);
        Answer::at(HANDLES.add(Self { store, inner }), version)
    }

    /// Has a call of it done.
    pub fn call(&self, call: Call<'_>) -> Result<Option<Answer>, Failure> {
        let keyspace = call.keyspace()?.of(&self.store)?.clone();
        let it = self.inner.clone();
        if call.op == op::SNAPSHOT_SCAN {
            let scan = packed::scan(&call.data)?;
            return call.front.run(async move {
                Ok(Answer::Packed(packed::page(&it.scan_page(&keyspace, &scan).await?)))
            });
        }
        let key = call.key()?;
        let (offset, len, front) = (count(call.a)?, count(call.b)?, call.front);
        match call.op {
            op::SNAPSHOT_READ => {
                front.run(async move { Ok(bytes(it.read(&keyspace, key, offset, len).await?)) })
            }
            op::SNAPSHOT_GET => front.run(async move { Ok(bytes(it.get(&keyspace, key).await?)) }),
            op::SNAPSHOT_STAT => {
                front.run(async move { Ok(Answer::stat(it.stat(&keyspace, key).await?)) })
            }
            other => Err(unknown("snapshot", &other.to_string())),
        }
    }
}
