//! Reading an extent back: only the frames that hold what is asked for, each verified.

use std::io::IoSliceMut;

use tyr_types::{Error, ExtentRef, Result};

use super::compression::{self, Pieces};
use super::frame::{self, CHECKSUM_LEN, FRAME_LEN, FRAME_PAYLOAD, FramePlace};
use super::{BUFFERS_KEPT_MAX, Extents, FRAMES_AT_ONCE, keep};
use crate::disk::DiskFile;

/// The extent being read and its file.
#[derive(Clone, Copy)]
struct Source<'a> {
    extent: &'a ExtentRef,
    file: &'a dyn DiskFile,
}

impl Extents {
    /// Reads stored bytes `from..from + out.len()` of an extent, verified.
    ///
    /// Whole frames go straight to `out`, the parts of frames at both ends through a buffer.
    pub(super) fn read_stored(
        &self,
        extent: &ExtentRef,
        from: usize,
        out: &mut [u8],
    ) -> Result<()> {
        debug_assert!(from + out.len() <= super::stored_bytes(extent), "read beyond its end");
        let source = Source { extent, file: &*self.files.get(extent.file)? };
        let first = extent.position / FRAME_LEN as u64 + (from / FRAME_PAYLOAD) as u64;
        let mut place = FramePlace { file: extent.file, frame: first };
        let skip = from % FRAME_PAYLOAD;
        let head_len = if skip == 0 { 0 } else { (FRAME_PAYLOAD - skip).min(out.len()) };
        let (head, rest) = out.split_at_mut(head_len);
        if head_len > 0 {
            self.read_buffered(source, &mut place, skip, head)?;
        }
        let whole_len = rest.len() / FRAME_PAYLOAD * FRAME_PAYLOAD;
        let (whole, tail) = rest.split_at_mut(whole_len);
        for run in whole.chunks_mut(FRAMES_AT_ONCE * FRAME_PAYLOAD) {
            if self.read_straight(source, place, run)? {
                place.frame += (run.len() / FRAME_PAYLOAD) as u64;
            } else {
                // Again, to find out which frame it is.
                self.read_buffered(source, &mut place, 0, run)?;
            }
        }
        if tail.is_empty() { Ok(()) } else { self.read_buffered(source, &mut place, 0, tail) }
    }

    /// Reads whole frames; false when anything about them is wrong.
    fn read_straight(&self, source: Source, first: FramePlace, out: &mut [u8]) -> Result<bool> {
        debug_assert!(out.len().is_multiple_of(FRAME_PAYLOAD), "whole frames");
        debug_assert!(out.len() <= FRAMES_AT_ONCE * FRAME_PAYLOAD, "a checksum for each");
        let mut checksums = [[0; CHECKSUM_LEN]; FRAMES_AT_ONCE];
        let mut bufs = Vec::with_capacity(FRAMES_AT_ONCE * 2);
        for (checksum, payload) in checksums.iter_mut().zip(out.chunks_exact_mut(FRAME_PAYLOAD)) {
            bufs.push(IoSliceMut::new(checksum));
            bufs.push(IoSliceMut::new(payload));
        }
        let len = bufs.len() / 2 * FRAME_LEN;
        let count = source
            .file
            .read_scattered_at(&mut bufs, first.frame * FRAME_LEN as u64)
            .map_err(|error| Error::io(self.files.path(source.extent.file), error))?;
        let mut place = first;
        let mut is_good = count == len;
        for (checksum, payload) in checksums.iter().zip(out.chunks_exact(FRAME_PAYLOAD)) {
            is_good = is_good && *checksum == place.checksum(payload);
            place = place.next();
        }
        Ok(is_good)
    }

    /// Reads frames through a buffer: payload bytes of the first from `skip` on.
    fn read_buffered(
        &self,
        source: Source,
        place: &mut FramePlace,
        mut skip: usize,
        out: &mut [u8],
    ) -> Result<()> {
        let extent = source.extent;
        debug_assert!(skip < FRAME_PAYLOAD, "the first frame has bytes that are wanted");
        let mut buffer = self.buffer();
        let run = &mut buffer[..frame::frames_for(skip + out.len()) * FRAME_LEN];
        let position = place.frame * FRAME_LEN as u64;
        let count = source
            .file
            .read_at(run, position)
            .map_err(|error| Error::io(self.files.path(extent.file), error))?;
        if count < run.len() {
            let end = position + count as u64;
            return Err(self.corrupt(extent, format_args!("is cut: the file ends at {end}")));
        }
        let mut done = 0;
        for frame in run.chunks_exact(FRAME_LEN) {
            let Some(payload) = frame::open(frame, *place) else {
                return Err(self.bad_frame(extent, *place, frame));
            };
            let step = (FRAME_PAYLOAD - skip).min(out.len() - done);
            out[done..done + step].copy_from_slice(&payload[skip..skip + step]);
            done += step;
            skip = 0;
            *place = place.next();
        }
        assert_eq!(done, out.len(), "bytes that were asked for were not read");
        keep(&self.buffers, buffer, BUFFERS_KEPT_MAX);
        Ok(())
    }

    fn bad_frame(&self, extent: &ExtentRef, place: FramePlace, frame: &[u8]) -> Error {
        let at = place.frame * FRAME_LEN as u64;
        let what = match frame.iter().all(|byte| *byte == 0) {
            true => "there is a hole",
            false => "the checksum does not match",
        };
        let end = at + FRAME_LEN as u64;
        self.corrupt(extent, format_args!("is damaged: at bytes {at} to {end} {what}"))
    }

    /// Reads payload bytes `skip..skip + out.len()` of a compressed extent.
    pub(super) fn read_compressed(
        &self,
        extent: &ExtentRef,
        skip: usize,
        out: &mut [u8],
    ) -> Result<()> {
        let damaged = || self.corrupt(extent, "is damaged: it cannot be decompressed");
        let (len, stored_len) = (extent.len as usize, extent.compressed_len as usize);
        let mut table = [0; compression::TABLE_LEN_MAX];
        let table = &mut table[..compression::table_len(len)];
        if table.len() > stored_len {
            return Err(damaged());
        }
        self.read_stored(extent, 0, table)?;
        let pieces = Pieces::new(table, len, stored_len).ok_or_else(damaged)?;
        let mut stored = Vec::new();
        let mut whole = Vec::new();
        let mut start = 0;
        for piece in pieces.iter() {
            let end = start + piece.payload_len;
            let (from, to) = (start.max(skip), end.min(skip + out.len()));
            if from < to {
                stored.resize(piece.stored_len, 0);
                self.read_stored(extent, piece.stored_at, &mut stored)?;
                let wanted = &mut out[from - skip..to - skip];
                let is_good = if wanted.len() == piece.payload_len {
                    piece.restore(&stored, wanted)
                } else {
                    whole.resize(piece.payload_len, 0);
                    let is_good = piece.restore(&stored, &mut whole);
                    wanted.copy_from_slice(&whole[from - start..to - start]);
                    is_good
                };
                if !is_good {
                    return Err(damaged());
                }
            }
            start = end;
        }
        debug_assert_eq!(start, len, "the pieces are all of the payload");
        Ok(())
    }
}
