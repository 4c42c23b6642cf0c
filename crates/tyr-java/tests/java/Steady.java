import io.github.tyrstore.*;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;

/** Many calls of every kind take no more memory than some; the argument is a folder. */
final class Steady {
    private static final int CALLS = 8_000;
    private static final long ROOM_KIB = 40 << 10;

    private Steady() {}

    public static void main(String[] arguments) throws Exception {
        try (Tyr store = Tyr.open(arguments[0]);
                Keyspace data = store.keyspaceOrCreate("data",
                        KeyspaceConfig.DEFAULT.durability(Durability.MEMORY))) {
            data.put("page", new byte[8192]);
            run(store, data);
            long before = Expect.settled(Inside::handles);
            long resident = resident();
            run(store, data);
            run(store, data);
            run(store, data);
            Expect.comesTrue("handles are given back", () -> Inside.handles() == before);
            long grown = resident() - resident;
            Expect.isTrue(grown < ROOM_KIB, "it has grown by " + grown + " KiB");
        }
        System.out.println("OK");
    }

    private static void run(Tyr store, Keyspace data) throws Exception {
        for (int call = 0; call < CALLS; call++) {
            data.get("page");
            data.getAsync("page").get();
            if (call % 10 == 0) {
                data.put("page", new byte[8192]);
                data.putAsync("small", new byte[800]).get();
                store.transact(t -> t.apply(data, "n", 0, Transform.add(1)));
                Expect.thrown(NotFoundException.class, "none", () -> data.get("none"));
                store.snapshot().close();
                data.scanPage(Scan.ALL);
            }
        }
    }

    private static long resident() throws IOException {
        System.gc();
        for (String line : Files.readAllLines(Path.of("/proc/self/status"))) {
            if (line.startsWith("VmRSS:")) {
                return Long.parseLong(line.replaceAll("[^0-9]", ""));
            }
        }
        throw new IOException("/proc/self/status has no VmRSS");
    }
}
