//! The rules that a test can take away, to see that the checker notices.
//!
//! Outside of test builds, and without the feature `broken-rules`, which is for tests of other
//! crates, every rule holds and the question costs nothing.

/// A rule of `docs/design.md` by its number; where one says several things, one of them. Which test
/// takes each away, and what notices, is in a table in `ARCHITECTURE.md`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, strum::EnumCount)]
pub enum Rule {
    /// Reads are validated, conditions wait for those in flight.
    C1,
    /// A write waits for the validated reads it overlaps.
    C2,
    /// What a node has validated is durable before it is passed on.
    C3,
    /// Writes never conflict with writes.
    C4,
    /// It is decided at the highest proposal.
    C5,
    /// Applied in timestamp order.
    C6,
    /// Also where they write different bytes of one chunk.
    C6Chunk,
    /// Acknowledged only when applied.
    C7,
    /// A clock moves past every timestamp it sees.
    C8,
    /// An authority shows a transaction only when it is clear at all authorities of what it writes
    /// what comes before it, and that is shown.
    C9,
    /// A payload has the commit timestamp in it, the same at every node.
    C10,
    /// An abort for a condition says which.
    C12,
    /// Messages of chains that the map does not give any more are refused; a new epoch's timestamps
    /// are above all older ones.
    F1,
    /// Whoever answers a query takes part in no older attempt.
    F2,
    /// A decision that someone knows of stands; without one, nothing validated before counts.
    F3,
    /// Outcomes are remembered for those who ask again.
    F4,
    /// A new authority tells the others what is stable.
    F5,
    /// What is undecided too long is asked about.
    F6,
    /// Whoever begins an attempt promises to it at once, so that it is begun by nobody else.
    F8,
    /// An abort of a later attempt is answered when all live nodes of the chain have it durably.
    F9,
    /// An outcome is remembered until every live node is done with what began as early.
    F10,
    /// What may have been forgotten is not taken for what never was.
    F11,
    /// A client's question runs nothing that nobody knows of.
    F12,
    /// What has begun is ended with whoever is up; its client hears when there are enough.
    F13,
    /// A commit that was heard of and cannot be applied yet is written down.
    F14,
    /// Appends reserve space, and keep off what moves the end of the blob.
    End,
    /// A node serves and validates only while it holds a lease.
    M3,
    /// A map that takes something from a node waits until all have acknowledged, or have no lease.
    M3Wait,
    /// A node that was down serves nothing before it has caught up.
    M4,
    /// Who has started again is not declared down by an order about the process before.
    M4Order,
    /// A direct read shows clean ranges only, or waits at the authority.
    R1,
    /// A version is shown only when it is stable.
    R2,
    /// The first read of several is served where the blob is clean, or by the authority.
    R3,
    /// Later reads of a transaction or snapshot are at its timestamp.
    R4,
    /// A read at S waits for what may still be at or below S.
    R5,
    /// A read of many blobs is at the highest of their clocks.
    R6,
    /// Whether a read that comes out short met a hole or the end is asked.
    R7,
    /// A listing at S waits for what may still be at or below S.
    Q1,
    /// What is listed of a blob, attributes and bytes, is of one moment.
    Q2,
    /// What a transaction has listed is validated like what it has read.
    Q3,
    /// The authority counts with a lease longer than its holder.
    K1,
    /// In a guarded keyspace who holds a lease is not surprised by others.
    K2,
    /// A new authority gives no lease before what its predecessor gave is over.
    K3,
    /// Who watches looks what is there whenever something may not have been told.
    K5,
    /// A new authority passes on no notice before all who watch have registered with it.
    K6,
    /// A lease of a group is one of each of its keys.
    K7,
    /// Snapshots in use are counted.
    V1,
    /// What travels of usage is what all version managers know.
    V2,
    /// A version goes only by usage information from after it was superseded.
    V3,
    /// Versions that nobody is known to use stay for a while.
    V4,
    /// A transaction is validated where every uploaded byte of it is that will lie there.
    U1,
    /// What was uploaded outlives the log that had it, and is kept for its transaction.
    U2,
    /// Who lacks pieces of what is decided takes it in without: a copy has them.
    U3,
    /// Pieces that a node lacks are asked for from others.
    U4,
    /// What a piece is filled with inside the cluster is what its source had at the moment that is
    /// said.
    U5,
    /// A moment of everything is counted at every authority, from its clock on.
    V5,
    /// What was current at kept moments stays, wherever it goes.
    V7,
    /// Recipients get what chains bring.
    D1,
    /// A copy is read as any snapshot is: what is in flight is waited for.
    D2,
    /// The next ring is the ring when all recipients have caught up, not some.
    D3,
    /// Where a replica has something else than most, it is written anew.
    D4,
    /// What a node has that was declared down counts when an authority has said that it did not
    /// change since.
    D5,
    /// What stands for a log that is cut has all that was promised in it.
    L1,
    /// A base is folded only up to where nothing is applied any more.
    L2,
    /// What waits for a chunk's base outlives the log that had it.
    L3,
    /// What a transaction answered is read from the log, not computed again.
    L4,
}

#[cfg(feature = "broken-rules")]
impl Rule {
    /// All of them.
    pub const ALL: [Self; <Self as strum::EnumCount>::COUNT] = [
        Self::C1,
        Self::C2,
        Self::C3,
        Self::C4,
        Self::C5,
        Self::C6,
        Self::C6Chunk,
        Self::C7,
        Self::C8,
        Self::C9,
        Self::C10,
        Self::C12,
        Self::F1,
        Self::F2,
        Self::F3,
        Self::F4,
        Self::F5,
        Self::F6,
        Self::F8,
        Self::F9,
        Self::F10,
        Self::F11,
        Self::F12,
        Self::F13,
        Self::F14,
        Self::End,
        Self::M3,
        Self::M3Wait,
        Self::M4,
        Self::M4Order,
        Self::R1,
        Self::R2,
        Self::R3,
        Self::R4,
        Self::R5,
        Self::R6,
        Self::R7,
        Self::Q1,
        Self::Q2,
        Self::Q3,
        Self::K1,
        Self::K2,
        Self::K3,
        Self::K5,
        Self::K6,
        Self::K7,
        Self::V1,
        Self::V2,
        Self::V3,
        Self::V4,
        Self::U1,
        Self::U2,
        Self::U3,
        Self::U4,
        Self::U5,
        Self::V5,
        Self::V7,
        Self::D1,
        Self::D2,
        Self::D3,
        Self::D4,
        Self::D5,
        Self::L1,
        Self::L2,
        Self::L3,
        Self::L4,
    ];
}

/// Which rules hold: all of them, but in a test that takes one away.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Rules {
    #[cfg(any(test, feature = "broken-rules"))]
    pub broken: Option<Rule>,
}

impl Rules {
    /// Whether `rule` holds.
    #[cfg(any(test, feature = "broken-rules"))]
    pub fn hold(self, rule: Rule) -> bool {
        self.broken != Some(rule)
    }

    /// Whether `rule` holds.
    #[cfg(not(any(test, feature = "broken-rules")))]
    pub fn hold(self, _rule: Rule) -> bool {
        true
    }
}
