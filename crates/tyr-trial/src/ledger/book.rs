//! What a ledger must have in it, and whether it does.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use tyr_types::{Bytes, Error, ErrorKind, Result};

use crate::cluster::PATIENCE;
use crate::worker::order::What;
use crate::worker::{Change, Order, Told, Wanted, Worker};

/// What the names of the two keyspaces end with.
pub const KEYSPACES: [&str; 2] = ["left", "right"];

/// More bytes than a blob has.
const LEN_MAX: u64 = 1 << 20;

/// Every so many entries have a payload that is stored by itself.
const LARGE: u64 = 5;

/// What is known of a ledger.
#[derive(Clone, Debug, Default)]
pub struct Book {
    /// Entries that were begun.
    begun: u64,
    /// Those that were told to have taken effect, in order.
    told: Vec<u64>,
    /// Those that must not take effect.
    refused: BTreeSet<u64>,
    /// Those that nobody heard of.
    killed: BTreeSet<u64>,
    /// What the lists were when they were last looked at.
    seen: Vec<u64>,
}

impl Book {
    /// The next entry, and the commit that makes it.
    pub fn next(&mut self) -> (u64, Order) {
        self.begun += 1;
        let entry = self.begun;
        let change = |keyspace, key: &str, what| Change { keyspace, key: key.to_owned(), what };
        let word = Bytes::copy_from_slice(&entry.to_le_bytes());
        let changes = vec![
            change(0, "list", What::Append(word.clone())),
            change(1, "list", What::Append(word)),
            change(0, "count", What::Add(1)),
            change(1, "payload", What::Put(payload(entry))),
        ];
        (entry, Order::Commit(changes))
    }

    /// An entry took effect, and this was told.
    ///
    /// # Errors
    /// `Corrupt` when that cannot be.
    pub fn told(&mut self, entry: u64, told: &[Told]) -> Result<()> {
        self.told.push(entry);
        match told {
            [Told::Number(left), Told::Number(right), Told::Number(count), Told::Done]
                if left == right && *left == 8 * (count - 1) =>
            {
                Ok(())
            }
            other => Err(Error::corrupt(format!("entry {entry} was told as {other:?}"))),
        }
    }

    /// An entry did not take effect.
    pub fn refused(&mut self, entry: u64) {
        self.refused.insert(entry);
    }

    /// Nobody heard of an entry.
    pub fn killed(&mut self, entry: u64) {
        self.killed.insert(entry);
    }

    /// Of those that nobody heard of, how many took effect.
    pub fn took_effect(&self) -> usize {
        self.seen.iter().filter(|entry| self.killed.contains(entry)).count()
    }

    /// Looks at the ledger through a client, which may need a while to be answered.
    ///
    /// # Errors
    /// `Corrupt` with what is wrong.
    pub fn verify(&mut self, worker: &mut Worker) -> Result<()> {
        let begun = Instant::now();
        let wanted =
            |keyspace, key: &str| Wanted { keyspace, key: key.to_owned(), start: 0, len: LEN_MAX };
        let order = Order::Many(vec![
            wanted(0, "list"),
            wanted(1, "list"),
            wanted(0, "count"),
            wanted(1, "payload"),
        ]);
        loop {
            match worker.ask(&order) {
                Ok(told) => return self.look(&told),
                Err(error) if error.kind() == ErrorKind::Corrupt => return Err(error),
                Err(error) if begun.elapsed() > PATIENCE => return Err(error),
                Err(_) => std::thread::sleep(Duration::from_millis(50)),
            }
        }
    }

    fn look(&mut self, told: &[Told]) -> Result<()> {
        let wrong = |text: String| Err(Error::corrupt(text));
        let bytes: Vec<&[u8]> = told.iter().filter_map(bytes).collect();
        let [left, right, count, found] = bytes[..] else {
            return wrong(format!("a ledger is read as {told:?}"));
        };
        let (left, right, counted) = (words(left), words(right), words(count));
        if left != right {
            return wrong(format!("{left:?} in one keyspace, {right:?} in the other"));
        }
        if counted.first().copied().unwrap_or(0) != left.len() as u64 {
            return wrong(format!("{} entries are counted as {counted:?}", left.len()));
        }
        if left.last().map_or(Bytes::new(), |last| payload(*last)) != found {
            return wrong(format!("the payload is not that of {:?}", left.last()));
        }
        if !left.starts_with(&self.seen) {
            return wrong(format!("{:?} were there, and then {left:?}", self.seen));
        }
        let is_told = |entry: &&u64| !self.killed.contains(entry);
        let of_told: Vec<u64> = left.iter().filter(is_told).copied().collect();
        if of_told != self.told {
            let told = &self.told;
            return wrong(format!("{told:?} were told to be there, and there are {of_told:?}"));
        }
        let once: BTreeSet<u64> = left.iter().copied().collect();
        if once.len() != left.len() || !once.is_disjoint(&self.refused) {
            return wrong(format!("entries twice, or that were refused: {left:?}"));
        }
        self.seen = left;
        Ok(())
    }
}

/// What was read; nothing where there is no blob.
fn bytes(told: &Told) -> Option<&[u8]> {
    match told {
        Told::Bytes(bytes) => Some(bytes),
        Told::Absent => Some(&[]),
        Told::Number(_) | Told::Done => None,
    }
}

fn words(bytes: &[u8]) -> Vec<u64> {
    bytes.as_chunks::<8>().0.iter().map(|word| u64::from_le_bytes(*word)).collect()
}

/// What an entry puts: its number, again and again.
fn payload(entry: u64) -> Bytes {
    let len = match entry % LARGE {
        0 => 5_000 + entry % 7 * 1_000,
        _ => 1 + entry % 100,
    };
    (0..len).flat_map(|_| entry.to_le_bytes()).collect::<Vec<u8>>().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(list: &[u64]) -> Vec<Told> {
        let words = |list: &[u64]| list.iter().flat_map(|it| it.to_le_bytes()).collect::<Vec<_>>();
        let list_of = Told::Bytes(words(list).into());
        let count = Told::Bytes(words(&[list.len() as u64]).into());
        vec![list_of.clone(), list_of, count, Told::Bytes(payload(*list.last().unwrap()))]
    }

    fn committed(place: u64) -> [Told; 4] {
        let offset = Told::Number(8 * place);
        [offset.clone(), offset, Told::Number(place + 1), Told::Done]
    }

    /// Entries 1 and 2 were told, nobody heard of 3, and 4 was refused.
    fn book() -> Book {
        let mut book = Book::default();
        for place in 0..4 {
            assert_eq!(book.next().0, place + 1);
        }
        book.told(1, &committed(0)).unwrap();
        book.told(2, &committed(1)).unwrap();
        book.killed(3);
        book.refused(4);
        book
    }

    #[test]
    fn what_was_told_is_there_and_the_rest_is_there_whole_or_not_at_all() {
        for list in [&[1, 2][..], &[1, 2, 3], &[1, 3, 2]] {
            book().look(&told(list)).unwrap();
        }
        for list in [&[1][..], &[2, 1], &[1, 2, 4], &[1, 2, 2], &[1, 2, 3, 3], &[1, 2, 5]] {
            book().look(&told(list)).unwrap_err();
        }
        for half in 0..4 {
            let mut halves = told(&[1, 2]);
            halves[half] = told(&[1, 2, 3])[half].clone();
            book().look(&halves).unwrap_err();
        }
    }

    #[test]
    fn what_was_seen_stays() {
        let mut book = book();
        book.look(&told(&[1, 2, 3])).unwrap();
        assert_eq!(book.took_effect(), 1);
        book.look(&told(&[1, 2])).unwrap_err();
        book.look(&told(&[1, 3, 2])).unwrap_err();
    }

    #[test]
    fn answers_of_a_commit_agree_with_each_other() {
        let mut book = book();
        book.told(5, &committed(2)).unwrap();
        let mut odd = committed(3);
        odd[1] = Told::Number(16);
        book.told(6, &odd).unwrap_err();
    }
}
