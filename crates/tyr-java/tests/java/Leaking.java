import io.github.tyrstore.*;

/** Forgets handles, which {@code -Dtyr.leaks=true} tells; the argument is a folder. */
final class Leaking {
    private Leaking() {}

    public static void main(String[] arguments) {
        try (Tyr store = Tyr.open(arguments[0])) {
            long before = Inside.handles();
            forget(store);
            Expect.comesTrue("what is forgotten is given back", () -> Inside.handles() == before);
        }
        System.out.println("OK");
    }

    private static void forget(Tyr store) {
        Keyspace data = store.keyspaceOrCreate("data");
        data.put("a", new byte[1]);
        store.snapshot().get(data, "a");
        store.begin().put(data, "b", new byte[1]);
        Transaction committed = store.begin();
        committed.put(data, "c", new byte[1]);
        committed.commit();
    }
}
