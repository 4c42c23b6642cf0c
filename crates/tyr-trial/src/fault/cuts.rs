//! Which lines a fault cuts, and how they are joined again.
//!
//! What is drawn here is lines between nodes; the fabric does not know why they are cut. Whoever
//! stands between two groups hears both: where that is the leader of the monitors, everybody keeps
//! a lease, and nobody is declared down however long it lasts.

use tyr_types::Result;

use crate::cluster::Cluster;
use crate::fabric::{End, Fabric};
use crate::random::Random;

/// Of four lines one way about one is cut where some are.
const ONE_WAY_SHARE: u64 = 4;

/// Which lines are cut.
#[derive(Clone, Copy, Debug)]
pub(super) enum Cut {
    /// All between one node and the others.
    Others,
    /// Those, and between it and the clients.
    Everybody,
    /// Between it and the others, one way.
    OneWay,
    /// Between it and one other.
    One,
    /// All between two groups.
    Groups,
    /// All between two groups with a node between them, or some lines one way.
    Some,
    /// TCP between two groups, with a node between them or without.
    Tcp,
}

/// Lines that are cut.
#[derive(Debug)]
pub(super) enum Lines {
    /// Everything on them.
    All(Vec<(End, End)>),
    /// TCP on them.
    Tcp(Vec<(u16, u16)>),
}

impl Lines {
    /// Cuts them, or joins them.
    pub(super) fn set(&self, fabric: &dyn Fabric, is_cut: bool) -> Result<()> {
        match self {
            Self::All(lines) => {
                lines.iter().try_for_each(|(from, to)| fabric.cut(*from, *to, is_cut))
            }
            Self::Tcp(lines) => {
                lines.iter().try_for_each(|(from, to)| fabric.cut_tcp(*from, *to, is_cut))
            }
        }
    }
}

/// Cuts lines between these nodes, which are in any order; says which.
pub(super) fn cut(
    cluster: &Cluster,
    which: Cut,
    nodes: &[u16],
    random: &mut Random,
) -> Result<(String, Lines)> {
    let (text, lines) = match which {
        Cut::Others | Cut::Everybody | Cut::OneWay | Cut::One => of_one(which, nodes, random),
        Cut::Groups => {
            let groups = Groups::draw(nodes, None, random);
            (groups.text("cut"), Lines::All(ends(&groups.lines())))
        }
        Cut::Some if random.below(2) == 0 => {
            let lines = one_way(nodes, random);
            let named: Vec<String> =
                lines.iter().map(|(from, to)| format!("{from} to {to}")).collect();
            (format!("cut one way {}", named.join(", ")), Lines::All(ends(&lines)))
        }
        Cut::Some => {
            let groups = Groups::draw(nodes, Some(between(cluster, nodes, random)), random);
            (groups.text("cut"), Lines::All(ends(&groups.lines())))
        }
        Cut::Tcp => {
            let has_bridge = random.below(2) == 0;
            let bridge = has_bridge.then(|| between(cluster, nodes, random));
            let groups = Groups::draw(nodes, bridge, random);
            (groups.text("TCP cut"), Lines::Tcp(groups.lines()))
        }
    };
    lines.set(&*cluster.fabric, true)?;
    Ok((text, lines))
}

/// Lines of the first of these nodes.
fn of_one(which: Cut, nodes: &[u16], random: &mut Random) -> (String, Lines) {
    let (first, one) = (nodes[0], End::Node(nodes[0]));
    let others: Vec<End> = nodes[1..].iter().map(|node| End::Node(*node)).collect();
    let both = |other: &End| [(one, *other), (*other, one)];
    let (text, lines): (String, Vec<(End, End)>) = match which {
        Cut::Everybody => {
            let lines = others.iter().chain([&End::Clients]).flat_map(both).collect();
            (format!("isolated {first}"), lines)
        }
        Cut::OneWay if random.below(2) == 0 => {
            let lines = others.iter().map(|other| (one, *other)).collect();
            (format!("nobody hears {first}"), lines)
        }
        Cut::OneWay => {
            let lines = others.iter().map(|other| (*other, one)).collect();
            (format!("{first} hears nobody"), lines)
        }
        Cut::One => {
            let lines = others.first().into_iter().flat_map(both).collect();
            (format!("{first} and {} apart", nodes.get(1).unwrap_or(&first)), lines)
        }
        Cut::Others | Cut::Groups | Cut::Some | Cut::Tcp => {
            (format!("cut off {first}"), others.iter().flat_map(both).collect())
        }
    };
    (text, Lines::All(lines))
}

/// Two groups of nodes that do not hear each other, and who hears both.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Groups {
    few: Vec<u16>,
    many: Vec<u16>,
    bridge: Option<u16>,
}

impl Groups {
    /// At most half of them are the few; with a bridge half are, for it makes many of either.
    fn draw(nodes: &[u16], bridge: Option<u16>, random: &mut Random) -> Self {
        let apart: Vec<u16> = nodes.iter().copied().filter(|node| Some(*node) != bridge).collect();
        let half = apart.len() as u64 / 2;
        let count = if bridge.is_some() { half } else { random.between(1, half.max(1)) };
        let (few, many) = apart.split_at(count as usize);
        let sorted = |nodes: &[u16]| {
            let mut nodes = nodes.to_vec();
            nodes.sort_unstable();
            nodes
        };
        Self { few: sorted(few), many: sorted(many), bridge }
    }

    fn text(&self, verb: &str) -> String {
        let Self { few, many, bridge } = self;
        let heard = bridge.map(|node| format!(", {node} hears both")).unwrap_or_default();
        format!("{verb} {few:?} from {many:?}{heard}")
    }

    fn lines(&self) -> Vec<(u16, u16)> {
        let of = |one: &u16| {
            let one = *one;
            self.many.iter().flat_map(move |other| [(one, *other), (*other, one)])
        };
        self.few.iter().flat_map(of).collect()
    }
}

/// Who is between two groups: half of the time the leader of the monitors.
fn between(cluster: &Cluster, nodes: &[u16], random: &mut Random) -> u16 {
    let leader = if random.below(2) == 0 { cluster.leader() } else { None };
    leader.unwrap_or(nodes[0])
}

/// Some lines between nodes, each one way; at least one where there are two nodes.
fn one_way(nodes: &[u16], random: &mut Random) -> Vec<(u16, u16)> {
    let of = |from: &u16| {
        let from = *from;
        nodes.iter().filter(move |to| **to != from).map(move |to| (from, *to))
    };
    let all: Vec<(u16, u16)> = nodes.iter().flat_map(of).collect();
    let mut some = all.clone();
    some.retain(|_| random.below(ONE_WAY_SHARE) == 0);
    if some.is_empty() {
        some.extend(all.first());
    }
    some
}

fn ends(lines: &[(u16, u16)]) -> Vec<(End, End)> {
    lines.iter().map(|(from, to)| (End::Node(*from), End::Node(*to))).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn groups_do_not_hear_each_other_and_who_is_between_hears_both() {
        for seed in 0..50 {
            let mut random = Random::of(seed, "cuts", 0);
            for bridge in [None, Some(3)] {
                let groups = Groups::draw(&[4, 3, 0, 2, 1], bridge, &mut random);
                assert!(!groups.few.is_empty() && groups.few.len() <= groups.many.len());
                let lines = groups.lines();
                assert_eq!(lines.len(), 2 * groups.few.len() * groups.many.len());
                let ends: BTreeSet<u16> = lines.iter().flat_map(|(a, b)| [*a, *b]).collect();
                assert_eq!(ends.len(), 5 - bridge.iter().count());
                assert!(!bridge.is_some_and(|node| ends.contains(&node)));
            }
        }
    }

    #[test]
    fn some_lines_are_cut_one_way() {
        let mut is_one_way_seen = false;
        for seed in 0..50 {
            let lines = one_way(&[2, 0, 1], &mut Random::of(seed, "cuts", 0));
            assert!(!lines.is_empty() && lines.iter().all(|(from, to)| from != to));
            is_one_way_seen |= lines.iter().any(|(from, to)| !lines.contains(&(*to, *from)));
        }
        assert!(is_one_way_seen);
    }
}
