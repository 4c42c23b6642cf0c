//! Snapshots in use, and what they should show.

use std::thread;
use std::time::Duration;

use tyr::blocking::Snapshot;
use tyr::{ByteRange, ErrorKind, Key};

use super::compare::{assert_found, flat, kind, listed};
use super::reference::Model;
use super::{Handles, Run};
use tyr_testing::Kind;

/// A snapshot in use, with what it should show.
pub struct Held {
    snapshot: Snapshot,
    model: Model,
    handles: Handles,
}

impl Run {
    pub fn hold(&mut self) {
        if self.held.len() < 4 {
            let snapshot = self.tyr().snapshot().unwrap();
            let (model, handles) = (self.model.clone(), self.handles.clone());
            self.held.push(Held { snapshot, model, handles });
        }
    }

    pub fn let_go(&mut self) {
        if !self.held.is_empty() {
            let index = self.choose.random.below(self.held.len() as u64) as usize;
            self.held.swap_remove(index);
        }
    }

    pub fn read_held(&mut self) {
        if self.held.is_empty() {
            self.hold();
        }
        let index = self.choose.random.below(self.held.len() as u64) as usize;
        let Held { snapshot, model, handles } = &self.held[index];
        let (space, key) = self.choose.blob(model);
        let (keyspace, blob) = (&handles[&space], model.blob(&space, &key));
        let is_gone = self.model.spaces.get(&space).map(|space| space.generation)
            != Some(model.spaces[&space].generation);
        let (offset, len) = self.choose.range(blob.map_or(0, |blob| blob.size));
        let context = format!("snapshot of {space}/{} {offset}+{len}", key.escape_ascii());
        let (got, expected) = match self.choose.random.below(4) {
            0 => {
                let (prefix, after, limit) = self.choose.scan();
                let after_key = after.as_ref().map(|after| Key::new(after).unwrap());
                let got = snapshot.scan(keyspace, &prefix, after_key.as_ref(), limit);
                // A keyspace without older versions is listed as it is now.
                let listed_at = match model.spaces[&space].config.is_multi_versioned || is_gone {
                    true => model,
                    false => &self.model,
                };
                let expected = listed_at.scan(&space, &prefix, after.as_deref(), limit);
                (kind(got).map(|got| flat(&listed(&got))), Some(flat(&expected)))
            }
            1 => {
                let got = kind(snapshot.stat(keyspace, &key)).map(|stat| stat.size);
                let got = got.map(|size| size.to_le_bytes().to_vec());
                (got, blob.map(|blob| blob.size.to_le_bytes().to_vec()))
            }
            2 => {
                let range = ByteRange { start: offset, end: offset + len };
                let reader = kind(snapshot.reader(keyspace, &key, range));
                let read = reader.and_then(|mut reader| {
                    let mut bytes = Vec::new();
                    while let Some(piece) = kind(reader.next())? {
                        bytes.extend_from_slice(&piece);
                    }
                    Ok(bytes)
                });
                (read, blob.map(|blob| blob.read(offset, len)))
            }
            _ => {
                let got = kind(snapshot.read(keyspace, &key, offset, len));
                (got.map(|got| got.to_vec()), blob.map(|blob| blob.read(offset, len)))
            }
        };
        if is_gone {
            let is_refused = matches!(got, Err(ErrorKind::NotFound | ErrorKind::SnapshotTooOld));
            // Nodes hear of it one after the other: a connection that did not drop it itself may
            // read there for a moment.
            let is_soon_refused = || {
                let mut looks = (0..100).map(|_| {
                    thread::sleep(Duration::from_millis(50));
                    kind(snapshot.stat(keyspace, &key)).map(drop)
                });
                looks.any(|got| matches!(got, Err(ErrorKind::NotFound | ErrorKind::SnapshotTooOld)))
            };
            assert!(
                is_refused || self.kind() == Kind::Cluster && is_soon_refused(),
                "{context} of a keyspace that is gone: {got:?}"
            );
        } else if got == Err(ErrorKind::SnapshotTooOld) {
            // A fold may end a snapshot that has held it up for long, and keyspaces of one
            // version have no other.
            if model.spaces[&space].config.is_multi_versioned {
                self.held.swap_remove(index);
            }
        } else {
            assert_found(got, expected, &context);
            self.snapshot_reads += 1;
        }
    }
}
