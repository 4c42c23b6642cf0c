//! What to do next: random, but near the places where something happens.
//!
//! Offsets and lengths lie around the bounds of blocks (16 KiB), of payloads that go to extents
//! (32 KiB) and of extents (4 MiB), at the blob's end, and far out.

use tyr::{Number, NumberType, Relation, Transform, TransformKind, limits};
use tyr_chance::Chance;

use crate::reference::{Blob, Change, Model};

/// Appends stay away from blobs larger than this, so that they fit.
const APPEND_MAX: u64 = 1 << 62;

/// Where something ends and something else begins.
const BOUNDS: [u64; 8] = [4096, 16 << 10, 32 << 10, 48 << 10, 64 << 10, 4 << 20, 8 << 20, 64 << 20];

/// Makes the choices.
pub struct Chooser {
    pub random: Chance,
    /// Nothing begins further out.
    reach: u64,
    /// Numbers lie at multiples of this.
    alignment: u64,
}

impl Chooser {
    pub fn new(seed: u64) -> Self {
        Self { random: Chance::new(seed), reach: limits::BLOB_SIZE_MAX, alignment: 1 }
    }

    /// The same for a cluster, where a chain has so many chunks and a number lies in one of them.
    pub fn of_cluster(seed: u64) -> Self {
        Self { random: Chance::new(seed), reach: 300_000, alignment: 8 }
    }

    /// A keyspace; the synchronous one less often, it is slow.
    pub fn space(&mut self, model: &Model) -> String {
        let names: Vec<&String> = model.spaces.keys().collect();
        let name = self.pick(&names);
        if name == "sync" && self.random.permille(700) {
            return "newest".to_owned();
        }
        name.clone()
    }

    /// A blob that may be there or not.
    pub fn blob(&mut self, model: &Model) -> (String, Vec<u8>) {
        (self.space(model), self.key())
    }

    fn key(&mut self) -> Vec<u8> {
        match self.random.below(10) {
            0..5 => format!("a/{}", self.random.below(4)).into_bytes(),
            5..7 => format!("b{}", self.random.below(2)).into_bytes(),
            7 => vec![b'a', 0xFF],
            8 => vec![0],
            _ => vec![b'z'; limits::KEY_LEN_MAX],
        }
    }

    /// Prefix, key to begin after, and limit.
    pub fn scan(&mut self) -> (Vec<u8>, Option<Vec<u8>>, usize) {
        let prefix: &[u8] = self.pick(&[&b""[..], b"a", b"a/", b"b1", b"\xFF", b"a/9"]);
        let after = self.random.permille(400).then(|| self.key());
        let limit = self.pick(&[1, 2, 3, 5, 10_000]);
        (prefix.to_vec(), after, limit)
    }

    /// A range to read.
    pub fn range(&mut self, size: u64) -> (u64, u64) {
        let offset = self.offset(size).min(limits::BLOB_SIZE_MAX);
        let len = match self.random.below(10) {
            0 => 0,
            1..6 => self.random.below(300),
            6..9 => self.random.below(70_000),
            _ => self.random.below(5 << 20),
        };
        (offset, len.min(limits::BLOB_SIZE_MAX - offset))
    }

    /// A change of a blob that is now as given.
    pub fn change(&mut self, blob: Option<&Blob>) -> Change {
        let size = blob.map_or(0, |blob| blob.size);
        let choice = self.random.below(100);
        match choice {
            0..4 => Change::Create,
            4..14 => Change::Put(self.data()),
            14..18 => Change::PutReader(self.data()),
            18..44 => Change::Write(self.offset(size), self.data()),
            44..60 if size < APPEND_MAX => Change::Append(self.data()),
            60..63 if size < APPEND_MAX => Change::AppendReader(self.data()),
            63..68 if size < APPEND_MAX => {
                let off = if self.random.permille(300) { self.random.below(3) } else { 0 };
                Change::AppendAt(size + off, self.data())
            }
            68..71 => Change::Truncate(self.offset(size)),
            71..76 => {
                let (offset, len) = self.range(size);
                Change::Clear(offset.min(self.reach), len)
            }
            76..79 => Change::Delete,
            79..93 => Change::Apply(self.place(size), self.transform()),
            93.. => {
                let (offset, expected) = self.expectation(blob);
                Change::Swap(offset, expected, self.data())
            }
            // Large blobs come back.
            _ => Change::Truncate(self.random.below(100_000)),
        }
    }

    /// The same, of what a transaction can do.
    pub fn change_in_transaction(&mut self, blob: Option<&Blob>) -> Change {
        if self.random.permille(80) {
            // What is so, most of the time.
            let is_there = blob.is_some() != self.random.permille(150);
            return if is_there { Change::ExpectPresent } else { Change::ExpectAbsent };
        }
        if self.random.permille(60) {
            return self.comparison(blob);
        }
        match self.change(blob) {
            Change::PutReader(data) => Change::Put(data),
            Change::AppendReader(data) => Change::Append(data),
            Change::Swap(offset, expected, _) => Change::Compare(offset, expected),
            other => other,
        }
    }

    /// Bytes that are at their offset, most of the time.
    fn expectation(&mut self, blob: Option<&Blob>) -> (u64, Vec<u8>) {
        let size = blob.map_or(0, |blob| blob.size);
        let offset = self.offset(size).min(limits::BLOB_SIZE_MAX);
        let len = if self.random.permille(100) { 30_000 } else { 64 };
        let len = self.random.below(len).min(limits::BLOB_SIZE_MAX - offset);
        let mut expected = blob.map(|blob| blob.read(offset, len)).unwrap_or_default();
        if self.random.permille(200) {
            match expected.last_mut() {
                Some(last) => *last ^= 1,
                None => expected.push(0),
            }
        }
        (offset, expected)
    }

    /// A number that stands to another as is said, about every second time.
    fn comparison(&mut self, blob: Option<&Blob>) -> Change {
        let offset = self.place(blob.map_or(0, |blob| blob.size));
        let value = self.transform().operand();
        let number_type = value.number_type();
        let mut there = blob.map(|blob| blob.read(offset, 8)).unwrap_or_default();
        there.resize(8, 0);
        // What is there stands in half of the relations to itself.
        let value =
            if self.random.permille(700) { Number::load(number_type, &there) } else { value };
        Change::CompareNumber(offset, self.pick(&Relation::ALL), value)
    }

    fn transform(&mut self) -> Transform {
        loop {
            let number_type = self.pick(&NumberType::ALL);
            let operand = Number::load(number_type, &self.random.any().to_le_bytes());
            let kind = self.pick(&TransformKind::ALL);
            // Only builds for tests know it (`next-level`): a cluster refuses it.
            if kind.name() == "nand" {
                continue;
            }
            if let Ok(transform) = Transform::new(kind, operand) {
                return transform;
            }
        }
    }

    /// Where a number is.
    fn place(&mut self, size: u64) -> u64 {
        self.offset(size) / self.alignment * self.alignment
    }

    fn offset(&mut self, size: u64) -> u64 {
        self.any_offset(size).min(self.reach)
    }

    fn any_offset(&mut self, size: u64) -> u64 {
        match self.random.below(100) {
            0..15 => 0,
            15..55 => self.random.below(size.min(1 << 40) + 1),
            55..70 => size.saturating_sub(self.random.below(20)),
            70..76 => size.min(1 << 40) + self.random.below(20_000),
            76..97 => self.near_bound(),
            97..99 => (1 << 40) + self.random.below(40_000),
            _ => limits::BLOB_SIZE_MAX - self.random.below(64) + self.random.below(8),
        }
    }

    /// One of these.
    pub fn pick<T: Clone>(&mut self, from: &[T]) -> T {
        from[self.random.below(from.len() as u64) as usize].clone()
    }

    fn near_bound(&mut self) -> u64 {
        let last = if self.random.permille(100) { BOUNDS.len() } else { 5 };
        self.pick(&BOUNDS[..last]) - 10 + self.random.below(20)
    }

    fn data(&mut self) -> Vec<u8> {
        let len = match self.random.below(1000) {
            0..20 => 0,
            20..600 => 1 + self.random.below(200),
            600..850 => self.random.below(9000),
            850..990 => self.near_bound().min(70_000),
            990..998 => self.random.below(300_000),
            _ => (4 << 20) - 10 + self.random.below(20),
        };
        let mut data = Vec::with_capacity(len as usize + 8);
        // Half of it compresses well.
        let is_plain = self.random.permille(500);
        let word = self.random.any();
        while (data.len() as u64) < len {
            let next = if is_plain { word } else { self.random.any() };
            data.extend_from_slice(&next.to_le_bytes());
        }
        data.truncate(len as usize);
        data
    }
}
