package io.github.tyrstore;

import java.io.IOException;
import java.io.InputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;

/** Finds the native library: the file of {@code -Dtyr.library}, or the one in the jar. */
final class Library {
    private Library() {}

    static void load() {
        String given = System.getProperty("tyr.library");
        if (given != null) {
            System.load(Path.of(given).toAbsolutePath().toString());
            return;
        }
        String platform = platform();
        String name = "/META-INF/native/" + platform + "/libtyr_java.so";
        try (InputStream packed = Library.class.getResourceAsStream(name)) {
            if (packed == null) {
                throw new UnsatisfiedLinkError(
                        "this jar has no native library for " + platform + " (" + name
                                + "): build it there, or say -Dtyr.library=FILE");
            }
            unpack(packed);
        } catch (IOException error) {
            UnsatisfiedLinkError unpacked = new UnsatisfiedLinkError(
                    "the native library cannot be unpacked into java.io.tmpdir; give another"
                            + " folder, or say -Dtyr.library=FILE: " + error);
            unpacked.initCause(error);
            throw unpacked;
        }
    }

    /** Once it is loaded the file has no use, so nothing is left behind. */
    private static void unpack(InputStream packed) throws IOException {
        Path file = Files.createTempFile("libtyr_java-", ".so");
        try {
            Files.copy(packed, file, StandardCopyOption.REPLACE_EXISTING);
            System.load(file.toAbsolutePath().toString());
        } finally {
            Files.deleteIfExists(file);
        }
    }

    private static String platform() {
        String arch = System.getProperty("os.arch");
        return System.getProperty("os.name").toLowerCase(java.util.Locale.ROOT) + "-"
                + (arch.equals("amd64") ? "x86_64" : arch);
    }
}
