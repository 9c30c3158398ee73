/* A thread's ring of coroutine events: one writer, one reader, in different processes.
 *
 * The writer looks at the tail only when its ring seems full, and counts an event as lost if it is full. The reader
 * takes what is between tail and head and gives the room back.
 *
 * Properties: what the reader takes are the events that were written, each once and in order; taken and lost are together
 * what was emitted.
 *
 * Variants that must fail:
 *   RELAXED_HEAD_STORE, RELAXED_HEAD_LOAD   a record may be read before it is there
 *   TAIL_BEFORE_READING                     room is given back before the record was read
 *   ROOM_NOT_LOOKED_AT                      a full ring is written to
 *
 * That the tail is stored with release and loaded with acquire keeps a store of the writer from passing a load of the
 * reader. In this machine, as in RC11 without load buffering, no store takes effect before an earlier load of another
 * thread, so their absence cannot be shown here.
 */
#define HEAD 0
#define TAIL 1
#define CELLS 2
#define CAPACITY 2
#define EVENTS 4

#define LOCATIONS 4
#define MESSAGES (EVENTS + 1)
#define THREADS 2
#include "cpp_memory.pml"

#define WRITER 0
#define READER 1

#ifdef RELAXED_HEAD_STORE
#define HEAD_STORE RELAXED
#else
#define HEAD_STORE RELEASE
#endif
#ifdef RELAXED_HEAD_LOAD
#define HEAD_LOAD RELAXED
#else
#define HEAD_LOAD ACQUIRE
#endif

byte value_at[EVENTS]; /* what the writer put at each position, for the property only */
byte emitted, lost, taken;
bool writer_ended;

hidden byte taken_is_what_was_written;
hidden byte taken_and_lost_are_all;
hidden byte unreached_full;
hidden byte unreached_reused_cell;

active proctype writer()
{
    byte head, tail, known_tail;
    do
    :: emitted < EVENTS ->
#ifndef ROOM_NOT_LOOKED_AT
       if
       :: head - known_tail == CAPACITY -> load(WRITER, TAIL, ACQUIRE, tail); known_tail = tail
       :: else
       fi;
#else
       known_tail = head;
#endif
       if
       :: head - known_tail == CAPACITY -> d_step { lost++; emitted++ }; REACHED(unreached_full)
       :: else ->
          d_step { value_at[head] = emitted + 1 };
          store(WRITER, CELLS + (head % CAPACITY), emitted + 1, RELAXED);
          head++;
          d_step { emitted++ };
          store(WRITER, HEAD, head, HEAD_STORE)
       fi
    :: else -> break
    od;
    writer_ended = true
}

active proctype reader()
{
    byte head, value;
    bool last;
    do
    :: last = writer_ended;
       if
       :: last -> happens_after(READER, WRITER) /* the process is gone, and the kernel has said so */
       :: else
       fi;
       load(READER, HEAD, HEAD_LOAD, head);
       do
       :: taken < head ->
#ifdef TAIL_BEFORE_READING
          store(READER, TAIL, taken + 1, RELEASE);
#endif
          load(READER, CELLS + (taken % CAPACITY), RELAXED, value);
          d_step {
              taken_is_what_was_written = (value == value_at[taken]);
              assert(taken_is_what_was_written)
          }
          if
          :: taken >= CAPACITY -> REACHED(unreached_reused_cell)
          :: else
          fi;
          taken++;
#ifndef TAIL_BEFORE_READING
          store(READER, TAIL, taken, RELEASE)
#endif
       :: else -> break
       od;
       if
       :: last -> break
       :: else
       fi
    od;
    skip; /* spin takes the loop's exit for a jump into the d_step */
    d_step {
        taken_and_lost_are_all = (taken + lost == EVENTS);
        assert(taken_and_lost_are_all)
    }
}
