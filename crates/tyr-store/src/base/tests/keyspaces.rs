//! Keyspaces last, are emptied, and go in steps.

use tyr_types::PlacedBy;

use super::*;

#[test]
fn keyspaces_survive_a_loss_of_power_with_their_configuration() {
    let fixture = Fixture::new(true);
    let fixture = fixture.crashed(0, 3);
    let keyspaces = fixture.base.keyspaces();
    assert_eq!(keyspaces.len(), 1);
    assert_eq!(keyspaces[0].name.as_str(), "test");
    assert!(keyspaces[0].config.is_compressed);
    assert_eq!(keyspaces[0].config.durability, Durability::Sync);
    let error =
        fixture.base.create_keyspace(&keyspaces[0].name, &KeyspaceConfig::default()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::AlreadyExists);
}

/// What a program of before cannot read, it refuses by the format of the index; everything else it
/// reads.
#[test]
fn keyspaces_with_groups_make_the_index_one_of_the_next_format() {
    let fixture = Fixture::new(true);
    let format = |fixture: &Fixture| {
        let value = fixture.base.index.get(Table::Meta, key::FORMAT).unwrap();
        value.as_deref().and_then(record::decode_number).unwrap()
    };
    assert_eq!(format(&fixture), 1);
    for (number, placed_by) in (0..).zip([PlacedBy::First(8), PlacedBy::UpTo(b'/')]) {
        let name = KeyspaceName::new(&format!("groups-{number}")).unwrap();
        let config = KeyspaceConfig { placed_by, ..KeyspaceConfig::default() };
        fixture.base.create_keyspace(&name, &config).unwrap();
    }
    let fixture = fixture.crashed(0, 3);
    assert_eq!(format(&fixture), 2);
    let placed: Vec<PlacedBy> =
        fixture.base.keyspaces().iter().map(|info| info.config.placed_by).collect();
    assert_eq!(placed, [PlacedBy::Key, PlacedBy::First(8), PlacedBy::UpTo(b'/')]);
    assert_eq!(fixture.base.keyspaces()[2].name.as_str(), "groups-1");
    for (number, placed_by) in (0..).zip([PlacedBy::First(3), PlacedBy::Key]) {
        let name = KeyspaceName::new(&format!("guarded-{number}")).unwrap();
        let config = KeyspaceConfig { placed_by, is_guarded: true, ..KeyspaceConfig::default() };
        fixture.base.create_keyspace(&name, &config).unwrap();
    }
    let plain = KeyspaceName::new("plain").unwrap();
    fixture.base.create_keyspace(&plain, &KeyspaceConfig::default()).unwrap();
    let fixture = fixture.crashed(0, 3);
    assert_eq!(format(&fixture), 3);
    let guarded: Vec<bool> =
        fixture.base.keyspaces().iter().map(|info| info.config.is_guarded).collect();
    assert_eq!(guarded, [false, false, false, true, true, false]);
    assert_eq!(fixture.base.keyspaces()[3].config.placed_by, PlacedBy::First(3));
}

#[test]
fn a_cleared_keyspace_is_empty_and_still_there() {
    let fixture = Fixture::new(false);
    fixture.write("a", 1, 0, &[1; 50_000]);
    fixture.write("b", 1, 0, b"small");
    fixture.base.clear_keyspace(fixture.keyspace).unwrap();
    assert_eq!(fixture.base.totals(fixture.keyspace), Totals::default());
    assert_eq!(fixture.content("a"), None);
    assert_eq!(fixture.base.keyspaces().len(), 1);
    fixture.assert_sound();
}

#[test]
fn a_dropped_keyspace_goes_in_steps_and_its_number_does_not_come_again() {
    let fixture = Fixture::new(false);
    for key in ["a", "b", "c"] {
        fixture.write(key, 1, 0, &[1; 50_000]);
    }
    fixture.base.drop_keyspace(fixture.keyspace).unwrap();
    assert!(fixture.base.keyspaces().is_empty());
    fixture.write("late", 2, 0, b"a fold of what was dropped meanwhile");
    let fixture = fixture.reopened();
    assert!(fixture.base.keyspaces().is_empty());
    let mut steps = 0;
    while fixture.base.remove_some_dropped(1).unwrap() {
        steps += 1;
    }
    assert_eq!(steps, 3);
    fixture.checkpoint(1, 1);
    assert!(fixture.extents.disk_bytes().unwrap() < 50_000);
    assert_eq!(fixture.base.scan(fixture.keyspace, b"", None, 9).unwrap(), []);
    fixture.assert_sound();
    let name = KeyspaceName::new("test").unwrap();
    let again = fixture.base.create_keyspace(&name, &KeyspaceConfig::default()).unwrap();
    assert_eq!(again, KeyspaceId(2));
}
