/* Keys in order, page by page. Begin with tyr.hpp. */
#ifndef TYR_LISTING_HPP
#define TYR_LISTING_HPP

#include "call.hpp"

namespace tyr {

/* Which keys are listed; the defaults are all. */
struct Scan {
  std::string prefix{};        // only keys that begin so
  std::string from{};          // only this key and those that follow; Page::resume goes on there
  std::string to{};            // only keys before this one
  std::string after{};         // only keys that come after this one
  std::string delimiter{};     // keys with these bytes behind the prefix are listed once, as a group
  std::size_t limit = 0;       // so many entries and groups a page; 0: 1,000
  std::uint64_t first_bytes = 0;  // the first so many bytes of each blob too
  bool is_keys_only = false;   // keys without size and version
};

/* A blob that is listed. What it lends is the page's. */
struct Entry {
  std::string_view key;
  Stat stat;    // zeros where only keys are listed
  Slice bytes;  // its first bytes, if they were asked for
};

namespace detail {

inline tyr_scan raw_of(const Scan &scan) noexcept {
  tyr_scan raw{};
  raw.size = sizeof raw;
  raw.prefix = Slice(scan.prefix).raw();
  raw.from = Slice(scan.from).raw();
  raw.to = Slice(scan.to).raw();
  raw.after = Slice(scan.after).raw();
  raw.delimiter = Slice(scan.delimiter).raw();
  raw.limit = scan.limit;
  raw.first_bytes = scan.first_bytes;
  raw.is_keys_only = scan.is_keys_only ? 1 : 0;
  return raw;
}

}  // namespace detail

/* A page of a listing. */
class Page {
 public:
  explicit Page(tyr_page *raw) noexcept : handle_(raw) {}

  /* How many blobs it lists. */
  std::size_t size() const noexcept { return tyr_page_len(handle_.get()); }

  /* The blobs. What they lend is good as long as the page is. */
  std::vector<Entry> entries() const & {
    std::vector<Entry> entries(tyr_page_len(handle_.get()));
    for (std::size_t at = 0; at < entries.size(); at++) {
      tyr_entry raw;
      detail::check(tyr_page_entry(handle_.get(), at, &raw));
      entries[at] = {Slice(raw.key).text(), detail::stat_of(raw.stat), Slice(raw.bytes)};
    }
    return entries;
  }

  /* What the keys of the groups begin with, which a delimiter makes. */
  std::vector<std::string_view> groups() const & {
    std::vector<std::string_view> groups(tyr_page_groups(handle_.get()));
    for (std::size_t at = 0; at < groups.size(); at++) {
      tyr_slice raw;
      detail::check(tyr_page_group(handle_.get(), at, &raw));
      groups[at] = Slice(raw).text();
    }
    return groups;
  }

  std::vector<Entry> entries() const && = delete;
  std::vector<std::string_view> groups() const && = delete;

  /* Where to go on, as `from` of the next scan; nothing when this was all. */
  std::optional<std::string> resume() const {
    tyr_slice raw;
    detail::check(tyr_page_resume(handle_.get(), &raw));
    if (raw.len == 0) return std::nullopt;
    return std::string(Slice(raw).text());
  }

 private:
  detail::Handle<tyr_page, tyr_page_free> handle_;
};

namespace detail {

inline constexpr auto page_answer = [](tyr_done &done) {
  return Page(std::exchange(done.page, nullptr));
};

}  // namespace detail
}  // namespace tyr

#endif
