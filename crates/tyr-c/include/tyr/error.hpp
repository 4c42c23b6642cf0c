/* What is thrown, and the handles of C that objects own. Begin with tyr.hpp. */
#ifndef TYR_ERROR_HPP
#define TYR_ERROR_HPP

#include <cstdint>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>

#include "../tyr.h"

namespace tyr {

/* What a caller can do about an error. More may come: treat what is unknown like Unavailable. */
enum class ErrorKind : std::int32_t {
  NotFound = TYR_NOT_FOUND,
  AlreadyExists = TYR_ALREADY_EXISTS,
  Conflict = TYR_CONFLICT,
  Unavailable = TYR_UNAVAILABLE,
  TimedOut = TYR_TIMED_OUT,
  SnapshotTooOld = TYR_SNAPSHOT_TOO_OLD,
  InvalidArgument = TYR_INVALID_ARGUMENT,
  PermissionDenied = TYR_PERMISSION_DENIED,
  QuotaExceeded = TYR_QUOTA_EXCEEDED,
  Corrupt = TYR_CORRUPT,
  Cancelled = TYR_CANCELLED,
  Bug = TYR_BUG,
};

/* The name of a kind, "NotFound" for example. */
inline const char *name_of(ErrorKind kind) noexcept {
  return tyr_error_kind_name(static_cast<std::int32_t>(kind));
}

/* An operation of a transaction: what a Committed, and an Error, is asked with. */
struct Operation {
  std::uint64_t number = TYR_NO_OPERATION;

  friend bool operator==(Operation, Operation) = default;
};

/* What went wrong. `what()` says what was wrong and what to do. */
class Error : public std::runtime_error {
 public:
  /* An error of the program's own, for the body of a `transact` to fail with. */
  Error(ErrorKind kind, const std::string &text)
      : Error(tyr_error_new(static_cast<std::int32_t>(kind), text.c_str())) {}

  /* An error that a function of tyr.h answered; it is this object's from now on. */
  explicit Error(tyr_error *raw)
      : std::runtime_error(tyr_error_text(raw)),
        kind_(static_cast<ErrorKind>(tyr_error_kind(raw))),
        is_retryable_(tyr_error_is_retryable(raw)),
        is_open_(tyr_error_is_open(raw)),
        operation_{tyr_error_operation(raw)},
        raw_(raw, [](tyr_error *error) { tyr_error_free(error); }) {}

  ErrorKind kind() const noexcept { return kind_; }

  /* Whether running the whole transaction again may succeed; `transact` does so. */
  bool is_retryable() const noexcept { return is_retryable_; }

  /* Whether it is unknown what became of the call: Store::outcome asks. */
  bool is_open() const noexcept { return is_open_; }

  /* The condition of the transaction that did not hold, where it was one and is known. */
  std::optional<Operation> operation() const noexcept {
    if (operation_ == Operation{}) return std::nullopt;
    return operation_;
  }

  /* The error of tyr.h; it stays this object's. */
  const tyr_error *raw() const noexcept { return raw_.get(); }

 private:
  ErrorKind kind_;
  bool is_retryable_;
  bool is_open_;
  Operation operation_;
  std::shared_ptr<tyr_error> raw_;  // shared, for copying an exception must not throw
};

namespace detail {

inline void check(tyr_error *error) {
  if (error != nullptr) throw Error(error);
}

/* A handle of C, and how it is freed. */
template <class T, tyr_error *(*Free)(T *)>
class Handle {
 public:
  Handle() noexcept = default;
  explicit Handle(T *raw) noexcept : raw_(raw) {}
  Handle(Handle &&other) noexcept : raw_(other.release()) {}
  Handle &operator=(Handle &&other) noexcept {
    if (this != &other) {
      reset();
      raw_ = other.release();
    }
    return *this;
  }
  Handle(const Handle &) = delete;
  Handle &operator=(const Handle &) = delete;
  ~Handle() { reset(); }

  T *get() const noexcept { return raw_; }
  T *release() noexcept { return std::exchange(raw_, nullptr); }

  void reset() noexcept {
    if (raw_ != nullptr) tyr_error_free(Free(release()));
  }

  /* Where a function of C puts a handle. */
  T **out() noexcept {
    reset();
    return &raw_;
  }

 private:
  T *raw_ = nullptr;
};

}  // namespace detail
}  // namespace tyr

#endif
