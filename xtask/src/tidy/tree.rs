//! The repository's text files in memory, read once.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;

/// Folders that hold nothing of ours.
const FOREIGN: [&str; 2] = ["target", ".git"];

/// What the names of files end with that are read.
const TEXT_ENDINGS: [&str; 4] = ["rs", "md", "toml", "c"];

/// Names without an extension that are text all the same.
const TEXT_NAMES: [&str; 2] = ["justfile", "run"];

/// The repository: text files with their content, and the names of all others.
#[derive(Debug, Default)]
pub struct Tree {
    /// Path relative to the root, with `/`, to content. Empty for files that are not text.
    pub files: BTreeMap<String, String>,
}

impl Tree {
    /// Reads every file below `root`, but for foreign folders.
    pub fn read(root: &Path) -> io::Result<Self> {
        let mut tree = Self::default();
        tree.read_folder(root, "")?;
        Ok(tree)
    }

    fn read_folder(&mut self, root: &Path, folder: &str) -> io::Result<()> {
        for entry in std::fs::read_dir(root.join(folder))? {
            let entry = entry?;
            let name = entry.file_name().to_string_lossy().into_owned();
            let path = if folder.is_empty() { name.clone() } else { format!("{folder}/{name}") };
            if entry.file_type()?.is_dir() {
                if !FOREIGN.contains(&name.as_str()) {
                    self.read_folder(root, &path)?;
                }
                continue;
            }
            let extension = name.rsplit_once('.').map_or("", |(_, extension)| extension);
            let is_text = TEXT_ENDINGS.contains(&extension) || TEXT_NAMES.contains(&name.as_str());
            let content =
                if is_text { std::fs::read_to_string(entry.path())? } else { String::new() };
            self.files.insert(path, content);
        }
        Ok(())
    }

    /// Files with this ending, in order of path.
    pub fn with_ending<'a>(
        &'a self,
        ending: &'a str,
    ) -> impl Iterator<Item = (&'a str, &'a str)> + 'a {
        self.files
            .iter()
            .filter(move |(path, _)| path.ends_with(ending))
            .map(|(path, content)| (path.as_str(), content.as_str()))
    }

    /// The content of a file; `None` when it is not there.
    pub fn text(&self, path: &str) -> Option<&str> {
        self.files.get(path).map(String::as_str)
    }

    /// Whether this is a file or a folder of the tree.
    pub fn has(&self, path: &str) -> bool {
        let path = path.trim_end_matches('/');
        let folder = format!("{path}/");
        path.is_empty()
            || self.files.contains_key(path)
            || self
                .files
                .range(folder.clone()..)
                .next()
                .is_some_and(|(p, _)| p.starts_with(&folder))
    }

    /// A tree of these files, for tests.
    #[cfg(test)]
    pub fn of(files: &[(&str, &str)]) -> Self {
        let own = |(path, content): &(&str, &str)| ((*path).to_owned(), (*content).to_owned());
        Self { files: files.iter().map(own).collect() }
    }
}

/// The line (from 1) on which `needle` first begins; 1 when it is nowhere.
pub fn line_of(text: &str, needle: &str) -> usize {
    text.find(needle).map_or(1, |at| text[..at].matches('\n').count() + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_of_others_are_left_out() {
        let root = tempfile::tempdir().unwrap();
        for path in ["target/debug/x.rs", ".git/y.rs", "src/z.rs", "picture.png"] {
            let path = root.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, b"\xFF").ok();
        }
        std::fs::write(root.path().join("src/z.rs"), "fn z() {}").unwrap();
        let tree = Tree::read(root.path()).unwrap();
        assert_eq!(tree.files.keys().collect::<Vec<_>>(), ["picture.png", "src/z.rs"]);
    }

    #[test]
    fn folders_are_there_when_a_file_lies_in_them() {
        let tree = Tree::of(&[("docs/start.md", "")]);
        assert!(tree.has("docs") && tree.has("docs/") && tree.has("docs/start.md"));
        assert!(!tree.has("doc") && !tree.has("docs/guide"));
    }
}
