//! The trace context of a thread, in libspanprof: which span is active. A traced future carries
//! one: it starts with its creator's, has its own at each poll on whatever thread, and the thread
//! gets back what it had.
#![allow(unsafe_code)] // Calls of the C interface, spanprof/context.h.

use core::ffi::{c_char, c_int};
use std::ffi::{CStr, CString};
use std::fmt;

/// Ids and tags, as in `spanprof/context.h`. 0 is "none".
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Context {
    size: u32,
    /// The flags of the W3C trace context.
    pub trace_flags: u32,
    /// The upper half of the trace id.
    pub trace_id_high: u64,
    /// The lower half of the trace id.
    pub trace_id_low: u64,
    /// The active span.
    pub span_id: u64,
    /// The span under which this process works on the trace.
    pub root_span_id: u64,
    /// Numbers that [`intern`] gave.
    pub tags: [u32; 10],
}

impl Default for Context {
    fn default() -> Self {
        Self::NONE
    }
}

const EINVAL: i32 = 22;

extern "C" {
    fn spanprof_init(options: *const c_char) -> c_int;
    fn spanprof_start(options: *const c_char) -> c_int;
    fn spanprof_stop() -> c_int;
    fn spanprof_error() -> *const c_char;
    fn spanprof_attribute(name: *const c_char, length: usize) -> c_int;
    fn spanprof_intern(value: *const c_char, length: usize) -> u32;
    fn spanprof_context_get(out: *mut Context) -> c_int;
    fn spanprof_context_update(context: *const Context) -> c_int;
    fn spanprof_context_swap(replacement: *const Context, out: *mut Context);
    fn spanprof_context_clear();
}

impl Context {
    /// No span, no tags.
    pub const NONE: Context = Context {
        size: size_of::<Context>() as u32,
        trace_flags: 0,
        trace_id_high: 0,
        trace_id_low: 0,
        span_id: 0,
        root_span_id: 0,
        tags: [0; 10],
    };

    /// A span and the local root of its trace, as `spanprof_context_set` takes them.
    pub const fn of_span(span_id: u64, root_span_id: u64) -> Context {
        Context {
            span_id,
            root_span_id,
            ..Self::NONE
        }
    }

    /// The same with the 128-bit trace id.
    pub const fn of_trace(trace_id: u128, span_id: u64, root_span_id: u64) -> Context {
        Context {
            trace_id_high: (trace_id >> 64) as u64,
            trace_id_low: trace_id as u64,
            ..Self::of_span(span_id, root_span_id)
        }
    }

    /// The calling thread's.
    pub fn current() -> Context {
        let mut context = Self::NONE;
        // SAFETY: `size` says how much it may write.
        if unsafe { spanprof_context_get(&mut context) } != 0 {
            return Self::NONE;
        }
        context
    }

    /// Makes it the calling thread's, in one publication.
    pub fn set(&self) {
        // SAFETY: reads `size` bytes. What it refuses (tags that were never given) it counts.
        unsafe { spanprof_context_update(self) };
    }

    /// Makes it the calling thread's, and gives back what that was.
    #[must_use = "what the thread had has to be given back to it"]
    pub fn exchange(&self) -> Context {
        let mut before = Self::NONE;
        // SAFETY: reads and writes as much as `size` says in each.
        unsafe { spanprof_context_swap(self, &mut before) };
        before
    }

    /// No span and no tags on the calling thread.
    pub fn clear() {
        // SAFETY: it has no condition.
        unsafe { spanprof_context_clear() };
    }
}

/// The number that stands for a tag's value. 0: there is no room for it.
pub fn intern(value: &str) -> u32 {
    // SAFETY: reads that many bytes.
    unsafe { spanprof_intern(value.as_ptr().cast(), value.len()) }
}

/// The position of a tag in [`Context::tags`], which is a new one if nobody asked for it before.
/// None: the library is not initialised, or has no room for one more.
pub fn attribute(name: &str) -> Option<u32> {
    // SAFETY: reads that many bytes.
    let position = unsafe { spanprof_attribute(name.as_ptr().cast(), name.len()) };
    u32::try_from(position).ok()
}

/// What libspanprof refused, in its words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Error {
    /// An errno value.
    pub code: i32,
    message: String,
}

impl fmt::Display for Error {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.message)
    }
}

impl std::error::Error for Error {}

/// Makes contexts be kept; before that every call is one branch. The options are those of
/// `spanprof_init`: `"ctxstorage=otel,attributes=http.route;tenant"`.
pub fn init(options: &str) -> Result<(), Error> {
    call_with_options(spanprof_init, options)
}

/// Starts a recording: `"cpu=10ms,file=profile.pb.gz"`. The options are those of `spanprof_start`.
pub fn start(options: &str) -> Result<(), Error> {
    call_with_options(spanprof_start, options)
}

/// Ends the recording; its profile has been written when this returns.
pub fn stop() -> Result<(), Error> {
    // SAFETY: it has no condition.
    result_of(unsafe { spanprof_stop() })
}

fn call_with_options(
    function: unsafe extern "C" fn(*const c_char) -> c_int,
    options: &str,
) -> Result<(), Error> {
    let Ok(options) = CString::new(options) else {
        let message = format!("the options {options:?} have a zero byte in them");
        return Err(Error {
            code: EINVAL,
            message,
        });
    };
    // SAFETY: a C string, which the function reads only.
    result_of(unsafe { function(options.as_ptr()) })
}

fn result_of(status: c_int) -> Result<(), Error> {
    if status == 0 {
        return Ok(());
    }
    // SAFETY: a C string that is valid until the next call of init, start, stop or dump.
    let message = unsafe { CStr::from_ptr(spanprof_error()) }
        .to_string_lossy()
        .into_owned();
    Err(Error {
        code: -status,
        message,
    })
}
