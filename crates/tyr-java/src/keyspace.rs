//! A keyspace: every operation on single blobs.

use std::sync::Arc;

use tyr::{Bytes, Durability, KeyspaceConfig, PlacedBy};

use crate::answer::{Answer, Numbers};
use crate::call::Call;
use crate::failure::Failure;
use crate::handle::HANDLES;
use crate::op;
use crate::packed::{self, Unpacking, count, unknown};
use crate::store::{Store, bytes, nothing};

/// What a keyspace is created with.
pub fn config_of(words: &[u8]) -> Result<KeyspaceConfig, Failure> {
    let mut config = KeyspaceConfig::default();
    Unpacking(words).words(|name, value| {
        let small = || {
            let parsed = value.parse::<u8>();
            parsed.map_err(|_| Failure::invalid(format!("{name} is a small number, not {value}")))
        };
        let truth = || value == "true";
        match name {
            "chunk_size" => {
                let parsed = value.parse();
                config.chunk_size = parsed
                    .map_err(|_| Failure::invalid(format!("chunk_size is no number: {value}")))?;
            }
            "replication" => config.replication = small()?,
            "live_replicas_min" => config.live_replicas_min = Some(small()?),
            "durability" => config.durability = Durability::parse(value)?,
            "compressed" => config.is_compressed = truth(),
            "multi_versioned" => config.is_multi_versioned = truth(),
            "guarded" => config.is_guarded = truth(),
            "placed_by" => config.placed_by = PlacedBy::parse(value)?,
            other => return Err(unknown("keyspace", other)),
        }
        Ok(())
    })?;
    Ok(config)
}

/// A namespace of blobs.
#[derive(Debug)]
pub struct Keyspace {
    store: Arc<Store>,
    inner: tyr::Keyspace,
}

impl Keyspace {
    /// The answer that a keyspace was found.
    pub fn found(store: &Arc<Store>, inner: tyr::Keyspace) -> Answer {
        let chunk_size = inner.config().chunk_size as i64;
        let handle = HANDLES.add(Self { store: Arc::clone(store), inner });
        Answer::Numbers(Numbers::of([handle, chunk_size]))
    }

    /// It, if it is of this store.
    ///
    /// # Errors
    /// `State` when the store is closed; `InvalidArgument` when it is of another.
    pub fn of(&self, store: &Arc<Store>) -> Result<&tyr::Keyspace, Failure> {
        store.check()?;
        if !Arc::ptr_eq(store, &self.store) {
            let (name, place) = (self.inner.name(), store.place());
            return Err(Failure::invalid(format!(
                "keyspace {name} was found in another store: find it in {place}"
            )));
        }
        Ok(&self.inner)
    }

    /// Has a call of it done.
    pub fn call(&self, call: Call<'_>) -> Result<Option<Answer>, Failure> {
        self.store.check()?;
        let it = self.inner.clone();
        if call.op == op::SCAN {
            let scan = packed::scan(&call.data)?;
            let page = async move { Ok(Answer::Packed(packed::page(&it.scan_page(&scan).await?))) };
            return call.front.run(page);
        }
        let key = call.key()?;
        let (a, front) = (count(call.a)?, call.front);
        match call.op {
            op::READ => {
                let len = count(call.b)?;
                front.run(async move { Ok(bytes(it.read(key, a, len).await?)) })
            }
            op::GET => front.run(async move { Ok(bytes(it.get(key).await?)) }),
            op::STAT => front.run(async move { Ok(Answer::stat(it.stat(key).await?)) }),
            op::CREATE => front.run(async move { Ok(nothing(it.create(key).await?)) }),
            op::TRUNCATE => front.run(async move { Ok(nothing(it.truncate(key, a).await?)) }),
            op::CLEAR => {
                let len = count(call.b)?;
                front.run(async move { Ok(nothing(it.clear(key, a, len).await?)) })
            }
            op::DELETE => front.run(async move { Ok(Answer::truth(it.delete(key).await?)) }),
            op::APPLY => {
                let transform = packed::transform(&call.data)?;
                front.run(async move { Ok(Answer::value(it.apply(key, a, transform).await?)) })
            }
            op::PUT => {
                let data = Bytes::from(call.data);
                front.run(async move { Ok(nothing(it.put(key, data).await?)) })
            }
            op::WRITE => {
                let data = Bytes::from(call.data);
                front.run(async move { Ok(nothing(it.write(key, a, data).await?)) })
            }
            op::APPEND => {
                let data = Bytes::from(call.data);
                front.run(async move { Ok(Answer::number(it.append(key, data).await?)) })
            }
            op::APPEND_AT => {
                let data = Bytes::from(call.data);
                front.run(async move { Ok(Answer::number(it.append_at(key, a, data).await?)) })
            }
            op::COMPARE_AND_SWAP => {
                let (expected, new) = (Bytes::from(call.data), Bytes::from(call.more));
                front.run(
                    async move { Ok(nothing(it.compare_and_swap(key, a, expected, new).await?)) },
                )
            }
            other => Err(unknown("keyspace", &other.to_string())),
        }
    }
}
