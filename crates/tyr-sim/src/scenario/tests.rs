//! Texts become scenarios and scenarios texts; seeds close choices.

use tyr_chance::part;
use tyr_types::{Durability, KeyspaceConfig, KeyspaceId, NodeId};

use super::draw::{begin, draw, end};
use super::fault::{Fault, FaultLine, Sides, Target};
use super::library;
use super::parse::parse;
use super::quantity::{Micros, Span};
use super::run_setup::{plan, run_setup};
use super::{LENGTH_MAX, Scenario};
use crate::fault::{self, Group};
use crate::trial::Manner;

/// A scenario of these statements and a workload.
fn of(statements: &str) -> Scenario {
    parse(&format!("workload bank\n{statements}")).unwrap()
}

fn error_of(text: &str) -> String {
    parse(text).unwrap_err().message().to_owned()
}

fn every_statement() -> &'static str {
    "# All that there is.\n\
     # Twice.\n\
     nodes 3..7, replication 2, clients 4..8, rest 0..5 ms, older 1, 40 s\n\
     keyspace chunk 64 KiB, live 2, single version\n\
     keyspace one chunk 4 KiB, replication 1, memory\n\
     keyspace two chunk 8 KiB, buffered\n\
     workload bank accounts 40\n\
     workload lists\n\
     workload lists in main one blobs 3\n\
     workload log in two\n\
     network delay 0.2..3 ms, slow 1 %, loss 1.5 %, duplicate 2 %\n\
     clocks offset 1 s, drift 5 %, monotonic 2 %, jump 30 s sometimes\n\
     disks sync 1..20 ms, checkpoint 0.5..2 s\n\
     at 1 s crash random\n\
     at 2..3 s restart it\n\
     at 4 s replace node 1 sometimes\n\
     at 5 s power loss for 200 ms\n\
     every 6 s pause random for 0.5..2 s\n\
     every 1.5..3 s partition random halves for 1 s sometimes\n\
     at 7 s partition random bridge\n\
     at 8 s partition it\n\
     at 9 s partition nodes 0 1 | 1 2 monitors\n\
     at 10 s one-way node 0 to random\n\
     at 11 s unseen random for 20 ms\n\
     at 12 s slow link random to random by 50 ms\n\
     at 13 s loss 30 % for 1 s\n\
     at 14 s duplicate 30 % for 1 s\n\
     at 15 s jump random back 30 s\n\
     at 16 s slow disk it times 20 for 2 s\n\
     at 17 s full disk random\n\
     at 17.5 s rot random\n\
     at 18 s join\n\
     at 19 s join node 4\n\
     at 20 s drain random\n\
     at 21 s weight it 300\n\
     at 22 s stop random for 1 s\n\
     at 23 s stop all within 900 ms for 50..200 ms\n\
     at 24 s order down it\n\
     every 5 s monitors change for 0.1..2 s sometimes\n\
     at 25 s monitors mute for 1 s\n\
     at 26 s monitors pause for 1 s\n\
     at 27 s drop one\n\
     every 9..12 s sleep random for 1..2 s sometimes\n\
     at 28 s sleep client 3 for 500 ms\n\
     at 29 s jump node 1 forward 30 h\n\
     at 29 s jump client 2 back 8760 h\n\
     heal at 30 s\n\
     unjudged 2.5 %\n"
}

#[test]
fn a_text_in_order_comes_back_letter_by_letter() {
    let scenario = parse(every_statement()).unwrap();
    assert_eq!(scenario.to_string(), every_statement());
}

#[test]
fn the_texts_of_the_library_come_back_letter_by_letter() {
    for named in library::all() {
        assert_eq!(named.scenario.to_string(), named.text, "{}", named.name);
    }
}

#[test]
fn every_file_of_scenarios_is_in_the_library_with_a_line_that_tells_what_it_is_about() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/scenarios");
    let files = std::fs::read_dir(folder).unwrap().map(|file| file.unwrap().file_name());
    let mut files: Vec<String> = files.map(|name| name.into_string().unwrap()).collect();
    let mut names: Vec<String> =
        library::all().iter().map(|named| format!("{}.txt", named.name)).collect();
    files.sort();
    names.sort();
    assert_eq!(files, names);
    assert!(library::all().iter().all(|named| !named.scenario.about[0].is_empty()));
}

#[test]
fn statements_may_share_a_line_and_have_comments() {
    let scenario = parse(
        "nodes 4, replication 2, 10s; workload lists blobs 3 # few\n\
         \n  at 1 s crash random;; heal at 9 s",
    )
    .unwrap();
    assert_eq!(scenario.nodes, Span::exactly(4));
    assert_eq!(scenario.length, Micros::seconds(10));
    assert_eq!(scenario.workloads[0].parameters, [("blobs".to_owned(), 3)]);
    assert_eq!((scenario.faults.len(), scenario.heal), (1, Some(Micros::seconds(9))));
}

#[test]
fn errors_name_line_column_and_what_was_expected() {
    let cases = [
        ("workload bank\nfoo 3", "line 2, column 1: expected a statement"),
        ("workload bank\nat 5 s explode", "line 2, column 8: expected a fault"),
        ("workload bank\nat soon crash random", "line 2, column 4: expected a time"),
        ("workload bank\nat 5 s crash", "line 2, column 13: expected a node"),
        ("workload bank\nat 5 s crash node 999", "line 2, column 19: expected a whole number"),
        ("workload bank\nat 5 s pause random", "line 2, column 20: expected for"),
        ("workload bank\nat 5 s monitors change", "line 2, column 23: expected for"),
        ("workload bank\nat 5 s monitors rest for 1 s", "line 2, column 17: expected change"),
        ("workload bank\nat 5 s stop all for 1 s", "line 2, column 17: expected within"),
        ("workload bank\nat 5 s join for 2 s", "line 2, column 13: expected the end"),
        ("workload bank\nnetwork loss 120 %", "line 2, column 14: expected a share"),
        ("workload bank\nnodes 5..3", "line 2, column 7: expected a whole number"),
        ("workload bank\nevery 0 s crash random", "line 2, column 7: expected a pause"),
        ("workload bonk", "line 1, column 10: expected a workload: bank"),
        ("workload bank moons 3", "line 1, column 15: expected a parameter of bank"),
        ("workload bank\nstore other", "line 2, column 7: expected model or real"),
        ("workload bank\nkeyspace one slow", "line 2, column 14: expected chunk"),
        ("workload bank in 3", "line 1, column 18: expected the name of a keyspace"),
        ("workload bank\nat 5 s sleep random", "line 2, column 20: expected for"),
        ("workload bank\nat 5 s sleep node 1 for 1 s", "line 2, column 14: expected random"),
    ];
    for (text, expected) in cases {
        let error = error_of(text);
        assert!(error.starts_with(expected), "{text}: {error}");
    }
}

#[test]
fn what_does_not_fit_together_is_refused() {
    let cases = [
        ("nodes 3", "at least one workload"),
        ("workload bank; nodes 2..5, replication 3", "replication 3 needs as many nodes"),
        ("workload bank; keyspace live 4", "4 live replicas"),
        ("workload bank; keyspace chunk 5 KiB", "power of two"),
        ("workload bank; heal at 31 s", "comes after the end"),
        ("workload bank; at 30 s crash random", "when all is healed"),
        ("workload bank; at 3 s crash node 5", "names node 5"),
        ("workload bank; at 3 s sleep client 8 for 1 s", "names client 8"),
        ("workload bank in moon; keyspace one", "no keyspace \"moon\"; there are main, one"),
        ("workload bank; at 3 s drop moon", "no keyspace \"moon\""),
        ("workload bank; keyspace one; keyspace one", "two keyspaces are named \"one\""),
        ("workload bank; keyspace one replication 6", "replication 6 needs as many nodes"),
        ("workload bank; store real; at 5 s rot random", "needs \"store model\""),
        ("workload pages", "\"workload pages\" needs \"store real\""),
        ("workload rooms", "\"workload rooms\" needs \"store real\""),
        ("workload bank; keyspace one replication 2, live 3", "3 live replicas"),
    ];
    for (text, expected) in cases {
        let error = error_of(text);
        assert!(error.contains(expected), "{text}: {error}");
    }
    assert!(parse("workload bank; at 3 s join; at 4 s crash node 5").is_ok());
    assert!(parse(&format!("workload bank; {LENGTH_MAX}")).is_ok());
}

#[test]
fn no_text_makes_the_parser_panic() {
    let mut random = crate::random::Random::of(11, "texts", 0);
    let whole = every_statement();
    let pieces: Vec<&str> = whole.split_inclusive([' ', '\n', ',']).collect();
    for _ in 0..3_000 {
        let count = random.below(12);
        let mut text: String = (0..count).map(|_| random.pick(&pieces)).collect();
        let cut = random.below(text.chars().count() as u64 + 1) as usize;
        text = text.chars().skip(cut / 2).chain("é|;".chars()).collect();
        if let Ok(scenario) = parse(&text) {
            assert_eq!(parse(&scenario.to_string()).unwrap(), scenario, "{text}");
        }
    }
}

#[test]
fn what_is_drawn_has_no_choices_left_and_drawing_it_again_changes_nothing() {
    for named in library::all() {
        for seed in 0..40 {
            let drawn = draw(&named.scenario, seed);
            let name = format!("{} of seed {seed}\n{drawn}", named.name);
            drawn.check().unwrap_or_else(|error| panic!("{error}: {name}"));
            assert_eq!(draw(&drawn, seed + 1), drawn, "{name}");
            assert_eq!(parse(&drawn.to_string()).unwrap(), drawn, "{name}");
            assert!(drawn.faults.iter().all(|line| !line.is_sometimes), "{name}");
            assert!(drawn.faults.is_sorted_by_key(begin), "{name}");
            let healed = drawn.healed_at();
            assert!(drawn.faults.iter().filter_map(end).all(|end| end <= healed), "{name}");
        }
    }
}

#[test]
fn seeds_draw_differently_and_the_same_seed_the_same() {
    let scenario = &library::named("chaos").unwrap().scenario;
    assert_eq!(draw(scenario, 3), draw(scenario, 3));
    assert_ne!(draw(scenario, 3), draw(scenario, 4));
}

#[test]
fn it_is_the_node_of_the_statement_before() {
    let drawn = draw(&of("at 1 s crash random\nat 5 s restart it"), 9);
    let [crashed, restarted] = [0, 1].map(|place| drawn.faults[place].fault.named_nodes());
    assert_eq!(crashed, restarted);
    let joined = draw(&of("at 1 s join\nat 5 s crash it"), 9);
    assert_eq!(joined.faults[1].fault, Fault::Crash(Target::Node(5)));
}

#[test]
fn it_of_what_did_not_happen_does_not_happen() {
    let scenario = of("at 1 s crash random sometimes\nat 5 s restart it");
    let counts: Vec<usize> = (0..20).map(|seed| draw(&scenario, seed).faults.len()).collect();
    assert!(counts.iter().all(|count| [0, 2].contains(count)), "{counts:?}");
    assert!(counts.contains(&0) && counts.contains(&2), "{counts:?}");
}

#[test]
fn a_node_that_is_down_does_not_crash_again() {
    let scenario = of("nodes 3\nevery 100 ms crash random for 10 s");
    let drawn = draw(&scenario, 1);
    let down_at = |at: Micros| {
        let is_down = |line: &&FaultLine| begin(line) <= at && end(line).is_none_or(|end| end > at);
        let down = drawn.faults.iter().filter(is_down);
        down.flat_map(|line| line.fault.named_nodes()).collect::<Vec<_>>()
    };
    for line in &drawn.faults {
        let mut down = down_at(begin(line));
        let count = down.len();
        down.sort_unstable();
        down.dedup();
        assert_eq!(down.len(), count, "{drawn}");
    }
}

#[test]
fn all_stop_within_the_time_and_each_is_a_statement_of_its_own() {
    let drawn = draw(&of("nodes 4\nat 2 s stop all within 900 ms for 50..200 ms"), 3);
    let mut stopped = Vec::new();
    for line in &drawn.faults {
        assert!((2_000_000..=2_900_000).contains(&begin(line).0), "{drawn}");
        let lasts = end(line).unwrap().0 - begin(line).0;
        assert!((50_000..=200_000).contains(&lasts), "{drawn}");
        let Fault::Stop(Target::Node(node)) = line.fault else { panic!("{line}") };
        stopped.push(node);
    }
    stopped.sort_unstable();
    assert_eq!(stopped, [0, 1, 2, 3]);
}

#[test]
fn monitors_that_are_gone_do_not_change_again() {
    let scenario = of("every 100 ms monitors change for 1 s\nevery 50 ms monitors pause for 1 s");
    let drawn = draw(&scenario, 1);
    assert!(drawn.faults.len() > 10);
    assert!(drawn.faults.is_sorted_by(|one, next| end(one).unwrap() <= begin(next)), "{drawn}");
}

#[test]
fn no_more_machines_are_replaced_than_replicas_may_be_lost() {
    let drawn = draw(&of("every 1 s replace random"), 5);
    assert_eq!(drawn.faults.len(), 2, "{drawn}");
    for (used, replaced) in [("main", 2), ("main one", 0)] {
        let one = format!("keyspace one replication 1\nworkload lists in {used}\n");
        let drawn = draw(&of(&format!("{one}every 1 s replace random")), 5);
        assert_eq!(drawn.faults.len(), replaced, "{drawn}");
    }
}

#[test]
fn sides_of_a_partition_have_every_node_and_a_bridge_is_on_both() {
    let scenario = of("nodes 5\nevery 2 s partition random bridge for 1 s");
    for line in draw(&scenario, 8).faults {
        let Fault::Partition(Sides::Groups(groups)) = line.fault else { panic!("{line}") };
        let mut nodes: Vec<NodeId> =
            groups.iter().flat_map(|group| group.nodes.iter().copied()).collect();
        assert_eq!(nodes.len(), 6);
        nodes.sort_unstable();
        nodes.dedup();
        assert_eq!(nodes.len(), 5);
        assert!(groups.iter().any(|group| group.has_monitors));
    }
}

#[test]
fn the_end_of_a_partition_leaves_other_broken_links_as_they_are() {
    let statements = "at 1 s one-way node 0 to node 1 for 8 s\n\
                      at 2 s partition nodes 0 1 | 2 3 4 monitors for 2 s\n\
                      at 3 s loss 30 % for 1 s";
    let plan = plan(&draw(&of(statements), 1));
    let one_way = fault::Fault::OneWay(NodeId(0), NodeId(1));
    let group = |nodes: &[u16], has_monitors| Group {
        nodes: nodes.iter().copied().map(NodeId).collect(),
        has_monitors,
    };
    let groups = vec![group(&[0, 1], false), group(&[2, 3, 4], true)];
    let seconds = |at: u64| at * 1_000_000;
    assert_eq!(
        plan.faults(),
        [
            (seconds(1), one_way.clone()),
            (seconds(2), fault::Fault::Partition(groups)),
            (seconds(3), fault::Fault::Loss(300_000)),
            (seconds(4), fault::Fault::Join),
            (seconds(4), one_way),
            (seconds(4), fault::Fault::Loss(0)),
            (seconds(9), fault::Fault::Join),
        ]
    );
}

#[test]
fn healing_ends_what_lasts() {
    let statements = "at 1 s full disk node 2\nat 2 s crash node 3\nheal at 9 s";
    let plan = plan(&draw(&of(statements), 1));
    let healing: Vec<&fault::Fault> =
        plan.faults().iter().filter(|(at, _)| *at == 9_000_000).map(|(_, fault)| fault).collect();
    assert!(healing.contains(&&fault::Fault::RoomOnDisk(NodeId(2))));
    assert!(healing.contains(&&fault::Fault::RestartAll));
}

#[test]
fn a_run_is_set_up_as_the_text_says() {
    let text = "nodes 4, replication 2, clients 3, rest 1 ms, 12 s; keyspace chunk 8 KiB; \
                workload lists blobs 3; network delay 1..2 ms, loss 1 %; clocks drift 2 %";
    let setup = run_setup(&parse(text).unwrap(), 42).unwrap();
    assert_eq!((setup.seed, setup.nodes, setup.clients), (42, 4, 3));
    assert_eq!((setup.keyspaces[0].chunk_size, setup.keyspaces[0].replication), (8192, 2));
    assert_eq!((setup.duration_us, setup.pause_us), (12_000_000, (1_000, 1_000)));
    assert_eq!((setup.network.delay_us, setup.network.loss), ((1_000, 2_000), 10_000));
    assert_eq!(setup.clocks.drift, 20_000);
    assert_eq!(setup.workloads.len(), 1);
}

#[test]
fn keyspaces_are_set_up_each_as_it_says_and_workloads_lie_in_theirs() {
    let text = "nodes 4, replication 2; keyspace one replication 1, chunk 16 KiB, memory; \
                keyspace two; workload lists in one two; workload lists in two; workload bank; \
                at 3 s drop two; at 4 s sleep random for 1 s";
    let setup = run_setup(&parse(text).unwrap(), 42).unwrap();
    let of = |it: &KeyspaceConfig| (it.replication, it.chunk_size, it.durability);
    let keyspaces: Vec<_> = setup.keyspaces.iter().map(of).collect();
    let sync = |replication| (replication, 4096, Durability::Sync);
    assert_eq!(keyspaces, [sync(2), (1, 16_384, Durability::Memory), sync(2)]);
    let faults: Vec<_> = setup.faults.faults().iter().map(|(_, fault)| fault.clone()).collect();
    assert_eq!(faults[0], fault::Fault::DropKeyspace(KeyspaceId(3)));
    assert!(
        matches!(faults[1], fault::Fault::Sleep(client, 1_000_000) if client < 8),
        "{faults:?}"
    );
    assert_eq!(setup.faults.dropped(), [(KeyspaceId(3), 3_000_000)]);
    let report = crate::world::run(setup);
    assert!(report.is_clean(), "{:?}", report.violations);
    let mut named = std::collections::BTreeSet::new();
    for (_, _, attempted) in report.history.transactions() {
        named
            .extend(attempted.blobs.iter().map(|it| (it.blob.keyspace.0, it.blob.key.to_string())));
    }
    for (keyspace, key) in [(2, "list/0"), (3, "list/1"), (3, "list2/0"), (1, "bank/0")] {
        assert!(named.contains(&(keyspace, key.to_owned())), "{named:?}");
    }
    assert!(!named.contains(&(3, "list/0".to_owned())), "{named:?}");
}

/// Those that last a minute at most: longer ones take too long to be run for this alone.
fn short_ones() -> Vec<&'static library::Named> {
    let is_short = |named: &&library::Named| named.scenario.length <= Micros::seconds(60);
    library::all().iter().filter(is_short).collect()
}

#[test]
fn short_scenarios_keep_every_promise() {
    for named in short_ones() {
        let report = crate::trial::run(&named.scenario, 77, Manner::default()).unwrap();
        assert!(report.is_clean(), "{}: {:#?}", named.name, report.violations);
        assert_ne!(report.steps, 0, "{}", named.name);
    }
}

#[test]
fn one_seed_is_one_run_of_every_scenario() {
    let scenarios = short_ones();
    let apart = scenarios.len() / part(scenarios.len());
    for named in scenarios.into_iter().step_by(apart) {
        let [first, second] = [(); 2].map(|()| {
            let report = crate::trial::run(&named.scenario, 77, Manner::default()).unwrap();
            (report.trace_hash, report.steps, report.simulated_us, report.counters)
        });
        assert_eq!(first, second, "{}", named.name);
    }
}
