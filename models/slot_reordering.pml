/* slot_sequence.pml's protocol a second time, with another and independent memory: one that reorders, as ARMv8 does.
 * A mistake in cpp_memory.pml would have to be made here as well to go unnoticed.
 *
 * The writer's stores wait in a list, in program order, and reach the memory in any order, except that
 *   - a store does not pass an earlier one to the same location,
 *   - a release store does not pass any earlier store (but later stores pass it),
 *   - nothing passes a fence.
 * The reader executes its loads in any order, except that
 *   - nothing comes before the acquire load that opens the read,
 *   - the second load of the word does not come before the first one (same location),
 *   - nothing passes a fence.
 *
 * Variants that must fail: see slot_sequence.pml.
 */
#define WORD 0
#define FIRST_FIELD 1
#define SECOND_FIELD 2
#define FENCE 3

#define WRITES 2
#define STORES_OF_A_WRITE 5
#define STORES (WRITES * STORES_OF_A_WRITE)

#if defined(IN_USE_ONLY) || defined(IN_USE_ONLY_FENCED)
#define WORD_OF(sequence, in_use) (in_use)
#else
#define WORD_OF(sequence, in_use) ((sequence) * 2 + (in_use))
#define SEQUENCE_NAMES_THE_WRITE
#endif
#define IN_USE(word) ((word) & 1)
#define SEQUENCE(word) ((word) >> 1)

#if defined(WITHOUT_WRITER_FENCE) || defined(IN_USE_ONLY)
#define WRITER_FENCE 0
#else
#define WRITER_FENCE 1
#endif
#if defined(WITHOUT_READER_FENCE) || defined(IN_USE_ONLY)
#define READER_FENCE 0
#else
#define READER_FENCE 1
#endif
#ifdef WITHOUT_RELEASE_STORE
#define EVEN_STORE 0
#else
#define EVEN_STORE 1
#endif
#ifdef WITHOUT_ACQUIRE_LOAD
#define FIRST_LOAD_IS_ACQUIRE 0
#else
#define FIRST_LOAD_IS_ACQUIRE 1
#endif

#ifdef REACH
#define REACHED(name) d_step { name = false; assert(name) }
#else
#define REACHED(name) skip
#endif

byte memory[3];

/* The list of stores. All are in it from the start: a store that is not yet executed and one that is not yet visible
 * are the same to a reader. */
byte location[STORES];
byte value[STORES];
bool is_release[STORES];
bool is_visible[STORES];

hidden byte accepted_read_is_one_write;
hidden byte accepted_read_is_the_named_write;
hidden byte unreached_initial_write;
hidden byte unreached_first_write;
hidden byte unreached_second_write;
hidden byte unreached_busy;
hidden byte unreached_changed;

bool may_become_visible;
byte earlier;

inline look_whether_it_may_become_visible(candidate)
{
    may_become_visible = !is_visible[candidate];
    for (earlier : 0 .. STORES - 1) {
        if
        :: earlier < candidate && !is_visible[earlier] &&
           (location[earlier] == location[candidate] || is_release[candidate] || location[earlier] == FENCE ||
            location[candidate] == FENCE) -> may_become_visible = false
        :: else
        fi
    }
    earlier = 0
}

active proctype writer()
{
    byte index, write, visible;
    d_step {
        for (write : 1 .. WRITES) {
            location[index] = WORD; value[index] = WORD_OF(2 * write - 1, 1); is_release[index] = !WRITER_FENCE; index++;
            location[index] = FENCE; is_visible[index] = !WRITER_FENCE; index++;
            location[index] = FIRST_FIELD; value[index] = write; index++;
            location[index] = SECOND_FIELD; value[index] = write; index++;
            location[index] = WORD; value[index] = WORD_OF(2 * write, 0); is_release[index] = EVEN_STORE; index++
        }
        index = 0;
        write = 0
    }
    /* A fence that is left out counts as visible from the start. */
    visible = (WRITER_FENCE -> 0 : WRITES);
    do
    :: visible < STORES ->
       atomic {
           select(index : 0 .. STORES - 1);
           skip;
           d_step {
               look_whether_it_may_become_visible(index);
               if
               :: may_become_visible ->
                  if
                  :: location[index] != FENCE -> memory[location[index]] = value[index]
                  :: else
                  fi;
                  is_visible[index] = true;
                  visible++
               :: else
               fi;
               may_become_visible = false;
               index = 0
           }
       }
    :: else -> break
    od
}

active proctype reader()
{
    byte word, word_again, first_field, second_field;
    bool has_word, has_first_field, has_second_field, has_word_again;
    do
    :: !has_word -> d_step { word = memory[WORD]; has_word = true }
    :: !has_first_field && (has_word || !FIRST_LOAD_IS_ACQUIRE) ->
       d_step { first_field = memory[FIRST_FIELD]; has_first_field = true }
    :: !has_second_field && (has_word || !FIRST_LOAD_IS_ACQUIRE) ->
       d_step { second_field = memory[SECOND_FIELD]; has_second_field = true }
    :: !has_word_again && has_word && (!READER_FENCE || (has_first_field && has_second_field)) ->
       d_step { word_again = memory[WORD]; has_word_again = true }
    :: has_word && has_first_field && has_second_field && has_word_again -> break
    od;
    if
    :: IN_USE(word) -> REACHED(unreached_busy)
    :: !IN_USE(word) && word_again != word -> REACHED(unreached_changed)
    :: else ->
       d_step {
           accepted_read_is_one_write = (first_field == second_field);
           assert(accepted_read_is_one_write)
       }
#ifdef SEQUENCE_NAMES_THE_WRITE
       d_step {
           accepted_read_is_the_named_write = (SEQUENCE(word) == 2 * first_field);
           assert(accepted_read_is_the_named_write)
       }
#endif
       if
       :: first_field == 0 -> REACHED(unreached_initial_write)
       :: first_field == 1 -> REACHED(unreached_first_write)
       :: first_field == 2 -> REACHED(unreached_second_write)
       fi
    fi
}
