//! The subjects of a scope with the largest count, sum, mean or maximum in a range of time.

use std::collections::HashMap;

use serde::Serialize;
use tyr::{Error, Result, Snapshot};

use super::aggregate::{Point, read_slots};
use super::days;
use crate::calendar::{Day, HOUR_US, TimeRange, Window};
use crate::layout::{self, Entry};
use crate::slot::{Slot, SlotIndex};
use crate::subject::{AggregateName, Scope};
use crate::telemetry::Telemetry;

/// What subjects are ranked by.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, strum::EnumCount)]
#[serde(rename_all = "lowercase")]
pub enum TopBy {
    /// How many values.
    #[default]
    Count,
    /// Their sum.
    Sum,
    /// Their mean.
    Mean,
    /// The largest.
    Max,
}

impl TopBy {
    /// All of them.
    pub const ALL: [Self; <Self as strum::EnumCount>::COUNT] =
        [Self::Count, Self::Sum, Self::Mean, Self::Max];

    /// Its name, as on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Count => "count",
            Self::Sum => "sum",
            Self::Mean => "mean",
            Self::Max => "max",
        }
    }

    /// The one of this name.
    ///
    /// # Errors
    /// `InvalidArgument` with the names.
    pub fn parse(text: &str) -> Result<Self> {
        Self::ALL.into_iter().find(|by| by.name() == text).ok_or_else(|| {
            Error::invalid(format!(
                "the top is by count, sum, mean or max, not by \"{}\"",
                text.escape_debug()
            ))
        })
    }

    fn of(self, total: &Slot) -> f64 {
        match self {
            Self::Count => total.count as f64,
            Self::Sum => total.sum,
            Self::Mean => total.sum / total.count as f64,
            Self::Max => total.max(),
        }
    }
}

/// A question for the top.
#[derive(Clone, Debug, PartialEq)]
pub struct TopQuery {
    /// Which subjects are compared.
    pub scope: Scope,
    /// The parameter that they are compared in; each is ranked for itself when none is given.
    pub parameter: Option<String>,
    /// What they are ranked by.
    pub by: TopBy,
    /// The range of time, widened to whole minutes.
    pub range: TimeRange,
    /// How many are answered.
    pub limit: usize,
}

/// The top of a scope.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Top {
    /// Which subjects were compared.
    pub scope: Scope,
    /// What they are ranked by.
    pub by: TopBy,
    /// The best first.
    pub entries: Vec<TopEntry>,
}

/// One of the top.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TopEntry {
    /// The names of the subject.
    pub names: Vec<String>,
    /// The parameter.
    pub parameter: String,
    /// Its values over the whole range.
    #[serde(flatten)]
    pub total: Point,
}

impl Telemetry {
    /// The subjects that rank first in the range.
    ///
    /// The widest windows that fit are read: days, then hours, then minutes. Memory is in
    /// proportion to the subjects of the scope that have values in the range.
    ///
    /// # Errors
    /// Whatever the store answers.
    pub async fn top(&self, query: &TopQuery) -> Result<Top> {
        let range = query.range.widened(Window::Minute);
        let mut totals: HashMap<AggregateName, Slot> = HashMap::new();
        if let Some((first, last)) = range.days() {
            let snapshot = self.store().snapshot().await?;
            for day in days::days(self, &snapshot, first, last).await? {
                let within = range.intersection(day.range());
                self.add_day(&snapshot, query, day, within, &mut totals).await?;
            }
        }
        let mut ranked: Vec<(AggregateName, Slot)> =
            totals.into_iter().filter(|(_, total)| total.count > 0).collect();
        ranked.sort_by(|a, b| {
            query.by.of(&b.1).total_cmp(&query.by.of(&a.1)).then_with(|| a.0.cmp(&b.0))
        });
        let entries = ranked
            .into_iter()
            .take(query.limit)
            .filter_map(|(name, total)| {
                Some(TopEntry {
                    names: name.subject.names().to_vec(),
                    parameter: name.parameter,
                    total: Point::new(range.from_us, &total)?,
                })
            })
            .collect();
        Ok(Top { scope: query.scope, by: query.by, entries })
    }

    async fn add_day(
        &self,
        snapshot: &Snapshot,
        query: &TopQuery,
        day: Day,
        within: TimeRange,
        totals: &mut HashMap<AggregateName, Slot>,
    ) -> Result<()> {
        let parts = cover(day, within);
        let prefix = layout::aggregate_prefix(day, query.scope, query.parameter.as_deref());
        // For the scope of all, the parameter ends the key.
        let prefix = if query.scope == Scope::All { prefix.trim_end_matches('/') } else { &prefix };
        let mut after = None;
        loop {
            let page =
                snapshot.scan(self.keyspace(), prefix.as_bytes(), after.as_ref(), 1000).await?;
            let Some((key, _)) = page.last() else { return Ok(()) };
            after = Some(key.clone());
            for (key, _) in &page {
                let Some(Entry::Aggregate(_, name)) = Entry::parse(key) else { continue };
                if query.parameter.as_ref().is_some_and(|wanted| *wanted != name.parameter) {
                    continue;
                }
                let mut sum = Slot::default();
                for (from, to) in &parts {
                    let slots = read_slots(self, snapshot, key, *from, *to).await?;
                    slots.iter().for_each(|slot| sum.merge(slot));
                }
                totals.entry(name).or_default().merge(&sum);
            }
        }
    }
}

/// The slots that together are `within`, whole minutes of `day`: the day, or whole hours with the
/// minutes before and after them.
fn cover(day: Day, within: TimeRange) -> Vec<(SlotIndex, SlotIndex)> {
    let span = |window, range: TimeRange| {
        let last = SlotIndex::of(window, range.to_us.max(range.from_us + 1) - 1);
        (!range.is_empty()).then(|| (SlotIndex::of(window, range.from_us), last))
    };
    if within == day.range() {
        return span(Window::Day, within).into_iter().collect();
    }
    let first_hour = (within.from_us + HOUR_US - 1).div_euclid(HOUR_US) * HOUR_US;
    let last_hour = within.to_us.div_euclid(HOUR_US) * HOUR_US;
    if first_hour >= last_hour {
        return span(Window::Minute, within).into_iter().collect();
    }
    let parts = [
        (Window::Minute, TimeRange { from_us: within.from_us, to_us: first_hour }),
        (Window::Hour, TimeRange { from_us: first_hour, to_us: last_hour }),
        (Window::Minute, TimeRange { from_us: last_hour, to_us: within.to_us }),
    ];
    parts.into_iter().filter_map(|(window, range)| span(window, range)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::calendar::MINUTE_US;

    #[test]
    fn a_range_is_covered_once_by_the_widest_slots() {
        let at = |hour: i64, minute: i64| hour * HOUR_US + minute * MINUTE_US;
        for (from_us, to_us) in [
            (at(0, 0), at(24, 0)),
            (at(0, 0), at(23, 59)),
            (at(3, 17), at(9, 2)),
            (at(3, 17), at(3, 40)),
            (at(3, 17), at(4, 0)),
            (at(3, 17), at(4, 5)),
            (at(5, 0), at(6, 0)),
        ] {
            let within = TimeRange { from_us, to_us };
            let mut minutes = Vec::new();
            for (from, to) in cover(Day(0), within) {
                assert_eq!(from.window(), to.window());
                for index in from.0..=to.0 {
                    let start = SlotIndex(index).start_us(Day(0));
                    let len = SlotIndex(index).window().len_us();
                    minutes.extend((0..len / MINUTE_US).map(|n| start + n * MINUTE_US));
                }
            }
            let expected: Vec<i64> =
                (0..(to_us - from_us) / MINUTE_US).map(|n| from_us + n * MINUTE_US).collect();
            assert_eq!(minutes, expected);
        }
    }
}
