import io.github.tyrstore.*;
import java.time.Duration;

/** A cluster dies under a program, which is told; the argument is an address. */
final class Dying {
    private Dying() {}

    public static void main(String[] arguments) throws Exception {
        try (Tyr cluster = Tyr.connectOptions().timeout(Duration.ofSeconds(2))
                .connect(arguments[0]);
                Keyspace data = cluster.keyspaceOrCreate("data",
                        KeyspaceConfig.DEFAULT.replication(1))) {
            data.put("a", new byte[1]);
            System.out.println("ready");
            // Whoever started this writes a line once the cluster is dead.
            System.in.read();
            TyrException read = Expect.thrown(TyrException.class, "", () -> data.get("a"));
            Expect.isTrue(isOfTheDead(read), "" + read);
            TyrException write = Expect.thrown(TyrException.class, "",
                    () -> data.append("a", new byte[1]));
            Expect.isTrue(isOfTheDead(write), "" + write);
            if (write instanceof TimedOutException) {
                TyrException still = Expect.thrown(TyrException.class, "",
                        () -> cluster.outcome((TimedOutException) write));
                Expect.isTrue(isOfTheDead(still), "" + still);
            }
            Throwable later = data.getAsync("a").handle((bytes, error) -> error).get();
            Expect.isTrue(isOfTheDead(later), "" + later);
        }
        System.out.println("told");
    }

    private static boolean isOfTheDead(Throwable error) {
        return error instanceof UnavailableException || error instanceof TimedOutException;
    }
}
