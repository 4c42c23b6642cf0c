package io.github.tyrstore;

import java.nio.file.Path;
import java.time.Duration;
import java.util.Objects;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.Executor;

/** How a cluster is connected to; see {@link Tyr#connectOptions}. An address may say it too. */
public final class ConnectOptions {
    private final Packing words = new Packing();
    private Executor executor = Tyr.DEFAULT_EXECUTOR;

    ConnectOptions() {}

    /** The user, with a key. */
    public ConnectOptions user(String user, String key) {
        Objects.requireNonNull(key);
        words.word("user", Objects.requireNonNull(user)).word("key", key);
        return this;
    }

    /** The user, with a file that has the key. */
    public ConnectOptions user(String user, Path keyFile) {
        Objects.requireNonNull(keyFile);
        words.word("user", Objects.requireNonNull(user)).word("key_file", keyFile);
        return this;
    }

    /** How long a call may take. */
    public ConnectOptions timeout(Duration timeout) {
        words.word("timeout_ms", Check.count("time", timeout.toMillis()));
        return this;
    }

    /** How long it may take until a node answers. */
    public ConnectOptions connectTimeout(Duration timeout) {
        words.word("connect_timeout_ms", Check.count("time", timeout.toMillis()));
        return this;
    }

    /** TLS, with the authorities in this file. */
    public ConnectOptions tlsAuthorities(Path file) {
        words.word("tls_ca", Objects.requireNonNull(file));
        return this;
    }

    /** A certificate of ours, with its key. */
    public ConnectOptions tlsCertificate(Path certificate, Path key) {
        Objects.requireNonNull(key);
        words.word("tls_certificate", Objects.requireNonNull(certificate)).word("tls_key", key);
        return this;
    }

    /** The name that the nodes' certificates are for. */
    public ConnectOptions tlsDomain(String domain) {
        words.word("tls_domain", Objects.requireNonNull(domain));
        return this;
    }

    /** What completes futures; {@link java.util.concurrent.ForkJoinPool#commonPool} by default. */
    public ConnectOptions executor(Executor executor) {
        this.executor = Objects.requireNonNull(executor);
        return this;
    }

    /** Connects to a cluster: {@code tyr://host:port,host:port}, some of its nodes. */
    public Tyr connect(String address) {
        return call(address).await();
    }

    /** The same, started. */
    public CompletableFuture<Tyr> connectAsync(String address) {
        return call(address).start(executor);
    }

    private Call<Tyr> call(String address) {
        byte[] packed = new Packing().raw(words).word("address", (Object) address).done();
        // What follows the addresses may name files with keys: it is not shown.
        String place = Objects.requireNonNull(address).split("\\?", 2)[0];
        Executor with = executor;
        return new Call<>(Op.CONNECT, null, answer -> new Tyr(place, answer, with)).data(packed);
    }
}
