//! `tyr status`: how a cluster is, node by node and in one word.

use clap::Args;
use serde_json::{Value, json};
use tyr_control::ClusterMap;
use tyr_control::status::{Bootstrap, Status};
use tyr_server::quota::QuotaReport;
use tyr_server::{DiskReport, NodeId, NodeReport};

use super::health::{self, Health};
use super::reports::{self, Reports, Told};
use super::{Connection, loss, quota};
use crate::data::size_text;
use crate::failure::Outcome;
use crate::output::table;
use crate::session::Session;

/// What is said of a node whose program does not know the question.
const OLDER: &str = "does not tell (older release)";

/// From here on it warns of a quota, in hundredths that are used.
const FULL_PERCENT: u64 = 80;

/// `tyr status`
#[derive(Args, Debug)]
#[command(after_help = "\
Asks the monitors, and each node, where the others reach it, how it is itself. Ends with 0 when \
the cluster is healthy, with 1 when something is missing and all is served, with 6 when something \
is not.
In a cluster of about as many nodes as replicas most transactions enter at the first nodes: that \
is how chains pass the nodes, and no fault.

Examples:
  tyr status --data tyr://127.0.0.1:7070
  tyr status --json | jq .nodes
  tyr status > /dev/null || echo look at it")]
pub struct StatusArguments {}

/// A node, as the monitors, the map and itself have it.
pub struct Row {
    /// Its number.
    pub node: u16,
    /// Where it is reached.
    pub address: String,
    /// `up`, `returning`, `down`; `new` when the map does not know it.
    pub state: String,
    /// `in`, `joining`, `leaving`, `out`.
    pub membership: &'static str,
    /// Its weight when it joined, or what it would take.
    pub weight: u32,
    /// Its failure domain.
    pub domain: Option<u32>,
    /// Whether it is a monitor.
    pub is_monitor: bool,
    /// The program's version.
    pub version: String,
    /// The highest feature level that it speaks.
    pub level: u8,
    /// How long it has been silent, when the leader says.
    pub silent_us: Option<u64>,
    /// Where it answers HTTP.
    pub http: Option<String>,
}

/// All nodes that are known.
///
/// # Errors
/// `Unavailable` while the cluster forms.
pub fn rows(bootstrap: &Bootstrap, status: &Status) -> Outcome<Vec<Row>> {
    let map = bootstrap.cluster_map()?;
    let seats = status.leadership.as_ref().map(|leadership| &leadership.seats);
    let row = |(number, record): (&u16, &tyr_control::NodeRecord)| {
        let node = NodeId(*number);
        let ring = map.next.as_ref().unwrap_or(&map.ring);
        let share = ring.share(node).or_else(|| map.ring.share(node));
        Row {
            node: *number,
            address: record.addresses.join(","),
            state: map.nodes.get(&node).map_or("new", |seat| seat.state.name()).to_owned(),
            membership: map.membership(node).name(),
            weight: share.map_or(record.weight, |share| share.weight),
            domain: record.domain,
            is_monitor: status.voters.contains(number),
            version: record.version.clone(),
            level: record.level,
            silent_us: seats.and_then(|seats| seats.get(number)).map(|seat| seat.silent_us),
            http: record.http_address.clone(),
        }
    };
    Ok(bootstrap.nodes.iter().map(row).collect())
}

/// Shows it.
pub fn run(session: &mut Session, StatusArguments {}: &StatusArguments) -> Outcome {
    let connection = Connection::open(session)?;
    let bootstrap = connection.ask(|client| async move { client.bootstrap().await })?;
    let status = connection.ask(|client| async move { client.status().await })?;
    let rows = rows(&bootstrap, &status)?;
    let reports = reports::ask_all(&connection, &bootstrap)?;
    let map = bootstrap.cluster_map()?;
    let health = Health::of(&map, &status, &rows, &reports);
    let (epoch, level) = (map.epoch.0, map.level);
    let cluster = bootstrap.cluster.map(|cluster| format!("{cluster:032x}"));
    if session.output.is_json() {
        let thin = health::thin(&map).into_iter().map(|thin| thin.json());
        let nodes: Vec<Value> = rows.iter().map(|row| as_json(row, &reports)).collect();
        session.output.json(&json!({
            "health": health.json(),
            "cluster": cluster,
            "epoch": epoch,
            "level": level,
            "leader": status.leader,
            "term": status.term,
            "monitors": status.voters,
            "pending": status.leadership.as_ref().and_then(|it| it.pending),
            "waiting_for": status.leadership.as_ref().map(|it| it.waiting.clone()),
            "nodes": nodes,
            "nearly_full": nearly_full(&reports).collect::<Vec<_>>(),
            "unavailable": unavailable(&map),
            "thin": thin.collect::<Vec<_>>(),
        }))?;
        return health.outcome();
    }
    session.output.line(&headline(
        cluster.as_deref(),
        health.word().name(),
        epoch,
        level,
        &status,
    ))?;
    if let Some(line) = upgrade(&bootstrap) {
        session.output.line(&line)?;
    }
    let heads = [
        "node", "address", "state", "ring", "monitor", "ready", "flight", "to copy", "disk", "free",
    ];
    let lines: Vec<Vec<String>> = rows.iter().map(|row| line(row, &status, &reports)).collect();
    session.output.line(&table(&heads, &lines, &[0, 6, 7, 8, 9]))?;
    for reason in health.reasons() {
        session.output.line(reason)?;
    }
    for remark in remarks(&rows, &reports) {
        session.output.line(&remark)?;
    }
    for report in nearly_full(&reports) {
        session.output.line(&quota::warning(report))?;
    }
    health.outcome()
}

/// What is to be known of nodes, and nothing is wrong with.
fn remarks(rows: &[Row], reports: &Reports) -> Vec<String> {
    let remark = |row: &Row| {
        let why = match reports.get(&row.node)? {
            Told::Older => OLDER.to_owned(),
            Told::Report(report) if row.membership == "out" => report.reasons.join("; "),
            Told::Report(_) | Told::Nothing(_) => return None,
        };
        Some(format!("node {}: {why}", row.node))
    };
    rows.iter().filter_map(remark).collect()
}

/// The keyspaces of which part is unavailable, and the nodes that alone have it.
fn unavailable(map: &ClusterMap) -> Vec<Value> {
    let waiting = loss::waiting(map).into_iter();
    waiting.map(|(keyspace, nodes)| json!({"keyspace": keyspace, "nodes": nodes})).collect()
}

/// Keyspaces that have used most of their quotas, as the first node says that tells.
fn nearly_full(reports: &Reports) -> impl Iterator<Item = &QuotaReport> {
    let told = reports.values().find_map(Told::report);
    let quotas = told.map_or(&[][..], |report| &report.quotas);
    quotas.iter().filter(|report| report.used_percent().is_some_and(|used| used > FULL_PERCENT))
}

/// Which nodes keep the cluster from using what others speak already.
fn upgrade(bootstrap: &Bootstrap) -> Option<String> {
    let map = bootstrap.cluster_map().ok()?;
    let newest = map.nodes.values().map(|node| node.level).max().filter(|it| *it > map.level)?;
    let behind: Vec<String> = map.behind(newest).map(|node| node.0.to_string()).collect();
    let nodes = behind.join(", ");
    (!behind.is_empty()).then(|| format!("feature level {newest} waits for node {nodes}"))
}

fn headline(cluster: Option<&str>, health: &str, epoch: u32, level: u8, status: &Status) -> String {
    let leader = match status.leader.filter(|_| status.leadership.is_some()) {
        Some(leader) => format!("node {leader} leads the monitors"),
        None => "NO MONITOR LEADS: maps and leases stand still".to_owned(),
    };
    let pending = status.leadership.as_ref().and_then(|leadership| {
        let waiting: Vec<String> = leadership.waiting.iter().map(u16::to_string).collect();
        let epoch = leadership.pending?;
        Some(format!("\nepoch {epoch} waits for node {}", waiting.join(", ")))
    });
    let cluster = cluster.unwrap_or("that forms");
    let pending = pending.unwrap_or_default();
    format!("{health}: cluster {cluster}, epoch {epoch}, feature level {level}; {leader}{pending}")
}

fn line(row: &Row, status: &Status, reports: &Reports) -> Vec<String> {
    let report = reports.get(&row.node).and_then(Told::report);
    let monitor = match (row.is_monitor, status.leader == Some(row.node)) {
        (true, true) => "leads",
        (true, false) => "yes",
        (false, _) => "no",
    };
    let ready = match report {
        Some(report) if report.is_ready => "yes",
        Some(_) => "no",
        None => "?",
    };
    let number = |read: fn(&NodeReport) -> u64| {
        report.map_or_else(|| "?".to_owned(), |report| read(report).to_string())
    };
    let disk = |read: fn(DiskReport) -> u64| {
        let known = report.and_then(|report| report.disk);
        known.map_or_else(|| "?".to_owned(), |disk| size_text(read(disk)))
    };
    vec![
        row.node.to_string(),
        row.address.clone(),
        row.state.clone(),
        row.membership.to_owned(),
        monitor.to_owned(),
        ready.to_owned(),
        number(|report| report.in_flight),
        number(|report| report.movement.missing as u64),
        disk(|disk| disk.size_bytes),
        disk(|disk| disk.free_bytes),
    ]
}

fn as_json(row: &Row, reports: &Reports) -> Value {
    let (report, error) = match reports.get(&row.node) {
        Some(Told::Report(report)) => (json!(report), Value::Null),
        Some(Told::Nothing(why)) => (Value::Null, json!(why)),
        Some(Told::Older) | None => (Value::Null, Value::Null),
    };
    let mut fields = row.as_json();
    fields["is_older"] = json!(matches!(reports.get(&row.node), Some(Told::Older)));
    fields["report"] = report;
    fields["error"] = error;
    fields
}

impl Row {
    /// The node in JSON.
    pub fn as_json(&self) -> Value {
        json!({
            "node": self.node,
            "address": self.address,
            "state": self.state,
            "ring": self.membership,
            "weight": self.weight,
            "domain": self.domain,
            "monitor": self.is_monitor,
            "version": self.version,
            "level": self.level,
            "silent_ms": self.silent_us.map(|us| us / 1000),
            "http": self.http,
        })
    }
}
