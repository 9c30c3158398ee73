/* An event slot of a coroutine station, between the coroutine's thread and a harvester.
 *
 * The sequence is 0 while the slot is being written and 2k when event k is in it. The events here are all of one slot:
 * those in between go to the other slots.
 *
 * Property: a read that is accepted returns all fields of one and the same event, the one that the sequence names.
 *
 * Variants that must fail:
 *   WITHOUT_WRITER_FENCE   the 0 is a release store instead: that does not keep the fields behind it
 *   WITHOUT_READER_FENCE   the second load is an acquire load instead: that does not keep the fields before it
 *   WITHOUT_RELEASE_STORE  the last store is relaxed
 *   WITHOUT_ACQUIRE_LOAD   the first load is relaxed
 *   TEXT                   the specification's text: nothing marks a slot that is being written, nobody looks again
 *   UNMARKED               nothing marks it, but the reader looks again, with its fence
 */
#define SEQUENCE 0
#define FIRST_FIELD 1
#define SECOND_FIELD 2

#define EVENTS 3

#define LOCATIONS 3
#define MESSAGES (2 * EVENTS + 1)
#define THREADS 2
#include "cpp_memory.pml"

#define WRITER 0
#define READER 1

#if defined(TEXT) || defined(UNMARKED)
#define MARK skip
#elif defined(WITHOUT_WRITER_FENCE)
#define MARK store(WRITER, SEQUENCE, 0, RELEASE)
#else
#define MARK store(WRITER, SEQUENCE, 0, RELAXED); release_fence(WRITER)
#endif

#ifdef WITHOUT_RELEASE_STORE
#define PUBLISHING_STORE RELAXED
#else
#define PUBLISHING_STORE RELEASE
#endif

#ifdef WITHOUT_ACQUIRE_LOAD
#define FIRST_LOAD RELAXED
#else
#define FIRST_LOAD ACQUIRE
#endif

#if defined(TEXT)
#define LOOK_AGAIN again = sequence
#elif defined(WITHOUT_READER_FENCE)
#define LOOK_AGAIN load(READER, SEQUENCE, ACQUIRE, again)
#else
#define LOOK_AGAIN acquire_fence(READER); load(READER, SEQUENCE, RELAXED, again)
#endif

hidden byte accepted_read_is_one_write;
hidden byte accepted_read_is_the_named_write;
hidden byte unreached_nothing;
hidden byte unreached_changed;
hidden byte unreached_first_event;
hidden byte unreached_second_event;
hidden byte unreached_third_event;

active proctype writer()
{
    byte event = 1;
    do
    :: event <= EVENTS ->
       MARK;
       store(WRITER, FIRST_FIELD, event, RELAXED);
       store(WRITER, SECOND_FIELD, event, RELAXED);
       store(WRITER, SEQUENCE, 2 * event, PUBLISHING_STORE);
       event++
    :: else -> break
    od
}

/* One read that may start at any time and knows nothing yet. */
active proctype reader()
{
    byte sequence, again, first_field, second_field;
    load(READER, SEQUENCE, FIRST_LOAD, sequence);
    if
    :: sequence == 0 -> REACHED(unreached_nothing)
    :: else ->
       load(READER, FIRST_FIELD, RELAXED, first_field);
       load(READER, SECOND_FIELD, RELAXED, second_field);
       LOOK_AGAIN;
       if
       :: again != sequence -> REACHED(unreached_changed)
       :: else ->
          d_step {
              accepted_read_is_one_write = (first_field == second_field);
              assert(accepted_read_is_one_write)
          }
          d_step {
              accepted_read_is_the_named_write = (sequence == 2 * first_field);
              assert(accepted_read_is_the_named_write)
          }
          if
          :: first_field == 1 -> REACHED(unreached_first_event)
          :: first_field == 2 -> REACHED(unreached_second_event)
          :: first_field == 3 -> REACHED(unreached_third_event)
          :: else
          fi
       fi
    fi
}
