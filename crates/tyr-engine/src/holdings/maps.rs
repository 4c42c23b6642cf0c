//! What maps say of keyspaces, and of who holds what.

use std::sync::Arc;

use tyr_protocol::level::{LEVEL, LEVEL_PAGES};
use tyr_protocol::map::{ClusterMap, MapKeyspace};
use tyr_protocol::message::Body;

use super::{Holdings, Keyspace};

impl Holdings {
    /// Takes notice of the map in a message, before the member is told of it, which asks about the
    /// map's keyspaces. Who holds what is as it was until a map is in effect: one that is planned
    /// may be withdrawn, and until it counts this node validates what it takes away. So does it by
    /// the map before where its program is too old for the next one.
    pub fn hear(&mut self, body: &Body) {
        match body {
            Body::NewerMap(map) | Body::Effective(map) if map.check_program(LEVEL).is_ok() => {
                self.learn(map);
            }
            Body::Prepare(map) => self.learn_keyspaces(map),
            _ => {}
        }
    }

    /// Goes by a map that is in effect.
    pub fn learn(&mut self, map: &Arc<ClusterMap>) {
        if self.map.as_ref().is_none_or(|known| known.epoch < map.epoch) {
            self.learn_keyspaces(map);
            self.store.base().write_pages(map.check_level(LEVEL_PAGES).is_ok());
            self.map = Some(Arc::clone(map));
        }
    }

    fn learn_keyspaces(&mut self, map: &ClusterMap) {
        for (id, keyspace) in &map.keyspaces {
            let MapKeyspace { name, config, .. } = keyspace;
            if !self.keyspaces.contains_key(id) {
                let adopted = self.store.adopt_keyspace(*id, name, config);
                self.note(adopted);
                let known = Keyspace {
                    chunk_size: config.chunk_size,
                    is_multi_versioned: config.is_multi_versioned,
                    is_compressed: config.is_compressed,
                };
                self.keyspaces.insert(*id, known);
            }
        }
    }
}
