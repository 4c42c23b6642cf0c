//! What is around an engine in the simulator: what it asks for is written down, and done after.

use tyr_engine::fold::Access;
use tyr_engine::lists::Listing;
use tyr_engine::reads::Fetch;
use tyr_engine::{Engine, Host, Trouble};
use tyr_protocol::member::{Event, Record};
use tyr_protocol::message::{Address, Envelope, Now};
use tyr_protocol::movement::scrub::Finding;
use tyr_types::{Error, ErrorKind};

use super::watched::Watched;

/// What a step asks of the world.
#[derive(Debug)]
pub enum Asked {
    /// A message goes out.
    Send(Address, Envelope),
    /// The log took a record, with which it is so long.
    Logged(Record, usize),
    /// A read takes the disk.
    Fetch(Box<Fetch>),
    /// A listing is to be made.
    List(Box<Listing>),
    /// Something was found in comparing replicas.
    Found(Finding),
    /// It goes on later.
    GoOn,
}

/// What is around an engine that is stepped.
pub(super) struct Surroundings<'s> {
    pub now: Now,
    pub asked: &'s mut Vec<Asked>,
}

impl Host for Surroundings<'_> {
    fn now(&mut self) -> Now {
        self.now
    }

    fn hears(&mut self, _: &Event, _: Now) {}

    fn logs(&mut self, _: u64, record: &Record, sequence: Option<u64>) {
        if let Some(sequence) = sequence {
            let len = usize::try_from(sequence).expect("a run has few records");
            self.asked.push(Asked::Logged(record.clone(), len));
        }
    }

    fn send(&mut self, to: Address, envelope: Envelope) {
        self.asked.push(Asked::Send(to, envelope));
    }

    fn go_on_later(&mut self) {
        self.asked.push(Asked::GoOn);
    }

    fn fetch(&mut self, fetch: Fetch) {
        self.asked.push(Asked::Fetch(Box::new(fetch)));
    }

    fn list(&mut self, listing: Listing) {
        self.asked.push(Asked::List(Box::new(listing)));
    }

    fn found(&mut self, finding: Finding) {
        self.asked.push(Asked::Found(finding));
    }

    fn trouble(&mut self, _: Trouble, error: &Error) {
        // A disk that is full refuses; nothing else may go wrong.
        let is_expected = error.kind() == ErrorKind::Unavailable;
        assert!(is_expected, "violation: {error}");
    }
}

/// The engine between two of its steps.
pub(super) struct Own<'e>(pub &'e mut Engine<Watched>);

impl Access<Watched> for Own<'_> {
    fn look<T>(&mut self, look: impl FnOnce(&mut Engine<Watched>) -> T) -> T {
        look(self.0)
    }
}
