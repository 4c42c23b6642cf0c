//! Whatever happens, a place has one authority at most and nobody goes by a map that somebody has
//! lost by since (M3), and who serves a place has it (M4).

use tyr_chance::part;

use super::world::World;
use crate::rule::Rule;

/// What went wrong first in these seeds; prints the seed.
fn run(seeds: std::ops::Range<u64>, broken: Option<Rule>) -> Option<String> {
    let mut maps = 0;
    for seed in seeds {
        let mut world = World::new(seed, broken);
        world.run(120);
        maps += world.maps;
        if let Some(wrong) = world.wrong {
            match broken {
                Some(rule) => println!("without {rule:?}: noticed at seed {seed}: {wrong}"),
                None => println!("seed {seed}: {wrong}"),
            }
            return Some(wrong);
        }
    }
    println!("{maps} maps took effect");
    assert!(maps > part(100), "only {maps} maps took effect: the test looks at nothing");
    None
}

/// M3, M4.
#[test]
fn a_place_never_has_two_authorities_nor_one_by_a_map_that_is_over() {
    assert_eq!(run(0..part(100), None), None);
}

#[test]
fn nodes_that_go_on_without_a_lease_are_noticed() {
    assert!(run(0..40, Some(Rule::M3)).is_some());
}

#[test]
fn maps_that_do_not_wait_for_those_who_lose_are_noticed() {
    assert!(run(0..40, Some(Rule::M3Wait)).is_some());
}

#[test]
fn a_node_that_is_up_before_it_has_caught_up_is_noticed() {
    assert!(run(0..40, Some(Rule::M4)).is_some());
}
