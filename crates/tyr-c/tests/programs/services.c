/* What programs agree by: locks with fences, watches, and service metadata. */
#include "check.h"

static void locks(tyr_store *store, tyr_keyspace *data) {
  tyr_lock_options options = TYR_LOCK_OPTIONS_INIT;
  tyr_lock *lock = NULL, *other = NULL;
  tyr_txn *txn = NULL;
  uint64_t first = 0, second = 0, fence = 0;
  bool is_held = false, is_recalled = true;

  options.holder = "ann";
  GOOD(tyr_lock_take(data, tyr_text("lock"), &options, &lock));
  GOOD(tyr_lock_stat(lock, &first, &is_held, &is_recalled));
  CHECK(first >= 1 && is_held && !is_recalled);
  options.is_no_wait = 1;
  FAILS(tyr_lock_take(data, tyr_text("lock"), &options, &other), TYR_CONFLICT, "");
  options.wait_ms = 5;
  FAILS(tyr_lock_take(data, tyr_text("lock"), &options, &other), TYR_INVALID_ARGUMENT, "set one");
  options.wait_ms = 0;
  options.is_no_wait = 0;
  options.duration_ms = 1;
  FAILS(tyr_lock_take(data, tyr_text("lock"), &options, &other), TYR_INVALID_ARGUMENT, "");
  FAILS(tyr_lock_take(data, tyr_text("lock"), NULL, NULL), TYR_INVALID_ARGUMENT, "lock is NULL");

  /* Under the fence of a lock that is held, and of one that another has got since. */
  GOOD(tyr_begin(store, &txn));
  GOOD(tyr_txn_fence(txn, lock, &fence));
  GOOD(tyr_txn_put(txn, data, tyr_text("guarded"), tyr_text("first"), NULL));
  GOOD(tyr_commit(txn, NULL));
  GOOD(tyr_begin(store, &txn));
  GOOD(tyr_txn_fence(txn, lock, &fence));
  GOOD(tyr_txn_put(txn, data, tyr_text("guarded"), tyr_text("late"), NULL));
  GOOD(tyr_lock_unlock(lock));
  FAILS(tyr_lock_unlock(lock), TYR_INVALID_ARGUMENT, "freed");
  FAILS(tyr_lock_stat(lock, NULL, NULL, NULL), TYR_INVALID_ARGUMENT, "freed");
  GOOD(tyr_lock_take(data, tyr_text("lock"), NULL, &other));
  GOOD(tyr_lock_stat(other, &second, NULL, NULL));
  CHECK(second > first);
  FAILS(tyr_commit(txn, NULL), TYR_CONFLICT, "");
  GOOD(tyr_lock_free(other));
  GOOD(tyr_lock_free(NULL));
}

static bool has_key(const tyr_watch_event *event, const char *key) {
  tyr_entry entry;
  bool is_there = false;
  for (size_t at = 0; at < tyr_page_len(event->keys); at++) {
    GOOD(tyr_page_entry(event->keys, at, &entry));
    is_there |= is_text(entry.key, key);
  }
  return is_there;
}

static void watches(tyr_keyspace *data) {
  tyr_watch *one = NULL, *all = NULL;
  tyr_watch_event event;
  bool is_told = false;

  GOOD(tyr_watch_key(data, tyr_text("news"), &one));
  GOOD(tyr_watch_next(one, -1, &event));
  CHECK(event.is_anew == 1 && event.keys != NULL);
  GOOD(tyr_page_free(event.keys));
  GOOD(tyr_watch_prefix(data, tyr_text("dir/"), &all));
  GOOD(tyr_put(data, tyr_text("news"), tyr_text("1")));
  GOOD(tyr_put(data, tyr_text("dir/a"), tyr_text("1")));
  /* Told by name, or that it is to be looked. */
  while (!is_told) {
    GOOD(tyr_watch_next(one, -1, &event));
    is_told = has_key(&event, "news") || event.is_anew;
    CHECK(!has_key(&event, "dir/a") && event.is_more == 0);
    GOOD(tyr_page_free(event.keys));
  }
  for (is_told = false; !is_told;) {
    GOOD(tyr_watch_next(all, -1, &event));
    is_told = has_key(&event, "dir/a") || event.is_anew;
    CHECK(!has_key(&event, "news"));
    GOOD(tyr_page_free(event.keys));
  }
  /* In the end nothing is left to tell. */
  for (event.keys = NULL;; GOOD(tyr_page_free(event.keys))) {
    GOOD(tyr_watch_next(one, 1000, &event));
    if (event.keys == NULL) break;
  }
  FAILS(tyr_watch_next(one, 0, NULL), TYR_INVALID_ARGUMENT, "event is NULL");
  FAILS(tyr_watch_key(data, tyr_text(""), &one), TYR_INVALID_ARGUMENT, "1 to 1024");
  GOOD(tyr_watch_free(one));
  GOOD(tyr_watch_free(all));
  FAILS(tyr_watch_next(all, 0, &event), TYR_INVALID_ARGUMENT, "freed");
}

static void metadata(tyr_store *store, const char *name) {
  char leader[256], term[256], prefix[128];
  tyr_bytes *value = NULL;
  tyr_page *page = NULL;
  tyr_entry entry;
  uint64_t revision = 9, seen = 0;
  snprintf(prefix, sizeof prefix, "services/%s/", name);
  snprintf(leader, sizeof leader, "%sleader", prefix);
  snprintf(term, sizeof term, "%sterm", prefix);

  GOOD(tyr_metadata_get(store, leader, &value, &revision));
  CHECK(value == NULL && revision == 0);
  GOOD(tyr_metadata_put(store, leader, tyr_text("ann"), 0, &revision));
  FAILS(tyr_metadata_put(store, leader, tyr_text("bob"), 0, NULL), TYR_CONFLICT, "");
  GOOD(tyr_metadata_get(store, leader, &value, &seen));
  CHECK(is_text(tyr_bytes_slice(value), "ann") && seen == revision);
  GOOD(tyr_bytes_free(value));
  GOOD(tyr_metadata_put(store, leader, tyr_text("bob"), revision, &seen));
  CHECK(seen > revision);
  FAILS(tyr_metadata_put(store, leader, tyr_text("eve"), revision, NULL), TYR_CONFLICT, "");
  GOOD(tyr_metadata_put(store, term, tyr_text("2"), TYR_ANY_REVISION, NULL));

  GOOD(tyr_metadata_list(store, prefix, NULL, 100, &page));
  CHECK(tyr_page_len(page) == 2);
  GOOD(tyr_page_entry(page, 0, &entry));
  CHECK(is_text(entry.key, leader) && is_text(entry.bytes, "bob"));
  GOOD(tyr_page_free(page));
  GOOD(tyr_metadata_list(store, prefix, leader, 100, &page));
  CHECK(tyr_page_len(page) == 1);
  GOOD(tyr_page_free(page));

  FAILS(tyr_metadata_delete(store, leader, revision, NULL), TYR_CONFLICT, "");
  GOOD(tyr_metadata_delete(store, leader, TYR_ANY_REVISION, &revision));
  GOOD(tyr_metadata_get(store, leader, &value, NULL));
  CHECK(value == NULL);
  FAILS(tyr_metadata_put(store, "", tyr_text("x"), 0, NULL), TYR_INVALID_ARGUMENT, "");
  FAILS(tyr_metadata_get(store, leader, NULL, NULL), TYR_INVALID_ARGUMENT, "value is NULL");
}

int main(int argc, char **argv) {
  CHECK(argc == 3);
  tyr_store *store = open_place(argv[1]);
  tyr_keyspace *data = NULL;
  GOOD(tyr_keyspace_create(store, argv[2], NULL, &data));
  locks(store, data);
  watches(data);
  metadata(store, argv[2]);
  GOOD(tyr_keyspace_free(data));
  GOOD(tyr_close(store));
  CHECK(tyr_handles() == 0);
  return 0;
}
