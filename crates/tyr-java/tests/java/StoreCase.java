import io.github.tyrstore.Keyspace;
import io.github.tyrstore.Tyr;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Comparator;
import java.util.stream.Stream;

/** A test with a store of its own in a folder. */
abstract class StoreCase implements AutoCloseable {
    final Path folder;
    final Tyr store;
    final Keyspace data;

    StoreCase() {
        try {
            folder = Files.createTempDirectory("tyr-java-");
        } catch (IOException error) {
            throw new UncheckedIOException(error);
        }
        store = Tyr.open(folder.resolve("store"));
        data = store.keyspaceOrCreate("data");
    }

    @Override
    public void close() throws IOException {
        store.close();
        try (Stream<Path> all = Files.walk(folder)) {
            for (Path path : (Iterable<Path>) all.sorted(Comparator.reverseOrder())::iterator) {
                Files.delete(path);
            }
        }
    }
}
