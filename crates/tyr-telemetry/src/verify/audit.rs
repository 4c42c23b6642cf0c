//! One aggregate picked at random, against the raw data under it, at one snapshot.

use serde::Serialize;
use tyr::{ErrorKind, Key, Result, Snapshot};

use super::Difference;
use super::tally::DayTally;
use crate::calendar::Day;
use crate::layout::{self, Entry};
use crate::query;
use crate::series::Series;
use crate::subject::{AggregateName, Scope, Subject};
use crate::telemetry::Telemetry;

/// Aggregates of a scope among which one is picked.
const CHOICE_MAX: usize = 10_000;

/// What an audit compared.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Audit {
    /// The day.
    pub day: String,
    /// The aggregate, in words.
    pub aggregate: String,
    /// Measurements under it.
    pub measurements: u64,
    /// Windows compared.
    pub slots: u64,
    /// Where the two differ.
    pub differences: Vec<Difference>,
}

impl Audit {
    /// Whether the aggregate is what its raw data say.
    pub fn is_equal(&self) -> bool {
        self.differences.is_empty()
    }
}

/// Snapshots that an audit may need: in a cluster one is too old for a chunk that was folded, or
/// came by copy, while it was read.
const SNAPSHOTS_MAX: u32 = 5;

/// Compares one aggregate of the newest day with the raw data under it, at one snapshot; none
/// where nothing is recorded. `random` picks the aggregate: any number, evenly distributed.
///
/// # Errors
/// Whatever the store answers.
pub async fn audit(telemetry: &Telemetry, random: u64) -> Result<Option<Audit>> {
    for _ in 1..SNAPSHOTS_MAX {
        match audit_once(telemetry, random).await {
            Err(error) if error.kind() == ErrorKind::SnapshotTooOld => {}
            audited => return audited,
        }
    }
    audit_once(telemetry, random).await
}

async fn audit_once(telemetry: &Telemetry, random: u64) -> Result<Option<Audit>> {
    let snapshot = telemetry.store().snapshot().await?;
    let Some(day) = query::last_day(telemetry, &snapshot).await? else { return Ok(None) };
    let scope = Scope::ALL[(random % Scope::ALL.len() as u64) as usize];
    let prefix = layout::aggregate_prefix(day, scope, None);
    let choice = snapshot.scan(telemetry.keyspace(), prefix.as_bytes(), None, CHOICE_MAX).await?;
    let mut names = choice.into_iter().filter_map(|(key, _)| match Entry::parse(&key) {
        Some(Entry::Aggregate(_, name)) => Some((key, name)),
        Some(Entry::Raw(..) | Entry::Catalog(..)) | None => None,
    });
    let names: Vec<(Key, AggregateName)> = names.by_ref().collect();
    if names.is_empty() {
        return Ok(None);
    }
    let place = (random / Scope::ALL.len() as u64 % names.len() as u64) as usize;
    let (key, name) = &names[place];
    let tally = add_up(telemetry, &snapshot, day, name).await?;
    let bytes = match snapshot.get(telemetry.keyspace(), key).await {
        Ok(bytes) => bytes.to_vec(),
        Err(error) if error.kind() == ErrorKind::NotFound => Vec::new(),
        Err(error) => return Err(error),
    };
    let comparison = tally.compare(day, name, &bytes);
    Ok(Some(Audit {
        day: day.to_string(),
        aggregate: name.to_string(),
        measurements: tally.count(),
        slots: comparison.slots,
        differences: comparison.differences,
    }))
}

/// Adds up the raw data under an aggregate.
async fn add_up(
    telemetry: &Telemetry,
    snapshot: &Snapshot,
    day: Day,
    name: &AggregateName,
) -> Result<DayTally> {
    let prefix = layout::raw_prefix(day, &names_prefix(name)?);
    let mut tally = DayTally::default();
    let mut after = None;
    loop {
        let keyspace = telemetry.keyspace();
        let page = snapshot.scan(keyspace, prefix.as_bytes(), after.as_ref(), 1000).await?;
        let Some((key, _)) = page.last() else { return Ok(tally) };
        after = Some(key.clone());
        for (key, _) in &page {
            let Some(Entry::Raw(_, series, region)) = Entry::parse(key) else { continue };
            if series.parameter == name.parameter && name.subject.has(&series, &region) {
                query::read_samples(telemetry, snapshot, key, |sample| tally.add(sample)).await?;
            }
        }
    }
}

/// The names that all raw keys under the aggregate begin with.
fn names_prefix(name: &AggregateName) -> Result<String> {
    let subject: &Subject = &name.subject;
    Ok(match subject.scope() {
        Scope::Region | Scope::Job | Scope::All => String::new(),
        Scope::Host | Scope::Cluster | Scope::Site => format!("{}/", subject.path()),
        Scope::Generator => {
            let [site, cluster, host, job] =
                <[String; 4]>::try_from(subject.names().to_vec()).expect("a generator has four");
            let parameter = name.parameter.clone();
            let series = Series { site, cluster, host, parameter, job };
            format!("{}/", layout::series_path(&series)?)
        }
    })
}
