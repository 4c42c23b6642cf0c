//! Keyspaces of a cluster. They are in the map, which the monitors change.
//!
//! The monitors are asked each time, since a keyspace of the same name may have been dropped and
//! made again elsewhere. It happens when a program starts, not with every call.

use std::sync::Arc;

use tyr_control::status::Bootstrap;
use tyr_protocol::map::{Change, ClusterMap, MapKeyspace};
use tyr_types::{Error, KeyspaceConfig, KeyspaceId, KeyspaceName, Result};

use super::Client;
use tyr_runtime::clock;
use tyr_types::KeyspaceInfo;

impl Client {
    /// Makes a keyspace.
    ///
    /// # Errors
    /// `AlreadyExists`, `InvalidArgument`; `Unavailable` when the monitors do not answer.
    pub async fn create_keyspace(
        &self,
        name: &KeyspaceName,
        config: &KeyspaceConfig,
    ) -> Result<KeyspaceInfo> {
        config.validate()?;
        let (name, config) = (name.clone(), config.clone());
        let seed = clock::random_u64();
        let change = Change::CreateKeyspace { name: name.clone(), config, seed };
        self.control.propose(change).await?;
        self.keyspace(&name).await
    }

    /// Finds a keyspace.
    ///
    /// # Errors
    /// `NotFound`; `Unavailable` when the monitors do not answer.
    pub async fn keyspace(&self, name: &KeyspaceName) -> Result<KeyspaceInfo> {
        let map = self.newest_map().await?;
        let (id, found) = map.keyspace_named(name.as_str()).ok_or_else(|| {
            Error::not_found(format!("there is no keyspace \"{name}\"; create it first"))
        })?;
        Ok(info_of(id, found))
    }

    /// All keyspaces, by name.
    ///
    /// # Errors
    /// `Unavailable` when the monitors do not answer.
    pub async fn keyspaces(&self) -> Result<Vec<KeyspaceInfo>> {
        let map = self.newest_map().await?;
        let open = map.keyspaces.iter().filter(|(_, keyspace)| !keyspace.is_dropped);
        let mut infos: Vec<_> = open.map(|(id, keyspace)| info_of(*id, keyspace)).collect();
        infos.sort_by(|left, right| left.name.cmp(&right.name));
        Ok(infos)
    }

    /// Removes a keyspace and everything in it.
    ///
    /// # Errors
    /// `NotFound`; `Unavailable` when the monitors do not answer.
    pub async fn drop_keyspace(&self, name: &KeyspaceName) -> Result<()> {
        let id = self.keyspace(name).await?.id;
        self.control.propose(Change::DropKeyspace(id)).await?;
        // From now on this client does not use it either.
        self.newest_map().await.map(drop)
    }

    async fn newest_map(&self) -> Result<Arc<ClusterMap>> {
        self.newest().await.map(|(map, _)| map)
    }

    /// The newest map, by which this client goes from now on, and what it came with.
    pub(super) async fn newest(&self) -> Result<(Arc<ClusterMap>, Bootstrap)> {
        let bootstrap = self.control.newest().await?;
        let map = Arc::new(bootstrap.cluster_map()?);
        self.install(Arc::clone(&map));
        Ok((map, bootstrap))
    }
}

pub(super) fn info_of(id: KeyspaceId, keyspace: &MapKeyspace) -> KeyspaceInfo {
    KeyspaceInfo { id, name: keyspace.name.clone(), config: keyspace.config.clone() }
}
