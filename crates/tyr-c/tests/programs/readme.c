/* The five lines of docs/guide/c.md, as a program: `weather FOLDER`. */
#include <stdio.h>
#include <stdlib.h>

#include "tyr.h"

#define CHECK(call)                                                                        \
  do {                                                                                     \
    tyr_error *error = (call);                                                             \
    if (error != NULL) {                                                                   \
      fprintf(stderr, "%s\n", tyr_error_text(error));                                      \
      exit(1);                                                                             \
    }                                                                                      \
  } while (0)

int main(int argc, char **argv) {
  tyr_store *store = NULL;
  tyr_keyspace *oslo = NULL;
  tyr_txn *txn = NULL;
  tyr_snapshot *snapshot = NULL;
  tyr_bytes *bytes = NULL;

  CHECK(tyr_open(argc > 1 ? argv[1] : "weather", NULL, &store));
  CHECK(tyr_keyspace_find_or_create(store, "oslo", NULL, &oslo));
  CHECK(tyr_begin(store, &txn));
  CHECK(tyr_txn_append(txn, oslo, tyr_text("temperature"), tyr_text("-3.5\n"), NULL));
  CHECK(tyr_txn_apply(txn, oslo, tyr_text("count"), 0, TYR_ADD, tyr_u64(1), NULL));
  CHECK(tyr_commit(txn, NULL));

  CHECK(tyr_snapshot_take(store, &snapshot));
  CHECK(tyr_snapshot_get(snapshot, oslo, tyr_text("temperature"), &bytes));
  tyr_slice text = tyr_bytes_slice(bytes);
  printf("%.*s", (int)text.len, (const char *)text.data);
  CHECK(tyr_bytes_free(bytes));
  CHECK(tyr_snapshot_free(snapshot));
  CHECK(tyr_keyspace_free(oslo));
  CHECK(tyr_close(store));
  return tyr_handles() == 0 ? 0 : 1;
}
