/* Stores, where everything begins. Begin with tyr.hpp. */
#ifndef TYR_STORE_HPP
#define TYR_STORE_HPP

#include <random>

#include "snapshot.hpp"
#include "transaction.hpp"

namespace tyr {

/* How a store in a folder is opened; 0 is the default. */
struct OpenOptions {
  std::uint64_t cache_bytes = 0;              // for recent operations and cache; 128 MiB
  bool is_read_only = false;                  // nothing on disk is changed
  bool must_exist = false;                    // a missing store is NotFound instead of being made
  std::chrono::milliseconds snapshot_timeout{0};  // when a snapshot is too old; 5 minutes
};

/* How a cluster is connected to; nothing and 0 are the defaults. */
struct ConnectOptions {
  std::string user{};      // who connects; nobody
  std::string key{};       // the key of the user, or
  std::string key_file{};  // the file that it is in
  std::chrono::milliseconds timeout{0};          // of a call; at most, and by default, 30 s
  std::chrono::milliseconds connect_timeout{0};  // 15 s
  std::string tls_ca{};           // a file with the authorities of the nodes' certificates
  std::string tls_certificate{};  // a file with the certificate that nodes are shown, and
  std::string tls_key{};          // one with its private key
  std::string tls_domain{};       // what the certificates of nodes name; tyr.internal
};

enum class Durability : std::int32_t {
  Sync = TYR_SYNC,          // acknowledged when it is on disk
  Buffered = TYR_BUFFERED,  // when the operating system has it
  Memory = TYR_MEMORY,      // when it is in memory; never written by itself
};

/* What a keyspace is created with; 0 is the default. */
struct KeyspaceConfig {
  std::uint64_t chunk_size = 0;  // a power of two from 4 KiB to 256 MiB; 64 MiB
  int replication = 0;           // replicas of each chunk, 1 to 9; 3
  int live_replicas_min = 0;     // that a write needs; more than half
  Durability durability = Durability::Sync;
  bool is_compressed = false;        // large payloads are compressed on disk
  bool is_single_versioned = false;  // older versions do not stay for snapshots
  bool is_guarded = false;           // leases of its keys keep others off
  std::string placed_by{};  // which part of a key says where its blob lies: first:8, up-to:/; key
};

/* One of many reads. */
struct ReadRequest {
  const Keyspace &keyspace;
  Slice key;
  std::uint64_t offset;
  std::uint64_t length;
};

/* A folder that is open in this process, or a connection to a cluster. */
class Store {
 public:
  explicit Store(tyr_store *raw) noexcept : handle_(raw) {}

  /* Opens the store in a folder, or makes one there. One process has it open at a time. */
  static Store open(const std::string &folder, const OpenOptions &options = {}) {
    tyr_open_options raw{};
    raw.size = sizeof raw;
    raw.cache_bytes = options.cache_bytes;
    raw.is_read_only = options.is_read_only ? 1 : 0;
    raw.must_exist = options.must_exist ? 1 : 0;
    raw.snapshot_timeout_ms = milliseconds(options.snapshot_timeout);
    tyr_store *store = nullptr;
    detail::check(tyr_open(folder.c_str(), &raw, &store));
    return Store(store);
  }

  /* Connects to a cluster: "tyr://host:port,other:port". */
  static Store connect(const std::string &address, const ConnectOptions &options = {}) {
    tyr_connect_options raw{};
    raw.size = sizeof raw;
    raw.user = text(options.user);
    raw.key = text(options.key);
    raw.key_file = text(options.key_file);
    raw.timeout_ms = milliseconds(options.timeout);
    raw.connect_timeout_ms = milliseconds(options.connect_timeout);
    raw.tls_ca = text(options.tls_ca);
    raw.tls_certificate = text(options.tls_certificate);
    raw.tls_key = text(options.tls_key);
    raw.tls_domain = text(options.tls_domain);
    tyr_store *store = nullptr;
    detail::check(tyr_connect(address.c_str(), &raw, &store));
    return Store(store);
  }

  tyr_store *raw() const noexcept { return handle_.get(); }

  /* Closes it, and says what went wrong, as the destructor cannot. What was acknowledged is on disk;
   * calls under way, and later ones on what it gave out, end with an error. */
  void close() { detail::check(tyr_close(handle_.release())); }

  /* Waits until everything that was acknowledged before is on disk. */
  void sync() const { detail::check(tyr_sync(raw())); }

  Keyspace keyspace(const std::string &name) const {
    tyr_keyspace *found = nullptr;
    detail::check(tyr_keyspace_find(raw(), name.c_str(), &found));
    return Keyspace(found);
  }

  Keyspace create_keyspace(const std::string &name, const KeyspaceConfig &config = {}) const {
    tyr_keyspace *made = nullptr;
    tyr_keyspace_config raw_config = raw_of(config);
    detail::check(tyr_keyspace_create(raw(), name.c_str(), &raw_config, &made));
    return Keyspace(made);
  }

  /* AlreadyExists if it has another configuration. */
  Keyspace keyspace_or_create(const std::string &name, const KeyspaceConfig &config = {}) const {
    tyr_keyspace *found = nullptr;
    tyr_keyspace_config raw_config = raw_of(config);
    detail::check(tyr_keyspace_find_or_create(raw(), name.c_str(), &raw_config, &found));
    return Keyspace(found);
  }

  /* Removes a keyspace and all its blobs. */
  void drop_keyspace(const std::string &name) const {
    detail::check(tyr_keyspace_drop(raw(), name.c_str()));
  }

  /* The names of all keyspaces, in order. */
  std::vector<std::string> keyspaces() const {
    tyr_page *raw_page = nullptr;
    detail::check(tyr_keyspace_list(raw(), &raw_page));
    Page page(raw_page);
    std::vector<std::string> names;
    for (const Entry &entry : page.entries()) names.emplace_back(entry.key);
    return names;
  }

  Transaction begin() const {
    tyr_txn *txn = nullptr;
    detail::check(tyr_begin(raw(), &txn));
    return Transaction(txn);
  }

  /* Runs `body` with a Transaction and commits it; runs it again, up to 64 times, when it or the
   * commit meets a conflict. What `body` throws takes everything back, and is thrown here unless it
   * is a retryable Error. Answers what the last run of `body` did. */
  template <class F>
    requires std::invocable<F &, Transaction &>
  auto transact(F &&body) const -> std::invoke_result_t<F &, Transaction &> {
    using Answer = std::invoke_result_t<F &, Transaction &>;
    struct Run {
      F &body;
      std::optional<detail::Stored<Answer>> answer;
      std::exception_ptr thrown;
    } run{body, std::nullopt, nullptr};
    tyr_error *error = tyr_transact(
        raw(), [](tyr_txn *txn, void *context) { return once(txn, *static_cast<Run *>(context)); },
        &run);
    if (error != nullptr && run.thrown) {
      tyr_error_free(error);
      std::rethrow_exception(run.thrown);
    }
    detail::check(error);
    if constexpr (!std::is_void_v<Answer>) return std::move(*run.answer);
  }

  /* The same in a coroutine: `body` answers a Task. The store is lent until this one is over. */
  template <class F>
  auto transact_async(F body) const -> std::invoke_result_t<F &, Transaction &> {
    using Answer = decltype(body(std::declval<Transaction &>()).operator co_await().await_resume());
    for (int attempt = 1;; attempt++) {
      try {
        Transaction transaction = begin();
        if constexpr (std::is_void_v<Answer>) {
          co_await body(transaction);
          co_await transaction.commit_async();
          co_return;
        } else {
          Answer answer = co_await body(transaction);
          co_await transaction.commit_async();
          co_return answer;
        }
      } catch (const Error &error) {
        if (!error.is_retryable() || attempt == kAttemptsMax) throw;
      }
      co_await Pause(pause_after(attempt));
    }
  }

  Snapshot snapshot() const {
    tyr_snapshot *snapshot = nullptr;
    detail::check(tyr_snapshot_take(raw(), &snapshot));
    return Snapshot(snapshot);
  }

  auto snapshot_async() const {
    return detail::call(
        [store = raw()](tyr_queue *queue, std::uint64_t tag) {
          return tyr_snapshot_take_start(store, queue, tag);
        },
        [](tyr_done &done) { return Snapshot(std::exchange(done.snapshot, nullptr)); });
  }

  /* Reads many ranges of many blobs at one moment; nothing for a blob that is not there. */
  std::vector<std::optional<Bytes>> read_many(std::span<const ReadRequest> requests) const {
    if (requests.empty()) return {};
    std::vector<tyr_read_request> raw_requests;
    for (const ReadRequest &one : requests) {
      raw_requests.push_back({one.keyspace.raw(), one.key.raw(), one.offset, one.length});
    }
    std::vector<tyr_bytes *> found(requests.size());
    detail::check(tyr_read_many(raw(), raw_requests.data(), raw_requests.size(), found.data()));
    std::vector<std::optional<Bytes>> all(requests.size());
    for (std::size_t at = 0; at < found.size(); at++) {
      if (found[at] != nullptr) all[at].emplace(found[at]);
    }
    return all;
  }

  /* Asks what became of a commit that ended as TimedOut: what it answers; throws why it did not
   * take effect. */
  Committed outcome(const Error &error) const {
    tyr_committed *committed = nullptr;
    detail::check(tyr_outcome(raw(), error.raw(), &committed));
    return Committed(committed);
  }

 private:
  static constexpr int kAttemptsMax = 64;

  static const char *text(const std::string &text) noexcept {
    return text.empty() ? nullptr : text.c_str();
  }

  static std::uint64_t milliseconds(std::chrono::milliseconds time) noexcept {
    return static_cast<std::uint64_t>(std::max<std::int64_t>(0, time.count()));
  }

  static tyr_keyspace_config raw_of(const KeyspaceConfig &config) noexcept {
    tyr_keyspace_config raw{};
    raw.size = sizeof raw;
    raw.chunk_size = config.chunk_size;
    raw.replication = config.replication;
    raw.live_replicas_min = config.live_replicas_min;
    raw.durability = static_cast<std::int32_t>(config.durability);
    raw.is_compressed = config.is_compressed ? 1 : 0;
    raw.is_single_versioned = config.is_single_versioned ? 1 : 0;
    raw.is_guarded = config.is_guarded ? 1 : 0;
    raw.placed_by = text(config.placed_by);
    return raw;
  }

  /* One run of a body. No exception may pass through libtyr. */
  template <class Run>
  static tyr_error *once(tyr_txn *txn, Run &run) noexcept {
    run.thrown = nullptr;
    try {
      Transaction transaction(Transaction::Lent{}, txn);
      if constexpr (std::is_void_v<std::invoke_result_t<decltype(run.body), Transaction &>>) {
        run.body(transaction);
      } else {
        run.answer.emplace(run.body(transaction));
      }
      return nullptr;
    } catch (const Error &error) {
      run.thrown = std::current_exception();
      const ErrorKind kind = error.is_retryable() ? error.kind() : ErrorKind::InvalidArgument;
      return tyr_error_new(static_cast<std::int32_t>(kind), error.what());
    } catch (...) {
      run.thrown = std::current_exception();
      return tyr_error_new(TYR_INVALID_ARGUMENT, "the body of a transact threw an exception");
    }
  }

  /* Doubling from 20 µs to 10 ms, with jitter. */
  static std::chrono::microseconds pause_after(int attempt) {
    static thread_local std::minstd_rand random{std::random_device{}()};
    const int ceiling = std::min(20 << std::min(attempt, 9), 10'000);
    std::uniform_int_distribution<int> jitter(ceiling / 2, ceiling);
    return std::chrono::microseconds(jitter(random));
  }

  detail::Handle<tyr_store, tyr_close> handle_;
};

}  // namespace tyr

#endif
