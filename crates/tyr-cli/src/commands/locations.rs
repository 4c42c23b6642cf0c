//! `tyr locations`: which nodes hold the chunks of a blob.

use clap::Args;
use serde_json::{Value, json};
use tyr::{ByteRange, ChunkLocation, Replica};

use super::blob::{BlobArguments, RangeArguments};
use crate::failure::Outcome;
use crate::output::table;
use crate::session::{Access, Session};

/// `tyr locations`
#[derive(Args, Debug)]
#[command(after_help = "\
The authority of a chunk comes first. In a directory there are no nodes: it is one place.

Examples:
  tyr locations photos 2026/tree.jpg
  tyr locations disks image --offset 1GiB --len 256MiB --json")]
pub struct LocationsArguments {
    #[command(flatten)]
    blob: BlobArguments,
    #[command(flatten)]
    range: RangeArguments,
}

/// Shows where the chunks lie, one a line.
pub fn run(session: &mut Session, arguments: &LocationsArguments) -> Outcome {
    let range = arguments.range.range()?;
    let (_, keyspace) = session.open_keyspace(&arguments.blob.keyspace, Access::Read)?;
    let located = keyspace.locations(arguments.blob.key()?, range)?;
    if session.output.is_json() {
        return located.iter().try_for_each(|it| session.output.json(&location_json(it)));
    }
    let row = |location: &ChunkLocation| {
        let nodes: Vec<String> = location.replicas.iter().map(replica_text).collect();
        let nodes = if nodes.is_empty() { "-".to_owned() } else { nodes.join(" ") };
        let ByteRange { start, end } = location.range;
        vec![start.to_string(), (end - start).to_string(), nodes]
    };
    let rows: Vec<Vec<String>> = located.iter().map(row).collect();
    session.output.line(&table(&["offset", "bytes", "nodes"], &rows, &[0, 1]))
}

fn replica_text(replica: &Replica) -> String {
    let domain = replica.domain.map(|domain| format!("/{domain}")).unwrap_or_default();
    format!("{}@{}{domain}", replica.node.0, replica.address)
}

fn location_json(location: &ChunkLocation) -> Value {
    let replica = |it: &Replica| {
        let mut fields = json!({ "node": it.node.0, "address": it.address });
        if let Some(domain) = it.domain {
            fields["domain"] = json!(domain);
        }
        fields
    };
    let replicas: Vec<Value> = location.replicas.iter().map(replica).collect();
    let ByteRange { start, end } = location.range;
    json!({ "offset": start, "bytes": end - start, "replicas": replicas })
}
