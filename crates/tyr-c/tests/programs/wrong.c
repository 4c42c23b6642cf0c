/* Wrong input of every kind is an error that says what was wrong. */
#include "check.h"

int main(int argc, char **argv) {
  CHECK(argc == 3);
  tyr_store *store = open_place(argv[1]);
  tyr_store *none = NULL;
  tyr_keyspace *data = NULL, *other = NULL;
  tyr_queue *queue = NULL;
  tyr_txn *txn = NULL;
  tyr_bytes *bytes = NULL;
  tyr_page *page = NULL;
  tyr_snapshot *snapshot = NULL;
  tyr_done done;
  tyr_stat stat;
  tyr_number number = {99, 0};
  size_t got;
  int on_the_stack = 0;
  const int32_t wrong = TYR_INVALID_ARGUMENT;
  GOOD(tyr_keyspace_create(store, argv[2], NULL, &data));

  /* NULL where something is wanted. */
  FAILS(tyr_open(NULL, NULL, &none), wrong, "folder is NULL");
  FAILS(tyr_open("x", NULL, NULL), wrong, "store is NULL");
  FAILS(tyr_connect(NULL, NULL, &none), wrong, "address is NULL");
  FAILS(tyr_connect("nowhere", NULL, &none), wrong, "nowhere");
  FAILS(tyr_keyspace_find(NULL, "data", &other), wrong, "tyr_store is NULL");
  FAILS(tyr_keyspace_find(store, NULL, &other), wrong, "name is NULL");
  FAILS(tyr_keyspace_find(store, "\xff\xfe", &other), wrong, "UTF-8");
  FAILS(tyr_keyspace_find(store, argv[2], NULL), wrong, "keyspace is NULL");
  FAILS(tyr_put(NULL, tyr_text("a"), tyr_text("1")), wrong, "tyr_keyspace is NULL");
  FAILS(tyr_put(data, tyr_data(NULL, 3), tyr_text("1")), wrong, "key is NULL");
  FAILS(tyr_put(data, tyr_text("a"), tyr_data(NULL, 3)), wrong, "data is NULL");
  FAILS(tyr_read(data, tyr_text("a"), 0, NULL, 5, &got), wrong, "out is NULL");
  FAILS(tyr_read(data, tyr_text("a"), 0, &on_the_stack, 4, NULL), wrong, "got is NULL");
  FAILS(tyr_get(data, tyr_text("a"), NULL), wrong, "bytes is NULL");
  FAILS(tyr_stat_blob(data, tyr_text("a"), NULL), wrong, "stat is NULL");
  FAILS(tyr_read_many(store, NULL, 2, &bytes), wrong, "requests is NULL");
  FAILS(tyr_begin(store, NULL), wrong, "txn is NULL");
  FAILS(tyr_commit(NULL, NULL), wrong, "tyr_txn is NULL");
  FAILS(tyr_outcome(store, NULL, NULL), wrong, "tyr_error is NULL");
  FAILS(tyr_queue_new(NULL), wrong, "queue is NULL");

  /* Wrong sizes and values. */
  FAILS(tyr_put(data, tyr_text(""), tyr_text("1")), wrong, "1 to 1024 bytes");
  FAILS(tyr_put(data, tyr_data(argv[0], (size_t)-1), tyr_text("1")), wrong, "more than memory");
  FAILS(tyr_write(data, tyr_text("a"), UINT64_MAX, tyr_text("1")), wrong, "");
  FAILS(tyr_read(data, tyr_text("a"), 0, &on_the_stack, (size_t)1 << 40, &got), wrong, "64 MiB");
  FAILS(tyr_apply(data, tyr_text("n"), 0, TYR_ADD, number, NULL), wrong, "type of a number");
  FAILS(tyr_apply(data, tyr_text("n"), 0, 77, tyr_u64(1), NULL), wrong, "not 77");
  FAILS(tyr_apply(data, tyr_text("n"), 0, TYR_DIV, tyr_u64(0), NULL), wrong, "zero");
  FAILS(tyr_apply(data, tyr_text("n"), 0, TYR_XOR, tyr_f64(1), NULL), wrong, "integers");
  tyr_scan scan = {0};
  FAILS(tyr_scan_page(data, &scan, &page), wrong, "TYR_SCAN_INIT");
  scan.size = sizeof scan;
  scan.limit = 1000000;
  FAILS(tyr_scan_page(data, &scan, &page), wrong, "limit");
  scan.limit = 1;
  scan.is_keys_only = 7;
  FAILS(tyr_scan_page(data, &scan, &page), wrong, "is_keys_only");
  /* A program built with a later header: what we do not know must be 0. */
  struct {
    tyr_scan known;
    uint64_t later;
  } grown = {TYR_SCAN_INIT, 0};
  grown.known.size = sizeof grown;
  GOOD(tyr_scan_page(data, &grown.known, &page));
  GOOD(tyr_page_free(page));
  grown.later = 1;
  FAILS(tyr_scan_page(data, &grown.known, &page), wrong, "later header");
  tyr_keyspace_config config = TYR_KEYSPACE_CONFIG_INIT;
  config.durability = 9;
  FAILS(tyr_keyspace_create(store, "x", &config, &other), wrong, "durability");
  config.durability = 0;
  config.chunk_size = 5;
  FAILS(tyr_keyspace_create(store, "x", &config, &other), wrong, "chunk");
  config.chunk_size = 0;
  config.replication = 4000;
  FAILS(tyr_keyspace_create(store, "x", &config, &other), wrong, "replication");
  config.replication = 0;
  config.placed_by = "moon";
  FAILS(tyr_keyspace_create(store, "x", &config, &other), wrong, "moon");
  tyr_connect_options options = TYR_CONNECT_OPTIONS_INIT;
  options.user = "ann";
  FAILS(tyr_connect("tyr://127.0.0.1:1", &options, &none), wrong, "ann has no key");
  options.key = "secret";
  options.key_file = "/nowhere";
  FAILS(tyr_connect("tyr://127.0.0.1:1", &options, &none), wrong, "give one");
  options.key = NULL;
  options.connect_timeout_ms = 50;
  FAILS(tyr_connect("tyr://127.0.0.1:1", &options, &none), TYR_UNAVAILABLE, "/nowhere");
  options = (tyr_connect_options)TYR_CONNECT_OPTIONS_INIT;
  options.tls_ca = "/nowhere/ca.pem";
  options.connect_timeout_ms = 50;
  tyr_error *error = tyr_connect("tyr://127.0.0.1:1", &options, &none);
  CHECK(error != NULL && strstr(tyr_error_text(error), "/nowhere/ca.pem") != NULL);
  tyr_error_free(error);

  /* Handles of another kind, and what is none. */
  FAILS(tyr_put((tyr_keyspace *)store, tyr_text("a"), tyr_text("1")), wrong,
        "a tyr_store where a tyr_keyspace is wanted");
  FAILS(tyr_put((tyr_keyspace *)&on_the_stack, tyr_text("a"), tyr_text("1")), wrong,
        "no function of T");
  FAILS(tyr_close((tyr_store *)data), wrong, "a tyr_keyspace where a tyr_store");
  CHECK(tyr_bytes_slice((tyr_bytes *)data).len == 0);
  CHECK(tyr_page_len((tyr_page *)data) == 0 && tyr_page_groups(NULL) == 0);
  CHECK(tyr_error_kind((tyr_error *)data) == TYR_INVALID_ARGUMENT);
  CHECK(strstr(tyr_error_text((tyr_error *)data), "no tyr_error") != NULL);
  CHECK(!tyr_error_free((tyr_error *)&on_the_stack));

  /* Freed, and freed again. */
  GOOD(tyr_put(data, tyr_text("a"), tyr_text("1")));
  GOOD(tyr_get(data, tyr_text("a"), &bytes));
  GOOD(tyr_bytes_free(bytes));
  FAILS(tyr_bytes_free(bytes), wrong, "freed");
  CHECK(tyr_bytes_slice(bytes).len == 0);
  GOOD(tyr_bytes_free(NULL));
  error = tyr_put(NULL, tyr_text("a"), tyr_text("1"));
  CHECK(tyr_error_free(error) && !tyr_error_free(error) && !tyr_error_free(NULL));
  GOOD(tyr_begin(store, &txn));
  GOOD(tyr_commit(txn, NULL));
  FAILS(tyr_commit(txn, NULL), wrong, "committed");
  FAILS(tyr_txn_put(txn, data, tyr_text("a"), tyr_text("1"), NULL), wrong, "committed");
  GOOD(tyr_queue_new(&queue));
  FAILS(tyr_queue_take(queue, &done, 0, 0, &got), wrong, "most");
  FAILS(tyr_queue_take(queue, NULL, 1, 0, &got), wrong, "done is NULL");
  GOOD(tyr_queue_free(queue));
  FAILS(tyr_queue_free(queue), wrong, "freed");
  FAILS(tyr_get_start(data, tyr_text("a"), queue, 1), wrong, "freed");

  /* After the store is closed, its children answer so. */
  GOOD(tyr_begin(store, &txn));
  GOOD(tyr_txn_put(txn, data, tyr_text("a"), tyr_text("2"), NULL));
  GOOD(tyr_snapshot_take(store, &snapshot));
  GOOD(tyr_close(store));
  FAILS(tyr_close(store), wrong, "closed");
  FAILS(tyr_begin(store, &txn), wrong, "closed");
  FAILS(tyr_put(data, tyr_text("a"), tyr_text("1")), TYR_UNAVAILABLE, "");
  FAILS(tyr_snapshot_stat(snapshot, data, tyr_text("a"), &stat), TYR_UNAVAILABLE, "");
  FAILS(tyr_commit(txn, NULL), TYR_UNAVAILABLE, "");
  GOOD(tyr_snapshot_free(snapshot));
  GOOD(tyr_keyspace_free(data));
  CHECK(tyr_handles() == 0);
  return 0;
}
