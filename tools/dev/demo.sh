# shellcheck shell=bash
# What ./dev demo shows. Sourced by ./dev.

# A small web shop under load, profiled: its threads' spans seen from outside while it runs, then the
# profile by endpoint, and a flame graph to open. It ends by itself.
run_demo() {
  local bin=$ROOT/build/release/bin out=$ROOT/build/demo port=''
  mkdir -p "$out"
  rm -f "$out"/*
  mkfifo "$out/port"
  echo "A small web shop, four workers; each request is a trace, its database call a span:"
  echo "\$ spanprof record -o shop.jfr --cpu 1ms --wall 10ms -- shop_service"
  "$bin/spanprof" record -o "$out/shop.jfr" --cpu 1ms --wall 10ms -- "$bin/shop_service" \
    >"$out/port" &
  DEMO_PID=$!
  trap 'kill "$DEMO_PID" 2>/dev/null || true' EXIT
  read -r port <"$out/port"
  rm "$out/port"
  "$bin/shop_load" "$port" 8 >"$out/load.txt" &
  local load=$!
  sleep 2
  local service
  read -r service _ <"/proc/$DEMO_PID/task/$DEMO_PID/children" || true # no newline at its end
  echo
  echo "\$ spanprof context $service        # from outside, while it runs"
  "$bin/spanprof" context "$service"
  wait "$load"
  cat "$out/load.txt"
  kill -TERM "$service"
  wait "$DEMO_PID"
  trap - EXIT
  echo
  echo "\$ spanprof report shop.jfr"
  "$bin/spanprof" report --by endpoint "$out/shop.jfr"
  echo
  echo "\$ spanprof report shop.jfr --endpoint 'GET /search' --by function --limit 8"
  "$bin/spanprof" report "$out/shop.jfr" --endpoint 'GET /search' --by function --limit 8
  echo
  "$bin/spanprof" export "$out/shop.jfr" -o "$out/shop.html"
  "$bin/spanprof" export "$out/shop.jfr" -o "$out/shop.pb.gz"
  echo "The flame graph, with a filter by endpoint and span: ${out#"$PWD"/}/shop.html"
  echo "For go tool pprof, and for the JDK's jfr: ${out#"$PWD"/}/shop.pb.gz and shop.jfr"
}
