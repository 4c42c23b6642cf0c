//! `tyr keyspace quota`: what a keyspace of a cluster may have at most.
//!
//! Limits lie in the service metadata, where nodes follow them; what is used any node says,
//! since all nodes hear of it from each other.

use clap::Args;
use serde_json::{Value, json};
use tyr::Error;
use tyr_control::status::Bootstrap;
use tyr_server::quota::{Quota, QuotaReport};

use super::{Connection, reports};
use crate::data::{parse_size, size_text};
use crate::failure::{Failure, Outcome};
use crate::session::{Session, address};

/// Nodes that are asked what is used before that is given up.
const ASKED_MAX: usize = 5;

/// `tyr keyspace quota`
#[derive(Args, Debug)]
#[command(after_help = "\
Without flags, shows the limits and what is used. Only clusters have quotas.

Examples:
  tyr keyspace quota photos --bytes 500GiB --blobs 1000000
  tyr keyspace quota photos --operations none
  tyr keyspace quota photos --json")]
pub struct QuotaArguments {
    /// The keyspace
    name: String,
    /// Bytes of all its blobs together, holes included
    #[arg(long, value_parser = parse_bytes_limit, value_name = "SIZE|none")]
    bytes: Option<Limit>,
    /// Blobs
    #[arg(long, value_parser = parse_limit, value_name = "N|none")]
    blobs: Option<Limit>,
    /// Reads and writes a second, each by the blobs that it names
    #[arg(long, value_parser = parse_limit, value_name = "N|none")]
    operations: Option<Limit>,
}

/// A limit on the command line: so many, or none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Limit(Option<u64>);

fn parse_bytes_limit(text: &str) -> Result<Limit, String> {
    match text {
        "none" => Ok(Limit(None)),
        size => parse_size(size)
            .map(|size| Limit(Some(size)))
            .map_err(|error| format!("{error}; or none")),
    }
}

fn parse_limit(text: &str) -> Result<Limit, String> {
    match text {
        "none" => Ok(Limit(None)),
        number => number
            .parse()
            .map(|number| Limit(Some(number)))
            .map_err(|_| format!("\"{}\" is neither a number nor none", number.escape_debug())),
    }
}

/// Does what the command line says.
pub fn run(session: &mut Session, arguments: &QuotaArguments) -> Outcome {
    let data = session.data()?;
    if address(&data).is_none() {
        return Err(Failure::Usage(format!(
            "{} is a directory, and only keyspaces of clusters have quotas: say --data \
             tyr://HOST:PORT, or set TYR_DATA to that",
            data.display()
        )));
    }
    let connection = Connection::open(session)?;
    let bootstrap = connection.ask(|client| async move { client.bootstrap().await })?;
    let map = bootstrap.cluster_map()?;
    let found = map.keyspace_named(&arguments.name).map(|(id, _)| id);
    let keyspace = found.ok_or_else(|| {
        Error::not_found(format!(
            "there is no keyspace \"{}\"; `tyr keyspace list` shows those there are",
            arguments.name.escape_debug()
        ))
    })?;
    let path = Quota::path(keyspace)?;
    if !arguments.is_change() {
        let entry = connection.ask(|client| async move { client.get(path).await })?;
        let quota = known(entry.as_ref().map(|entry| &entry.value[..]))?;
        let used = used(&connection, &bootstrap, &arguments.name)?;
        return session.output.record(
            &as_json(&arguments.name, &quota, used.as_ref()),
            &as_text(&arguments.name, &quota, used.as_ref()),
        );
    }
    let quota = connection.change(&path, |old| {
        let quota = arguments.applied_to(known(old)?);
        Ok(((!quota.is_unlimited()).then(|| quota.to_bytes()), quota))
    })?;
    session.output.record(&as_json(&arguments.name, &quota, None), "")
}

impl QuotaArguments {
    fn is_change(&self) -> bool {
        self.bytes.is_some() || self.blobs.is_some() || self.operations.is_some()
    }

    /// The quota with what the flags say; what they do not name stays.
    fn applied_to(&self, quota: Quota) -> Quota {
        let new = |limit: Option<Limit>, old| limit.map_or(old, |Limit(limit)| limit);
        Quota {
            bytes: new(self.bytes, quota.bytes),
            blobs: new(self.blobs, quota.blobs),
            operations: new(self.operations, quota.operations),
        }
    }
}

/// The quota that an entry holds; without an entry there is none.
fn known(entry: Option<&[u8]>) -> Outcome<Quota> {
    Ok(entry.map(Quota::from_bytes).transpose()?.unwrap_or_default())
}

/// What is used, as the first node has heard that tells.
fn used(
    connection: &Connection,
    bootstrap: &Bootstrap,
    keyspace: &str,
) -> Outcome<Option<QuotaReport>> {
    let reports = reports::ask(connection, bootstrap, ASKED_MAX)?;
    let mut told = reports.values().filter_map(|told| told.report());
    let ready = told.find(|report| report.is_ready);
    let mut quotas = ready.into_iter().flat_map(|report| &report.quotas);
    Ok(quotas.find(|report| report.keyspace == keyspace).cloned())
}

fn as_json(name: &str, quota: &Quota, used: Option<&QuotaReport>) -> Value {
    let used = used.map(|used| json!({"bytes": used.bytes, "blobs": used.blobs}));
    json!({"name": name, "quota": quota, "used": used})
}

fn as_text(name: &str, quota: &Quota, used: Option<&QuotaReport>) -> String {
    if quota.is_unlimited() {
        return format!("{name} has no quota");
    }
    let size = |bytes: u64| format!("{bytes} ({})", size_text(bytes));
    let line = |what: &str, used: Option<String>, limit: Option<String>| {
        let used = used.unwrap_or_else(|| "?".to_owned());
        let limit = limit.unwrap_or_else(|| "any number".to_owned());
        format!("{what:<10}  {used} of {limit}")
    };
    let number = |number: u64| number.to_string();
    [
        line("bytes", used.map(|used| size(used.bytes)), quota.bytes.map(size)),
        line("blobs", used.map(|used| number(used.blobs)), quota.blobs.map(number)),
        match quota.operations {
            Some(limit) => format!("operations  {limit} a second"),
            None => "operations  any number".to_owned(),
        },
    ]
    .join("\n")
}

/// What `tyr status` says of a quota that is nearly used up.
pub fn warning(report: &QuotaReport) -> String {
    let of = |what: &str, used: u64, limit: Option<u64>| {
        limit.map(|limit| format!("{used} of {limit} {what}"))
    };
    let QuotaReport { keyspace, quota, bytes, blobs } = report;
    let parts = [of("bytes", *bytes, quota.bytes), of("blobs", *blobs, quota.blobs)];
    let parts = parts.into_iter().flatten().collect::<Vec<_>>().join(", ");
    format!("keyspace {keyspace}: its quota is nearly used up: {parts}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arguments(bytes: Option<Limit>, blobs: Option<Limit>) -> QuotaArguments {
        QuotaArguments { name: "a".to_owned(), bytes, blobs, operations: None }
    }

    #[test]
    fn limits_are_numbers_sizes_or_none() {
        assert_eq!(parse_bytes_limit("2KiB"), Ok(Limit(Some(2048))));
        assert_eq!(parse_bytes_limit("none"), Ok(Limit(None)));
        assert_eq!(parse_limit("7"), Ok(Limit(Some(7))));
        assert_eq!(parse_limit("none"), Ok(Limit(None)));
        assert!(parse_limit("2KiB").unwrap_err().contains("none"));
        assert!(parse_bytes_limit("much").unwrap_err().contains("none"));
    }

    #[test]
    fn what_no_flag_names_stays() {
        let old = Quota { bytes: Some(5), blobs: Some(6), operations: Some(7) };
        let new = arguments(Some(Limit(Some(9))), Some(Limit(None))).applied_to(old);
        assert_eq!(new, Quota { bytes: Some(9), blobs: None, operations: Some(7) });
        assert!(!arguments(None, None).is_change());
    }

    #[test]
    fn what_is_used_is_shown_beside_its_limit() {
        let quota = Quota { bytes: Some(2048), blobs: None, operations: Some(30) };
        let report = QuotaReport { keyspace: "a".to_owned(), quota, bytes: 1024, blobs: 3 };
        assert_eq!(
            as_text("a", &quota, Some(&report)),
            "bytes       1024 (1.0 KiB) of 2048 (2.0 KiB)\nblobs       3 of any number\n\
             operations  30 a second"
        );
        assert!(as_text("a", &quota, None).contains("? of 2048"));
        assert_eq!(as_text("a", &Quota::default(), None), "a has no quota");
        assert!(warning(&report).contains("keyspace a: ") && !warning(&report).contains("blobs"));
    }
}
