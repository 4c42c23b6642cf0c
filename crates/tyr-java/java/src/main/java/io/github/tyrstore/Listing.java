package io.github.tyrstore;

import java.util.Iterator;
import java.util.List;
import java.util.NoSuchElementException;
import java.util.function.Function;

/** All blobs of a listing, each page asked for when the last one is used up. */
final class Listing implements Iterable<Entry> {
    private final Scan scan;
    private final Function<Scan, Page> fetch;

    Listing(Scan scan, Function<Scan, Page> fetch) {
        this.scan = scan;
        this.fetch = fetch;
    }

    @Override
    public Iterator<Entry> iterator() {
        return new Iterator<>() {
            private Scan next = scan;
            private Iterator<Entry> found = List.<Entry>of().iterator();

            @Override
            public boolean hasNext() {
                while (!found.hasNext() && next != null) {
                    // Where it fails it goes on there when it is asked again.
                    Page page = fetch.apply(next);
                    next = page.resume().map(next::resumed).orElse(null);
                    found = page.entries().iterator();
                }
                return found.hasNext();
            }

            @Override
            public Entry next() {
                if (!hasNext()) {
                    throw new NoSuchElementException("that was all");
                }
                return found.next();
            }
        };
    }
}
