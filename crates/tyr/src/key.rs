//! What can be given as a key.

use tyr_types::{Key, Result};

/// Anything that names a blob within its keyspace: text, bytes, or a [`Key`] made before.
///
/// A [`Key`] is the cheapest: it is only cloned.
pub trait ToKey {
    /// The key.
    ///
    /// # Errors
    /// `InvalidArgument` when it is empty or longer than
    /// [`KEY_LEN_MAX`](tyr_types::limits::KEY_LEN_MAX).
    fn to_key(&self) -> Result<Key>;
}

impl ToKey for Key {
    fn to_key(&self) -> Result<Key> {
        Ok(self.clone())
    }
}

impl ToKey for str {
    fn to_key(&self) -> Result<Key> {
        Key::new(self)
    }
}

impl ToKey for String {
    fn to_key(&self) -> Result<Key> {
        Key::new(self)
    }
}

impl ToKey for [u8] {
    fn to_key(&self) -> Result<Key> {
        Key::new(self)
    }
}

impl ToKey for Vec<u8> {
    fn to_key(&self) -> Result<Key> {
        Key::new(self)
    }
}

impl<const N: usize> ToKey for [u8; N] {
    fn to_key(&self) -> Result<Key> {
        Key::new(self)
    }
}

impl<T: ToKey + ?Sized> ToKey for &T {
    fn to_key(&self) -> Result<Key> {
        (**self).to_key()
    }
}
