//! A cluster of one node that is killed right after it was filled: how long until it serves again,
//! and what that takes.
//!
//! ```text
//! fill ─► kill ─► start ─► it is ready ─► read some
//! ```

use std::path::Path;
use std::time::Instant;

use tyr::blocking::Tyr;
use tyr::{Error, KeyspaceConfig, Result};

use super::filling::{Filling, content, key};
use super::meter::{Figures, Moment};
use super::place::Place;
use crate::failure::Outcome;
use crate::random::Random;

/// Blobs that are read when it is back.
const READS: u64 = 1000;

/// Fills a node in `dir`, kills it, and starts it again.
pub fn run(dir: &Path, filling: Filling) -> Outcome<Figures> {
    let mut figures = Figures::default();
    let place = Place::on_a_node(dir)?;
    let mut opened = place.open()?;
    let killed =
        fill(&opened.store, filling, &mut figures).map_err(Into::into).and_then(|()| opened.kill());
    opened.close()?;
    killed?;

    let moment = Moment::now();
    let opened = place.open()?;
    figures.set("ready_s", moment.cost().wall.as_secs_f64());
    figures.set("node_cpu_s", opened.node_cpu().as_secs_f64());
    figures.set("node_resident_mib", opened.node_memory_mib("VmRSS"));
    let read = read_some(&opened.store, filling, &mut figures);
    figures.set("node_peak_mib", opened.node_memory_mib("VmHWM"));
    opened.close()?;
    read?;
    Ok(figures)
}

fn fill(store: &Tyr, filling: Filling, figures: &mut Figures) -> Result<()> {
    let keyspace = store.create_keyspace("restarting", KeyspaceConfig::default())?;
    let begin = Instant::now();
    filling.write(store, &keyspace)?;
    figures.set("fill_s", begin.elapsed().as_secs_f64());
    Ok(())
}

/// Some blobs of everywhere are as they were written; a first read waits as long as it must.
fn read_some(store: &Tyr, filling: Filling, figures: &mut Figures) -> Result<()> {
    let keyspace = store.keyspace("restarting")?;
    let mut random = Random::new(9);
    let moment = Moment::now();
    for _ in 0..READS {
        let number = random.below(filling.blobs);
        if keyspace.get(key(number))? != content(number, 0, filling.len) {
            return Err(Error::corrupt(format!("blob {number} is not what was written")));
        }
    }
    let spent = moment.cost().wall.as_secs_f64();
    figures.set("first_read_us", spent * 1e6 / READS as f64);
    Ok(())
}
