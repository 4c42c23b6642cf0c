//! Which days hold anything, found by leaping from one day's first key to the next's.

use tyr::{Key, Result, Snapshot};

use crate::calendar::{DAY_MAX, DAY_MIN, Day};
use crate::layout;
use crate::telemetry::Telemetry;

/// The days from `first` to `last` that hold any blob, in order.
pub(crate) async fn days(
    telemetry: &Telemetry,
    snapshot: &Snapshot,
    first: Day,
    last: Day,
) -> Result<Vec<Day>> {
    let mut days = Vec::new();
    let mut next = Some(first);
    while let Some(from) = next.filter(|day| *day <= last) {
        match first_day_from(telemetry, snapshot, from).await? {
            Some(day) if day <= last => {
                days.push(day);
                next = Some(Day(day.0 + 1));
            }
            Some(_) | None => next = None,
        }
    }
    Ok(days)
}

/// The newest day that holds any blob, found by halving the calendar.
pub(crate) async fn last_day(telemetry: &Telemetry, snapshot: &Snapshot) -> Result<Option<Day>> {
    let mut found = None;
    let (mut low, mut high) = (DAY_MIN.0, DAY_MAX.0);
    while low <= high {
        let middle = low + (high - low) / 2;
        match first_day_from(telemetry, snapshot, Day(middle)).await? {
            Some(day) => {
                found = Some(day);
                low = day.0 + 1;
            }
            None => high = middle - 1,
        }
    }
    Ok(found)
}

async fn first_day_from(
    telemetry: &Telemetry,
    snapshot: &Snapshot,
    from: Day,
) -> Result<Option<Day>> {
    // Everything of a day sorts behind the day alone; the catalog sorts behind all days.
    let mut after = Key::new(from.to_string())?;
    loop {
        let found = snapshot.scan(telemetry.keyspace(), b"", Some(&after), 1).await?;
        let Some((key, _)) = found.into_iter().next() else { return Ok(None) };
        if key.as_bytes().starts_with(layout::CATALOG_PREFIX.as_bytes()) {
            return Ok(None);
        }
        let day = key.as_bytes().get(..10).and_then(|day| std::str::from_utf8(day).ok());
        match day.and_then(Day::parse) {
            Some(day) => return Ok(Some(day)),
            // A key that is not ours: leap over it.
            None => after = key,
        }
    }
}
