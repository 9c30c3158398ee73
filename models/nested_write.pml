/* Both protocols at once: the thread's writes, a signal handler's writes on the same thread, a reader on another one.
 *
 * A write takes the marker of the thread record (0: a write is under way, refuse a nested one), and only then reads
 * the idle sequence and opens the slot's bracket:
 *
 *   marker 0: refuse; marker = 0; compiler fence; sequence = the idle one; {sequence + 1, in use}; release fence;
 *   fields; idle sequence += 2; {idle sequence} release; compiler fence; marker = new
 *
 * Property: a read that is accepted returns all fields of one write (by the reader of slot_sequence.pml).
 *
 * Variants that must hold:
 *   ADVANCED_AT_THE_BEGINNING  the idle sequence is advanced when the bracket is opened, not when it is closed. Then the
 *                            marker may also be given back first (with MARKER_BEFORE_EVEN_WORD): nested writes go on from
 *                            the sequence that is taken, the word may go back once, but no sequence is used twice.
 * Variants that must fail:
 *   SEQUENCE_BEFORE_MARKER   the sequence is read before the marker is taken: a handler's whole write fits in between,
 *                            the interrupted write then uses the same sequence again, and a reader finds an unchanged
 *                            word around two different writes
 *   MARKER_BEFORE_EVEN_WORD  the marker is given back before the bracket is closed: two nested writes fit in between, and
 *                            the interrupted write then closes with a sequence that one of them has used
 *   WITHOUT_MARKER           nested writes are not refused
 */
#define WORD 0
#define FIRST_FIELD 1
#define SECOND_FIELD 2

#define LOCATIONS 3
#define MESSAGES 11
#define THREADS 2
#include "cpp_memory.pml"

#define WRITER 0   /* the thread and its handler: they share one view of the memory */
#define READER 1

#define WORD_OF(sequence, in_use) ((sequence) * 2 + (in_use))
#define IN_USE(word) ((word) & 1)

/* Only this thread looks at the marker, so it is an ordinary variable; the same value stands for all checksums. */
byte marker = 1;
byte idle_sequence; /* the thread's own copy of the word's sequence, as of the last bracket it closed */
bool in_handler;
byte ended;

hidden byte accepted_read_is_one_write;
hidden byte unreached_thread_write;
hidden byte unreached_handler_write;
hidden byte unreached_refusal;

#ifdef WITHOUT_MARKER
#define MUST_REFUSE false
#else
#define MUST_REFUSE (marker == 0)
#endif

inline write_context(context)
{
#ifdef SEQUENCE_BEFORE_MARKER
    sequence = idle_sequence;
#endif
    if
    :: MUST_REFUSE -> REACHED(unreached_refusal)
    :: else ->
       marker = 0;
#ifndef SEQUENCE_BEFORE_MARKER
       sequence = idle_sequence;
#endif
       store(WRITER, WORD, WORD_OF(sequence + 1, 1), RELAXED);
#ifdef ADVANCED_AT_THE_BEGINNING
       idle_sequence = sequence + 2;
#endif
       release_fence(WRITER);
       store(WRITER, FIRST_FIELD, context, RELAXED);
       store(WRITER, SECOND_FIELD, context, RELAXED);
#ifdef MARKER_BEFORE_EVEN_WORD
       marker = 1;
#endif
#if defined(ADVANCED_AT_THE_BEGINNING)
       sequence = sequence + 2;
#elif defined(SEQUENCE_BEFORE_MARKER)
       sequence = sequence + 2;
       idle_sequence = sequence;
#else
       sequence = idle_sequence + 2;
       idle_sequence = sequence;
#endif
       store(WRITER, WORD, WORD_OF(sequence, 0), RELEASE);
#ifndef MARKER_BEFORE_EVEN_WORD
       marker = 1
#else
       skip
#endif
    fi
}

active proctype thread() provided (!in_handler)
{
    byte sequence;
    write_context(1);
    write_context(2);
    d_step { sequence = 0; ended++ }
}

active proctype handler()
{
    byte sequence, deliveries;
    do
    :: deliveries < 3 ->
       in_handler = true;
       write_context(3 + deliveries);
       deliveries++;
       in_handler = false
    :: break
    od;
    skip; /* spin does not let a loop end in a d_step */
    d_step { sequence = 0; deliveries = 0; ended++ }
}

/* Runs when all is over and misses nothing by that: see slot_ownership.pml. */
active proctype reader()
{
    byte word, word_again, first_field, second_field;
    atomic {
        ended == 2 ->
        load(READER, WORD, ACQUIRE, word);
        if
        :: IN_USE(word) -> skip
        :: else ->
           load(READER, FIRST_FIELD, RELAXED, first_field);
           load(READER, SECOND_FIELD, RELAXED, second_field);
           acquire_fence(READER);
           load(READER, WORD, RELAXED, word_again);
           if
           :: word_again != word -> skip
           :: else ->
              d_step {
                  accepted_read_is_one_write = (first_field == second_field);
                  assert(accepted_read_is_one_write)
              }
              if
              :: first_field == 1 || first_field == 2 -> REACHED(unreached_thread_write)
              :: first_field >= 3 -> REACHED(unreached_handler_write)
              :: else
              fi
           fi
        fi
    }
}
