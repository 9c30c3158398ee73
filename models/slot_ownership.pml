/* Who owns a slot: claim, death, stealing, exit, and thread identifiers that come back.
 *
 * Three lives meet on one slot. FIRST and SECOND have the same thread identifier, SAME, one after the other (the
 * kernel gives identifiers out again). COLLIDING has another identifier which falls on the same slot. Each life
 * claims the slot, writes its context once and exits, or dies at any point without a word.
 *
 *   claim   of a slot that is free or whose owner is dead: compare-exchange {s, 0 or dead, any} -> {next odd, own, 1};
 *           fence; zero; {even, own, 0} release. The own identifier, found by a thread that has not claimed yet, is a
 *           dead one's as well.
 *   live owner: the second claimant writes nothing
 *   exit    {odd, own, 1}; fence; zero; {even, 0, 0} release
 *
 * Properties of a read for one identifier that is accepted:
 *   accepted_read_is_one_write        its fields belong together;
 *   accepted_read_is_the_wanted_one   they are zero (no context) or were written by a life with that identifier;
 *   nothing_outlives_an_exit          they are not of a life whose orderly exit happened before the read;
 *   nothing_outlives_a_new_claim      they are not of FIRST when SECOND's claim happened before the read.
 * What does *not* hold, and is shown to be reachable: a life which dies without exit stays readable until somebody
 * claims the slot, even under a successor that has its identifier. Readers ask the kernel whether the owner is alive,
 * which leaves only the time between the successor's birth and its claim.
 *
 * Variant that must hold:
 *   FREE_CLAIM_KEEPS_SEQUENCE a free slot is claimed by {s, 0, 0} -> {s, own, 0}: its last owner's exit left zeroes
 * Variants that must fail:
 *   CLAIM_BY_STORE            load, then store instead of compare-exchange
 *   WRITE_WITHOUT_OWNING      the second claimant writes although the slot has a live owner
 *   STEAL_KEEPS_SEQUENCE      a dead one's slot is claimed like a free one: its context is shown as the thief's
 *   ADOPT_OWN_IDENTIFIER      a slot that already has the own identifier is used as it is
 *   EXIT_FREES_BEFORE_ZEROING the owner is set to 0 first, the fields are zeroed afterwards
 *   EXIT_WITHOUT_BRACKET      the fields are zeroed without an odd word before
 *   EXIT_WITHOUT_FENCE        the odd word is not ordered before the zeroes
 */
#if defined(CLAIM_BY_STORE) || defined(WRITE_WITHOUT_OWNING) || defined(EXIT_FREES_BEFORE_ZEROING) || defined(ADOPT_OWN_IDENTIFIER)
#define WRITERS_MAY_RACE
#endif

#define WORD 0
#define SPAN 1
#define TRACE 2

#define LOCATIONS 3
#define MESSAGES 19
#define THREADS 4
#include "cpp_memory.pml"

#define NOBODY 0
#define SAME 1
#define COLLIDING_TID 2

/* Thread numbers. The context that a life writes is its number plus one, since 0 is "no context". */
#define FIRST 0
#define SECOND 1
#define COLLIDING 2
#define READER 3
#define CONTEXT_OF(life) ((life) + 1)
#define IDENTIFIER_OF_CONTEXT(context) ((context) == CONTEXT_OF(COLLIDING) -> COLLIDING_TID : SAME)

#define WORD_OF(sequence, owner, in_use) ((sequence) * 8 + (owner) * 2 + (in_use))
#define IN_USE(word) ((word) & 1)
#define OWNER(word) (((word) >> 1) & 3)
#define SEQUENCE(word) ((word) >> 3)
#define NEXT_ODD(sequence) ((sequence) + 1 + ((sequence) & 1))

/* What the kernel knows. */
bool alive[3];            /* by identifier */
bool was_born[3];         /* by life */
bool has_exited[3];       /* orderly; by life */
byte claim_of_second;     /* position of its claim in the word's modification order, 0 for none */
byte lives_ended;

hidden byte accepted_read_is_one_write;
hidden byte accepted_read_is_the_wanted_one;
hidden byte nothing_outlives_an_exit;
hidden byte nothing_outlives_a_new_claim;
hidden byte unreached_first_context;
hidden byte unreached_second_context;
hidden byte unreached_colliding_context;
hidden byte unreached_no_context;
hidden byte unreached_other_owner;
hidden byte unreached_claim_of_a_free_slot;
hidden byte unreached_theft;
hidden byte unreached_theft_in_mid_write;
hidden byte unreached_return_of_the_identifier;
hidden byte unreached_second_claimant_keeps_off;
hidden byte unreached_lost_race_for_the_claim;
hidden byte unreached_dead_context_under_its_successor;

/* A thread can be ended between any two of its stores (a raw exit call, no destructors). */
#define STORE_UNLESS_DEAD(life, location, value, is_release) \
    if :: goto dead :: store(life, location, value, is_release) fi

/* SECOND is the life after FIRST by definition. */
inline be_born(life, identifier)
{
    atomic {
        !alive[identifier] && (life != SECOND || was_born[FIRST]) ->
        alive[identifier] = true;
        was_born[life] = true;
        if
        :: life == SECOND -> happens_after(SECOND, FIRST)
        :: else
        fi
    }
}

/* A death is final for the memory as well: who learns from the kernel that a thread is gone sees all its stores. */
inline look_for_the_owner(life, identifier, owner, owner_is_dead)
{
    atomic {
        owner_is_dead = (owner == NOBODY || owner == identifier || !alive[owner]);
        if
        :: owner_is_dead && owner == SAME ->
           if :: life != FIRST && was_born[FIRST] -> happens_after(life, FIRST) :: else fi;
           if :: life != SECOND && was_born[SECOND] -> happens_after(life, SECOND) :: else fi
        :: owner_is_dead && owner == COLLIDING_TID -> happens_after(life, COLLIDING)
        :: else
        fi
    }
}

inline zero_fields(life)
{
    STORE_UNLESS_DEAD(life, SPAN, 0, RELAXED);
    STORE_UNLESS_DEAD(life, TRACE, 0, RELAXED)
}

inline note_claim(life)
{
    if
    :: life == SECOND && claim_of_second == 0 -> claim_of_second = newest[WORD]
    :: else
    fi
}

proctype thread(byte life; byte identifier)
{
    byte word, sequence;
    bool owner_is_dead, claimed;

    be_born(life, identifier);

    load(life, WORD, ACQUIRE, word);
    if
#if defined(FREE_CLAIM_KEEPS_SEQUENCE) || defined(CLAIM_BY_STORE)
    :: OWNER(word) == NOBODY ->
       sequence = SEQUENCE(word);
#ifdef CLAIM_BY_STORE
       STORE_UNLESS_DEAD(life, WORD, WORD_OF(sequence, identifier, 0), RELEASE);
       claimed = true
#else
       compare_exchange(life, WORD, word, WORD_OF(sequence, identifier, 0), claimed)
#endif
#endif
#ifdef ADOPT_OWN_IDENTIFIER
    :: OWNER(word) == identifier && !IN_USE(word) ->
       sequence = SEQUENCE(word);
       claimed = true
#endif
    :: else ->
       look_for_the_owner(life, identifier, OWNER(word), owner_is_dead);
       if
       :: !owner_is_dead ->
          REACHED(unreached_second_claimant_keeps_off);
#ifdef WRITE_WITHOUT_OWNING
          sequence = SEQUENCE(word) + (SEQUENCE(word) & 1);
          claimed = true
#else
          goto dead
#endif
       :: else ->
#ifdef STEAL_KEEPS_SEQUENCE
          sequence = SEQUENCE(word) + (SEQUENCE(word) & 1);
          compare_exchange(life, WORD, word, WORD_OF(sequence, identifier, 0), claimed)
#else
          sequence = NEXT_ODD(SEQUENCE(word));
          compare_exchange(life, WORD, word, WORD_OF(sequence, identifier, 1), claimed);
          if
          :: claimed ->
             if
             :: IN_USE(word) -> REACHED(unreached_theft_in_mid_write)
             :: !IN_USE(word) && OWNER(word) == identifier -> REACHED(unreached_return_of_the_identifier)
             :: !IN_USE(word) && OWNER(word) == NOBODY -> REACHED(unreached_claim_of_a_free_slot)
             :: else -> REACHED(unreached_theft)
             fi;
             note_claim(life);
             release_fence(life);
             zero_fields(life);
             sequence++;
             STORE_UNLESS_DEAD(life, WORD, WORD_OF(sequence, identifier, 0), RELEASE)
          :: else
          fi
#endif
       fi
    fi;

    /* What happens to a claimant that loses the race is counted, not tried again, like a live owner. */
    if
    :: !claimed -> REACHED(unreached_lost_race_for_the_claim); goto dead
    :: else -> note_claim(life)
    fi;

    STORE_UNLESS_DEAD(life, WORD, WORD_OF(sequence + 1, identifier, 1), RELAXED);
    release_fence(life);
    STORE_UNLESS_DEAD(life, SPAN, CONTEXT_OF(life), RELAXED);
    STORE_UNLESS_DEAD(life, TRACE, CONTEXT_OF(life), RELAXED);
    STORE_UNLESS_DEAD(life, WORD, WORD_OF(sequence + 2, identifier, 0), RELEASE);

#if defined(EXIT_FREES_BEFORE_ZEROING)
    STORE_UNLESS_DEAD(life, WORD, WORD_OF(sequence + 4, NOBODY, 0), RELEASE);
    release_fence(life);
    zero_fields(life);
#elif defined(EXIT_WITHOUT_BRACKET)
    zero_fields(life);
    STORE_UNLESS_DEAD(life, WORD, WORD_OF(sequence + 4, NOBODY, 0), RELEASE);
#else
    STORE_UNLESS_DEAD(life, WORD, WORD_OF(sequence + 3, identifier, 1), RELAXED);
#ifndef EXIT_WITHOUT_FENCE
    release_fence(life);
#endif
    zero_fields(life);
    STORE_UNLESS_DEAD(life, WORD, WORD_OF(sequence + 4, NOBODY, 0), RELEASE);
#endif
    has_exited[life] = true;

dead:
    skip;
    d_step { alive[identifier] = false; lives_ended++; word = 0; sequence = 0; owner_is_dead = false; claimed = false }
}

/* The reader runs when all is over. It misses nothing: it writes nothing, and its loads take any message that was ever
 * there and that it does not know to be outdated, so whatever a reader sees at an earlier time it can see at the end. */
active proctype reader()
{
    byte wanted, word, word_again, span, trace_id;
    bool exit_came_before[3];
    bool claim_came_before;
    bool successor_is_born;

    atomic {
        lives_ended == 3 ->
        if
        :: wanted = SAME
        :: wanted = COLLIDING_TID
        fi;

        /* The reader may know of an exit, a claim or a birth, by whatever synchronises: a join, a queue, the kernel. */
        if
        :: has_exited[FIRST] -> happens_after(READER, FIRST); exit_came_before[FIRST] = true
        :: has_exited[SECOND] -> happens_after(READER, SECOND); exit_came_before[SECOND] = true
        :: has_exited[COLLIDING] -> happens_after(READER, COLLIDING); exit_came_before[COLLIDING] = true
        :: claim_of_second != 0 ->
           d_step { observe_message(READER, WORD, claim_of_second, ACQUIRE) };
           claim_came_before = true
        :: !has_exited[FIRST] -> happens_after(READER, FIRST); successor_is_born = true
        :: skip
        fi;

        load(READER, WORD, ACQUIRE, word);
        if
        :: IN_USE(word) -> skip
        :: !IN_USE(word) && OWNER(word) != wanted -> REACHED(unreached_other_owner)
        :: else ->
           load(READER, SPAN, RELAXED, span);
           load(READER, TRACE, RELAXED, trace_id);
           acquire_fence(READER);
           load(READER, WORD, RELAXED, word_again);
           if
           :: word_again != word -> skip
           :: else ->
              d_step {
                  accepted_read_is_one_write = (span == trace_id);
                  assert(accepted_read_is_one_write);
                  accepted_read_is_the_wanted_one = (span == 0 || IDENTIFIER_OF_CONTEXT(span) == wanted);
                  assert(accepted_read_is_the_wanted_one)
              }
              if
              :: span == 0 -> REACHED(unreached_no_context)
              :: else ->
                 d_step {
                     nothing_outlives_an_exit = !exit_came_before[span - 1];
                     assert(nothing_outlives_an_exit);
                     nothing_outlives_a_new_claim = !(claim_came_before && span == CONTEXT_OF(FIRST));
                     assert(nothing_outlives_a_new_claim)
                 }
                 if
                 :: span == CONTEXT_OF(FIRST) && successor_is_born -> REACHED(unreached_dead_context_under_its_successor)
                 :: span == CONTEXT_OF(FIRST) && !successor_is_born -> REACHED(unreached_first_context)
                 :: span == CONTEXT_OF(SECOND) -> REACHED(unreached_second_context)
                 :: span == CONTEXT_OF(COLLIDING) -> REACHED(unreached_colliding_context)
                 fi
              fi
           fi
        fi
    }
}

init {
    atomic {
        run thread(FIRST, SAME);
        run thread(SECOND, SAME);
        run thread(COLLIDING, COLLIDING_TID)
    }
}
