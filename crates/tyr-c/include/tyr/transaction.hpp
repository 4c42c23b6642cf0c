/* Operations on any blobs that take effect together or not at all. Begin with tyr.hpp. */
#ifndef TYR_TRANSACTION_HPP
#define TYR_TRANSACTION_HPP

#include "keyspace.hpp"

namespace tyr {

/* What a committed transaction answers, operation by operation. */
class Committed {
 public:
  explicit Committed(tyr_committed *raw) noexcept : handle_(raw) {}

  /* The version of everything that the transaction wrote. */
  Timestamp version() const {
    tyr_timestamp version{};
    detail::check(tyr_committed_version(handle_.get(), &version));
    return Timestamp(version);
  }

  /* The offset that an append got. */
  std::uint64_t offset(Operation operation) const {
    std::uint64_t offset = 0;
    detail::check(tyr_committed_offset(handle_.get(), operation.number, &offset));
    return offset;
  }

  /* The new value after arithmetic in place. */
  Number value(Operation operation) const {
    tyr_number value{};
    detail::check(tyr_committed_value(handle_.get(), operation.number, &value));
    return Number(value);
  }

  /* Whether there was a blob to erase. */
  bool existed(Operation operation) const {
    bool existed = false;
    detail::check(tyr_committed_existed(handle_.get(), operation.number, &existed));
    return existed;
  }

 private:
  detail::Handle<tyr_committed, tyr_committed_free> handle_;
};

/* Its destruction takes everything back, unless it was committed. One thread at a time. */
class Transaction {
 public:
  explicit Transaction(tyr_txn *raw) noexcept : handle_(raw) {}
  Transaction(Transaction &&other) noexcept = default;
  Transaction &operator=(Transaction &&other) noexcept {
    if (this != &other) {
      drop();
      handle_ = std::move(other.handle_);
      is_lent_ = std::exchange(other.is_lent_, false);
    }
    return *this;
  }
  Transaction(const Transaction &) = delete;
  Transaction &operator=(const Transaction &) = delete;
  ~Transaction() { drop(); }

  tyr_txn *raw() const noexcept { return handle_.get(); }

  /* What follows is gathered, and takes effect with the commit. */

  /* Makes an empty blob; the commit fails with AlreadyExists if there is one. */
  Operation create(const Keyspace &keyspace, Slice key) {
    return gather([&](auto *to) { return tyr_txn_create(raw(), keyspace.raw(), key.raw(), to); });
  }

  /* Makes a blob's content `data` and nothing else. */
  Operation put(const Keyspace &keyspace, Slice key, Slice data) {
    return gather([&](auto *to) {
      return tyr_txn_put(raw(), keyspace.raw(), key.raw(), data.raw(), to);
    });
  }

  /* Writes at an offset. */
  Operation write(const Keyspace &keyspace, Slice key, std::uint64_t offset, Slice data) {
    return gather([&](auto *to) {
      return tyr_txn_write(raw(), keyspace.raw(), key.raw(), offset, data.raw(), to);
    });
  }

  /* Appends; Committed::offset tells where. */
  Operation append(const Keyspace &keyspace, Slice key, Slice data) {
    return gather([&](auto *to) {
      return tyr_txn_append(raw(), keyspace.raw(), key.raw(), data.raw(), to);
    });
  }

  /* Appends if the blob ends at `expected` then; else the commit fails with Conflict. */
  Operation append_at(const Keyspace &keyspace, Slice key, std::uint64_t expected, Slice data) {
    return gather([&](auto *to) {
      return tyr_txn_append_at(raw(), keyspace.raw(), key.raw(), expected, data.raw(), to);
    });
  }

  /* Cuts a blob to a length, or extends it with zeros. */
  Operation truncate(const Keyspace &keyspace, Slice key, std::uint64_t length) {
    return gather([&](auto *to) {
      return tyr_txn_truncate(raw(), keyspace.raw(), key.raw(), length, to);
    });
  }

  /* Makes a hole. */
  Operation clear(const Keyspace &keyspace, Slice key, std::uint64_t offset,
                  std::uint64_t length) {
    return gather([&](auto *to) {
      return tyr_txn_clear(raw(), keyspace.raw(), key.raw(), offset, length, to);
    });
  }

  /* Removes a blob; Committed::existed tells whether there was one. */
  Operation erase(const Keyspace &keyspace, Slice key) {
    return gather([&](auto *to) { return tyr_txn_delete(raw(), keyspace.raw(), key.raw(), to); });
  }

  /* Does arithmetic in place; Committed::value tells the new value. */
  Operation apply(const Keyspace &keyspace, Slice key, std::uint64_t offset,
                  Transform transform) {
    return gather([&](auto *to) {
      return tyr_txn_apply(raw(), keyspace.raw(), key.raw(), offset, transform.kind,
                           transform.operand.raw(), to);
    });
  }

  /* Conditions: the commit fails with Conflict where one does not hold, or as it says. */

  /* Exactly these bytes are there. */
  Operation compare(const Keyspace &keyspace, Slice key, std::uint64_t offset, Slice expected) {
    return gather([&](auto *to) {
      return tyr_txn_compare(raw(), keyspace.raw(), key.raw(), offset, expected.raw(), to);
    });
  }

  /* The number there stands so to `value`; one that was never written is zero. */
  Operation compare_number(const Keyspace &keyspace, Slice key, std::uint64_t offset,
                           Relation relation, Number value) {
    return gather([&](auto *to) {
      return tyr_txn_compare_number(raw(), keyspace.raw(), key.raw(), offset,
                                    static_cast<std::int32_t>(relation), value.raw(), to);
    });
  }

  /* There is no blob; else AlreadyExists. */
  Operation expect_absent(const Keyspace &keyspace, Slice key) {
    return gather(
        [&](auto *to) { return tyr_txn_expect_absent(raw(), keyspace.raw(), key.raw(), to); });
  }

  /* There is a blob; else NotFound. */
  Operation expect_present(const Keyspace &keyspace, Slice key) {
    return gather(
        [&](auto *to) { return tyr_txn_expect_present(raw(), keyspace.raw(), key.raw(), to); });
  }

  /* The blob was not written after `version`, which Stat::version or a commit told. */
  void expect_version(const Keyspace &keyspace, Slice key, Timestamp version) {
    detail::check(tyr_txn_expect_version(raw(), keyspace.raw(), key.raw(), version.raw()));
  }

  /* Reads: at one version, with this transaction's own writes; the commit validates them. */

  std::span<std::byte> read(const Keyspace &keyspace, Slice key, std::uint64_t offset,
                            std::span<std::byte> out) {
    std::size_t got = 0;
    detail::check(tyr_txn_read(raw(), keyspace.raw(), key.raw(), offset, out.data(), out.size(),
                               &got));
    return out.first(got);
  }

  Bytes get(const Keyspace &keyspace, Slice key) {
    tyr_bytes *bytes = nullptr;
    detail::check(tyr_txn_get(raw(), keyspace.raw(), key.raw(), &bytes));
    return Bytes(bytes);
  }

  Stat stat(const Keyspace &keyspace, Slice key) {
    tyr_stat stat{};
    detail::check(tyr_txn_stat(raw(), keyspace.raw(), key.raw(), &stat));
    return detail::stat_of(stat);
  }

  /* Lists a page of the keys of one group. */
  Page scan(const Keyspace &keyspace, const Scan &scan) {
    tyr_page *page = nullptr;
    tyr_scan raw_scan = detail::raw_of(scan);
    detail::check(tyr_txn_scan(raw(), keyspace.raw(), &raw_scan, &page));
    return Page(page);
  }

  /* While one of these is under way, every other call of the transaction is refused. */

  auto read_async(const Keyspace &keyspace, Slice key, std::uint64_t offset,
                  std::span<std::byte> out) {
    return detail::call(
        [txn = raw(), space = keyspace.raw(), key, offset, out](tyr_queue *queue,
                                                                std::uint64_t tag) {
          return tyr_txn_read_start(txn, space, key.raw(), offset, out.data(), out.size(), queue,
                                    tag);
        },
        detail::span_answer(out));
  }

  auto get_async(const Keyspace &keyspace, Slice key) {
    return detail::call(
        [txn = raw(), space = keyspace.raw(), key](tyr_queue *queue, std::uint64_t tag) {
          return tyr_txn_get_start(txn, space, key.raw(), queue, tag);
        },
        detail::bytes_answer);
  }

  auto stat_async(const Keyspace &keyspace, Slice key) {
    return detail::call(
        [txn = raw(), space = keyspace.raw(), key](tyr_queue *queue, std::uint64_t tag) {
          return tyr_txn_stat_start(txn, space, key.raw(), queue, tag);
        },
        detail::stat_answer);
  }

  auto scan_async(const Keyspace &keyspace, const Scan &scan) {
    return detail::call(
        [txn = raw(), space = keyspace.raw(), raw_scan = detail::raw_of(scan)](
            tyr_queue *queue, std::uint64_t tag) {
          return tyr_txn_scan_start(txn, space, &raw_scan, queue, tag);
        },
        detail::page_answer);
  }

  /* Commits: everything takes effect, at once, or nothing. Nothing is left to do with this then. */
  Committed commit() {
    tyr_committed *committed = nullptr;
    detail::check(tyr_commit(end(), &committed));
    return Committed(committed);
  }

  auto commit_async() {
    return detail::call(
        [this](tyr_queue *queue, std::uint64_t tag) {
          return tyr_commit_start(end(), queue, tag);
        },
        [](tyr_done &done) { return Committed(std::exchange(done.committed, nullptr)); });
  }

  /* Takes everything back. */
  void rollback() { detail::check(tyr_rollback(end())); }

 private:
  friend class Store;

  struct Lent {};
  Transaction(Lent, tyr_txn *raw) noexcept : handle_(raw), is_lent_(true) {}

  template <class F>
  Operation gather(F add) {
    Operation operation;
    detail::check(add(&operation.number));
    return operation;
  }

  /* The handle, to be ended; a lent one stays with its owner, and libtyr refuses to end it. */
  tyr_txn *end() noexcept { return is_lent_ ? handle_.get() : handle_.release(); }

  void drop() noexcept {
    if (is_lent_) handle_.release();
    is_lent_ = false;
    handle_.reset();
  }

  detail::Handle<tyr_txn, tyr_rollback> handle_;
  bool is_lent_ = false;
};

}  // namespace tyr

#endif
