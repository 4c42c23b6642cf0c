//! What happens, one thing after the other.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

use super::random::Random;
use super::{Run, Setup};
use crate::balancer::Balancer;
use crate::metrics::{NodeMetrics, SeatMetrics};
use crate::script::Mode;

const SECOND_US: u64 = 1_000_000;

/// Something that happens.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    /// A request comes to a node.
    Arrives { client: usize, node: usize },
    /// The node has worked at it.
    Worked { client: usize, node: usize },
    /// The client has its answer, of this node.
    Answered { client: usize },
    /// A seat is there where it was sent.
    HandedOver { seat: usize },
    /// Loads are looked at.
    Second,
    /// The balancer is asked.
    Tick,
}

/// A seat.
#[derive(Clone, Debug)]
struct Seat {
    /// The node that has it; `None` while it is handed over.
    at: Option<usize>,
    /// The node that should have it.
    should: usize,
    mode: Mode,
    /// What it gives next, and what was given last: no number twice.
    next: u64,
    token: u64,
    since_us: u64,
    /// Requests that came while it was handed over, and where.
    waiting: Vec<(usize, usize)>,
    answered: u64,
    rate: f64,
}

/// A node: it works at one request after the other.
#[derive(Clone, Debug, Default)]
struct Node {
    free_us: u64,
    busy_us: u64,
    cpu: f64,
    queued: usize,
}

/// A client, and which node it asks.
#[derive(Clone, Copy, Debug)]
struct Client {
    seat: usize,
    asks: usize,
    /// The highest number that it was given, with its token.
    last: Option<(u64, u64)>,
}

/// All of it.
pub(super) struct World<'a> {
    setup: &'a Setup,
    balancer: Option<Balancer>,
    random: Random,
    now_us: u64,
    order: u64,
    events: BinaryHeap<Reverse<(u64, u64, Event)>>,
    nodes: Vec<Node>,
    seats: Vec<Seat>,
    clients: Vec<Client>,
    run: Run,
}

impl<'a> World<'a> {
    pub fn new(setup: &'a Setup, balancer: Option<Balancer>) -> Self {
        let seat = Seat {
            at: Some(0),
            should: 0,
            mode: Mode::Client,
            next: 0,
            token: 1,
            since_us: 0,
            waiting: Vec::new(),
            answered: 0,
            rate: 0.0,
        };
        let client =
            |seat| std::iter::repeat_n(Client { seat, asks: 0, last: None }, setup.clients);
        let mut world = Self {
            setup,
            balancer,
            random: Random::new(setup.seed),
            now_us: 0,
            order: 0,
            events: BinaryHeap::new(),
            nodes: vec![Node::default(); setup.nodes],
            seats: vec![seat; setup.seats],
            clients: (0..setup.seats).flat_map(client).collect(),
            run: Run::default(),
        };
        for client in 0..world.clients.len() {
            world.send(Event::Arrives { client, node: 0 });
        }
        world.at(SECOND_US, Event::Second);
        world.at(setup.begin_us + setup.tick_us, Event::Tick);
        world
    }

    pub fn run(mut self) -> Run {
        while let Some(Reverse((now_us, _, event))) = self.events.pop() {
            if now_us > self.setup.seconds * SECOND_US {
                break;
            }
            self.now_us = now_us;
            match event {
                Event::Arrives { client, node } => self.arrives(client, node),
                Event::Worked { client, node } => self.worked(client, node),
                Event::Answered { client } => {
                    let node = self.clients[client].asks;
                    self.send(Event::Arrives { client, node });
                }
                Event::HandedOver { seat } => self.handed_over(seat),
                Event::Second => self.second(),
                Event::Tick => self.tick(),
            }
        }
        self.run
    }

    fn at(&mut self, time_us: u64, event: Event) {
        self.order += 1;
        self.events.push(Reverse((time_us, self.order, event)));
    }

    /// A message.
    fn send(&mut self, event: Event) {
        let trip_us = self.random.about(self.setup.trip_us);
        self.at(self.now_us + trip_us, event);
    }

    /// A node works at a request: at a seat's, or to send it on.
    fn arrives(&mut self, client: usize, node: usize) {
        let is_here = self.seats[self.clients[client].seat].should == node;
        let mean_us = if is_here { self.setup.service_us } else { self.setup.redirect_us };
        let work_us = self.random.about(mean_us);
        let at = &mut self.nodes[node];
        let begin_us = at.free_us.max(self.now_us);
        at.free_us = begin_us + work_us;
        at.busy_us += work_us;
        at.queued += 1;
        let done_us = at.free_us;
        self.at(done_us, Event::Worked { client, node });
    }

    fn worked(&mut self, client: usize, node: usize) {
        self.nodes[node].queued -= 1;
        let seat_number = self.clients[client].seat;
        let seat = &mut self.seats[seat_number];
        if seat.at == Some(node) {
            return self.answer(client, seat_number);
        }
        if seat.should == node {
            // It is on its way here.
            seat.waiting.push((client, node));
            return;
        }
        let to = seat.should;
        match seat.mode {
            Mode::Client => {
                self.clients[client].asks = to;
                let back_us = self.random.about(self.setup.trip_us);
                let there_us = self.random.about(self.setup.trip_us);
                let time_us = self.now_us + back_us + there_us;
                self.at(time_us, Event::Arrives { client, node: to });
            }
            Mode::Proxy => self.send(Event::Arrives { client, node: to }),
        }
    }

    /// The seat gives its next number.
    fn answer(&mut self, client: usize, seat: usize) {
        let Seat { next, token, answered, .. } = &mut self.seats[seat];
        let given = (*token, *next);
        *next += 1;
        *answered += 1;
        let last = self.clients[client].last.replace((given.1, given.0));
        let is_later = last.is_none_or(|(number, token)| number < given.1 && token <= given.0);
        assert!(is_later, "client {client} was given {given:?} after {last:?}");
        // Who passed it on passes the answer back.
        if self.seats[seat].should != self.clients[client].asks {
            let node = self.clients[client].asks;
            let work_us = self.random.about(self.setup.redirect_us);
            let at = &mut self.nodes[node];
            at.free_us = at.free_us.max(self.now_us) + work_us;
            at.busy_us += work_us;
            let done_us = at.free_us + self.random.about(self.setup.trip_us);
            return self.at(done_us, Event::Answered { client });
        }
        self.send(Event::Answered { client });
    }

    fn handed_over(&mut self, seat_number: usize) {
        let seat = &mut self.seats[seat_number];
        assert_eq!(seat.at, None, "nobody else has it");
        seat.at = Some(seat.should);
        seat.token += 1;
        seat.since_us = self.now_us;
        for (client, node) in std::mem::take(&mut seat.waiting) {
            self.at(self.now_us, Event::Arrives { client, node });
        }
    }

    fn second(&mut self) {
        let answered = self.seats.iter_mut().map(|seat| std::mem::take(&mut seat.answered));
        let answered: Vec<u64> = answered.collect();
        for (seat, answered) in self.seats.iter_mut().zip(&answered) {
            seat.rate = (seat.rate + *answered as f64) / 2.0;
        }
        for node in &mut self.nodes {
            node.cpu = std::mem::take(&mut node.busy_us) as f64 / SECOND_US as f64;
        }
        self.run.rates.push(answered);
        self.at(self.now_us + SECOND_US, Event::Second);
    }

    fn metrics(&self) -> Vec<NodeMetrics> {
        let of_node = |(at, node): (usize, &Node)| {
            let own = self.seats.iter().enumerate().filter(|(_, seat)| seat.at == Some(at));
            let seats = own.map(|(number, seat)| SeatMetrics {
                name: format!("seats/{number}"),
                kind: "simulated".to_owned(),
                rate: seat.rate,
                waiting: 0.0,
                since: (self.now_us - seat.since_us) as f64 / SECOND_US as f64,
            });
            let values = BTreeMap::from([("queued", node.queued as f64)]);
            NodeMetrics { node: at as u16, cpu: node.cpu, values, seats: seats.collect() }
        };
        self.nodes.iter().enumerate().map(of_node).collect()
    }

    fn tick(&mut self) {
        self.at(self.now_us + self.setup.tick_us, Event::Tick);
        let metrics = self.metrics();
        let Some(balancer) = &mut self.balancer else { return };
        let tick = balancer.tick(self.now_us, &metrics);
        if let Some((_, text)) = tick.failure {
            self.run.failures.push((self.now_us, text));
        }
        for moved in tick.moves {
            let number = moved.seat.trim_start_matches("seats/").parse::<usize>();
            let number = number.expect("it is one of these");
            let seat = &mut self.seats[number];
            assert_eq!(seat.at, Some(usize::from(moved.from)), "{moved:?}");
            (seat.at, seat.should, seat.mode) = (None, usize::from(moved.to), moved.mode);
            let handover_us = self.random.about(self.setup.handover_us);
            self.at(self.now_us + handover_us, Event::HandedOver { seat: number });
            self.run.moves.push((self.now_us, moved));
        }
    }
}
