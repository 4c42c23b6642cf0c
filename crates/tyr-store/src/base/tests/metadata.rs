//! Service metadata lasts as it was written, a change as a whole or not at all.

use crate::base::MetadataRow;

use super::*;

fn row(created: u64, changed: u64, value: &'static str) -> MetadataRow {
    MetadataRow { created, changed, value: Bytes::from_static(value.as_bytes()) }
}

#[test]
fn what_was_written_survives_a_loss_of_power_with_its_revisions() {
    let fixture = Fixture::new(false);
    assert_eq!(fixture.base.metadata().unwrap(), MetadataRows::default());
    let (a, b) = (b"service/a".as_slice(), b"service/b".as_slice());
    fixture.base.put_metadata(1, [(a, Some(row(1, 1, "one"))), (b, Some(row(1, 1, "")))]).unwrap();
    fixture.base.put_metadata(2, [(a, Some(row(1, 2, "two"))), (b, None)]).unwrap();
    // The blobs of a keyspace lie beside it.
    fixture.write("service/a", 1, 0, b"a blob");
    let fixture = fixture.crashed(0, 3);
    let rows = vec![(a.to_vec(), row(1, 2, "two"))];
    assert_eq!(fixture.base.metadata().unwrap(), MetadataRows { revision: 2, rows });
    fixture.assert_sound();
}

#[test]
fn metadata_whose_bytes_make_no_sense_is_damage_that_names_its_key() {
    let fixture = Fixture::new(false);
    let mut batch = IndexBatch::new();
    batch.put(Table::Meta, [key::METADATA, b"x"].concat(), vec![0; 15]);
    fixture.base.index.commit(batch).unwrap();
    let error = fixture.base.metadata().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Corrupt);
    assert!(error.message().contains("\"mx\""), "{error}");
}
