//! Structs that a program fills. Each begins with its size, so that it can grow: a program that was
//! built with an older header has a shorter one, and what it lacks is 0, the default.

use std::ffi::c_char;
use std::time::Duration;

use tyr::{ConnectOptions, Durability, KeyspaceConfig, Options, PlacedBy, Scan};

use super::memory::{optional_text, text, tyr_slice};
use crate::failure::Failure;

/// A commit is acknowledged when it is on disk; the default.
pub const TYR_SYNC: i32 = 1;
/// A commit is acknowledged when the operating system has it.
pub const TYR_BUFFERED: i32 = 2;
/// A commit is acknowledged when it is in memory, and never written by itself.
pub const TYR_MEMORY: i32 = 3;

/// A struct that begins with its size, all of whose fields may be 0.
pub(super) trait Versioned: Copy {
    /// As the header names it.
    const NAME: &'static str;
    /// What the first release had of it, in bytes.
    const SIZE_MIN: usize;
}

/// Reads a struct of the program, which may be shorter or longer than ours.
pub(super) unsafe fn read<T: Versioned>(given: *const T) -> Result<Option<T>, Failure> {
    if given.is_null() {
        return Ok(None);
    }
    let (name, ours) = (T::NAME, size_of::<T>());
    let size = given.cast::<usize>().read_unaligned();
    if size < T::SIZE_MIN || size > ours + 4096 {
        return Err(Failure::invalid(format!(
            "the size of {name} is {size}, which is none: begin with {}_INIT",
            name.to_uppercase()
        )));
    }
    let bytes = std::slice::from_raw_parts(given.cast::<u8>(), size);
    if bytes.iter().skip(ours).any(|byte| *byte != 0) {
        return Err(Failure::invalid(format!(
            "{name} sets what this release of libtyr does not know: the program was built with a \
             later header"
        )));
    }
    let mut copy = std::mem::MaybeUninit::<T>::zeroed();
    std::ptr::copy_nonoverlapping(given.cast::<u8>(), copy.as_mut_ptr().cast(), size.min(ours));
    Ok(Some(copy.assume_init()))
}

/// How a store in a folder is opened. Begin with `TYR_OPEN_OPTIONS_INIT`; 0 is the default.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct tyr_open_options {
    /// Of this struct.
    pub size: usize,
    /// Memory for recent operations and cache, in bytes. Default 128 MiB.
    pub cache_bytes: u64,
    /// 1: nothing on disk is changed.
    pub is_read_only: i32,
    /// 1: a missing store is `TYR_NOT_FOUND` instead of being made.
    pub must_exist: i32,
    /// After so many milliseconds a snapshot is too old. Default 5 minutes.
    pub snapshot_timeout_ms: u64,
}

impl Versioned for tyr_open_options {
    const NAME: &'static str = "tyr_open_options";
    const SIZE_MIN: usize = 32;
}

impl tyr_open_options {
    pub(super) fn options(given: Option<Self>) -> Result<Options, Failure> {
        let mut options = tyr::Tyr::options();
        let Some(given) = given else { return Ok(options) };
        if given.cache_bytes > 0 {
            options = options.cache_bytes(given.cache_bytes);
        }
        if given.snapshot_timeout_ms > 0 {
            let timeout = Duration::from_millis(given.snapshot_timeout_ms);
            options = options.snapshot_timeout(timeout);
        }
        let is_read_only = flag("is_read_only", given.is_read_only)?;
        Ok(options.is_read_only(is_read_only).must_exist(flag("must_exist", given.must_exist)?))
    }
}

/// How a cluster is connected to. Begin with `TYR_CONNECT_OPTIONS_INIT`; 0 and NULL are the
/// defaults.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct tyr_connect_options {
    /// Of this struct.
    pub size: usize,
    /// Who connects. Default nobody.
    pub user: *const c_char,
    /// The key of the user, or
    pub key: *const c_char,
    /// the file that it is in.
    pub key_file: *const c_char,
    /// How long a call may take, in milliseconds; default and most 30 s.
    pub timeout_ms: u64,
    /// How long to try to connect, in milliseconds; default 15 s.
    pub connect_timeout_ms: u64,
    /// A file with the authorities of the nodes' certificates (PEM): everything is encrypted.
    pub tls_ca: *const c_char,
    /// A file with the certificate that nodes are shown (PEM), and
    pub tls_certificate: *const c_char,
    /// one with its private key.
    pub tls_key: *const c_char,
    /// What the certificates of nodes name. Default `tyr.internal`.
    pub tls_domain: *const c_char,
}

impl Versioned for tyr_connect_options {
    const NAME: &'static str = "tyr_connect_options";
    const SIZE_MIN: usize = 80;
}

impl tyr_connect_options {
    pub(super) unsafe fn options(given: Option<Self>) -> Result<ConnectOptions, Failure> {
        let mut options = tyr::Tyr::connect_options();
        let Some(given) = given else { return Ok(options) };
        let user = optional_text(given.user, "user")?;
        let key = optional_text(given.key, "key")?;
        let key_file = optional_text(given.key_file, "key_file")?;
        options = match (user, key, key_file) {
            (None, None, None) => options,
            (Some(user), Some(key), None) => options.user(user, key),
            (Some(user), None, Some(file)) => options.user_with_key_file(user, file),
            (_, Some(_), Some(_)) => {
                return Err(Failure::invalid("key and key_file are both set; give one"));
            }
            (None, _, _) => return Err(Failure::invalid("a key is of a user; give both")),
            (Some(user), None, None) => {
                return Err(Failure::invalid(format!("user {user} has no key; give it too")));
            }
        };
        if given.timeout_ms > 0 {
            options = options.timeout(Duration::from_millis(given.timeout_ms));
        }
        if given.connect_timeout_ms > 0 {
            options = options.connect_timeout(Duration::from_millis(given.connect_timeout_ms));
        }
        if let Some(authorities) = optional_text(given.tls_ca, "tls_ca")? {
            options = options.tls_ca(authorities);
        }
        let certificate = optional_text(given.tls_certificate, "tls_certificate")?;
        match (certificate, optional_text(given.tls_key, "tls_key")?) {
            (None, None) => {}
            (Some(certificate), Some(key)) => options = options.tls_certificate(certificate, key),
            _ => {
                return Err(Failure::invalid("tls_certificate and tls_key go together; set both"));
            }
        }
        if let Some(domain) = optional_text(given.tls_domain, "tls_domain")? {
            options = options.tls_domain(domain);
        }
        Ok(options)
    }
}

/// What a keyspace is created with. Begin with `TYR_KEYSPACE_CONFIG_INIT`; 0 is the default.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct tyr_keyspace_config {
    /// Of this struct.
    pub size: usize,
    /// Bytes of a chunk, a power of two from 4 KiB to 256 MiB. Default 64 MiB.
    pub chunk_size: u64,
    /// Replicas of each chunk, 1 to 9. Default 3.
    pub replication: i32,
    /// Live replicas that a write needs. Default more than half.
    pub live_replicas_min: i32,
    /// `TYR_SYNC`, `TYR_BUFFERED` or `TYR_MEMORY`. Default `TYR_SYNC`.
    pub durability: i32,
    /// 1: large payloads are compressed on disk.
    pub is_compressed: i32,
    /// 1: older versions do not stay for snapshots.
    pub is_single_versioned: i32,
    /// 1: leases of its keys keep others off.
    pub is_guarded: i32,
    /// Which part of a key says where its blob lies: `key`, `first:8`, `up-to:/`. Default `key`.
    pub placed_by: *const c_char,
}

impl Versioned for tyr_keyspace_config {
    const NAME: &'static str = "tyr_keyspace_config";
    const SIZE_MIN: usize = 48;
}

impl tyr_keyspace_config {
    pub(super) unsafe fn config(given: Option<Self>) -> Result<KeyspaceConfig, Failure> {
        let mut config = KeyspaceConfig::default();
        let Some(given) = given else { return Ok(config) };
        if given.chunk_size > 0 {
            config.chunk_size = given.chunk_size;
        }
        if given.replication != 0 {
            config.replication = small("replication", given.replication)?;
        }
        if given.live_replicas_min != 0 {
            let needed = small("live_replicas_min", given.live_replicas_min)?;
            config.live_replicas_min = Some(needed);
        }
        config.durability = match given.durability {
            0 | TYR_SYNC => Durability::Sync,
            TYR_BUFFERED => Durability::Buffered,
            TYR_MEMORY => Durability::Memory,
            other => {
                return Err(Failure::invalid(format!(
                    "durability is TYR_SYNC, TYR_BUFFERED or TYR_MEMORY (1 to 3), not {other}"
                )));
            }
        };
        config.is_compressed = flag("is_compressed", given.is_compressed)?;
        config.is_multi_versioned = !flag("is_single_versioned", given.is_single_versioned)?;
        config.is_guarded = flag("is_guarded", given.is_guarded)?;
        if !given.placed_by.is_null() {
            config.placed_by = PlacedBy::parse(text(given.placed_by, "placed_by")?)?;
        }
        Ok(config)
    }
}

/// Which keys are listed. Begin with `TYR_SCAN_INIT`; 0 and empty slices are the defaults.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct tyr_scan {
    /// Of this struct.
    pub size: usize,
    /// Only keys that begin so.
    pub prefix: tyr_slice,
    /// Only this key and those that follow. To go on: what tyr_page_resume gave.
    pub from: tyr_slice,
    /// Only keys before this one.
    pub to: tyr_slice,
    /// Only keys that come after this one.
    pub after: tyr_slice,
    /// Keys with these bytes behind the prefix are listed once, as a group.
    pub delimiter: tyr_slice,
    /// So many entries and groups a page, at most 10,000. Default 1,000.
    pub limit: usize,
    /// The first so many bytes of each blob too, at most 1 MiB.
    pub first_bytes: u64,
    /// 1: keys without size and version.
    pub is_keys_only: i32,
}

impl Versioned for tyr_scan {
    const NAME: &'static str = "tyr_scan";
    const SIZE_MIN: usize = 112;
}

impl tyr_scan {
    /// The scan; of NULL, one of everything.
    pub(super) unsafe fn scan(given: *const Self) -> Result<Scan, Failure> {
        let mut scan = Scan::new();
        let Some(given) = read(given)? else { return Ok(scan) };
        scan = scan.prefix(given.prefix.bytes("prefix")?);
        if given.from.len > 0 {
            scan = scan.from(given.from.bytes("from")?);
        }
        if given.to.len > 0 {
            scan = scan.to(given.to.bytes("to")?);
        }
        if given.after.len > 0 {
            scan = scan.after(given.after.bytes("after")?);
        }
        if given.delimiter.len > 0 {
            scan = scan.delimiter(given.delimiter.bytes("delimiter")?);
        }
        if given.limit > 0 {
            scan = scan.limit(given.limit);
        }
        if given.first_bytes > 0 {
            scan = scan.first_bytes(given.first_bytes);
        }
        Ok(if flag("is_keys_only", given.is_keys_only)? { scan.keys_only() } else { scan })
    }
}

pub(super) fn flag(name: &str, value: i32) -> Result<bool, Failure> {
    match value {
        0 => Ok(false),
        1 => Ok(true),
        other => Err(Failure::invalid(format!("{name} is 0 or 1, not {other}"))),
    }
}

fn small(name: &str, value: i32) -> Result<u8, Failure> {
    u8::try_from(value).map_err(|_| Failure::invalid(format!("{name} is 1 to 9, not {value}")))
}
