/* Reading a thread's object by its identifier, in the same process, while objects are recycled between threads.
 *
 * The registry maps an identifier to an object. The object's fields are written inside the bracket of its owner's slot
 * word. Objects are never freed, but an exiting thread's object goes to the next thread.
 *
 *   birth   take the object from the free list (acquire); release fence; initialise it; publish it in the registry
 *           (release); claim the own slot
 *   exit    bracket: word odd; fence; zero the fields; word even with owner 0, release; registry entry = none; put the
 *           object on the free list (release)
 *   read    slot word, acquire, refuse if busy or of another owner; registry entry, acquire, refuse none; fields;
 *           acquire fence; slot word again, accept if unchanged. The slot follows from the identifier.
 *
 * OLD (identifier and slot 1) exits and NEW (identifier and slot 2) takes its object. With RETURNING the identifier
 * comes back as well: a third thread gets identifier and slot 1, with a second object. A reader asks for 1 or 2.
 *
 * Property: an accepted read has fields of one write by a thread with the wanted identifier.
 *
 * Variants that must fail:
 *   WITHOUT_RECYCLING_FENCE   no release fence between taking the object and initialising it. x86 and ARMv8 do not show
 *                             it (their stores reach all observers at once); C++ and POWER allow it.
 *   UNSYNCHRONISED_FREE_LIST  the free list is relaxed
 *   WITHOUT_READER_FENCE
 *   OBJECT_BEFORE_WORD        the reader takes the object first, and the slot word through the object. Holds as long as
 *                             identifiers do not come back (it is checked), fails with RETURNING: the object's owner is
 *                             gone, yet the word belongs to the wanted identifier again.
 *   ERASE_BEFORE_CLAIM        with OLD_DIES: the dead thread's object is erased before its slot is claimed, while the word
 *                             still says that the object is at rest
 * Variants that must hold:
 *   OLD_DIES                  OLD dies without exit, and a thread with its identifier takes over its slot and its object:
 *                             claim as busy first, then erase, then the even word
 *   CLAIM_BEFORE_REGISTRY     the slot is claimed before the registry has the object: the order of the two is free
 */
#ifdef UNSYNCHRONISED_FREE_LIST
#define WRITERS_MAY_RACE
#endif

#define WORD_1 0
#define WORD_2 1
#define ENTRY_1 2
#define ENTRY_2 3
#define FREE_LIST 4
#define OBJECT_1 5       /* slot pointer, two fields */
#define OBJECT_2 8

#ifdef RETURNING
#define LOCATIONS 11
#define LIVES 3
#else
#define LOCATIONS 8
#define LIVES 2
#endif
#define MESSAGES 9
#define THREADS (LIVES + 1)
#include "cpp_memory.pml"

#define OLD 0
#define NEW 1
#define HEIR 1
#define RETURNED 2
#define READER LIVES

#define SLOT_POINTER(object) (object)
#define FIRST_FIELD(object) ((object) + 1)
#define SECOND_FIELD(object) ((object) + 2)

#define WORD_OF(sequence, owner, in_use) ((sequence) * 8 + (owner) * 2 + (in_use))
#define IN_USE(word) ((word) & 1)
#define OWNER(word) (((word) >> 1) & 3)
#define SEQUENCE(word) ((word) >> 3)
#define WORD_AT(slot) ((slot) - 1)
#define ENTRY_AT(identifier) (ENTRY_1 + (identifier) - 1)

/* Fields: 0 after exit; otherwise who wrote them, at birth or later. */
#define INITIAL_CONTEXT(life) (10 * ((life) + 1))
#define CONTEXT(life) (10 * ((life) + 1) + 1)
#ifdef OLD_DIES
#define IDENTIFIER_OF(context) 1
#else
#define IDENTIFIER_OF(context) ((context) / 10 == NEW + 1 -> 2 : 1)
#endif

#ifdef UNSYNCHRONISED_FREE_LIST
#define FREE_LIST_ACQUIRE RELAXED
#define FREE_LIST_RELEASE RELAXED
#else
#define FREE_LIST_ACQUIRE ACQUIRE
#define FREE_LIST_RELEASE RELEASE
#endif

#ifdef WITHOUT_RECYCLING_FENCE
#define RECYCLING_FENCE(life) skip
#else
#define RECYCLING_FENCE(life) release_fence(life)
#endif

#ifdef WITHOUT_READER_FENCE
#define READER_FENCE skip
#else
#define READER_FENCE acquire_fence(READER)
#endif

bool old_has_exited;
byte lives_ended;

hidden byte accepted_read_is_one_write;
hidden byte accepted_read_is_the_wanted_one;
hidden byte unreached_context_of_old;
hidden byte unreached_context_of_new;
hidden byte unreached_initial_context_of_new;
hidden byte unreached_context_of_returned;
hidden byte unreached_initial_context_of_the_heir;
hidden byte unreached_refusal_of_a_recycled_object;

inline publish_in_registry(life, identifier, object)
{
    store(life, ENTRY_AT(identifier), object, RELEASE)
}

/* The compare-exchange and its races are slot_ownership.pml's subject; here the slot is free. */
inline claim(life, identifier, sequence)
{
    store(life, WORD_AT(identifier), WORD_OF(sequence, identifier, 0), RELEASE)
}

inline live(life, identifier, object, sequence)
{
    RECYCLING_FENCE(life);
    store(life, SLOT_POINTER(object), identifier, RELAXED);
    store(life, FIRST_FIELD(object), INITIAL_CONTEXT(life), RELAXED);
    store(life, SECOND_FIELD(object), INITIAL_CONTEXT(life), RELAXED);
#ifdef CLAIM_BEFORE_REGISTRY
    claim(life, identifier, sequence);
    publish_in_registry(life, identifier, object);
#else
    publish_in_registry(life, identifier, object);
    claim(life, identifier, sequence);
#endif
    store(life, WORD_AT(identifier), WORD_OF(sequence + 1, identifier, 1), RELAXED);
    release_fence(life);
    store(life, FIRST_FIELD(object), CONTEXT(life), RELAXED);
    store(life, SECOND_FIELD(object), CONTEXT(life), RELAXED);
    store(life, WORD_AT(identifier), WORD_OF(sequence + 2, identifier, 0), RELEASE)
}

active proctype old()
{
    live(OLD, 1, OBJECT_1, 0);
#ifndef OLD_DIES
    store(OLD, WORD_1, WORD_OF(3, 1, 1), RELAXED);
    release_fence(OLD);
    store(OLD, FIRST_FIELD(OBJECT_1), 0, RELAXED);
    store(OLD, SECOND_FIELD(OBJECT_1), 0, RELAXED);
    store(OLD, WORD_1, WORD_OF(4, 0, 0), RELEASE);
    store(OLD, ENTRY_1, 0, RELAXED);
    store(OLD, FREE_LIST, OBJECT_1, FREE_LIST_RELEASE);
#endif
    d_step { old_has_exited = true; lives_ended++ }
}

#ifdef OLD_DIES
/* Takes the place of NEW. */
active proctype heir()
{
    old_has_exited -> happens_after(HEIR, OLD);
#ifndef ERASE_BEFORE_CLAIM
    store(HEIR, WORD_1, WORD_OF(3, 1, 1), RELEASE);
#endif
    release_fence(HEIR);
    store(HEIR, FIRST_FIELD(OBJECT_1), INITIAL_CONTEXT(HEIR), RELAXED);
    store(HEIR, SECOND_FIELD(OBJECT_1), INITIAL_CONTEXT(HEIR), RELAXED);
#ifdef ERASE_BEFORE_CLAIM
    store(HEIR, WORD_1, WORD_OF(3, 1, 1), RELEASE);
#endif
    store(HEIR, WORD_1, WORD_OF(4, 1, 0), RELEASE);
    lives_ended++
}
#else
active proctype new()
{
    byte object;
    newest[FREE_LIST] > 0;   /* nothing to look at before */
    load(NEW, FREE_LIST, FREE_LIST_ACQUIRE, object);
    if
    :: object == 0 -> skip
    :: else -> live(NEW, 2, OBJECT_1, 0)
    fi;
    d_step { object = 0; lives_ended++ }
}
#endif

#ifdef RETURNING
active proctype returned()
{
    old_has_exited -> happens_after(RETURNED, OLD);
    live(RETURNED, 1, OBJECT_2, 4);
    lives_ended++
}
#endif

/* Runs when all is over and misses nothing by that: see slot_ownership.pml. */
active proctype reader()
{
    byte wanted, object, slot, word, word_again, first_field, second_field;
    atomic {
        lives_ended == LIVES ->
        if
        :: wanted = 1
        :: wanted = 2
        fi;
#ifdef OBJECT_BEFORE_WORD
        load(READER, ENTRY_AT(wanted), ACQUIRE, object);
        if
        :: object == 0 -> goto refused
        :: else
        fi;
        load(READER, SLOT_POINTER(object), ACQUIRE, slot);
        load(READER, WORD_AT(slot), ACQUIRE, word);
        if
        :: IN_USE(word) || OWNER(word) != wanted -> goto refused
        :: else
        fi;
#else
        slot = wanted;
        load(READER, WORD_AT(slot), ACQUIRE, word);
        if
        :: IN_USE(word) || OWNER(word) != wanted -> goto refused
        :: else
        fi;
        load(READER, ENTRY_AT(wanted), ACQUIRE, object);
        if
        :: object == 0 -> goto refused
        :: else
        fi;
#endif
        load(READER, FIRST_FIELD(object), RELAXED, first_field);
        load(READER, SECOND_FIELD(object), RELAXED, second_field);
        READER_FENCE;
        load(READER, WORD_AT(slot), RELAXED, word_again);
        if
        :: word_again != word ->
           if
           :: wanted == 1 && first_field / 10 == NEW + 1 -> REACHED(unreached_refusal_of_a_recycled_object)
           :: else
           fi;
           goto refused
        :: else
        fi;
        d_step {
            accepted_read_is_one_write = (first_field == second_field);
            assert(accepted_read_is_one_write);
            accepted_read_is_the_wanted_one = (first_field != 0 && IDENTIFIER_OF(first_field) == wanted);
            assert(accepted_read_is_the_wanted_one)
        }
        if
        :: first_field == CONTEXT(OLD) -> REACHED(unreached_context_of_old)
#ifdef OLD_DIES
        :: first_field == INITIAL_CONTEXT(HEIR) -> REACHED(unreached_initial_context_of_the_heir)
#else
        :: first_field == CONTEXT(NEW) -> REACHED(unreached_context_of_new)
        :: first_field == INITIAL_CONTEXT(NEW) -> REACHED(unreached_initial_context_of_new)
        :: first_field == CONTEXT(RETURNED) -> REACHED(unreached_context_of_returned)
#endif
        :: else
        fi;
refused:
        skip
    }
}
