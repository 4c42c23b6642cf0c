/* What the programs share: a check that names its line, and errors that must or must not be. */
#ifndef CHECK_H
#define CHECK_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tyr.h"

#define CHECK(condition)                                                        \
  do {                                                                          \
    if (!(condition)) {                                                         \
      fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition);   \
      exit(1);                                                                  \
    }                                                                           \
  } while (0)

/* The call is good. */
#define GOOD(call) check_kind((call), TYR_OK, "", __FILE__, __LINE__)

/* The call fails with this kind, and its text has this word. */
#define FAILS(call, kind, word) check_kind((call), (kind), (word), __FILE__, __LINE__)

static inline void check_kind(tyr_error *error, int32_t kind, const char *word, const char *file,
                              int line) {
  if (tyr_error_kind(error) != kind ||
      (error != NULL && strstr(tyr_error_text(error), word) == NULL)) {
    fprintf(stderr, "%s:%d: %s: %s; expected %s with \"%s\"\n", file, line,
            tyr_error_kind_name(tyr_error_kind(error)), tyr_error_text(error),
            tyr_error_kind_name(kind), word);
    exit(1);
  }
  tyr_error_free(error);
}

/* A folder to open, or the address of a cluster; and the name of a keyspace that nobody has. */
static inline tyr_store *open_place(const char *place) {
  tyr_store *store = NULL;
  if (strncmp(place, "tyr://", 6) == 0) {
    GOOD(tyr_connect(place, NULL, &store));
  } else {
    GOOD(tyr_open(place, NULL, &store));
  }
  return store;
}

static inline bool is_text(tyr_slice slice, const char *text) {
  return slice.len == strlen(text) && memcmp(slice.data, text, slice.len) == 0;
}

#endif
