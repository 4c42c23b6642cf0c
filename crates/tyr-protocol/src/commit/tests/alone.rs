//! The fast path of a chain of one.

use super::*;

#[test]
fn the_fast_path_stands_back_for_what_is_in_flight_on_its_blobs() {
    let mut node = Node::alone();
    node.submit(transaction(1, vec![write(0, 8)]));
    let same = transaction(2, vec![write(100, 8)]);
    assert_eq!(node.commit.commit_alone(0, &same, &EMPTY), None);
    let mut other = same.clone();
    other.blobs[0].blob = blob("b");
    assert_eq!(node.commit.commit_alone(0, &other, &EMPTY), Some(Ok(time(2, 0))));
    node.persisted(1);
    assert_eq!(node.commit.commit_alone(90, &same, &EMPTY), Some(Ok(time(90, 0))));
}

/// The fast path and the steps come to the same, for whatever clients do.
#[test]
fn the_fast_path_is_the_inlined_form_of_the_steps() {
    use crate::test_cluster::checker::read_check;
    use crate::test_cluster::layout::{Layout, Object};
    use crate::test_cluster::{random::Random, state::State, workload};

    for seed in 0..300 {
        let mut random = Random::new(seed);
        let layout = Layout::random(&mut random, 1, 1);
        let chain = Chain::alone(NodeId(0));
        let mut states = [(); 2].map(|()| State::new(layout.clone(), None));
        let [mut fast, mut slow] = [(); 2].map(|()| Commit::new(NodeId(0)));
        for id in 0..40 {
            let is_conditional = random.percent(60);
            let peek = |_: Object| states[0].clone();
            let mut own = workload::transaction(&mut random, &layout, id, is_conditional, peek);
            for object in workload::objects(&mut random, &layout, 2, false) {
                let age = random.pick(&[0, 0, 0, 20]);
                let at = time(fast.clock().clock.saturating_sub(age), 0);
                own.reads.extend(is_conditional.then(|| read_check(object, at)));
            }
            let now_us = random.below(400) as u64;
            let answer = fast.commit_alone(now_us, &own, &states[0]);
            let answer = answer.expect("nothing is in flight");
            if let Ok(at) = answer {
                states[0].apply(&own, at).unwrap();
            }
            let own = Arc::new(own);
            let (transaction, chain) = (Arc::clone(&own), chain.clone());
            let mut events = vec![Event::Submit { transaction, chain, begun: Timestamp::ZERO }];
            let mut decisions = Vec::new();
            while let Some(event) = events.pop() {
                let mut effects = Vec::new();
                slow.step(now_us, event, &states[1], &mut effects);
                for effect in effects {
                    match effect {
                        Effect::Persist { attempt, .. } => {
                            events.push(Event::Persisted { id: own.id, attempt });
                        }
                        Effect::Apply { at, .. } => drop(states[1].apply(&own, at).unwrap()),
                        Effect::Reply { decision, .. } => decisions.push(decision),
                        other => panic!("a chain of one does not {other:?}"),
                    }
                }
            }
            let expected = match answer {
                Ok(at) => Decision::Commit(at),
                Err(abort) => Decision::Abort(abort),
            };
            assert_eq!(decisions, [expected], "seed {seed}: {own:?}");
            assert_eq!(fast.clock(), slow.clock(), "seed {seed}");
        }
        for object in layout.objects() {
            assert_eq!(states[0].list(object), states[1].list(object), "seed {seed}");
        }
    }
}
