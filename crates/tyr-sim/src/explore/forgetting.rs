//! Forgetting (F10): a long time passes, every live node tells the monitors how far it is done, and
//! they tell all how far the slowest is.
//!
//! ```text
//!   Forget: the clocks of all move on by an era
//!     └► to each live node: Renew … it says how far it is done
//!                             └ all have ► to each live node: Retain(floor) … it forgets
//! ```
//!
//! Nodes do not say so in one moment, and do not hear of it in one moment: what else is on its way
//! comes between, as after a minute in which the network has held it back. What began in an era is
//! older than what all are done with at the end of it, if they are.
//!
//! All clocks and floors of a search are known before it, so that of when an outcome was noted only
//! that counts which of the floors lets it go.

use tyr_types::NodeId;

use super::case::{BEGIN_US, Case};
use super::node::Happening;
use super::table::{Posted, Source};
use super::world::{Explorer, Mishaps, World};

/// From one era to the next, in microseconds: much more than outcomes are remembered for, which is
/// much more than clocks move by all that happens in one.
const ERA_US: u64 = 1_000_000_000;

/// How far each live node has said that it is done, by number; `None` when nobody is asked.
pub type Round = Option<[Option<u64>; super::case::NODES as usize]>;

/// All floors that the monitors may tell in a search, ascending: what was the clock at the end of
/// an era, or just before a transaction began.
pub fn floors(case: &Case, mishaps: Mishaps) -> Vec<u64> {
    let eras = 0..u64::from(mishaps.forgettings);
    let ends = eras.clone().map(horizon_us);
    let begun = eras.flat_map(|era| case.ahead_us.map(|ahead_us| clock_us(era, ahead_us) - 1));
    let mut floors: Vec<u64> = ends.chain(begun).collect();
    floors.sort_unstable();
    floors.dedup();
    floors
}

fn clock_us(era: u64, ahead_us: u64) -> u64 {
    BEGIN_US + era * ERA_US + ahead_us
}

/// The clock at the end of an era, after which nodes wait for as long as outcomes are remembered.
fn horizon_us(era: u64) -> u64 {
    clock_us(era, ERA_US / 2)
}

impl Explorer {
    /// How often a long time has passed.
    pub fn era(&self, world: &World) -> u8 {
        self.mishaps.forgettings - world.left.forgettings
    }

    /// The clock when a client first submits to this head in this era: as the head's is then. Where
    /// nobody forgets it does not matter, and is the same for all.
    pub fn begun_us(&self, era: u8, head: NodeId) -> u64 {
        let ahead_us = match self.mishaps.forgettings {
            0 => 0,
            _ => self.case.ahead_us[usize::from(head.0)],
        };
        clock_us(era.into(), ahead_us)
    }

    /// Whether a long time may pass now: not while the last is still spoken of.
    pub fn is_forgetting_possible(&self, world: &World) -> bool {
        world.left.forgettings > 0 && world.round.is_none()
    }

    /// A long time passes.
    ///
    /// # Errors
    /// What is wrong with that.
    pub fn forget(&mut self, world: &mut World) -> Result<(), String> {
        let era = u64::from(self.era(world));
        world.left.forgettings -= 1;
        world.round = Some([None; super::case::NODES as usize]);
        for to in world.live() {
            let ahead_us = self.case.ahead_us[usize::from(to.0)];
            let age = self.outside(to, Happening::Age(clock_us(era + 1, ahead_us)));
            self.deliver(world, age)?;
            let renew = self.outside(to, Happening::Renew(horizon_us(era)));
            world.post(renew);
        }
        Ok(())
    }

    /// A node has said how far it is done.
    pub fn hear_done(&self, world: &mut World, node: NodeId, done_to_us: u64) {
        if let Some(round) = &mut world.round {
            round[usize::from(node.0)] = Some(done_to_us);
        }
    }

    /// When all live nodes have said how far they are done, they are told how far the slowest is.
    pub fn tell_floor(&mut self, world: &mut World) {
        let Some(round) = world.round else { return };
        let live = world.live();
        let said: Option<Vec<u64>> = live.iter().map(|node| round[usize::from(node.0)]).collect();
        let Some(floor_us) = said.and_then(|said| said.into_iter().min()) else { return };
        world.round = None;
        for to in live {
            let retain = self.outside(to, Happening::Retain(floor_us));
            world.post(retain);
        }
    }

    /// Something that comes from the monitors, or with time.
    pub fn outside(&mut self, to: NodeId, happening: Happening) -> super::table::EventNumber {
        let (from, epoch) = (Source::Outside, self.map.epoch);
        self.table.keep_event(Posted { to, from, epoch, happening })
    }
}
