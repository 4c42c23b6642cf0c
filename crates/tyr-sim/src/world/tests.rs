//! The world runs, the same way each time, and notices what is wrong.

use crate::report::Report;
use crate::scenario::run_setup::run_setup;
use crate::scenario::{library, parse};
use crate::trial::{self, Manner};

fn run(name: &str, seed: u64) -> Report {
    let named = library::named(name).unwrap();
    trial::run(&named.scenario, seed, Manner { check_every: 16, ..Manner::default() }).unwrap()
}

#[test]
fn a_healthy_cluster_does_its_work_and_ends() {
    let report = run("healthy", 1);
    assert!(report.is_clean(), "{:#?}", report.violations);
    assert!(report.counters.calls > 100, "{:?}", report.counters);
}

/// C8.
#[test]
fn clocks_that_are_hours_and_days_apart_hold_nobody_up() {
    for (name, seed) in [("clock-hours", 5), ("clock-hours", 29), ("clocks-apart", 2)] {
        let report = run(name, seed);
        assert!(report.is_clean(), "{name}, seed {seed}: {:#?}", report.violations);
    }
}

/// What is simulated is what runs.
#[test]
fn a_cluster_over_the_store_itself_keeps_every_promise() {
    for (name, seed) in [("real-steady", 0), ("real-kills", 0), ("real-moves", 0)] {
        let report = run(name, seed);
        assert!(report.is_clean(), "{name}, seed {seed}: {:#?}", report.violations);
        let counters = report.counters;
        assert!(counters.cuts > 5 && counters.fetches > 20, "{name}: {counters:?}");
    }
}

/// What methods answered, and what they left, while nodes crash, come and go, and their class is
/// replaced.
#[test]
fn one_order_explains_all_calls_while_nodes_come_and_go_and_classes_change() {
    let committed = |entry: &&crate::checker::Entry| match &entry.deed {
        crate::checker::Deed::Transaction(it) => it.is_committed() && !it.calls.is_empty(),
        _ => false,
    };
    for (name, seeds) in [("calls", 0..12), ("calls-moves", 0..8), ("real-calls", 0..4)] {
        for seed in seeds {
            let report = run(name, seed);
            assert!(report.is_clean(), "{name}, seed {seed}: {:#?}", report.violations);
            let calls = report.history.entries.iter().filter(committed).count();
            assert!(calls > 50, "{name}, seed {seed}: {calls}");
        }
    }
}

/// Chunks that come in several pieces while they are written: what is behind a piece is waited for
/// (D2); what a fold took over by value is read from there; who caught up by lists, which say
/// nothing of what is deleted, does not say what a deletion of before answered (F4); and what went
/// with its chunk before the log was cut does not come back with the log (L3).
#[test]
fn chunks_in_several_pieces_are_whole_and_who_has_them_answers_for_what_it_knows() {
    let seeds =
        [("pieces", 8), ("real-pieces", 4), ("real-pieces", 11), ("real-pieces", 950_000_215)];
    for (name, seed) in seeds {
        let report = run(name, seed);
        assert!(report.is_clean(), "{name}, seed {seed}: {:#?}", report.violations);
        assert!(report.counters.copies > 100, "{name}: {:?}", report.counters);
    }
}

/// A node that is back takes up what it applied to keyspaces of one replica; what those
/// transactions wrote to chunks that have gone to others stays away (M4).
#[test]
fn what_is_taken_up_again_is_applied_to_what_is_on_its_way_alone() {
    let report = run("single-moves", 920_004_636);
    assert!(report.is_clean(), "{:#?}", report.violations);
}

/// Orders that take running nodes for gone, then a loss of power: what nobody had applied yet is
/// answered by those who apply it, whatever they gained meanwhile (F4).
#[test]
fn what_is_applied_long_after_it_was_decided_is_answered() {
    let report = run("answer-lost", 910_004_961);
    assert!(report.is_clean(), "{:#?}", report.violations);
}

/// A chunk goes to others, the base lets go of it, then power: what was answered before the chunk
/// went is not computed again on nothing (L4).
#[test]
fn what_was_answered_before_a_chunk_went_to_others_is_answered_after_a_restart() {
    let report = run("real-moves", 20_261_209_660);
    assert!(report.is_clean(), "{:#?}", report.violations);
}

/// R2: a replica that holds a blob's first chunk knows where the blob ends, also by what it must
/// not show yet.
#[test]
fn no_replica_shows_a_hole_by_an_end_that_may_still_come_to_nothing() {
    let report = run("holes-older", 990_002_369);
    assert!(report.is_clean(), "{:#?}", report.violations);
}

/// M4: the chunks that it keeps have all that it applied.
#[test]
fn what_a_node_keeps_that_was_declared_down_is_not_applied_again() {
    let report = run("real-away", 0);
    assert!(report.is_clean(), "{:#?}", report.violations);
    assert!(report.counters.epochs > 5, "down and up, and again: {:?}", report.counters);
}

/// V7, D5: a chunk that is not there any more has what it was at kept moments, also when the node
/// finds in its log that it had caught up before something was written to it again.
#[test]
fn under_an_empty_base_stays_what_is_held_of_what_was_deleted_before() {
    let report = run("real-kept-away", 1_000_006_018);
    assert!(report.is_clean(), "{:#?}", report.violations);
}

/// V2: snapshots that last, beside a blob that nobody stops writing, over the store itself. What is
/// between their moments goes. In a cluster of nodes that are told of the oldest only, all stays.
#[test]
fn beside_long_snapshots_a_hot_blob_keeps_few_versions_and_each_snapshot_finds_its_own() {
    let run = |older: &str| {
        let text = format!(
            "nodes 3, replication 3, clients 8, rest 0..1 ms, {older} 10 s; store real\n\
             disks checkpoint never; workload snapshots blobs 1 pause 4000 readers 3"
        );
        let mut setup = run_setup(&parse::parse(&text).unwrap(), 1).unwrap();
        (setup.versions.linger_us, setup.network.encoded) = (100_000, 1_000_000);
        let report = super::run(setup);
        assert!(report.is_clean(), "{older}: {:#?}", report.violations);
        report.counters
    };
    let counters = run("");
    // Each has its bytes and its attributes; a snapshot lasts for nearly half of the run.
    let (versions, written) = (counters.versions_most, counters.committed);
    assert!(versions > 50 && versions < written / 5, "{versions} of {written} versions stay");
    run("older 7,");
}

/// A run in which this goes wrong, and nothing else.
fn run_with(faults: &str, seed: u64) -> Report {
    let text = format!("nodes 3, clients 4, 12 s; workload bank; disks checkpoint never\n{faults}");
    let scenario = parse::parse(&text).unwrap();
    let report = trial::run(&scenario, seed, Manner::default()).unwrap();
    assert!(report.is_clean() && report.unjudged.is_none(), "{faults}: {:#?}", report.violations);
    report
}

#[test]
fn a_node_that_lives_is_declared_down_by_order_and_comes_back() {
    let counters = run_with("at 5 s order down node 1", 1).counters;
    assert_eq!((counters.downs, counters.downs_refused), (1, 0));
    let before = run_with("at 5 s slow disk node 1 times 1", 1).counters;
    assert_eq!(counters.epochs - before.epochs, 3, "down, returning, up");
}

#[test]
fn an_order_about_a_process_that_another_has_followed_is_refused() {
    for seed in 0..5 {
        let faults = "at 5 s stop node 1 for 100 ms\nat 5.05 s order down node 1";
        let counters = run_with(faults, seed).counters;
        assert_eq!((counters.downs, counters.downs_refused), (0, 1), "seed {seed}");
    }
}

#[test]
fn a_node_that_is_gone_is_declared_down_by_order_sooner_than_by_its_silence() {
    let counters = run_with("at 5 s stop node 1 for 3.5 s\nat 5 s order down node 1", 1).counters;
    assert_eq!((counters.downs, counters.downs_refused), (1, 0));
    let counters = run_with("at 5 s stop node 1 for 3.5 s", 1).counters;
    assert_eq!((counters.downs, counters.epochs), (0, 1), "only that it is back");
}

/// A recipient that is a chain's tail crashes with all others and is back as quickly as they: what
/// it had validated was decided, and it must not begin empty because others came back before it.
#[test]
fn what_a_recipient_validated_as_the_tail_survives_a_loss_of_power_everywhere() {
    let text = "nodes 3, replication 3, clients 10, rest 0..5 ms, 4.86 s\n\
                workload bank accounts 6; workload lists blobs 6; workload counters cells 4\n\
                network delay 0.2..3 ms, slow 2 %; disks checkpoint 136..816 ms\n\
                at 1.274 s order down node 2\n\
                at 2.349 s crash node 2 for 1.427 s\n\
                at 2.529 s order down node 2\n\
                at 2.579 s stop node 1 for 357 ms\n\
                at 2.648 s order down node 1\n\
                at 4.046 s stop node 0 for 186 ms\n\
                at 4.506 s crash node 0 for 354 ms\n\
                at 4.513 s power loss for 171 ms";
    let report = trial::run(&parse::parse(text).unwrap(), 57, Manner::default()).unwrap();
    assert!(report.is_clean() && report.unjudged.is_none(), "{:#?}", report.violations);
}

/// Node 0 applies an append to a later chunk when the first one, and with it the size, has just
/// gone to a node that joined.
#[test]
fn an_append_is_not_missed_where_the_first_chunk_has_gone_to_others() {
    let text = "nodes 5, replication 3, clients 6, rest 5..80 ms, 16.875 s\n\
                workload lists blobs 8\n\
                workload bank accounts 12\n\
                workload rewrites blobs 3\n\
                workload ends blobs 3\n\
                network loss 1 %, duplicate 1 %\n\
                disks checkpoint 0.989..2.967 s\n\
                at 6.552 s crash node 2 for 213 ms\n\
                at 8.528 s join node 5\n\
                at 8.981 s power loss for 552 ms\n\
                at 11.628 s partition nodes 1 4 5 monitors | 0 2 3 for 1.522 s\n\
                at 13.088 s crash node 5 for 217 ms";
    let report = trial::run(&parse::parse(text).unwrap(), 951, Manner::default()).unwrap();
    assert!(report.is_clean() && report.unjudged.is_none(), "{:#?}", report.violations);
}

/// D5: node 3 was down, got a chunk by copy of which that said that there is nothing, cut its log
/// behind that and was written to there; then power is lost before it is cut again.
#[test]
fn a_node_that_came_back_need_not_know_by_what_a_chunk_is_gone() {
    let text = "nodes 5, replication 3, clients 6, rest 5..80 ms, 13.5 s\n\
                workload bank accounts 12\n\
                workload rewrites blobs 3\n\
                workload ends blobs 3\n\
                network loss 1 %, duplicate 1 %\n\
                disks checkpoint 1.787..7.148 s\n\
                at 5.893 s crash node 3 for 2.322 s\n\
                at 7.305 s partition nodes 0 2 monitors | 1 3 4 for 2.879 s\n\
                at 8.222 s join node 5\n\
                at 12.611 s power loss for 396 ms";
    let report = trial::run(&parse::parse(text).unwrap(), 800_003_169, Manner::default()).unwrap();
    assert!(report.is_clean() && report.unjudged.is_none(), "{:#?}", report.violations);
}

/// Leases allow for a tenth between the clocks of a node and of the monitors. When they are further
/// apart, a node that is cut off still serves what others write already, and the checkers see it.
#[test]
fn clocks_that_drift_beyond_what_leases_allow_are_noticed() {
    let run = |drift: &str, seed| {
        let text = format!(
            "nodes 3, replication 3, clients 12, rest 0..10 ms, 14 s; workload registers cells 2\n\
             clocks monotonic {drift}\n\
             at 5 s partition node 2 for 6 s; at 5.2 s order down node 2"
        );
        trial::run(&parse::parse(&text).unwrap(), seed, Manner::default()).unwrap()
    };
    let noticed = (19..79).find(|seed| !run("30 %", *seed).is_clean());
    let seed = noticed.expect("some seed notices");
    let report = run("5 %", seed);
    assert!(report.is_clean() && report.unjudged.is_none(), "{:#?}", report.violations);
}

/// All nodes know what is decided and are then declared down one after the other, each when the one
/// before has come back by copy: nothing is lost, and the run is judged.
#[test]
fn nodes_that_are_down_one_after_the_other_lose_nothing() {
    let text = "nodes 3, replication 3, clients 4, rest 0..300 ms, 45 s; workload lists\n\
                disks checkpoint never\n\
                at 5 s crash node 0 for 8 s; at 18 s crash node 1 for 8 s\n\
                at 31 s crash node 2 for 8 s";
    let report = trial::run(&parse::parse(text).unwrap(), 1, Manner::default()).unwrap();
    assert!(report.is_clean() && report.unjudged.is_none(), "{:#?}", report.violations);
    assert_eq!(report.counters.epochs, 9, "each was down, returning, and up again");
}

#[test]
fn a_client_that_slept_learns_what_became_of_what_it_had() {
    let text = "nodes 3, clients 4, rest 0..5 ms, 30 s; workload lists; \
                at 5 s sleep client 1 for 20 s";
    let report = trial::run(&parse::parse(text).unwrap(), 1, Manner::default()).unwrap();
    assert!(report.is_clean(), "{:#?}", report.violations);
    let slept = |entry: &&crate::checker::Entry| {
        entry.client == 1 && entry.start_us < 5_000_000 && entry.end_us > Some(25_000_000)
    };
    assert_eq!(report.history.entries.iter().filter(slept).count(), 1);
}

#[test]
fn the_probe_asks_every_keyspace_and_one_that_was_dropped_refuses() {
    let text = "nodes 3, clients 2, 3 s; workload lists in main one; keyspace one replication 1; \
                at 2 s drop one";
    let report = trial::run(&parse::parse(text).unwrap(), 1, Manner::default()).unwrap();
    assert!(report.is_clean(), "{:#?}", report.violations);
    assert!(report.simulated_us > 23_000_000, "the probe comes after 20 s");
    let probes = |client| report.history.entries.iter().filter(move |it| it.client == client);
    assert!(probes(2).count() > 20, "main");
    let refused = |entry: &&crate::checker::Entry| match &entry.deed {
        crate::checker::Deed::Transaction(attempted) => !attempted.is_committed(),
        _ => false,
    };
    assert!(probes(3).filter(refused).count() > 8, "one");
    assert_eq!(probes(2).filter(refused).count(), 0);
}

#[test]
fn monitors_that_follow_others_go_on_with_what_these_had_agreed_on() {
    for upset in ["change", "mute", "pause"] {
        let faults = format!("at 4 s crash node 2 for 3.5 s\nat 5 s monitors {upset} for 1.5 s");
        let counters = run_with(&faults, 2).counters;
        assert_eq!(counters.terms, u64::from(upset != "pause"), "{upset}");
    }
}

#[test]
fn the_same_seed_twice_is_the_same_run() {
    for name in ["standard", "chaos", "real-kills"] {
        let [first, second] = [(); 2].map(|()| run(name, 5));
        assert_eq!((first.trace_hash, first.steps), (second.trace_hash, second.steps));
        assert_eq!(first.history, second.history);
        assert_ne!(first.trace_hash, run(name, 6).trace_hash);
    }
}
