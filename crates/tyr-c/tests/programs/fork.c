/* A child that is forked in the middle gets errors, at once, and does no harm; the parent goes on. */
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"

int main(int argc, char **argv) {
  CHECK(argc == 3);
  tyr_store *store = open_place(argv[1]);
  tyr_keyspace *data = NULL;
  tyr_queue *queue = NULL;
  tyr_txn *txn = NULL;
  tyr_bytes *bytes = NULL;
  tyr_done done;
  size_t taken = 0;
  GOOD(tyr_keyspace_create(store, argv[2], NULL, &data));
  GOOD(tyr_queue_new(&queue));
  GOOD(tyr_put_start(data, tyr_text("a"), tyr_text("1"), queue, 1));
  GOOD(tyr_begin(store, &txn));
  GOOD(tyr_txn_put(txn, data, tyr_text("b"), tyr_text("2"), NULL));

  pid_t child = fork();
  CHECK(child >= 0);
  if (child == 0) {
    alarm(20);
    tyr_store *other = NULL;
    FAILS(tyr_get(data, tyr_text("a"), &bytes), TYR_UNAVAILABLE, "forked");
    FAILS(tyr_put(data, tyr_text("a"), tyr_text("child")), TYR_UNAVAILABLE, "forked");
    FAILS(tyr_commit(txn, NULL), TYR_UNAVAILABLE, "forked");
    FAILS(tyr_queue_take(queue, &done, 1, -1, &taken), TYR_UNAVAILABLE, "forked");
    FAILS(tyr_queue_free(queue), TYR_UNAVAILABLE, "forked");
    FAILS(tyr_open("elsewhere", NULL, &other), TYR_UNAVAILABLE, "exec");
    FAILS(tyr_close(store), TYR_UNAVAILABLE, "forked");
    tyr_error *error = tyr_close(store);
    CHECK(!tyr_error_is_open(error) && !tyr_error_is_retryable(error));
    CHECK(tyr_error_operation(error) == TYR_NO_OPERATION && !tyr_error_free(error));
    CHECK(tyr_handles() == 0);
    execl("/bin/true", "true", (char *)NULL);
    _exit(2);
  }
  int status = 0;
  CHECK(waitpid(child, &status, 0) == child);
  CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);

  GOOD(tyr_queue_take(queue, &done, 1, -1, &taken));
  CHECK(taken == 1 && done.tag == 1);
  GOOD(done.error);
  GOOD(tyr_commit(txn, NULL));
  GOOD(tyr_get(data, tyr_text("b"), &bytes));
  CHECK(is_text(tyr_bytes_slice(bytes), "2"));
  GOOD(tyr_bytes_free(bytes));
  GOOD(tyr_get(data, tyr_text("a"), &bytes));
  CHECK(is_text(tyr_bytes_slice(bytes), "1"));
  GOOD(tyr_bytes_free(bytes));
  GOOD(tyr_queue_free(queue));
  GOOD(tyr_keyspace_free(data));
  GOOD(tyr_close(store));
  CHECK(tyr_handles() == 0);
  return 0;
}
