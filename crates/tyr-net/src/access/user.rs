//! A user: hashes of keys, and rights by keyspace, as they lie in the service metadata.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use tyr_types::{Error, KeyspaceId, Result};

use super::key::KeyHash;

/// Keys of a user at most: an old and a new one for each of a few services.
const KEYS_MAX: usize = 8;

const _: () = assert!(KEYS_MAX >= 2, "an old one and a new one");

/// What may be done with a keyspace; each includes those before.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, strum::EnumCount,
)]
#[serde(rename_all = "lowercase")]
pub enum Right {
    /// Reading.
    Read,
    /// Calling methods of objects too, by which what they are for is changed, and nothing else.
    Call,
    /// Writing too.
    Write,
    /// Dropping the keyspace, and giving others rights on it.
    Admin,
}

impl Right {
    /// All, in order.
    pub const ALL: [Self; <Self as strum::EnumCount>::COUNT] =
        [Self::Read, Self::Call, Self::Write, Self::Admin];

    /// Its name, as in commands and messages.
    pub fn name(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Call => "call",
            Self::Write => "write",
            Self::Admin => "admin",
        }
    }

    /// The right of this name.
    ///
    /// # Errors
    /// `InvalidArgument`, with the names.
    pub fn parse(text: &str) -> Result<Self> {
        Self::ALL.into_iter().find(|right| right.name() == text).ok_or_else(|| {
            Error::invalid(format!("a right is read, call, write or admin, not \"{text}\""))
        })
    }
}

const _: () = {
    let mut place = 0;
    while place < Right::ALL.len() {
        assert!(Right::ALL[place] as usize == place, "each includes those before");
        place += 1;
    }
};

/// A user.
#[derive(Clone, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct User {
    /// Hashes of the keys by which it is let in, as hexadecimal digits.
    keys: Vec<String>,
    /// Whether it may change users, nodes and keyspaces, and do all else.
    #[serde(default)]
    pub is_administrator: bool,
    /// Rights by the number of the keyspace: one of the same name that is made later is another.
    #[serde(default)]
    rights: BTreeMap<u32, Right>,
}

impl User {
    /// A user with this key and no rights.
    pub fn new(key: KeyHash) -> Self {
        Self { keys: vec![key.to_hex()], ..Self::default() }
    }

    /// The same with one more key.
    ///
    /// # Errors
    /// `InvalidArgument` when there are too many.
    pub fn with_key(mut self, key: KeyHash) -> Result<Self> {
        if self.keys.len() == KEYS_MAX {
            return Err(Error::invalid(format!(
                "a user has at most {KEYS_MAX} keys; replace the old ones (--replace)"
            )));
        }
        self.keys.push(key.to_hex());
        Ok(self)
    }

    /// The same with only this key.
    #[must_use]
    pub fn with_only_key(self, key: KeyHash) -> Self {
        Self { keys: vec![key.to_hex()], ..self }
    }

    /// The same with this right on a keyspace; `None` for none.
    #[must_use]
    pub fn granted(mut self, keyspace: KeyspaceId, right: Option<Right>) -> Self {
        match right {
            Some(right) => self.rights.insert(keyspace.0, right),
            None => self.rights.remove(&keyspace.0),
        };
        self
    }

    /// How many keys it has.
    pub fn keys(&self) -> usize {
        self.keys.len()
    }

    /// Whether this is one of its keys.
    pub fn has_key(&self, hash: &KeyHash) -> bool {
        self.keys.iter().any(|key| KeyHash::from_hex(key).as_ref() == Some(hash))
    }

    /// Whether it may do this.
    pub fn permits(&self, keyspace: KeyspaceId, right: Right) -> bool {
        self.is_administrator || self.rights.get(&keyspace.0).is_some_and(|given| *given >= right)
    }

    /// Whether it may read any keyspace at all.
    pub fn reads_anything(&self) -> bool {
        self.is_administrator || !self.rights.is_empty()
    }

    /// Rights, by keyspace.
    pub fn rights(&self) -> impl Iterator<Item = (KeyspaceId, Right)> + '_ {
        self.rights.iter().map(|(keyspace, right)| (KeyspaceId(*keyspace), *right))
    }

    /// What has been done to a user that was `old` and is `new`, in words for auditors. No key is
    /// in them.
    pub fn difference(
        old: Option<&Self>,
        new: Option<&Self>,
        name_of: impl Fn(KeyspaceId) -> String,
    ) -> String {
        let none = Self::default();
        let Some(new) = new else { return "removed".to_owned() };
        let mut acts = Vec::new();
        match old {
            None => acts.push("made".to_owned()),
            Some(old) if old.keys.iter().all(|key| new.keys.contains(key)) => {
                if new.keys.len() > old.keys.len() {
                    acts.push("gets another key".to_owned());
                }
            }
            Some(_) => acts.push("its keys are replaced".to_owned()),
        }
        let old = old.unwrap_or(&none);
        match (old.is_administrator, new.is_administrator) {
            (false, true) => acts.push("is an administrator".to_owned()),
            (true, false) => acts.push("is no administrator any more".to_owned()),
            (true, true) | (false, false) => {}
        }
        for (keyspace, right) in new.rights() {
            if old.rights.get(&keyspace.0) != Some(&right) {
                acts.push(format!("gets {} on {}", right.name(), name_of(keyspace)));
            }
        }
        for (keyspace, right) in old.rights() {
            if !new.rights.contains_key(&keyspace.0) {
                acts.push(format!("loses {} on {}", right.name(), name_of(keyspace)));
            }
        }
        if acts.is_empty() {
            return "stays as it is".to_owned();
        }
        acts.join(", ")
    }

    /// Its bytes in the service metadata: JSON.
    pub fn to_bytes(&self) -> Vec<u8> {
        serde_json::to_vec(self).expect("numbers and texts are JSON")
    }

    /// The user of these bytes.
    ///
    /// # Errors
    /// `Corrupt` when they are none.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self> {
        serde_json::from_slice(bytes)
            .map_err(|error| Error::corrupt("a user in the service metadata").with_source(error))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::access::Key;

    #[test]
    fn a_user_reads_back_and_rights_include_those_below() {
        let key = Key::draw().unwrap();
        let user = User::new(key.hash()).granted(KeyspaceId(7), Some(Right::Admin));
        assert_eq!(User::from_bytes(&user.to_bytes()).unwrap(), user);
        assert!(Right::ALL.into_iter().all(|right| user.permits(KeyspaceId(7), right)));
        let none = user.granted(KeyspaceId(7), None);
        assert!(!none.permits(KeyspaceId(7), Right::Read));
        assert_eq!(Right::parse("write").unwrap(), Right::Write);
        let caller = none.granted(KeyspaceId(7), Some(Right::parse("call").unwrap()));
        assert!(caller.permits(KeyspaceId(7), Right::Read));
        assert!(!caller.permits(KeyspaceId(7), Right::Write));
        assert!(User::from_bytes(&caller.to_bytes()).unwrap().permits(KeyspaceId(7), Right::Call));
        assert!(Right::parse("all").is_err());
    }

    #[test]
    fn each_act_has_words_of_its_own() {
        let [first, second] = [(); 2].map(|()| Key::draw().unwrap().hash());
        let said = |old: Option<&User>, new: Option<&User>| {
            User::difference(old, new, |keyspace| format!("k{}", keyspace.0))
        };
        let user = User::new(first);
        let (old, seven) = (Some(&user), KeyspaceId(7));
        assert_eq!(said(None, old), "made");
        assert_eq!(said(old, Some(&user.clone().with_key(second).unwrap())), "gets another key");
        assert_eq!(said(old, Some(&user.clone().with_only_key(second))), "its keys are replaced");
        let reader = user.clone().granted(seven, Some(Right::Read));
        assert_eq!(said(old, Some(&reader)), "gets read on k7");
        let writer = user.clone().granted(seven, Some(Right::Write));
        assert_eq!(said(Some(&reader), Some(&writer)), "gets write on k7");
        assert_eq!(said(Some(&writer), old), "loses write on k7");
        assert_eq!(said(old, old), "stays as it is");
        let administrator = User { is_administrator: true, ..user.clone() };
        assert_eq!(said(None, Some(&administrator)), "made, is an administrator");
        assert_eq!(said(old, None), "removed");
    }

    #[test]
    fn keys_are_added_up_to_a_bound_or_replaced() {
        let keys: Vec<Key> = (0..9).map(|_| Key::draw().unwrap()).collect();
        let mut user = User::new(keys[0].hash());
        for key in &keys[1..8] {
            user = user.with_key(key.hash()).unwrap();
        }
        assert!(keys[..8].iter().all(|key| user.has_key(&key.hash())));
        assert!(user.clone().with_key(keys[8].hash()).is_err());
        let user = user.with_only_key(keys[8].hash());
        assert!(user.has_key(&keys[8].hash()) && !user.has_key(&keys[0].hash()));
    }
}
