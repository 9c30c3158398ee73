/* The thread record, read by a signal handler on the thread that writes it.
 *
 * One thread: no memory model is needed, memory is what the last executed store left. But the compiler may reorder
 * stores between two compiler fences, and a signal may come between any two stores of the compiled order. So a write
 * executes its stores in any order which the fences and the order of stores to one location leave.
 *
 *   write     refuse (and count) if the marker is 0; marker = 0; compiler fence; fields; compiler fence; marker = new
 *   read      marker 0: no context; otherwise the copy is accepted
 *
 * The marker is the checksum. It is the same value for all writes here, because it can be: with the seed's function it
 * is constant wherever the root span is the span with its halves exchanged. Nothing may depend on its value.
 *
 * The handler can interrupt the writer, and a second handler can interrupt the first one. Either reads or writes.
 * A reading handler is not interrupted by a writing one: a sampling handler is installed with all signals masked.
 *
 * Properties:
 *   accepted_read_is_one_write   an accepted copy is the last completed write, whole;
 *   last_write_stays             at the end the record is the last completed write, whole, and is published.
 *
 * Variants that must fail:
 *   WITHOUT_FIRST_FENCE, WITHOUT_SECOND_FENCE
 *   WITHOUT_REFUSAL          a write is started within another one
 *   MARKER_CHECKED_TWICE     a reading handler can be interrupted by a writing one, and looks at the marker before and
 *                            after: that does not help, since the marker's value may not change
 * Variant that must hold:
 *   SEQUENCE_CHECKED_TWICE   as before, but the reading handler compares the slot's sequence before and after
 */
#if defined(MARKER_CHECKED_TWICE) || defined(SEQUENCE_CHECKED_TWICE)
#define READS_CAN_BE_INTERRUPTED true
#else
#define READS_CAN_BE_INTERRUPTED false
#endif

#define FIELDS 4 /* span, root span, tags, trace id */
#define WRITES_BY_THREAD 2

byte marker = 1;
byte field[FIELDS];
byte sequence;         /* of the slot's bracket: changes with every write that is not refused */
byte last_completed;   /* which write: 1 and 2 by the thread, 3 and 4 by the handlers; 0 is the initial context */
byte level;            /* 0: the thread runs; 1, 2: a handler runs */
bool in_handler[3];
bool reading[3];       /* a read is under way at this level */
byte ended;
byte refused;

hidden byte accepted_read_is_one_write;
hidden byte last_write_stays;
hidden byte unreached_read_of_a_write_by_the_thread;
hidden byte unreached_read_of_a_write_by_a_handler;
hidden byte unreached_read_in_mid_write;
hidden byte unreached_refusal;
hidden byte unreached_handler_within_a_handler;
hidden byte unreached_write_between_check_and_marker;

#ifdef REACH
#define REACHED(name) d_step { name = false; assert(name) }
#else
#define REACHED(name) skip
#endif

#define ALL_FIELDS 15 /* a bit for each field that is not stored yet */

#ifdef WITHOUT_FIRST_FENCE
#define FIELDS_MAY_START 1
#else
#define FIELDS_MAY_START marker_is_0
#endif

#ifdef WITHOUT_SECOND_FENCE
#define FIELDS_ARE_DONE 1
#else
#define FIELDS_ARE_DONE (to_store == 0)
#endif

#ifdef WITHOUT_REFUSAL
#define WRITES_ARE_NESTED true
#else
#define WRITES_ARE_NESTED false
#endif

#if defined(SEQUENCE_CHECKED_TWICE)
#define UNCHANGED (sequence == sequence_before)
#elif defined(MARKER_CHECKED_TWICE)
#define UNCHANGED (marker != 0)
#else
#define UNCHANGED 1
#endif

/* `to_store` has a bit for each store that is not executed yet; `marker_is_0` is the first, `marker_is_new` the last.
 * Each turn of the loop executes one store that the fences and the marker's own order allow to be the next one. */
inline write_record(write)
{
    if
    :: marker == 0 && !WRITES_ARE_NESTED -> refused++; REACHED(unreached_refusal)
    :: else ->
       sequence_before = sequence;
       skip;                                     /* a signal may come between the check and the first store */
       to_store = ALL_FIELDS;
       marker_is_0 = false;
       marker_is_new = false;
       do
       :: !marker_is_0 ->
          d_step {
              if
              :: sequence != sequence_before -> between = true
              :: else
              fi;
              marker = 0; sequence++; marker_is_0 = true
          }
          if
          :: between -> REACHED(unreached_write_between_check_and_marker); between = false
          :: else
          fi
       :: (to_store & 1) && FIELDS_MAY_START -> d_step { field[0] = write; to_store = to_store & 14 }
       :: (to_store & 2) && FIELDS_MAY_START -> d_step { field[1] = write; to_store = to_store & 13 }
       :: (to_store & 4) && FIELDS_MAY_START -> d_step { field[2] = write; to_store = to_store & 11 }
       :: (to_store & 8) && FIELDS_MAY_START -> d_step { field[3] = write; to_store = to_store & 7 }
       :: marker_is_0 && !marker_is_new && FIELDS_ARE_DONE ->
          d_step { marker = 1; sequence++; marker_is_new = true; last_completed = write }
       :: to_store == 0 && marker_is_new -> break
       od
    fi
}

inline read_record(at_level)
{
    d_step { reading[at_level] = true; sequence_before = sequence };
    if
    :: marker == 0 -> REACHED(unreached_read_in_mid_write)
    :: else ->
       copy[0] = field[0];
       copy[1] = field[1];
       copy[2] = field[2];
       copy[3] = field[3];
       if
       :: d_step {
              UNCHANGED ->
              accepted_read_is_one_write = (copy[0] == last_completed && copy[1] == last_completed &&
                                            copy[2] == last_completed && copy[3] == last_completed);
              assert(accepted_read_is_one_write)
          }
          if
          :: copy[0] == 1 || copy[0] == 2 -> REACHED(unreached_read_of_a_write_by_the_thread)
          :: copy[0] >= 3 -> REACHED(unreached_read_of_a_write_by_a_handler)
          :: else
          fi
       :: else
       fi
    fi;
    d_step { reading[at_level] = false; copy[0] = 0; copy[1] = 0; copy[2] = 0; copy[3] = 0 }
}

active proctype thread() provided (level == 0)
{
    byte write = 1, to_store, sequence_before;
    bool marker_is_0, marker_is_new, between;
    do
    :: write <= WRITES_BY_THREAD -> write_record(write); write++
    :: else -> break
    od;
    ended++
}

/* Two signals, each delivered twice at most, at any point; the second may also interrupt the first one's handler.
 * The thread is process 0 and the handlers are 1 and 2, which is their level, too. */
active [2] proctype handler() provided (level == _pid || (level < _pid && !in_handler[_pid]))
{
    byte write = 2 + _pid;
    byte deliveries, to_store, sequence_before;
    byte copy[FIELDS];
    bool marker_is_0, marker_is_new, between;
    byte interrupted_level;
    do
    :: deliveries < 2 ->
       atomic {
           interrupted_level = level;
           level = _pid;
           in_handler[_pid] = true;
           deliveries++;
           if
           :: interrupted_level == 1 -> REACHED(unreached_handler_within_a_handler)
           :: else
           fi
       }
       if
       :: !reading[1] || _pid == 1 || READS_CAN_BE_INTERRUPTED -> write_record(write)
       :: read_record(_pid)
       fi;
       skip; /* spin does not let the write's loop end in a d_step */
       d_step { level = interrupted_level; in_handler[_pid] = false; interrupted_level = 0; to_store = 0; sequence_before = 0; marker_is_0 = false; marker_is_new = false }
    :: break
    od;
    ended++
}

active proctype last_state()
{
    ended == 3 && level == 0 ->
    d_step {
        last_write_stays = (marker == 1 && field[0] == last_completed && field[1] == last_completed &&
                            field[2] == last_completed && field[3] == last_completed);
        assert(last_write_stays)
    }
}
