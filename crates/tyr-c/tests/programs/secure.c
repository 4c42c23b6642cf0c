/* A cluster over TLS, as a user: `secure ADDRESS FOLDER`, where FOLDER has authority.pem, client.pem,
 * client.key and secret. Whoever lacks one of them does not come in. */
#include "check.h"

int main(int argc, char **argv) {
  CHECK(argc == 3);
  char authority[4096], certificate[4096], key[4096], secret[4096], text[256] = {0};
  snprintf(authority, sizeof authority, "%s/authority.pem", argv[2]);
  snprintf(certificate, sizeof certificate, "%s/client.pem", argv[2]);
  snprintf(key, sizeof key, "%s/client.key", argv[2]);
  snprintf(secret, sizeof secret, "%s/secret", argv[2]);
  FILE *file = fopen(secret, "r");
  CHECK(file != NULL && fgets(text, sizeof text, file) != NULL && fclose(file) == 0);

  tyr_store *store = NULL;
  tyr_keyspace *data = NULL;
  tyr_bytes *bytes = NULL;
  tyr_connect_options options = TYR_CONNECT_OPTIONS_INIT;
  options.user = "root";
  options.key_file = secret;
  options.tls_ca = authority;
  options.tls_certificate = certificate;
  options.tls_key = key;
  options.tls_domain = "example.org";
  options.connect_timeout_ms = 60000;
  GOOD(tyr_connect(argv[1], &options, &store));
  GOOD(tyr_keyspace_create(store, "secure", NULL, &data));
  GOOD(tyr_put(data, tyr_text("greeting"), tyr_text("hello")));
  GOOD(tyr_close(store));
  GOOD(tyr_keyspace_free(data));

  /* The key itself, and what the address says. */
  options.key_file = NULL;
  options.key = text;
  GOOD(tyr_connect(argv[1], &options, &store));
  GOOD(tyr_keyspace_find(store, "secure", &data));
  GOOD(tyr_get(data, tyr_text("greeting"), &bytes));
  CHECK(is_text(tyr_bytes_slice(bytes), "hello"));
  GOOD(tyr_bytes_free(bytes));
  GOOD(tyr_keyspace_free(data));
  GOOD(tyr_close(store));

  options.key = "wrong";
  FAILS(tyr_connect(argv[1], &options, &store), TYR_PERMISSION_DENIED, "not the user's key");
  options.user = "eve";
  options.key = text;
  FAILS(tyr_connect(argv[1], &options, &store), TYR_PERMISSION_DENIED, "no such user");

  /* Another domain, no certificate of the client's, nothing encrypted at all. */
  options.user = "root";
  options.tls_domain = "example.com";
  tyr_error *error = tyr_connect(argv[1], &options, &store);
  CHECK(error != NULL && strstr(tyr_error_text(error), "example.com") != NULL);
  CHECK(tyr_error_free(error));
  options.tls_domain = "example.org";
  options.tls_key = NULL;
  FAILS(tyr_connect(argv[1], &options, &store), TYR_INVALID_ARGUMENT, "go together");
  options.connect_timeout_ms = 2000;
  options.tls_certificate = NULL;
  error = tyr_connect(argv[1], &options, &store);
  CHECK(error != NULL);
  CHECK(tyr_error_free(error));
  options.tls_ca = NULL;
  options.tls_domain = NULL;
  error = tyr_connect(argv[1], &options, &store);
  CHECK(error != NULL);
  CHECK(tyr_error_free(error));
  CHECK(tyr_handles() == 0);
  return 0;
}
