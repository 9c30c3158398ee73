# shellcheck shell=bash
# What ./dev demo shows. Sourced by ./dev.

# A program that publishes spans, and spanprof looking into it from outside while it runs.
run_demo() {
  local bin=$ROOT/build/release/bin round
  "$bin/context_demo" &
  DEMO_PID=$!
  trap 'kill "$DEMO_PID" 2>/dev/null || true' EXIT
  for round in 1 2 3 4; do
    sleep 2
    echo "== spanprof context $DEMO_PID ($round of 4)"
    "$bin/spanprof" context "$DEMO_PID"
  done
}
