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
  GOOD(tyr_keyspace_free(data));
  GOOD(tyr_close(store));
  CHECK(tyr_handles() == 0);
  return 0;
}
