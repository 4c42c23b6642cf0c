//! Three nodes that hold everything, and the messages between them.

use super::*;

/// What a node has applied: ids and timestamps, in order.
#[derive(Clone, Debug, Default)]
pub(super) struct Applied(pub(super) Vec<(u64, Timestamp)>);

impl View for Applied {
    fn newest_overlapping(&self, _: &BlobName, _: ByteRange, _: bool) -> Timestamp {
        self.0.last().map_or(Timestamp::ZERO, |(_, at)| *at)
    }

    fn is_listing_stale(&self, _: KeyspaceId, _: &tyr_types::Listed, _: Timestamp) -> bool {
        false
    }

    fn stat(&self, _: &BlobName) -> Option<u64> {
        (!self.0.is_empty()).then_some(8)
    }

    fn matches(&self, _: &BlobName, _: u64, _: &[u8]) -> bool {
        true
    }

    fn number(&self, _: &BlobName, _: u64, _: NumberType) -> Option<Number> {
        None
    }

    fn chunk_size(&self, _: KeyspaceId) -> u64 {
        4096
    }
}

/// A message on its way.
#[derive(Clone, Debug)]
pub(super) enum Mail {
    Commit(commit::Message),
    Recovery(Message),
}

/// What a node wrote down.
#[derive(Clone, Debug)]
pub(super) enum Written {
    Own(Restored),
    Heard(Vec<Remembered>),
}

pub(super) struct Nodes {
    pub(super) nodes: Vec<(Commit, Applied)>,
    pub(super) mail: Vec<(NodeId, Mail)>,
    pub(super) replies: Vec<(u64, Decision)>,
    /// What each node wrote down, in order.
    pub(super) logs: Vec<Vec<Written>>,
    pub(super) map: Arc<ClusterMap>,
    pub(super) elapsed_us: u64,
}

pub(super) fn blob() -> BlobName {
    BlobName { keyspace: KeyspaceId(1), key: Key::new("a").unwrap() }
}

pub(super) fn writing(id: u64) -> Transaction {
    let payload = Payload::Inline(Bytes::from_static(b"12345678"));
    let operations = vec![Operation::Write { offset: 0, payload }];
    let blobs = vec![BlobOperations { blob: blob(), operations }];
    Transaction { id: TransactionId(id.into()), blobs, reads: vec![] }
}

pub(super) fn reading(id: u64, at: Timestamp) -> Transaction {
    let range = ByteRange { start: 0, end: 8 };
    let reads = vec![ReadCheck { blob: blob(), range, is_attributes: false, at, listed: None }];
    Transaction { reads, ..writing(id) }
}

impl Nodes {
    pub(super) fn three() -> Self {
        let config = KeyspaceConfig { chunk_size: 4096, ..KeyspaceConfig::default() };
        let map = Arc::new(ClusterMap::of(3, &[config]));
        let node = |number| (Commit::clustered(NodeId(number)), Applied::default());
        let mut all = Self {
            nodes: (0..3).map(node).collect(),
            mail: Vec::new(),
            replies: Vec::new(),
            logs: vec![Vec::new(); 3],
            map: Arc::clone(&map),
            elapsed_us: 0,
        };
        for node in 0..3 {
            all.step(node, Event::Install { map: Arc::clone(&map) });
            all.nodes[usize::from(node)].0.observe(Timestamp {
                epoch: map.epoch,
                clock: 1_000_000_000,
                node,
            });
        }
        all
    }

    pub(super) fn chain(&self, transaction: &Transaction) -> Chain {
        self.map.chain(transaction, &Ends::new()).unwrap()
    }

    pub(super) fn submit(&mut self, transaction: Transaction) {
        let chain = self.chain(&transaction);
        self.step(
            chain.hops()[0].node.0,
            Event::Submit { transaction: transaction.into(), chain, begun: BEGUN },
        );
    }

    pub(super) fn retry(&mut self, transaction: Transaction) {
        let chain = self.chain(&transaction);
        self.step(
            chain.hops()[0].node.0,
            Event::Retry { transaction: transaction.into(), chain, begun: BEGUN },
        );
    }

    /// One step of a node, and what follows from it here; what is written is durable at once.
    pub(super) fn step(&mut self, node: u16, event: Event) {
        let mut events = std::collections::VecDeque::from([event]);
        while let Some(event) = events.pop_front() {
            let (commit, applied) = &mut self.nodes[usize::from(node)];
            let mut effects = Vec::new();
            commit.step(0, event, applied, &mut effects);
            let log = &mut self.logs[usize::from(node)];
            for effect in effects {
                match effect {
                    Effect::Send { to, message } => self.mail.push((to, Mail::Commit(message))),
                    Effect::Recover { to, message } => {
                        self.mail.push((to, Mail::Recovery(message)));
                    }
                    Effect::Persist { transaction, chain, attempt, proposal, placed } => {
                        events.push_back(Event::Persisted { id: transaction.id, attempt });
                        log.push(Written::Own(Restored::Validated {
                            transaction,
                            chain,
                            attempt,
                            begun: BEGUN,
                            proposal,
                            placed,
                        }));
                    }
                    Effect::Fence { id, attempt, is_cleared } => {
                        log.push(Written::Own(Restored::Fenced { id, attempt, is_cleared }));
                        events.push_back(Event::Fenced { id, attempt, is_cleared });
                    }
                    Effect::Note { id, decision, is_synced } => {
                        log.push(Written::Own(Restored::Decided { id, decision }));
                        if is_synced {
                            events.push_back(Event::Noted { id });
                        }
                    }
                    Effect::NoteHeard { heard } => log.push(Written::Heard(heard)),
                    Effect::Apply { transaction, at, .. } => {
                        self.nodes[usize::from(node)].1.0.push((transaction.id.0 as u64, at));
                    }
                    Effect::Reply { id, decision, .. } => {
                        self.replies.push((id.0 as u64, decision));
                    }
                    Effect::Resume => events.push_back(Event::Resume),
                    Effect::Moved { .. } => {}
                    Effect::Recall { .. } => panic!("nobody has leases here"),
                    Effect::Misplaced { .. } => panic!("everything is in the first chunk"),
                }
            }
        }
        self.nodes[usize::from(node)].0.invariants();
    }

    pub(super) fn deliver(&mut self, to: NodeId, mail: Mail) {
        self.step(
            to.0,
            match mail {
                Mail::Commit(message) => Event::Receive(message),
                Mail::Recovery(message) => Event::Recover(message),
            },
        );
    }

    /// Delivers what is on its way, and what comes of it, except what `is_lost`.
    pub(super) fn run_losing(&mut self, is_lost: impl Fn(NodeId, &Mail) -> bool) {
        while !self.mail.is_empty() {
            let (to, mail) = self.mail.remove(0);
            if !is_lost(to, &mail) {
                self.deliver(to, mail);
            }
        }
    }

    pub(super) fn run(&mut self) {
        self.run_losing(|_, _| false);
    }

    /// Time passes at these nodes, long enough for what is held up to be asked about.
    pub(super) fn wait(&mut self, nodes: &[u16]) {
        self.elapsed_us += ASK_AFTER_US;
        for node in nodes {
            self.step(*node, Event::Tick { elapsed_us: self.elapsed_us });
        }
    }

    /// The map without this node, at these others.
    pub(super) fn lose(&mut self, node: u16, others: &[u16]) {
        self.map = Arc::new(self.map.changed(&Change::Down(NodeId(node))).unwrap());
        self.mail.retain(|(to, _)| to.0 != node);
        for other in others {
            self.step(*other, Event::Install { map: Arc::clone(&self.map) });
        }
    }

    /// All start again with what was synced, by a map that has them so, which nobody has yet.
    /// Decisions are written down, but not synced; all that was promised is.
    pub(super) fn lose_power(&mut self) {
        self.restart(|written| matches!(written, Written::Own(it) if !it.is_decided()));
    }

    pub(super) fn restart(&mut self, is_synced: impl Fn(&Written) -> bool) {
        self.mail.clear();
        for node in 0..3_u16 {
            let log = self.logs[usize::from(node)].iter().filter(|it| is_synced(it));
            let place = &mut self.nodes[usize::from(node)];
            *place = (Commit::clustered(NodeId(node)), Applied::default());
            for written in log.cloned() {
                let mut effects = Vec::new();
                match written {
                    Written::Own(own) => place.0.restore(own, &place.1, &mut effects),
                    Written::Heard(heard) => heard.into_iter().for_each(|it| place.0.recall(it)),
                }
                assert!(effects.is_empty());
            }
            self.change(&back(node));
        }
    }

    /// The map after this change, which nobody has yet.
    pub(super) fn change(&mut self, change: &Change) {
        self.map = Arc::new(self.map.changed(change).unwrap());
    }

    pub(super) fn applied(&self, node: u16) -> Vec<u64> {
        self.nodes[usize::from(node)].1.0.iter().map(|(id, _)| *id).collect()
    }

    pub(super) fn committed_at(&self, id: u64) -> Timestamp {
        let told = self.replies.iter().find(|(other, _)| *other == id);
        match told.map(|(_, decision)| decision) {
            Some(Decision::Commit(at)) => *at,
            other => panic!("{id} did not commit: {other:?}"),
        }
    }
}

impl Restored {
    pub(super) fn is_decided(&self) -> bool {
        matches!(self, Self::Decided { .. })
    }
}

pub(super) fn back(node: u16) -> Change {
    Change::Return { node: NodeId(node), incarnation: 2, has_disk: true, level: LEVEL }
}

pub(super) fn is_forward_to(node: u16) -> impl Fn(NodeId, &Mail) -> bool {
    move |to, mail| to.0 == node && matches!(mail, Mail::Commit(commit::Message::Forward { .. }))
}

pub(super) fn is_backward_to(node: u16) -> impl Fn(NodeId, &Mail) -> bool {
    move |to, mail| to.0 == node && matches!(mail, Mail::Commit(commit::Message::Backward { .. }))
}
