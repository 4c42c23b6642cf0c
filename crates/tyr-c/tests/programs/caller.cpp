/* What caller.c does, through tyr.hpp: coroutines of a loop instead of a queue, and some that are
 * destroyed instead of calls that are cancelled. */
#include <iostream>

#include "check.hpp"

namespace {

// As in caller.c.
constexpr std::size_t kBlobs = 1000, kRead = 800, kOperations = 6, kUnderWay = 32;
constexpr std::size_t kKeys = 256, kPayloadMax = 4096, kLogMax = 64 << 10;

struct World {
  tyr::Store store;
  tyr::Keyspace memory;
  tyr::Keyspace buffered;
  std::uint64_t random;
  std::vector<std::string> keys, others;
  std::vector<std::byte> large;

  std::uint64_t next(std::uint64_t below) {
    random ^= random << 13;
    random ^= random >> 7;
    random ^= random << 17;
    return (random >> 11) % below;
  }
  const std::string &any_key() { return keys[next(kKeys)]; }
  tyr::Slice payload() { return std::span(large).first(next(kPayloadMax)); }
};

void prepare(World &world) {
  const std::vector<std::byte> blob(4096, std::byte{7});
  for (std::size_t at = 0; at < kBlobs; at++) {
    world.keys.push_back("key " + std::to_string(at));
    world.others.push_back("other " + std::to_string(at));
    world.memory.put(world.keys[at], blob);
  }
  world.large.resize(std::size_t{4} << 20);
  world.memory.put("large", world.large);
}

void read(World &world, std::size_t count) {
  std::array<std::byte, kRead> out;
  for (std::size_t at = 0; at < count; at++) {
    CHECK(world.memory.read(world.keys[at % kBlobs], 1024, out).size() == kRead);
  }
}

void put(World &world, std::size_t count) {
  const std::array<std::byte, 100> data{};
  for (std::size_t at = 0; at < count; at++) world.memory.put(world.others[at % kBlobs], data);
}

void transaction(World &world, std::size_t count) {
  const std::array<std::byte, 100> data{};
  for (std::size_t at = 0; at < count; at++) {
    tyr::Transaction t = world.store.begin();
    for (std::size_t place = 0; place < kOperations; place++) {
      t.put(world.memory, world.others[(at + place) % kBlobs], data);
    }
    t.commit();
  }
}

tyr::Task<> read_some(World &world, std::size_t count) {
  std::array<std::byte, kRead> out;
  for (std::size_t at = 0; at < count; at++) {
    const auto read = co_await world.memory.read_async(world.keys[at % kBlobs], 1024, out);
    CHECK(read.size() == kRead);
  }
}

void async(World &world, std::size_t count) {
  tyr::Loop loop;
  std::vector<tyr::Spawned<>> all;
  for (std::size_t at = 0; at < kUnderWay; at++) {
    all.push_back(loop.spawn(read_some(world, (count + at) / kUnderWay)));
  }
  for (auto &one : all) one.get();
}

void large(World &world, std::size_t count) {
  for (std::size_t at = 0; at < count; at++) {
    CHECK(world.memory.read("large", 0, world.large).size() == world.large.size());
  }
}

/* Whether it is good; if not, it is of this kind. */
template <class Call>
bool is_good(tyr::ErrorKind kind, Call call) {
  try {
    call();
    return true;
  } catch (const tyr::Error &error) {
    check_error(error, kind, "", __FILE__, __LINE__);
    return false;
  }
}

void wait_for_one(World &world) {
  using enum tyr::ErrorKind;
  std::array<std::byte, kRead> out;
  const tyr::Keyspace &data = world.buffered;
  const std::string &key = world.any_key();
  switch (world.next(9)) {
    case 0: is_good(NotFound, [&] { data.read(key, world.next(2000), out); }); break;
    case 1: is_good(NotFound, [&] { CHECK(data.get(key).size() < kPayloadMax); }); break;
    case 2: data.put(key, world.payload()); break;
    case 3: data.erase(key); break;
    case 4:
      if (data.append("log", world.payload()) > kLogMax) data.truncate("log", 0);
      break;
    case 5: data.apply("n", 0, tyr::Transform::add(std::uint64_t{1})); break;
    case 6: data.scan({.limit = 20}); break;
    case 7: is_good(NotFound, [&] { world.store.snapshot().stat(data, key); }); break;
    default:
      world.store.transact([&](tyr::Transaction &t) {
        is_good(NotFound, [&] { t.get(data, key); });
        t.put(data, world.any_key(), world.payload());
      });
  }
}

/* Calls for ever, until it is destroyed or has had enough. It has a generator of its own, for it
 * runs in the loop's thread. */
tyr::Task<> walk(World &world, std::uint64_t random, std::size_t count) {
  std::vector<std::byte> room(kPayloadMax);
  const tyr::Keyspace &data = world.buffered;
  for (std::size_t made = 0; made < count; made++) {
    random = random * 6364136223846793005 + 1442695040888963407;
    const std::string key = world.keys[(random >> 33) % kKeys];
    const std::span<std::byte> some = std::span(room).first((random >> 20) % kPayloadMax);
    try {
      switch ((random >> 45) % 8) {
        case 0: co_await data.read_async(key, 0, some); break;
        case 1: co_await data.get_async(key); break;
        case 2:
        case 3: co_await data.put_async(key, some); break;
        case 4: co_await data.erase_async(key); break;
        case 5: co_await data.apply_async("n", 0, tyr::Transform::add(std::uint64_t{1})); break;
        case 6: {
          const tyr::Snapshot snapshot = co_await world.store.snapshot_async();
          co_await snapshot.get_async(data, key);
          break;
        }
        default:
          co_await world.store.transact_async([&](tyr::Transaction &t) -> tyr::Task<> {
            t.put(data, key, some);
            co_await t.stat_async(data, key);
          });
      }
    } catch (const tyr::Error &error) {
      check_error(error, tyr::ErrorKind::NotFound, "", __FILE__, __LINE__);
    }
  }
}

void mix(World &world, std::size_t count) {
  tyr::Loop loop;
  for (std::size_t made = 0; made < count;) {
    std::vector<tyr::Spawned<>> walks;
    for (std::size_t at = 0; at < 8; at++) {
      const std::size_t steps = 1 + world.next(16);
      walks.push_back(loop.spawn(walk(world, world.random + at, steps)));
      made += steps;
    }
    for (int beside = 0; beside < 64; beside++, made++) wait_for_one(world);
    for (auto &one : walks) {
      // The others are destroyed with the vector, wherever they are.
      if (world.next(4) != 0) one.get();
    }
  }
}

void obey(World &world, const std::string &kind, std::size_t count) {
  constexpr std::pair<const char *, void (*)(World &, std::size_t)> kKinds[] = {
      {"read", read},   {"put", put},     {"transaction", transaction},
      {"async", async}, {"large", large}, {"mix", mix},
  };
  for (const auto &[name, run] : kKinds) {
    if (kind != name) continue;
    run(world, count);
    std::cout << "done" << std::endl;
    return;
  }
  stop(__FILE__, __LINE__, "there are no calls of the kind " + kind);
}

}  // namespace

int main(int count, char **words) {
  CHECK(count == 4);
  {
    tyr::Store store = tyr::Store::open(words[1], {.cache_bytes = std::stoull(words[2]) << 20});
    tyr::Keyspace memory = store.create_keyspace("memory", {.durability = tyr::Durability::Memory});
    tyr::Keyspace buffered =
        store.create_keyspace("buffered", {.durability = tyr::Durability::Buffered});
    World world{std::move(store), std::move(memory), std::move(buffered),
                std::stoull(words[3]) | 1, {}, {}, {}};
    prepare(world);
    std::cout << "ready" << std::endl;
    std::string kind;
    for (std::size_t calls = 0; std::cin >> kind >> calls;) obey(world, kind, calls);
    world.store.close();
  }
  CHECK(tyr_handles() == 0);
  return 0;
}
