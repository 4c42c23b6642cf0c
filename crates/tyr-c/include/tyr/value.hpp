/* Bytes, numbers, versions: what calls take and give. Begin with tyr.hpp. */
#ifndef TYR_VALUE_HPP
#define TYR_VALUE_HPP

#include <algorithm>
#include <array>
#include <compare>
#include <concepts>
#include <cstddef>
#include <cstring>
#include <iterator>
#include <ranges>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>

#include "error.hpp"

namespace tyr {

namespace detail {

template <class T>
concept Byte = std::same_as<T, std::byte> || std::same_as<T, char> ||
               std::same_as<T, unsigned char> || std::same_as<T, char8_t>;

/* A text in an array: it ends at its zero byte. */
template <class R>
concept Text = std::is_array_v<std::remove_reference_t<R>> &&
               (std::same_as<std::ranges::range_value_t<R>, char> ||
                std::same_as<std::ranges::range_value_t<R>, char8_t>);

template <class T>
concept Number = std::is_arithmetic_v<T> && !std::same_as<T, bool> && !std::same_as<T, char> &&
                 !std::same_as<T, char8_t> && !std::same_as<T, char16_t> &&
                 !std::same_as<T, char32_t> && !std::same_as<T, wchar_t> &&
                 !std::same_as<T, long double>;

}  // namespace detail

/* Bytes that are lent for a call: a text, or anything that has bytes in one piece. */
class Slice {
 public:
  constexpr Slice() noexcept : Slice(nullptr, 0) {}
  constexpr Slice(const void *data, std::size_t size) noexcept : raw_{data, size} {}
  constexpr Slice(const char *text) noexcept : Slice(std::string_view(text)) {}
  constexpr Slice(const char8_t *text) noexcept
      : Slice(text, std::char_traits<char8_t>::length(text)) {}
  constexpr Slice(std::string_view text) noexcept : Slice(text.data(), text.size()) {}
  explicit constexpr Slice(tyr_slice raw) noexcept : raw_(raw) {}

  template <std::ranges::contiguous_range R>
    requires(detail::Byte<std::ranges::range_value_t<R>> && !detail::Text<R>)
  constexpr Slice(R &&range) noexcept
      : Slice(std::ranges::data(range), std::ranges::size(range)) {}

  tyr_slice raw() const noexcept { return raw_; }
  std::size_t size() const noexcept { return raw_.len; }
  bool empty() const noexcept { return raw_.len == 0; }

  std::span<const std::byte> bytes() const noexcept {
    return {static_cast<const std::byte *>(raw_.data), raw_.len};
  }
  std::string_view text() const noexcept {
    return {static_cast<const char *>(raw_.data), raw_.len};
  }

  friend bool operator==(Slice one, Slice other) noexcept { return one.text() == other.text(); }

 private:
  tyr_slice raw_;
};

/* Bytes that were read, as they lie in Týr's memory: what they lend is good as long as they are. */
class Bytes {
 public:
  Bytes() noexcept = default;
  explicit Bytes(tyr_bytes *raw) noexcept : handle_(raw) {
    if (raw != nullptr) slice_ = Slice(tyr_bytes_slice(raw));
  }
  Bytes(Bytes &&other) noexcept
      : handle_(std::move(other.handle_)), slice_(std::exchange(other.slice_, Slice())) {}
  Bytes &operator=(Bytes &&other) noexcept {
    handle_ = std::move(other.handle_);
    slice_ = std::exchange(other.slice_, Slice());
    return *this;
  }
  Bytes(const Bytes &) = delete;
  Bytes &operator=(const Bytes &) = delete;
  ~Bytes() = default;

  std::span<const std::byte> bytes() const & noexcept { return slice_.bytes(); }
  std::string_view text() const & noexcept { return slice_.text(); }
  std::span<const std::byte> bytes() const && = delete;
  std::string_view text() const && = delete;

  /* A copy that needs these bytes no more. */
  std::string str() const { return std::string(slice_.text()); }

  const std::byte *data() const noexcept { return slice_.bytes().data(); }
  std::size_t size() const noexcept { return slice_.size(); }
  bool empty() const noexcept { return slice_.empty(); }
  const std::byte *begin() const noexcept { return data(); }
  const std::byte *end() const noexcept { return data() + size(); }

 private:
  detail::Handle<tyr_bytes, tyr_bytes_free> handle_;
  Slice slice_;
};

/* A number of 8 to 64 bits with its type: std::uint64_t{1} is another than std::int32_t{1}. */
class Number {
 public:
  template <detail::Number T>
  Number(T number) noexcept {
    if constexpr (std::same_as<T, float>) {
      raw_ = tyr_f32(number);
    } else if constexpr (std::same_as<T, double>) {
      raw_ = tyr_f64(number);
    } else {
      constexpr int width = sizeof(T) == 1 ? 0 : sizeof(T) == 2 ? 1 : sizeof(T) == 4 ? 2 : 3;
      constexpr int first = std::is_signed_v<T> ? TYR_I8 : TYR_U8;
      raw_ = {first + width, std::uint64_t{std::make_unsigned_t<T>(number)}};
    }
  }
  explicit Number(tyr_number raw) noexcept : raw_(raw) {}

  /* The number as another type, as `static_cast` makes it. */
  template <detail::Number T>
  T as() const noexcept {
    switch (raw_.type_) {
      case TYR_F32:
      case TYR_F64: return static_cast<T>(tyr_as_f64(raw_));
      case TYR_I8:
      case TYR_I16:
      case TYR_I32:
      case TYR_I64: return static_cast<T>(tyr_as_i64(raw_));
      default: return static_cast<T>(tyr_as_u64(raw_));
    }
  }

  tyr_number raw() const noexcept { return raw_; }

 private:
  tyr_number raw_;
};

/* Arithmetic that is done in place, on the number that lies there. Integers wrap. */
struct Transform {
  std::int32_t kind;
  Number operand;

  static Transform add(Number y) { return {TYR_ADD, y}; }
  static Transform sub(Number y) { return {TYR_SUB, y}; }
  static Transform mul(Number y) { return {TYR_MUL, y}; }
  static Transform div(Number y) { return {TYR_DIV, y}; }
  static Transform min(Number y) { return {TYR_MIN, y}; }
  static Transform max(Number y) { return {TYR_MAX, y}; }
  static Transform bit_and(Number y) { return {TYR_AND, y}; }
  static Transform bit_or(Number y) { return {TYR_OR, y}; }
  static Transform bit_xor(Number y) { return {TYR_XOR, y}; }
  static Transform swap(Number y) { return {TYR_SWAP, y}; }
};

/* How a number that lies there has to stand to another. */
enum class Relation : std::int32_t {
  Equal = TYR_EQUAL,
  NotEqual = TYR_NOT_EQUAL,
  Less = TYR_LESS,
  LessOrEqual = TYR_LESS_OR_EQUAL,
  Greater = TYR_GREATER,
  GreaterOrEqual = TYR_GREATER_OR_EQUAL,
};

/* The version of a blob, a commit, a snapshot: later ones are greater, the default is before all. */
class Timestamp {
 public:
  Timestamp() noexcept = default;
  explicit Timestamp(tyr_timestamp raw) noexcept { std::ranges::copy(raw.bytes, bytes_.begin()); }

  tyr_timestamp raw() const noexcept {
    tyr_timestamp raw;
    std::ranges::copy(bytes_, raw.bytes);
    return raw;
  }

  friend auto operator<=>(const Timestamp &, const Timestamp &) = default;

 private:
  std::array<std::uint8_t, sizeof(tyr_timestamp::bytes)> bytes_{};
};

/* What is known of a blob without reading it. */
struct Stat {
  std::uint64_t size = 0;
  Timestamp version;

  friend bool operator==(const Stat &, const Stat &) = default;
};

namespace detail {

inline Stat stat_of(const tyr_stat &raw) { return {raw.size, Timestamp(raw.version)}; }

}  // namespace detail
}  // namespace tyr

#endif
