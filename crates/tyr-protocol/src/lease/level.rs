//! The feature level: it follows what all nodes of the map speak.

use super::grants::Grants;

impl Grants {
    /// Whether all nodes speak a higher level than the one in use, looked at once for each map.
    pub(super) fn is_level_to_rise(&mut self) -> bool {
        let is_new = self.leveled_in.replace(self.map.epoch) != Some(self.map.epoch);
        is_new && self.map.spoken() > self.map.level
    }
}
