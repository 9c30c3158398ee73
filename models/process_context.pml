/* The OTEP 4719 process context: a header whose stamp brackets a pointer and a size.
 *
 *   publish   payload; pointer, size; fence; stamp
 *   update    new payload in new memory; stamp = 0; fence; pointer, size; fence; a new, different stamp
 *   read      stamp, refuse 0; fence; pointer, size; payload; fence; stamp again, refuse (retry) if it is another
 *
 * All accesses are relaxed; the fences carry everything. The code's fences are sequentially consistent ones, of which
 * only the acquire and release parts are modelled (so the result needs no more than those). Old payloads stay where
 * they are for ever.
 *
 * Property: an accepted read has pointer, size and payload of one publication.
 *
 * Variants that must fail:
 *   WITHOUT_WRITERS_FIRST_FENCE, WITHOUT_WRITERS_SECOND_FENCE, WITHOUT_READERS_FIRST_FENCE,
 *   WITHOUT_READERS_SECOND_FENCE
 *   SAME_STAMP_AGAIN      the new stamp equals the old one (a clock that has not moved)
 *   PAYLOAD_IN_PLACE      the payload's memory is written again, before the stamp is taken away
 */
#define STAMP 0
#define POINTER 1
#define SIZE 2
#define PAYLOADS 3 /* one location for each publication's payload */

#define PUBLICATIONS 3

#define LOCATIONS (PAYLOADS + PUBLICATIONS)
#define MESSAGES (2 * PUBLICATIONS + 1)
#define THREADS 2
#include "cpp_memory.pml"

#define WRITER 0
#define READER 1

#ifdef PAYLOAD_IN_PLACE
#define PAYLOAD_AT(pointer) PAYLOADS
#else
#define PAYLOAD_AT(pointer) (PAYLOADS + (pointer) - 1)
#endif

#ifdef SAME_STAMP_AGAIN
#define STAMP_OF(publication) 1
#else
#define STAMP_OF(publication) (publication)
#endif

#ifdef WITHOUT_WRITERS_FIRST_FENCE
#define WRITERS_FIRST_FENCE skip
#else
#define WRITERS_FIRST_FENCE release_fence(WRITER)
#endif
#ifdef WITHOUT_WRITERS_SECOND_FENCE
#define WRITERS_SECOND_FENCE skip
#else
#define WRITERS_SECOND_FENCE release_fence(WRITER)
#endif
#ifdef WITHOUT_READERS_FIRST_FENCE
#define READERS_FIRST_FENCE skip
#else
#define READERS_FIRST_FENCE acquire_fence(READER)
#endif
#ifdef WITHOUT_READERS_SECOND_FENCE
#define READERS_SECOND_FENCE skip
#else
#define READERS_SECOND_FENCE acquire_fence(READER)
#endif

hidden byte accepted_read_is_one_publication;
hidden byte unreached_first_publication;
hidden byte unreached_second_publication;
hidden byte unreached_third_publication;
hidden byte unreached_being_changed;
hidden byte unreached_changed;

active proctype writer()
{
    byte publication = 1;
    do
    :: publication <= PUBLICATIONS ->
       store(WRITER, PAYLOAD_AT(publication), publication, RELAXED);
       if
       :: publication > 1 ->
          store(WRITER, STAMP, 0, RELAXED);
          WRITERS_FIRST_FENCE
       :: else
       fi;
       store(WRITER, POINTER, publication, RELAXED);
       store(WRITER, SIZE, publication, RELAXED);
       WRITERS_SECOND_FENCE;
       store(WRITER, STAMP, STAMP_OF(publication), RELAXED);
       publication++
    :: else -> break
    od
}

active proctype reader()
{
    byte stamp, stamp_again, pointer, size, payload;
    load(READER, STAMP, RELAXED, stamp);
    if
    :: stamp == 0 -> REACHED(unreached_being_changed)
    :: else ->
       READERS_FIRST_FENCE;
       load(READER, POINTER, RELAXED, pointer);
       load(READER, SIZE, RELAXED, size);
       if
       :: pointer != 0 -> load(READER, PAYLOAD_AT(pointer), RELAXED, payload)
       :: else
       fi;
       READERS_SECOND_FENCE;
       load(READER, STAMP, RELAXED, stamp_again);
       if
       :: stamp_again != stamp -> REACHED(unreached_changed)
       :: else ->
          d_step {
              accepted_read_is_one_publication = (pointer != 0 && pointer == size && size == payload);
              assert(accepted_read_is_one_publication)
          }
          if
          :: pointer == 1 -> REACHED(unreached_first_publication)
          :: pointer == 2 -> REACHED(unreached_second_publication)
          :: pointer == 3 -> REACHED(unreached_third_publication)
          :: else
          fi
       fi
    fi
}
