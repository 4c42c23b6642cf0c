//! The balancer: once a tick it asks the policy what each node is to give, and says which seats
//! go where.
//!
//! ```text
//!   what nodes say ──► policy, once for each node ──► targets ──► seats ──► bounds ──► moves
//!                          └─ fails anywhere ──► nothing moves in this tick (B2), and why
//! ```
//!
//! A pure machine: the caller has the clock, the metadata and the log.

use std::collections::{BTreeMap, BTreeSet};

use crate::bounds::Bounds;
use crate::metrics::{NodeMetrics, SeatMetrics};
use crate::policy::Policy;
use crate::script::{Answer, Line, Mode};

/// Ticks for which a seat stays that was moved (B4).
pub const COOLDOWN_TICKS: u64 = 3;

/// A seat fits into what is to go if it has no more of the load than that and a quarter: what is
/// measured of seats that are alike differs by as much.
const FITTING: f64 = 1.25;

/// Lines for the cluster log, of one tick.
const LINES_MAX: usize = 16;

/// A seat that is to be moved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Move {
    /// The seat.
    pub seat: String,
    /// The node that has it.
    pub from: u16,
    /// The node that it goes to.
    pub to: u16,
    /// How requests get there.
    pub mode: Mode,
}

/// What came of a tick.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tick {
    /// Seats that are to be moved: each node gives and gets one at most (B3).
    pub moves: Vec<Move>,
    /// What the policy wants to be in the cluster log.
    pub lines: Vec<Line>,
    /// Why nothing moves: the policy failed, for the node of this number.
    pub failure: Option<(u16, String)>,
}

/// What bounds a policy, whatever it says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Rule {
    /// Who fails moves nothing.
    B2,
    /// One move a node and tick.
    B3,
    /// What goes to and fro goes ever less.
    B4,
}

/// A policy at work.
#[derive(Debug)]
pub struct Balancer {
    policy: Policy,
    bounds: Bounds,
    /// What the policy keeps from one tick to the next, by node.
    states: BTreeMap<u16, String>,
    /// A rule that a test takes away.
    #[cfg(test)]
    missing: Option<Rule>,
}

impl Balancer {
    /// One that begins, with ticks of so many microseconds.
    pub fn new(policy: Policy, tick_us: u64) -> Self {
        let bounds = Bounds::new(tick_us.saturating_mul(COOLDOWN_TICKS));
        Self {
            policy,
            bounds,
            states: BTreeMap::new(),
            #[cfg(test)]
            missing: None,
        }
    }

    /// The same that goes on with what the policy kept.
    #[must_use]
    pub fn keeping(self, states: BTreeMap<u16, String>) -> Self {
        Self { states, ..self }
    }

    /// What the policy keeps, by node.
    pub fn states(&self) -> &BTreeMap<u16, String> {
        &self.states
    }

    fn holds(&self, rule: Rule) -> bool {
        #[cfg(test)]
        let missing = self.missing;
        #[cfg(not(test))]
        let missing = None;
        missing != Some(rule)
    }

    /// What is to be moved now. Whoever does not carry out a move asks again in the next tick.
    pub fn tick(&mut self, now_us: u64, nodes: &[NodeMetrics]) -> Tick {
        let mut tick = Tick::default();
        let mut answers = Vec::new();
        for (at, node) in nodes.iter().enumerate() {
            let state = self.states.get(&node.node).map(String::as_str);
            match self.policy.run(at, nodes, state) {
                Ok(answer) => answers.push(answer),
                Err(text) if self.holds(Rule::B2) => {
                    return Tick { failure: Some((node.node, text)), ..tick };
                }
                Err(_) => answers.push(Answer::default()),
            }
        }
        let mut busy = BTreeSet::new();
        for (node, mut answer) in nodes.iter().zip(answers) {
            let room = LINES_MAX - tick.lines.len();
            tick.lines.extend(answer.lines.drain(..answer.lines.len().min(room)));
            while let Some(moved) = self.choose(node, &answer, nodes, &mut busy, now_us) {
                self.bounds.note(&moved.seat, moved.from, moved.to, now_us);
                tick.moves.push(moved);
            }
            match answer.state {
                Some(state) => drop(self.states.insert(node.node, state)),
                None => drop(self.states.remove(&node.node)),
            }
        }
        tick
    }

    /// The seat that a node gives, if it gives any. `busy` are nodes that give or get one already.
    fn choose(
        &self,
        node: &NodeMetrics,
        answer: &Answer,
        nodes: &[NodeMetrics],
        busy: &mut BTreeSet<u16>,
        now_us: u64,
    ) -> Option<Move> {
        let may_go =
            |seat: &&SeatMetrics| !self.holds(Rule::B4) || self.bounds.may_move(&seat.name, now_us);
        let mut targets = answer.targets.clone();
        // Most first.
        targets.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
        for (to, amount) in targets {
            let to_node = nodes[to].node;
            if busy.contains(&node.node) || busy.contains(&to_node) || to_node == node.node {
                continue;
            }
            let mut picks = answer.picks.iter().filter(|(at, _)| *at == to).peekable();
            let seat = match picks.peek().is_some() {
                true => picks
                    .filter_map(|(_, name)| node.seats.iter().find(|seat| seat.name == *name))
                    .find(may_go),
                false => largest_that_fits(node, amount, answer, may_go),
            };
            if let Some(seat) = seat {
                if self.holds(Rule::B3) {
                    busy.extend([node.node, to_node]);
                }
                let (seat, from, to) = (seat.name.clone(), node.node, to_node);
                return Some(Move { seat, from, to, mode: answer.mode });
            }
        }
        None
    }
}

/// The seat with the largest part of its node's load that is no more than what is to go. The amount
/// is in the measure of the policy, in which the node has the load that it says.
fn largest_that_fits<'a>(
    node: &'a NodeMetrics,
    amount: f64,
    answer: &Answer,
    may_go: impl Fn(&&SeatMetrics) -> bool,
) -> Option<&'a SeatMetrics> {
    let scale = if node.rate() > 0.0 { answer.load / node.rate() } else { 0.0 };
    let fits = |seat: &&SeatMetrics| seat.rate * scale <= amount * FITTING;
    let seats = node.seats.iter().filter(fits).filter(may_go);
    seats.max_by(|a, b| a.rate.total_cmp(&b.rate).then_with(|| b.name.cmp(&a.name)))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use super::*;

    const TICK_US: u64 = 1_000_000;

    fn balancer(script: &str, missing: Option<Rule>) -> Balancer {
        let clock = Arc::new(|| Duration::ZERO);
        let policy = Policy::compile(script, Duration::from_secs(1), clock).unwrap();
        Balancer { missing, ..Balancer::new(policy, TICK_US) }
    }

    fn node(node: u16, rates: &[f64]) -> NodeMetrics {
        let seat = |(at, rate): (usize, &f64)| SeatMetrics {
            name: format!("seats/{node}-{at}"),
            kind: "k".to_owned(),
            rate: *rate,
            waiting: 0.0,
            since: 0.0,
        };
        let seats = rates.iter().enumerate().map(seat).collect();
        NodeMetrics { node, seats, ..NodeMetrics::default() }
    }

    fn moves(tick: &Tick) -> Vec<(&str, u16)> {
        tick.moves.iter().map(|it| (it.seat.as_str(), it.to)).collect()
    }

    /// Fails for the second node, after the first has said what it gives.
    const FAILING: &str = "
        function when() return #nodes[whoami].seats > 0 end
        function where()
            if whoami == 2 then error('no idea') end
            targets[3] = nodes[whoami].load
        end";

    #[test]
    fn a_policy_that_fails_anywhere_moves_nothing_and_says_why_b2() {
        let nodes = [node(5, &[10.0]), node(6, &[10.0]), node(7, &[])];
        let tick = balancer(FAILING, None).tick(0, &nodes);
        let (at, text) = tick.failure.clone().unwrap();
        assert_eq!((tick.moves.len(), at), (0, 6));
        assert!(text.contains("no idea") && text.contains(":4:"), "it names the line: {text}");
    }

    #[test]
    fn without_b2_half_of_a_plan_is_carried_out() {
        let nodes = [node(5, &[10.0]), node(6, &[10.0]), node(7, &[])];
        let tick = balancer(FAILING, Some(Rule::B2)).tick(0, &nodes);
        assert_eq!(moves(&tick), [("seats/5-0", 7)]);
        assert_eq!(tick.failure, None);
    }

    /// All to the last node.
    const ALL: &str = "
        function where() targets[#nodes] = nodes[whoami].load end
        function howmuch(seats)
            local names = {}
            for _, seat in ipairs(seats) do table.insert(names, seat.name) end
            return names
        end";

    #[test]
    fn a_node_gives_or_gets_one_seat_in_a_tick_b3() {
        let nodes = [node(5, &[1.0, 2.0]), node(6, &[3.0, 4.0]), node(7, &[])];
        let tick = balancer(ALL, None).tick(0, &nodes);
        assert_eq!(moves(&tick), [("seats/5-0", 7)]);
    }

    #[test]
    fn without_b3_a_node_is_given_all_at_once() {
        let nodes = [node(5, &[1.0, 2.0]), node(6, &[3.0, 4.0]), node(7, &[])];
        let tick = balancer(ALL, Some(Rule::B3)).tick(0, &nodes);
        assert_eq!(moves(&tick).len(), 4);
    }

    /// Ticks, of a hundred, in which a seat moves that is sent to the other node each time.
    fn restless(missing: Option<Rule>) -> usize {
        let script = "function where() targets[3 - whoami] = nodes[whoami].load end";
        let mut balancer = balancer(script, missing);
        let (mut at, mut count) = (0, 0);
        for tick in 0..100 {
            let mut nodes = [node(0, &[]), node(1, &[])];
            nodes[at].seats = node(9, &[100.0]).seats;
            for moved in balancer.tick(tick * TICK_US, &nodes).moves {
                at = usize::from(moved.to);
                count += 1;
            }
        }
        count
    }

    #[test]
    fn without_b4_a_seat_is_moved_in_each_tick() {
        assert_eq!(restless(Some(Rule::B4)), 100);
        assert!(restless(None) <= 6);
    }

    #[test]
    fn the_seat_that_fits_best_goes_and_a_node_with_one_keeps_it() {
        let script = "
            function load(node) return node.all * 2 end
            function when() return whoami == 1 end
            function where() targets[2] = nodes[1].load / 2 end";
        let nodes = [node(5, &[100.0, 500.0, 300.0]), node(6, &[])];
        assert_eq!(moves(&balancer(script, None).tick(0, &nodes)), [("seats/5-1", 6)]);
        assert_eq!(moves(&balancer(script, None).tick(0, &[node(5, &[9.0]), node(6, &[])])), []);
    }

    #[test]
    fn what_a_policy_keeps_is_there_in_the_next_tick_and_of_its_node_alone() {
        let script = "
            function when()
                WRstate((RDstate() or 0) + whoami)
                BAL_LOG('info', 'node ' .. whoami .. ' has\t' .. RDstate())
                return false
            end
            function where() end";
        let mut balancer = balancer(script, None);
        let nodes = [node(5, &[]), node(6, &[])];
        balancer.tick(0, &nodes);
        let said = balancer.tick(1, &nodes).lines;
        let said: Vec<&str> = said.iter().map(|line| line.text.as_str()).collect();
        assert_eq!(said, ["node 1 has 2", "node 2 has 4"]);
        // Another goes on with it.
        let mut other = self::balancer(script, None).keeping(balancer.states().clone());
        let said = other.tick(2, &nodes).lines;
        assert_eq!(said[1].text, "node 2 has 6");
    }

    #[test]
    fn what_makes_no_sense_is_told_and_what_takes_too_long_is_ended() {
        let refused = [
            ("function where() targets[1] = 1 / 0 end", "targets"),
            ("function where() end function mode() return 'both' end", "both"),
            ("function where() while true do end end", "fuel"),
            ("function load() return 'much' end function where() end", "no number"),
            ("x = 1", "where"),
        ];
        let clock = Arc::new(|| Duration::ZERO);
        for (script, word) in refused {
            let compiled = Policy::compile(script, Duration::from_secs(1), clock.clone());
            let text = match compiled {
                Err(error) => error.to_string(),
                Ok(policy) => policy.run(1, &[node(5, &[1.0]), node(6, &[])], None).unwrap_err(),
            };
            assert!(text.contains(word), "{script}: {text}");
        }
        let broken = Policy::compile("function where(", Duration::from_secs(1), clock).unwrap_err();
        assert!(broken.to_string().contains("policy"), "{broken}");
    }

    #[test]
    fn lines_that_were_printed_of_mantle_run_as_they_are() {
        let script = r#"
            function when()
                return mds[whoami]["load"]>.01 and mds[whoami+1]["load"]<.01
            end
            function where() targets[whoami+1] = mds[whoami]["load"]/2 end"#;
        let nodes = [node(5, &[1.0, 2.0]), node(6, &[]), node(7, &[9.0, 1.0])];
        assert_eq!(moves(&balancer(script, None).tick(0, &nodes)), [("seats/5-0", 6)]);
    }
}
