# shellcheck shell=bash
# The parts of ./dev test, in the order in which they run. Sourced by ./dev.

# shellcheck disable=SC2034 # Used by ./dev.
DEFAULT_PARTS=(unit jvm ruby node rust release asan tsan clang models fuzz arm64 musl macos format shell tidy exports)
# Not in every run: what takes too long, which ./dev soak has, and what another part has too.
OTHER_PARTS=(slow hostile coroutine ubsan ruby_newer ruby_gem ruby_asan node_package node_asan)
TEST_PARTS=("${DEFAULT_PARTS[@]}" "${OTHER_PARTS[@]}")

describe_part() {
  case $1 in
    unit) echo "every test, with assertions and signal-safety checks" ;;
    jvm) echo "the Java library and the agent, in JVMs of $OLDER_JDK and $NEWER_JDK" ;;
    ruby) echo "the Ruby gem, built from the tree" ;;
    ruby_newer) echo "the Ruby gem, packed and installed in the Ruby of Debian $NEWER_RUBY_SUITE" ;;
    ruby_gem) echo "the Ruby gem, packed and installed as users install it" ;;
    ruby_asan) echo "the Ruby extension under AddressSanitizer" ;;
    node) echo "the package for Node.js, built from the tree, in ${NODE_VERSIONS[*]}" ;;
    node_package) echo "the package for Node.js, packed and installed as users install it" ;;
    node_asan) echo "the package for Node.js under AddressSanitizer" ;;
    rust) echo "the Rust crate, with tokio and under the command" ;;
    slow) echo "the tests that take minutes or large downloads" ;;
    hostile) echo "a hostile neighbour of the profiler, for ${SPANPROF_HOSTILE_SECONDS:-40} seconds" ;;
    release) echo "the context core's tests, as users run it" ;;
    asan) echo "the context core under the sanitizers of addresses, leaks and undefined behaviour" ;;
    tsan) echo "the context core under ThreadSanitizer" ;;
    coroutine) echo "coroutine probes and the harvester, as users run them and under the sanitizers" ;;
    ubsan) echo "the context core under UndefinedBehaviorSanitizer alone" ;;
    clang) echo "the context core, built by clang" ;;
    models) echo "the formal models of the protocols" ;;
    fuzz) echo "each fuzzer for ${SPANPROF_FUZZ_SECONDS:-10} seconds" ;;
    arm64) echo "the context core for Linux on arm64, run under qemu" ;;
    musl) echo "the context core with musl's libc, run on this machine" ;;
    macos) echo "the context core for macOS, compiled and linked but not run" ;;
    format) echo "clang-format" ;;
    shell) echo "shellcheck" ;;
    tidy) echo "clang-tidy" ;;
    exports) echo "what our libraries export and need; no registry's host in any file" ;;
  esac
}

sets_of_part() {
  case $1 in
    unit | slow | hostile | coroutine | asan | tsan | ubsan) echo build test ;;
    release | exports) echo build test bench ;;
    jvm) echo build jdk maven ;;
    ruby | ruby_newer | ruby_gem | ruby_asan) echo build ruby ;;
    node | node_package | node_asan) echo build node ;;
    rust) echo build rust ;;
    clang) echo build test clang ;;
    models) echo models ;;
    fuzz) echo build fuzz ;;
    arm64) echo build cross arm64 ;;
    musl | macos) echo build cross zig ;;
    format | shell) echo lint ;;
    tidy) echo build test lint ;;
  esac
}

# Prints the sets that a part does without where they cannot be installed.
optional_sets_of_part() {
  case $1 in
    unit) echo "${DECODER_SETS[@]}" ;;
    jvm) echo java8 ;;
    slow) echo jdk maven ;;
  esac
}

# need: the sets of the present part, without which it is skipped.
need() {
  # shellcheck disable=SC2046 # A list of words.
  need_sets_or_skip $(sets_of_part "$PART")
}

# require: the same for the parts that must run everywhere.
require() {
  # shellcheck disable=SC2046 # A list of words.
  require_sets $(sets_of_part "$PART")
}

# ---- Tests on this machine -----------------------------------------------------------------------

part_unit() {
  require
  # A decoder that is missing skips its test, which says so; why it is missing is said here.
  ensure_decoders
  ensure_sets shells || record skipped 0 "shells: $INSTALL_PROBLEM"
  local problem
  while read -r problem; do
    if [[ -n $problem ]]; then record skipped 0 "a reader of our files: $problem"; fi
  done <<<"$DECODER_PROBLEMS"
  build_preset dev
  record skipped 1 "independent_readers/jfr_in_maven_readers: slow, run by ./dev test slow and ./dev soak"
  CTEST_OPTIONS=(-LE '^slow$')
  record_ctest build/dev
}

part_slow() {
  require
  # shellcheck disable=SC2046 # A list of words.
  ensure_sets $(optional_sets_of_part slow) || record skipped 0 "$INSTALL_PROBLEM"
  build_preset dev
  CTEST_OPTIONS=(-L '^slow$')
  record_ctest build/dev
}

# Also in the part unit; here for as long as SPANPROF_HOSTILE_SECONDS says.
part_hostile() {
  require
  build_preset dev
  CTEST_OPTIONS=(-R '^hostile_neighbour/')
  record_ctest build/dev
}

# The whole tree is built once, for the part unit. What the other builds are for, races, sanitizers,
# another compiler, concerns the context core most; the readers of files and of other processes are
# fuzzed under sanitizers.
CORE_ONLY=(-DSPANPROF_CONTEXT_ONLY=ON -DSPANPROF_BUILD_COMMAND=OFF -DSPANPROF_BUILD_BENCHMARKS=OFF)

part_release() {
  require
  configure_preset release -B build/release-core "${CORE_ONLY[@]}"
  cmake --build build/release-core -j "$JOBS"
  record_ctest build/release-core
}

part_asan() {
  require
  # Both at once: a third build of everything would find nothing more.
  build_preset asan "${CORE_ONLY[@]}" -DSPANPROF_SANITIZER=address,undefined
  export UBSAN_OPTIONS=print_stacktrace=1
  with_sanitizer_layout record_ctest build/asan
}

part_tsan() {
  require
  build_preset tsan "${CORE_ONLY[@]}"
  export TSAN_OPTIONS=halt_on_error=1:second_deadlock_stack=1
  with_sanitizer_layout record_ctest build/tsan
}

# In the part unit too. Here in other builds, and in a soak for longer: a minute of 20 million events a
# second, 200 kills of either side.
part_coroutine() {
  require
  local tests=(coroutine_test coroutine_accounting_test coroutine_attach_test coroutine_kill_test
    coroutine_probe_test)
  local without=(-DSPANPROF_BUILD_COMMAND=OFF -DSPANPROF_BUILD_BENCHMARKS=OFF)
  local status=0
  # One at a time: they measure what two processors can do.
  CTEST_OPTIONS=(-R '^coroutine_(accounting_|attach_|kill_|probe_)?test/' -j 1)
  configure_preset release -B build/coroutine-release "${without[@]}"
  cmake --build build/coroutine-release -j "$JOBS" --target "${tests[@]}"
  record_ctest build/coroutine-release || status=$?
  export UBSAN_OPTIONS=print_stacktrace=1 TSAN_OPTIONS=halt_on_error=1:second_deadlock_stack=1
  configure_preset asan -B build/coroutine-asan -DSPANPROF_SANITIZER=address,undefined "${without[@]}"
  cmake --build build/coroutine-asan -j "$JOBS" --target "${tests[@]}"
  with_sanitizer_layout record_ctest build/coroutine-asan || status=$?
  configure_preset tsan -B build/coroutine-tsan "${without[@]}"
  cmake --build build/coroutine-tsan -j "$JOBS" --target "${tests[@]}"
  with_sanitizer_layout record_ctest build/coroutine-tsan || status=$?
  return "$status"
}

part_ubsan() {
  require
  build_preset ubsan "${CORE_ONLY[@]}"
  export UBSAN_OPTIONS=print_stacktrace=1
  record_ctest build/ubsan
}

# with_sanitizer_layout record_ctest DIR: g++ 12's sanitizers expect the kernel to randomise at most
# 28 bits of an address. With more, some runs die with "unexpected memory mapping"; setarch -R turns
# the randomisation off, where the machine allows that.
with_sanitizer_layout() {
  local bits
  bits=$(cat /proc/sys/vm/mmap_rnd_bits 2>/dev/null || echo 32)
  if ((bits > 28)) && setarch -R true 2>/dev/null; then
    "$@" setarch -R
  else
    "$@"
  fi
}

part_clang() {
  need
  # shellcheck disable=SC2046 # Two words, or none.
  cmake -G Ninja -S . -B build/clang $(launcher_options) -DCMAKE_BUILD_TYPE=Debug \
    -DCMAKE_C_COMPILER=clang-19 -DCMAKE_CXX_COMPILER=clang++-19 "${CORE_ONLY[@]}"
  cmake --build build/clang -j "$JOBS"
  record_ctest build/clang
}

part_models() {
  need
  record_script models/run
}

part_fuzz() {
  need
  configure_preset fuzz
  cmake --build build/fuzz -j "$JOBS" --target fuzzers
  run_fuzzers build/fuzz/fuzzers
}

# run_fuzzers FOLDER: as many at once as there are jobs, since each takes its time and one processor.
run_fuzzers() {
  local fuzzer name outputs
  outputs=$(mktemp -d)
  for fuzzer in "$1"/*; do
    if [[ ! -x $fuzzer ]]; then continue; fi
    while (($(jobs -rp | wc -l) >= JOBS)); do wait -n || true; done
    name=$(basename "$fuzzer")
    (
      status=0
      run_fuzzer "$fuzzer" >"$outputs/$name" 2>&1 || status=$?
      echo "$status" >"$outputs/$name.status"
    ) &
  done
  wait
  for fuzzer in "$1"/*; do
    if [[ ! -x $fuzzer ]]; then continue; fi
    name=$(basename "$fuzzer")
    record_command "$name" finished_with "$(cat "$outputs/$name.status" || echo 1)" "$outputs/$name"
  done
  rm -rf "$outputs"
}

# finished_with STATUS OUTPUT: for record_command, of a command that has run already.
finished_with() {
  cat "$2"
  return "$1"
}

# A folder NAME_corpus beside a fuzzer's source is where its inputs start from.
run_fuzzer() {
  local fuzzer=$1 name corpus seeds status=0
  name=$(basename "$fuzzer")
  corpus=$(mktemp -d)
  seeds=$(find src -type d -name "${name}_corpus" | head -n 1)
  "$fuzzer" -max_total_time="${SPANPROF_FUZZ_SECONDS:-10}" -timeout=10 -rss_limit_mb=2048 \
    -artifact_prefix="$LOGS/$name-" -print_final_stats=1 "$corpus" ${seeds:+"$seeds"} || status=$?
  rm -rf "$corpus"
  return "$status"
}

# ---- Tests for other machines --------------------------------------------------------------------

part_arm64() {
  if [[ $(uname -m) == aarch64 ]]; then
    skip_part "this machine is arm64 itself; the part unit has run its tests"
  fi
  need
  build_arm64
  # For the programs that a test starts, where the kernel hands arm64 programs to qemu.
  export QEMU_LD_PREFIX=/usr/aarch64-linux-gnu
  # For tests of what qemu's user emulation does not do (ptrace, a process with one thread), to skip.
  export SPANPROF_EMULATED=qemu-user
  # Under qemu a signal waits for the end of a block of code, a fork keeps memory that it should wipe,
  # and process_vm_readv sees the emulator's memory: what the stress tests look for cannot happen.
  record skipped 1 "stress tests: they need real signals, forks and memory, which qemu-user has not"
  CTEST_OPTIONS=(-LE stress)
  record_ctest build/arm64
}

part_musl() {
  need
  ensure_zig || skip_part "$INSTALL_PROBLEM"
  build_zig "$ROOT/build/musl" "$(uname -m)-linux-musl"
  record_ctest build/musl
}

part_macos() {
  need
  ensure_zig || skip_part "$INSTALL_PROBLEM"
  local cpu
  for cpu in aarch64 x86_64; do
    record_command "$cpu-macos" build_zig "$ROOT/build/macos-$cpu" "$cpu-macos" \
      -DSPANPROF_BUILD_TESTS=OFF # They are of Linux; nothing here could run them.
  done
}

# ---- Checks of the sources -----------------------------------------------------------------------

part_format() {
  need
  record_script tools/check_format
}

part_shell() {
  need
  record_script tools/check_shell
}

part_tidy() {
  need
  configure_preset dev # For its list of compiler calls; no header is generated by the build.
  local status=0
  record_script tools/check_tidy build/dev || status=$?
  # The addon for Node.js is not compiled by CMake.
  if ensure_sets node && ensure_node_version "$NODE_VERSION"; then
    write_node_compile_commands build/node-tidy
    record_script tools/check_tidy build/node-tidy || status=$?
  else
    record skipped 1 "the addon for Node.js: $INSTALL_PROBLEM"
  fi
  return "$status"
}

part_exports() {
  require
  build_release
  record_command exports tools/check_exports build/release/lib/libspanprof.so \
    src/context/exports.txt
  if [[ -f build/release/lib/libspanprof-jvm.so ]]; then
    record_command exports_jvm tools/check_exports build/release/lib/libspanprof-jvm.so \
      runtimes/jvm/agent/exports.txt
  else
    record skipped 1 "libspanprof-jvm.so: it was not built, there is no JDK"
  fi
  record_command hosts tools/check_hosts
}
