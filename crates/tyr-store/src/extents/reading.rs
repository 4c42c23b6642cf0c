//! Reading an extent back: only the frames that hold what is asked for, each verified.

use tyr_types::{Error, ExtentRef, Result};

use super::compression::{self, Pieces};
use super::frame::{self, FRAME_LEN, FRAME_PAYLOAD, FramePlace};
use super::{BUFFERS_KEPT_MAX, Extents, FRAMES_AT_ONCE, keep};
use crate::disk::DiskFile;

impl Extents {
    /// Reads stored bytes `from..from + out.len()` of an extent, verified.
    pub(super) fn read_stored(
        &self,
        extent: &ExtentRef,
        from: usize,
        out: &mut [u8],
    ) -> Result<()> {
        let file = self.files.get(extent.file)?;
        let mut buffer = self.buffer();
        let result = self.read_frames(extent, &*file, &mut buffer, from, out);
        keep(&self.buffers, buffer, BUFFERS_KEPT_MAX);
        result
    }

    fn read_frames(
        &self,
        extent: &ExtentRef,
        file: &dyn DiskFile,
        buffer: &mut [u8],
        from: usize,
        out: &mut [u8],
    ) -> Result<()> {
        let first = extent.position / FRAME_LEN as u64 + (from / FRAME_PAYLOAD) as u64;
        let mut place = FramePlace { file: extent.file, frame: first };
        let mut skip = from % FRAME_PAYLOAD;
        let mut done = 0;
        while done < out.len() {
            let frames = frame::frames_for(skip + out.len() - done).min(FRAMES_AT_ONCE);
            let run = &mut buffer[..frames * FRAME_LEN];
            let position = place.frame * FRAME_LEN as u64;
            let count = file
                .read_at(run, position)
                .map_err(|error| Error::io(self.files.path(extent.file), error))?;
            if count < run.len() {
                let end = position + count as u64;
                return Err(self.corrupt(extent, format_args!("is cut: the file ends at {end}")));
            }
            for frame in run.chunks_exact(FRAME_LEN) {
                let Some(payload) = frame::open(frame, place) else {
                    return Err(self.bad_frame(extent, place, frame));
                };
                let step = (FRAME_PAYLOAD - skip).min(out.len() - done);
                out[done..done + step].copy_from_slice(&payload[skip..skip + step]);
                done += step;
                skip = 0;
                place = place.next();
            }
        }
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
        Ok(())
    }
}
