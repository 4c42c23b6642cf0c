//! A store's folder in memory, to be written out again and again, each time with another harm.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::Path;

use super::harm::{Harm, Kind};

/// A folder in memory, where the machine has one: nothing here needs a disk, and many are written.
pub fn temporary() -> tempfile::TempDir {
    tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap()
}

/// A file: its length, and its bytes up to the last that is not zero.
struct Content {
    len: u64,
    bytes: Vec<u8>,
}

/// The files of a folder, by name relative to it.
pub struct Folder {
    files: BTreeMap<String, Content>,
    folders: Vec<String>,
}

impl Folder {
    /// Reads a folder; of a store that is open this is what a kill leaves.
    pub fn read(path: &Path) -> Self {
        let mut folder = Self { files: BTreeMap::new(), folders: Vec::new() };
        folder.add(path, "");
        folder
    }

    fn add(&mut self, root: &Path, below: &str) {
        for entry in fs::read_dir(root.join(below)).unwrap() {
            let entry = entry.unwrap();
            let name = format!("{below}{}", entry.file_name().to_str().unwrap());
            if entry.file_type().unwrap().is_dir() {
                self.folders.push(name.clone());
                self.add(root, &format!("{name}/"));
                continue;
            }
            let mut bytes = fs::read(entry.path()).unwrap();
            let len = bytes.len() as u64;
            bytes.truncate(bytes.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1));
            self.files.insert(name, Content { len, bytes });
        }
    }

    /// Names and how many bytes of each matter.
    pub fn files(&self) -> impl Iterator<Item = (&str, usize)> {
        self.files.iter().map(|(name, content)| (name.as_str(), content.bytes.len()))
    }

    /// Where in a file these bytes are first.
    pub fn find(&self, file: &str, bytes: &[u8]) -> Option<usize> {
        self.files[file].bytes.windows(bytes.len()).position(|window| window == bytes)
    }

    /// The byte at a place.
    pub fn byte(&self, file: &str, at: usize) -> u8 {
        self.files[file].bytes[at]
    }

    /// Writes the folder out, harmed.
    pub fn write(&self, path: &Path, harm: &Harm) {
        for folder in &self.folders {
            fs::create_dir_all(path.join(folder)).unwrap();
        }
        for (name, content) in &self.files {
            let is_harmed = *name == harm.file;
            if is_harmed && harm.kind == Kind::Remove {
                continue;
            }
            let mut bytes = content.bytes.clone();
            let mut len = content.len;
            if is_harmed {
                match harm.kind {
                    Kind::Flip(mask) => bytes[harm.at] ^= mask,
                    Kind::ZeroByte => bytes[harm.at] = 0,
                    Kind::ZeroPage => {
                        let start = harm.at / 4096 * 4096;
                        let end = bytes.len().min(start + 4096);
                        bytes[start..end].fill(0);
                    }
                    Kind::Cut => {
                        bytes.truncate(harm.at);
                        len = harm.at as u64;
                    }
                    Kind::Remove => {}
                }
            }
            let file = File::create(path.join(name)).unwrap();
            file.write_all_at(&bytes, 0).unwrap();
            file.set_len(len).unwrap();
        }
    }
}
