/**
 * Týr, a transactional blob store: blobs of any size, written at any byte, with transactions over
 * many of them at once. Begin with {@link io.github.tyrstore.Tyr}.
 */
package io.github.tyrstore;
