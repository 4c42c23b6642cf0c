//! Who may read and write which keys of the service metadata.
//!
//! A key `access/<prefix>` gives rights over all keys that begin with that prefix. Its value is
//! text, one right a line, `*` for everybody; who may write may read:
//!
//! ```text
//!   access/service/log/   ──►   read: *
//!                               write: alice bob
//! ```
//!
//! Of all prefixes that a key begins with, the longest that has such a key decides, alone. Without
//! one nobody but administrators has a right. What the cluster uses itself ([`super::reserved`])
//! is not for users, whatever anybody writes here.

use tyr_types::{Error, ErrorKind, Result};

use super::{Store, reserved};

/// Where rights are kept.
pub const PREFIX: &str = "access/";

/// The name of who asks where nobody is asked for a name.
pub const ANYBODY: &str = "anybody";

/// Who asks.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum Actor {
    /// The cluster itself.
    System,
    /// A user, by name.
    User {
        /// The name.
        name: String,
        /// Whether everything that is not the system's own is allowed.
        is_administrator: bool,
    },
}

/// What somebody wants to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wish {
    /// Look at it, or make it a condition.
    Read,
    /// Change it.
    Write,
}

/// The rights that one entry gives.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rights {
    readers: Vec<String>,
    writers: Vec<String>,
}

impl Rights {
    /// Reads the value of an entry.
    ///
    /// # Errors
    /// `InvalidArgument` that says what the lines look like.
    pub fn parse(value: &[u8]) -> Result<Self> {
        let wrong = |what: &str| {
            Error::invalid(format!(
                "rights are lines such as \"read: *\" and \"write: alice bob\"; {what}"
            ))
        };
        let text = std::str::from_utf8(value).map_err(|_| wrong("these are not UTF-8"))?;
        let mut rights = Self::default();
        for line in text.lines().map(str::trim).filter(|line| !line.is_empty()) {
            let Some((right, names)) = line.split_once(':') else {
                return Err(wrong(&format!("there is no colon in {line:?}")));
            };
            let list = match right.trim() {
                "read" => &mut rights.readers,
                "write" => &mut rights.writers,
                other => return Err(wrong(&format!("{other:?} is no right"))),
            };
            list.extend(names.split_whitespace().map(str::to_owned));
        }
        Ok(rights)
    }

    fn allows(&self, name: &str, wish: Wish) -> bool {
        let is_named = |list: &[String]| list.iter().any(|it| it == name || it == "*");
        match wish {
            Wish::Read => is_named(&self.readers) || is_named(&self.writers),
            Wish::Write => is_named(&self.writers),
        }
    }
}

/// Whether the actor may do that with the key.
pub fn is_allowed(store: &Store, actor: &Actor, path: &str, wish: Wish) -> bool {
    let (name, is_administrator) = match actor {
        Actor::System => return true,
        Actor::User { name, is_administrator } => (name, *is_administrator),
    };
    if is_administrator {
        return wish == Wish::Read || !reserved::is_system(path);
    }
    let is_reserved = [reserved::CLUSTER, reserved::USERS, reserved::QUOTAS, PREFIX];
    if is_reserved.iter().any(|prefix| path.starts_with(prefix)) {
        return false;
    }
    deciding(store, path).is_some_and(|rights| rights.allows(name, wish))
}

/// Refuses what the actor may not do.
///
/// # Errors
/// `PermissionDenied` that names the key.
pub fn check(store: &Store, actor: &Actor, path: &str, wish: Wish) -> Result<()> {
    if is_allowed(store, actor, path, wish) {
        return Ok(());
    }
    let name = match actor {
        Actor::System => "the system",
        Actor::User { name, .. } => name,
    };
    let verb = if wish == Wish::Read { "read" } else { "write" };
    Err(Error::new(
        ErrorKind::PermissionDenied,
        format!("{name} may not {verb} {path}; an administrator can put {PREFIX}<prefix> for it"),
    ))
}

/// The rights of the longest prefix of the key that has any.
fn deciding(store: &Store, path: &str) -> Option<Rights> {
    let ends = path.char_indices().map(|(at, c)| at + c.len_utf8());
    let lengths: Vec<usize> = ends.collect();
    for len in lengths.into_iter().rev() {
        if let Some(entry) = store.get(&format!("{PREFIX}{}", &path[..len])) {
            // Only what can be read is ever put; what cannot gives nobody anything.
            return Some(Rights::parse(&entry.value).unwrap_or_default());
        }
    }
    None
}
