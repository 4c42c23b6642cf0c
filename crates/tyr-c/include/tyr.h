/*
 * libtyr: Týr for C. The guide is docs/guide/c.md; what calls do and promise is in docs/design.md.
 *
 * Answers. NULL is good. Else a tyr_error has a kind, a text, and whether to run it again; free it.
 * No function sets errno, and nothing is kept for a thread.
 *
 * Ownership.
 *  1. Who gets a handle frees it. NULL may be freed. Handles are no pointers: a wrong one, or one
 *     that was freed before, is TYR_INVALID_ARGUMENT.
 *  2. Slices and texts are lent until the call returns, also to a call that is started.
 *  3. `out` of a call that is started is lent until its completion was taken, also after a cancel,
 *     or until tyr_queue_free returned.
 *  4. Bytes and pages keep what they hold until they are freed; their slices are good till then.
 *  5. The order of freeing does not matter.
 *
 * Threads. Any thread may use any handle; a tyr_txn one at a time.
 *
 * Fork. A child of a process that used Týr gets TYR_UNAVAILABLE from every call: let it exec.
 *
 * What grows. Functions and constants are added, never changed. Structs that a program fills begin
 * with their size: begin with TYR_..._INIT.
 */


#ifndef TYR_H
#define TYR_H

/* Made of crates/tyr-c/src by `cargo xtask header`: change those. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

// No error.
#define TYR_OK 0

// The blob or keyspace is not there. Nothing changed.
#define TYR_NOT_FOUND 1

// It is there already. Nothing changed.
#define TYR_ALREADY_EXISTS 2

// Another transaction was faster, or a condition did not hold. Nothing changed; run it again.
#define TYR_CONFLICT 3

// The store cannot serve this now (disk full, closed, overload, forked). Nothing changed.
#define TYR_UNAVAILABLE 4

// No answer in time. What became of it is unknown: tyr_outcome asks.
#define TYR_TIMED_OUT 5

// The version that the snapshot needs is gone. Nothing changed; take another.
#define TYR_SNAPSHOT_TOO_OLD 6

// The request itself is wrong, a handle or a pointer for example. Nothing changed.
#define TYR_INVALID_ARGUMENT 7

// The user may not. Nothing changed.
#define TYR_PERMISSION_DENIED 8

// The keyspace's quota is used up. Nothing changed.
#define TYR_QUOTA_EXCEEDED 9

// Stored bytes are not what was written. Nothing changed.
#define TYR_CORRUPT 10

// tyr_queue_cancel stopped it. A read did nothing; what changes something may do so yet.
#define TYR_CANCELLED 100

// A bug in Týr. Every call from now on answers this.
#define TYR_BUG 101

// No operation: what tyr_error_operation answers where the error is about none.
#define TYR_NO_OPERATION UINT64_MAX

// Any revision: what tyr_metadata_put takes as `expected` where it does not matter.
#define TYR_ANY_REVISION UINT64_MAX

// A signed integer of 8 bits.
#define TYR_I8 1

// A signed integer of 16 bits.
#define TYR_I16 2

// A signed integer of 32 bits.
#define TYR_I32 3

// A signed integer of 64 bits.
#define TYR_I64 4

// An unsigned integer of 8 bits.
#define TYR_U8 5

// An unsigned integer of 16 bits.
#define TYR_U16 6

// An unsigned integer of 32 bits.
#define TYR_U32 7

// An unsigned integer of 64 bits.
#define TYR_U64 8

// A floating point number of 32 bits.
#define TYR_F32 9

// A floating point number of 64 bits.
#define TYR_F64 10

// x + y; integers wrap.
#define TYR_ADD 1

// x - y; integers wrap.
#define TYR_SUB 2

// x * y; integers wrap.
#define TYR_MUL 3

// x / y; integers truncate; y is not zero.
#define TYR_DIV 4

// The smaller; a NaN gives way to a number.
#define TYR_MIN 5

// The larger; a NaN gives way to a number.
#define TYR_MAX 6

// Bitwise and, integers only.
#define TYR_AND 7

// Bitwise or, integers only.
#define TYR_OR 8

// Bitwise exclusive or, integers only.
#define TYR_XOR 9

// y, whatever x was.
#define TYR_SWAP 10

// x = y
#define TYR_EQUAL 1

// x != y
#define TYR_NOT_EQUAL 2

// x < y
#define TYR_LESS 3

// x <= y
#define TYR_LESS_OR_EQUAL 4

// x > y
#define TYR_GREATER 5

// x >= y
#define TYR_GREATER_OR_EQUAL 6

// A commit is acknowledged when it is on disk; the default.
#define TYR_SYNC 1

// A commit is acknowledged when the operating system has it.
#define TYR_BUFFERED 2

// A commit is acknowledged when it is in memory, and never written by itself.
#define TYR_MEMORY 3

// Bytes that were read, as they lie in Týr's memory. Free them.
typedef struct tyr_bytes tyr_bytes;

// What a committed transaction answers. Free it.
typedef struct tyr_committed tyr_committed;

// What went wrong. The answer of most functions: NULL when nothing did. Free it.
typedef struct tyr_error tyr_error;

// A namespace of blobs. Any thread may use it. Free it.
typedef struct tyr_keyspace tyr_keyspace;

// A lock that is held, and renewed in the background. Any thread may use it. Unlock it, or free
// it.
typedef struct tyr_lock tyr_lock;

// A page of a listing. Free it.
typedef struct tyr_page tyr_page;

// Calls under way and the completions of those that are over: up to 65,536. Any thread may use it.
typedef struct tyr_queue tyr_queue;

// Part of a blob at one version, read piece by piece. One thread at a time. Free it.
typedef struct tyr_reader tyr_reader;

// A read-only view of everything at one moment. Any thread may use it. Free it soon: what it needs
// is kept for it, for 5 minutes unless set.
typedef struct tyr_snapshot tyr_snapshot;

// A store: a folder opened in this process, or a connection to a cluster. Any thread may use it.
typedef struct tyr_store tyr_store;

// Operations on any blobs that take effect together or not at all. One thread at a time.
typedef struct tyr_txn tyr_txn;

// A watch of a key, or of all with a prefix. Any thread may use it. Free it.
typedef struct tyr_watch tyr_watch;

// Bytes that are lent for the call: Týr has its own copy when it returns. `data` may be NULL when
// `len` is 0.
typedef struct tyr_slice {
  // The first byte.
  const void *data;
  // How many bytes.
  size_t len;
} tyr_slice;

// A number: make one with tyr_u64(1) and its like, look at one with tyr_as_u64 and its like.
typedef struct tyr_number {
  // `TYR_I8` to `TYR_F64`; 0 where there is no number.
  int32_t type_;
  // The number in its lowest bits, as many as its type has.
  uint64_t bits;
} tyr_number;

// When something took effect: the version of all that a transaction wrote. Opaque; `memcmp` orders
// them, and all zeros are before everything.
typedef struct tyr_timestamp {
  // What is compared.
  uint8_t bytes[16];
} tyr_timestamp;

// What is known of a blob without reading it.
typedef struct tyr_stat {
  // Its size in bytes.
  uint64_t size;
  // When it was last written.
  struct tyr_timestamp version;
} tyr_stat;

// One of many reads.
typedef struct tyr_read_request {
  // The keyspace.
  struct tyr_keyspace *keyspace;
  // The blob's key.
  struct tyr_slice key;
  // From which byte on.
  uint64_t offset;
  // How many bytes, at most 64 MiB; fewer are read where the blob ends.
  uint64_t len;
} tyr_read_request;

// What is copied to where. Begin with `TYR_COPY_INIT`.
typedef struct tyr_copy {
  // Of this struct.
  size_t size;
  // Where it is copied from.
  struct tyr_keyspace *from;
  // The blob that is copied.
  struct tyr_slice from_key;
  // Where it is copied to; a keyspace of the same store.
  struct tyr_keyspace *to;
  // The blob that has it then.
  struct tyr_slice to_key;
  // 1: a part alone, and what else the other blob has stays. 0: the other one becomes the same.
  int32_t is_part;
  // For what may come.
  int32_t reserved;
  // The part: from here on,
  uint64_t from_offset;
  // so many bytes, fewer where the blob ends,
  uint64_t len;
  // to here.
  uint64_t to_offset;
} tyr_copy;

// Which keys are listed. Begin with `TYR_SCAN_INIT`; 0 and empty slices are the defaults.
typedef struct tyr_scan {
  // Of this struct.
  size_t size;
  // Only keys that begin so.
  struct tyr_slice prefix;
  // Only this key and those that follow. To go on: what tyr_page_resume gave.
  struct tyr_slice from;
  // Only keys before this one.
  struct tyr_slice to;
  // Only keys that come after this one.
  struct tyr_slice after;
  // Keys with these bytes behind the prefix are listed once, as a group.
  struct tyr_slice delimiter;
  // So many entries and groups a page, at most 10,000. Default 1,000.
  size_t limit;
  // The first so many bytes of each blob too, at most 1 MiB.
  uint64_t first_bytes;
  // 1: keys without size and version.
  int32_t is_keys_only;
} tyr_scan;

// A blob that is listed. Its slices are the page's, and good until that is freed.
typedef struct tyr_entry {
  // Its key.
  struct tyr_slice key;
  // Its size and version; zeros where only keys are listed.
  struct tyr_stat stat;
  // Its first bytes, if they were asked for.
  struct tyr_slice bytes;
} tyr_entry;

// How a lock is taken. Begin with `TYR_LOCK_OPTIONS_INIT`; 0 and NULL are the defaults.
typedef struct tyr_lock_options {
  // Of this struct.
  size_t size;
  // How long to wait for others, in milliseconds. Default as long as it takes.
  uint64_t wait_ms;
  // 1: not to wait.
  int32_t is_no_wait;
  // For what may come.
  int32_t reserved;
  // How long it lasts when its holder is gone, in milliseconds: 1,000 to 10,000, the default.
  uint64_t duration_ms;
  // Who holds it, for others to see: 256 bytes of text at most.
  const char *holder;
} tyr_lock_options;

// The completion of a call. What it has of handles, the error among them, is the taker's to free.
typedef struct tyr_done {
  // What the call was started with.
  uint64_t tag;
  // NULL if it was good.
  struct tyr_error *error;
  // Of a read the bytes read, of an append the offset, of a stat the size, of a delete 1 if
  // there was a blob.
  uint64_t value;
  // Of an apply the new value.
  struct tyr_number number;
  // Of a stat and a commit the version.
  struct tyr_timestamp version;
  // Of a get the bytes.
  struct tyr_bytes *bytes;
  // Of a commit what it answers.
  struct tyr_committed *committed;
  // Of a scan the page.
  struct tyr_page *page;
  // Of a tyr_snapshot_take the snapshot.
  struct tyr_snapshot *snapshot;
  // For what may come.
  uint64_t reserved[3];
} tyr_done;

// How a store in a folder is opened. Begin with `TYR_OPEN_OPTIONS_INIT`; 0 is the default.
typedef struct tyr_open_options {
  // Of this struct.
  size_t size;
  // Memory for recent operations and cache, in bytes. Default 128 MiB.
  uint64_t cache_bytes;
  // 1: nothing on disk is changed.
  int32_t is_read_only;
  // 1: a missing store is `TYR_NOT_FOUND` instead of being made.
  int32_t must_exist;
  // After so many milliseconds a snapshot is too old. Default 5 minutes.
  uint64_t snapshot_timeout_ms;
} tyr_open_options;

// How a cluster is connected to. Begin with `TYR_CONNECT_OPTIONS_INIT`; 0 and NULL are the
// defaults.
typedef struct tyr_connect_options {
  // Of this struct.
  size_t size;
  // Who connects. Default nobody.
  const char *user;
  // The key of the user, or
  const char *key;
  // the file that it is in.
  const char *key_file;
  // How long a call may take, in milliseconds; default and most 30 s.
  uint64_t timeout_ms;
  // How long to try to connect, in milliseconds; default 15 s.
  uint64_t connect_timeout_ms;
  // A file with the authorities of the nodes' certificates (PEM): everything is encrypted.
  const char *tls_ca;
  // A file with the certificate that nodes are shown (PEM), and
  const char *tls_certificate;
  // one with its private key.
  const char *tls_key;
  // What the certificates of nodes name. Default `tyr.internal`.
  const char *tls_domain;
} tyr_connect_options;

// What a keyspace is created with. Begin with `TYR_KEYSPACE_CONFIG_INIT`; 0 is the default.
typedef struct tyr_keyspace_config {
  // Of this struct.
  size_t size;
  // Bytes of a chunk, a power of two from 4 KiB to 256 MiB. Default 64 MiB.
  uint64_t chunk_size;
  // Replicas of each chunk, 1 to 9. Default 3.
  int32_t replication;
  // Live replicas that a write needs. Default more than half.
  int32_t live_replicas_min;
  // `TYR_SYNC`, `TYR_BUFFERED` or `TYR_MEMORY`. Default `TYR_SYNC`.
  int32_t durability;
  // 1: large payloads are compressed on disk.
  int32_t is_compressed;
  // 1: older versions do not stay for snapshots.
  int32_t is_single_versioned;
  // 1: leases of its keys keep others off.
  int32_t is_guarded;
  // Which part of a key says where its blob lies: `key`, `first:8`, `up-to:/`. Default `key`.
  const char *placed_by;
} tyr_keyspace_config;

// What a watch tells: some changes as one.
typedef struct tyr_watch_event {
  // Keys that have changed, up to 64: a page to free. NULL where nothing came in time.
  struct tyr_page *keys;
  // The version of the last change among them.
  struct tyr_timestamp version;
  // 1: something may have changed that was not told, as at the beginning and after an
  // interruption: look at what is there.
  int32_t is_anew;
  // 1: more keys have changed than these.
  int32_t is_more;
} tyr_watch_event;

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

// Makes an empty blob; `TYR_ALREADY_EXISTS` if there is one.
struct tyr_error *tyr_create(struct tyr_keyspace *keyspace, struct tyr_slice key);

// Makes a blob's content `data` and nothing else.
struct tyr_error *tyr_put(struct tyr_keyspace *keyspace,
                          struct tyr_slice key,
                          struct tyr_slice data);

// Writes `data` at `offset`; makes the blob if there is none; a gap reads as zeros.
struct tyr_error *tyr_write(struct tyr_keyspace *keyspace,
                            struct tyr_slice key,
                            uint64_t offset,
                            struct tyr_slice data);

// Appends `data`; makes the blob if there is none. `offset`, which may be NULL, is where it lies.
struct tyr_error *tyr_append(struct tyr_keyspace *keyspace,
                             struct tyr_slice key,
                             struct tyr_slice data,
                             uint64_t *offset);

// Appends `data` if the blob ends at `expected` (0 for an absent one); else `TYR_CONFLICT`.
struct tyr_error *tyr_append_at(struct tyr_keyspace *keyspace,
                                struct tyr_slice key,
                                uint64_t expected,
                                struct tyr_slice data);

// Cuts a blob to `len` bytes, or extends it with zeros; makes it if there is none.
struct tyr_error *tyr_truncate(struct tyr_keyspace *keyspace, struct tyr_slice key, uint64_t len);

// Makes a hole of `len` bytes at `offset`: they read as zeros and take no space.
struct tyr_error *tyr_clear(struct tyr_keyspace *keyspace,
                            struct tyr_slice key,
                            uint64_t offset,
                            uint64_t len);

// Removes a blob. `existed`, which may be NULL, is whether there was one.
struct tyr_error *tyr_delete(struct tyr_keyspace *keyspace, struct tyr_slice key, bool *existed);

// Does arithmetic in place: `what` is `TYR_ADD` and so on, `operand` has the type of the number.
// Makes or extends the blob with zeros. `value`, which may be NULL, is the new value.
struct tyr_error *tyr_apply(struct tyr_keyspace *keyspace,
                            struct tyr_slice key,
                            uint64_t offset,
                            int32_t what,
                            struct tyr_number operand,
                            struct tyr_number *value);

// Replaces `expected` at `offset` by `data`, if exactly that is there; else `TYR_CONFLICT`.
struct tyr_error *tyr_compare_and_swap(struct tyr_keyspace *keyspace,
                                       struct tyr_slice key,
                                       uint64_t offset,
                                       struct tyr_slice expected,
                                       struct tyr_slice data);

// A blob's size and version; `TYR_NOT_FOUND` if there is none.
struct tyr_error *tyr_stat_blob(struct tyr_keyspace *keyspace,
                                struct tyr_slice key,
                                struct tyr_stat *stat);

// Reads up to `len` bytes at `offset` into `out`; `got` of them were there. At most 64 MiB.
struct tyr_error *tyr_read(struct tyr_keyspace *keyspace,
                           struct tyr_slice key,
                           uint64_t offset,
                           void *out,
                           size_t len,
                           size_t *got);

// Reads a whole blob of up to 64 MiB without a copy.
struct tyr_error *tyr_get(struct tyr_keyspace *keyspace,
                          struct tyr_slice key,
                          struct tyr_bytes **bytes);

// Reads many ranges of many blobs at one moment. `found` has room for `count` answers, each of
// which is bytes to free, or NULL for a blob that is not there.
struct tyr_error *tyr_read_many(struct tyr_store *store,
                                const struct tyr_read_request *requests,
                                size_t count,
                                struct tyr_bytes **found);

// The bytes themselves, good until they are freed; an empty slice for what is no `tyr_bytes`.
struct tyr_slice tyr_bytes_slice(const struct tyr_bytes *bytes);

// Frees bytes; NULL is nothing to free.
struct tyr_error *tyr_bytes_free(struct tyr_bytes *bytes);

// The version of everything that the transaction wrote.
struct tyr_error *tyr_committed_version(const struct tyr_committed *committed,
                                        struct tyr_timestamp *version);

// The offset that an append got.
struct tyr_error *tyr_committed_offset(const struct tyr_committed *committed,
                                       uint64_t operation,
                                       uint64_t *offset);

// The new value after arithmetic in place.
struct tyr_error *tyr_committed_value(const struct tyr_committed *committed,
                                      uint64_t operation,
                                      struct tyr_number *value);

// Whether there was a blob to delete.
struct tyr_error *tyr_committed_existed(const struct tyr_committed *committed,
                                        uint64_t operation,
                                        bool *existed);

// Frees it; NULL is nothing to free.
struct tyr_error *tyr_committed_free(struct tyr_committed *committed);

// Copies a blob, or a part of one, in one transaction; in a cluster from node to node. `copied`,
// which may be NULL, is how many bytes.
struct tyr_error *tyr_copy_blob(struct tyr_store *store,
                                const struct tyr_copy *copy,
                                uint64_t *copied);

// Copies with a transaction: a read of the one blob, which the commit validates, and a write of
// the other. What the transaction has written itself is not copied: copy first.
struct tyr_error *tyr_txn_copy(struct tyr_txn *txn, const struct tyr_copy *copy, uint64_t *copied);

// Makes an error, for the body of a tyr_transact that is to fail for a reason of the program's
// own. `kind` is one of `TYR_NOT_FOUND` to `TYR_CORRUPT`, of which `TYR_CONFLICT` has the body run
// again, or `TYR_CANCELLED`. Never NULL: for another kind, or a text that is none, it answers an
// error that says so.
struct tyr_error *tyr_error_new(int32_t kind, const char *text);

// What a caller can do about an error: `TYR_NOT_FOUND` and so on, `TYR_OK` for NULL. More may
// come: treat what you do not know like `TYR_UNAVAILABLE`.
int32_t tyr_error_kind(const struct tyr_error *error);

// What was wrong and what to do, in UTF-8; good until the error is freed. Never NULL.
const char *tyr_error_text(const struct tyr_error *error);

// Whether running the whole transaction again may succeed. tyr_transact does so.
bool tyr_error_is_retryable(const struct tyr_error *error);

// Whether it is unknown what became of the call: it may have taken effect, or do so yet.
bool tyr_error_is_open(const struct tyr_error *error);

// The condition of the transaction that did not hold, as its function numbered it;
// `TYR_NO_OPERATION` where it was none, or is not known. Several may not hold: it is one of them.
uint64_t tyr_error_operation(const struct tyr_error *error);

// Frees an error. Answers whether there was one: not for NULL, and not a second time.
bool tyr_error_free(struct tyr_error *error);

// The name of a kind, "NotFound" for `TYR_NOT_FOUND`; "unknown" for what is none. Never freed.
const char *tyr_error_kind_name(int32_t kind);

// How many handles of all kinds there are: what a program has not freed. For its tests.
size_t tyr_handles(void);

// The version of the library, "0.1.0". Never freed.
const char *tyr_version(void);

// Keeps everything as it is now, under a name, until it is dropped, also when the store is closed
// and opened again. It costs what is replaced later. `version`, which may be NULL, is the moment.
struct tyr_error *tyr_kept_make(struct tyr_store *store,
                                const char *name,
                                struct tyr_timestamp *version);

// Opens a kept snapshot, to be read for as long as it is kept.
struct tyr_error *tyr_kept_open(struct tyr_store *store,
                                const char *name,
                                struct tyr_snapshot **snapshot);

// Lists the kept snapshots, oldest first: a page whose keys are their names; the size of an entry
// is what is held for it and older ones, in bytes.
struct tyr_error *tyr_kept_list(struct tyr_store *store, struct tyr_page **page);

// Drops a kept snapshot; `TYR_NOT_FOUND` when there is none of this name.
struct tyr_error *tyr_kept_drop(struct tyr_store *store, const char *name);

// Lists a page of a keyspace, all of one moment. `scan` may be NULL: everything.
struct tyr_error *tyr_scan_page(struct tyr_keyspace *keyspace,
                                const struct tyr_scan *scan,
                                struct tyr_page **page);

// How many blobs it lists; 0 for what is no page.
size_t tyr_page_len(const struct tyr_page *page);

// How many groups it lists, which a delimiter makes; 0 for what is no page.
size_t tyr_page_groups(const struct tyr_page *page);

// A blob of the page, from 0.
struct tyr_error *tyr_page_entry(const struct tyr_page *page, size_t at, struct tyr_entry *entry);

// What the keys of a group begin with, from 0. The slice is the page's.
struct tyr_error *tyr_page_group(const struct tyr_page *page, size_t at, struct tyr_slice *group);

// Where to go on, as `from` of the next scan; empty when this was all. The slice is the page's.
struct tyr_error *tyr_page_resume(const struct tyr_page *page, struct tyr_slice *from);

// Frees it; NULL is nothing to free.
struct tyr_error *tyr_page_free(struct tyr_page *page);

// Takes a lock: of a key, whose blob has the lock's number. `TYR_CONFLICT` when others have it for
// as long as is waited. `options` may be NULL.
struct tyr_error *tyr_lock_take(struct tyr_keyspace *keyspace,
                                struct tyr_slice key,
                                const struct tyr_lock_options *options,
                                struct tyr_lock **lock);

// The lock's number, in `token`: higher than that of all who held it before. Whether it is held
// now as far as this process knows, in `is_held`, and whether others wait for it, in
// `is_recalled`. Each may be NULL.
struct tyr_error *tyr_lock_stat(struct tyr_lock *lock,
                                uint64_t *token,
                                bool *is_held,
                                bool *is_recalled);

// Adds a condition: the commit fails with `TYR_CONFLICT` if anybody else has got the lock since,
// whatever this process thinks that it holds.
struct tyr_error *tyr_txn_fence(struct tyr_txn *txn, struct tyr_lock *lock, uint64_t *operation);

// Gives a lock back, and says so in its blob. It takes `lock`, whatever it answers: `TYR_CONFLICT`
// when somebody else got it before, for it was over.
struct tyr_error *tyr_lock_unlock(struct tyr_lock *lock);

// Gives a lock back without a word in its blob. NULL is nothing to free.
struct tyr_error *tyr_lock_free(struct tyr_lock *lock);

// What a path has: NULL where there is nothing. `revision`, which may be NULL, is that of its last
// change, 0 where there is nothing.
struct tyr_error *tyr_metadata_get(struct tyr_store *store,
                                   const char *path,
                                   struct tyr_bytes **value,
                                   uint64_t *revision);

// Gives a path this value, if `expected` is the revision of its last change, 0 if there is none;
// else `TYR_CONFLICT`. `TYR_ANY_REVISION` has it without a condition. `revision`, which may be
// NULL, is the new one.
struct tyr_error *tyr_metadata_put(struct tyr_store *store,
                                   const char *path,
                                   struct tyr_slice value,
                                   uint64_t expected,
                                   uint64_t *revision);

// Takes a path away, on the condition that tyr_metadata_put has.
struct tyr_error *tyr_metadata_delete(struct tyr_store *store,
                                      const char *path,
                                      uint64_t expected,
                                      uint64_t *revision);

// Lists paths that begin with `prefix` and come after `after`, which may be NULL, in order: a page
// whose keys are the paths and whose bytes the values, at most `limit`. The next begins after the
// last of them, and there is none after an empty one.
struct tyr_error *tyr_metadata_list(struct tyr_store *store,
                                    const char *prefix,
                                    const char *after,
                                    size_t limit,
                                    struct tyr_page **page);

// Makes a queue. `queue` is to be freed with tyr_queue_free.
struct tyr_error *tyr_queue_new(struct tyr_queue **queue);

// Takes up to `most` completions, in the order in which they came, and says how many in `taken`.
// Where there is none it waits for the first, for `timeout_us` microseconds at most: 0 does not
// wait, a negative time has no end. `most` is 1 to 65,536.
struct tyr_error *tyr_queue_take(struct tyr_queue *queue,
                                 struct tyr_done *done,
                                 size_t most,
                                 int64_t timeout_us,
                                 size_t *taken);

// Puts a completion of the program's own into the queue, with `value`: it wakes who waits in
// tyr_queue_take. It counts among the calls that a queue has.
struct tyr_error *tyr_queue_post(struct tyr_queue *queue, uint64_t tag, uint64_t value);

// A descriptor that is readable while there are completions to take, for poll, epoll and event
// loops. It is the queue's: neither read nor close it.
struct tyr_error *tyr_queue_fd(struct tyr_queue *queue, int *fd);

// How many calls have no completion yet, in `under_way`.
struct tyr_error *tyr_queue_under_way(struct tyr_queue *queue, size_t *under_way);

// Cancels the calls under way that were started with this tag; `cancelled`, which may be NULL, is
// how many. Each has its completion all the same, with `TYR_CANCELLED` unless its answer was
// faster.
struct tyr_error *tyr_queue_cancel(struct tyr_queue *queue, uint64_t tag, size_t *cancelled);

// Frees a queue: cancels what is under way, waits until nothing is, and drops what was not taken.
// After that no call touches anything that it was lent. NULL is nothing to free.
struct tyr_error *tyr_queue_free(struct tyr_queue *queue);

// Takes a snapshot.
struct tyr_error *tyr_snapshot_take(struct tyr_store *store, struct tyr_snapshot **snapshot);

// The moment that it shows.
struct tyr_error *tyr_snapshot_version(const struct tyr_snapshot *snapshot,
                                       struct tyr_timestamp *version);

// Reads as tyr_read does, at the snapshot's moment.
struct tyr_error *tyr_snapshot_read(const struct tyr_snapshot *snapshot,
                                    struct tyr_keyspace *keyspace,
                                    struct tyr_slice key,
                                    uint64_t offset,
                                    void *out,
                                    size_t len,
                                    size_t *got);

// Reads a whole blob of up to 64 MiB, at the snapshot's moment.
struct tyr_error *tyr_snapshot_get(const struct tyr_snapshot *snapshot,
                                   struct tyr_keyspace *keyspace,
                                   struct tyr_slice key,
                                   struct tyr_bytes **bytes);

// A blob's size and version, at the snapshot's moment.
struct tyr_error *tyr_snapshot_stat(const struct tyr_snapshot *snapshot,
                                    struct tyr_keyspace *keyspace,
                                    struct tyr_slice key,
                                    struct tyr_stat *stat);

// Lists a page, at the snapshot's moment. `scan` may be NULL: everything.
struct tyr_error *tyr_snapshot_scan(const struct tyr_snapshot *snapshot,
                                    struct tyr_keyspace *keyspace,
                                    const struct tyr_scan *scan,
                                    struct tyr_page **page);

// Frees it; NULL is nothing to free.
struct tyr_error *tyr_snapshot_free(struct tyr_snapshot *snapshot);

// As tyr_txn_put, and the commit fills the 16 bytes at each of the `count` places, which are
// counted from the beginning of `data`, with its version: as in `tyr_timestamp`, so they order as
// commits do. 1 to 16 places that do not overlap.
struct tyr_error *tyr_txn_put_stamped(struct tyr_txn *txn,
                                      struct tyr_keyspace *keyspace,
                                      struct tyr_slice key,
                                      struct tyr_slice data,
                                      const size_t *places,
                                      size_t count,
                                      uint64_t *operation);

// As tyr_txn_append, with stamps.
struct tyr_error *tyr_txn_append_stamped(struct tyr_txn *txn,
                                         struct tyr_keyspace *keyspace,
                                         struct tyr_slice key,
                                         struct tyr_slice data,
                                         const size_t *places,
                                         size_t count,
                                         uint64_t *operation);

// Starts tyr_create.
struct tyr_error *tyr_create_start(struct tyr_keyspace *keyspace,
                                   struct tyr_slice key,
                                   struct tyr_queue *queue,
                                   uint64_t tag);

// Starts tyr_put. `data` is lent until this returns.
struct tyr_error *tyr_put_start(struct tyr_keyspace *keyspace,
                                struct tyr_slice key,
                                struct tyr_slice data,
                                struct tyr_queue *queue,
                                uint64_t tag);

// Starts tyr_write.
struct tyr_error *tyr_write_start(struct tyr_keyspace *keyspace,
                                  struct tyr_slice key,
                                  uint64_t offset,
                                  struct tyr_slice data,
                                  struct tyr_queue *queue,
                                  uint64_t tag);

// Starts tyr_append: `value` of the completion is the offset.
struct tyr_error *tyr_append_start(struct tyr_keyspace *keyspace,
                                   struct tyr_slice key,
                                   struct tyr_slice data,
                                   struct tyr_queue *queue,
                                   uint64_t tag);

// Starts tyr_append_at: `value` of the completion is the offset.
struct tyr_error *tyr_append_at_start(struct tyr_keyspace *keyspace,
                                      struct tyr_slice key,
                                      uint64_t expected,
                                      struct tyr_slice data,
                                      struct tyr_queue *queue,
                                      uint64_t tag);

// Starts tyr_truncate.
struct tyr_error *tyr_truncate_start(struct tyr_keyspace *keyspace,
                                     struct tyr_slice key,
                                     uint64_t len,
                                     struct tyr_queue *queue,
                                     uint64_t tag);

// Starts tyr_clear.
struct tyr_error *tyr_clear_start(struct tyr_keyspace *keyspace,
                                  struct tyr_slice key,
                                  uint64_t offset,
                                  uint64_t len,
                                  struct tyr_queue *queue,
                                  uint64_t tag);

// Starts tyr_delete: `value` of the completion is 1 if there was a blob.
struct tyr_error *tyr_delete_start(struct tyr_keyspace *keyspace,
                                   struct tyr_slice key,
                                   struct tyr_queue *queue,
                                   uint64_t tag);

// Starts tyr_apply: `number` of the completion is the new value.
struct tyr_error *tyr_apply_start(struct tyr_keyspace *keyspace,
                                  struct tyr_slice key,
                                  uint64_t offset,
                                  int32_t what,
                                  struct tyr_number operand,
                                  struct tyr_queue *queue,
                                  uint64_t tag);

// Starts tyr_compare_and_swap.
struct tyr_error *tyr_compare_and_swap_start(struct tyr_keyspace *keyspace,
                                             struct tyr_slice key,
                                             uint64_t offset,
                                             struct tyr_slice expected,
                                             struct tyr_slice data,
                                             struct tyr_queue *queue,
                                             uint64_t tag);

// Starts tyr_stat_blob: `value` of the completion is the size, `version` the version.
struct tyr_error *tyr_stat_start(struct tyr_keyspace *keyspace,
                                 struct tyr_slice key,
                                 struct tyr_queue *queue,
                                 uint64_t tag);

// Starts tyr_read: `value` of the completion is how many bytes are in `out`, which is lent until
// the completion was taken, also after a cancel.
struct tyr_error *tyr_read_start(struct tyr_keyspace *keyspace,
                                 struct tyr_slice key,
                                 uint64_t offset,
                                 void *out,
                                 size_t len,
                                 struct tyr_queue *queue,
                                 uint64_t tag);

// Starts tyr_get: `bytes` of the completion are the blob's.
struct tyr_error *tyr_get_start(struct tyr_keyspace *keyspace,
                                struct tyr_slice key,
                                struct tyr_queue *queue,
                                uint64_t tag);

// Starts tyr_scan_page: `page` of the completion is the page, `value` how many blobs it lists.
struct tyr_error *tyr_scan_start(struct tyr_keyspace *keyspace,
                                 const struct tyr_scan *scan,
                                 struct tyr_queue *queue,
                                 uint64_t tag);

// Starts tyr_commit: `committed` of the completion is what it answers. It takes `txn`, whatever it
// answers; if it was not started, everything is taken back.
struct tyr_error *tyr_commit_start(struct tyr_txn *txn, struct tyr_queue *queue, uint64_t tag);

// Starts tyr_txn_read, as tyr_read_start does. Until its completion was taken, every other call of
// `txn` is refused, here and below; a tyr_commit then takes everything back.
struct tyr_error *tyr_txn_read_start(struct tyr_txn *txn,
                                     struct tyr_keyspace *keyspace,
                                     struct tyr_slice key,
                                     uint64_t offset,
                                     void *out,
                                     size_t len,
                                     struct tyr_queue *queue,
                                     uint64_t tag);

// Starts tyr_txn_get: `bytes` of the completion are the blob's.
struct tyr_error *tyr_txn_get_start(struct tyr_txn *txn,
                                    struct tyr_keyspace *keyspace,
                                    struct tyr_slice key,
                                    struct tyr_queue *queue,
                                    uint64_t tag);

// Starts tyr_txn_stat: `value` of the completion is the size, `version` the version.
struct tyr_error *tyr_txn_stat_start(struct tyr_txn *txn,
                                     struct tyr_keyspace *keyspace,
                                     struct tyr_slice key,
                                     struct tyr_queue *queue,
                                     uint64_t tag);

// Starts tyr_txn_scan: `page` of the completion is the page.
struct tyr_error *tyr_txn_scan_start(struct tyr_txn *txn,
                                     struct tyr_keyspace *keyspace,
                                     const struct tyr_scan *scan,
                                     struct tyr_queue *queue,
                                     uint64_t tag);

// Starts tyr_snapshot_take: `snapshot` of the completion is the snapshot.
struct tyr_error *tyr_snapshot_take_start(struct tyr_store *store,
                                          struct tyr_queue *queue,
                                          uint64_t tag);

// Starts tyr_snapshot_read, as tyr_read_start does.
struct tyr_error *tyr_snapshot_read_start(const struct tyr_snapshot *snapshot,
                                          struct tyr_keyspace *keyspace,
                                          struct tyr_slice key,
                                          uint64_t offset,
                                          void *out,
                                          size_t len,
                                          struct tyr_queue *queue,
                                          uint64_t tag);

// Starts tyr_snapshot_get: `bytes` of the completion are the blob's.
struct tyr_error *tyr_snapshot_get_start(const struct tyr_snapshot *snapshot,
                                         struct tyr_keyspace *keyspace,
                                         struct tyr_slice key,
                                         struct tyr_queue *queue,
                                         uint64_t tag);

// Starts tyr_snapshot_stat: `value` of the completion is the size, `version` the version.
struct tyr_error *tyr_snapshot_stat_start(const struct tyr_snapshot *snapshot,
                                          struct tyr_keyspace *keyspace,
                                          struct tyr_slice key,
                                          struct tyr_queue *queue,
                                          uint64_t tag);

// Starts tyr_snapshot_scan: `page` of the completion is the page.
struct tyr_error *tyr_snapshot_scan_start(const struct tyr_snapshot *snapshot,
                                          struct tyr_keyspace *keyspace,
                                          const struct tyr_scan *scan,
                                          struct tyr_queue *queue,
                                          uint64_t tag);

// Opens the store in a folder, or makes one there. One process has it open at a time. `options`
// may be NULL.
struct tyr_error *tyr_open(const char *folder,
                           const struct tyr_open_options *options,
                           struct tyr_store **store);

// Connects to a cluster: "tyr://host:port,other:port", behind which options may stand as in
// "?user=ann&key_file=/etc/key". `options` may be NULL; what the address says counts first.
struct tyr_error *tyr_connect(const char *address,
                              const struct tyr_connect_options *options,
                              struct tyr_store **store);

// Closes a store and frees it. What was acknowledged is on disk; what is under way ends with an
// error, and so does every later call on keyspaces, snapshots and transactions of it, which are
// still to be freed. NULL is nothing to close.
struct tyr_error *tyr_close(struct tyr_store *store);

// Waits until everything that was acknowledged before is on disk, also in keyspaces of
// `TYR_BUFFERED`.
struct tyr_error *tyr_sync(struct tyr_store *store);

// Finds a keyspace.
struct tyr_error *tyr_keyspace_find(struct tyr_store *store,
                                    const char *name,
                                    struct tyr_keyspace **keyspace);

// Makes a keyspace. `config` may be NULL. It stays as it is created.
struct tyr_error *tyr_keyspace_create(struct tyr_store *store,
                                      const char *name,
                                      const struct tyr_keyspace_config *config,
                                      struct tyr_keyspace **keyspace);

// Finds a keyspace, or makes it; `TYR_ALREADY_EXISTS` if it has another configuration.
struct tyr_error *tyr_keyspace_find_or_create(struct tyr_store *store,
                                              const char *name,
                                              const struct tyr_keyspace_config *config,
                                              struct tyr_keyspace **keyspace);

// Removes a keyspace and all its blobs.
struct tyr_error *tyr_keyspace_drop(struct tyr_store *store, const char *name);

// Lists the keyspaces: a page whose keys are their names.
struct tyr_error *tyr_keyspace_list(struct tyr_store *store, struct tyr_page **page);

// Frees a keyspace's handle; NULL is nothing to free.
struct tyr_error *tyr_keyspace_free(struct tyr_keyspace *keyspace);

// Opens `len` bytes from `offset` on, fewer where the blob ends: `UINT64_MAX` is all that follow.
// It shows the blob as it is now, for 5 minutes unless set.
struct tyr_error *tyr_reader_open(struct tyr_keyspace *keyspace,
                                  struct tyr_slice key,
                                  uint64_t offset,
                                  uint64_t len,
                                  struct tyr_reader **reader);

// The same at a snapshot's moment. The reader needs the snapshot no more.
struct tyr_error *tyr_snapshot_reader_open(const struct tyr_snapshot *snapshot,
                                           struct tyr_keyspace *keyspace,
                                           struct tyr_slice key,
                                           uint64_t offset,
                                           uint64_t len,
                                           struct tyr_reader **reader);

// The size of the whole blob, in `size`, and how many bytes are still to come, in `remaining`.
// Either may be NULL.
struct tyr_error *tyr_reader_stat(struct tyr_reader *reader, uint64_t *size, uint64_t *remaining);

// Reads the next piece, of up to 1 MiB; NULL at the end.
struct tyr_error *tyr_reader_next(struct tyr_reader *reader, struct tyr_bytes **bytes);

// Frees it; NULL is nothing to free.
struct tyr_error *tyr_reader_free(struct tyr_reader *reader);

// Makes a blob's content what `source` gives until it answers 0, in one transaction: nobody sees a
// part of it. `source` puts up to `len` bytes into `out` and answers how many; where it answers a
// negative number, nothing changes, and the call fails. `context` is passed on. `size`, which may
// be NULL, is how many bytes it were.
struct tyr_error *tyr_put_stream(struct tyr_keyspace *keyspace,
                                 struct tyr_slice key,
                                 int64_t (*source)(void *context, void *out, size_t len),
                                 void *context,
                                 uint64_t *size);

// Writes what `source` gives at `offset`, as tyr_put_stream does.
struct tyr_error *tyr_write_stream(struct tyr_keyspace *keyspace,
                                   struct tyr_slice key,
                                   uint64_t offset,
                                   int64_t (*source)(void *context, void *out, size_t len),
                                   void *context,
                                   uint64_t *size);

// Appends what `source` gives, as tyr_put_stream does; `offset`, which may be NULL, is where it
// lies.
struct tyr_error *tyr_append_stream(struct tyr_keyspace *keyspace,
                                    struct tyr_slice key,
                                    int64_t (*source)(void *context, void *out, size_t len),
                                    void *context,
                                    uint64_t *offset);

// Begins a transaction: tyr_commit or tyr_rollback ends it.
struct tyr_error *tyr_begin(struct tyr_store *store, struct tyr_txn **txn);

// Makes an empty blob; the commit fails with `TYR_ALREADY_EXISTS` if there is one. `operation`,
// here and below, may be NULL: it is a number to ask `tyr_committed` or an error with.
struct tyr_error *tyr_txn_create(struct tyr_txn *txn,
                                 struct tyr_keyspace *keyspace,
                                 struct tyr_slice key,
                                 uint64_t *operation);

// Makes a blob's content `data` and nothing else.
struct tyr_error *tyr_txn_put(struct tyr_txn *txn,
                              struct tyr_keyspace *keyspace,
                              struct tyr_slice key,
                              struct tyr_slice data,
                              uint64_t *operation);

// Writes `data` at `offset`.
struct tyr_error *tyr_txn_write(struct tyr_txn *txn,
                                struct tyr_keyspace *keyspace,
                                struct tyr_slice key,
                                uint64_t offset,
                                struct tyr_slice data,
                                uint64_t *operation);

// Appends `data`; tyr_committed_offset tells where.
struct tyr_error *tyr_txn_append(struct tyr_txn *txn,
                                 struct tyr_keyspace *keyspace,
                                 struct tyr_slice key,
                                 struct tyr_slice data,
                                 uint64_t *operation);

// Appends `data` if the blob ends at `expected` then; else the commit fails with `TYR_CONFLICT`.
struct tyr_error *tyr_txn_append_at(struct tyr_txn *txn,
                                    struct tyr_keyspace *keyspace,
                                    struct tyr_slice key,
                                    uint64_t expected,
                                    struct tyr_slice data,
                                    uint64_t *operation);

// Cuts a blob to `len` bytes, or extends it with zeros.
struct tyr_error *tyr_txn_truncate(struct tyr_txn *txn,
                                   struct tyr_keyspace *keyspace,
                                   struct tyr_slice key,
                                   uint64_t len,
                                   uint64_t *operation);

// Makes a hole of `len` bytes at `offset`.
struct tyr_error *tyr_txn_clear(struct tyr_txn *txn,
                                struct tyr_keyspace *keyspace,
                                struct tyr_slice key,
                                uint64_t offset,
                                uint64_t len,
                                uint64_t *operation);

// Removes a blob; tyr_committed_existed tells whether there was one.
struct tyr_error *tyr_txn_delete(struct tyr_txn *txn,
                                 struct tyr_keyspace *keyspace,
                                 struct tyr_slice key,
                                 uint64_t *operation);

// Does arithmetic in place; tyr_committed_value tells the new value.
struct tyr_error *tyr_txn_apply(struct tyr_txn *txn,
                                struct tyr_keyspace *keyspace,
                                struct tyr_slice key,
                                uint64_t offset,
                                int32_t what,
                                struct tyr_number operand,
                                uint64_t *operation);

// Adds a condition: the commit fails with `TYR_CONFLICT` unless exactly `expected` is at `offset`.
struct tyr_error *tyr_txn_compare(struct tyr_txn *txn,
                                  struct tyr_keyspace *keyspace,
                                  struct tyr_slice key,
                                  uint64_t offset,
                                  struct tyr_slice expected,
                                  uint64_t *operation);

// Adds a condition: the commit fails with `TYR_CONFLICT` unless the number at `offset` stands so
// to `value`: x `relation` value, `TYR_LESS` for example. One that was never written is zero.
struct tyr_error *tyr_txn_compare_number(struct tyr_txn *txn,
                                         struct tyr_keyspace *keyspace,
                                         struct tyr_slice key,
                                         uint64_t offset,
                                         int32_t relation,
                                         struct tyr_number value,
                                         uint64_t *operation);

// Adds a condition: the commit fails with `TYR_ALREADY_EXISTS` if there is a blob.
struct tyr_error *tyr_txn_expect_absent(struct tyr_txn *txn,
                                        struct tyr_keyspace *keyspace,
                                        struct tyr_slice key,
                                        uint64_t *operation);

// Adds a condition: the commit fails with `TYR_NOT_FOUND` unless there is a blob.
struct tyr_error *tyr_txn_expect_present(struct tyr_txn *txn,
                                         struct tyr_keyspace *keyspace,
                                         struct tyr_slice key,
                                         uint64_t *operation);

// Adds a condition: the commit fails with `TYR_CONFLICT` if the blob was written after `version`.
struct tyr_error *tyr_txn_expect_version(struct tyr_txn *txn,
                                         struct tyr_keyspace *keyspace,
                                         struct tyr_slice key,
                                         struct tyr_timestamp version);

// Reads as tyr_read does, at one version, with this transaction's own writes. What was read is
// validated by the commit.
struct tyr_error *tyr_txn_read(struct tyr_txn *txn,
                               struct tyr_keyspace *keyspace,
                               struct tyr_slice key,
                               uint64_t offset,
                               void *out,
                               size_t len,
                               size_t *got);

// Reads a whole blob of up to 64 MiB in a transaction.
struct tyr_error *tyr_txn_get(struct tyr_txn *txn,
                              struct tyr_keyspace *keyspace,
                              struct tyr_slice key,
                              struct tyr_bytes **bytes);

// A blob's size and version in a transaction. Whatever others write of the blob until the commit
// is a conflict.
struct tyr_error *tyr_txn_stat(struct tyr_txn *txn,
                               struct tyr_keyspace *keyspace,
                               struct tyr_slice key,
                               struct tyr_stat *stat);

// Lists a page of the keys of one group in a transaction; what it shows is validated by the
// commit.
struct tyr_error *tyr_txn_scan(struct tyr_txn *txn,
                               struct tyr_keyspace *keyspace,
                               const struct tyr_scan *scan,
                               struct tyr_page **page);

// Commits: everything takes effect, at once, or nothing. It takes `txn`, whatever it answers.
// `committed` may be NULL.
struct tyr_error *tyr_commit(struct tyr_txn *txn, struct tyr_committed **committed);

// Takes everything back. NULL is nothing to take back. A call that was started with it ends as if
// nothing had happened.
struct tyr_error *tyr_rollback(struct tyr_txn *txn);

// Runs `body` with a transaction and commits it; runs it again, up to 64 times, when it or the
// commit meets a conflict. The transaction is lent: it is neither committed nor rolled back in
// `body`. An error that `body` returns rolls back, and is the answer unless it is retryable.
// `context` is passed on.
struct tyr_error *tyr_transact(struct tyr_store *store,
                               struct tyr_error *(*body)(struct tyr_txn *txn, void *context),
                               void *context);

// Asks what became of a commit that ended as `TYR_TIMED_OUT`: what it answers, or why it did not
// take effect. `committed` may be NULL.
struct tyr_error *tyr_outcome(struct tyr_store *store,
                              const struct tyr_error *error,
                              struct tyr_committed **committed);

// Watches a key. The first event comes at once, and says to look.
struct tyr_error *tyr_watch_key(struct tyr_keyspace *keyspace,
                                struct tyr_slice key,
                                struct tyr_watch **watch);

// Watches all keys that begin with `prefix`.
struct tyr_error *tyr_watch_prefix(struct tyr_keyspace *keyspace,
                                   struct tyr_slice prefix,
                                   struct tyr_watch **watch);

// Waits for an event, for `timeout_us` microseconds at most: a negative time has no end.
struct tyr_error *tyr_watch_next(struct tyr_watch *watch,
                                 int64_t timeout_us,
                                 struct tyr_watch_event *event);

// Ends a watch; NULL is nothing to free.
struct tyr_error *tyr_watch_free(struct tyr_watch *watch);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* TYR_H */

#define TYR_OPEN_OPTIONS_INIT {.size = sizeof(tyr_open_options)}
#define TYR_CONNECT_OPTIONS_INIT {.size = sizeof(tyr_connect_options)}
#define TYR_KEYSPACE_CONFIG_INIT {.size = sizeof(tyr_keyspace_config)}
#define TYR_SCAN_INIT {.size = sizeof(tyr_scan)}
#define TYR_COPY_INIT {.size = sizeof(tyr_copy)}
#define TYR_LOCK_OPTIONS_INIT {.size = sizeof(tyr_lock_options)}

/* The bytes of a text. */
static inline tyr_slice tyr_text(const char *text) {
  tyr_slice slice;
  slice.data = text;
  slice.len = text == NULL ? 0 : strlen(text);
  return slice;
}

/* `len` bytes at `data`. */
static inline tyr_slice tyr_data(const void *data, size_t len) {
  tyr_slice slice;
  slice.data = data;
  slice.len = len;
  return slice;
}

static inline tyr_number tyr_number_of(int32_t type, uint64_t bits) {
  tyr_number number;
  number.type_ = type;
  number.bits = bits;
  return number;
}

static inline tyr_number tyr_i8(int8_t x) { return tyr_number_of(TYR_I8, (uint8_t)x); }
static inline tyr_number tyr_i16(int16_t x) { return tyr_number_of(TYR_I16, (uint16_t)x); }
static inline tyr_number tyr_i32(int32_t x) { return tyr_number_of(TYR_I32, (uint32_t)x); }
static inline tyr_number tyr_i64(int64_t x) { return tyr_number_of(TYR_I64, (uint64_t)x); }
static inline tyr_number tyr_u8(uint8_t x) { return tyr_number_of(TYR_U8, x); }
static inline tyr_number tyr_u16(uint16_t x) { return tyr_number_of(TYR_U16, x); }
static inline tyr_number tyr_u32(uint32_t x) { return tyr_number_of(TYR_U32, x); }
static inline tyr_number tyr_u64(uint64_t x) { return tyr_number_of(TYR_U64, x); }

static inline tyr_number tyr_f32(float x) {
  uint32_t bits;
  memcpy(&bits, &x, sizeof bits);
  return tyr_number_of(TYR_F32, bits);
}

static inline tyr_number tyr_f64(double x) {
  uint64_t bits;
  memcpy(&bits, &x, sizeof bits);
  return tyr_number_of(TYR_F64, bits);
}

/* A number as a double; exact but for integers beyond 2^53. */
static inline double tyr_as_f64(tyr_number number) {
  switch (number.type_) {
    case TYR_I8: return (int8_t)number.bits;
    case TYR_I16: return (int16_t)number.bits;
    case TYR_I32: return (int32_t)number.bits;
    case TYR_I64: return (double)(int64_t)number.bits;
    case TYR_F32: {
      uint32_t bits = (uint32_t)number.bits;
      float x;
      memcpy(&x, &bits, sizeof x);
      return x;
    }
    case TYR_F64: {
      double x;
      memcpy(&x, &number.bits, sizeof x);
      return x;
    }
    default: return (double)number.bits;
  }
}

/* A number of an integer type as a signed one; 0 for a floating point number. */
static inline int64_t tyr_as_i64(tyr_number number) {
  switch (number.type_) {
    case TYR_I8: return (int8_t)number.bits;
    case TYR_I16: return (int16_t)number.bits;
    case TYR_I32: return (int32_t)number.bits;
    case TYR_F32:
    case TYR_F64: return 0;
    default: return (int64_t)number.bits;
  }
}

/* A number of an unsigned type. */
static inline uint64_t tyr_as_u64(tyr_number number) { return (uint64_t)tyr_as_i64(number); }
