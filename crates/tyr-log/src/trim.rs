//! Trimming: what is before a cut is forgotten, and its space given back.
//!
//! First the marks move, all in one transaction: from then on nobody reads what is before them.
//! Then whole segments go, some at a time, and checkpoints that tell of them. Whoever trims next
//! goes on where that was interrupted.

use tyr::{Error, ErrorKind, Key, Result};

use crate::checkpoint::Checkpoint;
use crate::description::{
    Description, MARKED_NUMBER_AT, RETENTION_AT, SEALED_AT, first_at, mark_at, mark_bytes,
    retention_bytes,
};
use crate::layout;
use crate::log::{Log, is_older, now_us};
use crate::options::Retention;
use crate::position::{Cut, Position};
use crate::segment::HEAD_LEN;
use crate::start::is_behind;
use crate::tries::Tries;

/// Segments or checkpoints that go in one transaction.
const STEP: usize = 64;

/// What trimming has given back.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Trimmed {
    /// Segments that are gone.
    pub segments: u64,
    /// Those that are to go yet.
    pub left: u64,
}

impl Log {
    /// Forgets what is before a cut, in all partitions at once: nobody reads it any more, groups
    /// neither, and its space is given back. `progress` is told how far it is, and stops it by an
    /// error; what is left then goes when somebody trims again.
    ///
    /// Where a partition was trimmed further already, it stays so.
    ///
    /// # Errors
    /// As [`Log::reader`] for a cut that is none; `InvalidArgument` for a cut of a strict log with
    /// several partitions that does not say its number; whatever the store answers.
    pub async fn trim(
        &self,
        before: &Cut,
        progress: impl FnMut(Trimmed) -> Result<()>,
    ) -> Result<Trimmed> {
        // Where it is trimmed so far already, only what is left of that goes.
        if !self.is_trimmed(before).await? {
            self.check_cut_or_trimmed(before).await?;
            // Who is overtaken by somebody who trims further has nothing left to move.
            if let Err(error) = self.move_marks(before).await
                && !self.is_trimmed(before).await?
            {
                return Err(error);
            }
        }
        self.sweep(progress).await
    }

    /// Lets go of what the log's retention says; as an append does that goes on in another segment.
    ///
    /// # Errors
    /// As [`Log::trim`].
    pub async fn apply_retention(
        &self,
        progress: impl FnMut(Trimmed) -> Result<()>,
    ) -> Result<Trimmed> {
        let description = self.describe().await?;
        let (Retention { age, bytes }, oldest) = (description.retention, self.oldest().await?);
        if age.is_none() && bytes.is_none() {
            return self.sweep(progress).await;
        }
        let age_us = age.map(|age| u64::try_from(age.as_micros()).unwrap_or(u64::MAX));
        let (tail, now) = (self.tail().await?, now_us());
        let mut before = None;
        self.each_checkpoint(|_, found| {
            let Some(Checkpoint { at, cut }) = found else { return true };
            let is_too_old = age_us.is_some_and(|age_us| is_older(at, age_us, now));
            let is_too_much =
                bytes.is_some_and(|bytes| bytes_between(&description, &cut, &tail) >= bytes);
            let goes = is_too_old || is_too_much;
            if goes && is_behind(&cut, &oldest) {
                before = Some(cut);
            }
            goes
        })
        .await?;
        if let Some(before) = before {
            self.move_marks(&before).await?;
        }
        self.sweep(progress).await
    }

    /// Changes what may go by itself.
    ///
    /// # Errors
    /// `NotFound` when the log was deleted; whatever the store answers.
    pub async fn set_retention(&self, retention: Retention) -> Result<()> {
        let shared = &*self.shared;
        let mut transaction = shared.store.begin();
        transaction.expect_present(&shared.keyspace, &shared.key)?;
        let bytes = retention_bytes(retention).to_vec();
        debug_assert_eq!(RETENTION_AT + bytes.len() as u64, SEALED_AT);
        transaction.write(&shared.keyspace, &shared.key, RETENTION_AT, bytes)?;
        transaction.commit().await.map(drop)
    }

    async fn is_trimmed(&self, cut: &Cut) -> Result<bool> {
        let marks = self.oldest().await?;
        Ok(cut.positions().len() == marks.positions().len() && is_behind(&marks, cut))
    }

    /// Moves the marks to a cut, where they are not there yet.
    async fn move_marks(&self, to: &Cut) -> Result<()> {
        let shared = &*self.shared;
        let number = match (self.is_strict(), to.number()) {
            (false, _) => None,
            (true, Some(number)) => Some(number),
            (true, None) => Some(self.number_of(to).await?),
        };
        let mut tries = Tries::default();
        loop {
            let description = self.describe().await?;
            let mut transaction = shared.store.begin();
            let mut moves = 0;
            for (row, position) in description.rows.iter().zip(to.positions()) {
                if row.mark >= *position {
                    continue;
                }
                moves += 1;
                let at = mark_at(position.partition);
                let (old, new) = (mark_bytes(row.mark).to_vec(), mark_bytes(*position).to_vec());
                transaction.compare(&shared.keyspace, &shared.key, at, old)?;
                transaction.write(&shared.keyspace, &shared.key, at, new)?;
                self.clear_before(&mut transaction, *position)?;
            }
            if moves == 0 {
                return Ok(());
            }
            if let Some(number) = number.filter(|number| *number > description.marked_number) {
                let bytes = number.to_le_bytes().to_vec();
                transaction.write(&shared.keyspace, &shared.key, MARKED_NUMBER_AT, bytes)?;
            }
            match transaction.commit().await {
                Err(error) if tries.again(&error).await => {}
                Err(error) => {
                    return Err(error.context(format!("log {} is not trimmed", shared.name)));
                }
                Ok(_) => return Ok(()),
            }
        }
    }

    /// What is before a position in its own segment becomes a hole.
    fn clear_before(&self, transaction: &mut tyr::Transaction, position: Position) -> Result<()> {
        let shared = &*self.shared;
        let len = position.offset.saturating_sub(HEAD_LEN);
        if len > 0 {
            let Position { partition, segment, .. } = position;
            let key = layout::segment_key(&shared.name, partition, segment)?;
            transaction.clear(&shared.keyspace, key, HEAD_LEN, len)?;
        }
        Ok(())
    }

    /// The number of the entry at a cut of a strict log with one partition.
    async fn number_of(&self, cut: &Cut) -> Result<u64> {
        let [position] = cut.positions() else {
            return Err(Error::invalid(format!(
                "log {} is strict and has several partitions: give a cut with its number, as \
                 readers and the tail tell it",
                self.shared.name
            )));
        };
        let mut from = self.oldest().await?;
        self.each_checkpoint(|_, found| {
            let is_before = found.as_ref().is_some_and(|it| is_behind(cut, &it.cut));
            if let Some(found) = found.filter(|it| is_before && is_behind(&it.cut, &from)) {
                from = found.cut;
            }
            is_before
        })
        .await?;
        let mut reader = crate::reader::Reader::new(self, &from, 0);
        loop {
            let before = reader.cut();
            if before.positions()[0] >= *position {
                return Ok(before.number().unwrap_or_default());
            }
            if reader.next(1).await?.is_empty() {
                return Ok(reader.cut().number().unwrap_or_default());
            }
        }
    }

    /// Deletes the segments before the marks, and checkpoints that tell of them.
    async fn sweep(&self, mut progress: impl FnMut(Trimmed) -> Result<()>) -> Result<Trimmed> {
        let mut trimmed = Trimmed::default();
        for _ in 0..=u64::MAX / STEP as u64 {
            let description = self.describe().await?;
            let rows = description.rows.iter();
            trimmed.left = rows.map(|row| row.mark.segment.saturating_sub(row.first)).sum();
            progress(trimmed)?;
            if trimmed.left == 0 {
                break;
            }
            trimmed.segments += self.sweep_step(&description).await?;
        }
        self.sweep_checkpoints().await?;
        Ok(trimmed)
    }

    async fn sweep_step(&self, description: &Description) -> Result<u64> {
        let shared = &*self.shared;
        let mut transaction = shared.store.begin();
        let mut count = 0;
        for (row, partition) in description.rows.iter().zip(0..) {
            let to = row.mark.segment.min(row.first + (STEP - count) as u64);
            if to <= row.first {
                continue;
            }
            let (at, first) = (first_at(partition), row.first.to_le_bytes().to_vec());
            transaction.compare(&shared.keyspace, &shared.key, at, first)?;
            transaction.write(&shared.keyspace, &shared.key, at, to.to_le_bytes().to_vec())?;
            for segment in row.first..to {
                let key = layout::segment_key(&shared.name, partition, segment)?;
                transaction.delete(&shared.keyspace, key)?;
                count += 1;
            }
        }
        match transaction.commit().await {
            // Somebody else has.
            Err(error) if error.kind() == ErrorKind::Conflict => Ok(0),
            Err(error) => Err(error),
            Ok(_) => Ok(count as u64),
        }
    }

    async fn sweep_checkpoints(&self) -> Result<()> {
        let shared = &*self.shared;
        loop {
            let marks = self.oldest().await?;
            let mut gone: Vec<Key> = Vec::new();
            self.each_checkpoint(|key, found| {
                let is_before = found.is_some_and(|found| !is_behind(&found.cut, &marks));
                if is_before {
                    gone.push(key.clone());
                }
                is_before && gone.len() < STEP
            })
            .await?;
            if gone.is_empty() {
                return Ok(());
            }
            let mut transaction = shared.store.begin();
            for key in &gone {
                transaction.delete(&shared.keyspace, key)?;
            }
            transaction.commit().await?;
        }
    }
}

/// Bytes from one cut to another, where every segment but the last is as long as it is to be.
fn bytes_between(description: &Description, from: &Cut, to: &Cut) -> u64 {
    let lanes = from.positions().iter().zip(to.positions());
    let bytes = lanes.map(|(from, to)| {
        let segments = to.segment.saturating_sub(from.segment);
        let whole = segments.saturating_mul(description.segment_bytes);
        whole.saturating_add(to.offset).saturating_sub(from.offset)
    });
    bytes.fold(0, u64::saturating_add)
}
