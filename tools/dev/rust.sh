# shellcheck shell=bash
# The Rust crate: its tests, with tokio and under the spanprof command. Sourced by ./dev.

RUST_ROOT=$ROOT/runtimes/rust
RUST_BUILD=$ROOT/build/rust
# The oldest that tokio compiles with; Cargo.toml says the same.
RUST_MINOR=85

# Whether there is a Rust that is new enough, from wherever.
has_rust() {
  local version
  command -v cargo >/dev/null || return 1
  version=$(rustc --version 2>/dev/null) || return 1
  [[ $version =~ ^rustc\ 1\.([0-9]+) ]] && ((BASH_REMATCH[1] >= RUST_MINOR))
}

part_rust() {
  need
  has_rust || skip_part "there is no Rust 1.$RUST_MINOR or newer"
  build_preset release -DSPANPROF_BUILD_TESTS=OFF -DSPANPROF_BUILD_BENCHMARKS=OFF # The command and libspanprof.
  export CARGO_TARGET_DIR=$RUST_BUILD SPANPROF_LIB_DIR=$ROOT/build/release/lib
  export SPANPROF_COMMAND=$ROOT/build/release/bin/spanprof
  cd "$RUST_ROOT" || exit
  cargo fetch --locked || skip_part "the crates that it depends on cannot be fetched"
  if cargo fmt --version >/dev/null 2>&1; then
    record_command rustfmt cargo fmt --check
  else
    record skipped 1 "rustfmt: it is not installed"
  fi
  if cargo clippy --version >/dev/null 2>&1; then
    record_command clippy cargo_with_context clippy --all-targets -- -D warnings
    record_command clippy_alone cargo clippy --locked -p spanprof -- -D warnings
  else
    record skipped 1 "clippy: it is not installed"
  fi
  record_cargo cargo_with_context test --no-fail-fast -- --show-output
}

# cargo_with_context COMMAND ARGUMENT...: cargo, for everything and with everything that the crate can do.
cargo_with_context() {
  local command=$1
  shift
  cargo "$command" --locked --workspace --features spanprof-tests/context "$@"
}

# record_cargo COMMAND...: counts what the test programs say of themselves. A test that could not run passes and prints
# "skipped: REASON".
record_cargo() {
  local output=$LOGS/$PART.output status=0 kind count what
  "$@" 2>&1 | tee "$output" || status=$?
  while read -r kind count what; do
    record "$kind" "$count" "$what"
  done < <(awk '
    /^test result: / {
      for (i = 2; i <= NF; ++i) {
        if ($i == "passed;") passed += $(i - 1)
        if ($i == "ignored;") ignored += $(i - 1)
      }
    }
    /^test .* \.\.\. FAILED$/ { print "failed 1 " $2 }
    /^---- .* stdout ----$/ { test = $2 }
    /^skipped: / { sub(/^skipped: /, ""); print "skipped 1 " test ": " $0; --passed }
    END { print "passed " passed + 0; if (ignored) print "skipped " ignored " ignored by cargo" }
  ' "$output")
  return "$status"
}
