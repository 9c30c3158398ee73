# shellcheck shell=bash
# Configuring and building with CMake, for this machine and for others. Sourced by ./dev.

# The wrapper scripts around zig differ by content, and are as new as their build folder.
export CCACHE_COMPILERCHECK=content
# A clone in another folder finds the objects that an earlier clone left in ccache. Its debug
# information then names the earlier folder, which matters to nobody in CI.
if [[ -n ${CI:-} ]]; then
  export CCACHE_BASEDIR=$ROOT CCACHE_NOHASHDIR=1
fi

launcher_options() {
  if command -v ccache >/dev/null; then
    echo -DCMAKE_C_COMPILER_LAUNCHER=ccache -DCMAKE_CXX_COMPILER_LAUNCHER=ccache
  fi
}

# configure_preset PRESET [CMAKE-OPTION...]
configure_preset() {
  local preset=$1
  shift
  # shellcheck disable=SC2046 # Two words, or none.
  cmake --preset "$preset" $(launcher_options) "$@"
}

# build_preset PRESET [CMAKE-OPTION...]
build_preset() {
  configure_preset "$@" && cmake --build "build/$1" -j "$JOBS"
}

# Builds what users run, with neither tests nor benchmarks: their libraries need not be there.
build_release() {
  quietly build build_preset release \
    -DSPANPROF_BUILD_TESTS=OFF -DSPANPROF_BUILD_BENCHMARKS=OFF
}

# with_core_archives COMMAND...: a runtime's part is built with the core's archives of the release build, which has to
# be there. What a package compiles itself, the core too, is tested by the parts that install packages.
with_core_archives() {
  SPANPROF_CORE_ARCHIVES=$ROOT/build/release/lib "$@"
}

build_benchmarks() {
  quietly build build_preset release \
    -DSPANPROF_BUILD_TESTS=OFF -DSPANPROF_BUILD_BENCHMARKS=ON
}

# quietly NAME COMMAND...: runs a build with its output in a log, which is shown when it fails.
quietly() {
  local log=$LOGS/$1.log
  shift
  echo "Building, with output in ${log#"$ROOT"/}"
  run_logged "$log" "$@"
  if ((LOGGED_STATUS != 0)); then
    show_log_end "$log"
    die "the build failed"
  fi
}

# ---- Other machines ------------------------------------------------------------------------------

# build_cross DIR CMAKE-OPTION...: the context core and its tests, by another compiler.
build_cross() {
  local dir=$1 name
  shift
  # Header-only dependencies, one by one: with all of /usr/include in its path, a cross compiler
  # would take this machine's libc headers for the target's.
  local headers=$dir/host_headers
  mkdir -p "$headers"
  for name in tl protozero; do ln -sfn "/usr/include/$name" "$headers/$name"; done
  # shellcheck disable=SC2046 # Two words, or none.
  cmake -G Ninja -S "$ROOT" -B "$dir" $(launcher_options) \
    -DCMAKE_BUILD_TYPE=RelWithDebInfo \
    -DSPANPROF_CONTEXT_ONLY=ON \
    -DSPANPROF_BUILD_COMMAND=OFF \
    -DSPANPROF_GTEST_SOURCE=/usr/src/googletest \
    -DSPANPROF_EXTRA_INCLUDE="$headers" \
    "$@" &&
    cmake --build "$dir" -j "$JOBS"
}

build_arm64() {
  build_cross "$ROOT/build/arm64" \
    -DCMAKE_TOOLCHAIN_FILE="$ROOT/cmake/toolchain-aarch64-linux-gnu.cmake"
}

# build_zig DIR ZIG-TARGET [CMAKE-OPTION...]
build_zig() {
  build_cross "$1" \
    -DCMAKE_TOOLCHAIN_FILE="$ROOT/cmake/toolchain-zig.cmake" \
    -DSPANPROF_ZIG="$ZIG" \
    -DSPANPROF_ZIG_CACHE="$CACHE/zig-$ZIG_VERSION-cache" \
    -DSPANPROF_ZIG_TARGET="$2" "${@:3}"
}
