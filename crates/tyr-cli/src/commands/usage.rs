//! `tyr usage`: how much there is of each keyspace, and how full the disks are.

use std::time::Duration;

use clap::Args;
use serde_json::{Value, json};
use tyr::{DiskSpace, Error, KeyspaceSize, NodeSpace};

use crate::data::size_text;
use crate::failure::Outcome;
use crate::output::table;
use crate::session::{Access, Session};

/// `tyr usage`
#[derive(Args, Debug)]
#[command(after_help = "\
Bytes are those of the blobs, holes included and replicas not; what the nodes take is with all \
replicas. On a cluster `counted` says how long ago all blobs were counted one by one, changes \
since then are followed; `not all yet` means that there may be more.

Examples:
  tyr usage
  tyr usage photos --json")]
pub struct UsageArguments {
    /// Only this keyspace, and no disks
    keyspace: Option<String>,
}

/// Shows how much there is.
pub fn run(session: &mut Session, arguments: &UsageArguments) -> Outcome {
    let mut usage = session.open(Access::Read)?.usage()?;
    let is_cluster = session.is_cluster()?;
    let Some(name) = &arguments.keyspace else {
        let all = json!({
            "keyspaces": usage.keyspaces.iter().map(size_json).collect::<Vec<_>>(),
            "nodes": usage.nodes.iter().map(node_json).collect::<Vec<_>>(),
            "disk": disk_json(&usage.disk()),
        });
        let keyspaces = keyspace_table(&usage.keyspaces, is_cluster);
        let text = format!("{keyspaces}\n\n{}", node_table(&usage.nodes, &usage.disk()));
        return session.output.record(&all, &text);
    };
    usage.keyspaces.retain(|size| size.info.name.as_str() == name);
    let size = usage.keyspaces.first().ok_or_else(|| {
        Error::not_found(format!(
            "there is no keyspace \"{}\"; `tyr keyspace list` shows those there are",
            name.escape_debug()
        ))
    })?;
    let text = keyspace_table(std::slice::from_ref(size), is_cluster);
    session.output.record(&size_json(size), &text)
}

fn keyspace_table(sizes: &[KeyspaceSize], is_cluster: bool) -> String {
    let row = |size: &KeyspaceSize| {
        let of = |used: String, limit: Option<String>| match limit {
            Some(limit) => format!("{used} of {limit}"),
            None => used,
        };
        let cells = [
            size.info.name.to_string(),
            of(size.blobs.to_string(), size.limit.blobs.map(|limit| limit.to_string())),
            of(size_text(size.bytes), size.limit.bytes.map(size_text)),
        ];
        let counted = is_cluster.then(|| counted_text(size.counted_ago));
        cells.into_iter().chain(counted).collect()
    };
    let rows: Vec<Vec<String>> = sizes.iter().map(row).collect();
    let heads = ["keyspace", "blobs", "bytes", "counted"];
    table(&heads[..heads.len() - usize::from(!is_cluster)], &rows, &[1, 2])
}

fn counted_text(ago: Option<Duration>) -> String {
    match ago.map(|ago| ago.as_secs()) {
        None => "not all yet".to_owned(),
        Some(seconds) if seconds < 120 => format!("{seconds} s ago"),
        Some(seconds) => format!("{} min ago", seconds / 60),
    }
}

fn node_table(nodes: &[NodeSpace], all: &DiskSpace) -> String {
    let cells = |disk: &DiskSpace| {
        [disk.taken_bytes, disk.free_bytes, disk.size_bytes].map(size_text).into_iter()
    };
    let row = |node: &NodeSpace| {
        let first = [node.node.0.to_string()].into_iter();
        match &node.disk {
            Ok(disk) => first.chain(cells(disk)).collect(),
            Err(why) => first.chain(["?", "?", "?", why].map(str::to_owned)).collect(),
        }
    };
    let mut rows: Vec<Vec<String>> = nodes.iter().map(row).collect();
    if nodes.len() > 1 {
        rows.push(["all".to_owned()].into_iter().chain(cells(all)).collect());
    }
    rows.iter_mut().for_each(|row| row.resize(5, String::new()));
    table(&["node", "taken", "free", "of", ""], &rows, &[1, 2, 3])
}

fn size_json(size: &KeyspaceSize) -> Value {
    json!({
        "name": size.info.name.as_str(),
        "id": size.info.id.0,
        "blobs": size.blobs,
        "bytes": size.bytes,
        "blobs_max": size.limit.blobs,
        "bytes_max": size.limit.bytes,
        "counted_ago_s": size.counted_ago.map(|ago| ago.as_secs_f64()),
    })
}

fn node_json(node: &NodeSpace) -> Value {
    let mut fields = json!({"node": node.node.0, "address": node.address});
    match &node.disk {
        Ok(disk) => fields["disk"] = disk_json(disk),
        Err(why) => fields["unknown"] = json!(why),
    }
    fields
}

fn disk_json(disk: &DiskSpace) -> Value {
    json!({
        "size_bytes": disk.size_bytes,
        "free_bytes": disk.free_bytes,
        "taken_bytes": disk.taken_bytes,
    })
}

#[cfg(test)]
mod tests {
    use tyr::{KeyspaceConfig, KeyspaceInfo, KeyspaceName, SizeLimit};

    use super::*;

    #[test]
    fn a_keyspace_is_a_line_with_its_limits_and_when_it_was_counted() {
        let name = KeyspaceName::new("notes").unwrap();
        let info = KeyspaceInfo { id: tyr::KeyspaceId(1), name, config: KeyspaceConfig::default() };
        let limit = SizeLimit { blobs: None, bytes: Some(4096) };
        let counted_ago = Some(Duration::from_secs(150));
        let size = KeyspaceSize { info, blobs: 7, bytes: 1024, limit, counted_ago };
        let line = |is_cluster| {
            let text = keyspace_table(std::slice::from_ref(&size), is_cluster);
            text.lines().nth(1).unwrap().to_owned()
        };
        assert_eq!(line(true), "notes         7  1.0 KiB of 4.0 KiB  2 min ago");
        assert_eq!(line(false), "notes         7  1.0 KiB of 4.0 KiB");
        assert_eq!(counted_text(None), "not all yet");
    }

    #[test]
    fn a_node_that_says_nothing_is_a_line_with_the_reason() {
        let disk = DiskSpace { size_bytes: 4096, free_bytes: 1024, taken_bytes: 512 };
        let node = |node, disk| NodeSpace { node: tyr::NodeId(node), address: String::new(), disk };
        let nodes = [node(0, Ok(disk)), node(1, Err("it is down".to_owned()))];
        let text = node_table(&nodes, &disk);
        assert!(text.contains("\n0     512 B  1.0 KiB  4.0 KiB\n"), "{text}");
        assert!(text.contains("it is down\nall   512 B"), "{text}");
    }
}
