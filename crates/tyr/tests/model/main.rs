//! A store beside a model of it: random operations, the same answers, step by step.
//!
//! In a store in this process memory is small, and folds begin after little log, so that blobs
//! leave memory and come back, and reads find some of their bytes in memory, some in the base and
//! some in extents. The store is reopened now and then, and compared whole. A cluster takes the
//! same steps but for checks; its blobs are shorter, so that their chunks fit a
//! chain, and numbers aligned.

#![allow(clippy::unwrap_used, reason = "a test fails where it cannot go on")]

#[path = "../choice/mod.rs"]
mod choice;
mod compare;
mod held;
#[path = "../reference/mod.rs"]
mod reference;
mod script;
mod words;

use std::collections::BTreeMap;
use std::io::Read;

use choice::Chooser;
use compare::{assert_found, assert_same, assert_sound, compare_whole, kind, listed};
use held::Held;
use reference::{Model, Space};
use script::{ErrorKindOrder, Script};
use tyr::blocking::{Keyspace, Transaction, Tyr};
use tyr::{
    ByteRange, Bytes, Durability, ErrorKind, Key, KeyspaceConfig, ReadRequest, Scan, ScanEntry,
};
use tyr_chance::{new_seed, part};
use tyr_testing::{Kind, Opened};
use words::{answer, perform};

/// Steps of one run in this process, and on a cluster, where each takes milliseconds.
const STEPS: u64 = 24_000;
const STEPS_OF_CLUSTER: u64 = 1_800;
/// Steps between reopenings.
const REOPEN_EVERY: u64 = 1_500;
const RECONNECT_EVERY: u64 = 300;
/// Blobs up to this size are compared whole after every change.
const SMALL: u64 = 40_000;

type Handles = BTreeMap<String, Keyspace>;

/// Where the store is.
enum Place {
    Folder(tempfile::TempDir),
    Cluster(Opened),
}

struct Run {
    place: Place,
    tyr: Option<Tyr>,
    model: Model,
    handles: Handles,
    held: Vec<Held>,
    choose: Chooser,
    generation: u64,
    /// Snapshot reads that were answered.
    snapshot_reads: u64,
    /// Transactions that committed, and that met a conflict.
    commits: u64,
    conflicts: u64,
    /// Transactions whose version was gone before they were done.
    too_old: u64,
    folds: u64,
}

#[test]
fn store_answers_like_its_model() {
    run_like_model(new_seed("store_answers_like_its_model"));
}

#[test]
fn store_answers_like_its_model_from_a_fixed_seed() {
    run_like_model(7);
}

#[test]
fn cluster_answers_like_its_model() {
    let seed = new_seed("cluster_answers_like_its_model");
    let opened = Opened::new(Kind::Cluster);
    let tyr = opened.tyr.clone();
    let mut run = Run::new(Place::Cluster(opened), tyr, Chooser::of_cluster(seed));
    let steps = part(STEPS_OF_CLUSTER);
    for step in 1..=steps {
        run.step();
        if step % RECONNECT_EVERY == 0 {
            run.reconnect();
        }
    }
    run.report();
    // A few hundred steps of any seed: how many conflicts there are is left to chance.
    assert!(run.commits > steps / 100, "many transactions commit");
    assert!(run.snapshot_reads > 0, "snapshots answer");
}

fn run_like_model(seed: u64) {
    let folder = tempfile::tempdir().unwrap();
    let tyr = open(&folder);
    let choose = Chooser::new(seed);
    let mut run = Run::new(Place::Folder(folder), tyr, choose);
    let steps = part(STEPS);
    for step in 1..=steps {
        run.step();
        if step % REOPEN_EVERY == 0 {
            run.reopen();
        }
    }
    run.report();
    assert!(run.commits > steps / 20, "most transactions commit");
    assert!(run.too_old < steps / 200, "few meet a fold that has waited for long");
    assert!(run.conflicts > steps / 3_000, "some transactions meet a conflict");
    assert!(run.snapshot_reads > steps / 120, "snapshots answer");
    assert!(run.folds > steps / REOPEN_EVERY, "folds go on beside it");
}

fn configurations() -> Vec<(&'static str, KeyspaceConfig)> {
    let buffered =
        || KeyspaceConfig { durability: Durability::Buffered, ..KeyspaceConfig::default() };
    vec![
        ("sync", KeyspaceConfig::default()),
        ("buffered", buffered()),
        ("memory", KeyspaceConfig { durability: Durability::Memory, ..buffered() }),
        ("compressed", KeyspaceConfig { is_compressed: true, ..buffered() }),
        ("newest", KeyspaceConfig { is_multi_versioned: false, ..buffered() }),
        ("chunks", KeyspaceConfig { chunk_size: 4096, ..buffered() }),
    ]
}

fn open(folder: &tempfile::TempDir) -> Tyr {
    let options = Tyr::options().cache_bytes(8 << 20).fold_log_bytes(96 << 10);
    let options = options.fold_step_bytes(16 << 10);
    options.open_blocking(folder.path()).unwrap()
}

impl Run {
    fn new(place: Place, tyr: Tyr, choose: Chooser) -> Self {
        let mut run = Self {
            place,
            tyr: Some(tyr),
            model: Model::default(),
            handles: Handles::new(),
            held: Vec::new(),
            choose,
            generation: 0,
            snapshot_reads: 0,
            commits: 0,
            conflicts: 0,
            too_old: 0,
            folds: 0,
        };
        let is_cluster = matches!(run.place, Place::Cluster(_));
        for (name, config) in configurations() {
            // A cluster has none that forget.
            if !is_cluster || config.durability != Durability::Memory {
                run.create_keyspace(name, config);
            }
        }
        run
    }

    fn report(&self) {
        println!(
            "{} commits, {} conflicts, {} too old, {} reads at snapshots, {} folds",
            self.commits, self.conflicts, self.too_old, self.snapshot_reads, self.folds
        );
    }

    fn kind(&self) -> Kind {
        match self.place {
            Place::Folder(_) => Kind::Embedded,
            Place::Cluster(_) => Kind::Cluster,
        }
    }

    /// The name that a keyspace of the model has in the store.
    fn name(&self, space: &str) -> String {
        match &self.place {
            Place::Folder(_) => space.to_owned(),
            Place::Cluster(opened) => opened.name(space),
        }
    }

    fn tyr(&self) -> &Tyr {
        self.tyr.as_ref().expect("the store is open between steps")
    }

    fn step(&mut self) {
        match self.choose.random.below(1000) {
            0..600 => self.change(),
            600..705 => self.read(),
            705..720 => self.stretches(),
            720..760 => self.scan(),
            760..765 => self.read_many(),
            765..880 => self.transact(),
            880..895 => self.hold(),
            895..970 => self.read_held(),
            970..996 => self.let_go(),
            996..998 => self.renew_keyspace(),
            _ => self.sweep(),
        }
    }

    // -- one blob --------------------------------------------------------------------------

    fn change(&mut self) {
        let (space, key) = self.choose.blob(&self.model);
        let change = self.choose.change(self.model.blob(&space, &key));
        let keyspace = &self.handles[&space];
        let expected = self.model.change(&space, &key, &change);
        let got = kind(perform(keyspace, &key, &change));
        assert_eq!(got, expected, "{space}/{}: {change:?}", key.escape_ascii());
        self.compare(&space, &key);
    }

    fn compare(&mut self, space: &str, key: &[u8]) {
        let (keyspace, blob) = (&self.handles[space], self.model.blob(space, key));
        let context = format!("{space}/{}", key.escape_ascii());
        let stat = kind(keyspace.stat(key)).map(|stat| stat.size);
        assert_eq!(stat, blob.map(|blob| blob.size).ok_or(ErrorKind::NotFound), "{context}");
        match blob {
            None => assert_eq!(kind(keyspace.get(key)), Err(ErrorKind::NotFound), "{context}"),
            Some(blob) if blob.size <= SMALL => {
                assert_same(&keyspace.get(key).unwrap(), &blob.read(0, SMALL), &context);
            }
            Some(blob) => {
                let (offset, len) = self.choose.range(blob.size);
                let got = keyspace.read(key, offset, len).unwrap();
                assert_same(&got, &blob.read(offset, len), &format!("{context} {offset}+{len}"));
            }
        }
    }

    /// What is there is in no hole.
    fn stretches(&mut self) {
        let (space, key) = self.choose.blob(&self.model);
        let (keyspace, blob) = (&self.handles[&space], self.model.blob(&space, &key));
        let context = format!("{space}/{}", key.escape_ascii());
        let Some(blob) = blob else {
            let got = kind(keyspace.stretches(&key, ByteRange::ALL));
            return assert_eq!(got, Err(ErrorKind::NotFound), "{context}");
        };
        let (offset, len) = self.choose.range(blob.size);
        let range = ByteRange { start: offset, end: offset + len };
        let (mut written, mut next) = (Vec::new(), Some(offset));
        while let Some(start) = next {
            let page = keyspace.stretches(&key, ByteRange { start, ..range }).unwrap();
            assert!(page.resume.is_none_or(|resume| start < resume && resume < range.end));
            (written, next) = ([written, page.written].concat(), page.resume);
        }
        assert!(written.is_sorted_by(|one, next| one.end <= next.start), "{context}: {written:?}");
        assert!(written.iter().all(|it| !it.is_empty() && it.end <= blob.size.min(range.end)));
        for (place, byte) in (offset..).zip(blob.read(offset, len)) {
            let is_written = written.iter().any(|it| it.start <= place && place < it.end);
            assert!(byte == 0 || is_written, "{context}: {place} is in a hole of {written:?}");
        }
    }

    fn read(&mut self) {
        let (space, key) = self.choose.blob(&self.model);
        let size = self.model.blob(&space, &key).map_or(0, |blob| blob.size);
        let (offset, len) = self.choose.range(size);
        let (keyspace, blob) = (&self.handles[&space], self.model.blob(&space, &key));
        let context = format!("{space}/{} {offset}+{len} of {size}", key.escape_ascii());
        if self.choose.random.permille(200) {
            let range = ByteRange { start: offset, end: offset + len };
            let got = kind(keyspace.reader(&key, range).map(|mut reader| {
                let mut bytes = Vec::new();
                reader.read_to_end(&mut bytes).unwrap();
                bytes
            }));
            assert_found(got, blob.map(|blob| blob.read(offset, len)), &context);
        } else if size <= SMALL && self.choose.random.permille(300) {
            assert_found(kind(keyspace.get(&key)), blob.map(|blob| blob.read(0, SMALL)), &context);
        } else {
            let got = kind(keyspace.read(&key, offset, len));
            assert_found(got, blob.map(|blob| blob.read(offset, len)), &context);
        }
    }

    fn scan(&mut self) {
        let space = self.choose.space(&self.model);
        let (prefix, after, limit) = self.choose.scan();
        let after_key = after.as_ref().map(|after| Key::new(after).unwrap());
        let got = self.handles[&space].scan(&prefix, after_key.as_ref(), limit).unwrap();
        let expected = self.model.scan(&space, &prefix, after.as_deref(), limit);
        assert_eq!(listed(&got), expected, "{space}: scan {prefix:?} after {after:?} {limit}");
        self.scan_pages(&space, &prefix, after.as_deref(), limit.max(3));
    }

    /// The same in pages, with first bytes, perhaps with groups.
    fn scan_pages(&mut self, space: &str, prefix: &[u8], after: Option<&[u8]>, limit: usize) {
        let is_grouped = self.choose.random.permille(500);
        let scan = Scan::new().prefix(prefix).limit(limit).first_bytes(100);
        let scan = after.into_iter().fold(scan, Scan::after);
        let scan = if is_grouped { scan.delimiter("/") } else { scan };
        let (mut got, mut groups) = (Vec::new(), Vec::new());
        for page in self.handles[space].scan_pages(&scan) {
            let page = page.unwrap();
            assert!(page.is_end() || page.entries.len() + page.groups.len() == limit);
            groups.extend(page.groups.iter().map(|group| group.to_vec()));
            let seen = |entry: ScanEntry| (entry.key.as_bytes().to_vec(), entry.bytes.to_vec());
            got.extend(page.entries.into_iter().map(seen));
        }
        let (mut expected, mut expected_groups) = (Vec::new(), Vec::new());
        for (key, _) in self.model.scan(space, prefix, after, usize::MAX) {
            let slash = key[prefix.len()..].iter().position(|byte| *byte == b'/');
            match slash.filter(|_| is_grouped) {
                Some(at) => expected_groups.push(key[..=prefix.len() + at].to_vec()),
                None => {
                    let blob = self.model.blob(space, &key).unwrap();
                    expected.push((key.clone(), blob.read(0, 100)));
                }
            }
        }
        expected_groups.dedup();
        assert_eq!(got, expected, "{space}: pages of {scan:?}");
        assert_eq!(groups, expected_groups, "{space}: groups of {scan:?}");
    }

    fn read_many(&mut self) {
        let mut wanted = Vec::new();
        let mut expected = Vec::new();
        for _ in 0..8 {
            let (space, key) = self.choose.blob(&self.model);
            let blob = self.model.blob(&space, &key);
            let (offset, len) = self.choose.range(blob.map_or(0, |blob| blob.size));
            let range = ByteRange { start: offset, end: offset + len };
            let keyspace = self.handles[&space].clone().into_async();
            wanted.push(ReadRequest { keyspace, key: Key::new(&key).unwrap(), range });
            expected.push(self.model.blob(&space, &key).map(|blob| blob.read(offset, len)));
        }
        let got = self.tyr().read_many(&wanted).unwrap();
        for (got, expected) in got.into_iter().zip(expected) {
            assert_found(got.ok_or(ErrorKind::NotFound), expected, "read_many");
        }
    }

    // -- transactions ----------------------------------------------------------------------

    /// A transaction, perhaps with a change by somebody else in its middle.
    fn transact(&mut self) {
        let mut transaction = self.tyr().begin();
        let mut script = Script::new(&self.model);
        let count = 1 + self.choose.random.below(8);
        let intruder =
            self.choose.random.permille(250).then(|| self.choose.random.below(count + 1));
        let mut intruded = None;
        for n in 0..count {
            if intruder == Some(n) {
                intruded = Some(self.intrude(&script));
                match self.kind() {
                    Kind::Embedded => script.rebase(&self.model),
                    Kind::Cluster => script.rebase_unread(&self.model),
                }
            }
            let (space, key) = self.choose.blob(&self.model);
            let view = script.view.blob(&space, &key);
            let keyspace = &self.handles[&space];
            if self.choose.random.permille(650) {
                let change = self.choose.change_in_transaction(view);
                script.change(&mut transaction, keyspace, &space, &key, change);
            } else {
                let range = self.choose.range(view.map_or(0, |blob| blob.size));
                let is_done = script.read(&mut transaction, keyspace, &space, &key, range);
                if !is_done {
                    self.too_old += 1;
                    return;
                }
            }
        }
        if intruder == Some(count) {
            intruded = Some(self.intrude(&script));
        }
        if self.choose.random.permille(100) {
            transaction.rollback();
        } else {
            self.commit(transaction, script, intruded);
        }
    }

    /// Changes a blob while a transaction is open, half the time one that it has read or changed.
    fn intrude(&mut self, script: &Script) -> (String, Vec<u8>) {
        let met: Vec<_> = script.blobs().into_iter().collect();
        let meets = !met.is_empty() && self.choose.random.permille(500);
        let (space, key) =
            if meets { self.choose.pick(&met) } else { self.choose.blob(&self.model) };
        let change = self.choose.change(self.model.blob(&space, &key));
        let expected = self.model.change(&space, &key, &change);
        assert_eq!(kind(perform(&self.handles[&space], &key, &change)), expected, "{change:?}");
        (space, key)
    }

    fn commit(
        &mut self,
        transaction: Transaction,
        script: Script,
        intruded: Option<(String, Vec<u8>)>,
    ) {
        let context = format!("{:?} with {intruded:?} between", script.steps);
        let replayed = script.replay(&self.model);
        match kind(transaction.commit()) {
            Ok(committed) => {
                assert!(replayed.refusals.is_empty(), "{:?}: {context}", replayed.refusals);
                assert!(replayed.holds, "stale reads were committed: {context}");
                for (id, change, expected) in &replayed.answers {
                    let got = answer(&committed, *id, change);
                    assert_eq!(got, *expected, "{change:?} of {context}");
                }
                self.model = replayed.model;
                self.commits += 1;
            }
            // A fold that has waited for long ends those who read.
            Err(ErrorKind::SnapshotTooOld) => self.too_old += 1,
            Err(ErrorKind::Conflict) if intruded.as_ref().is_some_and(|at| script.has_read(at)) => {
                self.conflicts += 1;
            }
            Err(kind) => {
                assert!(replayed.holds, "only conditions can fail with {kind:?}: {context}");
                assert!(replayed.refusals.contains(&ErrorKindOrder(kind)), "{kind:?}: {context}");
            }
        }
        for (space, key) in script.blobs() {
            self.compare(&space, &key);
        }
    }

    // -- keyspaces, the whole store --------------------------------------------------------

    fn create_keyspace(&mut self, name: &str, config: KeyspaceConfig) {
        let keyspace = self.tyr().create_keyspace(&self.name(name), config.clone()).unwrap();
        self.handles.insert(name.to_owned(), keyspace);
        self.generation += 1;
        let space = Space { config, blobs: BTreeMap::new(), generation: self.generation };
        self.model.spaces.insert(name.to_owned(), space);
    }

    /// Drops a keyspace and makes it anew.
    fn renew_keyspace(&mut self) {
        let name = self.choose.space(&self.model);
        let stored = self.name(&name);
        self.tyr().drop_keyspace(&stored).unwrap();
        let old = &self.handles[&name];
        assert_eq!(kind(old.put("a", "x")), Err(ErrorKind::NotFound));
        assert_eq!(kind(old.get("a")), Err(ErrorKind::NotFound));
        assert_eq!(kind(self.tyr().keyspace(&stored)).map(drop), Err(ErrorKind::NotFound));
        let config = old.config().clone();
        self.create_keyspace(&name, config.clone());
        let twice = self.tyr().create_keyspace(&stored, config);
        assert_eq!(kind(twice).map(drop), Err(ErrorKind::AlreadyExists));
    }

    /// Verifies everything on disk, then compares everything.
    fn sweep(&mut self) {
        // The check folds first, and that waits for older snapshots.
        self.held.clear();
        if self.kind() == Kind::Embedded {
            let report = self.tyr().check(&mut |_| {}).unwrap();
            assert_sound(&report);
        }
        self.compare_all();
    }

    fn compare_all(&self) {
        for (name, space) in &self.model.spaces {
            let keyspace = &self.handles[name];
            let listing: Result<Vec<_>, _> = keyspace.scan_iter(b"").collect();
            assert_eq!(listed(&listing.unwrap()), self.model.scan(name, b"", None, usize::MAX));
            for (key, blob) in &space.blobs {
                compare_whole(keyspace, key, blob);
            }
        }
    }

    fn reopen(&mut self) {
        self.folds += self.tyr().statistics().folds;
        self.close();
        let Place::Folder(folder) = &self.place else { panic!("only a folder is reopened") };
        let report = tyr::check(folder.path(), &mut |_| {}).unwrap();
        assert_sound(&report);
        let tyr = open(folder);
        for (name, space) in &mut self.model.spaces {
            if space.config.durability == Durability::Memory {
                space.blobs.clear();
            }
            self.handles.insert(name.clone(), tyr.keyspace(name).unwrap());
        }
        self.tyr = Some(tyr);
        self.compare_all();
    }

    /// The program ends, and another one connects.
    fn reconnect(&mut self) {
        self.close();
        let Place::Cluster(opened) = &self.place else { panic!("only a cluster is connected to") };
        let tyr = opened.other();
        for name in self.model.spaces.keys() {
            self.handles.insert(name.clone(), tyr.keyspace(&opened.name(name)).unwrap());
        }
        self.tyr = Some(tyr);
        self.compare_all();
    }

    /// Closes the store, or drops it with all its handles.
    fn close(&mut self) {
        self.held.clear();
        let tyr = self.tyr.take().expect("the store is open between steps");
        if self.choose.random.permille(500) {
            self.handles.clear();
            drop(tyr);
        } else {
            tyr.close().unwrap();
            for keyspace in self.handles.values() {
                assert_eq!(kind(keyspace.put("a", "x")), Err(ErrorKind::Unavailable));
                assert_eq!(kind(keyspace.get("a")), Err(ErrorKind::Unavailable));
            }
        }
    }
}

/// The type that the store answers with; named so that a change of it is noticed here.
const _: fn(&Keyspace) -> tyr::Result<Bytes> = |keyspace| keyspace.get("a");
