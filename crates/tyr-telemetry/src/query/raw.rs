//! The samples of one generator, in the order of time.

use futures_util::StreamExt;
use serde::Serialize;
use tyr::{ByteRange, Error, Key, Result, Snapshot};

use super::days;
use crate::calendar::TimeRange;
use crate::layout;
use crate::sample::{Sample, SampleReader};
use crate::series::Series;
use crate::telemetry::Telemetry;

/// Samples of one series.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RawSeries {
    /// The series.
    pub series: Series,
    /// Its samples, in the order of time.
    pub samples: Vec<Sample>,
    /// Whether there are more in the range; these are the first ones.
    pub is_cut: bool,
}

impl Telemetry {
    /// The first `limit` samples of the series in this range, in the order of time.
    ///
    /// Samples lie in the order of arrival; they are sorted here, so memory is in proportion to
    /// `limit`, not to what is stored.
    ///
    /// # Errors
    /// `InvalidArgument` for names out of range; whatever the store answers.
    pub async fn raw(&self, series: &Series, range: TimeRange, limit: usize) -> Result<RawSeries> {
        let path = layout::series_path(series)?;
        let mut answer = RawSeries { series: series.clone(), samples: Vec::new(), is_cut: false };
        let Some((first, last)) = range.days() else { return Ok(answer) };
        let snapshot = self.store().snapshot().await?;
        for day in days::days(self, &snapshot, first, last).await? {
            if answer.is_cut {
                break;
            }
            let mut first_of_day = FirstSamples::new(limit - answer.samples.len());
            let prefix = layout::raw_prefix(day, &format!("{path}/"));
            let mut after = None;
            loop {
                let page =
                    snapshot.scan(self.keyspace(), prefix.as_bytes(), after.as_ref(), 1000).await?;
                let Some((key, _)) = page.last() else { break };
                after = Some(key.clone());
                for (key, _) in &page {
                    let take = |sample: Sample| {
                        if range.contains(sample.time_us) {
                            first_of_day.push(sample);
                        }
                    };
                    let rest_len = read_samples(self, &snapshot, key, take).await?;
                    if rest_len > 0 {
                        return Err(Error::corrupt(format!(
                            "blob \"{key}\" ends within a sample: {rest_len} bytes are left over; \
                             something else has written to it"
                        )));
                    }
                }
            }
            answer.is_cut = first_of_day.finish(&mut answer.samples);
        }
        Ok(answer)
    }
}

/// Hands every sample of a raw blob to `take`, in the order of arrival; answers how many bytes at
/// its end make no sample.
pub(crate) async fn read_samples(
    telemetry: &Telemetry,
    snapshot: &Snapshot,
    key: &Key,
    mut take: impl FnMut(Sample),
) -> Result<usize> {
    let mut samples = SampleReader::default();
    let mut reader = snapshot.reader(telemetry.keyspace(), key, ByteRange::ALL).await?;
    while let Some(piece) = reader.next().await {
        samples.feed(&piece?, &mut take);
    }
    Ok(samples.rest_len())
}

/// Keeps the first samples by time, of any number that pass.
struct FirstSamples {
    limit: usize,
    samples: Vec<Sample>,
    is_cut: bool,
}

impl FirstSamples {
    fn new(limit: usize) -> Self {
        Self { limit, samples: Vec::new(), is_cut: false }
    }

    fn push(&mut self, sample: Sample) {
        self.samples.push(sample);
        if self.samples.len() >= self.limit.saturating_mul(2).saturating_add(1024) {
            self.cut();
        }
    }

    fn cut(&mut self) {
        self.samples.sort_by_key(|sample| sample.time_us);
        self.is_cut |= self.samples.len() > self.limit;
        self.samples.truncate(self.limit);
    }

    /// Moves them to `into`; answers whether some were left out.
    fn finish(mut self, into: &mut Vec<Sample>) -> bool {
        self.cut();
        into.append(&mut self.samples);
        self.is_cut
    }
}
