//! The queue of the guide, as it is printed there.

use std::collections::BTreeSet;
use std::thread;

use tyr::ErrorKind;

use crate::place::{Place, on_each};

/// The script in the guide.
fn script() -> &'static str {
    let guide = include_str!("../../../../docs/guide/queue.md");
    let begin = "cat > queue.lua <<'END'\n";
    let script = &guide[guide.find(begin).unwrap() + begin.len()..];
    &script[..script.find("\nEND\n").unwrap()]
}

fn install(place: &Place) {
    assert_eq!(place.install(&script().replace("\"queue\"", "\"NAME\"")), 1);
}

#[test]
fn the_script_of_the_guide_is_short_and_passes_its_tests() {
    assert!(script().lines().count() <= 300);
    let outcomes = tyr_object::test(None, script().as_bytes()).unwrap();
    assert_eq!(outcomes.len(), 3);
    for outcome in outcomes {
        assert!(outcome.failure.is_none(), "{}: {:?}", outcome.name, outcome.failure);
    }
}

#[test]
fn entries_come_by_priority_and_age_as_in_a_sorted_list() {
    on_each(|place| {
        install(&place);
        // A list by hand: what is to come next is the last of it.
        let mut model: Vec<(u32, u32, String)> = Vec::new();
        let mut seed = 7_u32;
        for number in 0..60 {
            seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            let is_push = seed >> 16 & 3 != 0;
            if is_push {
                let (priority, data) = (seed >> 20 & 7, format!("of {number} \0 ä"));
                place.call("q", "push", &format!("{priority} {data}")).unwrap();
                model.push((priority, u32::MAX - number, data));
                model.sort_unstable();
            } else {
                match (place.call("q", "pop", ""), model.pop()) {
                    (Ok(got), Some((priority, _, data))) => {
                        assert_eq!(got, format!("{priority} {data}"));
                    }
                    (Err(failure), None) => assert_eq!(failure.kind(), ErrorKind::NotFound),
                    (got, wanted) => panic!("{got:?} in place of {wanted:?}"),
                }
            }
        }
        let size = place.call("q", "size", "").unwrap();
        assert_eq!(size, format!("{} 0 1000", model.len()));
    });
}

#[test]
fn what_many_push_many_take_once_each_and_no_more_than_fit_are_there() {
    const PRODUCERS: usize = 3;
    const EACH: usize = 12;
    on_each(|place| {
        install(&place);
        place.call("q", "limit", "8").unwrap();
        let taken: Vec<String> = thread::scope(|scope| {
            let place = &place;
            for producer in 0..PRODUCERS {
                scope.spawn(move || {
                    for number in 0..EACH {
                        let entry = format!("{} {producer} {number}", number % 10);
                        // Full: consumers make room.
                        while let Err(failure) = place.call("q", "push", &entry) {
                            assert_eq!(failure.kind(), ErrorKind::QuotaExceeded, "{failure}");
                        }
                    }
                });
            }
            let consume = |_| {
                scope.spawn(move || {
                    let mut taken = Vec::new();
                    while taken.len() < PRODUCERS * EACH / 2 {
                        match place.call("q", "take", "60") {
                            Ok(entry) => {
                                let (receipt, entry) = entry.split_once(' ').unwrap();
                                place.call("q", "ack", receipt).unwrap();
                                taken.push(entry.to_owned());
                            }
                            Err(failure) => assert_eq!(failure.kind(), ErrorKind::NotFound),
                        }
                    }
                    taken
                })
            };
            let consumers: Vec<_> = (0..2).map(consume).collect();
            consumers.into_iter().flat_map(|it| it.join().unwrap()).collect()
        });
        let all: BTreeSet<&String> = taken.iter().collect();
        assert_eq!((taken.len(), all.len()), (PRODUCERS * EACH, PRODUCERS * EACH));
        assert_eq!(place.call("q", "size", "").unwrap(), "0 0 8");
    });
}
