/* The slot word protocol between a thread and a reader in another thread or process.
 *
 * One bracket, {sequence odd, in use} .. {sequence even, not in use}, covers the slot's fields (`first_field` and
 * `second_field`: trace ids and span id) and the words of the thread's own object that change with them
 * (`record_field`: the OTEP 4947 record and the tags). The owner's identifier in the word does not change here;
 * slot_ownership.pml is about it.
 *
 * Property: a read that is accepted returns all fields of one and the same write, the one that the word names.
 *
 * Variants that must fail:
 *   WITHOUT_WRITER_FENCE   the odd store is a release store instead: that does not keep the fields behind it
 *   WITHOUT_READER_FENCE   the second load is an acquire load instead: that does not keep the fields before it
 *   WITHOUT_RELEASE_STORE  the even store is relaxed
 *   WITHOUT_ACQUIRE_LOAD   the first load is relaxed
 *   IN_USE_ONLY            the seed's protocol: no sequence, in_use is looked at before and after
 *   IN_USE_ONLY_FENCED     the same with both fences: the fences alone do not help
 *   SEQUENCE_WRAPS         a sequence that comes round within one read
 */
#define WORD 0
#define FIRST_FIELD 1
#define SECOND_FIELD 2
#define RECORD_FIELD 3

#define WRITES 3

#define LOCATIONS 4
#define MESSAGES (2 * WRITES + 1)
#define THREADS 2
#include "cpp_memory.pml"

#define WRITER 0
#define READER 1

#define IN_USE(word) ((word) & 1)
#define SEQUENCE(word) ((word) >> 1)

#if defined(IN_USE_ONLY) || defined(IN_USE_ONLY_FENCED)
#define WORD_OF(sequence, in_use) (in_use)
#elif defined(SEQUENCE_WRAPS)
#define WORD_OF(sequence, in_use) (((sequence) & 3) * 2 + (in_use))
#else
#define WORD_OF(sequence, in_use) ((sequence) * 2 + (in_use))
#define SEQUENCE_NAMES_THE_WRITE
#endif

#if defined(WITHOUT_WRITER_FENCE) || defined(IN_USE_ONLY)
#define FENCE_AFTER_ODD_STORE skip
#define ODD_STORE RELEASE
#else
#define FENCE_AFTER_ODD_STORE release_fence(WRITER)
#define ODD_STORE RELAXED
#endif

#if defined(WITHOUT_READER_FENCE) || defined(IN_USE_ONLY)
#define FENCE_BEFORE_SECOND_LOAD skip
#define SECOND_LOAD ACQUIRE
#else
#define FENCE_BEFORE_SECOND_LOAD acquire_fence(READER)
#define SECOND_LOAD RELAXED
#endif

#ifdef WITHOUT_RELEASE_STORE
#define EVEN_STORE RELAXED
#else
#define EVEN_STORE RELEASE
#endif

#ifdef WITHOUT_ACQUIRE_LOAD
#define FIRST_LOAD RELAXED
#else
#define FIRST_LOAD ACQUIRE
#endif

hidden byte accepted_read_is_one_write;
hidden byte accepted_read_is_the_named_write;
hidden byte unreached_initial_write;
hidden byte unreached_first_write;
hidden byte unreached_second_write;
hidden byte unreached_third_write;
hidden byte unreached_busy;
hidden byte unreached_changed;

active proctype writer()
{
    byte write = 1;
    do
    :: write <= WRITES ->
       store(WRITER, WORD, WORD_OF(2 * write - 1, 1), ODD_STORE);
       FENCE_AFTER_ODD_STORE;
       store(WRITER, FIRST_FIELD, write, RELAXED);
       store(WRITER, SECOND_FIELD, write, RELAXED);
       store(WRITER, RECORD_FIELD, write, RELAXED);
       store(WRITER, WORD, WORD_OF(2 * write, 0), EVEN_STORE);
       write++
    :: else -> break
    od
}

/* One read that may start at any time and knows nothing yet: a reader which has read before may see less, not more. */
active proctype reader()
{
    byte word, word_again, first_field, second_field, record_field;
    load(READER, WORD, FIRST_LOAD, word);
    if
    :: IN_USE(word) -> REACHED(unreached_busy)
    :: else ->
       load(READER, FIRST_FIELD, RELAXED, first_field);
       load(READER, SECOND_FIELD, RELAXED, second_field);
       load(READER, RECORD_FIELD, RELAXED, record_field);
       FENCE_BEFORE_SECOND_LOAD;
       load(READER, WORD, SECOND_LOAD, word_again);
       if
       :: word_again != word -> REACHED(unreached_changed)
       :: else ->
          d_step {
              accepted_read_is_one_write = (first_field == second_field && second_field == record_field);
              assert(accepted_read_is_one_write)
          }
#ifdef SEQUENCE_NAMES_THE_WRITE
          d_step {
              accepted_read_is_the_named_write = (SEQUENCE(word) == 2 * first_field);
              assert(accepted_read_is_the_named_write)
          }
#endif
          if
          :: first_field == 0 -> REACHED(unreached_initial_write)
          :: first_field == 1 -> REACHED(unreached_first_write)
          :: first_field == 2 -> REACHED(unreached_second_write)
          :: first_field == 3 -> REACHED(unreached_third_write)
          fi
       fi
    fi
}
