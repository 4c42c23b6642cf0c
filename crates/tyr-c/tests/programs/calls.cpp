/* Calls of tyr.hpp that block: every one of them, objects that were moved from and closed, and
 * exceptions in the body of a transact. */
#include "check.hpp"

#include <list>
#include <numeric>
#include <thread>

using namespace std::string_literals;
using namespace std::string_view_literals;

static void slices() {
  const unsigned char numbers[] = {1, 2, 3};
  std::vector<std::byte> owned(2, std::byte{7});
  CHECK(tyr::Slice("text").size() == 4 && tyr::Slice("") == tyr::Slice());
  CHECK(tyr::Slice(std::string("a\0b", 3)).size() == 3);
  CHECK(tyr::Slice("view"sv).text() == "view" && tyr::Slice(numbers).size() == 3);
  CHECK(tyr::Slice(owned).bytes()[1] == std::byte{7});
  CHECK(tyr::Slice(std::as_bytes(std::span(numbers))) == tyr::Slice(numbers));
  CHECK(tyr::Slice(u8"ä").size() == 2);
  static_assert(!std::convertible_to<std::list<char>, tyr::Slice>);
  static_assert(!std::convertible_to<std::vector<int>, tyr::Slice>);
}

static void numbers(const tyr::Keyspace &data) {
  using tyr::Transform;
  CHECK(data.apply("i8", 0, Transform::sub(std::int8_t{100})).as<int>() == -100);
  CHECK(data.apply("i16", 0, Transform::add(std::int16_t{-3})).as<int>() == -3);
  CHECK(data.apply("i32", 0, Transform::add(5)).raw().type_ == TYR_I32);
  CHECK(data.apply("i64", 0, Transform::min(-1L)).as<long>() == -1);
  CHECK(data.apply("u8", 0, Transform::add(std::uint8_t{200})).as<int>() == 200);
  CHECK(data.apply("u16", 0, Transform::bit_or(std::uint16_t{6})).as<int>() == 6);
  CHECK(data.apply("u16", 0, Transform::bit_and(std::uint16_t{3})).as<int>() == 2);
  CHECK(data.apply("u16", 0, Transform::bit_xor(std::uint16_t{7})).as<int>() == 5);
  CHECK(data.apply("u32", 0, Transform::swap(9U)).as<unsigned>() == 9);
  CHECK(data.apply("u32", 0, Transform::mul(3U)).as<unsigned>() == 27);
  CHECK(data.apply("u64", 0, Transform::add(UINT64_MAX)).as<std::uint64_t>() == UINT64_MAX);
  CHECK(data.apply("f32", 0, Transform::max(0.5F)).as<float>() == 0.5F);
  CHECK(data.apply("f64", 0, Transform::add(3.0)).as<double>() == 3.0);
  CHECK(data.apply("f64", 0, Transform::div(2.0)).as<int>() == 1);
  THROWS(InvalidArgument, "zero", data.apply("i32", 0, Transform::div(0)));
}

static void blobs(const tyr::Store &store, const tyr::Keyspace &data) {
  std::array<std::byte, 64> room;
  data.put("greeting", "hello");
  CHECK(data.append("greeting", " world"s) == 5);
  data.write("greeting", 20, "!");
  CHECK(tyr::Slice(data.read("greeting", 6, std::span(room).first(5))).text() == "world");
  CHECK(tyr::Slice(data.read("greeting", 18, room)) == tyr::Slice("\0\0!"sv));
  CHECK(data.read("greeting", 99, room).empty() && data.read("greeting", 0, {}).empty());
  CHECK(data.stat("greeting").size == 21);
  data.truncate("greeting", 11);
  data.clear("greeting", 0, 1);
  tyr::Bytes bytes = data.get("greeting");
  CHECK(bytes.text() == "\0ello world"sv && bytes.str().size() == 11 && !bytes.empty());
  CHECK(std::ranges::count(bytes, std::byte{'o'}) == 2);
  tyr::Bytes moved = std::move(bytes);
  CHECK(moved.size() == 11 && bytes.empty());
  bytes = data.get("greeting");
  bytes = std::move(moved);
  CHECK(bytes.size() == 11 && moved.empty());

  data.create("new");
  THROWS(AlreadyExists, "new", data.create("new"));
  data.append_at("new", 0, "first");
  THROWS(Conflict, "", data.append_at("new", 0, "late"));
  data.compare_and_swap("new", 0, "first", "FIRST");
  THROWS(Conflict, "", data.compare_and_swap("new", 0, "first", "x"));
  CHECK(data.erase("new") && !data.erase("new"));
  THROWS(NotFound, "new", data.get("new"));

  const tyr::ReadRequest requests[] = {{data, "greeting", 1, 4}, {data, "gone", 0, 1}};
  std::vector<std::optional<tyr::Bytes>> found = store.read_many(requests);
  CHECK(found.size() == 2 && found[0]->text() == "ello" && !found[1]);
  CHECK(store.read_many({}).empty());

  std::vector<std::byte> large(std::size_t{3} << 20, std::byte{7});
  data.put("large", large);
  std::ranges::fill(large, std::byte{0});
  CHECK(data.read("large", 0, large).size() == large.size() && large.back() == std::byte{7});
  data.erase("large");
}

static void transactions(const tyr::Store &store, const tyr::Keyspace &data) {
  std::array<std::byte, 16> room;
  tyr::Transaction t = store.begin();
  t.put(data, "log", "12");
  tyr::Operation log = t.append(data, "log", "34");
  tyr::Operation count = t.apply(data, "count", 0, tyr::Transform::add(std::uint64_t{3}));
  tyr::Operation gone = t.erase(data, "never");
  CHECK(tyr::Slice(t.read(data, "log", 1, room)).text() == "234");
  CHECK(t.get(data, "log").str() == "1234");
  tyr::Committed committed = t.commit();
  CHECK(committed.offset(log) == 2 && committed.value(count).as<int>() == 3);
  CHECK(!committed.existed(gone) && committed.version() == data.stat("log").version);
  CHECK(committed.version() > tyr::Timestamp() && log == log && log != gone);
  THROWS(InvalidArgument, "an append", committed.offset(count));
  THROWS(InvalidArgument, "NULL", t.put(data, "log", "after the commit"));
  THROWS(InvalidArgument, "NULL", t.commit());

  t = store.begin();
  t.expect_present(data, "log");
  t.expect_absent(data, "never");
  t.expect_version(data, "log", committed.version());
  t.compare(data, "log", 0, "1");
  tyr::Operation condition =
      t.compare_number(data, "count", 0, tyr::Relation::Greater, std::uint64_t{3});
  t.create(data, "made");
  try {
    t.commit();
    CHECK(!"the condition does not hold");
  } catch (const tyr::Error &error) {
    CHECK(error.kind() == tyr::ErrorKind::Conflict && error.is_retryable() && !error.is_open());
    CHECK(error.operation() == condition);
    THROWS(InvalidArgument, "", store.outcome(error));
  }
  THROWS(NotFound, "made", data.stat("made"));

  data.put("log", "1234");
  t = store.begin();
  t.expect_version(data, "log", committed.version());
  THROWS(Conflict, "", t.commit());

  t = store.begin();
  t.write(data, "log", 0, "x");
  t.truncate(data, "log", 1);
  t.clear(data, "log", 0, 1);
  t.append_at(data, "log", 1, "y");
  CHECK(t.stat(data, "log").size == 2);
  tyr::Transaction other = std::move(t);
  other = store.begin();  // takes the first back
  CHECK(data.stat("log").size == 4);
  other.put(data, "log", "never");
  other.rollback();
  CHECK(data.get("log").str() == "1234");
}

/* What bodies of a transact throw comes out of it as it was, and takes everything back. */
struct Odd {
  int number;
};

static void bodies(const tyr::Store &store, const tyr::Keyspace &data) {
  int runs = 0;
  std::string answer = store.transact([&](tyr::Transaction &t) {
    runs++;
    std::string old = t.get(data, "log").str();
    if (runs < 3) data.put("log", old + "+");  // another is faster
    t.put(data, "copy", old);
    return old;
  });
  CHECK(runs == 3 && answer == "1234++" && data.get("copy").str() == answer);

  runs = 0;
  store.transact([&](tyr::Transaction &t) {
    t.put(data, "copy", "void");
    if (++runs < 2) throw tyr::Error(tyr::ErrorKind::Conflict, "again, please");
  });
  CHECK(runs == 2 && data.get("copy").str() == "void");

  runs = 0;
  try {
    store.transact([&](tyr::Transaction &t) {
      runs++;
      t.put(data, "copy", "broken");
      throw Odd{42};
    });
    CHECK(!"Odd comes out");
  } catch (const Odd &odd) {
    CHECK(odd.number == 42 && runs == 1);
  }
  CHECK(data.get("copy").str() == "void");

  runs = 0;
  THROWS(NotFound, "nowhere", store.transact([&](tyr::Transaction &t) {
    runs++;
    t.get(data, "nowhere");
  }));
  THROWS(Conflict, "never at rest", store.transact([&](tyr::Transaction &) {
    runs++;
    throw tyr::Error(tyr::ErrorKind::Conflict, "never at rest");
  }));
  CHECK(runs == 1 + 64);

  /* The transaction of a body is lent. */
  store.transact([&](tyr::Transaction &t) {
    THROWS(InvalidArgument, "lent", t.commit());
    THROWS(InvalidArgument, "lent", t.rollback());
    t.put(data, "copy", "lent");
  });
  CHECK(data.get("copy").str() == "lent");
  std::optional<tyr::Transaction> stolen;
  store.transact([&](tyr::Transaction &t) { stolen.emplace(std::move(t)); });
  THROWS(InvalidArgument, "freed", stolen->put(data, "copy", "stolen"));

  THROWS(InvalidArgument, "kind", throw tyr::Error(tyr::ErrorKind::Bug, "no"));
  tyr::Error own(tyr::ErrorKind::QuotaExceeded, "full");
  tyr::Error copy = own;
  own = tyr::Error(tyr::ErrorKind::Corrupt, "other");
  CHECK(copy.kind() == tyr::ErrorKind::QuotaExceeded && copy.what() == "full"sv);
  CHECK(copy.raw() != nullptr && !copy.operation());
}

static void moments(const tyr::Store &store, const tyr::Keyspace &data) {
  std::array<std::byte, 16> room;
  data.put("dir/a", "old");
  data.put("dir/b", "old");
  tyr::Snapshot snapshot = store.snapshot();
  data.put("dir/a", "newer");
  data.put("dir/c", "newer");
  CHECK(snapshot.get(data, "dir/a").str() == "old" && snapshot.version() > tyr::Timestamp());
  CHECK(tyr::Slice(snapshot.read(data, "dir/a", 1, room)).text() == "ld");
  CHECK(snapshot.stat(data, "dir/b").size == 3);
  THROWS(NotFound, "dir/c", snapshot.stat(data, "dir/c"));
  CHECK(snapshot.scan(data, {.prefix = "dir/"}).size() == 2 && snapshot.scan(data).size() > 2);
  tyr::Snapshot moved = std::move(snapshot);
  THROWS(InvalidArgument, "NULL", snapshot.version());
  snapshot = std::move(moved);

  std::vector<std::string> keys;
  tyr::Scan scan{.prefix = "dir/", .limit = 1, .first_bytes = 2};
  for (std::optional<std::string> from = ""; from;) {
    scan.from = *from;
    tyr::Page page = data.scan(scan);
    for (const tyr::Entry &entry : page.entries()) {
      keys.emplace_back(entry.key);
      CHECK(entry.bytes.size() == 2 && entry.stat.size >= 3);
    }
    from = page.resume();
  }
  CHECK((keys == std::vector<std::string>{"dir/a", "dir/b", "dir/c"}));
  tyr::Page page = data.scan({.prefix = "d", .delimiter = "/"});
  CHECK(page.entries().empty() && page.groups() == std::vector{"dir/"sv} && !page.resume());
  page = data.scan({.to = "dir/c", .after = "dir/a", .is_keys_only = true});
  CHECK(page.entries().size() == 1 && page.entries()[0].stat == tyr::Stat());
  THROWS(InvalidArgument, "limit", data.scan({.limit = 1'000'000}));

  THROWS(InvalidArgument, "", store.begin().scan(data, {.prefix = "dir/"}));
}

/* What a transaction lists is of one group, and with what it has written itself. */
static void groups(const tyr::Store &store, const std::string &name) {
  tyr::Keyspace groups = store.create_keyspace(name, {.placed_by = "up-to:/"});
  groups.put("dir/a", "1");
  tyr::Transaction t = store.begin();
  t.put(groups, "dir/b", "mine");
  CHECK(t.scan(groups, {.prefix = "dir/"}).size() == 2);
  t.commit();
  CHECK(groups.scan().size() == 2);
  store.drop_keyspace(name);
  THROWS(NotFound, name, store.keyspace(name));
}

/* Two threads move one unit at a time, by what they read. */
static void threads(const tyr::Store &store, const tyr::Keyspace &data) {
  constexpr int kMoves = 50;
  const auto number = [&](tyr::Transaction &t, const char *key) {
    std::int64_t there = 0;
    CHECK(t.read(data, key, 0, std::as_writable_bytes(std::span(&there, 1))).size() == 8);
    return there;
  };
  const auto set = [&](tyr::Transaction &t, const char *key, std::int64_t value) {
    t.put(data, key, std::as_bytes(std::span(&value, 1)));
  };
  store.transact([&](tyr::Transaction &t) {
    set(t, "left", 2 * kMoves);
    set(t, "right", 0);
  });
  const auto mover = [&] {
    for (int at = 0; at < kMoves; at++) {
      for (bool is_done = false; !is_done;) {
        try {
          store.transact([&](tyr::Transaction &t) {
            set(t, "left", number(t, "left") - 1);
            set(t, "right", number(t, "right") + 1);
          });
          is_done = true;
        } catch (const tyr::Error &error) {
          CHECK(error.kind() == tyr::ErrorKind::Conflict);
        }
      }
    }
  };
  std::thread one(mover), two(mover);
  one.join();
  two.join();
  store.transact([&](tyr::Transaction &t) {
    CHECK(number(t, "left") == 0 && number(t, "right") == 2 * kMoves);
  });
}

static void closed(tyr::Store store, const tyr::Keyspace &data) {
  tyr::Store moved = std::move(store);
  THROWS(InvalidArgument, "NULL", store.begin());
  THROWS(InvalidArgument, "NULL", store.sync());
  store = std::move(moved);
  tyr::Transaction t = store.begin();
  t.put(data, "a", "never");
  tyr::Snapshot snapshot = store.snapshot();
  store.close();
  store.close();  // nothing is left to close
  THROWS(InvalidArgument, "NULL", store.snapshot());
  THROWS(Unavailable, "", data.put("a", "1"));
  THROWS(Unavailable, "", snapshot.get(data, "greeting"));
  THROWS(Unavailable, "", t.get(data, "greeting"));
  THROWS(Unavailable, "", t.commit());
}

static void run(const std::string &place, const std::string &name) {
  const tyr::KeyspaceConfig config{.chunk_size = 1 << 20, .durability = tyr::Durability::Buffered};
  tyr::Store store = open_place(place);
  tyr::Keyspace data = store.create_keyspace(name, config);
  THROWS(AlreadyExists, name, store.create_keyspace(name, config));
  THROWS(AlreadyExists, "configuration",
         store.keyspace_or_create(name, {.durability = tyr::Durability::Memory}));
  THROWS(InvalidArgument, "moon", store.create_keyspace("x", {.placed_by = "moon"}));
  tyr::Keyspace again = store.keyspace_or_create(name, config);
  again = store.keyspace(name);
  tyr::Keyspace moved = std::move(again);
  THROWS(InvalidArgument, "NULL", again.get("a"));
  CHECK(std::ranges::count(store.keyspaces(), name) == 1);
  slices();
  numbers(data);
  blobs(store, data);
  transactions(store, data);
  bodies(store, data);
  moments(store, data);
  threads(store, data);
  store.sync();
  groups(store, name + "-2");
  closed(std::move(store), data);
  THROWS(InvalidArgument, "ann has no key", tyr::Store::connect("tyr://127.0.0.1:1",
                                                                {.user = "ann"}));
  THROWS(Unavailable, "/nowhere",
         tyr::Store::connect("tyr://127.0.0.1:1", {.user = "ann",
                                                   .key_file = "/nowhere",
                                                   .connect_timeout = std::chrono::milliseconds(50)}));
  if (!place.starts_with("tyr://")) {
    tyr::Store looked = tyr::Store::open(
        place, {.cache_bytes = 64 << 20, .is_read_only = true, .must_exist = true,
                .snapshot_timeout = std::chrono::minutes(1)});
    THROWS(PermissionDenied, "read-only", looked.keyspace(name).put("a", "1"));
    THROWS(NotFound, "", tyr::Store::open(place + "-none", {.must_exist = true}));
  }
}

int main(int count, char **words) {
  CHECK(count == 3);
  run(words[1], words[2]);
  CHECK(tyr_handles() == 0);
  return 0;
}
