#pragma once

// Threads from their first instruction on, in a program that was not preloaded: the entries for
// pthread_create in the tables through which loaded objects call others (their GOTs) are led to a
// function of ours, which calls the real one.
//
// Once led to us they stay: the function costs little, stays loaded, and between recordings does
// nothing of its own. Another interposer's pthread_create is respected: ours calls the one that a
// program would find.

#include <cstddef>

namespace spanprof::sampling {

// A preloaded pthread_create tells of threads already: nothing is to be patched in this process.
void DoNotPatchThreadCreation();

// Patches what is loaded and was not patched yet; again after a dlopen. Returns how many entries
// were patched. Not for signal handlers; one thread at a time.
std::size_t PatchThreadCreation();

}  // namespace spanprof::sampling
