/* Makes calls as it is told, for `cargo xtask steady` and `call-costs` (xtask/src/callers.rs has
 * the words): `caller FOLDER CACHE_MIB SEED` opens a store, says "ready", and answers each line of
 * its input, "KIND COUNT", with "done" when it has made so many calls of this kind. */
#include <pthread.h>

#include "check.h"

/* Of the kinds that are measured: blobs in memory. */
#define BLOBS 1000
#define BLOB 4096
#define READ 800
#define PUT 100
#define OPERATIONS 6
#define UNDER_WAY 32
#define LARGE (4 << 20)

/* Of the mix: few keys, so that calls meet. */
#define KEYS 256
#define PAYLOAD_MAX 4096
#define LOG_MAX (64 << 10)
#define THREADS 4

static tyr_store *store;
static tyr_keyspace *memory, *buffered;
static tyr_queue *queue;
static char keys[BLOBS][16], others[BLOBS][16];
static char *large;
static uint64_t seed;

static void prepare(void) {
  char blob[BLOB] = {7};
  for (size_t at = 0; at < BLOBS; at++) {
    snprintf(keys[at], sizeof keys[at], "key %d", (int)at);
    snprintf(others[at], sizeof others[at], "other %d", (int)at);
    GOOD(tyr_put(memory, tyr_text(keys[at]), tyr_data(blob, sizeof blob)));
  }
  large = calloc(1, LARGE);
  CHECK(large != NULL);
  GOOD(tyr_put(memory, tyr_text("large"), tyr_data(large, LARGE)));
  GOOD(tyr_queue_new(&queue));
}

static void reads(size_t count) {
  char out[READ];
  size_t got = 0;
  for (size_t at = 0; at < count; at++) {
    GOOD(tyr_read(memory, tyr_text(keys[at % BLOBS]), 1024, out, sizeof out, &got));
    CHECK(got == READ);
  }
}

static void puts_of_some(size_t count) {
  char data[PUT] = {1};
  for (size_t at = 0; at < count; at++) {
    GOOD(tyr_put(memory, tyr_text(others[at % BLOBS]), tyr_data(data, sizeof data)));
  }
}

static void transactions(size_t count) {
  char data[PUT] = {2};
  for (size_t at = 0; at < count; at++) {
    tyr_txn *txn = NULL;
    GOOD(tyr_begin(store, &txn));
    for (size_t place = 0; place < OPERATIONS; place++) {
      const char *key = others[(at + place) % BLOBS];
      GOOD(tyr_txn_put(txn, memory, tyr_text(key), tyr_data(data, sizeof data), NULL));
    }
    GOOD(tyr_commit(txn, NULL));
  }
}

static void started_reads(size_t count) {
  char out[UNDER_WAY][READ];
  tyr_done done[UNDER_WAY];
  size_t started = 0, taken = 0;
  for (; started < UNDER_WAY && started < count; started++) {
    tyr_slice key = tyr_text(keys[started]);
    GOOD(tyr_read_start(memory, key, 1024, out[started], READ, queue, started));
  }
  for (size_t seen = 0; seen < count; seen += taken) {
    GOOD(tyr_queue_take(queue, done, UNDER_WAY, -1, &taken));
    for (size_t at = 0; at < taken; at++) {
      GOOD(done[at].error);
      CHECK(done[at].value == READ);
      if (started == count) continue;
      tyr_slice key = tyr_text(keys[started++ % BLOBS]);
      GOOD(tyr_read_start(memory, key, 1024, out[done[at].tag], READ, queue, done[at].tag));
    }
  }
}

static void large_reads(size_t count) {
  size_t got = 0;
  for (size_t at = 0; at < count; at++) {
    GOOD(tyr_read(memory, tyr_text("large"), 0, large, LARGE, &got));
    CHECK(got == LARGE);
  }
}

/* A thread of the mix. */
struct mixer {
  uint64_t random;
  size_t count;
  tyr_queue *queue;
  char out[UNDER_WAY][PAYLOAD_MAX];
};

static uint64_t next(struct mixer *mixer, uint64_t below) {
  mixer->random ^= mixer->random << 13;
  mixer->random ^= mixer->random >> 7;
  mixer->random ^= mixer->random << 17;
  return (mixer->random >> 11) % below;
}

static tyr_slice any_key(struct mixer *mixer) { return tyr_text(keys[next(mixer, KEYS)]); }

static tyr_slice payload(struct mixer *mixer) {
  return tyr_data(large, next(mixer, PAYLOAD_MAX));
}

/* Whether it is good; if not, it is one of these two kinds. */
static bool is_good(tyr_error *error, int32_t kind, int32_t other) {
  if (error == NULL) return true;
  int32_t found = tyr_error_kind(error);
  if (found != kind && found != other) GOOD(error);
  CHECK(strlen(tyr_error_text(error)) > 0);
  tyr_error_free(error);
  return false;
}

/* One call that waits. */
static void wait_for_one(struct mixer *mixer) {
  tyr_bytes *bytes = NULL;
  tyr_page *page = NULL;
  tyr_snapshot *snapshot = NULL;
  tyr_scan scan = TYR_SCAN_INIT;
  tyr_stat stat;
  uint64_t offset = 0;
  size_t got = 0;
  bool existed = false;
  tyr_slice key = any_key(mixer);
  switch (next(mixer, 12)) {
    case 0:
    case 1:
      is_good(tyr_read(buffered, key, next(mixer, 2000), mixer->out[0], READ, &got), TYR_NOT_FOUND, 0);
      break;
    case 2:
      if (is_good(tyr_get(buffered, key, &bytes), TYR_NOT_FOUND, 0)) GOOD(tyr_bytes_free(bytes));
      break;
    case 3:
    case 4: GOOD(tyr_put(buffered, key, payload(mixer))); break;
    case 5: GOOD(tyr_delete(buffered, key, &existed)); break;
    case 6: is_good(tyr_stat_blob(buffered, key, &stat), TYR_NOT_FOUND, 0); break;
    case 7:
      GOOD(tyr_append(buffered, tyr_text("log"), payload(mixer), &offset));
      if (offset > LOG_MAX) GOOD(tyr_truncate(buffered, tyr_text("log"), 0));
      break;
    case 8: GOOD(tyr_apply(buffered, tyr_text("n"), 0, TYR_ADD, tyr_u64(1), NULL)); break;
    case 9: is_good(tyr_get(buffered, tyr_text("none"), &bytes), TYR_NOT_FOUND, 0); break;
    case 10:
      scan.limit = 20;
      GOOD(tyr_scan_page(buffered, &scan, &page));
      GOOD(tyr_page_free(page));
      break;
    default:
      GOOD(tyr_snapshot_take(store, &snapshot));
      if (is_good(tyr_snapshot_get(snapshot, buffered, key, &bytes), TYR_NOT_FOUND, 0)) {
        GOOD(tyr_bytes_free(bytes));
      }
      GOOD(tyr_snapshot_free(snapshot));
  }
}

/* A transaction with a read that is started, and perhaps cancelled. */
static void transact_once(struct mixer *mixer) {
  tyr_txn *txn = NULL;
  tyr_done done;
  size_t taken = 0;
  tyr_slice key = any_key(mixer);
  GOOD(tyr_begin(store, &txn));
  GOOD(tyr_txn_put(txn, buffered, any_key(mixer), payload(mixer), NULL));
  GOOD(tyr_txn_get_start(txn, buffered, key, mixer->queue, 0));
  if (next(mixer, 4) == 0) GOOD(tyr_queue_cancel(mixer->queue, 0, NULL));
  GOOD(tyr_queue_take(mixer->queue, &done, 1, -1, &taken));
  CHECK(taken == 1);
  if (is_good(done.error, TYR_NOT_FOUND, TYR_CANCELLED)) GOOD(tyr_bytes_free(done.bytes));
  GOOD(tyr_txn_write(txn, buffered, key, 0, tyr_text("seen"), NULL));
  if (next(mixer, 8) == 0) {
    GOOD(tyr_rollback(txn));
  } else {
    is_good(tyr_commit(txn, NULL), TYR_CONFLICT, 0);
  }
}

static void start_one(struct mixer *mixer, uint64_t tag) {
  tyr_queue *to = mixer->queue;
  tyr_txn *txn = NULL;
  tyr_scan scan = TYR_SCAN_INIT;
  tyr_slice key = any_key(mixer);
  switch (next(mixer, 10)) {
    case 0: GOOD(tyr_get_start(buffered, key, to, tag)); break;
    case 1:
    case 2: GOOD(tyr_put_start(buffered, key, payload(mixer), to, tag)); break;
    case 3: GOOD(tyr_delete_start(buffered, key, to, tag)); break;
    case 4: GOOD(tyr_stat_start(buffered, key, to, tag)); break;
    case 5: GOOD(tyr_apply_start(buffered, tyr_text("n"), 0, TYR_ADD, tyr_u64(1), to, tag)); break;
    case 6: GOOD(tyr_snapshot_take_start(store, to, tag)); break;
    case 7:
      GOOD(tyr_begin(store, &txn));
      GOOD(tyr_txn_apply(txn, buffered, tyr_text("n"), 0, TYR_ADD, tyr_u64(1), NULL));
      GOOD(tyr_txn_put(txn, buffered, key, payload(mixer), NULL));
      GOOD(tyr_commit_start(txn, to, tag));
      break;
    case 8:
      scan.limit = 20;
      GOOD(tyr_scan_start(buffered, &scan, to, tag));
      break;
    default:
      GOOD(tyr_read_start(buffered, key, next(mixer, 2000), mixer->out[tag], PAYLOAD_MAX, to, tag));
  }
}

/* Some calls that are started, of which some are cancelled; a few times the queue goes first. */
static size_t start_some(struct mixer *mixer) {
  tyr_done done[UNDER_WAY];
  size_t count = 1 + next(mixer, UNDER_WAY), taken = 0;
  for (uint64_t tag = 0; tag < count; tag++) {
    start_one(mixer, tag);
    if (next(mixer, 4) == 0) GOOD(tyr_queue_cancel(mixer->queue, next(mixer, tag + 1), NULL));
  }
  if (next(mixer, 64) == 0) {
    GOOD(tyr_queue_free(mixer->queue));
    GOOD(tyr_queue_new(&mixer->queue));
    return count;
  }
  for (size_t seen = 0; seen < count; seen += taken) {
    GOOD(tyr_queue_take(mixer->queue, done, UNDER_WAY, -1, &taken));
    for (size_t at = 0; at < taken; at++) {
      if (!is_good(done[at].error, TYR_NOT_FOUND, TYR_CANCELLED)) continue;
      GOOD(tyr_bytes_free(done[at].bytes));
      GOOD(tyr_committed_free(done[at].committed));
      GOOD(tyr_page_free(done[at].page));
      GOOD(tyr_snapshot_free(done[at].snapshot));
    }
  }
  return count;
}

static void *mix_in_a_thread(void *context) {
  struct mixer *mixer = context;
  GOOD(tyr_queue_new(&mixer->queue));
  for (size_t made = 0; made < mixer->count;) {
    uint64_t kind = next(mixer, 16);
    if (kind == 0) {
      made += start_some(mixer);
    } else if (kind < 3) {
      transact_once(mixer);
      made += 5;
    } else {
      wait_for_one(mixer);
      made++;
    }
  }
  GOOD(tyr_queue_free(mixer->queue));
  return NULL;
}

static void mix(size_t count) {
  static struct mixer mixers[THREADS];
  pthread_t threads[THREADS];
  for (size_t at = 0; at < THREADS; at++) {
    seed = seed * 6364136223846793005 + 1442695040888963407;
    mixers[at].random = seed | 1;
    mixers[at].count = (count + THREADS - 1) / THREADS;
    CHECK(pthread_create(&threads[at], NULL, mix_in_a_thread, &mixers[at]) == 0);
  }
  for (size_t at = 0; at < THREADS; at++) CHECK(pthread_join(threads[at], NULL) == 0);
}

static const struct {
  const char *name;
  void (*run)(size_t count);
} KINDS[] = {
    {"read", reads},           {"put", puts_of_some},  {"transaction", transactions},
    {"async", started_reads}, {"large", large_reads}, {"mix", mix},
};

static void obey(const char *kind, size_t count) {
  for (size_t at = 0; at < sizeof KINDS / sizeof KINDS[0]; at++) {
    if (strcmp(KINDS[at].name, kind) != 0) continue;
    KINDS[at].run(count);
    puts("done");
    fflush(stdout);
    return;
  }
  CHECK(!"there is such a kind of calls");
}

int main(int argc, char **argv) {
  char kind[16];
  size_t count = 0;
  CHECK(argc == 4);
  tyr_open_options options = TYR_OPEN_OPTIONS_INIT;
  options.cache_bytes = strtoull(argv[2], NULL, 10) << 20;
  seed = strtoull(argv[3], NULL, 10);
  GOOD(tyr_open(argv[1], &options, &store));
  tyr_keyspace_config config = TYR_KEYSPACE_CONFIG_INIT;
  config.durability = TYR_MEMORY;
  GOOD(tyr_keyspace_create(store, "memory", &config, &memory));
  config.durability = TYR_BUFFERED;
  GOOD(tyr_keyspace_create(store, "buffered", &config, &buffered));
  prepare();
  puts("ready");
  fflush(stdout);
  while (scanf("%15s %zu", kind, &count) == 2) obey(kind, count);
  GOOD(tyr_queue_free(queue));
  GOOD(tyr_keyspace_free(memory));
  GOOD(tyr_keyspace_free(buffered));
  GOOD(tyr_close(store));
  CHECK(tyr_handles() == 0);
  free(large);
  return 0;
}
