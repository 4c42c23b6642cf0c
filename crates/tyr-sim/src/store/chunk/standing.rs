//! A chunk of which it is to be seen whether what is here stands (D5).

use tyr_protocol::member::LateAnswers;
use tyr_types::Timestamp;

use super::Chunk;

impl Chunk {
    /// From now on it is to be seen whether what is here, of this moment, is the base. Where there
    /// is nothing a copy comes, or an empty base: then it may have gone later, too.
    ///
    /// # Panics
    /// When there is something, of later.
    pub fn await_confirmation(&mut self, stands_at: Timestamp) {
        let newest = self.newest_of_all();
        assert!(
            newest <= stands_at || !self.exists(),
            "violation: {newest} is not to be seen at {stands_at} (D5)"
        );
        let stands_at = stands_at.max(newest);
        self.awaited = Some(Vec::new());
        self.stands_at = Some(stands_at);
        // A fold may have passed it since.
        self.copied = Some(stands_at);
    }

    /// What is here is the base: what came since has its answers.
    ///
    /// # Panics
    /// When there is nothing: what others have, or what they had, is not known from that.
    pub fn confirm(&mut self) -> Vec<LateAnswers> {
        let is_there = self.stands_at.is_none() || self.exists();
        assert!(is_there, "violation: what is not there is said to stand (D5)");
        self.go_on_from_here()
    }

    /// Whether an empty base changes nothing: there is nothing here, and what there was before
    /// stays known.
    pub(in crate::store) fn is_awaited_as_nothing(&self) -> bool {
        self.stands_at.is_some() && !self.exists()
    }

    /// What came since goes on top of what is here.
    pub(in crate::store) fn go_on_from_here(&mut self) -> Vec<LateAnswers> {
        let Some(stands_at) = self.stands_at.take() else { return Vec::new() };
        self.awaited = None;
        self.check_whole();
        let first = self.effects.partition_point(|effect| effect.at <= stands_at);
        let late = first..self.effects.len();
        late.map(|place| (self.effects[place].at, self.answers_again(place).into_vec())).collect()
    }

    /// What waited for its base is gone; what was here before stays. Answers whether anything does.
    pub fn stop_awaiting(&mut self) -> Option<Timestamp> {
        self.awaited = None;
        let stands_at = self.stands_at.take()?;
        let stay = self.effects.partition_point(|effect| effect.at <= stands_at);
        self.effects.truncate(stay);
        self.hollow.clear();
        self.redo(0);
        Some(stands_at)
    }

    /// Of which moment it is what is here of it, while that is to be seen.
    pub fn stands_at(&self) -> Option<Timestamp> {
        self.stands_at
    }

    /// The last transaction that came here, whether or not it changed anything; of what waits none.
    pub fn newest_of_all(&self) -> Timestamp {
        let to = self.stands_at.unwrap_or(Timestamp::MAX);
        let above = self.effects.iter().map(|effect| effect.at).filter(|at| *at <= to);
        above.chain(self.folded.iter().map(|(at, _)| *at)).max().unwrap_or(Timestamp::ZERO)
    }

    /// Whether it holds anything, without what waits.
    pub fn exists(&self) -> bool {
        if self.is_awaited() && self.stands_at.is_none() {
            return false;
        }
        let content = self.content_at(self.stands_at).unwrap_or_default();
        if self.is_first() { content.size.is_some() } else { !content.bytes.is_empty() }
    }
}
