/* Single operations on blobs, each of which takes effect at once. Begin with tyr.hpp. */
#ifndef TYR_KEYSPACE_HPP
#define TYR_KEYSPACE_HPP

#include "listing.hpp"

namespace tyr {

class Keyspace {
 public:
  explicit Keyspace(tyr_keyspace *raw) noexcept : handle_(raw) {}

  tyr_keyspace *raw() const noexcept { return handle_.get(); }

  /* Makes an empty blob; AlreadyExists if there is one. */
  void create(Slice key) const { detail::check(tyr_create(raw(), key.raw())); }

  /* Makes a blob's content `data` and nothing else. */
  void put(Slice key, Slice data) const {
    detail::check(tyr_put(raw(), key.raw(), data.raw()));
  }

  /* Writes at an offset; makes the blob if there is none; a gap reads as zeros. */
  void write(Slice key, std::uint64_t offset, Slice data) const {
    detail::check(tyr_write(raw(), key.raw(), offset, data.raw()));
  }

  /* Appends; makes the blob if there is none. Answers the offset. */
  std::uint64_t append(Slice key, Slice data) const {
    std::uint64_t offset = 0;
    detail::check(tyr_append(raw(), key.raw(), data.raw(), &offset));
    return offset;
  }

  /* Appends if the blob ends at `expected`, 0 for an absent one; else Conflict. */
  void append_at(Slice key, std::uint64_t expected, Slice data) const {
    detail::check(tyr_append_at(raw(), key.raw(), expected, data.raw()));
  }

  /* Cuts a blob to a length, or extends it with zeros; makes it if there is none. */
  void truncate(Slice key, std::uint64_t length) const {
    detail::check(tyr_truncate(raw(), key.raw(), length));
  }

  /* Makes a hole: its bytes read as zeros and take no space. */
  void clear(Slice key, std::uint64_t offset, std::uint64_t length) const {
    detail::check(tyr_clear(raw(), key.raw(), offset, length));
  }

  /* Removes a blob; answers whether there was one. */
  bool erase(Slice key) const {
    bool existed = false;
    detail::check(tyr_delete(raw(), key.raw(), &existed));
    return existed;
  }

  /* Does arithmetic in place; answers the new value. */
  Number apply(Slice key, std::uint64_t offset, Transform transform) const {
    tyr_number value{};
    detail::check(
        tyr_apply(raw(), key.raw(), offset, transform.kind, transform.operand.raw(), &value));
    return Number(value);
  }

  /* Replaces `expected` by `data`, if exactly that is there; else Conflict. */
  void compare_and_swap(Slice key, std::uint64_t offset, Slice expected, Slice data) const {
    detail::check(
        tyr_compare_and_swap(raw(), key.raw(), offset, expected.raw(), data.raw()));
  }

  /* A blob's size and version; NotFound if there is none. */
  Stat stat(Slice key) const {
    tyr_stat stat{};
    detail::check(tyr_stat_blob(raw(), key.raw(), &stat));
    return detail::stat_of(stat);
  }

  /* Reads into memory of the program; answers what of it was filled: less where the blob ends. */
  std::span<std::byte> read(Slice key, std::uint64_t offset, std::span<std::byte> out) const {
    std::size_t got = 0;
    detail::check(tyr_read(raw(), key.raw(), offset, out.data(), out.size(), &got));
    return out.first(got);
  }

  /* Reads a whole blob of up to 64 MiB without a copy. */
  Bytes get(Slice key) const {
    tyr_bytes *bytes = nullptr;
    detail::check(tyr_get(raw(), key.raw(), &bytes));
    return Bytes(bytes);
  }

  /* Lists a page, all of one moment. */
  Page scan(const Scan &scan = {}) const {
    tyr_page *page = nullptr;
    tyr_scan raw_scan = detail::raw_of(scan);
    detail::check(tyr_scan_page(raw(), &raw_scan, &page));
    return Page(page);
  }

  auto create_async(Slice key) const {
    return detail::call(
        [raw = raw(), key](tyr_queue *queue, std::uint64_t tag) {
          return tyr_create_start(raw, key.raw(), queue, tag);
        },
        detail::no_answer);
  }

  auto put_async(Slice key, Slice data) const {
    return detail::call(
        [raw = raw(), key, data](tyr_queue *queue, std::uint64_t tag) {
          return tyr_put_start(raw, key.raw(), data.raw(), queue, tag);
        },
        detail::no_answer);
  }

  auto write_async(Slice key, std::uint64_t offset, Slice data) const {
    return detail::call(
        [raw = raw(), key, offset, data](tyr_queue *queue, std::uint64_t tag) {
          return tyr_write_start(raw, key.raw(), offset, data.raw(), queue, tag);
        },
        detail::no_answer);
  }

  auto append_async(Slice key, Slice data) const {
    return detail::call(
        [raw = raw(), key, data](tyr_queue *queue, std::uint64_t tag) {
          return tyr_append_start(raw, key.raw(), data.raw(), queue, tag);
        },
        detail::value_answer);
  }

  auto append_at_async(Slice key, std::uint64_t expected, Slice data) const {
    return detail::call(
        [raw = raw(), key, expected, data](tyr_queue *queue, std::uint64_t tag) {
          return tyr_append_at_start(raw, key.raw(), expected, data.raw(), queue, tag);
        },
        detail::no_answer);
  }

  auto truncate_async(Slice key, std::uint64_t length) const {
    return detail::call(
        [raw = raw(), key, length](tyr_queue *queue, std::uint64_t tag) {
          return tyr_truncate_start(raw, key.raw(), length, queue, tag);
        },
        detail::no_answer);
  }

  auto clear_async(Slice key, std::uint64_t offset, std::uint64_t length) const {
    return detail::call(
        [raw = raw(), key, offset, length](tyr_queue *queue, std::uint64_t tag) {
          return tyr_clear_start(raw, key.raw(), offset, length, queue, tag);
        },
        detail::no_answer);
  }

  auto erase_async(Slice key) const {
    return detail::call(
        [raw = raw(), key](tyr_queue *queue, std::uint64_t tag) {
          return tyr_delete_start(raw, key.raw(), queue, tag);
        },
        [](tyr_done &done) { return done.value != 0; });
  }

  auto apply_async(Slice key, std::uint64_t offset, Transform transform) const {
    return detail::call(
        [raw = raw(), key, offset, transform](tyr_queue *queue, std::uint64_t tag) {
          return tyr_apply_start(raw, key.raw(), offset, transform.kind, transform.operand.raw(),
                                 queue, tag);
        },
        [](tyr_done &done) { return Number(done.number); });
  }

  auto compare_and_swap_async(Slice key, std::uint64_t offset, Slice expected, Slice data) const {
    return detail::call(
        [raw = raw(), key, offset, expected, data](tyr_queue *queue, std::uint64_t tag) {
          return tyr_compare_and_swap_start(raw, key.raw(), offset, expected.raw(), data.raw(),
                                            queue, tag);
        },
        detail::no_answer);
  }

  auto stat_async(Slice key) const {
    return detail::call(
        [raw = raw(), key](tyr_queue *queue, std::uint64_t tag) {
          return tyr_stat_start(raw, key.raw(), queue, tag);
        },
        detail::stat_answer);
  }

  /* `out` is lent until the coroutine goes on, or is destroyed. */
  auto read_async(Slice key, std::uint64_t offset, std::span<std::byte> out) const {
    return detail::call(
        [raw = raw(), key, offset, out](tyr_queue *queue, std::uint64_t tag) {
          return tyr_read_start(raw, key.raw(), offset, out.data(), out.size(), queue, tag);
        },
        detail::span_answer(out));
  }

  auto get_async(Slice key) const {
    return detail::call(
        [raw = raw(), key](tyr_queue *queue, std::uint64_t tag) {
          return tyr_get_start(raw, key.raw(), queue, tag);
        },
        detail::bytes_answer);
  }

  /* The scan is lent until the call is awaited. */
  auto scan_async(const Scan &scan) const {
    return detail::call(
        [raw = raw(), raw_scan = detail::raw_of(scan)](tyr_queue *queue, std::uint64_t tag) {
          return tyr_scan_start(raw, &raw_scan, queue, tag);
        },
        detail::page_answer);
  }

 private:
  detail::Handle<tyr_keyspace, tyr_keyspace_free> handle_;
};

}  // namespace tyr

#endif
