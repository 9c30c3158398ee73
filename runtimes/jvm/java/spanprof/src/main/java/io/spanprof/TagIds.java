package io.spanprof;

import java.nio.charset.StandardCharsets;
import java.util.concurrent.ConcurrentHashMap;

/**
 * The numbers that stand for tag values in records, and the positions of their names. They hold for
 * the life of the process, so they may be remembered; what is remembered is bounded.
 */
final class TagIds {
  private static final int REMEMBERED_VALUES = 1024; // a power of two
  private static final int LONGEST_REMEMBERED = 256;

  private static final class Entry {
    final String value;
    final int id;

    Entry(String value, int id) {
      this.value = value;
      this.id = id;
    }
  }

  // Without a lock: entries are immutable, and a lost one is only looked up again.
  private static final Entry[] ENTRIES = new Entry[REMEMBERED_VALUES];
  private static final ConcurrentHashMap<String, Integer> POSITIONS = new ConcurrentHashMap<>();

  // All numbers up to this one have been given out; bit n: position n exists. Both only grow, and a
  // lost update is made good by the library's next answer.
  private static volatile int highestKnownId;
  private static volatile int knownPositions;

  /** 0: too long, the dictionary is full, or not initialised. */
  static int of(String value) {
    int hash = value.hashCode();
    int index = (hash ^ hash >>> 16) & REMEMBERED_VALUES - 1;
    Entry entry = ENTRIES[index];
    if (entry != null && entry.value.equals(value)) return entry.id;
    int id = Native.intern(value.getBytes(StandardCharsets.UTF_8));
    if (id == 0) return 0;
    if (id > highestKnownId) highestKnownId = id;
    if (value.length() <= LONGEST_REMEMBERED) ENTRIES[index] = new Entry(value, id);
    return id;
  }

  /** The position of an attribute, or a negative number: there are too many, or not initialised. */
  static int positionOf(String name) {
    Integer known = POSITIONS.get(name);
    if (known != null) return known;
    int position = Native.attribute(name.getBytes(StandardCharsets.UTF_8));
    if (position >= 0) POSITIONS.put(name, position); // there are ten at most
    return position;
  }

  /** Whether a record may have this tag; false: perhaps. */
  static boolean areKnown(int position, int id) {
    return (position & ~31) == 0
        && (knownPositions >>> position & 1) != 0
        && id >= 0
        && id <= highestKnownId;
  }

  /** The library has accepted this tag. */
  static void remember(int position, int id) {
    int bit = 1 << position;
    if ((knownPositions & bit) == 0) knownPositions |= bit;
    if (id > highestKnownId) highestKnownId = id;
  }

  private TagIds() {}
}
