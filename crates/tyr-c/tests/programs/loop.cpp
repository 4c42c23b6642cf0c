/* Coroutines of a tyr::Loop: every call, many under way, errors and exceptions, and coroutines that
 * are destroyed at every place where they wait. */
#include "check.hpp"

#include <atomic>

using namespace std::string_literals;
using namespace std::string_view_literals;

namespace {

struct Place {
  tyr::Store store;
  tyr::Keyspace data;
  tyr::Keyspace groups;  // in which transactions may list
};

/* Runs an awaitable that fails, and looks at the error. A macro of co_await, for a lambda of it
 * would be another coroutine. */
#define CO_THROWS(kind_wanted, word, ...)                                          \
  do {                                                                             \
    bool is_thrown = false;                                                        \
    try {                                                                          \
      (void)co_await __VA_ARGS__;                                                  \
    } catch (const tyr::Error &error) {                                            \
      is_thrown = true;                                                            \
      check_error(error, tyr::ErrorKind::kind_wanted, (word), __FILE__, __LINE__); \
    }                                                                              \
    if (!is_thrown) stop(__FILE__, __LINE__, "throws nothing: " #__VA_ARGS__);     \
  } while (0)

/* Counts the steps of a walk, for a coroutine that is to be destroyed at a certain one. */
struct Steps {
  int walk = next++;
  int done = 0;

  static inline std::atomic<int> next = 0;
};

/* Every call that a coroutine can await. Each is answered as the one that blocks is. */
#define STEP(...)     \
  do {                \
    __VA_ARGS__;      \
    steps.done++;     \
  } while (0)

tyr::Task<> every_call(const Place &place, Steps &steps) {
  const tyr::Keyspace &data = place.data;
  std::array<std::byte, 16> room;
  // Names of this walk alone: what another had under way when it was destroyed may happen yet.
  const std::string walk = std::to_string(steps.walk), dir = "dir" + walk + "/";
  const std::string log = "log" + walk, n = "n" + walk, key = dir + "a";

  STEP(co_await data.erase_async(log));
  STEP(co_await data.put_async(log, "12"s));
  STEP(CHECK(co_await data.append_async(log, "34") == 2));
  STEP(co_await data.append_at_async(log, 4, "5"));
  STEP(co_await data.write_async(log, 0, "x"));
  STEP(CHECK((co_await data.stat_async(log)).size == 5));
  STEP(CHECK((co_await data.get_async(log)).str() == "x2345"));
  const auto read = co_await data.read_async(log, 1, room);
  STEP(CHECK(tyr::Slice(read).text() == "2345"));
  STEP(co_await data.compare_and_swap_async(log, 0, "x2", "ab"));
  STEP(co_await data.clear_async(log, 0, 1));
  STEP(co_await data.truncate_async(log, 2));
  STEP(CHECK((co_await data.get_async(log)).str() == "\0b"sv));
  STEP(co_await data.erase_async(n));
  const auto number = co_await data.apply_async(n, 0, tyr::Transform::add(-4));
  STEP(CHECK(number.as<int>() == -4));
  CO_THROWS(AlreadyExists, n, data.create_async(n));
  steps.done++;
  const tyr::Scan scan{.prefix = log};
  const tyr::Page page = co_await data.scan_async(scan);
  STEP(CHECK(page.size() == 1 && page.entries()[0].key == log));

  const tyr::Snapshot snapshot = co_await place.store.snapshot_async();
  steps.done++;
  STEP(CHECK(co_await data.erase_async(log)));
  STEP(CHECK((co_await snapshot.get_async(data, log)).str() == "\0b"sv));
  STEP(CHECK((co_await snapshot.stat_async(data, log)).size == 2));
  STEP(CHECK((co_await snapshot.read_async(data, log, 1, room)).size() == 1));
  STEP(CHECK((co_await snapshot.scan_async(data, scan)).size() == 1));

  tyr::Transaction t = place.store.begin();
  t.put(place.groups, key, "1");
  const tyr::Operation appended = t.append(place.groups, key, "23");
  STEP(CHECK((co_await t.get_async(place.groups, key)).str() == "123"));
  STEP(CHECK((co_await t.stat_async(place.groups, key)).size == 3));
  STEP(CHECK((co_await t.read_async(place.groups, key, 2, room)).size() == 1));
  const tyr::Scan of_group{.prefix = dir};
  STEP(CHECK((co_await t.scan_async(place.groups, of_group)).size() == 1));
  const tyr::Committed committed = co_await t.commit_async();
  STEP(CHECK(committed.offset(appended) == 1));

  const std::string answer =
      co_await place.store.transact_async([&](tyr::Transaction &t) -> tyr::Task<std::string> {
        std::string old = (co_await t.get_async(place.groups, key)).str();
        steps.done++;
        t.put(place.groups, dir + "b", old);
        co_return old;
      });
  STEP(CHECK(answer == "123"));
}

tyr::Task<int> add(int one, int other) { co_return one + other; }

tyr::Task<int> sum(int count) {
  int sum = 0;
  for (int at = 0; at < count; at++) sum = co_await add(sum, 1);
  co_return sum;
}

struct Odd {
  int number;
};

tyr::Task<> throw_odd(const tyr::Keyspace &data) {
  co_await data.put_async("odd", "1");
  throw Odd{7};
}

tyr::Task<> tasks(tyr::Loop &loop, const Place &place) {
  CHECK(co_await sum(1000) == 1000 && loop.is_own_thread());
  try {
    co_await throw_odd(place.data);
    CHECK(!"it throws");
  } catch (const Odd &odd) {
    CHECK(odd.number == 7);
  }
  tyr::Task<int> task = add(1, 2);
  CHECK(co_await std::move(task) == 3);
  CO_THROWS(InvalidArgument, "before", std::move(task));
  tyr::Task<int> moved = add(1, 2);
  task = std::move(moved);
  CO_THROWS(InvalidArgument, "moved", std::move(moved));
  // What cannot be started is thrown where it is awaited.
  CO_THROWS(InvalidArgument, "1 to 1024", place.data.put_async("", "1"));
  CO_THROWS(NotFound, "nowhere", place.data.get_async("nowhere"));
  const tyr::Keyspace none(nullptr);
  CO_THROWS(InvalidArgument, "NULL", none.get_async("a"));

  // Beside each other.
  std::vector<tyr::Spawned<int>> spawned;
  for (int at = 0; at < 10; at++) spawned.push_back(loop.spawn(sum(at)));
  int all = 0;
  for (auto &one : spawned) all += co_await std::move(one);
  CHECK(all == 45);
  CO_THROWS(InvalidArgument, "given its answer", std::move(spawned[0]));
  try {
    co_await loop.spawn(throw_odd(place.data));
    CHECK(!"it throws");
  } catch (const Odd &odd) {
    CHECK(odd.number == 7);
  }
  tyr::Spawned<int> never = loop.spawn(sum(3));
  THROWS(InvalidArgument, "for ever", never.get());
}

/* While a call is under way that was started with a transaction, it is not to be used. */
tyr::Task<> one_at_a_time(tyr::Loop &loop, const Place &place) {
  tyr::Transaction t = place.store.begin();
  t.put(place.data, "mine", "1");
  // Both are begun in the same turn of the loop, the second before the first has its answer.
  const auto look = [](tyr::Transaction &t, const tyr::Keyspace &data) -> tyr::Task<int> {
    try {
      co_await t.stat_async(data, "greeting");
      co_return 1;
    } catch (const tyr::Error &error) {
      check_error(error, tyr::ErrorKind::InvalidArgument, "one at a time", __FILE__, __LINE__);
      co_return 0;
    }
  };
  tyr::Spawned<int> one = loop.spawn(look(t, place.data)), two = loop.spawn(look(t, place.data));
  const int good = co_await std::move(one) + co_await std::move(two);
  CHECK(good >= 1);
  co_await t.commit_async();
  CHECK((co_await place.data.get_async("mine")).str() == "1");
}

tyr::Task<> conflicts(const Place &place) {
  int runs = 0;
  const tyr::Keyspace &data = place.data;
  co_await data.put_async("left", "1");
  co_await place.store.transact_async([&](tyr::Transaction &t) -> tyr::Task<> {
    std::string old = (co_await t.get_async(data, "left")).str();
    if (++runs < 4) co_await data.put_async("left", old + "+");  // another is faster
    t.put(data, "right", old);
  });
  CHECK(runs == 4 && (co_await data.get_async("right")).str() == "1+++");
  runs = 0;
  CO_THROWS(Conflict, "never", place.store.transact_async([&](tyr::Transaction &) -> tyr::Task<> {
    runs++;
    throw tyr::Error(tyr::ErrorKind::Conflict, "never at rest");
    co_return;
  }));
  CHECK(runs == 64);
  try {
    co_await place.store.transact_async([&](tyr::Transaction &t) -> tyr::Task<> {
      t.put(data, "right", "broken");
      co_await data.stat_async("left");
      throw Odd{9};
    });
    CHECK(!"it throws");
  } catch (const Odd &odd) {
    CHECK(odd.number == 9);
  }
  CHECK((co_await data.get_async("right")).str() == "1+++");
}

tyr::Task<> append_many(const tyr::Keyspace &data, int count) {
  for (int at = 0; at < count; at++) co_await data.append_async("both", "12345678");
}

/* Hundreds of coroutines at the same time, spawned by two threads. */
void many(tyr::Loop &loop, const Place &place) {
  const auto spawn = [&] {
    std::vector<tyr::Spawned<>> all;
    for (int at = 0; at < 100; at++) all.push_back(loop.spawn(append_many(place.data, 3)));
    for (auto &one : all) one.get();
    THROWS(InvalidArgument, "given its answer", all[0].get());
  };
  std::thread one(spawn), two(spawn);
  one.join();
  two.join();
  CHECK(place.data.stat("both").size == 2 * 100 * 3 * 8);
}

/* A coroutine that is destroyed when so many of its calls are over, and the next is under way or
 * just over. */
void destroyed_at_every_await(const Place &place) {
  tyr::Loop loop;
  Steps all;
  loop.run(every_call(place, all));
  CHECK(all.done == 29);
  // From within: a coroutine that lets the other get so far, and destroys it in the loop's thread.
  const auto destroy = [](tyr::Loop &loop, const Place &place, int at) -> tyr::Task<> {
    Steps steps;
    tyr::Spawned<> walker = loop.spawn(every_call(place, steps));
    while (!walker.is_over() && steps.done < at) co_await tyr::Pause(std::chrono::microseconds(1));
    walker = loop.spawn([]() -> tyr::Task<> { co_return; }());
    co_await std::move(walker);
  };
  for (int at = 0; at <= all.done; at++) {
    for (int again = 0; again < 2; again++) loop.run(destroy(loop, place, at));
  }
  // From without: by a thread that has it, after any time.
  for (int at = 0; at < 50; at++) {
    Steps steps;
    tyr::Spawned<> walker = loop.spawn(every_call(place, steps));
    for (int turn = 0; turn < at * at; turn++) std::atomic_signal_fence(std::memory_order_seq_cst);
  }
  Steps last;
  loop.run(every_call(place, last));
}

/* A read into memory that is gone when the coroutine is: only an answer that is waited for is in
 * time. The sanitizer for addresses looks. */
tyr::Task<> read_much(const tyr::Keyspace &data) {
  std::vector<std::byte> room(std::size_t{1} << 20);
  for (;;) {
    co_await data.read_async("large", 0, room);
    co_await data.put_async("large", room);
  }
}

void loop_that_ends_first(const Place &place) {
  place.data.put("large", std::vector<std::byte>(std::size_t{1} << 20));
  std::optional<tyr::Loop> loop(std::in_place);
  std::vector<tyr::Spawned<>> left;
  for (int at = 0; at < 4; at++) left.push_back(loop->spawn(read_much(place.data)));
  loop->spawn(read_much(place.data)).detach();
  // One that waits for another, and one that spawns when it is destroyed.
  left.push_back(loop->spawn([](tyr::Spawned<> other) -> tyr::Task<> {
    co_await std::move(other);
  }(loop->spawn(read_much(place.data)))));
  struct Late {
    tyr::Loop &loop;
    const Place &place;
    ~Late() { loop.spawn(read_much(place.data)).detach(); }
  };
  left.push_back(loop->spawn([](tyr::Loop &loop, const Place &place) -> tyr::Task<> {
    Late late{loop, place};
    co_await tyr::Pause(std::chrono::hours(1));
  }(*loop, place)));
  loop->run(sum(10));
  loop.reset();
  for (auto &one : left) {
    CHECK(one.is_over());
    THROWS(Cancelled, "destroyed", one.get());
  }
}

/* Pauses end in their order, and a coroutine that rests keeps nobody from anything. */
tyr::Task<> rest(std::vector<int> &order, int number, int ms) {
  co_await tyr::Pause(std::chrono::milliseconds(ms));
  order.push_back(number);
}

tyr::Task<> pauses(tyr::Loop &loop) {
  std::vector<int> order;
  co_await tyr::Pause(std::chrono::microseconds(0));
  tyr::Spawned<> long_one = loop.spawn(rest(order, 2, 5));
  tyr::Spawned<> never = loop.spawn(rest(order, 3, 3'600'000));
  tyr::Spawned<> short_one = loop.spawn(rest(order, 1, 1));
  CHECK(co_await sum(3) == 3);
  co_await std::move(long_one);
  co_await std::move(short_one);
  CHECK((order == std::vector{1, 2}));
}

}  // namespace

int main(int count, char **words) {
  CHECK(count == 3);
  {
    const std::string name = words[2];
    tyr::Store store = open_place(words[1]);
    const tyr::KeyspaceConfig buffered{.durability = tyr::Durability::Buffered};
    tyr::Keyspace data = store.create_keyspace(name, buffered);
    tyr::Keyspace groups = store.create_keyspace(
        name + "-groups", {.durability = tyr::Durability::Buffered, .placed_by = "up-to:/"});
    Place place{std::move(store), std::move(data), std::move(groups)};
    place.data.put("greeting", "hello");
    {
      tyr::Loop loop;
      Steps steps;
      loop.run(every_call(place, steps));
      loop.run(tasks(loop, place));
      loop.run(one_at_a_time(loop, place));
      loop.run(conflicts(place));
      loop.run(pauses(loop));
      many(loop, place);
    }
    destroyed_at_every_await(place);
    loop_that_ends_first(place);
    {
      tyr::Loop loop;
      Steps steps;
      place.store.close();
      THROWS(Unavailable, "", loop.run(every_call(place, steps)));
    }
  }
  CHECK(tyr_handles() == 0);
  return 0;
}
