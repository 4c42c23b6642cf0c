//! A large blob in pieces of 1 MiB, against a plain file with the same syncs.

use std::fs::File;
use std::io::Write;
use std::os::unix::fs::FileExt;
use std::path::Path;

use tyr::blocking::Tyr;
use tyr::{Bytes, Durability, Error, Key, KeyspaceConfig, Result};

use super::meter::{self, Figures, Moment};
use crate::random::Random;

/// Bytes of one piece.
const PIECE_LEN: usize = 1 << 20;
/// Pieces between two syncs: 64 MiB.
const PIECES_PER_SYNC: u64 = 64;
/// Random bytes that the pieces are cut from.
const POOL_LEN: usize = 8 << 20;

/// What is written: no two near pieces are alike, none can be compressed, none is copied.
struct Pieces(Bytes);

impl Pieces {
    fn new() -> Self {
        let mut random = Random::new(4);
        let words = (0..(POOL_LEN + PIECE_LEN) / 8).flat_map(|_| random.next().to_le_bytes());
        Self(words.collect::<Vec<u8>>().into())
    }

    /// Piece number `number`, of `len` bytes.
    fn get(&self, number: u64, len: usize) -> Bytes {
        let start = (number.wrapping_mul(1_000_003) % POOL_LEN as u64) as usize;
        self.0.slice(start..start + len)
    }
}

/// The pieces of `bytes`: number, offset, length.
fn pieces_of(bytes: u64) -> impl Iterator<Item = (u64, u64, usize)> {
    (0..bytes.div_ceil(PIECE_LEN as u64)).map(move |number| {
        let offset = number * PIECE_LEN as u64;
        (number, offset, (bytes - offset).min(PIECE_LEN as u64) as usize)
    })
}

/// Writes and reads a blob.
///
/// With syncs, 64 pieces are one transaction that is synced; else each piece is one transaction
/// that is buffered, and closing the store syncs.
pub fn run_blob(dir: &Path, is_synced: bool, bytes: u64) -> Result<Figures> {
    let pieces = Pieces::new();
    let key = Key::new("stream")?;
    let store = Tyr::open(dir)?;
    let durability = if is_synced { Durability::Sync } else { Durability::Buffered };
    let config = KeyspaceConfig { durability, ..KeyspaceConfig::default() };
    let keyspace = store.create_keyspace("stream", config)?;
    let mut written = Measured::begin();
    if is_synced {
        let mut transaction = store.begin();
        for (number, offset, len) in pieces_of(bytes) {
            if number > 0 && number % PIECES_PER_SYNC == 0 {
                std::mem::replace(&mut transaction, store.begin()).commit()?;
            }
            transaction.write(&keyspace, &key, offset, pieces.get(number, len))?;
        }
        transaction.commit()?;
    } else {
        for (number, offset, len) in pieces_of(bytes) {
            keyspace.write(&key, offset, pieces.get(number, len))?;
        }
    }
    drop(keyspace);
    store.close()?;
    written.end("write", bytes);

    let store = Tyr::open(dir)?;
    let keyspace = store.keyspace("stream")?;
    let mut figures = written.settle(dir, bytes)?;
    let moment = Moment::now();
    for (number, offset, len) in pieces_of(bytes) {
        let got = keyspace.read(&key, offset, len as u64)?;
        compare(&got, &pieces.get(number, len), offset)?;
    }
    report(&mut figures, "read", moment, bytes);
    store.close()?;
    Ok(figures)
}

/// Writes and reads a plain file.
pub fn run_file(dir: &Path, is_synced: bool, bytes: u64) -> Result<Figures> {
    let complain = |error| Error::io(format!("cannot use a file in {}", dir.display()), error);
    let pieces = Pieces::new();
    std::fs::create_dir_all(dir).map_err(complain)?;
    let path = dir.join("file");
    let mut written = Measured::begin();
    let mut file = File::create(&path).map_err(complain)?;
    for (number, _, len) in pieces_of(bytes) {
        if is_synced && number > 0 && number % PIECES_PER_SYNC == 0 {
            file.sync_data().map_err(complain)?;
        }
        file.write_all(&pieces.get(number, len)).map_err(complain)?;
    }
    file.sync_all().map_err(complain)?;
    drop(file);
    written.end("write", bytes);

    let mut figures = written.settle(dir, bytes)?;
    let file = File::open(&path).map_err(complain)?;
    let moment = Moment::now();
    for (number, offset, len) in pieces_of(bytes) {
        // A new buffer for each piece, as a read of a blob answers one.
        let mut buffer = vec![0; len];
        file.read_exact_at(&mut buffer, offset).map_err(complain)?;
        compare(&buffer, &pieces.get(number, len), offset)?;
    }
    report(&mut figures, "read", moment, bytes);
    Ok(figures)
}

fn compare(got: &[u8], expected: &[u8], offset: u64) -> Result<()> {
    if got == expected {
        return Ok(());
    }
    Err(Error::corrupt(format!("the piece at byte {offset} is not what was written")))
}

/// The writing part: time, CPU, and bytes that went to the disk.
struct Measured {
    moment: Moment,
    bytes_before: Option<u64>,
    figures: Figures,
}

impl Measured {
    fn begin() -> Self {
        Self {
            moment: Moment::now(),
            bytes_before: meter::bytes_written(),
            figures: Figures::default(),
        }
    }

    fn end(&mut self, name: &str, bytes: u64) {
        report(&mut self.figures, name, self.moment, bytes);
    }

    /// Bytes on disk and written, once everything is closed.
    fn settle(mut self, dir: &Path, bytes: u64) -> Result<Figures> {
        let on_disk = meter::bytes_on_disk(dir)
            .map_err(|error| Error::io(format!("cannot look at {}", dir.display()), error))?;
        self.figures.set("disk_per_byte", on_disk as f64 / bytes as f64);
        if let (Some(before), Some(after)) = (self.bytes_before, meter::bytes_written()) {
            self.figures.set("written_per_byte", (after - before) as f64 / bytes as f64);
        }
        Ok(self.figures)
    }
}

fn report(figures: &mut Figures, name: &str, moment: Moment, bytes: u64) {
    let cost = moment.cost();
    let mib = bytes as f64 / (1 << 20) as f64;
    figures.set(&format!("{name}_mib_per_s"), mib / cost.wall.as_secs_f64());
    figures.set(&format!("{name}_cpu_us_per_mib"), cost.cpu.as_secs_f64() * 1e6 / mib);
    cost.report_foreign(figures);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pieces_cover_all_bytes_and_the_last_is_what_is_left() {
        let mib = PIECE_LEN as u64;
        assert_eq!(
            pieces_of(2 * mib + 5).collect::<Vec<_>>(),
            [(0, 0, PIECE_LEN), (1, mib, PIECE_LEN), (2, 2 * mib, 5)]
        );
        assert_eq!(pieces_of(mib).count(), 1);
    }

    #[test]
    fn neighbouring_pieces_differ() {
        let pieces = Pieces::new();
        assert_ne!(pieces.get(0, PIECE_LEN), pieces.get(1, PIECE_LEN));
        assert_eq!(pieces.get(3, 100), pieces.get(3, 100));
    }
}
