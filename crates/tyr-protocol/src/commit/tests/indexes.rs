//! The index of the claims on one blob answers as a few do, and costs each what a few cost.

use super::chunks::chain_of_chunks;
use super::*;
use crate::commit::claims::{self, LOOKS};
use crate::footprint::Footprint;
use crate::test_cluster::random::Random;

/// Bytes of each write, and how many places there are for them in the property test.
const LEN: u64 = 4;
const PLACES: usize = 12;

fn apply(offset: u64) -> Operation {
    let transform = tyr_types::Transform::add(tyr_types::Number::U64(1));
    Operation::Apply { offset, transform }
}

/// Steps without looking at the invariants, whose cost grows with the index.
fn quick_step(node: &mut Node, event: Event) {
    let (mut effects, mut more) = (Vec::new(), Vec::new());
    node.commit.step(0, event, &node.view, &mut effects);
    if effects.iter().any(|effect| matches!(effect, Effect::Resume)) {
        node.commit.step(0, Event::Resume, &node.view, &mut more);
    }
}

fn quick_submit(node: &mut Node, id: u64, operations: Vec<Operation>) {
    let (transaction, chain) = (transaction(u128::from(id), operations), node.chain.clone());
    quick_step(
        node,
        Event::Submit { transaction: Arc::new(transaction), chain, begun: Timestamp::ZERO },
    );
    let (id, attempt) = (TransactionId(u128::from(id)), Attempt::default());
    quick_step(node, Event::Persisted { id, attempt });
}

fn quick_commit(node: &mut Node, id: u64) {
    let (decision, attempt) = (Decision::Commit(time(id, 0)), Attempt::default());
    let (id, outcomes, usages) = (TransactionId(u128::from(id)), Outcomes::new(), vec![]);
    let message = Message::Backward { id, attempt, decision, outcomes, usages };
    quick_step(node, Event::Receive(message));
}

/// Transactions whose looks are counted.
const COUNTED: u64 = 64;

/// Claims that they look at in their lives, where so many are in flight at any time; they are
/// decided not quite in their order.
fn looks(in_flight: u64, few_max: usize, operations: impl Fn(u64) -> Vec<Operation>) -> u64 {
    let mut node = Node::of_three(0);
    node.commit.index_above(few_max);
    node.view.size = Some(50);
    (1..=in_flight).for_each(|id| quick_submit(&mut node, id, operations(id)));
    assert_eq!(node.commit.len() as u64, in_flight);
    LOOKS.set(0);
    for done in 1..=COUNTED {
        quick_submit(&mut node, in_flight + done, operations(in_flight + done));
        // Every other one comes before the one before it.
        quick_commit(&mut node, if done % 2 == 0 { done - 1 } else { done + 1 });
    }
    assert_eq!(node.commit.len() as u64, in_flight, "they take effect as fast as they come");
    LOOKS.get()
}

/// C4: each is compared with all where there is no index.
#[test]
fn what_a_write_costs_does_not_grow_with_those_beside_it() {
    type Operations = fn(u64) -> Vec<Operation>;
    // A condition looks at the last ones first, for it would wait for one of them.
    let required = |_| vec![compare(16, LEN), apply(0), apply(8)];
    let cases: [(&str, u64, Operations); 5] = [
        ("at one place", 8 * COUNTED, |_| vec![apply(0), apply(8)]),
        ("beside what is required", 80 * COUNTED, required),
        ("side by side", 8 * COUNTED, |id| vec![write(id * LEN, LEN)]),
        ("at the end", 8 * COUNTED, |_| vec![append(0)]),
        ("both", 8 * COUNTED, |id| vec![write(id % 8, LEN), append(0)]),
    ];
    for (what, bound, operations) in cases {
        let [few, many] = [128, 8_192].map(|count| looks(count, claims::FEW_MAX, operations));
        let without = looks(128, usize::MAX, operations);
        println!("{what}: {few} beside 128, {many} beside 8,192; without an index {without}");
        assert!(many <= few && few <= bound, "{what}: {few} beside 128, {many} beside 8,192");
        assert!(without > 128 * COUNTED, "{what}: all are looked at, {without} times");
    }
}

/// C6: nor does finding the one before it in its chunk, of many chunks that lie at a node.
#[test]
fn what_a_write_costs_does_not_grow_with_those_in_its_chunk() {
    let chunks = 100;
    let looks = |in_flight: u64| {
        let mut node = Node::of_three(0);
        node.chain = chain_of_chunks(chunks, 64);
        let in_turn = |id: u64| vec![write(id % chunks * 64 + id % 7 * 8, LEN)];
        (1..=in_flight).for_each(|id| quick_submit(&mut node, id, in_turn(id)));
        LOOKS.set(0);
        quick_commit(&mut node, in_flight);
        let last = node.commit.records.slot(TransactionId(u128::from(in_flight)));
        let blocker = node.commit.records[last.expect("it is held up")].blocker;
        let before = node.commit.records.slot(TransactionId(u128::from(in_flight - chunks)));
        assert_eq!(blocker.map(|blocker| blocker.slot), before, "the one before it in its chunk");
        LOOKS.get()
    };
    let [few, many] = [200, 8_000].map(looks);
    assert!(many <= few && few <= 2, "{few} beside 200, {many} beside 8,000");
}

/// C1, C4: nor does a read of other bytes, in a transaction that is validated beside them.
#[test]
fn what_a_read_beside_many_writes_costs_does_not_grow_with_them() {
    let looks = |in_flight: u64| {
        let mut node = Node::of_three(0);
        node.chain = chain_of_chunks(1, ByteRange::ALL.end);
        (1..=in_flight).for_each(|id| quick_submit(&mut node, id, vec![write(id * LEN, LEN)]));
        LOOKS.set(0);
        let transaction = reading(transaction(u128::MAX, vec![]), 0, LEN, 0);
        let chain = node.chain.clone();
        quick_step(
            &mut node,
            Event::Submit { transaction: Arc::new(transaction), chain, begun: Timestamp::ZERO },
        );
        assert_eq!(node.commit.len() as u64, in_flight + 1, "it is validated");
        LOOKS.get()
    };
    let [few, many] = [128, 8_192].map(looks);
    assert!(many <= few && few <= 4, "{few} of 128, {many} of 8,192");
}

/// R1, R5: nor does a read that waits for them, or finds that it need not.
#[test]
fn what_a_read_looks_at_does_not_grow_with_the_writes_in_flight() {
    let wanted = |start| Footprint::bytes(ByteRange { start, end: start + LEN });
    let looks = |in_flight: u64| {
        let mut node = Node::of_three(0);
        (1..=in_flight).for_each(|id| quick_submit(&mut node, id, vec![apply(8), apply(16)]));
        let (name, clock) = (blob("a"), node.commit.clock());
        LOOKS.set(0);
        let last = |start, up_to| node.commit.last_pending(&name, wanted(start), up_to, true);
        assert_eq!(last(8, clock), Some(TransactionId(u128::from(in_flight))), "the last of all");
        assert_eq!(last(8, time(3, 0)), Some(TransactionId(3)), "the last of the first three");
        assert_eq!(last(0, clock), None, "nobody writes there");
        assert!(!node.commit.is_settled(&name, wanted(8), None, true));
        LOOKS.get()
    };
    let [few, many] = [128, 8_192].map(looks);
    assert!(many <= few && few <= 128, "{few} of 128, {many} of 8,192");
}

/// Claims that those at one place look at in their lives, one after the other, where so many wait.
fn looks_in_line(waiting: u64, operations: impl Fn(u64) -> Vec<Operation>) -> u64 {
    let mut node = Node::of_three(0);
    (1..=waiting).for_each(|id| quick_submit(&mut node, id, operations(id)));
    LOOKS.set(0);
    for done in 1..=COUNTED {
        quick_submit(&mut node, waiting + done, operations(waiting + done));
        quick_commit(&mut node, done);
        // Whoever may go on by now is durable.
        for id in done + 1..done + 4 {
            let (id, attempt) = (TransactionId(u128::from(id)), Attempt::default());
            quick_step(&mut node, Event::Persisted { id, attempt });
        }
    }
    assert_eq!(node.commit.len() as u64, waiting, "they take effect as fast as they come");
    LOOKS.get()
}

/// C1, C2: of a line of conditions each is woken by the one before it.
#[test]
fn what_waiting_in_line_costs_does_not_grow_with_the_line() {
    type Operations = fn(u64) -> Vec<Operation>;
    let cases: [(&str, Operations); 4] = [
        ("compare and swap", |_| vec![compare(0, LEN), write(0, LEN)]),
        ("create", |_| vec![Operation::Create, write(0, LEN)]),
        ("with every other a write", |id| match id % 2 {
            0 => vec![write(0, LEN)],
            _ => vec![compare(0, LEN), write(0, LEN)],
        }),
        ("cuts and appends", |id| match id % 2 {
            0 => vec![Operation::Truncate { len: 0 }, compare(0, LEN)],
            _ => vec![append(LEN), compare(0, LEN)],
        }),
    ];
    for (what, operations) in cases {
        let [few, many] = [128, 4_096].map(|count| looks_in_line(count, operations));
        println!("{what}: {few} where 128 wait, {many} where 4,096 do");
        assert!(many <= few && few <= 40 * COUNTED, "{what}: {few} of 128, {many} of 4,096");
    }
}

fn any_operation(random: &mut Random) -> Operation {
    let place = random.below(PLACES) as u64 * 2;
    match random.below(20) {
        0..9 => write(place, 1 + random.below(8) as u64),
        9..13 => append(random.below(30) as u64),
        13 => Operation::Truncate { len: place },
        14 => Operation::Delete,
        15 => Operation::Create,
        16 => apply(place),
        _ => compare(place, 1 + random.below(4) as u64),
    }
}

fn any_transaction(random: &mut Random, id: u128) -> Transaction {
    let count = 1 + random.below(3);
    let mut all = transaction(id, (0..count).map(|_| any_operation(random)).collect());
    if random.percent(25) {
        let start = random.below(PLACES) as u64 * 2;
        all = reading(all, start, start + 3, 1_000);
        all.reads[0].is_attributes = random.percent(30);
    }
    all
}

fn any_footprint(random: &mut Random) -> Footprint {
    let start = random.below(PLACES) as u64 * 2;
    let range = ByteRange { start, end: start + random.below(6) as u64 };
    Footprint { range, is_attributes: random.percent(30) }
}

/// All rules of validation, of order and of reads, for whatever is in flight.
#[test]
fn an_index_answers_as_a_few_do() {
    for seed in 0..1_500 {
        let mut random = Random::new(seed);
        let (place, chain) = match random.below(5) {
            0 | 1 => (0, chain_of_three()),
            2 => (1, chain_of_three()),
            3 => (0, chain_of_chunks(1, ByteRange::ALL.end)),
            _ => (0, chain_of_chunks(4, 10)),
        };
        let size = Some(random.below(60) as u64);
        let [mut few, mut index] = [usize::MAX, 0].map(|few_max| {
            let mut node = Node::of_three(place);
            (node.chain, node.view.size) = (chain.clone(), size);
            node.commit.index_above(few_max);
            node
        });
        let mut begun = 0;
        for _ in 0..70 {
            let clock = few.commit.clock().clock;
            let at = time(clock + 1 + random.below(20) as u64, 2);
            let id = 1 + random.below(begun.max(1)) as u128;
            let chance = random.below(100);
            let transaction = any_transaction(&mut random, 1 + begun as u128);
            let told = [&mut few, &mut index].map(|node| match chance {
                0..40 if place == 0 => node.submit(transaction.clone()),
                0..40 => node.forward(transaction.clone(), time(clock, 0)),
                70..95 if node.is_validated(id) => node.backward(id, Decision::Commit(at)),
                95.. if node.is_validated(id) => {
                    let abort = Abort::new(ErrorKind::Conflict, "another node says so");
                    node.backward(id, Decision::Abort(abort))
                }
                _ => node.persisted(id),
            });
            begun += usize::from(chance < 40);
            assert_eq!(told[0], told[1], "seed {seed}");
            let wanted = any_footprint(&mut random);
            let up_to = time(clock.saturating_sub(random.below(30) as u64), 1);
            let asked = [&few, &index].map(|node| {
                let (commit, name) = (&node.commit, blob("a"));
                let last = [true, false].map(|it| commit.last_pending(&name, wanted, up_to, it));
                let settled =
                    [None, Some(up_to)].map(|it| commit.is_settled(&name, wanted, it, true));
                (last, settled)
            });
            assert_eq!(asked[0], asked[1], "seed {seed}: {wanted:?} up to {up_to}");
        }
    }
}

impl Node {
    /// Whether the nodes behind this one may have decided.
    fn is_validated(&self, id: u128) -> bool {
        let slot = self.commit.records.slot(TransactionId(id));
        slot.is_some_and(|slot| matches!(self.commit.records[slot].state, State::Validated(_)))
    }
}
