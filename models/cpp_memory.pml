/* The C++20 memory model for relaxed, acquire and release atomics, as a machine that spin can search.
 *
 * Every location keeps its whole modification order: a list of messages. A message carries the value and a view:
 * for each location, the oldest position that somebody who acquires the message may still read. A thread carries
 * three views:
 *   seen         what it may no longer read behind;
 *   acquirable   what its next acquire fence will add to `seen`: the views of all messages it has read;
 *   releasable   what its last release fence covered: the view that its relaxed stores carry.
 * Threads run in program order. All weakness comes from loads: a load takes *any* message that is not behind
 * `seen`. That covers stores which become visible late or in another order, loads which run early, and stores
 * which reach one observer before another; it is weaker than ARMv8 and much weaker than x86.
 *
 * The rules are RC11's, without sequentially consistent accesses and with C++20's release sequences (a later
 * relaxed store by the same thread does not continue one; a read-modify-write does).
 *
 * A store always goes to the end of the modification order. C++ also lets it go before messages its thread has not
 * seen. Nothing is lost as long as each store's thread has seen all earlier messages of that location, so just this
 * is asserted at every store: `writers_are_ordered`. Broken variants whose point is that writers race define
 * WRITERS_MAY_RACE; they must fail, so executions which are not looked at cannot make them look sound.
 *
 * The model defines LOCATIONS, MESSAGES (the longest modification order, with the initial value) and THREADS
 * before it includes this file. Everything is initially 0. Values are bytes.
 */

#define MESSAGE(location, position) ((location) * MESSAGES + (position))
#define MESSAGE_VIEW(location, position, other) (MESSAGE(location, position) * LOCATIONS + (other))
#define VIEW(thread, location) ((thread) * LOCATIONS + (location))

#define RELAXED false
#define ACQUIRE true
#define RELEASE true

byte message_value[LOCATIONS * MESSAGES];
byte message_view[LOCATIONS * MESSAGES * LOCATIONS];
byte newest[LOCATIONS];

byte seen[THREADS * LOCATIONS];
byte acquirable[THREADS * LOCATIONS];
byte releasable[THREADS * LOCATIONS];

/* Scratch, 0 outside of an operation so that it adds no states. */
byte chosen;
byte other;

/* Assertions are written as a named flag: pan prints the name, and `run` compares it with the expected one. */
hidden byte writers_are_ordered;
hidden byte history_is_long_enough;

#define RAISE(target, floor) target = ((target) < (floor) -> (floor) : (target))

inline observe_message(thread, location, position, is_acquire)
{
    for (other : 0 .. LOCATIONS - 1) {
        RAISE(acquirable[VIEW(thread, other)], message_view[MESSAGE_VIEW(location, position, other)]);
        if
        :: is_acquire -> RAISE(seen[VIEW(thread, other)], message_view[MESSAGE_VIEW(location, position, other)])
        :: else
        fi
    }
    RAISE(acquirable[VIEW(thread, location)], position);
    RAISE(seen[VIEW(thread, location)], position);
    other = 0
}

inline append_message(thread, location, new_value, is_release)
{
    history_is_long_enough = (newest[location] + 1 < MESSAGES);
    assert(history_is_long_enough);
    newest[location]++;
    message_value[MESSAGE(location, newest[location])] = new_value;
    seen[VIEW(thread, location)] = newest[location];
    acquirable[VIEW(thread, location)] = newest[location];
    for (other : 0 .. LOCATIONS - 1) {
        message_view[MESSAGE_VIEW(location, newest[location], other)] =
            (is_release -> seen[VIEW(thread, other)] : releasable[VIEW(thread, other)])
    }
    message_view[MESSAGE_VIEW(location, newest[location], location)] = newest[location];
    other = 0
}

inline store(thread, location, new_value, is_release)
{
    d_step {
#ifndef WRITERS_MAY_RACE
        writers_are_ordered = (seen[VIEW(thread, location)] == newest[location]);
        assert(writers_are_ordered);
#endif
        append_message(thread, location, new_value, is_release)
    }
}

inline load(thread, location, is_acquire, result)
{
    atomic {
        select(chosen : seen[VIEW(thread, location)] .. newest[location]);
        skip; /* spin takes the loop's exit for a jump into the d_step when this is used inside an atomic */
        d_step {
            observe_message(thread, location, chosen, is_acquire);
            result = message_value[MESSAGE(location, chosen)];
            chosen = 0
        }
    }
}

/* compare_exchange_strong, acquire and release on success, acquire on failure. It succeeds only on the newest message
 * (nothing may come between what it reads and what it writes), and fails on any message with another value. */
inline compare_exchange(thread, location, expected, desired, succeeded)
{
    atomic {
        select(chosen : seen[VIEW(thread, location)] .. newest[location]);
        skip; /* spin takes the loop's exit for a jump into the d_step when this is used inside an atomic */
        d_step {
            if
            :: message_value[MESSAGE(location, chosen)] == expected -> chosen = newest[location]
            :: else
            fi;
            observe_message(thread, location, chosen, ACQUIRE);
            if
            :: message_value[MESSAGE(location, chosen)] == expected ->
               append_message(thread, location, desired, RELEASE);
               succeeded = true
            :: else -> succeeded = false
            fi;
            chosen = 0
        }
    }
}

inline acquire_fence(thread)
{
    d_step {
        for (other : 0 .. LOCATIONS - 1) {
            seen[VIEW(thread, other)] = acquirable[VIEW(thread, other)]
        }
        other = 0
    }
}

inline release_fence(thread)
{
    d_step {
        for (other : 0 .. LOCATIONS - 1) {
            releasable[VIEW(thread, other)] = seen[VIEW(thread, other)]
        }
        other = 0
    }
}

/* Everything that `source` has done happened before what `thread` does next. For what the kernel orders: a thread's
 * death is observed, a thread identifier is given out again, a thread is joined. */
inline happens_after(thread, source)
{
    d_step {
        for (other : 0 .. LOCATIONS - 1) {
            RAISE(seen[VIEW(thread, other)], seen[VIEW(source, other)]);
            RAISE(acquirable[VIEW(thread, other)], acquirable[VIEW(source, other)])
        }
        other = 0
    }
}

/* With -DREACH these states must be found: a proof about states that never occur proves nothing. */
#ifdef REACH
#define REACHED(name) d_step { name = false; assert(name) }
#else
#define REACHED(name) skip
#endif
