/* The five lines of docs/guide/cpp.md, as a program: `weather FOLDER`. */
#include <cstdio>

#include "tyr.hpp"

int main(int argc, char **argv) try {
  tyr::Store store = tyr::Store::open(argc > 1 ? argv[1] : "weather");
  tyr::Keyspace oslo = store.keyspace_or_create("oslo");
  store.transact([&](tyr::Transaction &t) {
    t.append(oslo, "temperature", "-3.5\n");
    t.apply(oslo, "count", 0, tyr::Transform::add(std::uint64_t{1}));
  });
  std::printf("%s", store.snapshot().get(oslo, "temperature").str().c_str());

  tyr::Loop loop;
  loop.run([](const tyr::Store &store, const tyr::Keyspace &oslo) -> tyr::Task<> {
    co_await store.transact_async([&](tyr::Transaction &t) -> tyr::Task<> {
      tyr::Bytes old = co_await t.get_async(oslo, "temperature");
      t.append(oslo, "archive", old);
      t.erase(oslo, "temperature");
    });
  }(store, oslo));
  return oslo.get("archive").empty() ? 1 : 0;
} catch (const tyr::Error &error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
