//! Týr as an [`ObjectStore`](object_store::ObjectStore), for programs that know only that trait.
//!
//! An object is a blob of one keyspace: its path is the blob's key, behind an optional prefix. Its
//! e-tag is the version of the blob, as text.
//!
//! | of `object_store` | here |
//! |---|---|
//! | any `put` | one transaction: readers see all of it or the object before |
//! | `PutMode::Create`, `Update` | a condition of that transaction; nothing is read, then written |
//! | `put_multipart` | parts go to the store as they come; one commit, at `complete` |
//! | `get`, `get_ranges` | of one snapshot, however long the stream is and whoever writes |
//! | `list` in each form | in order of paths, as of one moment; a commit shows entirely or not |
//! | `copy`, `rename`, with or without `Create` | one transaction, inside the store |
//!
//! What S3 does otherwise: its `rename` is a copy and then a deletion, its listings go page by page
//! while others write, and the ranges of `get_ranges` are of as many moments as there are requests.
//!
//! Not offered: attributes, tags, and reading of older versions; who asks for them is told so. A
//! stream or listing that takes longer than snapshots are held (5 minutes unless the store says
//! otherwise) ends with an error.
//!
//! ```
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! # let folder = tempfile::tempdir()?;
//! use object_store::{ObjectStoreExt, path::Path};
//! use tyr_object_store::TyrObjectStore;
//!
//! let tyr = tyr::Tyr::open(folder.path()).await?;
//! let tables = tyr.create_keyspace("tables", tyr::KeyspaceConfig::default()).await?;
//! let store = TyrObjectStore::new(tyr, tables);
//! store.put(&Path::from("draft/1"), "rows".into()).await?;
//! store.rename(&Path::from("draft/1"), &Path::from("table/1")).await?;
//! assert_eq!(store.get(&Path::from("table/1")).await?.bytes().await?, "rows");
//! # Ok(())
//! # }
//! # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(example()).unwrap();
//! ```

mod failure;
mod place;
mod read;
mod store;
mod upload;

pub use place::Place;
pub use store::TyrObjectStore;
