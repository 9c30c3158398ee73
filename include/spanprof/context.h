/* spanprof's context interface: where a tracer says which span is active.
 *
 *   spanprof_init("ctxstorage=otel,attributes=http.route;tenant");
 *   ...
 *   spanprof_context_set_trace(trace_high, trace_low, span, local_root);
 *   spanprof_context_set_tag(0, "/cart", 5);
 *   ...
 *   spanprof_context_clear();
 *
 * A context belongs to the calling thread. Setting one costs a few nanoseconds: no lock, no system
 * call, no allocation (but for a thread's first call, which attaches it). Every profiler sample
 * taken on the thread, in the process or outside it, then carries the ids and tags that were active
 * at that instant, or says that they were just being changed.
 *
 * Before spanprof_init every call is one branch and keeps nothing.
 *
 * Threads and signals: all calls may be made from any thread. The context calls may be made from a
 * signal handler too; one that interrupts a context call of its own thread is refused and counted.
 * The others (init, shutdown, start, stop, dump, attribute, resource, endpoint) must not be made
 * from a handler.
 *
 * Ids are plain integers; 0 is "none". Functions that return int return 0 (or a count) on success
 * and a negative errno value on failure.
 *
 * The interface is versioned by spanprof_abi_version(): the upper 16 bits change when something is
 * taken away or changes its meaning, the lower 16 bits when something is added.
 */
#ifndef SPANPROF_CONTEXT_H
#define SPANPROF_CONTEXT_H

#include <stddef.h>
#include <stdint.h>

#if defined(__GNUC__)
#define SPANPROF_API __attribute__((visibility("default")))
#else
#define SPANPROF_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

#define SPANPROF_ABI_VERSION 0x00010000u
#define SPANPROF_TAG_COUNT 10

/* Set `size` to sizeof(spanprof_context) before any call: it tells the library which fields the
 * caller knows. */
typedef struct {
  uint32_t size, trace_flags;
  uint64_t trace_id_high, trace_id_low, span_id, root_span_id;
  uint32_t tags[SPANPROF_TAG_COUNT]; /* ids from spanprof_intern; 0 is "no value" */
} spanprof_context;

SPANPROF_API uint32_t spanprof_abi_version(void);

/* Options are words separated by commas, e.g. "ctxstorage=otel,attributes=http.route;tenant"; NULL
 * or "" for the defaults. 0; -EINVAL for options that cannot be understood; -EBUSY when the process
 * is initialised already with another ctxstorage or other attributes (spanprof_error() names both;
 * the same options again are fine); -EPROTO when another copy of spanprof with another interface
 * version is active in the process. */
SPANPROF_API int spanprof_init(const char* options);
SPANPROF_API int spanprof_is_initialized(void);

/* 1: contexts are published for readers outside the process. 0: not; also when ctxstorage=otel was
 * asked for and the memory for it could not be had. */
SPANPROF_API int spanprof_is_otel_mode(void);

/* Withdraws everything that was published. Other threads may go on calling: their calls do nothing.
 * spanprof_init may be called again. */
SPANPROF_API void spanprof_shutdown(void);

/* Why the last spanprof_init, _start, _stop or _dump of this process failed, or "". Valid until the
 * next one. */
SPANPROF_API const char* spanprof_error(void);

/* Records profiles of this process, each sample with its context: "cpu=10ms,file=profile.pb.gz".
 * Initialises the library first if that was not done; with another ctxstorage or other attributes
 * than init it fails (-EBUSY). Without cpu= and wall=, CPU time is sampled every 10 ms.
 *
 *   file=   where the profile is written when the recording stops or the program exits; %t, %p, %n
 *           in the name are the time, the process id and a counter
 *   every=  a profile at this interval, without a gap in sampling
 *   to=     where each profile is sent
 *
 * -EBUSY: a recording is under way; -ENOTSUP: this build has no profiler. */
SPANPROF_API int spanprof_start(const char* options);
/* Ends the recording; its last profile has been written and sent when this returns. -ENODEV: there
 * is none. */
SPANPROF_API int spanprof_stop(void);
/* Writes what was recorded so far, or since the last profile of every=, and goes on. The format is
 * that of the name: .pb.gz .otlp .jfr .html .folded .json.gz .pftrace */
SPANPROF_API int spanprof_dump(const char* file);

/* The active span and the local root of its trace in this process. Takes away a trace id that was
 * set before; tags stay. */
SPANPROF_API void spanprof_context_set(uint64_t span_id, uint64_t root_span_id);

/* The same with the 128-bit trace id. Trace flags become 0; tags stay. */
SPANPROF_API void spanprof_context_set_trace(uint64_t trace_id_high, uint64_t trace_id_low,
                                             uint64_t span_id, uint64_t root_span_id);

/* The number that stands for a value in records, the same for the process's life and in its forked
 * children. 0: the value is longer than 4096 bytes or the dictionary is full (counted), or there is
 * no value or no initialised library. */
SPANPROF_API uint32_t spanprof_intern(const char* value, size_t length);

/* Sets the tag at a position of attributes=. NULL, or length 0, takes it away. -EINVAL: no such
 * position, or an id that spanprof_intern never gave; -ENOSPC: the dictionary is full; -EBUSY:
 * called by a signal handler that interrupted a context call of its thread; -ENODEV: not
 * initialised. */
SPANPROF_API int spanprof_context_set_tag(unsigned slot, const char* value, size_t length);
SPANPROF_API int spanprof_context_set_tag_id(unsigned slot, uint32_t id);

/* Replaces the whole context, ids and tags, in one publication. */
SPANPROF_API int spanprof_context_update(const spanprof_context* context);

/* Puts the current context into *out and replaces it by *in, for a switch of fibers, virtual
 * threads or coroutines. `in` may be NULL (no context), `out` too (not wanted). */
SPANPROF_API void spanprof_context_swap(const spanprof_context* in, spanprof_context* out);

/* The calling thread's context; all zero when there is none. -EAGAIN: called by a handler that
 * interrupted a change of it. */
SPANPROF_API int spanprof_context_get(spanprof_context* out);

/* Another thread's context while it runs. -ENOTSUP with ctxstorage=profiler; -ESRCH: that thread
 * has published nothing; -EAGAIN: it changed each time that we looked. */
SPANPROF_API int spanprof_context_get_by_tid(int tid, spanprof_context* out);

/* No ids, no tags. */
SPANPROF_API void spanprof_context_clear(void);

/* The endpoint (route, method name) of all spans under a local root, at any time before the profile
 * is written. -ENOSPC: as spanprof_intern. */
SPANPROF_API int spanprof_endpoint_set(uint64_t root_span_id, const char* name, size_t length);

/* The position of an attribute, added behind those of attributes= if it is new. -ENOSPC: there are
 * SPANPROF_TAG_COUNT already. */
SPANPROF_API int spanprof_attribute(const char* name, size_t length);

/* Sets a resource attribute of the process (service.name, ...) for readers and profiles. */
SPANPROF_API int spanprof_resource_set(const char* key, const char* value);

/* Counters of everything that was refused, dropped or given up. Names are stable; NULL behind the
 * last one. */
SPANPROF_API const char* spanprof_counter_name(unsigned index);
SPANPROF_API uint64_t spanprof_counter_value(unsigned index);

/* With latency=on. */
enum { SPANPROF_LATENCY_WRITE = 0, SPANPROF_LATENCY_HANDLER_READ = 1 };
typedef struct {
  uint64_t count, p50_ns, p99_ns, p999_ns;
} spanprof_latency_summary;
SPANPROF_API int spanprof_latency(int which, spanprof_latency_summary* out);

#ifdef __cplusplus
}
#endif

#endif /* SPANPROF_CONTEXT_H */
