//! The store as bytes: what monitors give each other, and what their snapshots hold.

use serde::{Deserialize, Serialize};
use tyr_types::{Error, Result};

use super::{Entry, Path, Store};

/// A store as bytes.
#[derive(Serialize, Deserialize)]
struct Image {
    revision: u64,
    entries: Vec<(Path, Entry)>,
}

/// The version of those bytes, which is the first of them.
const IMAGE_VERSION: u8 = 1;

impl Store {
    /// The store as bytes, without its history.
    pub fn image(&self) -> Vec<u8> {
        let entries = self.entries().map(|(path, entry)| (path.clone(), entry.clone()));
        let image = Image { revision: self.revision(), entries: entries.collect() };
        postcard::to_extend(&image, vec![IMAGE_VERSION]).expect("plain values can be written")
    }

    /// The store of these bytes.
    ///
    /// # Errors
    /// `Corrupt` when they are not what [`Store::image`] wrote.
    pub fn from_image(bytes: &[u8]) -> Result<Self> {
        let wrong = |what: &str| Error::corrupt(format!("image of the service metadata: {what}"));
        let image: Image = match bytes.split_first() {
            Some((&IMAGE_VERSION, rest)) => postcard::from_bytes(rest)
                .map_err(|error| wrong("it cannot be read").with_source(error))?,
            Some((version, _)) => {
                let format = format_args!("image format {version}");
                let what = "the image of the service metadata";
                return Err(Error::later_release(what, format, IMAGE_VERSION));
            }
            None => return Err(wrong("it is empty")),
        };
        Self::restore(image.revision, image.entries)
    }
}

#[cfg(test)]
mod tests {
    use tyr_types::ErrorKind;

    use crate::{Actor, Path, Store, Transaction};

    #[test]
    fn an_image_is_its_store_and_with_any_byte_cut_off_is_refused() {
        let mut store = Store::new();
        for (text, value) in [("a", "1"), ("b", "2")] {
            let put = Transaction::new().put(Path::new(text).unwrap(), value);
            store.apply(&Actor::System, &put).unwrap();
        }
        let image = store.image();
        assert_eq!(Store::from_image(&image).unwrap(), store);
        for len in 0..image.len() {
            assert!(Store::from_image(&image[..len]).is_err(), "{len} bytes");
        }
        let mut newer = image;
        newer[0] += 1;
        let error = Store::from_image(&newer).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unavailable, "it is of a later release: {error}");
    }
}
