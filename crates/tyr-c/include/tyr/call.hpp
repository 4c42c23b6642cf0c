/* What coroutines of a loop await: calls, pauses, and what was spawned. Begin with tyr.hpp. */
#ifndef TYR_CALL_HPP
#define TYR_CALL_HPP

#include "loop.hpp"

namespace tyr {

/*
 * A call that is started when it is awaited, in the expression that makes it: what it is lent must
 * be there until then. It throws tyr::Error, also where it was not started.
 */
template <class Start, class Finish>
class [[nodiscard]] Call : private detail::Waiter {
 public:
  using Answer = std::invoke_result_t<Finish, tyr_done &>;

  Call(Start start, Finish finish) : start_(std::move(start)), finish_(std::move(finish)) {}
  ~Call() {
    if (loop_ != nullptr) loop_->withdraw(*this);
    detail::discard(done_);
  }

  bool await_ready() const noexcept { return false; }

  template <class P>
  bool await_suspend(std::coroutine_handle<P> self) {
    if (loop_ != nullptr) {
      throw Error(ErrorKind::InvalidArgument, "this call was awaited before: make another");
    }
    loop_ = self.promise().loop;
    suspended_ = self;
    done_.error = start_(loop_->queue_.get(), Loop::tag_of(this));
    if (done_.error != nullptr) return false;
    state_ = State::Pending;
    return true;
  }

  Answer await_resume() {
    detail::check(std::exchange(done_.error, nullptr));
    return finish_(done_);
  }

 private:
  Start start_;
  Finish finish_;
};

/* A while in which a coroutine of a loop rests and others go on. */
class [[nodiscard]] Pause : private detail::Waiter {
 public:
  explicit Pause(std::chrono::microseconds length) noexcept : length_(length) {}
  ~Pause() {
    if (loop_ != nullptr) loop_->forget_pause(*this);
  }

  bool await_ready() const noexcept { return length_.count() <= 0; }

  template <class P>
  void await_suspend(std::coroutine_handle<P> self) {
    loop_ = self.promise().loop;
    suspended_ = self;
    loop_->begin_pause(*this, length_);
  }

  void await_resume() const noexcept {}

 private:
  std::chrono::microseconds length_;
};

/*
 * A task that runs on a loop beside others. Its destruction destroys the task's coroutine, if that
 * is not over, and waits for it; a coroutine may not so destroy itself.
 */
template <class T = void>
class [[nodiscard]] Spawned {
 public:
  Spawned(Spawned &&other) noexcept
      : loop_(other.loop_), outcome_(std::exchange(other.outcome_, nullptr)) {}
  Spawned &operator=(Spawned &&other) noexcept {
    if (this != &other) {
      end();
      loop_ = other.loop_;
      outcome_ = std::exchange(other.outcome_, nullptr);
    }
    return *this;
  }
  Spawned(const Spawned &) = delete;
  Spawned &operator=(const Spawned &) = delete;
  ~Spawned() { end(); }

  /* Whether it has its answer. */
  bool is_over() const { return there()->is_over(); }

  /* Waits for the answer, in a thread that is not the loop's; once. Throws what the task threw. */
  T get() {
    auto outcome = there();
    if (!outcome->is_over() && loop_->is_own_thread()) {
      throw Error(ErrorKind::InvalidArgument,
                  "get() in the loop's own thread would wait for ever: co_await it there");
    }
    {
      std::unique_lock guard(outcome->lock);
      outcome->changed.wait(guard, [&] { return outcome->answer.index() != 0; });
    }
    outcome_ = nullptr;
    return outcome->take();
  }

  /* Waits for the answer in a coroutine of the same loop; once. Throws what the task threw. */
  auto operator co_await() && { return Awaiter(*this, there()); }

  /* Lets it run on by itself, to its end or the loop's. */
  void detach() noexcept { outcome_ = nullptr; }

 private:
  friend class Loop;

  class Awaiter : private detail::Waiter {
   public:
    Awaiter(Spawned &spawned, std::shared_ptr<detail::Outcome<T>> outcome)
        : spawned_(spawned), outcome_(std::move(outcome)) {
      loop_ = spawned.loop_;
    }
    ~Awaiter() {
      if (state_ == State::Pending) outcome_->waiter = nullptr;
      loop_->forget(*this);
    }

    bool await_ready() const { return outcome_->is_over(); }
    template <class P>
    void await_suspend(std::coroutine_handle<P> self) {
      if (self.promise().loop != loop_ || outcome_->waiter != nullptr) {
        throw Error(ErrorKind::InvalidArgument,
                    "what was spawned is awaited once, by a coroutine of the same loop");
      }
      suspended_ = self;
      outcome_->waiter = this;
      state_ = State::Pending;
    }
    T await_resume() {
      spawned_.outcome_ = nullptr;
      return outcome_->take();
    }

   private:
    Spawned &spawned_;
    std::shared_ptr<detail::Outcome<T>> outcome_;
  };

  Spawned(Loop &loop, std::shared_ptr<detail::Outcome<T>> outcome) noexcept
      : loop_(&loop), outcome_(std::move(outcome)) {}

  std::shared_ptr<detail::Outcome<T>> there() const {
    if (outcome_) return outcome_;
    throw Error(ErrorKind::InvalidArgument,
                "this tyr::Spawned was moved from, detached, or has given its answer");
  }

  void end() noexcept {
    auto outcome = std::exchange(outcome_, nullptr);
    if (!outcome || outcome->is_over()) return;
    if (loop_->is_own_thread()) {
      loop_->end(*outcome);
      return;
    }
    loop_->post([loop = loop_, outcome] { loop->end(*outcome); });
    std::unique_lock guard(outcome->lock);
    outcome->changed.wait(guard, [&] { return outcome->answer.index() != 0; });
  }

  Loop *loop_;
  std::shared_ptr<detail::Outcome<T>> outcome_;
};

namespace detail {

/* Calls whose completions are nothing, a number, bytes and so on. */
template <class Start, class Finish>
Call<Start, Finish> call(Start start, Finish finish) {
  return Call<Start, Finish>(std::move(start), std::move(finish));
}

inline constexpr auto no_answer = [](tyr_done &) {};
inline constexpr auto value_answer = [](tyr_done &done) { return done.value; };
inline constexpr auto bytes_answer = [](tyr_done &done) {
  return Bytes(std::exchange(done.bytes, nullptr));
};
inline constexpr auto stat_answer = [](tyr_done &done) {
  return Stat{done.value, Timestamp(done.version)};
};
inline constexpr auto span_answer = [](std::span<std::byte> out) {
  return [out](tyr_done &done) { return out.first(std::size_t{done.value}); };
};

}  // namespace detail
}  // namespace tyr

#endif
