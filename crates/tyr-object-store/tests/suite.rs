//! The suite that `object_store` publishes for its implementations, and what is beyond it: on a
//! store in this process and on a cluster of three nodes.

#![allow(clippy::unwrap_used, reason = "all of this is tests")]

use std::pin::Pin;

use bytes::Bytes;
use futures_util::TryStreamExt;
use object_store::path::Path;
use object_store::{
    Attribute, Attributes, Error, MultipartUpload, ObjectStore, ObjectStoreExt, PutMode,
    PutOptions, UpdateVersion, integration,
};
use tyr::KeyspaceConfig;
use tyr_object_store::{Place, TyrObjectStore};
use tyr_testing::{Kind, Store, stores};

/// Runs a test on each kind of store, below a prefix.
fn each(test: impl for<'a> Fn(&'a TyrObjectStore) -> Pin<Box<dyn Future<Output = ()> + 'a>>) {
    let runtime = tokio::runtime::Builder::new_multi_thread().build().unwrap();
    for kind in stores() {
        let store = Store::new(kind, KeyspaceConfig::default());
        let (tyr, keyspace) = (store.tyr().clone(), store.keyspace.clone());
        let objects = TyrObjectStore::new(tyr.into_async(), keyspace.into_async());
        let objects = match kind {
            Kind::Embedded => objects,
            Kind::Cluster => objects.with_prefix(Path::from("some/prefix")),
        };
        runtime.block_on(test(&objects));
    }
}

#[test]
fn objects_are_put_read_listed_and_deleted() {
    each(|store| {
        Box::pin(async move {
            integration::put_get_delete_list(store).await;
            integration::list_uses_directories_correctly(store).await;
            integration::list_with_delimiter(store).await;
        })
    });
}

#[test]
fn conditions_hold() {
    each(|store| {
        Box::pin(async move {
            integration::get_opts(store).await;
            integration::put_opts(store, true).await;
        })
    });
}

#[test]
fn objects_are_copied_and_renamed() {
    each(|store| {
        Box::pin(async move {
            integration::rename_and_copy(store).await;
            integration::copy_if_not_exists(store).await;
            integration::copy_rename_nonexistent_object(store).await;
        })
    });
}

#[test]
fn parts_come_in_any_order() {
    each(|store| {
        Box::pin(async move {
            integration::stream_get(store).await;
            integration::multipart_out_of_order(store).await;
            integration::multipart_race_condition(store, true).await;
        })
    });
}

#[test]
fn listings_begin_behind_an_offset() {
    each(|store| Box::pin(async move { integration::list_with_offset_exclusivity(store).await }));
}

#[test]
fn an_upload_that_is_dropped_or_aborted_changes_nothing() {
    each(|store| {
        Box::pin(async move {
            let path = Path::from("upload");
            store.put(&path, "before".into()).await.unwrap();
            let mut upload = store.put_multipart(&path).await.unwrap();
            let part = upload.put_part("after".into());
            drop(upload);
            // Driving what is left of it does not commit it.
            let _ = part.await;
            let mut upload = store.put_multipart(&path).await.unwrap();
            upload.put_part("after".into()).await.unwrap();
            upload.abort().await.unwrap();
            assert!(upload.complete().await.is_err());
            assert_eq!(store.get(&path).await.unwrap().bytes().await.unwrap(), "before");
        })
    });
}

#[test]
fn parts_that_nobody_waits_for_are_bounded() {
    each(|store| {
        Box::pin(async move {
            let path = Path::from("too much at once");
            let part = Bytes::from(vec![0; 16 << 20]);
            let mut upload = store.put_multipart(&path).await.unwrap();
            let taken: Vec<_> = (0..64).map(|_| upload.put_part(part.clone().into())).collect();
            let refused = upload.put_part(part.into()).await.unwrap_err().to_string();
            assert!(refused.contains("await parts before putting more"), "{refused}");
            assert!(upload.complete().await.is_err());
            drop((taken, upload));
            let absent = store.head(&path).await.unwrap_err();
            assert!(matches!(absent, Error::NotFound { .. }), "{absent}");
        })
    });
}

#[test]
fn prefixes_that_share_a_beginning_are_apart() {
    each(|store| {
        Box::pin(async move {
            let below = |prefix: &str| store.clone().with_prefix(Path::from(prefix));
            let (short, long) = (below("shared/a"), below("shared/ab"));
            let path = Path::from("b/c");
            // In the keyspace they are shared/a/b/c, shared/ab/b/c, and what could be mistaken.
            short.put(&path, "short".into()).await.unwrap();
            long.put(&path, "long".into()).await.unwrap();
            below("shared").put(&Path::from("a"), "name".into()).await.unwrap();
            below("shared").put(&Path::from("a-c"), "other".into()).await.unwrap();
            for (store, content) in [(&short, "short"), (&long, "long")] {
                let found: Vec<_> = store.list(None).try_collect().await.unwrap();
                assert_eq!(found.iter().map(|it| &it.location).collect::<Vec<_>>(), [&path]);
                let bytes = store.get(&path).await.unwrap().bytes().await.unwrap();
                assert_eq!(bytes, content);
                let listed = store.list_with_delimiter(None).await.unwrap();
                assert_eq!(listed.common_prefixes, [Path::from("b")]);
                assert!(listed.objects.is_empty());
                let inner: Vec<_> = store.list(Some(&Path::from("b"))).try_collect().await.unwrap();
                assert_eq!(inner, found);
                let none: Vec<_> = store.list_with_offset(None, &path).try_collect().await.unwrap();
                assert_eq!(none, []);
            }
            short.delete(&path).await.unwrap();
            assert!(long.head(&path).await.is_ok());
        })
    });
}

#[test]
fn a_url_opens_a_store_and_a_stream_stays_at_its_moment() {
    let runtime = tokio::runtime::Builder::new_multi_thread().build().unwrap();
    for kind in stores() {
        let Store { opened, keyspace } = Store::new(kind, KeyspaceConfig::default());
        let name = keyspace.name().to_owned();
        let url = match opened.cluster() {
            Some(cluster) => {
                let hosts = cluster.address().trim_start_matches("tyr://");
                format!("tyr://{hosts}/{name}/below")
            }
            None => format!("tyr+file://{}/{name}", opened.folder().display()),
        };
        drop(keyspace);
        if kind == Kind::Embedded {
            opened.tyr.clone().close().unwrap();
        }
        runtime.block_on(async {
            let store = TyrObjectStore::open(&url).await.unwrap();
            let path = Path::from("table/part");
            let old = Bytes::from(vec![1; 9 << 20]);
            store.put(&path, old.clone().into()).await.unwrap();
            let reading = store.get(&path).await.unwrap();
            let listing = store.list(None);
            store.put(&path, "new".into()).await.unwrap();
            assert!(reading.bytes().await.unwrap() == old);
            let listed: Vec<_> = listing.try_collect().await.unwrap();
            assert_eq!(listed.len(), 1);
            assert_eq!(store.get(&path).await.unwrap().bytes().await.unwrap(), "new");
            let url = url.replace(&name, "no-such");
            let absent = TyrObjectStore::open(&url).await;
            if kind == Kind::Cluster {
                let absent = absent.unwrap_err();
                assert!(matches!(absent, Error::NotFound { .. }), "{absent}");
            }
        });
    }
}

#[test]
fn of_updates_of_one_version_one_succeeds_and_a_rename_is_whole() {
    each(|store| {
        Box::pin(async move {
            let (path, other) = (Path::from("a"), Path::from("b"));
            let first = store.put(&path, "first".into()).await.unwrap();
            let known = UpdateVersion { e_tag: first.e_tag, version: first.version };
            let update = || {
                let mode = PutMode::Update(known.clone());
                store.put_opts(&path, "second".into(), mode.into())
            };
            let (left, right) = futures_util::future::join(update(), update()).await;
            let refused = match (left, right) {
                (Ok(_), Err(error)) | (Err(error), Ok(_)) => error,
                both => panic!("{both:?}"),
            };
            assert!(matches!(refused, Error::Precondition { .. }), "{refused}");
            store.rename_if_not_exists(&path, &other).await.unwrap();
            let found: Vec<_> = store.list(None).try_collect().await.unwrap();
            assert_eq!(found.iter().map(|it| &it.location).collect::<Vec<_>>(), [&other]);
            let again = store.rename_if_not_exists(&other, &other).await.unwrap_err();
            assert!(matches!(again, Error::AlreadyExists { .. }), "{again}");
        })
    });
}

#[test]
fn what_is_wrong_is_refused_in_words() {
    each(|store| {
        Box::pin(async move {
            let path = Path::from("x");
            let attributes = Attributes::from_iter([(Attribute::ContentType, "text/plain")]);
            let options = PutOptions { attributes, ..Default::default() };
            let refused = store.put_opts(&path, "x".into(), options).await.unwrap_err();
            assert!(matches!(refused, Error::NotImplemented { .. }), "{refused}");
            let long = Path::from("k".repeat(2000));
            assert!(store.put(&long, "x".into()).await.is_err());
            let ends = store.get_range(&path, 0..1).await.unwrap_err();
            assert!(matches!(ends, Error::NotFound { .. }), "{ends}");
        })
    });
    let place = Place::parse("tyr://a:1,b:2/data/x/y").unwrap();
    let (address, keyspace) = ("tyr://a:1,b:2".to_owned(), "data".to_owned());
    assert_eq!(place, Place::Cluster { address, keyspace, prefix: Path::from("x/y") });
    let place = Place::parse("tyr+file:///var/tyr/data").unwrap();
    assert_eq!(place, Place::Folder { folder: "/var/tyr".into(), keyspace: "data".into() });
    for wrong in ["s3://a/b", "tyr://a:1", "tyr:///data", "tyr+file://data", "tyr+file:///data"] {
        let refused = Place::parse(wrong).unwrap_err().to_string();
        assert!(refused.contains("tyr+file:///FOLDER/KEYSPACE"), "{refused}");
    }
}
