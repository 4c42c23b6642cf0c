/* Calls that are started: hundreds under way, taken in batches by poll, cancelled at random; and two
 * threads on one store and one queue. */
#include <poll.h>
#include <pthread.h>

#include "check.h"

#define MANY 512

static void batches(tyr_store *store, tyr_keyspace *data) {
  tyr_queue *queue = NULL;
  tyr_done done[64];
  size_t taken = 0, seen = 0, under_way = 0;
  int fd = -1;
  char keys[MANY][16];
  uint64_t out[MANY];
  bool is_done[2 * MANY] = {false};

  GOOD(tyr_queue_new(&queue));
  GOOD(tyr_queue_fd(queue, &fd));
  for (uint64_t at = 0; at < MANY; at++) {
    snprintf(keys[at], sizeof keys[at], "key %d", (int)at);
    GOOD(tyr_put_start(data, tyr_text(keys[at]), tyr_data(&at, sizeof at), queue, at));
  }
  while (seen < MANY) {
    struct pollfd wait = {fd, POLLIN, 0};
    CHECK(poll(&wait, 1, 60000) == 1);
    GOOD(tyr_queue_take(queue, done, 64, 0, &taken));
    CHECK(taken > 0);
    for (size_t at = 0; at < taken; at++, seen++) {
      GOOD(done[at].error);
      CHECK(done[at].tag < MANY && !is_done[done[at].tag]);
      is_done[done[at].tag] = true;
    }
  }
  struct pollfd silent = {fd, POLLIN, 0};
  CHECK(poll(&silent, 1, 0) == 0);

  /* Reads, each second one cancelled: each is answered once, with its bytes or as cancelled. */
  memset(is_done, 0, sizeof is_done);
  for (uint64_t at = 0; at < MANY; at++) {
    out[at] = UINT64_MAX;
    GOOD(tyr_read_start(data, tyr_text(keys[at]), 0, &out[at], sizeof out[at], queue, at));
    if (at % 2 == 0) GOOD(tyr_queue_cancel(queue, at, NULL));
  }
  for (seen = 0; seen < MANY;) {
    GOOD(tyr_queue_take(queue, done, 64, -1, &taken));
    for (size_t at = 0; at < taken; at++, seen++) {
      uint64_t tag = done[at].tag;
      CHECK(tag < MANY && !is_done[tag]);
      is_done[tag] = true;
      if (done[at].error == NULL) {
        CHECK(done[at].value == sizeof out[tag] && out[tag] == tag);
      } else {
        CHECK(tag % 2 == 0);
        FAILS(done[at].error, TYR_CANCELLED, "cancelled");
      }
    }
  }

  /* One of each other kind. */
  tyr_txn *txn = NULL;
  uint64_t appended = 0, offset = 1;
  tyr_scan scan = TYR_SCAN_INIT;
  tyr_snapshot *snapshot = NULL;
  GOOD(tyr_snapshot_take(store, &snapshot));
  scan.prefix = tyr_text("key ");
  GOOD(tyr_begin(store, &txn));
  GOOD(tyr_txn_append(txn, data, tyr_text("log"), tyr_text("12"), &appended));
  GOOD(tyr_commit_start(txn, queue, 1000));
  FAILS(tyr_rollback(txn), TYR_INVALID_ARGUMENT, "committed");
  GOOD(tyr_queue_take(queue, done, 1, -1, &taken));
  GOOD(done[0].error);
  GOOD(tyr_committed_offset(done[0].committed, appended, &offset));
  CHECK(done[0].tag == 1000 && offset == 0);
  GOOD(tyr_committed_free(done[0].committed));
  GOOD(tyr_append_start(data, tyr_text("log"), tyr_text("345"), queue, 1));
  GOOD(tyr_queue_take(queue, done, 1, -1, &taken));
  CHECK(done[0].error == NULL && done[0].value == 2);
  GOOD(tyr_write_start(data, tyr_text("log"), 0, tyr_text("x"), queue, 2));
  GOOD(tyr_queue_take(queue, done, 1, -1, &taken));
  GOOD(done[0].error);
  GOOD(tyr_stat_start(data, tyr_text("log"), queue, 3));
  GOOD(tyr_queue_take(queue, done, 1, -1, &taken));
  CHECK(done[0].error == NULL && done[0].value == 5);
  GOOD(tyr_get_start(data, tyr_text("log"), queue, 4));
  GOOD(tyr_queue_take(queue, done, 1, -1, &taken));
  CHECK(is_text(tyr_bytes_slice(done[0].bytes), "x2345"));
  GOOD(tyr_bytes_free(done[0].bytes));
  GOOD(tyr_apply_start(data, tyr_text("n"), 0, TYR_ADD, tyr_i32(-4), queue, 5));
  GOOD(tyr_queue_take(queue, done, 1, -1, &taken));
  CHECK(done[0].error == NULL && tyr_as_i64(done[0].number) == -4);
  GOOD(tyr_scan_start(data, &scan, queue, 6));
  GOOD(tyr_queue_take(queue, done, 1, -1, &taken));
  CHECK(done[0].error == NULL && done[0].value == MANY && tyr_page_len(done[0].page) == MANY);
  GOOD(tyr_page_free(done[0].page));
  GOOD(tyr_truncate_start(data, tyr_text("log"), 1, queue, 7));
  GOOD(tyr_queue_take(queue, done, 1, -1, &taken));
  GOOD(done[0].error);
  GOOD(tyr_snapshot_read_start(snapshot, data, tyr_text(keys[9]), 0, &out[0], 8, queue, 8));
  GOOD(tyr_queue_take(queue, done, 1, -1, &taken));
  CHECK(done[0].error == NULL && out[0] == 9);
  GOOD(tyr_delete_start(data, tyr_text("log"), queue, 9));
  GOOD(tyr_queue_take(queue, done, 1, -1, &taken));
  CHECK(done[0].error == NULL && done[0].value == 1);
  GOOD(tyr_create_start(data, tyr_text("n"), queue, 10));
  GOOD(tyr_queue_take(queue, done, 1, -1, &taken));
  FAILS(done[0].error, TYR_ALREADY_EXISTS, "n");
  GOOD(tyr_snapshot_free(snapshot));

  GOOD(tyr_queue_under_way(queue, &under_way));
  CHECK(under_way == 0);
  GOOD(tyr_queue_take(queue, done, 64, 1000, &taken));
  CHECK(taken == 0);

  /* Freed with calls under way and completions not taken. */
  for (uint64_t at = 0; at < MANY; at++) {
    GOOD(tyr_get_start(data, tyr_text(keys[at]), queue, at));
    GOOD(tyr_put_start(data, tyr_text(keys[at]), tyr_text("last"), queue, at));
  }
  GOOD(tyr_queue_free(queue));
  FAILS(tyr_get_start(data, tyr_text("n"), queue, 1), TYR_INVALID_ARGUMENT, "freed");
}

static tyr_done next(tyr_queue *queue, uint64_t tag) {
  tyr_done done[1];
  size_t taken = 0;
  GOOD(tyr_queue_take(queue, done, 1, -1, &taken));
  CHECK(taken == 1 && done[0].tag == tag);
  return done[0];
}

static tyr_error *leaves_a_call(tyr_txn *txn, void *context) {
  struct {
    tyr_keyspace *data;
    tyr_queue *queue;
  } *with = context;
  GOOD(tyr_txn_put(txn, with->data, tyr_text("log"), tyr_text("broken"), NULL));
  return tyr_txn_get_start(txn, with->data, tyr_text("greeting"), with->queue, 99);
}

/* Calls that are started with a transaction, and at a snapshot's moment. */
static void reads(tyr_store *store, tyr_keyspace *data, tyr_keyspace *groups) {
  tyr_queue *queue = NULL;
  tyr_snapshot *snapshot = NULL;
  tyr_txn *txn = NULL;
  tyr_done done;
  tyr_stat stat;
  char out[16];
  size_t taken;
  tyr_scan scan = TYR_SCAN_INIT;
  scan.prefix = tyr_text("dir/");

  GOOD(tyr_queue_new(&queue));
  GOOD(tyr_put(data, tyr_text("greeting"), tyr_text("hello")));
  GOOD(tyr_put(groups, tyr_text("dir/a"), tyr_text("1")));
  GOOD(tyr_append_at_start(data, tyr_text("greeting"), 5, tyr_text("!"), queue, 1));
  GOOD(next(queue, 1).error);
  GOOD(tyr_compare_and_swap_start(data, tyr_text("greeting"), 0, tyr_text("h"), tyr_text("H"), queue, 2));
  GOOD(next(queue, 2).error);
  GOOD(tyr_clear_start(data, tyr_text("greeting"), 1, 1, queue, 3));
  GOOD(next(queue, 3).error);

  GOOD(tyr_snapshot_take_start(store, queue, 4));
  done = next(queue, 4);
  GOOD(done.error);
  snapshot = done.snapshot;
  GOOD(tyr_put(data, tyr_text("greeting"), tyr_text("later")));
  GOOD(tyr_snapshot_get_start(snapshot, data, tyr_text("greeting"), queue, 5));
  done = next(queue, 5);
  CHECK(tyr_bytes_slice(done.bytes).len == 6);
  CHECK(memcmp(tyr_bytes_slice(done.bytes).data, "H\0llo!", 6) == 0);
  GOOD(tyr_bytes_free(done.bytes));
  GOOD(tyr_snapshot_stat_start(snapshot, data, tyr_text("greeting"), queue, 6));
  CHECK(next(queue, 6).value == 6);
  GOOD(tyr_snapshot_scan_start(snapshot, groups, &scan, queue, 7));
  done = next(queue, 7);
  CHECK(tyr_page_len(done.page) == 1);
  GOOD(tyr_page_free(done.page));
  GOOD(tyr_snapshot_free(snapshot));

  GOOD(tyr_begin(store, &txn));
  GOOD(tyr_txn_put(txn, groups, tyr_text("dir/b"), tyr_text("mine"), NULL));
  GOOD(tyr_txn_read_start(txn, groups, tyr_text("dir/b"), 1, out, sizeof out, queue, 8));
  done = next(queue, 8);
  CHECK(done.error == NULL && done.value == 3 && memcmp(out, "ine", 3) == 0);
  GOOD(tyr_txn_get_start(txn, groups, tyr_text("dir/a"), queue, 9));
  done = next(queue, 9);
  CHECK(is_text(tyr_bytes_slice(done.bytes), "1"));
  GOOD(tyr_bytes_free(done.bytes));
  GOOD(tyr_txn_stat_start(txn, groups, tyr_text("dir/b"), queue, 10));
  CHECK(next(queue, 10).value == 4);
  GOOD(tyr_txn_scan_start(txn, groups, &scan, queue, 11));
  done = next(queue, 11);
  CHECK(tyr_page_len(done.page) == 2);
  GOOD(tyr_page_free(done.page));
  GOOD(tyr_txn_stat_start(txn, groups, tyr_text("none"), queue, 12));
  FAILS(next(queue, 12).error, TYR_NOT_FOUND, "none");
  GOOD(tyr_commit(txn, NULL));
  GOOD(tyr_stat_blob(groups, tyr_text("dir/b"), &stat));
  FAILS(tyr_txn_stat_start(txn, groups, tyr_text("dir/b"), queue, 13), TYR_INVALID_ARGUMENT, "committed");

  /* Rolled back while a call of it may be under way, and ended by a body that leaves one. */
  GOOD(tyr_begin(store, &txn));
  GOOD(tyr_txn_get_start(txn, data, tyr_text("greeting"), queue, 14));
  GOOD(tyr_rollback(txn));
  done = next(queue, 14);
  GOOD(done.error);
  GOOD(tyr_bytes_free(done.bytes));
  struct {
    tyr_keyspace *data;
    tyr_queue *queue;
  } with = {data, queue};
  tyr_error *error = tyr_transact(store, leaves_a_call, &with);
  /* The call may be over when the body returns: then the body is good. */
  CHECK(error == NULL || tyr_error_kind(error) == TYR_INVALID_ARGUMENT);
  tyr_error_free(error);
  done = next(queue, 99);
  GOOD(tyr_bytes_free(done.bytes));
  tyr_error_free(done.error);

  /* A completion of the program's own. */
  GOOD(tyr_queue_post(queue, 15, 7));
  done = next(queue, 15);
  CHECK(done.error == NULL && done.value == 7);
  GOOD(tyr_queue_take(queue, &done, 1, 0, &taken));
  CHECK(taken == 0);
  GOOD(tyr_queue_free(queue));
  FAILS(tyr_queue_post(queue, 1, 1), TYR_INVALID_ARGUMENT, "freed");
}

struct shared {
  tyr_keyspace *data;
  tyr_queue *queue;
  uint64_t thread;
};

static void *appender(void *context) {
  struct shared *shared = context;
  for (uint64_t at = 0; at < MANY; at++) {
    uint64_t tag = shared->thread * MANY + at;
    GOOD(tyr_append_start(shared->data, tyr_text("both"), tyr_text("12345678"), shared->queue, tag));
    GOOD(tyr_apply(shared->data, tyr_text("sum"), 0, TYR_ADD, tyr_u64(1), NULL));
  }
  return NULL;
}

static void threads(tyr_keyspace *data) {
  tyr_queue *queue = NULL;
  pthread_t thread[2];
  struct shared shared[2];
  bool has_offset[2 * MANY] = {false};
  tyr_done done[100];
  size_t taken;
  tyr_number sum;

  GOOD(tyr_queue_new(&queue));
  for (uint64_t at = 0; at < 2; at++) {
    shared[at] = (struct shared){data, queue, at};
    CHECK(pthread_create(&thread[at], NULL, appender, &shared[at]) == 0);
  }
  for (size_t seen = 0; seen < 2 * MANY;) {
    GOOD(tyr_queue_take(queue, done, 100, -1, &taken));
    for (size_t at = 0; at < taken; at++, seen++) {
      GOOD(done[at].error);
      uint64_t place = done[at].value / 8;
      CHECK(done[at].value % 8 == 0 && place < 2 * MANY && !has_offset[place]);
      has_offset[place] = true;
    }
  }
  for (int at = 0; at < 2; at++) CHECK(pthread_join(thread[at], NULL) == 0);
  GOOD(tyr_apply(data, tyr_text("sum"), 0, TYR_ADD, tyr_u64(0), &sum));
  CHECK(tyr_as_u64(sum) == 2 * MANY);
  GOOD(tyr_queue_free(queue));
}

int main(int argc, char **argv) {
  CHECK(argc == 3);
  tyr_store *store = open_place(argv[1]);
  tyr_keyspace *data = NULL;
  tyr_keyspace_config config = TYR_KEYSPACE_CONFIG_INIT;
  config.durability = TYR_BUFFERED;
  GOOD(tyr_keyspace_create(store, argv[2], &config, &data));
  batches(store, data);
  threads(data);
  char name[128];
  tyr_keyspace *groups = NULL;
  snprintf(name, sizeof name, "%s-groups", argv[2]);
  config.placed_by = "up-to:/";
  GOOD(tyr_keyspace_create(store, name, &config, &groups));
  reads(store, data, groups);
  GOOD(tyr_keyspace_free(groups));
  GOOD(tyr_keyspace_free(data));
  GOOD(tyr_close(store));
  CHECK(tyr_handles() == 0);
  return 0;
}
