import io.github.tyrstore.*;
import java.time.Duration;

/** The same on a cluster, whose address is the property {@code tyr.test.cluster}. */
public final class ClusterTest extends StoreCase {
    private static final String ADDRESS = System.getProperty("tyr.test.cluster");

    public void aClusterDoesWhatAFolderDoes() throws Exception {
        try (Tyr cluster = Tyr.connectOptions().timeout(Duration.ofSeconds(30))
                .connectTimeout(Duration.ofSeconds(30)).connect(ADDRESS);
                Keyspace there = cluster.keyspaceOrCreate("java",
                        KeyspaceConfig.DEFAULT.replication(1))) {
            there.put("a", Expect.utf8("one"));
            Operation<Long> count = cluster.transact(t -> {
                t.put(there, "b", t.get(there, "a"));
                t.delete(there, "a");
                return t.apply(there, "count", 0, Transform.add(1));
            });
            Expect.equal(1L, count.value());
            Expect.equal("one", Expect.text(there.getAsync("b").get()));
            try (Snapshot snapshot = cluster.snapshot()) {
                there.delete("b");
                Expect.equal("one", Expect.text(snapshot.get(there, "b")));
            }
            Expect.thrown(NotFoundException.class, "\"b\"", () -> there.get("b"));
            try (Transaction t = cluster.begin()) {
                t.expectVersion(there, "count", there.stat("count").version());
                there.apply("count", 0, Transform.add(1));
                t.put(there, "c", new byte[1]);
                Expect.thrown(ConflictException.class, "", t::commit);
            }
            byte[] large = new byte[3 << 20];
            large[large.length - 1] = 7;
            there.putAsync("large", large).get();
            Expect.equal(large, there.getAsync("large").get());
            Expect.equal("[count, large]", keys(there));
            Expect.equal(ADDRESS, cluster.place());
        }
    }

    private static String keys(Keyspace there) {
        StringBuilder keys = new StringBuilder("[");
        for (Entry entry : there.list(Scan.ALL.limit(1))) {
            keys.append(keys.length() > 1 ? ", " : "").append(entry.key());
        }
        return keys.append("]").toString();
    }

    public void optionsAreLookedAt() {
        ConnectOptions options = Tyr.connectOptions().tlsAuthorities(folder.resolve("none.pem"))
                .tlsDomain("node").tlsCertificate(folder.resolve("a"), folder.resolve("b"));
        Expect.thrown(InvalidArgumentException.class, "PEM", () -> options.connect(ADDRESS));
        ConnectOptions user = Tyr.connectOptions().user("ann", folder.resolve("none.key"));
        Expect.thrown(UnavailableException.class, "none.key", () -> user.connect(ADDRESS));
    }
}
