import io.github.tyrstore.Committed;
import io.github.tyrstore.Keyspace;
import io.github.tyrstore.KeyspaceConfig;
import io.github.tyrstore.NotFoundException;
import io.github.tyrstore.ReadRequest;
import io.github.tyrstore.Snapshot;
import io.github.tyrstore.TimedOutException;
import io.github.tyrstore.Transaction;
import io.github.tyrstore.Transform;
import io.github.tyrstore.Tyr;
import io.github.tyrstore.TyrException;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Iterator;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.function.Supplier;

/**
 * A client of a trial in Java: {@code Worker MODE PLACE KEYSPACE...}. What it is told and what it
 * answers is in src/worker/order.rs. MODE is {@code blocking}, or {@code started} for futures.
 */
final class Worker {
    private final boolean isStarted;
    private final Tyr tyr;
    private final List<Keyspace> keyspaces = new ArrayList<>();

    private Transaction open;
    private TimedOutException last;

    private Worker(boolean isStarted, String place) {
        this.isStarted = isStarted;
        tyr = place.startsWith("tyr://") ? Tyr.connect(place) : Tyr.open(place);
    }

    public static void main(String[] arguments) throws IOException {
        Worker worker = new Worker(arguments[0].equals("started"), arguments[1]);
        for (String name : Arrays.asList(arguments).subList(2, arguments.length)) {
            worker.keyspaces.add(worker.found(name));
        }
        BufferedReader in =
                new BufferedReader(new InputStreamReader(System.in, StandardCharsets.US_ASCII));
        PrintStream out = new PrintStream(System.out, false, "US-ASCII");
        out.print("ok\n");
        out.flush();
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            // In one piece, so that it is told or not when the process is killed.
            out.print(worker.follow(line) + "\n");
            out.flush();
        }
        worker.tyr.close();
    }

    private Keyspace found(String name) {
        try {
            return tyr.keyspace(name);
        } catch (NotFoundException none) {
            return tyr.createKeyspace(name, KeyspaceConfig.DEFAULT);
        }
    }

    private String follow(String line) {
        Iterator<String> words = Arrays.asList(line.split(" ")).iterator();
        try {
            List<String> told = answers(words);
            told.add(0, "ok");
            return String.join(" ", told);
        } catch (TyrException error) {
            String kind = error.getClass().getSimpleName().replace("Exception", "");
            return "error " + kind + " " + String.valueOf(error.getMessage()).replace('\n', ' ');
        } catch (IllegalStateException error) {
            return "error InvalidArgument " + error.getMessage();
        }
    }

    private List<String> answers(Iterator<String> words) {
        String verb = words.next();
        switch (verb) {
            case "read": return list(read(new Wanted(words)));
            case "size": return list(size(keyspace(words), words.next()));
            case "many": return many(words);
            case "snapshot": return snapshot(words);
            case "begin": return begin();
            case "in": return list(readIn(new Wanted(words)));
            case "commit": return commit(words);
            case "outcome": return outcome();
            default: throw new IllegalArgumentException("no such order: " + verb);
        }
    }

    /** A part of a blob. */
    private final class Wanted {
        final Keyspace keyspace;
        final String key;
        final long start;
        final long length;

        Wanted(Iterator<String> words) {
            keyspace = keyspace(words);
            key = words.next();
            start = Long.parseLong(words.next());
            length = Long.parseLong(words.next());
        }
    }

    private Keyspace keyspace(Iterator<String> words) {
        return keyspaces.get(Integer.parseInt(words.next()));
    }

    private String read(Wanted it) {
        return told(() -> isStarted
                ? wait(it.keyspace.readAsync(it.key, it.start, it.length))
                : it.keyspace.read(it.key, it.start, it.length));
    }

    private String size(Keyspace keyspace, String key) {
        try {
            return String.valueOf(
                    (isStarted ? wait(keyspace.statAsync(key)) : keyspace.stat(key)).size());
        } catch (NotFoundException none) {
            return "0";
        }
    }

    private List<String> many(Iterator<String> words) {
        List<ReadRequest> wanted = new ArrayList<>();
        while (words.hasNext()) {
            Wanted it = new Wanted(words);
            wanted.add(new ReadRequest(it.keyspace, it.key, it.start, it.length));
        }
        List<String> told = new ArrayList<>();
        List<byte[]> found = isStarted ? wait(tyr.readManyAsync(wanted)) : tyr.readMany(wanted);
        for (byte[] bytes : found) {
            told.add(bytes == null ? "-" : hex(bytes));
        }
        return told;
    }

    private List<String> snapshot(Iterator<String> words) {
        List<String> told = new ArrayList<>();
        try (Snapshot snapshot = isStarted ? wait(tyr.snapshotAsync()) : tyr.snapshot()) {
            while (words.hasNext()) {
                Wanted it = new Wanted(words);
                told.add(told(() -> isStarted
                        ? wait(snapshot.readAsync(it.keyspace, it.key, it.start, it.length))
                        : snapshot.read(it.keyspace, it.key, it.start, it.length)));
            }
        }
        return told;
    }

    private List<String> begin() {
        if (open != null) {
            open.close();
        }
        open = tyr.begin();
        return new ArrayList<>();
    }

    private String readIn(Wanted it) {
        return told(() -> isStarted
                ? wait(open.readAsync(it.keyspace, it.key, it.start, it.length))
                : open.read(it.keyspace, it.key, it.start, it.length));
    }

    private List<String> commit(Iterator<String> words) {
        try (Transaction transaction = open != null ? open : tyr.begin()) {
            open = null;
            last = null;
            while (words.hasNext()) {
                String verb = words.next();
                Keyspace keyspace = keyspace(words);
                String key = words.next();
                String what = words.next();
                switch (verb) {
                    case "append": transaction.append(keyspace, key, unhex(what)); break;
                    case "put": transaction.put(keyspace, key, unhex(what)); break;
                    case "compare": transaction.compare(keyspace, key, 0, unhex(what)); break;
                    case "add":
                        transaction.apply(keyspace, key, 0, Transform.add(Long.parseLong(what)));
                        break;
                    default: throw new IllegalArgumentException("no such change: " + verb);
                }
            }
            return ended(() -> isStarted ? wait(transaction.commitAsync()) : transaction.commit());
        }
    }

    private List<String> outcome() {
        TimedOutException error = last;
        last = null;
        if (error == null) {
            throw new IllegalStateException("the outcome of the last commit is known");
        }
        return ended(() -> isStarted ? wait(tyr.outcomeAsync(error)) : tyr.outcome(error));
    }

    private List<String> ended(Supplier<Committed> call) {
        Committed committed;
        try {
            committed = call.get();
        } catch (TimedOutException error) {
            last = error;
            throw error;
        }
        List<String> told = new ArrayList<>();
        for (Object answer : committed.answers()) {
            told.add(answer == null ? "." : String.valueOf(answer));
        }
        return told;
    }

    /** What a future answers, with the exception that a call that waits would have thrown. */
    private static <T> T wait(CompletableFuture<T> future) {
        try {
            return future.join();
        } catch (CompletionException error) {
            if (error.getCause() instanceof TyrException) {
                throw (TyrException) error.getCause();
            }
            throw error;
        }
    }

    private static String told(Supplier<byte[]> call) {
        try {
            return hex(call.get());
        } catch (NotFoundException none) {
            return "-";
        }
    }

    private static List<String> list(String word) {
        return new ArrayList<>(List.of(word));
    }

    private static String hex(byte[] bytes) {
        StringBuilder text = new StringBuilder("=");
        for (byte one : bytes) {
            text.append(Character.forDigit(one >> 4 & 15, 16)).append(Character.forDigit(one & 15, 16));
        }
        return text.toString();
    }

    private static byte[] unhex(String word) {
        byte[] bytes = new byte[word.length() / 2];
        for (int at = 0; at < bytes.length; at++) {
            bytes[at] = (byte) Integer.parseInt(word.substring(2 * at + 1, 2 * at + 3), 16);
        }
        return bytes;
    }
}
