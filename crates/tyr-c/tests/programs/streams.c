/* Streams into blobs and out of them, copies, kept snapshots, and stamps. */
#include "check.h"

#define MUCH ((uint64_t)5 << 20)

/* Gives so many bytes, each the low byte of its place, in pieces of odd lengths. */
struct source {
  uint64_t at;
  uint64_t end;
  uint64_t fails_at;
};

static int64_t fill(void *context, void *out, size_t len) {
  struct source *source = context;
  uint64_t left = source->end - source->at;
  size_t count = len < 77777 ? len : 77777;
  if (count > left) count = (size_t)left;
  if (source->fails_at != 0 && source->at >= source->fails_at) return -1;
  for (size_t at = 0; at < count; at++) ((unsigned char *)out)[at] = (unsigned char)(source->at + at);
  source->at += count;
  return (int64_t)count;
}

static int64_t lie(void *context, void *out, size_t len) {
  (void)context;
  (void)out;
  return (int64_t)len + 1;
}

static void check_stream(tyr_reader *reader, uint64_t from, uint64_t to) {
  tyr_bytes *bytes = NULL;
  uint64_t at = from, remaining = 0;
  GOOD(tyr_reader_stat(reader, NULL, &remaining));
  CHECK(remaining == to - from);
  for (;;) {
    GOOD(tyr_reader_next(reader, &bytes));
    if (bytes == NULL) break;
    tyr_slice slice = tyr_bytes_slice(bytes);
    CHECK(slice.len > 0 && slice.len <= (size_t)1 << 20);
    for (size_t byte = 0; byte < slice.len; byte++, at++) {
      CHECK(((const unsigned char *)slice.data)[byte] == (unsigned char)at);
    }
    GOOD(tyr_bytes_free(bytes));
  }
  CHECK(at == to);
  GOOD(tyr_reader_free(reader));
}

static void streams(tyr_store *store, tyr_keyspace *data) {
  struct source source = {0, MUCH, 0};
  tyr_reader *reader = NULL;
  tyr_snapshot *snapshot = NULL;
  uint64_t size = 0, offset = 0;
  tyr_stat stat;

  GOOD(tyr_put_stream(data, tyr_text("film"), fill, &source, &size));
  CHECK(size == MUCH);
  GOOD(tyr_reader_open(data, tyr_text("film"), 0, UINT64_MAX, &reader));
  GOOD(tyr_reader_stat(reader, &size, NULL));
  CHECK(size == MUCH);
  check_stream(reader, 0, MUCH);
  GOOD(tyr_reader_open(data, tyr_text("film"), 1000, 2000000, &reader));
  check_stream(reader, 1000, 2001000);
  GOOD(tyr_reader_open(data, tyr_text("film"), MUCH + 5, 7, &reader));
  check_stream(reader, MUCH, MUCH);

  /* A source that fails changes nothing, nor one that has more than it was asked for. */
  source = (struct source){7, MUCH, MUCH / 2};
  FAILS(tyr_put_stream(data, tyr_text("film"), fill, &source, NULL), TYR_UNAVAILABLE, "source failed");
  FAILS(tyr_put_stream(data, tyr_text("film"), lie, NULL, NULL), TYR_UNAVAILABLE, "source failed");
  FAILS(tyr_put_stream(data, tyr_text("film"), NULL, NULL, NULL), TYR_INVALID_ARGUMENT, "source");

  /* A reader and a snapshot show what was there. */
  GOOD(tyr_snapshot_take(store, &snapshot));
  GOOD(tyr_reader_open(data, tyr_text("film"), 0, UINT64_MAX, &reader));
  source = (struct source){MUCH, MUCH + 100, 0};
  GOOD(tyr_append_stream(data, tyr_text("film"), fill, &source, &offset));
  CHECK(offset == MUCH);
  source = (struct source){50, 150, 0};
  GOOD(tyr_write_stream(data, tyr_text("film"), 50, fill, &source, &size));
  CHECK(size == 100);
  check_stream(reader, 0, MUCH);
  GOOD(tyr_snapshot_reader_open(snapshot, data, tyr_text("film"), 0, UINT64_MAX, &reader));
  GOOD(tyr_snapshot_free(snapshot));
  check_stream(reader, 0, MUCH);
  GOOD(tyr_reader_open(data, tyr_text("film"), 0, UINT64_MAX, &reader));
  check_stream(reader, 0, MUCH + 100);
  GOOD(tyr_stat_blob(data, tyr_text("film"), &stat));
  CHECK(stat.size == MUCH + 100);

  FAILS(tyr_reader_open(data, tyr_text("none"), 0, 1, &reader), TYR_NOT_FOUND, "none");
  FAILS(tyr_reader_open(data, tyr_text("film"), 0, 1, NULL), TYR_INVALID_ARGUMENT, "reader is NULL");
  FAILS(tyr_reader_next(reader, NULL), TYR_INVALID_ARGUMENT, "bytes is NULL");
  FAILS(tyr_reader_stat(reader, NULL, NULL), TYR_INVALID_ARGUMENT, "freed");
}

static void copies(tyr_store *store, tyr_keyspace *data) {
  tyr_copy copy = TYR_COPY_INIT;
  tyr_reader *reader = NULL;
  tyr_txn *txn = NULL;
  tyr_stat stat;
  uint64_t copied = 0;

  copy.from = copy.to = data;
  copy.from_key = tyr_text("film");
  copy.to_key = tyr_text("film of monday");
  GOOD(tyr_copy_blob(store, &copy, &copied));
  CHECK(copied == MUCH + 100);
  GOOD(tyr_reader_open(data, copy.to_key, 0, UINT64_MAX, &reader));
  check_stream(reader, 0, MUCH + 100);

  copy.to_key = tyr_text("part");
  copy.is_part = 1;
  copy.from_offset = 256;
  copy.len = 512;
  copy.to_offset = 0;
  GOOD(tyr_begin(store, &txn));
  GOOD(tyr_txn_copy(txn, &copy, &copied));
  CHECK(copied == 512);
  GOOD(tyr_commit(txn, NULL));
  GOOD(tyr_reader_open(data, copy.to_key, 0, UINT64_MAX, &reader));
  check_stream(reader, 0, 512);

  copy.from_key = tyr_text("none");
  FAILS(tyr_copy_blob(store, &copy, NULL), TYR_NOT_FOUND, "none");
  FAILS(tyr_copy_blob(store, NULL, NULL), TYR_INVALID_ARGUMENT, "copy is NULL");
  copy.is_part = 3;
  FAILS(tyr_copy_blob(store, &copy, NULL), TYR_INVALID_ARGUMENT, "is_part");
  copy.to = NULL;
  FAILS(tyr_copy_blob(store, &copy, NULL), TYR_INVALID_ARGUMENT, "tyr_keyspace is NULL");
  FAILS(tyr_stat_blob(data, tyr_text("none"), &stat), TYR_NOT_FOUND, "none");
}

static void kept(tyr_store *store, tyr_keyspace *data, const char *name) {
  tyr_snapshot *snapshot = NULL;
  tyr_timestamp version = {{0}};
  tyr_bytes *bytes = NULL;
  tyr_page *page = NULL;
  tyr_entry entry;
  bool is_listed = false;

  GOOD(tyr_put(data, tyr_text("greeting"), tyr_text("old")));
  GOOD(tyr_kept_make(store, name, &version));
  CHECK(memcmp(&version, &(tyr_timestamp){{0}}, sizeof version) > 0);
  FAILS(tyr_kept_make(store, name, NULL), TYR_ALREADY_EXISTS, name);
  GOOD(tyr_put(data, tyr_text("greeting"), tyr_text("newer")));
  GOOD(tyr_kept_open(store, name, &snapshot));
  GOOD(tyr_snapshot_get(snapshot, data, tyr_text("greeting"), &bytes));
  CHECK(is_text(tyr_bytes_slice(bytes), "old"));
  GOOD(tyr_bytes_free(bytes));
  GOOD(tyr_snapshot_free(snapshot));
  GOOD(tyr_kept_list(store, &page));
  for (size_t at = 0; at < tyr_page_len(page); at++) {
    GOOD(tyr_page_entry(page, at, &entry));
    is_listed |= is_text(entry.key, name);
  }
  CHECK(is_listed);
  GOOD(tyr_page_free(page));
  GOOD(tyr_kept_drop(store, name));
  FAILS(tyr_kept_drop(store, name), TYR_NOT_FOUND, name);
  FAILS(tyr_kept_open(store, name, &snapshot), TYR_NOT_FOUND, name);
}

static void stamps(tyr_store *store, tyr_keyspace *data) {
  const size_t places[] = {3, 20};
  char text[40] = "at ................ ................ end";
  char out[40];
  tyr_txn *txn = NULL;
  tyr_committed *committed = NULL;
  tyr_timestamp version;
  uint64_t appended = 0, offset = 0;
  size_t got = 0;

  GOOD(tyr_begin(store, &txn));
  GOOD(tyr_txn_put_stamped(txn, data, tyr_text("stamped"), tyr_data(text, 40), places, 2, NULL));
  GOOD(tyr_txn_append_stamped(txn, data, tyr_text("log"), tyr_data(text, 40), places, 1, &appended));
  GOOD(tyr_commit(txn, &committed));
  GOOD(tyr_committed_version(committed, &version));
  GOOD(tyr_committed_offset(committed, appended, &offset));
  CHECK(offset == 0);
  GOOD(tyr_committed_free(committed));
  GOOD(tyr_read(data, tyr_text("stamped"), 0, out, sizeof out, &got));
  CHECK(got == 40 && memcmp(out, "at ", 3) == 0 && memcmp(out + 36, " end", 4) == 0);
  CHECK(memcmp(out + 3, &version, 16) == 0 && memcmp(out + 20, &version, 16) == 0);
  GOOD(tyr_read(data, tyr_text("log"), 3, out, 16, &got));
  CHECK(memcmp(out, &version, 16) == 0);

  GOOD(tyr_begin(store, &txn));
  const size_t beyond[] = {30};
  const int32_t wrong = TYR_INVALID_ARGUMENT;
  FAILS(tyr_txn_put_stamped(txn, data, tyr_text("x"), tyr_data(text, 40), beyond, 1, NULL), wrong, "");
  FAILS(tyr_txn_put_stamped(txn, data, tyr_text("x"), tyr_data(text, 40), NULL, 1, NULL), wrong, "places");
  FAILS(tyr_txn_put_stamped(txn, data, tyr_text("x"), tyr_data(text, 40), places, 17, NULL), wrong, "17");
  GOOD(tyr_rollback(txn));
}

int main(int argc, char **argv) {
  CHECK(argc == 3);
  tyr_store *store = open_place(argv[1]);
  tyr_keyspace *data = NULL;
  GOOD(tyr_keyspace_create(store, argv[2], NULL, &data));
  streams(store, data);
  copies(store, data);
  kept(store, data, argv[2]);
  stamps(store, data);
  GOOD(tyr_keyspace_free(data));
  GOOD(tyr_close(store));
  CHECK(tyr_handles() == 0);
  return 0;
}
