/* A client of a trial in C: `worker MODE PLACE KEYSPACE...`. What it is told and what it answers is
 * in src/worker/order.rs. MODE is `blocking` or `started`; calls that are started end in a queue. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tyr.h"

#define CHANGES_MAX 64
#define KEYSPACES_MAX 16
/* Of one read. */
#define LEN_MAX (1 << 20)

static bool is_started;
static tyr_store *store;
static tyr_keyspace *keyspaces[KEYSPACES_MAX];
static size_t keyspaces_len;
static tyr_queue *queue;
static uint64_t tag;

/* The transaction that was begun. */
static tyr_txn *txn;
/* Of the last commit: what it was of, and why its outcome is open. */
static struct {
  uint64_t operation;
  char kind;
} changes[CHANGES_MAX];
static size_t changes_len;
static tyr_error *open_error;

/* What is left of the line. */
static char *rest;
/* Where an answer's words go. */
static FILE *answer;

static void die(const char *text) {
  fprintf(stderr, "worker: %s\n", text);
  exit(1);
}

/* What must not fail: connecting, and calls that fail only for what a program does wrong. */
static void good(tyr_error *error) {
  if (error != NULL) die(tyr_error_text(error));
}

/* The next word of the line; NULL at its end. */
static char *word(void) { return strtok_r(NULL, " ", &rest); }

static char *text(void) {
  char *next = word();
  if (next == NULL) die("a line ends early");
  return next;
}

static uint64_t number(void) {
  char *end = NULL;
  const char *next = text();
  errno = 0;
  uint64_t value = strtoull(next, &end, 10);
  if (errno != 0 || *end != '\0') die("no number");
  return value;
}

static tyr_keyspace *keyspace(void) {
  uint64_t place = number();
  if (place >= keyspaces_len) die("no such keyspace");
  return keyspaces[place];
}

/* Bytes, which are put where their digits were. */
static tyr_slice bytes(void) {
  char *digits = text(), *out = digits;
  if (*digits != '=') die("no bytes");
  for (const char *in = digits + 1; *in != '\0'; in += 2) {
    unsigned value;
    if (sscanf(in, "%2x", &value) != 1) die("no digits");
    *out++ = (char)value;
  }
  return tyr_data(digits, (size_t)(out - digits));
}

static void tell_bytes(const unsigned char *some, size_t len) {
  static const char digits[] = "0123456789abcdef";
  fputs(" =", answer);
  for (size_t at = 0; at < len; at++) {
    putc(digits[some[at] >> 4], answer);
    putc(digits[some[at] & 15], answer);
  }
}

/* Answers an error, and frees it. */
static void tell_error(tyr_error *error) {
  printf("error %s ", tyr_error_kind_name(tyr_error_kind(error)));
  for (const char *at = tyr_error_text(error); *at != '\0'; at++) {
    putchar(*at == '\n' ? ' ' : *at);
  }
  tyr_error_free(error);
}

/* Waits for the completion of the call that `error` says was started. */
static tyr_error *wait_for(tyr_error *error, tyr_done *done) {
  size_t taken = 0;
  if (error != NULL) return error;
  do {
    good(tyr_queue_take(queue, done, 1, -1, &taken));
  } while (taken == 0);
  if (done->tag != tag) die("a completion of another call");
  return done->error;
}

enum from { NEWEST, IN_TXN, IN_SNAPSHOT };

/* Reads what the line says, and adds it to the answer. */
static tyr_error *read_one(enum from from, const tyr_snapshot *snapshot, unsigned char *out,
                           size_t *got) {
  tyr_keyspace *of = keyspace();
  tyr_slice key = tyr_text(text());
  uint64_t start = number(), len = number();
  tyr_done done;
  tyr_error *error = NULL;
  if (len > LEN_MAX) die("too much to read");
  if (!is_started) {
    switch (from) {
      case NEWEST: return tyr_read(of, key, start, out, len, got);
      case IN_TXN: return tyr_txn_read(txn, of, key, start, out, len, got);
      case IN_SNAPSHOT: return tyr_snapshot_read(snapshot, of, key, start, out, len, got);
    }
  }
  tag++;
  switch (from) {
    case NEWEST: error = tyr_read_start(of, key, start, out, len, queue, tag); break;
    case IN_TXN: error = tyr_txn_read_start(txn, of, key, start, out, len, queue, tag); break;
    case IN_SNAPSHOT:
      error = tyr_snapshot_read_start(snapshot, of, key, start, out, len, queue, tag);
      break;
  }
  error = wait_for(error, &done);
  if (error == NULL) *got = done.value;
  return error;
}

/* What was read, as a word; an error that is one goes through. */
static tyr_error *tell_read(tyr_error *error, const unsigned char *out, size_t got) {
  if (error == NULL) {
    tell_bytes(out, got);
  } else if (tyr_error_kind(error) == TYR_NOT_FOUND) {
    fputs(" -", answer);
    tyr_error_free(error);
    error = NULL;
  }
  return error;
}

static void read_single(enum from from) {
  static unsigned char out[LEN_MAX];
  size_t got = 0;
  tyr_error *error = read_one(from, NULL, out, &got);
  if (error != NULL && tyr_error_kind(error) != TYR_NOT_FOUND) {
    tell_error(error);
    return;
  }
  fputs("ok", stdout);
  tell_read(error, out, got);
}

static void size(void) {
  tyr_stat stat = {0};
  tyr_done done;
  tyr_keyspace *of = keyspace();
  tyr_slice key = tyr_text(text());
  tyr_error *error = NULL;
  if (is_started) {
    tag++;
    error = wait_for(tyr_stat_start(of, key, queue, tag), &done);
    if (error == NULL) stat.size = done.value;
  } else {
    error = tyr_stat_blob(of, key, &stat);
  }
  if (error != NULL && tyr_error_kind(error) != TYR_NOT_FOUND) {
    tell_error(error);
    return;
  }
  tyr_error_free(error);
  printf("ok %" PRIu64, stat.size);
}

/* There is no read of many that is started: both modes wait. */
static void many(void) {
  tyr_read_request requests[CHANGES_MAX];
  tyr_bytes *found[CHANGES_MAX];
  size_t count = 0;
  for (char *next = word(); next != NULL; next = word(), count++) {
    if (count == CHANGES_MAX) die("too many at once");
    requests[count].keyspace = keyspaces[strtoull(next, NULL, 10) % keyspaces_len];
    requests[count].key = tyr_text(text());
    requests[count].offset = number();
    requests[count].len = number();
  }
  tyr_error *error = tyr_read_many(store, requests, count, found);
  if (error != NULL) {
    tell_error(error);
    return;
  }
  fputs("ok", stdout);
  for (size_t at = 0; at < count; at++) {
    if (found[at] == NULL) {
      fputs(" -", stdout);
    } else {
      tyr_slice slice = tyr_bytes_slice(found[at]);
      tell_bytes(slice.data, slice.len);
      good(tyr_bytes_free(found[at]));
    }
  }
}

/* Reads in a snapshot, all of it before anything is told. */
static void in_snapshot(void) {
  static unsigned char out[LEN_MAX];
  tyr_snapshot *snapshot = NULL;
  tyr_done done;
  char *told = NULL;
  size_t told_len = 0;
  tyr_error *error = NULL;
  if (is_started) {
    tag++;
    error = wait_for(tyr_snapshot_take_start(store, queue, tag), &done);
    if (error == NULL) snapshot = done.snapshot;
  } else {
    error = tyr_snapshot_take(store, &snapshot);
  }
  answer = open_memstream(&told, &told_len);
  if (answer == NULL) die("no memory");
  while (error == NULL && rest != NULL && *rest != '\0') {
    size_t got = 0;
    error = read_one(IN_SNAPSHOT, snapshot, out, &got);
    error = tell_read(error, out, got);
  }
  fclose(answer);
  answer = stdout;
  if (error == NULL) {
    printf("ok%s", told);
  } else {
    tell_error(error);
  }
  free(told);
  good(tyr_snapshot_free(snapshot));
}

/* Answers a commit, or keeps why its outcome is open. */
static void tell_commit(tyr_error *error, tyr_committed *committed) {
  if (error != NULL) {
    if (tyr_error_kind(error) == TYR_TIMED_OUT) {
      /* It is kept, to be asked with. */
      open_error = error;
      printf("error TimedOut no answer in time");
    } else {
      tell_error(error);
    }
    return;
  }
  fputs("ok", stdout);
  for (size_t at = 0; at < changes_len; at++) {
    uint64_t offset = 0;
    tyr_number sum;
    switch (changes[at].kind) {
      case 'a':
        good(tyr_committed_offset(committed, changes[at].operation, &offset));
        printf(" %" PRIu64, offset);
        break;
      case '+':
        good(tyr_committed_value(committed, changes[at].operation, &sum));
        printf(" %" PRIu64, tyr_as_u64(sum));
        break;
      default: fputs(" .", stdout);
    }
  }
  good(tyr_committed_free(committed));
}

static void commit(void) {
  tyr_committed *committed = NULL;
  tyr_error *error = NULL;
  tyr_done done;
  if (txn == NULL) good(tyr_begin(store, &txn));
  changes_len = 0;
  for (char *verb = word(); verb != NULL; verb = word(), changes_len++) {
    if (changes_len == CHANGES_MAX) die("too many changes");
    uint64_t *operation = &changes[changes_len].operation;
    tyr_keyspace *of = keyspace();
    tyr_slice key = tyr_text(text());
    changes[changes_len].kind = '.';
    if (strcmp(verb, "append") == 0) {
      error = tyr_txn_append(txn, of, key, bytes(), operation);
      changes[changes_len].kind = 'a';
    } else if (strcmp(verb, "put") == 0) {
      error = tyr_txn_put(txn, of, key, bytes(), operation);
    } else if (strcmp(verb, "compare") == 0) {
      error = tyr_txn_compare(txn, of, key, 0, bytes(), operation);
    } else if (strcmp(verb, "add") == 0) {
      error = tyr_txn_apply(txn, of, key, 0, TYR_ADD, tyr_u64(number()), operation);
      changes[changes_len].kind = '+';
    } else {
      die("no such change");
    }
    if (error != NULL) {
      good(tyr_rollback(txn));
      txn = NULL;
      tell_error(error);
      return;
    }
  }
  if (is_started) {
    tag++;
    error = wait_for(tyr_commit_start(txn, queue, tag), &done);
    if (error == NULL) committed = done.committed;
  } else {
    error = tyr_commit(txn, &committed);
  }
  txn = NULL;
  tell_commit(error, committed);
}

static void outcome(void) {
  tyr_committed *committed = NULL;
  tyr_error *asked = open_error;
  if (asked == NULL) {
    printf("error InvalidArgument the outcome of the last commit is known");
    return;
  }
  open_error = NULL;
  tyr_error *error = tyr_outcome(store, asked, &committed);
  tyr_error_free(asked);
  tell_commit(error, committed);
}

static void begin(void) {
  good(tyr_rollback(txn));
  txn = NULL;
  good(tyr_begin(store, &txn));
  fputs("ok", stdout);
}

static void follow(char *line) {
  const char *verb = strtok_r(line, " \n", &rest);
  rest[strcspn(rest, "\n")] = '\0';
  if (verb == NULL) die("an empty line");
  if (strcmp(verb, "commit") == 0) {
    /* What became of the one before is of no interest any more. */
    tyr_error_free(open_error);
    open_error = NULL;
    commit();
  } else if (strcmp(verb, "read") == 0) {
    read_single(NEWEST);
  } else if (strcmp(verb, "in") == 0) {
    read_single(IN_TXN);
  } else if (strcmp(verb, "size") == 0) {
    size();
  } else if (strcmp(verb, "many") == 0) {
    many();
  } else if (strcmp(verb, "snapshot") == 0) {
    in_snapshot();
  } else if (strcmp(verb, "begin") == 0) {
    begin();
  } else if (strcmp(verb, "outcome") == 0) {
    outcome();
  } else {
    die("no such order");
  }
  putchar('\n');
  fflush(stdout);
}

int main(int argc, char **argv) {
  char *line = NULL;
  size_t room = 0;
  if (argc < 4 || argc - 3 > KEYSPACES_MAX) die("worker MODE PLACE KEYSPACE...");
  answer = stdout;
  is_started = strcmp(argv[1], "started") == 0;
  if (strncmp(argv[2], "tyr://", 6) == 0) {
    good(tyr_connect(argv[2], NULL, &store));
  } else {
    good(tyr_open(argv[2], NULL, &store));
  }
  for (int at = 3; at < argc; at++) {
    tyr_keyspace **place = &keyspaces[keyspaces_len++];
    tyr_error *error = tyr_keyspace_find(store, argv[at], place);
    if (tyr_error_kind(error) == TYR_NOT_FOUND) {
      tyr_error_free(error);
      error = tyr_keyspace_create(store, argv[at], NULL, place);
    }
    good(error);
  }
  good(tyr_queue_new(&queue));
  puts("ok");
  fflush(stdout);
  while (getline(&line, &room, stdin) > 0) follow(line);
  free(line);
  good(tyr_rollback(txn));
  tyr_error_free(open_error);
  good(tyr_queue_free(queue));
  for (size_t at = 0; at < keyspaces_len; at++) good(tyr_keyspace_free(keyspaces[at]));
  good(tyr_close(store));
  return tyr_handles() == 0 ? 0 : 1;
}
