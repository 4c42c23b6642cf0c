//! A graph of who comes before whom, and the circles in it.

use std::collections::{HashMap, VecDeque};

use super::Reason;

/// From how many nodes of a knot a short circle is searched.
const STARTS_MAX: usize = 200;

/// Nodes below `entries` are entries, the others moments in time.
#[derive(Debug)]
pub struct Graph {
    entries: usize,
    edges: Vec<Vec<(usize, Reason)>>,
}

/// What Tarjan's search knows of a node.
#[derive(Clone, Copy, Default)]
struct Visit {
    /// Its number in the order of visits; 0 before it.
    index: usize,
    low: usize,
    is_open: bool,
    /// Which of its edges is next.
    next: usize,
}

impl Graph {
    /// A graph of this many entries, without edges.
    pub fn new(entries: usize) -> Self {
        Self { entries, edges: vec![Vec::new(); entries] }
    }

    /// Adds nodes that are no entries; answers the first.
    pub fn add_nodes(&mut self, count: usize) -> usize {
        let first = self.edges.len();
        self.edges.resize(first + count, Vec::new());
        first
    }

    /// `from` comes before `to`.
    pub fn add(&mut self, from: usize, to: usize, reason: Reason) {
        if from != to {
            self.edges[from].push((to, reason));
        }
    }

    /// A short circle out of each knot (strongly connected component).
    pub fn cycles(&self) -> Vec<Vec<(usize, Reason)>> {
        self.knots().iter().filter_map(|knot| self.shortest(knot)).collect()
    }

    /// Components of more than one node, by Tarjan's algorithm, without recursion.
    fn knots(&self) -> Vec<Vec<usize>> {
        let mut visits = vec![Visit::default(); self.edges.len()];
        let (mut count, mut open, mut knots) = (0, Vec::new(), Vec::new());
        for root in 0..self.edges.len() {
            if visits[root].index != 0 {
                continue;
            }
            let mut path = vec![root];
            while let Some(&node) = path.last() {
                if visits[node].index == 0 {
                    count += 1;
                    visits[node] = Visit { index: count, low: count, is_open: true, next: 0 };
                    open.push(node);
                }
                if let Some(&(to, _)) = self.edges[node].get(visits[node].next) {
                    visits[node].next += 1;
                    if visits[to].index == 0 {
                        path.push(to);
                    } else if visits[to].is_open {
                        visits[node].low = visits[node].low.min(visits[to].index);
                    }
                    continue;
                }
                path.pop();
                if let Some(&parent) = path.last() {
                    visits[parent].low = visits[parent].low.min(visits[node].low);
                }
                if visits[node].low == visits[node].index {
                    let start = open.iter().rposition(|n| *n == node).expect("it is open");
                    let knot = open.split_off(start);
                    knot.iter().for_each(|n| visits[*n].is_open = false);
                    if knot.len() > 1 {
                        knots.push(knot);
                    }
                }
            }
        }
        knots
    }

    /// The shortest circle through one of the first entries of a knot.
    fn shortest(&self, knot: &[usize]) -> Option<Vec<(usize, Reason)>> {
        let members: HashMap<usize, ()> = knot.iter().map(|node| (*node, ())).collect();
        let starts = knot.iter().filter(|node| **node < self.entries).take(STARTS_MAX);
        starts.filter_map(|start| self.circle(*start, &members)).min_by_key(Vec::len)
    }

    /// The shortest way from `start` back to it; moments in time are left out of it.
    fn circle(&self, start: usize, members: &HashMap<usize, ()>) -> Option<Vec<(usize, Reason)>> {
        let mut from: HashMap<usize, (usize, Reason)> = HashMap::new();
        let mut queue = VecDeque::from([start]);
        'search: while let Some(node) = queue.pop_front() {
            for (to, reason) in &self.edges[node] {
                if members.contains_key(to) && !from.contains_key(to) {
                    from.insert(*to, (node, *reason));
                    if *to == start {
                        break 'search;
                    }
                    queue.push_back(*to);
                }
            }
        }
        let mut circle = Vec::new();
        let mut node = start;
        loop {
            let (before, reason) = *from.get(&node)?;
            if before < self.entries {
                circle.push((before, reason));
            }
            node = before;
            if node == start {
                break;
            }
        }
        circle.reverse();
        Some(circle)
    }
}
