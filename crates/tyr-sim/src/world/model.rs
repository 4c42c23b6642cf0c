//! A node over a model of a store: a log of records, and what was applied in memory.

use tyr_protocol::View;
use tyr_protocol::member::Member;
use tyr_protocol::message::{Address, Body, Envelope, ReadPart, ReadRequest};
use tyr_protocol::movement;
use tyr_protocol::read::{Kind, layout};
use tyr_types::{ByteRange, NodeId, Timestamp};

use super::checkpoint::{Cutting, Rhythm};
use super::disk::{Disk, Opened};
use super::node::End;
use crate::random::Random;
use crate::setup::Setup;
use crate::store::{Reading, SimStore, StoreConfig};

/// A disk with a log, and the process on it, while one runs.
pub struct Model {
    id: NodeId,
    /// The disk.
    pub disk: Disk,
    /// When the log is cut.
    pub rhythm: Rhythm,
    /// What runs on it.
    pub process: Option<Process>,
    store: StoreConfig,
}

/// A process: all that is lost when it is killed.
pub struct Process {
    /// What decides.
    pub member: Member,
    /// What is applied.
    pub store: SimStore,
    /// How far it is with cutting its log.
    pub cutting: Cutting,
}

impl Model {
    /// An empty disk that nothing runs on.
    pub fn new(id: NodeId, setup: &Setup) -> Self {
        let stream = |name| Random::of(setup.seed, name, id.0.into());
        Self {
            id,
            disk: Disk::new(setup.disks, stream("disk")),
            rhythm: Rhythm::new(setup.disks.checkpoint_us, stream("checkpoint")),
            process: None,
            store: setup.store(),
        }
    }

    /// Starts a process on what is on the disk.
    pub fn start(&mut self, mut member: Member) {
        let Opened { base, checkpoint, log } = self.disk.open();
        let mut store = match base {
            Some(base) => base.store.clone(),
            None => SimStore::new(self.id, self.store.clone()),
        };
        for record in checkpoint {
            member.replay_checkpoint(record.clone(), &mut store);
        }
        for record in log {
            member.replay(record.clone(), &mut store);
        }
        store.end_replay();
        self.process = Some(Process { member, store, cutting: Cutting::Idle });
    }

    /// Ends the process, if one runs.
    pub fn end(&mut self, end: End) {
        if end == End::Stop {
            self.disk.settle();
        }
        if self.process.take().is_some() {
            self.disk.crash();
        }
    }

    /// Reads the store for whoever asked; answers the message with what was found.
    pub fn serve(
        &self,
        request: ReadRequest,
        at: Option<Timestamp>,
    ) -> Option<(Address, Envelope)> {
        let Process { member, store, .. } = self.process.as_ref()?;
        let ReadRequest { read, asker, blob, range, is_copy, kind, .. } = request;
        let number = range.start / store.chunk_size(blob.keyspace);
        let chunk = (blob, number);
        let found = match (is_copy, at) {
            (true, Some(at)) => store
                .export(&chunk, range, at)
                .map(|copy| Body::Movement(movement::Message::Copied { read, chunk, copy })),
            (true, None) => panic!("violation: a copy is read at no timestamp"),
            (false, at) => store.read(&chunk.0, range, at).map(|reading| {
                let Reading { version, bytes, size } = reading;
                let clock = member.clock();
                let bytes = match kind {
                    // A model knows no holes.
                    Kind::Layout(_) if bytes.is_empty() => layout::encode(range, &[]),
                    Kind::Layout(_) => {
                        let end = range.start + bytes.len() as u64;
                        layout::encode(range, &[ByteRange { start: range.start, end }])
                    }
                    Kind::Direct | Kind::Whole | Kind::First | Kind::Clock | Kind::At(_) => bytes,
                };
                Body::Part(ReadPart { read, range, at, version, bytes, size, clock })
            }),
        };
        let body = found.unwrap_or_else(|abort| Body::Refused { read, abort });
        Some((asker, member.envelope(body)))
    }
}
