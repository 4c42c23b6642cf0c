//! Who tells the nodes of a chain that its transaction is decided (C9).
//!
//! All of them have to know soon: what comes before what must not wait for the way back, at no
//! node. So there is one message to each node but the tail, whoever sends it; who does is free.
//! The protocol has relays ([`tyr_protocol::Chain::told_by`]); the others are there to compare.

use super::passage::Passage;

/// Who tells whom.
#[derive(Clone, Copy, Debug, PartialEq, Eq, strum::EnumCount)]
pub enum Telling {
    /// The tail tells about every fourth node of a long chain, each of them those before it. So it
    /// is.
    Relays,
    /// The tail tells all. So it was.
    Tail,
    /// The tail tells the head, the head all others.
    Head,
    /// The tail tells the authorities, each of them those between it and the next one.
    Authorities,
}

impl Telling {
    /// All of them, that of the protocol first.
    pub const ALL: [Self; <Self as strum::EnumCount>::COUNT] =
        [Self::Relays, Self::Tail, Self::Head, Self::Authorities];

    /// What tables call it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Relays => "relays",
            Self::Tail => "tail",
            Self::Head => "head",
            Self::Authorities => "authorities",
        }
    }

    /// From which visit to which, whoever tells being told before.
    pub fn tellers(self, passage: &Passage) -> Vec<(usize, usize)> {
        let last = passage.visits.len() - 1;
        let mut first: Vec<(usize, usize)> = Vec::new();
        let mut then = Vec::new();
        for place in 0..last {
            let teller = match self {
                Self::Tail => last,
                Self::Head => 0,
                Self::Authorities => {
                    let before = passage.authorities.iter().rev();
                    before.copied().find(|authority| *authority <= place).unwrap_or(last)
                }
                Self::Relays => {
                    let width = last.isqrt().max(1);
                    ((place / width + 1) * width - 1).min(last - 1)
                }
            };
            match teller == place || teller == last {
                true => first.push((last, place)),
                false => then.push((teller, place)),
            }
        }
        first.extend(then);
        first
    }
}
