/* Plain calls, each answered when it returns: blobs, transactions, snapshots, listings. */
#include "check.h"

static void blobs(tyr_store *store, tyr_keyspace *data) {
  char out[64];
  size_t got = 0;
  uint64_t offset = 0;
  bool existed = false;
  tyr_stat stat;
  tyr_bytes *bytes = NULL;
  tyr_number number;

  GOOD(tyr_put(data, tyr_text("greeting"), tyr_text("hello")));
  GOOD(tyr_append(data, tyr_text("greeting"), tyr_text(" world"), &offset));
  CHECK(offset == 5);
  GOOD(tyr_write(data, tyr_text("greeting"), 20, tyr_text("!")));
  GOOD(tyr_read(data, tyr_text("greeting"), 6, out, 5, &got));
  CHECK(got == 5 && memcmp(out, "world", 5) == 0);
  GOOD(tyr_read(data, tyr_text("greeting"), 18, out, sizeof out, &got));
  CHECK(got == 3 && memcmp(out, "\0\0!", 3) == 0);
  GOOD(tyr_read(data, tyr_text("greeting"), 99, NULL, 0, &got));
  CHECK(got == 0);
  GOOD(tyr_stat_blob(data, tyr_text("greeting"), &stat));
  CHECK(stat.size == 21);
  GOOD(tyr_truncate(data, tyr_text("greeting"), 11));
  GOOD(tyr_clear(data, tyr_text("greeting"), 0, 1));
  GOOD(tyr_get(data, tyr_text("greeting"), &bytes));
  CHECK(tyr_bytes_slice(bytes).len == 11);
  CHECK(memcmp(tyr_bytes_slice(bytes).data, "\0ello world", 11) == 0);
  GOOD(tyr_bytes_free(bytes));

  GOOD(tyr_create(data, tyr_text("new")));
  FAILS(tyr_create(data, tyr_text("new")), TYR_ALREADY_EXISTS, "new");
  GOOD(tyr_append_at(data, tyr_text("new"), 0, tyr_text("first")));
  FAILS(tyr_append_at(data, tyr_text("new"), 0, tyr_text("late")), TYR_CONFLICT, "");
  GOOD(tyr_compare_and_swap(data, tyr_text("new"), 0, tyr_text("first"), tyr_text("FIRST")));
  FAILS(tyr_compare_and_swap(data, tyr_text("new"), 0, tyr_text("first"), tyr_text("x")),
        TYR_CONFLICT, "");
  GOOD(tyr_delete(data, tyr_text("new"), &existed));
  CHECK(existed);
  GOOD(tyr_delete(data, tyr_text("new"), &existed));
  CHECK(!existed);
  FAILS(tyr_get(data, tyr_text("new"), &bytes), TYR_NOT_FOUND, "new");

  GOOD(tyr_apply(data, tyr_text("u64"), 0, TYR_ADD, tyr_u64(UINT64_MAX), &number));
  CHECK(tyr_as_u64(number) == UINT64_MAX);
  GOOD(tyr_apply(data, tyr_text("i8"), 0, TYR_SUB, tyr_i8(100), &number));
  CHECK(tyr_as_i64(number) == -100);
  GOOD(tyr_apply(data, tyr_text("f32"), 0, TYR_ADD, tyr_f32(0.5F), &number));
  CHECK(tyr_as_f64(number) > 0.49 && tyr_as_f64(number) < 0.51);
  GOOD(tyr_apply(data, tyr_text("f64"), 0, TYR_MAX, tyr_f64(2.25), &number));
  CHECK(tyr_as_f64(number) > 2.24 && tyr_as_f64(number) < 2.26);

  tyr_read_request requests[3] = {
      {data, tyr_text("u64"), 0, 8}, {data, tyr_text("gone"), 0, 8}, {data, tyr_text("i8"), 0, 8}};
  tyr_bytes *found[3];
  GOOD(tyr_read_many(store, requests, 3, found));
  CHECK(tyr_bytes_slice(found[0]).len == 8 && found[1] == NULL);
  CHECK(tyr_bytes_slice(found[2]).len == 1);
  GOOD(tyr_bytes_free(found[0]));
  GOOD(tyr_bytes_free(found[2]));

  size_t large = 5 << 20;
  unsigned char *much = malloc(large);
  CHECK(much != NULL);
  memset(much, 7, large);
  GOOD(tyr_put(data, tyr_text("large"), tyr_data(much, large)));
  memset(much, 0, large);
  GOOD(tyr_read(data, tyr_text("large"), 0, much, large, &got));
  CHECK(got == large && much[0] == 7 && much[large - 1] == 7);
  free(much);
  GOOD(tyr_delete(data, tyr_text("large"), NULL));
}

static void transactions(tyr_store *store, tyr_keyspace *data) {
  tyr_txn *txn = NULL;
  tyr_committed *committed = NULL;
  uint64_t log, count, gone, offset, number_of_condition;
  bool existed = true;
  tyr_number value;
  tyr_timestamp version;
  tyr_stat stat;
  char out[16];
  size_t got;

  GOOD(tyr_begin(store, &txn));
  GOOD(tyr_txn_put(txn, data, tyr_text("log"), tyr_text("12"), NULL));
  GOOD(tyr_txn_append(txn, data, tyr_text("log"), tyr_text("34"), &log));
  GOOD(tyr_txn_apply(txn, data, tyr_text("count"), 0, TYR_ADD, tyr_u64(3), &count));
  GOOD(tyr_txn_delete(txn, data, tyr_text("never"), &gone));
  GOOD(tyr_txn_read(txn, data, tyr_text("log"), 1, out, sizeof out, &got));
  CHECK(got == 3 && memcmp(out, "234", 3) == 0);
  GOOD(tyr_commit(txn, &committed));
  GOOD(tyr_committed_offset(committed, log, &offset));
  CHECK(offset == 2);
  GOOD(tyr_committed_value(committed, count, &value));
  CHECK(tyr_as_u64(value) == 3);
  GOOD(tyr_committed_existed(committed, gone, &existed));
  CHECK(!existed);
  FAILS(tyr_committed_offset(committed, count, &offset), TYR_INVALID_ARGUMENT, "an append");
  GOOD(tyr_committed_version(committed, &version));
  GOOD(tyr_stat_blob(data, tyr_text("log"), &stat));
  CHECK(memcmp(&stat.version, &version, sizeof version) == 0);
  GOOD(tyr_committed_free(committed));

  /* Which condition it was that does not hold. */
  GOOD(tyr_begin(store, &txn));
  GOOD(tyr_txn_expect_present(txn, data, tyr_text("log"), NULL));
  GOOD(tyr_txn_expect_absent(txn, data, tyr_text("never"), NULL));
  GOOD(tyr_txn_expect_version(txn, data, tyr_text("log"), version));
  GOOD(tyr_txn_compare(txn, data, tyr_text("log"), 0, tyr_text("1"), NULL));
  GOOD(tyr_txn_compare_number(txn, data, tyr_text("count"), 0, TYR_GREATER, tyr_u64(3),
                              &number_of_condition));
  GOOD(tyr_txn_create(txn, data, tyr_text("made"), NULL));
  tyr_error *error = tyr_commit(txn, NULL);
  CHECK(tyr_error_kind(error) == TYR_CONFLICT && tyr_error_is_retryable(error));
  CHECK(!tyr_error_is_open(error) && tyr_error_operation(error) == number_of_condition);
  tyr_error_free(error);
  FAILS(tyr_stat_blob(data, tyr_text("made"), &stat), TYR_NOT_FOUND, "made");

  GOOD(tyr_begin(store, &txn));
  GOOD(tyr_txn_write(txn, data, tyr_text("log"), 0, tyr_text("x"), NULL));
  GOOD(tyr_txn_truncate(txn, data, tyr_text("log"), 1, NULL));
  GOOD(tyr_txn_clear(txn, data, tyr_text("log"), 0, 1, NULL));
  GOOD(tyr_txn_append_at(txn, data, tyr_text("log"), 1, tyr_text("y"), NULL));
  GOOD(tyr_txn_stat(txn, data, tyr_text("log"), &stat));
  CHECK(stat.size == 2);
  GOOD(tyr_rollback(txn));
  GOOD(tyr_stat_blob(data, tyr_text("log"), &stat));
  CHECK(stat.size == 4);
}

static void moments(tyr_store *store, tyr_keyspace *data) {
  tyr_snapshot *snapshot = NULL;
  tyr_timestamp version;
  tyr_bytes *bytes = NULL;
  tyr_page *page = NULL;
  tyr_entry entry;
  tyr_slice slice;
  tyr_stat stat;
  char out[16];
  size_t got;

  GOOD(tyr_put(data, tyr_text("dir/a"), tyr_text("old")));
  GOOD(tyr_put(data, tyr_text("dir/b"), tyr_text("old")));
  GOOD(tyr_snapshot_take(store, &snapshot));
  GOOD(tyr_snapshot_version(snapshot, &version));
  GOOD(tyr_put(data, tyr_text("dir/a"), tyr_text("newer")));
  GOOD(tyr_put(data, tyr_text("dir/c"), tyr_text("newer")));
  GOOD(tyr_snapshot_get(snapshot, data, tyr_text("dir/a"), &bytes));
  CHECK(is_text(tyr_bytes_slice(bytes), "old"));
  GOOD(tyr_bytes_free(bytes));
  GOOD(tyr_snapshot_read(snapshot, data, tyr_text("dir/a"), 1, out, sizeof out, &got));
  CHECK(got == 2 && memcmp(out, "ld", 2) == 0);
  GOOD(tyr_snapshot_stat(snapshot, data, tyr_text("dir/b"), &stat));
  CHECK(stat.size == 3);

  tyr_scan scan = TYR_SCAN_INIT;
  scan.prefix = tyr_text("dir/");
  GOOD(tyr_snapshot_scan(snapshot, data, &scan, &page));
  CHECK(tyr_page_len(page) == 2 && tyr_page_groups(page) == 0);
  GOOD(tyr_page_free(page));
  GOOD(tyr_snapshot_free(snapshot));

  /* A page of one, and from there on. */
  scan.limit = 1;
  scan.first_bytes = 2;
  char from[64];
  int listed = 0;
  for (;;) {
    GOOD(tyr_scan_page(data, &scan, &page));
    for (size_t at = 0; at < tyr_page_len(page); at++, listed++) {
      GOOD(tyr_page_entry(page, at, &entry));
      CHECK(entry.key.len == 5 && entry.bytes.len == 2 && entry.stat.size >= 3);
    }
    FAILS(tyr_page_entry(page, 9, &entry), TYR_INVALID_ARGUMENT, "number 9");
    GOOD(tyr_page_resume(page, &slice));
    if (slice.len == 0) break;
    CHECK(slice.len <= sizeof from);
    memcpy(from, slice.data, slice.len);
    scan.from = tyr_data(from, slice.len);
    GOOD(tyr_page_free(page));
    page = NULL;
  }
  GOOD(tyr_page_free(page));
  CHECK(listed == 3);

  tyr_scan groups = TYR_SCAN_INIT;
  groups.delimiter = tyr_text("/");
  GOOD(tyr_scan_page(data, &groups, &page));
  CHECK(tyr_page_groups(page) == 1);
  GOOD(tyr_page_group(page, 0, &slice));
  CHECK(is_text(slice, "dir/"));
  GOOD(tyr_page_free(page));
}

int main(int argc, char **argv) {
  CHECK(argc == 3);
  tyr_store *store = open_place(argv[1]);
  tyr_keyspace *data = NULL, *again = NULL;
  tyr_page *page = NULL;
  tyr_keyspace_config config = TYR_KEYSPACE_CONFIG_INIT;
  config.durability = TYR_BUFFERED;
  config.chunk_size = 1 << 20;
  GOOD(tyr_keyspace_create(store, argv[2], &config, &data));
  FAILS(tyr_keyspace_create(store, argv[2], &config, &again), TYR_ALREADY_EXISTS, argv[2]);
  GOOD(tyr_keyspace_find(store, argv[2], &again));
  GOOD(tyr_keyspace_free(again));
  GOOD(tyr_keyspace_find_or_create(store, argv[2], &config, &again));
  GOOD(tyr_keyspace_free(again));
  config.durability = TYR_MEMORY;
  FAILS(tyr_keyspace_find_or_create(store, argv[2], &config, &again), TYR_ALREADY_EXISTS,
        "configuration");
  GOOD(tyr_keyspace_list(store, &page));
  CHECK(tyr_page_len(page) >= 1);
  GOOD(tyr_page_free(page));
  blobs(store, data);
  transactions(store, data);
  moments(store, data);
  GOOD(tyr_sync(store));
  GOOD(tyr_keyspace_drop(store, argv[2]));
  FAILS(tyr_keyspace_find(store, argv[2], &again), TYR_NOT_FOUND, argv[2]);
  GOOD(tyr_keyspace_free(data));
  GOOD(tyr_close(store));
  CHECK(tyr_handles() == 0);
  printf("libtyr %s\n", tyr_version());
  return 0;
}
