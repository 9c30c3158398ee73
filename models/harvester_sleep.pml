/* A harvester that goes to sleep, and probes that wake it: no event may be left lying.
 *
 * A probe stores its event and then looks whether the harvester sleeps; the harvester says that it sleeps and then looks
 * for events. If both looks could miss the other's store, the event would lie there until the next one. The stores of a
 * probe go through a store buffer here (x86's, and the least that ARM does): they become visible at any later time.
 * Either the probe empties it by a fence, or the harvester has it emptied from outside, by membarrier, which costs the
 * probe nothing.
 *
 * Property: when nothing moves any more, every event has been taken.
 *
 * Variants: FENCE (sound, for where membarrier is not to be had), NEITHER (must fail), LOOKS_BEFORE (the harvester looks
 * for events before it says that it sleeps; must fail).
 */
#define PROBES 2
#define EVENTS 2

#if !defined(FENCE) && !defined(NEITHER)
#define MEMBARRIER
#endif

byte head[PROBES];     /* as others see it */
byte buffered[PROBES]; /* as the probe has stored it */
byte taken[PROBES];
bool sleeping;
byte bytes; /* in the socket */

hidden byte everything_is_taken;
hidden byte unreached_sleep;
hidden byte unreached_wake;

#ifdef REACH
#define REACHED(name) d_step { name = false; assert(name) }
#else
#define REACHED(name) skip
#endif

active [PROBES] proctype probe()
{
    byte event = 1;
    bool seen;
    do
    :: event <= EVENTS ->
       buffered[_pid] = event;
#ifdef FENCE
       head[_pid] = buffered[_pid];
#endif
       seen = sleeping;
       if
       :: seen ->
          /* A compare-exchange empties the buffer. Who wins sends the byte. */
          atomic {
              head[_pid] = buffered[_pid];
              if
              :: sleeping -> sleeping = false; bytes++
              :: else
              fi
          };
          REACHED(unreached_wake)
       :: else
       fi;
       event++
    :: else -> break
    od
}

/* The buffers empty themselves, some time. */
active proctype memory()
{
end:
    do
    :: head[0] != buffered[0] -> head[0] = buffered[0]
    :: head[1] != buffered[1] -> head[1] = buffered[1]
    od
}

inline look(found)
{
    found = false;
    if
    :: taken[0] < head[0] -> taken[0] = head[0]; found = true
    :: else
    fi;
    if
    :: taken[1] < head[1] -> taken[1] = head[1]; found = true
    :: else
    fi
}

active proctype harvester()
{
    bool found;
    do
    :: look(found);
       if
       :: found
       :: else ->
#ifdef LOOKS_BEFORE
          look(found);
          sleeping = true;
#else
          sleeping = true;
#ifdef MEMBARRIER
          atomic { head[0] = buffered[0]; head[1] = buffered[1] };
#endif
          look(found);
#endif
          if
          :: found -> sleeping = false
          :: else ->
             REACHED(unreached_sleep);
end:
             bytes > 0;
             bytes = 0;
             sleeping = false
          fi
       fi
    od
}

active proctype end_of_everything()
{
    timeout;
    d_step {
        everything_is_taken = (taken[0] == EVENTS && taken[1] == EVENTS);
        assert(everything_is_taken)
    }
}
