/* The memory machine itself against the shapes that every memory model is judged by. Without this a machine that is too
 * strong would make every protocol look sound.
 *
 * Each shape has one outcome in question. The outcomes that C++20 allows must be found, the others must not.
 */
#define LOCATIONS 3
#define MESSAGES 5
#define THREADS 4
#include "cpp_memory.pml"

#define X 0
#define Y 1
#define Z 2

byte result[6];
byte ended;
hidden byte outcome_is_not_found;

#define THREAD(name, body) active proctype name() { body; skip; ended++ }
#define OUTCOME(condition) \
    active proctype outcome() { ended == RUNNING; d_step { outcome_is_not_found = !(condition); assert(outcome_is_not_found) } }

#if defined(MESSAGE_PASSING_RELAXED) || defined(MESSAGE_PASSING_RELEASE_ONLY) || defined(MESSAGE_PASSING_ACQUIRE_ONLY) || \
    defined(MESSAGE_PASSING)
#if defined(MESSAGE_PASSING_RELEASE_ONLY) || defined(MESSAGE_PASSING)
#define ORDER_OF_STORE RELEASE
#else
#define ORDER_OF_STORE RELAXED
#endif
#if defined(MESSAGE_PASSING_ACQUIRE_ONLY) || defined(MESSAGE_PASSING)
#define ORDER_OF_LOAD ACQUIRE
#else
#define ORDER_OF_LOAD RELAXED
#endif
#define RUNNING 2
THREAD(sender, store(0, X, 1, RELAXED); store(0, Y, 1, ORDER_OF_STORE))
THREAD(receiver, load(1, Y, ORDER_OF_LOAD, result[0]); load(1, X, RELAXED, result[1]))
OUTCOME(result[0] == 1 && result[1] == 0)
#endif

#if defined(MESSAGE_PASSING_FENCES) || defined(MESSAGE_PASSING_FENCE_TOO_LATE)
#define RUNNING 2
#ifdef MESSAGE_PASSING_FENCES
THREAD(sender, store(0, X, 1, RELAXED); release_fence(0); store(0, Y, 1, RELAXED))
#else
THREAD(sender, store(0, X, 1, RELAXED); store(0, Y, 1, RELAXED); release_fence(0))
#endif
THREAD(receiver, load(1, Y, RELAXED, result[0]); acquire_fence(1); load(1, X, RELAXED, result[1]))
OUTCOME(result[0] == 1 && result[1] == 0)
#endif

/* A release store does not hold back the stores after it. */
#ifdef STORES_PASS_A_RELEASE_STORE
#define RUNNING 2
THREAD(sender, store(0, X, 1, RELEASE); store(0, Y, 1, RELAXED))
THREAD(receiver, load(1, Y, ACQUIRE, result[0]); load(1, X, ACQUIRE, result[1]))
OUTCOME(result[0] == 1 && result[1] == 0)
#endif

#ifdef STORE_BUFFERING
#define RUNNING 2
THREAD(one, store(0, X, 1, RELEASE); load(0, Y, ACQUIRE, result[0]))
THREAD(two, store(1, Y, 1, RELEASE); load(1, X, ACQUIRE, result[1]))
OUTCOME(result[0] == 0 && result[1] == 0)
#endif

#ifdef COHERENCE
#define RUNNING 2
THREAD(writer, store(0, X, 1, RELAXED); store(0, X, 2, RELAXED))
THREAD(reader, load(1, X, RELAXED, result[0]); load(1, X, RELAXED, result[1]))
OUTCOME(result[0] == 2 && result[1] == 1)
#endif

/* Two observers disagree on the order of two stores: C++ and POWER allow it, ARMv8 does not. */
#ifdef OBSERVERS_DISAGREE
#define RUNNING 4
THREAD(writer_of_x, store(0, X, 1, RELEASE))
THREAD(writer_of_y, store(1, Y, 1, RELEASE))
THREAD(one, load(2, X, ACQUIRE, result[0]); load(2, Y, ACQUIRE, result[1]))
THREAD(two, load(3, Y, ACQUIRE, result[2]); load(3, X, ACQUIRE, result[3]))
OUTCOME(result[0] == 1 && result[1] == 0 && result[2] == 1 && result[3] == 0)
#endif

/* A chain of three: what the middle one acquired is passed on by its release, and not by a relaxed store. */
#if defined(CHAIN) || defined(CHAIN_RELAXED)
#ifdef CHAIN
#define ORDER_OF_STORE RELEASE
#else
#define ORDER_OF_STORE RELAXED
#endif
#define RUNNING 3
THREAD(first, store(0, X, 1, RELEASE))
THREAD(middle, load(1, X, ACQUIRE, result[0]); store(1, Y, 1, ORDER_OF_STORE))
THREAD(last, load(2, Y, ACQUIRE, result[1]); load(2, X, RELAXED, result[2]))
OUTCOME(result[0] == 1 && result[1] == 1 && result[2] == 0)
#endif

/* A later relaxed store of the same thread does not continue a release sequence since C++20... */
#ifdef RELEASE_SEQUENCE_BY_STORE
#define RUNNING 2
THREAD(sender, store(0, X, 1, RELAXED); store(0, Y, 1, RELEASE); store(0, Y, 2, RELAXED))
THREAD(receiver, load(1, Y, ACQUIRE, result[0]); load(1, X, RELAXED, result[1]))
OUTCOME(result[0] == 2 && result[1] == 0)
#endif

/* ...and somebody else's read-modify-write passes on what it read. */
#ifdef RELEASE_SEQUENCE_BY_EXCHANGE
#define RUNNING 3
bool exchanged;
THREAD(sender, store(0, X, 1, RELAXED); store(0, Y, 1, RELEASE))
THREAD(exchanger, compare_exchange(1, Y, 1, 2, exchanged))
THREAD(receiver, load(2, Y, ACQUIRE, result[0]); load(2, X, RELAXED, result[1]))
OUTCOME(result[0] == 2 && result[1] == 0)
#endif

#if defined(ONE_WINNER) || defined(SOME_WINNER)
#define RUNNING 2
bool won_by_one, won_by_two;
THREAD(one, compare_exchange(0, X, 0, 1, won_by_one))
THREAD(two, compare_exchange(1, X, 0, 2, won_by_two))
#ifdef ONE_WINNER
OUTCOME(won_by_one == won_by_two)
#else
OUTCOME(won_by_two && !won_by_one)
#endif
#endif

/* Writers that nothing orders are outside of the machine: it must say so. */
#ifdef UNORDERED_WRITERS
#define RUNNING 2
THREAD(one, store(0, X, 1, RELAXED))
THREAD(two, store(1, X, 2, RELAXED))
OUTCOME(false)
#endif
