/*
 * Coroutines: a Loop has a queue of completions and a thread, on which it resumes the coroutines
 * that were spawned on it. A Task is such a coroutine, a Call what it awaits. Begin with tyr.hpp.
 *
 *   spawn(task) ──> inbox ──> resumed by the thread ──> co_await a call ──> the queue of libtyr
 *                                  ^                                            │
 *                                  └──────────── its completion was taken <─────┘
 *
 * What a call is lent lies in the frame of the coroutine that awaits it. So the frame of a coroutine
 * that is destroyed is given back only when its call is over: the call is cancelled, and its
 * completion waited for, in the loop's thread.
 */
#ifndef TYR_LOOP_HPP
#define TYR_LOOP_HPP

#include <atomic>
#include <chrono>
#include <coroutine>
#include <condition_variable>
#include <cstdio>
#include <deque>
#include <exception>
#include <functional>
#include <map>
#include <mutex>
#include <thread>
#include <variant>
#include <vector>

#include "value.hpp"

namespace tyr {

class Loop;
template <class T>
class Task;
template <class T>
class Spawned;

namespace detail {

/* Nothing, as a value. */
struct Nothing {};

template <class T>
using Stored = std::conditional_t<std::is_void_v<T>, Nothing, T>;

/* Frees the handles of a completion that nobody took out of it. */
inline void discard(tyr_done &done) noexcept {
  tyr_error_free(std::exchange(done.error, nullptr));
  tyr_error_free(tyr_bytes_free(std::exchange(done.bytes, nullptr)));
  tyr_error_free(tyr_committed_free(std::exchange(done.committed, nullptr)));
  tyr_error_free(tyr_page_free(std::exchange(done.page, nullptr)));
  tyr_error_free(tyr_snapshot_free(std::exchange(done.snapshot, nullptr)));
}

/* A coroutine of a loop that is suspended, and what it waits for. It stays where it is. */
class Waiter {
 public:
  Waiter() noexcept = default;
  Waiter(const Waiter &) = delete;
  Waiter &operator=(const Waiter &) = delete;

 protected:
  ~Waiter() = default;

  enum class State { Idle, Pending, Ready };

  Loop *loop_ = nullptr;
  std::coroutine_handle<> suspended_;
  State state_ = State::Idle;
  tyr_done done_{};

  friend class tyr::Loop;
};

/* What every coroutine of a loop has. */
struct PromiseBase {
  Loop *loop = nullptr;
  std::coroutine_handle<> then;
  std::exception_ptr thrown;

  struct Final {
    bool await_ready() const noexcept { return false; }
    template <class P>
    std::coroutine_handle<> await_suspend(std::coroutine_handle<P> self) const noexcept {
      return self.promise().then;
    }
    void await_resume() const noexcept {}
  };

  std::suspend_always initial_suspend() const noexcept { return {}; }
  Final final_suspend() const noexcept { return {}; }
  void unhandled_exception() noexcept { thrown = std::current_exception(); }
};

template <class T>
struct Promise : PromiseBase {
  std::optional<T> value;

  Task<T> get_return_object() noexcept;
  template <class U>
    requires std::convertible_to<U, T>
  void return_value(U &&answer) {
    value.emplace(std::forward<U>(answer));
  }
  T take() { return std::move(*value); }
};

template <>
struct Promise<void> : PromiseBase {
  Task<void> get_return_object() noexcept;
  void return_void() const noexcept {}
  void take() const noexcept {}
};

}  // namespace detail

/* A coroutine that answers a T. It begins when it is awaited by another, or spawned on a Loop. */
template <class T = void>
class [[nodiscard]] Task {
 public:
  using promise_type = detail::Promise<T>;

  Task(Task &&other) noexcept : frame_(std::exchange(other.frame_, nullptr)) {}
  Task &operator=(Task &&other) noexcept {
    if (this != &other) {
      if (frame_) frame_.destroy();
      frame_ = std::exchange(other.frame_, nullptr);
    }
    return *this;
  }
  Task(const Task &) = delete;
  Task &operator=(const Task &) = delete;
  ~Task() {
    if (frame_) frame_.destroy();
  }

  /* Runs it to its end, in the loop of the coroutine that awaits it; once. */
  auto operator co_await() && {
    if (!frame_) throw Error(ErrorKind::InvalidArgument, "this tyr::Task was moved from");
    if (frame_.promise().loop != nullptr) {
      throw Error(ErrorKind::InvalidArgument, "this tyr::Task was awaited before");
    }
    return Awaiter{frame_};
  }

 private:
  struct Awaiter {
    std::coroutine_handle<promise_type> frame;

    bool await_ready() const noexcept { return false; }
    template <class P>
    std::coroutine_handle<> await_suspend(std::coroutine_handle<P> parent) const noexcept {
      frame.promise().loop = parent.promise().loop;
      frame.promise().then = parent;
      return frame;
    }
    T await_resume() const {
      if (frame.promise().thrown) std::rethrow_exception(frame.promise().thrown);
      return frame.promise().take();
    }
  };

  explicit Task(std::coroutine_handle<promise_type> frame) noexcept : frame_(frame) {}

  std::coroutine_handle<promise_type> frame_;

  template <class>
  friend struct detail::Promise;
};

template <class T>
Task<T> detail::Promise<T>::get_return_object() noexcept {
  return Task<T>(std::coroutine_handle<Promise>::from_promise(*this));
}

inline Task<void> detail::Promise<void>::get_return_object() noexcept {
  return Task<void>(std::coroutine_handle<Promise>::from_promise(*this));
}

namespace detail {

/* The outermost coroutine of what was spawned. Its frame is the loop's. */
struct Root {
  struct promise_type : PromiseBase {
    Root get_return_object() noexcept {
      return {std::coroutine_handle<promise_type>::from_promise(*this)};
    }
    std::suspend_never final_suspend() const noexcept { return {}; }
    void unhandled_exception() const noexcept { std::terminate(); }
    void return_void() const noexcept {}
  };

  std::coroutine_handle<promise_type> frame;
};

/* What became of something that was spawned. */
template <class T>
struct Outcome {
  std::mutex lock;
  std::condition_variable changed;
  std::variant<std::monostate, Stored<T>, std::exception_ptr> answer;  // guarded by lock
  Waiter *waiter = nullptr;  // of the loop's thread alone, as is
  std::coroutine_handle<> root;  // until it is over

  bool is_over() {
    std::lock_guard guard(lock);
    return answer.index() != 0;
  }

  T take() {
    std::lock_guard guard(lock);
    if (answer.index() == 2) std::rethrow_exception(std::get<2>(answer));
    if constexpr (!std::is_void_v<T>) return std::move(std::get<1>(answer));
  }
};

}  // namespace detail

/*
 * A thread that resumes coroutines. Its destruction destroys the coroutines that are not over, which
 * cancels their calls; it waits for that, so no coroutine of a loop may be what destroys it.
 */
class Loop {
 public:
  Loop() {
    detail::check(tyr_queue_new(queue_.out()));
    thread_ = std::thread([this] { turn(); });
  }
  Loop(const Loop &) = delete;
  Loop &operator=(const Loop &) = delete;

  ~Loop() {
    if (is_own_thread()) die("a tyr::Loop was destroyed by a coroutine of its own");
    is_stopping_.store(true);
    wake();
    thread_.join();
  }

  /* Begins a task on the loop's thread. */
  template <class T>
  Spawned<T> spawn(Task<T> task) {
    auto outcome = std::make_shared<detail::Outcome<T>>();
    std::coroutine_handle<detail::Root::promise_type> root = lead(std::move(task), outcome).frame;
    root.promise().loop = this;
    outcome->root = root;
    post([this, outcome] {
      if (!outcome->root) return;  // it was ended before it began
      roots_.emplace(outcome->root.address(), [this, outcome] { end<T>(*outcome); });
      outcome->root.resume();
    });
    return Spawned<T>(*this, std::move(outcome));
  }

  /* Runs a task to its end and answers what it answers. Not for coroutines of this loop. */
  template <class T>
  T run(Task<T> task) {
    return spawn(std::move(task)).get();
  }

  /* Whether the thread that asks is the loop's. */
  bool is_own_thread() const noexcept { return std::this_thread::get_id() == thread_.get_id(); }

 private:
  using Clock = std::chrono::steady_clock;
  using State = detail::Waiter::State;

  template <class>
  friend class Spawned;
  template <class, class>
  friend class Call;
  friend class Pause;

  static constexpr std::uint64_t kWake = 0;  // no waiter has this address
  static constexpr std::size_t kBatch = 64;

  [[noreturn]] static void die(const char *why) noexcept {
    std::fprintf(stderr, "tyr: %s\n", why);
    std::terminate();
  }

  static std::uint64_t tag_of(detail::Waiter *waiter) noexcept {
    return reinterpret_cast<std::uintptr_t>(waiter);
  }

  /* Has the loop's thread do something. */
  void post(std::function<void()> work) {
    {
      std::lock_guard guard(lock_);
      inbox_.push_back(std::move(work));
    }
    if (!is_own_thread()) wake();
  }

  /* Has the thread look at the inbox and at `is_stopping_`, which was changed before. One completion
   * that wakes it is enough: what was changed before that is taken, is looked at after. A queue that
   * is full needs none: calls of it end, and are taken. */
  void wake() noexcept {
    if (is_woken_.exchange(true)) return;
    if (tyr_error *error = tyr_queue_post(queue_.get(), kWake, 0)) {
      is_woken_.store(false);
      tyr_error_free(error);
    }
  }

  /* What the thread does. */
  void turn() {
    while (!is_stopping_.load()) {
      empty_inbox();
      ready_those_whose_time_has_come();
      for (std::size_t count = ready_.size(); count > 0 && !ready_.empty(); count--) {
        detail::Waiter *next = ready_.front();
        ready_.pop_front();
        next->state_ = State::Idle;
        next->suspended_.resume();
      }
      // What wakes it may have been taken above, by a call that was withdrawn: it is looked again.
      if (is_inbox_empty() && !is_stopping_.load()) take(ready_.empty() ? until_next_pause() : 0);
    }
    // What is ended here may spawn more, which is ended too.
    for (empty_inbox(); !roots_.empty(); empty_inbox()) {
      std::function<void()> end = roots_.begin()->second;
      end();
    }
  }

  void empty_inbox() {
    std::deque<std::function<void()>> inbox;
    {
      std::lock_guard guard(lock_);
      inbox.swap(inbox_);
    }
    for (auto &work : inbox) work();
  }

  bool is_inbox_empty() {
    std::lock_guard guard(lock_);
    return inbox_.empty();
  }

  /* Takes completions; waits for the first, so many microseconds. */
  void take(std::int64_t timeout_us) noexcept {
    tyr_done done[kBatch];
    std::size_t taken = 0;
    if (tyr_error *error = tyr_queue_take(queue_.get(), done, kBatch, timeout_us, &taken)) {
      die(tyr_error_text(error));
    }
    for (std::size_t at = 0; at < taken; at++) {
      if (done[at].tag == kWake) {
        is_woken_.store(false);
        continue;
      }
      auto *waiter = reinterpret_cast<detail::Waiter *>(std::uintptr_t{done[at].tag});
      waiter->done_ = done[at];
      make_ready(*waiter);
    }
  }

  void make_ready(detail::Waiter &waiter) {
    waiter.state_ = State::Ready;
    ready_.push_back(&waiter);
  }

  /* Sees to it that nobody knows a waiter that is destroyed. */
  void forget(detail::Waiter &waiter) noexcept {
    if (waiter.state_ == State::Ready) std::erase(ready_, &waiter);
    waiter.state_ = State::Idle;
  }

  /* The same of one whose call is under way: that is cancelled, and waited for. */
  void withdraw(detail::Waiter &waiter) noexcept {
    if (waiter.state_ == State::Pending) {
      tyr_error_free(tyr_queue_cancel(queue_.get(), tag_of(&waiter), nullptr));
      while (waiter.state_ == State::Pending) take(-1);
    }
    forget(waiter);
  }

  void begin_pause(detail::Waiter &waiter, std::chrono::microseconds length) {
    pauses_.emplace(Clock::now() + length, &waiter);
    waiter.state_ = State::Pending;
  }

  void forget_pause(detail::Waiter &waiter) noexcept {
    if (waiter.state_ == State::Pending) {
      std::erase_if(pauses_, [&](const auto &pause) { return pause.second == &waiter; });
    }
    forget(waiter);
  }

  void ready_those_whose_time_has_come() {
    while (!pauses_.empty() && pauses_.begin()->first <= Clock::now()) {
      make_ready(*pauses_.begin()->second);
      pauses_.erase(pauses_.begin());
    }
  }

  std::int64_t until_next_pause() const {
    if (pauses_.empty()) return -1;
    auto left = pauses_.begin()->first - Clock::now();
    // Rounded up: a loop that wakes too early would turn without rest.
    return std::max<std::int64_t>(
        0, std::chrono::duration_cast<std::chrono::microseconds>(left).count() + 1);
  }

  template <class T>
  detail::Root lead(Task<T> task, std::shared_ptr<detail::Outcome<T>> outcome) {
    decltype(outcome->answer) answer;
    try {
      // Its frame is gone before anybody hears that it is over.
      Task<T> own = std::move(task);
      if constexpr (std::is_void_v<T>) {
        co_await std::move(own);
        answer.template emplace<1>();
      } else {
        answer.template emplace<1>(co_await std::move(own));
      }
    } catch (...) {
      answer.template emplace<2>(std::current_exception());
    }
    roots_.erase(outcome->root.address());
    settle(*outcome, std::move(answer));
  }

  template <class T, class Answer>
  void settle(detail::Outcome<T> &outcome, Answer answer) {
    outcome.root = nullptr;
    {
      std::lock_guard guard(outcome.lock);
      outcome.answer = std::move(answer);
      outcome.changed.notify_all();
    }
    if (outcome.waiter != nullptr) make_ready(*std::exchange(outcome.waiter, nullptr));
  }

  /* Ends what was spawned, if it is not over: destroys it, on the loop's thread. */
  template <class T>
  void end(detail::Outcome<T> &outcome) {
    if (!outcome.root) return;
    roots_.erase(outcome.root.address());
    outcome.root.destroy();
    auto why = std::make_exception_ptr(
        Error(ErrorKind::Cancelled, "the coroutine was destroyed before its end"));
    settle(outcome, decltype(outcome.answer)(std::in_place_index<2>, why));
  }

  detail::Handle<tyr_queue, tyr_queue_free> queue_;
  std::atomic<bool> is_stopping_ = false;
  std::atomic<bool> is_woken_ = false;
  std::mutex lock_;
  std::deque<std::function<void()>> inbox_;  // guarded by lock_
  // What follows is of the loop's thread alone.
  std::deque<detail::Waiter *> ready_;
  std::multimap<Clock::time_point, detail::Waiter *> pauses_;
  std::map<void *, std::function<void()>> roots_;
  std::thread thread_;
};

}  // namespace tyr

#include "call.hpp"

#endif
