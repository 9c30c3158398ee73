# shellcheck shell=bash
# What ./dev demo shows. Sourced by ./dev.

# A program that publishes its spans, and spanprof reading them from outside while it runs. It ends
# by itself: the program after ten seconds, and the watching with it.
run_demo() {
  local bin=$ROOT/build/release/bin
  echo "Starting a small shop: four workers, each request a trace, its query a span."
  "$bin/context_demo" 10 &
  DEMO_PID=$!
  trap 'kill "$DEMO_PID" 2>/dev/null || true' EXIT
  sleep 1 # Until it has published something.
  echo "\$ spanprof context --watch --interval 2s $DEMO_PID"
  "$bin/spanprof" context --watch --interval 2s "$DEMO_PID"
}
