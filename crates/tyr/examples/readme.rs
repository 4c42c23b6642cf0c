//! The program that README.md shows, and nothing else: `cargo xtask tidy` compares the two.

use tyr::blocking::Tyr;
use tyr::{KeyspaceConfig, Number, Transform};

fn main() -> tyr::Result<()> {
    let tyr = Tyr::open("weather")?;
    let oslo = tyr.keyspace_or_create("oslo", KeyspaceConfig::default())?;
    tyr.transact(|transaction| {
        transaction.append(&oslo, "temperature", "-3.5\n")?;
        transaction.apply(&oslo, "count", 0, Transform::add(Number::U64(1)))?;
        Ok(())
    })?;
    let snapshot = tyr.snapshot()?;
    println!("{:?} {:?}", snapshot.get(&oslo, "temperature")?, snapshot.get(&oslo, "count")?);
    Ok(())
}
