//! Files created in groups: what a file system does in one transaction of one group.

use tyr::{Bytes, Keyspace, Number, Result, Transform, Tyr};

use crate::random::Random;

/// Bytes of a file.
pub const FILE_LEN: usize = 4096;
/// Groups; each is a directory with a header.
const DIRECTORIES: u64 = 1_000;
/// Bytes of a header: how many files there are, and their bytes.
const HEADER_LEN: usize = 16;

/// Makes the directories.
///
/// # Errors
/// What the cluster says.
pub async fn prepare(keyspace: &Keyspace) -> Result<()> {
    for number in 0..DIRECTORIES {
        keyspace.put(header(number), vec![0; HEADER_LEN]).await?;
    }
    Ok(())
}

/// Creates a file that must not be there, in a directory that must be, and counts it there.
///
/// # Errors
/// What the cluster says.
pub async fn create(store: &Tyr, keyspace: &Keyspace, random: &mut Random) -> Result<()> {
    let header = header(random.below(DIRECTORIES));
    let file = format!("{header}{:016x}", random.next());
    let mut transaction = store.begin();
    transaction.create(keyspace, &file)?;
    transaction.write(keyspace, &file, 0, Bytes::from_static(&[1; FILE_LEN]))?;
    transaction.expect_present(keyspace, &header)?;
    for (at, number) in [(0, 1), (8, FILE_LEN as u64)] {
        transaction.apply(keyspace, &header, at, Transform::add(Number::U64(number)))?;
    }
    transaction.commit().await.map(drop)
}

/// Compares what the headers say with `count` acknowledged transactions.
///
/// # Errors
/// `Corrupt` when they differ.
pub async fn verify(keyspace: &Keyspace, count: u64) -> Result<()> {
    let mut counted = [0; 2];
    for number in 0..DIRECTORIES {
        let bytes = keyspace.read(header(number), 0, HEADER_LEN as u64).await?;
        for (sum, number) in counted.iter_mut().zip(bytes.chunks_exact(8)) {
            *sum += u64::from_le_bytes(number.try_into().expect("these are eight bytes"));
        }
    }
    if counted == [count, count * FILE_LEN as u64] {
        return Ok(());
    }
    let [files, bytes] = counted;
    Err(tyr::Error::corrupt(format!(
        "{count} files were created, and the directories count {files}, of {bytes} bytes"
    )))
}

fn header(number: u64) -> String {
    format!("directory{number}/")
}
