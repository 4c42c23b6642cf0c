//! One aggregate over time: a point for each window in which anything was counted.

use serde::Serialize;
use tyr::{ErrorKind, Result, Snapshot};

use super::days;
use crate::calendar::{Day, TimeRange, Window};
use crate::layout;
use crate::slot::{SLOT_LEN, Slot, SlotIndex};
use crate::subject::{AggregateName, Scope};
use crate::telemetry::Telemetry;

/// Most points of one answer: two years of minutes.
pub const POINTS_MAX: usize = 1_051_200;

/// An aggregate over time.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct AggregateSeries {
    /// How far it reaches.
    pub scope: Scope,
    /// The names of its subject.
    pub names: Vec<String>,
    /// What is measured.
    pub parameter: String,
    /// The width of its windows.
    pub window: Window,
    /// The windows in which anything was counted, in the order of time.
    pub points: Vec<Point>,
    /// Whether there are more in the range; these are the first ones.
    pub is_cut: bool,
}

/// An aggregate in one window.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Point {
    /// The first microsecond of the window.
    pub start_us: i64,
    /// How many values.
    pub count: u64,
    /// Their sum.
    pub sum: f64,
    /// Their mean.
    pub mean: f64,
    /// The smallest.
    pub min: f64,
    /// The largest.
    pub max: f64,
}

impl Point {
    /// The point of a slot; none for an empty one.
    pub(crate) fn new(start_us: i64, slot: &Slot) -> Option<Self> {
        (slot.count > 0).then(|| Self {
            start_us,
            count: slot.count,
            sum: slot.sum,
            mean: slot.sum / slot.count as f64,
            min: slot.min(),
            max: slot.max(),
        })
    }
}

impl Telemetry {
    /// The aggregate in every window that the range touches, at most [`POINTS_MAX`].
    ///
    /// # Errors
    /// `InvalidArgument` for names out of range; whatever the store answers.
    pub async fn aggregate(
        &self,
        name: &AggregateName,
        window: Window,
        range: TimeRange,
    ) -> Result<AggregateSeries> {
        layout::validate_name("parameter", &name.parameter)?;
        let mut answer = AggregateSeries {
            scope: name.subject.scope(),
            names: name.subject.names().to_vec(),
            parameter: name.parameter.clone(),
            window,
            points: Vec::new(),
            is_cut: false,
        };
        let range = range.widened(window);
        let Some((first, last)) = range.days() else { return Ok(answer) };
        let snapshot = self.store().snapshot().await?;
        for day in days::days(self, &snapshot, first, last).await? {
            let within = range.intersection(day.range());
            let from = SlotIndex::of(window, within.from_us);
            let to = SlotIndex::of(window, within.to_us - 1);
            let key = layout::aggregate_key(day, name)?;
            let slots = read_slots(self, &snapshot, &key, from, to).await?;
            answer.points.extend(points(day, from, &slots));
            if answer.points.len() > POINTS_MAX {
                answer.points.truncate(POINTS_MAX);
                answer.is_cut = true;
                break;
            }
        }
        Ok(answer)
    }
}

fn points(day: Day, first: SlotIndex, slots: &[Slot]) -> impl Iterator<Item = Point> + '_ {
    (first.0..)
        .zip(slots)
        .filter_map(move |(index, slot)| Point::new(SlotIndex(index).start_us(day), slot))
}

/// The slots `from..=to` of an aggregate blob; empty slots where it has none, or does not exist.
pub(crate) async fn read_slots(
    telemetry: &Telemetry,
    snapshot: &Snapshot,
    key: &tyr::Key,
    from: SlotIndex,
    to: SlotIndex,
) -> Result<Vec<Slot>> {
    let len = (u64::from(to.0 - from.0) + 1) * SLOT_LEN;
    let bytes = match snapshot.read(telemetry.keyspace(), key, from.offset(), len).await {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    Ok(bytes.chunks(SLOT_LEN as usize).map(Slot::load).collect())
}
