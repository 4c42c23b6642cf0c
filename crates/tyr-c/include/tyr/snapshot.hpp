/* Everything as it was at one moment. Begin with tyr.hpp. */
#ifndef TYR_SNAPSHOT_HPP
#define TYR_SNAPSHOT_HPP

#include "keyspace.hpp"

namespace tyr {

/* Let go of it soon: what it needs is kept for it, for 5 minutes unless set. */
class Snapshot {
 public:
  explicit Snapshot(tyr_snapshot *raw) noexcept : handle_(raw) {}

  tyr_snapshot *raw() const noexcept { return handle_.get(); }

  /* The moment that it shows. */
  Timestamp version() const {
    tyr_timestamp version{};
    detail::check(tyr_snapshot_version(raw(), &version));
    return Timestamp(version);
  }

  /* As Keyspace has them, at the snapshot's moment. */

  std::span<std::byte> read(const Keyspace &keyspace, Slice key, std::uint64_t offset,
                            std::span<std::byte> out) const {
    std::size_t got = 0;
    detail::check(tyr_snapshot_read(raw(), keyspace.raw(), key.raw(), offset, out.data(),
                                    out.size(), &got));
    return out.first(got);
  }

  Bytes get(const Keyspace &keyspace, Slice key) const {
    tyr_bytes *bytes = nullptr;
    detail::check(tyr_snapshot_get(raw(), keyspace.raw(), key.raw(), &bytes));
    return Bytes(bytes);
  }

  Stat stat(const Keyspace &keyspace, Slice key) const {
    tyr_stat stat{};
    detail::check(tyr_snapshot_stat(raw(), keyspace.raw(), key.raw(), &stat));
    return detail::stat_of(stat);
  }

  Page scan(const Keyspace &keyspace, const Scan &scan = {}) const {
    tyr_page *page = nullptr;
    tyr_scan raw_scan = detail::raw_of(scan);
    detail::check(tyr_snapshot_scan(raw(), keyspace.raw(), &raw_scan, &page));
    return Page(page);
  }

  auto read_async(const Keyspace &keyspace, Slice key, std::uint64_t offset,
                  std::span<std::byte> out) const {
    return detail::call(
        [snapshot = raw(), space = keyspace.raw(), key, offset, out](tyr_queue *queue,
                                                                     std::uint64_t tag) {
          return tyr_snapshot_read_start(snapshot, space, key.raw(), offset, out.data(),
                                         out.size(), queue, tag);
        },
        detail::span_answer(out));
  }

  auto get_async(const Keyspace &keyspace, Slice key) const {
    return detail::call(
        [snapshot = raw(), space = keyspace.raw(), key](tyr_queue *queue, std::uint64_t tag) {
          return tyr_snapshot_get_start(snapshot, space, key.raw(), queue, tag);
        },
        detail::bytes_answer);
  }

  auto stat_async(const Keyspace &keyspace, Slice key) const {
    return detail::call(
        [snapshot = raw(), space = keyspace.raw(), key](tyr_queue *queue, std::uint64_t tag) {
          return tyr_snapshot_stat_start(snapshot, space, key.raw(), queue, tag);
        },
        detail::stat_answer);
  }

  auto scan_async(const Keyspace &keyspace, const Scan &scan) const {
    return detail::call(
        [snapshot = raw(), space = keyspace.raw(), raw_scan = detail::raw_of(scan)](
            tyr_queue *queue, std::uint64_t tag) {
          return tyr_snapshot_scan_start(snapshot, space, &raw_scan, queue, tag);
        },
        detail::page_answer);
  }

 private:
  detail::Handle<tyr_snapshot, tyr_snapshot_free> handle_;
};

}  // namespace tyr

#endif
