//! What a node does all the time: the member's clock, what others are told of it, room on its disk.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use tyr_store::disk::{Disk as _, RealDisk};
use tyr_store::store::Store;
use tyr_types::{Epoch, Error, Result};

use super::disk::NodeDisk;
use super::vigilance::{Seen, Vigilance};
use crate::driver::Driver;
use crate::full_nodes::HEARD_MAX_US;
use crate::gate::Gate;
use crate::memory_pressure::MemoryPressure;
use crate::quota::Quotas;
use tyr_gossip::{Gossip, Rumour};
use tyr_runtime::clock;

/// How often a node looks around.
const TICK: Duration = Duration::from_millis(50);

/// A node tells something new of itself every so many ticks.
const TICKS_PER_RUMOUR: u32 = 10;

/// It looks at its disk every so many ticks.
const TICKS_PER_LOOK: u32 = 10;

const _: () = {
    let told_every_us = TICK.as_micros() * TICKS_PER_RUMOUR as u128;
    assert!(2 * told_every_us < HEARD_MAX_US as u128, "one rumour may be lost");
};

/// A node takes new data while its disk has room for so many bytes: the log grows by segments of
/// 64 MiB, and what is under way when it runs short must still find room. Below that it refuses
/// writes; a node whose disk refuses even its log has to be started again once there is room.
pub const ROOM_MIN: u64 = 2 * (64 << 20);

/// Bytes of room on the disk of a node's folder, less what is kept for its index.
///
/// # Errors
/// `NotFound` when there is no such folder; `Unavailable` when the system does not tell.
pub fn room(folder: &Path) -> Result<u64> {
    let disk = RealDisk::existing(folder)?;
    disk.room().map_err(|error| Error::io(folder.display().to_string(), error))
}

/// What is looked after.
pub(super) struct Maintenance {
    driver: Arc<Driver>,
    store: Arc<Store>,
    gate: Arc<Gate>,
    gossip: Gossip,
    quotas: Arc<Quotas>,
    memory: Arc<MemoryPressure>,
    disk: Arc<NodeDisk>,
    vigilance: Vigilance,
}

impl Maintenance {
    pub fn new(
        driver: Arc<Driver>,
        gate: Arc<Gate>,
        gossip: Gossip,
        quotas: Arc<Quotas>,
        memory: Arc<MemoryPressure>,
        disk: Arc<NodeDisk>,
    ) -> Self {
        let store = driver.store();
        let vigilance = Vigilance::new(Arc::clone(&driver.remarks));
        Self { driver, store, gate, gossip, quotas, memory, disk, vigilance }
    }

    /// Runs until the node stops.
    pub fn run(mut self, is_stopping: &AtomicBool) {
        let mut ticks = 0u32;
        while !is_stopping.load(Ordering::Acquire) {
            self.driver.tick();
            if ticks.is_multiple_of(TICKS_PER_RUMOUR) {
                if let Err(error) = self.gossip.tell(self.rumour()) {
                    tracing::warn!(%error, "the node tells nothing of itself");
                }
                let heard = self.gossip.rumours();
                self.memory.hear(&heard);
                self.gate.disks.hear(&heard);
                self.quotas.hear(&heard);
            }
            if ticks.is_multiple_of(TICKS_PER_LOOK) {
                self.look_at_disk();
                self.look_around();
            }
            ticks = ticks.wrapping_add(1);
            std::thread::sleep(TICK);
        }
    }

    /// What the node tells others of itself.
    fn rumour(&self) -> Rumour {
        let (epoch, snapshot_floor) = self.driver.look(|engine| {
            let member = engine.member();
            (member.map().map_or(Epoch(0), |map| map.epoch), member.snapshot_floor())
        });
        Rumour {
            epoch,
            snapshot_floor,
            is_memory_full: self.memory.is_full() || self.driver.is_crowded(),
            is_disk_full: self.gate.disks.is_full(),
            totals: self.quotas.counted(Instant::now()),
        }
    }

    fn look_around(&mut self) {
        let outdated = self
            .driver
            .look(|engine| engine.member().outdated().map(|error| error.message().to_owned()));
        self.vigilance.look(Seen {
            disk: self.disk.report(),
            gone: self.disk.failure(),
            outdated,
            wall_us: clock::now_us(),
            steady_us: clock::steady_us(),
        });
    }

    fn look_at_disk(&self) {
        self.disk.look();
        match self.store.room() {
            Ok(room) => self.gate.disks.set_full(room < ROOM_MIN),
            Err(error) => tracing::warn!(%error, "the disk does not tell how much room it has"),
        }
    }
}
