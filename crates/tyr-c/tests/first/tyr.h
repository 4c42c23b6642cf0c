/* libtyr 0.1.0: what programs were built by. Without its comments, and never changed. */

#ifndef TYR_H
#define TYR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define TYR_OK 0

#define TYR_NOT_FOUND 1

#define TYR_ALREADY_EXISTS 2

#define TYR_CONFLICT 3

#define TYR_UNAVAILABLE 4

#define TYR_TIMED_OUT 5

#define TYR_SNAPSHOT_TOO_OLD 6

#define TYR_INVALID_ARGUMENT 7

#define TYR_PERMISSION_DENIED 8

#define TYR_QUOTA_EXCEEDED 9

#define TYR_CORRUPT 10

#define TYR_CANCELLED 100

#define TYR_BUG 101

#define TYR_NO_OPERATION UINT64_MAX

#define TYR_ANY_REVISION UINT64_MAX

#define TYR_I8 1

#define TYR_I16 2

#define TYR_I32 3

#define TYR_I64 4

#define TYR_U8 5

#define TYR_U16 6

#define TYR_U32 7

#define TYR_U64 8

#define TYR_F32 9

#define TYR_F64 10

#define TYR_ADD 1

#define TYR_SUB 2

#define TYR_MUL 3

#define TYR_DIV 4

#define TYR_MIN 5

#define TYR_MAX 6

#define TYR_AND 7

#define TYR_OR 8

#define TYR_XOR 9

#define TYR_SWAP 10

#define TYR_EQUAL 1

#define TYR_NOT_EQUAL 2

#define TYR_LESS 3

#define TYR_LESS_OR_EQUAL 4

#define TYR_GREATER 5

#define TYR_GREATER_OR_EQUAL 6

#define TYR_SYNC 1

#define TYR_BUFFERED 2

#define TYR_MEMORY 3

typedef struct tyr_bytes tyr_bytes;

typedef struct tyr_committed tyr_committed;

typedef struct tyr_error tyr_error;

typedef struct tyr_keyspace tyr_keyspace;

typedef struct tyr_lock tyr_lock;

typedef struct tyr_page tyr_page;

typedef struct tyr_queue tyr_queue;

typedef struct tyr_reader tyr_reader;

typedef struct tyr_snapshot tyr_snapshot;

typedef struct tyr_store tyr_store;

typedef struct tyr_txn tyr_txn;

typedef struct tyr_watch tyr_watch;

typedef struct tyr_slice {
  const void *data;
  size_t len;
} tyr_slice;

typedef struct tyr_number {
  int32_t type_;
  uint64_t bits;
} tyr_number;

typedef struct tyr_timestamp {
  uint8_t bytes[16];
} tyr_timestamp;

typedef struct tyr_stat {
  uint64_t size;
  struct tyr_timestamp version;
} tyr_stat;

typedef struct tyr_read_request {
  struct tyr_keyspace *keyspace;
  struct tyr_slice key;
  uint64_t offset;
  uint64_t len;
} tyr_read_request;

typedef struct tyr_copy {
  size_t size;
  struct tyr_keyspace *from;
  struct tyr_slice from_key;
  struct tyr_keyspace *to;
  struct tyr_slice to_key;
  int32_t is_part;
  int32_t reserved;
  uint64_t from_offset;
  uint64_t len;
  uint64_t to_offset;
} tyr_copy;

typedef struct tyr_scan {
  size_t size;
  struct tyr_slice prefix;
  struct tyr_slice from;
  struct tyr_slice to;
  struct tyr_slice after;
  struct tyr_slice delimiter;
  size_t limit;
  uint64_t first_bytes;
  int32_t is_keys_only;
} tyr_scan;

typedef struct tyr_entry {
  struct tyr_slice key;
  struct tyr_stat stat;
  struct tyr_slice bytes;
} tyr_entry;

typedef struct tyr_lock_options {
  size_t size;
  uint64_t wait_ms;
  int32_t is_no_wait;
  int32_t reserved;
  uint64_t duration_ms;
  const char *holder;
} tyr_lock_options;

typedef struct tyr_done {
  uint64_t tag;
  struct tyr_error *error;
  uint64_t value;
  struct tyr_number number;
  struct tyr_timestamp version;
  struct tyr_bytes *bytes;
  struct tyr_committed *committed;
  struct tyr_page *page;
  struct tyr_snapshot *snapshot;
  uint64_t reserved[3];
} tyr_done;

typedef struct tyr_open_options {
  size_t size;
  uint64_t cache_bytes;
  int32_t is_read_only;
  int32_t must_exist;
  uint64_t snapshot_timeout_ms;
} tyr_open_options;

typedef struct tyr_connect_options {
  size_t size;
  const char *user;
  const char *key;
  const char *key_file;
  uint64_t timeout_ms;
  uint64_t connect_timeout_ms;
  const char *tls_ca;
  const char *tls_certificate;
  const char *tls_key;
  const char *tls_domain;
} tyr_connect_options;

typedef struct tyr_keyspace_config {
  size_t size;
  uint64_t chunk_size;
  int32_t replication;
  int32_t live_replicas_min;
  int32_t durability;
  int32_t is_compressed;
  int32_t is_single_versioned;
  int32_t is_guarded;
  const char *placed_by;
} tyr_keyspace_config;

typedef struct tyr_watch_event {
  struct tyr_page *keys;
  struct tyr_timestamp version;
  int32_t is_anew;
  int32_t is_more;
} tyr_watch_event;

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

struct tyr_error *tyr_create(struct tyr_keyspace *keyspace, struct tyr_slice key);

struct tyr_error *tyr_put(struct tyr_keyspace *keyspace,
                          struct tyr_slice key,
                          struct tyr_slice data);

struct tyr_error *tyr_write(struct tyr_keyspace *keyspace,
                            struct tyr_slice key,
                            uint64_t offset,
                            struct tyr_slice data);

struct tyr_error *tyr_append(struct tyr_keyspace *keyspace,
                             struct tyr_slice key,
                             struct tyr_slice data,
                             uint64_t *offset);

struct tyr_error *tyr_append_at(struct tyr_keyspace *keyspace,
                                struct tyr_slice key,
                                uint64_t expected,
                                struct tyr_slice data);

struct tyr_error *tyr_truncate(struct tyr_keyspace *keyspace, struct tyr_slice key, uint64_t len);

struct tyr_error *tyr_clear(struct tyr_keyspace *keyspace,
                            struct tyr_slice key,
                            uint64_t offset,
                            uint64_t len);

struct tyr_error *tyr_delete(struct tyr_keyspace *keyspace, struct tyr_slice key, bool *existed);

struct tyr_error *tyr_apply(struct tyr_keyspace *keyspace,
                            struct tyr_slice key,
                            uint64_t offset,
                            int32_t what,
                            struct tyr_number operand,
                            struct tyr_number *value);

struct tyr_error *tyr_compare_and_swap(struct tyr_keyspace *keyspace,
                                       struct tyr_slice key,
                                       uint64_t offset,
                                       struct tyr_slice expected,
                                       struct tyr_slice data);

struct tyr_error *tyr_stat_blob(struct tyr_keyspace *keyspace,
                                struct tyr_slice key,
                                struct tyr_stat *stat);

struct tyr_error *tyr_read(struct tyr_keyspace *keyspace,
                           struct tyr_slice key,
                           uint64_t offset,
                           void *out,
                           size_t len,
                           size_t *got);

struct tyr_error *tyr_get(struct tyr_keyspace *keyspace,
                          struct tyr_slice key,
                          struct tyr_bytes **bytes);

struct tyr_error *tyr_read_many(struct tyr_store *store,
                                const struct tyr_read_request *requests,
                                size_t count,
                                struct tyr_bytes **found);

struct tyr_slice tyr_bytes_slice(const struct tyr_bytes *bytes);

struct tyr_error *tyr_bytes_free(struct tyr_bytes *bytes);

struct tyr_error *tyr_committed_version(const struct tyr_committed *committed,
                                        struct tyr_timestamp *version);

struct tyr_error *tyr_committed_offset(const struct tyr_committed *committed,
                                       uint64_t operation,
                                       uint64_t *offset);

struct tyr_error *tyr_committed_value(const struct tyr_committed *committed,
                                      uint64_t operation,
                                      struct tyr_number *value);

struct tyr_error *tyr_committed_existed(const struct tyr_committed *committed,
                                        uint64_t operation,
                                        bool *existed);

struct tyr_error *tyr_committed_free(struct tyr_committed *committed);

struct tyr_error *tyr_copy_blob(struct tyr_store *store,
                                const struct tyr_copy *copy,
                                uint64_t *copied);

struct tyr_error *tyr_txn_copy(struct tyr_txn *txn, const struct tyr_copy *copy, uint64_t *copied);

struct tyr_error *tyr_error_new(int32_t kind, const char *text);

int32_t tyr_error_kind(const struct tyr_error *error);

const char *tyr_error_text(const struct tyr_error *error);

bool tyr_error_is_retryable(const struct tyr_error *error);

bool tyr_error_is_open(const struct tyr_error *error);

uint64_t tyr_error_operation(const struct tyr_error *error);

bool tyr_error_free(struct tyr_error *error);

const char *tyr_error_kind_name(int32_t kind);

size_t tyr_handles(void);

const char *tyr_version(void);

struct tyr_error *tyr_kept_make(struct tyr_store *store,
                                const char *name,
                                struct tyr_timestamp *version);

struct tyr_error *tyr_kept_open(struct tyr_store *store,
                                const char *name,
                                struct tyr_snapshot **snapshot);

struct tyr_error *tyr_kept_list(struct tyr_store *store, struct tyr_page **page);

struct tyr_error *tyr_kept_drop(struct tyr_store *store, const char *name);

struct tyr_error *tyr_scan_page(struct tyr_keyspace *keyspace,
                                const struct tyr_scan *scan,
                                struct tyr_page **page);

size_t tyr_page_len(const struct tyr_page *page);

size_t tyr_page_groups(const struct tyr_page *page);

struct tyr_error *tyr_page_entry(const struct tyr_page *page, size_t at, struct tyr_entry *entry);

struct tyr_error *tyr_page_group(const struct tyr_page *page, size_t at, struct tyr_slice *group);

struct tyr_error *tyr_page_resume(const struct tyr_page *page, struct tyr_slice *from);

struct tyr_error *tyr_page_free(struct tyr_page *page);

struct tyr_error *tyr_lock_take(struct tyr_keyspace *keyspace,
                                struct tyr_slice key,
                                const struct tyr_lock_options *options,
                                struct tyr_lock **lock);

struct tyr_error *tyr_lock_stat(struct tyr_lock *lock,
                                uint64_t *token,
                                bool *is_held,
                                bool *is_recalled);

struct tyr_error *tyr_txn_fence(struct tyr_txn *txn, struct tyr_lock *lock, uint64_t *operation);

struct tyr_error *tyr_lock_unlock(struct tyr_lock *lock);

struct tyr_error *tyr_lock_free(struct tyr_lock *lock);

struct tyr_error *tyr_metadata_get(struct tyr_store *store,
                                   const char *path,
                                   struct tyr_bytes **value,
                                   uint64_t *revision);

struct tyr_error *tyr_metadata_put(struct tyr_store *store,
                                   const char *path,
                                   struct tyr_slice value,
                                   uint64_t expected,
                                   uint64_t *revision);

struct tyr_error *tyr_metadata_delete(struct tyr_store *store,
                                      const char *path,
                                      uint64_t expected,
                                      uint64_t *revision);

struct tyr_error *tyr_metadata_list(struct tyr_store *store,
                                    const char *prefix,
                                    const char *after,
                                    size_t limit,
                                    struct tyr_page **page);

struct tyr_error *tyr_queue_new(struct tyr_queue **queue);

struct tyr_error *tyr_queue_take(struct tyr_queue *queue,
                                 struct tyr_done *done,
                                 size_t most,
                                 int64_t timeout_us,
                                 size_t *taken);

struct tyr_error *tyr_queue_post(struct tyr_queue *queue, uint64_t tag, uint64_t value);

struct tyr_error *tyr_queue_fd(struct tyr_queue *queue, int *fd);

struct tyr_error *tyr_queue_under_way(struct tyr_queue *queue, size_t *under_way);

struct tyr_error *tyr_queue_cancel(struct tyr_queue *queue, uint64_t tag, size_t *cancelled);

struct tyr_error *tyr_queue_free(struct tyr_queue *queue);

struct tyr_error *tyr_snapshot_take(struct tyr_store *store, struct tyr_snapshot **snapshot);

struct tyr_error *tyr_snapshot_version(const struct tyr_snapshot *snapshot,
                                       struct tyr_timestamp *version);

struct tyr_error *tyr_snapshot_read(const struct tyr_snapshot *snapshot,
                                    struct tyr_keyspace *keyspace,
                                    struct tyr_slice key,
                                    uint64_t offset,
                                    void *out,
                                    size_t len,
                                    size_t *got);

struct tyr_error *tyr_snapshot_get(const struct tyr_snapshot *snapshot,
                                   struct tyr_keyspace *keyspace,
                                   struct tyr_slice key,
                                   struct tyr_bytes **bytes);

struct tyr_error *tyr_snapshot_stat(const struct tyr_snapshot *snapshot,
                                    struct tyr_keyspace *keyspace,
                                    struct tyr_slice key,
                                    struct tyr_stat *stat);

struct tyr_error *tyr_snapshot_scan(const struct tyr_snapshot *snapshot,
                                    struct tyr_keyspace *keyspace,
                                    const struct tyr_scan *scan,
                                    struct tyr_page **page);

struct tyr_error *tyr_snapshot_free(struct tyr_snapshot *snapshot);

struct tyr_error *tyr_txn_put_stamped(struct tyr_txn *txn,
                                      struct tyr_keyspace *keyspace,
                                      struct tyr_slice key,
                                      struct tyr_slice data,
                                      const size_t *places,
                                      size_t count,
                                      uint64_t *operation);

struct tyr_error *tyr_txn_append_stamped(struct tyr_txn *txn,
                                         struct tyr_keyspace *keyspace,
                                         struct tyr_slice key,
                                         struct tyr_slice data,
                                         const size_t *places,
                                         size_t count,
                                         uint64_t *operation);

struct tyr_error *tyr_create_start(struct tyr_keyspace *keyspace,
                                   struct tyr_slice key,
                                   struct tyr_queue *queue,
                                   uint64_t tag);

struct tyr_error *tyr_put_start(struct tyr_keyspace *keyspace,
                                struct tyr_slice key,
                                struct tyr_slice data,
                                struct tyr_queue *queue,
                                uint64_t tag);

struct tyr_error *tyr_write_start(struct tyr_keyspace *keyspace,
                                  struct tyr_slice key,
                                  uint64_t offset,
                                  struct tyr_slice data,
                                  struct tyr_queue *queue,
                                  uint64_t tag);

struct tyr_error *tyr_append_start(struct tyr_keyspace *keyspace,
                                   struct tyr_slice key,
                                   struct tyr_slice data,
                                   struct tyr_queue *queue,
                                   uint64_t tag);

struct tyr_error *tyr_append_at_start(struct tyr_keyspace *keyspace,
                                      struct tyr_slice key,
                                      uint64_t expected,
                                      struct tyr_slice data,
                                      struct tyr_queue *queue,
                                      uint64_t tag);

struct tyr_error *tyr_truncate_start(struct tyr_keyspace *keyspace,
                                     struct tyr_slice key,
                                     uint64_t len,
                                     struct tyr_queue *queue,
                                     uint64_t tag);

struct tyr_error *tyr_clear_start(struct tyr_keyspace *keyspace,
                                  struct tyr_slice key,
                                  uint64_t offset,
                                  uint64_t len,
                                  struct tyr_queue *queue,
                                  uint64_t tag);

struct tyr_error *tyr_delete_start(struct tyr_keyspace *keyspace,
                                   struct tyr_slice key,
                                   struct tyr_queue *queue,
                                   uint64_t tag);

struct tyr_error *tyr_apply_start(struct tyr_keyspace *keyspace,
                                  struct tyr_slice key,
                                  uint64_t offset,
                                  int32_t what,
                                  struct tyr_number operand,
                                  struct tyr_queue *queue,
                                  uint64_t tag);

struct tyr_error *tyr_compare_and_swap_start(struct tyr_keyspace *keyspace,
                                             struct tyr_slice key,
                                             uint64_t offset,
                                             struct tyr_slice expected,
                                             struct tyr_slice data,
                                             struct tyr_queue *queue,
                                             uint64_t tag);

struct tyr_error *tyr_stat_start(struct tyr_keyspace *keyspace,
                                 struct tyr_slice key,
                                 struct tyr_queue *queue,
                                 uint64_t tag);

struct tyr_error *tyr_read_start(struct tyr_keyspace *keyspace,
                                 struct tyr_slice key,
                                 uint64_t offset,
                                 void *out,
                                 size_t len,
                                 struct tyr_queue *queue,
                                 uint64_t tag);

struct tyr_error *tyr_get_start(struct tyr_keyspace *keyspace,
                                struct tyr_slice key,
                                struct tyr_queue *queue,
                                uint64_t tag);

struct tyr_error *tyr_scan_start(struct tyr_keyspace *keyspace,
                                 const struct tyr_scan *scan,
                                 struct tyr_queue *queue,
                                 uint64_t tag);

struct tyr_error *tyr_commit_start(struct tyr_txn *txn, struct tyr_queue *queue, uint64_t tag);

struct tyr_error *tyr_txn_read_start(struct tyr_txn *txn,
                                     struct tyr_keyspace *keyspace,
                                     struct tyr_slice key,
                                     uint64_t offset,
                                     void *out,
                                     size_t len,
                                     struct tyr_queue *queue,
                                     uint64_t tag);

struct tyr_error *tyr_txn_get_start(struct tyr_txn *txn,
                                    struct tyr_keyspace *keyspace,
                                    struct tyr_slice key,
                                    struct tyr_queue *queue,
                                    uint64_t tag);

struct tyr_error *tyr_txn_stat_start(struct tyr_txn *txn,
                                     struct tyr_keyspace *keyspace,
                                     struct tyr_slice key,
                                     struct tyr_queue *queue,
                                     uint64_t tag);

struct tyr_error *tyr_txn_scan_start(struct tyr_txn *txn,
                                     struct tyr_keyspace *keyspace,
                                     const struct tyr_scan *scan,
                                     struct tyr_queue *queue,
                                     uint64_t tag);

struct tyr_error *tyr_snapshot_take_start(struct tyr_store *store,
                                          struct tyr_queue *queue,
                                          uint64_t tag);

struct tyr_error *tyr_snapshot_read_start(const struct tyr_snapshot *snapshot,
                                          struct tyr_keyspace *keyspace,
                                          struct tyr_slice key,
                                          uint64_t offset,
                                          void *out,
                                          size_t len,
                                          struct tyr_queue *queue,
                                          uint64_t tag);

struct tyr_error *tyr_snapshot_get_start(const struct tyr_snapshot *snapshot,
                                         struct tyr_keyspace *keyspace,
                                         struct tyr_slice key,
                                         struct tyr_queue *queue,
                                         uint64_t tag);

struct tyr_error *tyr_snapshot_stat_start(const struct tyr_snapshot *snapshot,
                                          struct tyr_keyspace *keyspace,
                                          struct tyr_slice key,
                                          struct tyr_queue *queue,
                                          uint64_t tag);

struct tyr_error *tyr_snapshot_scan_start(const struct tyr_snapshot *snapshot,
                                          struct tyr_keyspace *keyspace,
                                          const struct tyr_scan *scan,
                                          struct tyr_queue *queue,
                                          uint64_t tag);

struct tyr_error *tyr_open(const char *folder,
                           const struct tyr_open_options *options,
                           struct tyr_store **store);

struct tyr_error *tyr_connect(const char *address,
                              const struct tyr_connect_options *options,
                              struct tyr_store **store);

struct tyr_error *tyr_close(struct tyr_store *store);

struct tyr_error *tyr_sync(struct tyr_store *store);

struct tyr_error *tyr_keyspace_find(struct tyr_store *store,
                                    const char *name,
                                    struct tyr_keyspace **keyspace);

struct tyr_error *tyr_keyspace_create(struct tyr_store *store,
                                      const char *name,
                                      const struct tyr_keyspace_config *config,
                                      struct tyr_keyspace **keyspace);

struct tyr_error *tyr_keyspace_find_or_create(struct tyr_store *store,
                                              const char *name,
                                              const struct tyr_keyspace_config *config,
                                              struct tyr_keyspace **keyspace);

struct tyr_error *tyr_keyspace_drop(struct tyr_store *store, const char *name);

struct tyr_error *tyr_keyspace_list(struct tyr_store *store, struct tyr_page **page);

struct tyr_error *tyr_keyspace_free(struct tyr_keyspace *keyspace);

struct tyr_error *tyr_reader_open(struct tyr_keyspace *keyspace,
                                  struct tyr_slice key,
                                  uint64_t offset,
                                  uint64_t len,
                                  struct tyr_reader **reader);

struct tyr_error *tyr_snapshot_reader_open(const struct tyr_snapshot *snapshot,
                                           struct tyr_keyspace *keyspace,
                                           struct tyr_slice key,
                                           uint64_t offset,
                                           uint64_t len,
                                           struct tyr_reader **reader);

struct tyr_error *tyr_reader_stat(struct tyr_reader *reader, uint64_t *size, uint64_t *remaining);

struct tyr_error *tyr_reader_next(struct tyr_reader *reader, struct tyr_bytes **bytes);

struct tyr_error *tyr_reader_free(struct tyr_reader *reader);

struct tyr_error *tyr_put_stream(struct tyr_keyspace *keyspace,
                                 struct tyr_slice key,
                                 int64_t (*source)(void *context, void *out, size_t len),
                                 void *context,
                                 uint64_t *size);

struct tyr_error *tyr_write_stream(struct tyr_keyspace *keyspace,
                                   struct tyr_slice key,
                                   uint64_t offset,
                                   int64_t (*source)(void *context, void *out, size_t len),
                                   void *context,
                                   uint64_t *size);

struct tyr_error *tyr_append_stream(struct tyr_keyspace *keyspace,
                                    struct tyr_slice key,
                                    int64_t (*source)(void *context, void *out, size_t len),
                                    void *context,
                                    uint64_t *offset);

struct tyr_error *tyr_begin(struct tyr_store *store, struct tyr_txn **txn);

struct tyr_error *tyr_txn_create(struct tyr_txn *txn,
                                 struct tyr_keyspace *keyspace,
                                 struct tyr_slice key,
                                 uint64_t *operation);

struct tyr_error *tyr_txn_put(struct tyr_txn *txn,
                              struct tyr_keyspace *keyspace,
                              struct tyr_slice key,
                              struct tyr_slice data,
                              uint64_t *operation);

struct tyr_error *tyr_txn_write(struct tyr_txn *txn,
                                struct tyr_keyspace *keyspace,
                                struct tyr_slice key,
                                uint64_t offset,
                                struct tyr_slice data,
                                uint64_t *operation);

struct tyr_error *tyr_txn_append(struct tyr_txn *txn,
                                 struct tyr_keyspace *keyspace,
                                 struct tyr_slice key,
                                 struct tyr_slice data,
                                 uint64_t *operation);

struct tyr_error *tyr_txn_append_at(struct tyr_txn *txn,
                                    struct tyr_keyspace *keyspace,
                                    struct tyr_slice key,
                                    uint64_t expected,
                                    struct tyr_slice data,
                                    uint64_t *operation);

struct tyr_error *tyr_txn_truncate(struct tyr_txn *txn,
                                   struct tyr_keyspace *keyspace,
                                   struct tyr_slice key,
                                   uint64_t len,
                                   uint64_t *operation);

struct tyr_error *tyr_txn_clear(struct tyr_txn *txn,
                                struct tyr_keyspace *keyspace,
                                struct tyr_slice key,
                                uint64_t offset,
                                uint64_t len,
                                uint64_t *operation);

struct tyr_error *tyr_txn_delete(struct tyr_txn *txn,
                                 struct tyr_keyspace *keyspace,
                                 struct tyr_slice key,
                                 uint64_t *operation);

struct tyr_error *tyr_txn_apply(struct tyr_txn *txn,
                                struct tyr_keyspace *keyspace,
                                struct tyr_slice key,
                                uint64_t offset,
                                int32_t what,
                                struct tyr_number operand,
                                uint64_t *operation);

struct tyr_error *tyr_txn_compare(struct tyr_txn *txn,
                                  struct tyr_keyspace *keyspace,
                                  struct tyr_slice key,
                                  uint64_t offset,
                                  struct tyr_slice expected,
                                  uint64_t *operation);

struct tyr_error *tyr_txn_compare_number(struct tyr_txn *txn,
                                         struct tyr_keyspace *keyspace,
                                         struct tyr_slice key,
                                         uint64_t offset,
                                         int32_t relation,
                                         struct tyr_number value,
                                         uint64_t *operation);

struct tyr_error *tyr_txn_expect_absent(struct tyr_txn *txn,
                                        struct tyr_keyspace *keyspace,
                                        struct tyr_slice key,
                                        uint64_t *operation);

struct tyr_error *tyr_txn_expect_present(struct tyr_txn *txn,
                                         struct tyr_keyspace *keyspace,
                                         struct tyr_slice key,
                                         uint64_t *operation);

struct tyr_error *tyr_txn_expect_version(struct tyr_txn *txn,
                                         struct tyr_keyspace *keyspace,
                                         struct tyr_slice key,
                                         struct tyr_timestamp version);

struct tyr_error *tyr_txn_read(struct tyr_txn *txn,
                               struct tyr_keyspace *keyspace,
                               struct tyr_slice key,
                               uint64_t offset,
                               void *out,
                               size_t len,
                               size_t *got);

struct tyr_error *tyr_txn_get(struct tyr_txn *txn,
                              struct tyr_keyspace *keyspace,
                              struct tyr_slice key,
                              struct tyr_bytes **bytes);

struct tyr_error *tyr_txn_stat(struct tyr_txn *txn,
                               struct tyr_keyspace *keyspace,
                               struct tyr_slice key,
                               struct tyr_stat *stat);

struct tyr_error *tyr_txn_scan(struct tyr_txn *txn,
                               struct tyr_keyspace *keyspace,
                               const struct tyr_scan *scan,
                               struct tyr_page **page);

struct tyr_error *tyr_commit(struct tyr_txn *txn, struct tyr_committed **committed);

struct tyr_error *tyr_rollback(struct tyr_txn *txn);

struct tyr_error *tyr_transact(struct tyr_store *store,
                               struct tyr_error *(*body)(struct tyr_txn *txn, void *context),
                               void *context);

struct tyr_error *tyr_outcome(struct tyr_store *store,
                              const struct tyr_error *error,
                              struct tyr_committed **committed);

struct tyr_error *tyr_watch_key(struct tyr_keyspace *keyspace,
                                struct tyr_slice key,
                                struct tyr_watch **watch);

struct tyr_error *tyr_watch_prefix(struct tyr_keyspace *keyspace,
                                   struct tyr_slice prefix,
                                   struct tyr_watch **watch);

struct tyr_error *tyr_watch_next(struct tyr_watch *watch,
                                 int64_t timeout_us,
                                 struct tyr_watch_event *event);

struct tyr_error *tyr_watch_free(struct tyr_watch *watch);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  

#define TYR_OPEN_OPTIONS_INIT {.size = sizeof(tyr_open_options)}
#define TYR_CONNECT_OPTIONS_INIT {.size = sizeof(tyr_connect_options)}
#define TYR_KEYSPACE_CONFIG_INIT {.size = sizeof(tyr_keyspace_config)}
#define TYR_SCAN_INIT {.size = sizeof(tyr_scan)}
#define TYR_COPY_INIT {.size = sizeof(tyr_copy)}
#define TYR_LOCK_OPTIONS_INIT {.size = sizeof(tyr_lock_options)}

static inline tyr_slice tyr_text(const char *text) {
  tyr_slice slice;
  slice.data = text;
  slice.len = text == NULL ? 0 : strlen(text);
  return slice;
}

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

static inline uint64_t tyr_as_u64(tyr_number number) { return (uint64_t)tyr_as_i64(number); }
