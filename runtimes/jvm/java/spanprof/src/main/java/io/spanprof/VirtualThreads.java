package io.spanprof;

/** Tells virtual threads from platform threads, also where the compiler knows of none. */
final class VirtualThreads {
  private static final Class<?> VIRTUAL = find();

  private static Class<?> find() {
    try {
      return Class.forName("java.lang.BaseVirtualThread");
    } catch (ClassNotFoundException e) {
      return null; // before 19
    }
  }

  static boolean isVirtual(Thread thread) {
    return VIRTUAL != null && VIRTUAL.isInstance(thread);
  }

  private VirtualThreads() {}
}
