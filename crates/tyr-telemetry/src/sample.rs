//! A sample: one value of a series as it lies in the raw blob, 16 bytes.
//!
//! ```text
//!   byte  0         8         16
//!         │ time_us │  value  │
//!            i64       f64        little-endian
//! ```
//!
//! Raw blobs hold samples in the order of arrival, which is not the order of time.

use serde::Serialize;

/// Bytes of a sample.
pub const SAMPLE_LEN: usize = 16;

/// One value of a series.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Sample {
    /// When, in microseconds since 1970-01-01 UTC.
    pub time_us: i64,
    /// How much.
    pub value: f64,
}

impl Sample {
    /// The sample as stored.
    pub fn store(self) -> [u8; SAMPLE_LEN] {
        let mut bytes = [0; SAMPLE_LEN];
        bytes[..8].copy_from_slice(&self.time_us.to_le_bytes());
        bytes[8..].copy_from_slice(&self.value.to_le_bytes());
        bytes
    }

    /// The sample in these bytes.
    pub fn load(bytes: [u8; SAMPLE_LEN]) -> Self {
        let [time, value] = [0, 8].map(|at| {
            let mut word = [0; 8];
            word.copy_from_slice(&bytes[at..at + 8]);
            word
        });
        Self { time_us: i64::from_le_bytes(time), value: f64::from_le_bytes(value) }
    }
}

/// Cuts pieces of a raw blob, as they arrive, into samples.
#[derive(Debug, Default)]
pub struct SampleReader {
    partial: Vec<u8>,
}

impl SampleReader {
    /// Hands every sample that `piece` completes to `take`.
    pub fn feed(&mut self, mut piece: &[u8], mut take: impl FnMut(Sample)) {
        if !self.partial.is_empty() {
            let missing = (SAMPLE_LEN - self.partial.len()).min(piece.len());
            self.partial.extend_from_slice(&piece[..missing]);
            piece = &piece[missing..];
            if let Ok(whole) = <[u8; SAMPLE_LEN]>::try_from(self.partial.as_slice()) {
                take(Sample::load(whole));
                self.partial.clear();
            }
        }
        let (samples, rest) = piece.as_chunks::<SAMPLE_LEN>();
        samples.iter().for_each(|bytes| take(Sample::load(*bytes)));
        self.partial.extend_from_slice(rest);
    }

    /// Bytes that did not make a whole sample.
    pub fn rest_len(&self) -> usize {
        self.partial.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_survive_any_cut_of_the_stream() {
        let samples: Vec<Sample> =
            (0..7).map(|n| Sample { time_us: n - 3, value: n as f64 / 3.0 }).collect();
        let bytes: Vec<u8> = samples.iter().flat_map(|sample| sample.store()).collect();
        for cut in 1..40 {
            let mut reader = SampleReader::default();
            let mut read = Vec::new();
            bytes.chunks(cut).for_each(|piece| reader.feed(piece, |sample| read.push(sample)));
            assert_eq!(read, samples, "pieces of {cut}");
            assert_eq!(reader.rest_len(), 0);
        }
    }

    #[test]
    fn bytes_that_make_no_sample_are_left_over() {
        let mut reader = SampleReader::default();
        reader.feed(&[0; 19], |_| ());
        assert_eq!(reader.rest_len(), 3);
    }
}
