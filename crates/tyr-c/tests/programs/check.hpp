/* What the programs in C++ share: checks that name their line. No framework: a newcomer needs a
 * compiler and nothing else. */
#ifndef CHECK_HPP
#define CHECK_HPP

#include <cstdio>
#include <cstdlib>
#include <string>

#include "tyr.hpp"

#define CHECK(condition)                                                      \
  do {                                                                        \
    if (!(condition)) stop(__FILE__, __LINE__, "not so: " #condition);        \
  } while (0)

/* The expression throws a tyr::Error of this kind, whose text has this word. */
#define THROWS(kind_wanted, word, ...)                                        \
  do {                                                                        \
    bool is_thrown = false;                                                   \
    try {                                                                     \
      (void)(__VA_ARGS__);                                                    \
    } catch (const tyr::Error &error) {                                       \
      is_thrown = true;                                                       \
      check_error(error, tyr::ErrorKind::kind_wanted, (word), __FILE__, __LINE__); \
    }                                                                         \
    if (!is_thrown) stop(__FILE__, __LINE__, "throws nothing: " #__VA_ARGS__); \
  } while (0)

[[noreturn]] inline void stop(const char *file, int line, const std::string &what) {
  std::fprintf(stderr, "%s:%d: %s\n", file, line, what.c_str());
  std::exit(1);
}

inline void check_error(const tyr::Error &error, tyr::ErrorKind kind, const std::string &word,
                        const char *file, int line) {
  const std::string text = error.what();
  if (error.kind() != kind || text.find(word) == std::string::npos) {
    stop(file, line, std::string(tyr::name_of(error.kind())) + ": " + text + "; expected " +
                         tyr::name_of(kind) + " with \"" + word + "\"");
  }
}

/* A folder to open, or the address of a cluster. */
inline tyr::Store open_place(const std::string &place) {
  return place.starts_with("tyr://") ? tyr::Store::connect(place) : tyr::Store::open(place);
}

#endif
