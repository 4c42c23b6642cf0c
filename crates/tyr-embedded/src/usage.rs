//! How much there is in a store, and how much room its disk has left.

use std::time::Duration;

use tyr_types::{
    KeyspaceId, KeyspaceInfo, KeyspaceSize, KeyspaceUsage, NodeId, NodeSpace, Result, SizeLimit,
    Usage,
};

use crate::EmbeddedStore;

impl EmbeddedStore {
    /// How much there is of each keyspace, exactly, with everything that was acknowledged before;
    /// of what is committed meanwhile some may count. Takes a moment for each blob that the base
    /// lacks something of.
    ///
    /// # Errors
    /// `Corrupt` and `Unavailable` as the disk has it.
    pub fn usage(&self) -> Result<Usage> {
        self.inner.check_open()?;
        let infos = self.inner.keyspaces.list();
        let ids: Vec<KeyspaceId> = infos.iter().map(|info| info.id).collect();
        // A fold that moves a blob in between would have it counted twice, or not at all.
        let moving = self.inner.folding.moving.lock();
        let counted = self.inner.store.usage(&ids)?;
        drop(moving);
        let size = |(info, used): (KeyspaceInfo, KeyspaceUsage)| KeyspaceSize {
            info,
            blobs: used.blobs,
            bytes: used.bytes,
            limit: SizeLimit::default(),
            counted_ago: Some(Duration::ZERO),
        };
        let keyspaces = infos.into_iter().zip(counted).map(size).collect();
        let disk = self.inner.store.space(self.inner.log_bytes()).map_err(|it| it.to_string());
        let nodes = vec![NodeSpace { node: NodeId(0), address: String::new(), disk }];
        Ok(Usage { keyspaces, nodes })
    }
}

#[cfg(test)]
mod tests {
    use tyr_types::{
        BlobName, BlobOperations, Bytes, Key, KeyspaceConfig, KeyspaceName, Operation, Payload,
        Transaction,
    };

    use super::*;
    use crate::{Held, Options};

    fn does(store: &EmbeddedStore, id: KeyspaceId, key: u32, does: Operation) {
        let blob = BlobName { keyspace: id, key: Key::new(format!("{key}")).unwrap() };
        let blobs = vec![BlobOperations { blob, operations: vec![does] }];
        let id = store.next_transaction_id();
        let transaction = Transaction { id, blobs, reads: Vec::new() };
        store.commit(transaction, Held::default()).wait().unwrap();
    }

    fn append(len: usize) -> Operation {
        let payload = Payload::Inline(Bytes::from(vec![7; len]));
        Operation::Append { payload, expected: None }
    }

    fn counted(store: &EmbeddedStore) -> Vec<(String, u64, u64)> {
        let keyspaces = store.usage().unwrap().keyspaces;
        keyspaces.iter().map(|it| (it.info.name.to_string(), it.blobs, it.bytes)).collect()
    }

    #[test]
    fn what_is_in_memory_and_what_is_folded_count_once_also_after_opening_again() {
        let folder = tempfile::tempdir().unwrap();
        let open = || EmbeddedStore::open(folder.path(), Options::default()).unwrap();
        let store = open();
        let make = |name: &str| {
            let name = KeyspaceName::new(name).unwrap();
            store.create_keyspace(&name, &KeyspaceConfig::default()).unwrap().info().id
        };
        let (one, two) = (make("one"), make("two"));
        assert_eq!(counted(&store), [("one".into(), 0, 0), ("two".into(), 0, 0)]);
        (0..5).for_each(|key| does(&store, one, key, append(100)));
        does(&store, two, 0, append(40_000));
        let before = [("one".into(), 5, 500), ("two".into(), 1, 40_000)];
        assert_eq!(counted(&store), before, "in memory");
        store.fold().unwrap();
        assert_eq!(counted(&store), before, "in the base");
        does(&store, one, 0, append(10));
        does(&store, one, 1, Operation::Delete);
        does(&store, one, 9, Operation::Truncate { len: 1000 });
        does(&store, two, 0, Operation::Delete);
        let after = [("one".into(), 5, 1410), ("two".into(), 0, 0)];
        assert_eq!(counted(&store), after, "some of each");
        let disk = store.usage().unwrap().disk();
        assert!(disk.taken_bytes > 0 && disk.free_bytes <= disk.size_bytes, "{disk:?}");
        store.fold().unwrap();
        assert_eq!(counted(&store), after);
        store.close().unwrap();
        drop(store);
        assert_eq!(counted(&open()), after, "opened again");
    }

    #[test]
    fn a_question_while_blobs_move_into_the_base_counts_each_once() {
        let folder = tempfile::tempdir().unwrap();
        let store = EmbeddedStore::open(folder.path(), Options::default()).unwrap();
        let name = KeyspaceName::new("one").unwrap();
        let one = store.create_keyspace(&name, &KeyspaceConfig::default()).unwrap().info().id;
        let keys = 2000;
        (0..keys).for_each(|key| does(&store, one, key, append(10)));
        let all = [("one".into(), u64::from(keys), u64::from(keys) * 10)];
        std::thread::scope(|scope| {
            let folding = scope.spawn(|| store.fold().unwrap());
            while !folding.is_finished() {
                assert_eq!(counted(&store), all);
            }
        });
        assert_eq!(counted(&store), all);
    }
}
