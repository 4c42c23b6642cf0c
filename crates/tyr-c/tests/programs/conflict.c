/* Two threads move one unit at a time between two blobs, by what they read: tyr_transact runs a body
 * again when the other was faster. And what a body may not do. */
#include <pthread.h>

#include "check.h"

#define MOVES 100

struct mover {
  tyr_store *store;
  tyr_keyspace *data;
  int runs;
};

static int64_t number_in(tyr_txn *txn, tyr_keyspace *data, const char *key) {
  int64_t number = 0;
  size_t got = 0;
  GOOD(tyr_txn_read(txn, data, tyr_text(key), 0, &number, sizeof number, &got));
  CHECK(got == sizeof number);
  return number;
}

static tyr_error *move(tyr_txn *txn, void *context) {
  struct mover *mover = context;
  mover->runs++;
  int64_t left = number_in(txn, mover->data, "left") - 1;
  int64_t right = number_in(txn, mover->data, "right") + 1;
  tyr_error *error = tyr_txn_put(txn, mover->data, tyr_text("left"), tyr_data(&left, 8), NULL);
  if (error != NULL) return error;
  return tyr_txn_put(txn, mover->data, tyr_text("right"), tyr_data(&right, 8), NULL);
}

static void *run(void *context) {
  struct mover *mover = context;
  for (int at = 0; at < MOVES;) {
    tyr_error *error = tyr_transact(mover->store, move, mover);
    if (error == NULL) at++;
    else FAILS(error, TYR_CONFLICT, "");
  }
  return NULL;
}

static tyr_error *fail(tyr_txn *txn, void *context) {
  struct mover *mover = context;
  GOOD(tyr_txn_put(txn, mover->data, tyr_text("left"), tyr_text("broken"), NULL));
  FAILS(tyr_commit(txn, NULL), TYR_INVALID_ARGUMENT, "lent");
  FAILS(tyr_rollback(txn), TYR_INVALID_ARGUMENT, "lent");
  return tyr_txn_read(txn, mover->data, tyr_text("nowhere"), 0, NULL, 0, &(size_t){0});
}

/* Fails for a reason of the program's own: with a conflict twice, and then for good. */
static tyr_error *own(tyr_txn *txn, void *context) {
  struct mover *mover = context;
  GOOD(tyr_txn_put(txn, mover->data, tyr_text("left"), tyr_text("broken"), NULL));
  if (++mover->runs < 3) return tyr_error_new(TYR_CONFLICT, "again, please");
  return tyr_error_new(TYR_QUOTA_EXCEEDED, "that is enough");
}

int main(int argc, char **argv) {
  CHECK(argc == 3);
  tyr_store *store = open_place(argv[1]);
  tyr_keyspace *data = NULL;
  GOOD(tyr_keyspace_create(store, argv[2], NULL, &data));
  int64_t all = 2 * MOVES, none = 0;
  GOOD(tyr_put(data, tyr_text("left"), tyr_data(&all, 8)));
  GOOD(tyr_put(data, tyr_text("right"), tyr_data(&none, 8)));

  /* By hand: what was read has changed. */
  tyr_txn *txn = NULL;
  GOOD(tyr_begin(store, &txn));
  CHECK(number_in(txn, data, "left") == all);
  GOOD(tyr_put(data, tyr_text("left"), tyr_data(&all, 8)));
  GOOD(tyr_txn_put(txn, data, tyr_text("right"), tyr_data(&all, 8), NULL));
  FAILS(tyr_commit(txn, NULL), TYR_CONFLICT, "");

  struct mover movers[2] = {{store, data, 0}, {store, data, 0}};
  pthread_t threads[2];
  for (int at = 0; at < 2; at++) CHECK(!pthread_create(&threads[at], NULL, run, &movers[at]));
  for (int at = 0; at < 2; at++) CHECK(pthread_join(threads[at], NULL) == 0);
  int64_t left = -1, right = -1;
  size_t got;
  GOOD(tyr_read(data, tyr_text("left"), 0, &left, 8, &got));
  GOOD(tyr_read(data, tyr_text("right"), 0, &right, 8, &got));
  CHECK(left == 0 && right == all);
  CHECK(movers[0].runs + movers[1].runs >= 2 * MOVES);

  FAILS(tyr_transact(store, fail, &movers[0]), TYR_NOT_FOUND, "nowhere");
  GOOD(tyr_read(data, tyr_text("left"), 0, &left, 8, &got));
  CHECK(left == 0);
  movers[0].runs = 0;
  FAILS(tyr_transact(store, own, &movers[0]), TYR_QUOTA_EXCEEDED, "that is enough");
  CHECK(movers[0].runs == 3);
  GOOD(tyr_read(data, tyr_text("left"), 0, &left, 8, &got));
  CHECK(left == 0);
  FAILS(tyr_error_new(TYR_BUG, "x"), TYR_INVALID_ARGUMENT, "1 to 10 or 100");
  FAILS(tyr_error_new(TYR_CONFLICT, NULL), TYR_INVALID_ARGUMENT, "text is NULL");
  FAILS(tyr_transact(store, NULL, NULL), TYR_INVALID_ARGUMENT, "body");

  GOOD(tyr_keyspace_free(data));
  GOOD(tyr_close(store));
  CHECK(tyr_handles() == 0);
  return 0;
}
