//! The first leader of all: the cluster's identity and its first map.
//!
//! The map can be made when every initial node has told of itself, since it holds their
//! incarnations. Whoever leads by then makes it; what a former leader did is there, and not done
//! again.

use std::time::Duration;

use tyr_protocol::map::{ClusterMap, Newcomer};

use super::Deposed;
use super::term::{Lead, map_bytes};
use tyr_control::record;
use tyr_metadata::{Expected, Transaction, reserved};
use tyr_runtime::clock;

/// How long to wait for the next node to tell of itself before looking whether this still leads.
const LOOK_AGAIN: Duration = Duration::from_millis(250);

/// Returns once there is a map.
pub(super) async fn form(lead: &Lead<'_>) -> Result<(), Deposed> {
    let mut revisions = lead.shared.committed.revisions();
    loop {
        lead.confirm_patiently().await?;
        let (has_id, has_map) = {
            let store = lead.shared.committed.read();
            (store.get(reserved::ID).is_some(), store.get(reserved::MAP).is_some())
        };
        if has_map {
            return Ok(());
        }
        if !has_id {
            let id = (u128::from(clock::random_u64()) << 64) | u128::from(clock::random_u64());
            let path = reserved::path(reserved::ID);
            let put = Transaction::new()
                .when(path.clone(), Expected::Absent)
                .put(path, id.to_le_bytes().to_vec());
            lead.commit(put).await?;
            continue;
        }
        if let Some(map) = first_map(lead) {
            let path = reserved::path(reserved::MAP);
            let put =
                Transaction::new().when(path.clone(), Expected::Absent).put(path, map_bytes(&map));
            lead.commit(put).await?;
            continue;
        }
        _ = tokio::time::timeout(LOOK_AGAIN, revisions.changed()).await;
    }
}

/// The map of all initial nodes, if all have told of themselves.
fn first_map(lead: &Lead<'_>) -> Option<ClusterMap> {
    let initial = &lead.shared.options.initial;
    let records = record::records(&lead.shared.committed.read());
    let newcomer = |node| records.get(&node).map(|record| record.newcomer(node));
    let members: Option<Vec<Newcomer>> = initial.iter().map(|it| newcomer(it.node)).collect();
    // Records are checked when they are taken, so what cannot form a map is an empty list.
    ClusterMap::form(&members?).ok()
}
