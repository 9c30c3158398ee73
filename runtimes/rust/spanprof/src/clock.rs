//! The clocks of events: CLOCK_MONOTONIC, and the processor's cycle counter where it runs evenly on
//! all cores.
#![allow(unsafe_code)] // Reading the counter takes an instruction that Rust has no safe name for.

pub(crate) fn monotonic_nanoseconds() -> u64 {
    let mut now = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: writes to `now` only.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &mut now) };
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

#[inline]
pub(crate) fn cycle_counter() -> u64 {
    #[cfg(target_arch = "x86_64")]
    {
        // SAFETY: every x86-64 processor has the instruction; it touches no memory.
        unsafe { core::arch::x86_64::_rdtsc() }
    }
    #[cfg(target_arch = "aarch64")]
    {
        let count: u64;
        // SAFETY: Linux lets programs read the virtual counter; no memory is touched.
        unsafe { core::arch::asm!("mrs {}, cntvct_el0", out(reg) count, options(nomem, nostack)) };
        count
    }
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    {
        monotonic_nanoseconds()
    }
}

/// Whether the counter keeps its rate, whatever the core does.
pub(crate) fn cycle_counter_is_usable() -> bool {
    #[cfg(target_arch = "x86_64")]
    {
        const POWER_MANAGEMENT: u32 = 0x8000_0007;
        const INVARIANT_COUNTER: u32 = 1 << 8;
        // Safe since Rust 1.94, and not before.
        #[allow(unused_unsafe)]
        // SAFETY: every x86-64 processor has the instruction.
        let cpuid = |leaf| unsafe { core::arch::x86_64::__cpuid(leaf) };
        cpuid(0x8000_0000).eax >= POWER_MANAGEMENT
            && cpuid(POWER_MANAGEMENT).edx & INVARIANT_COUNTER != 0
    }
    #[cfg(not(target_arch = "x86_64"))]
    {
        cfg!(target_arch = "aarch64")
    }
}
