# shellcheck shell=bash
# Running the parts of the tests and counting what they did. Sourced by ./dev.
#
# A part is a function part_NAME. It runs in a subshell with its output in build/logs/NAME.log, and
# says what it did by `record`. A part that records nothing has failed, and so has one that ends
# with an error but recorded no failure (a build that broke, say).

# run_logged LOG COMMAND...: sets LOGGED_STATUS. The subshell must not stand in a condition: bash
# would ignore its errors there.
LOGGED_STATUS=0
run_logged() {
  local log=$1
  shift
  mkdir -p "$LOGS"
  set +e
  (
    set -e
    "$@"
  ) >"$log" 2>&1 </dev/null
  LOGGED_STATUS=$?
  set -e
}

# show_log_end LOG [LINES]: shows the end of a log, without the lines of ninja and ctest about what went well.
show_log_end() {
  local dull='^ *(Start +[0-9]+:|[0-9]+/[0-9]+ Test .* Passed |\[[0-9]+/[0-9]+\] [A-Z][a-z]+ing )'
  { grep -avE "$dull" "$1" || true; } | tail -n "${2:-60}" | sed 's/^/  | /'
  echo "  the whole output: ${1#"$ROOT"/}"
}

# record passed|failed|skipped COUNT [WHAT]: WHAT names the failed or skipped thing and the reason.
record() {
  echo "$1 $2 ${3:-}" >>"$LOGS/$PART.counts"
}

# skip_part REASON: ends the part.
skip_part() {
  record skipped 1 "the whole part: $1"
  exit 0
}

need_sets_or_skip() {
  ensure_sets "$@" || skip_part "$INSTALL_PROBLEM"
}

# record_command NAME COMMAND...: one test that is a whole command. What a failed one printed is shown
# in place of the part's end, which is of the last command.
record_command() {
  local name=$1 output=$LOGS/$PART.output status=0
  shift
  echo "-- $name: $*"
  "$@" >"$output" 2>&1 || status=$?
  cat "$output"
  if ((status == 0)); then
    record passed 1
  else
    record failed 1 "$name: exit status $status"
    cat "$output" >>"$LOGS/$PART.failures"
  fi
}

# record_script COMMAND...: a script of ours. Its last line is "N passed, N failed[, N skipped]", and
# it may name what did not pass in lines that begin with "FAILED" or "skipped".
record_script() {
  local output=$LOGS/$PART.output status=0 line name
  "$@" 2>&1 | tee "$output" || status=$?
  line=$(grep -aE '^[0-9]+ passed, [0-9]+ failed' "$output" | tail -n 1 || true)
  if [[ $line =~ ^([0-9]+)\ passed,\ ([0-9]+)\ failed(,\ ([0-9]+)\ skipped)? ]]; then
    record passed "${BASH_REMATCH[1]}"
    record failed "${BASH_REMATCH[2]}"
    record skipped "${BASH_REMATCH[4]:-0}"
    while read -r line name; do
      record "${line,,}" 0 "$name"
    done < <(grep -aE '^(FAILED|skipped) ' "$output" || true)
  fi
  return "$status"
}

# record_ctest DIR [WRAPPER...]: runs a build folder's tests, by way of a command such as setarch.
CTEST_OPTIONS=()
record_ctest() {
  local dir=$1 results=$LOGS/$PART.xml status=0
  shift
  rm -f "$results"
  "$@" ctest --test-dir "$dir" -j "$JOBS" --output-on-failure --no-tests=error \
    --output-junit "$results" "${CTEST_OPTIONS[@]}" || status=$?
  if [[ -f $results ]]; then
    record_junit "$results"
    show_failed_tests "$results" >>"$LOGS/$PART.failures"
  fi
  return "$status"
}

# show_failed_tests FILE: what each failed test of ctest's report printed, its first lines (where
# sanitizers say what they found) and its last.
show_failed_tests() {
  awk "$UNESCAPED"'
    /<testcase / {
      failed = / status="fail"/
      test = $0; sub(/.* name="/, "", test); sub(/".*/, "", test)
      if (failed) print "-- " unescaped(test)
      count = 0
    }
    failed && /<system-out>/ { printing = 1; sub(/.*<system-out>/, "") }
    printing {
      ended = sub(/<\/system-out>.*/, "")
      lines[++count] = unescaped($0)
      if (ended) {
        printing = 0
        for (i = 1; i <= count; ++i) {
          if (i <= 30 || i > count - 20) print lines[i]
          else if (i == 31) print "... " count - 50 " lines ..."
        }
      }
    }
  ' "$1"
}

# For awk programs that read ctest's report.
UNESCAPED='function unescaped(text) {
  gsub(/&lt;/, "<", text); gsub(/&gt;/, ">", text); gsub(/&quot;/, "\"", text)
  gsub(/&apos;/, "\047", text); gsub(/&amp;/, "\\&", text)
  return text
}'

# record_junit FILE: ctest's own report, with what GoogleTest or a script printed in it. All text in
# it is escaped, so a line at a time is enough. The names of parameterised tests end with a dump of
# the parameter.
record_junit() {
  local kind count what
  while read -r kind count what; do
    record "$kind" "$count" "$what"
  done < <(awk "$UNESCAPED"'
    function attribute(name) {
      if (!match($0, " " name "=\"[^\"]*\"")) return ""
      return substr($0, RSTART + length(name) + 3, RLENGTH - length(name) - 4)
    }
    /<testcase / { test = attribute("name"); sub(/ *#.*/, "", test); status = attribute("status"); reason = "" }
    /: Skipped$/ { take_reason = 1; next }
    match($0, /^\t*(<system-out>)?(skipped|SKIPPED): /) { reason = substr($0, RLENGTH + 1); next }
    take_reason { if (reason == "") reason = $0; take_reason = 0 }
    /<\/testcase>/ {
      if (status == "run") ++passed
      else if (status == "fail") print "failed 1 " test
      else print "skipped 1 " test ": " (reason == "" ? "ctest: " status : unescaped(reason))
    }
    END { print "passed " passed + 0 }
  ' "$1")
}

# count_of KIND: the sum over what the present part recorded.
count_of() {
  awk -v kind="$1" '$1 == kind { sum += $2 } END { print sum + 0 }' "$LOGS/$PART.counts"
}

# Adds to TOTAL_PASSED, TOTAL_FAILED and TOTAL_SKIPPED.
run_part() {
  PART=$1
  local started=$SECONDS log=$LOGS/$1.log passed failed skipped
  mkdir -p "$LOGS"
  : >"$LOGS/$PART.counts"
  : >"$LOGS/$PART.failures"
  echo "== $PART: $(describe_part "$PART")"
  run_logged "$log" "part_$PART"

  if ((LOGGED_STATUS != 0 && $(count_of failed) == 0)); then
    record failed 1 "the part ended with exit status $LOGGED_STATUS"
  fi
  passed=$(count_of passed) failed=$(count_of failed) skipped=$(count_of skipped)
  if ((passed + failed + skipped == 0)); then
    failed=1
    record failed 1 "the part ran no test"
  fi
  if [[ -s $LOGS/$PART.failures ]]; then
    show_log_end "$LOGS/$PART.failures" 200
  elif ((failed > 0)); then
    show_log_end "$log"
  fi
  awk '$1 != "passed" && NF > 2 { kind = $1; $1 = $2 = ""; print "  " kind ":" substr($0, 2) }' \
    "$LOGS/$PART.counts"
  echo "$PART: $passed passed, $failed failed, $skipped skipped ($((SECONDS - started)) s)"
  ((TOTAL_PASSED += passed, TOTAL_FAILED += failed, TOTAL_SKIPPED += skipped)) || true
}

# run_parts PART...: exits with 1 when anything failed.
run_parts() {
  local part sets=()
  TOTAL_PASSED=0 TOTAL_FAILED=0 TOTAL_SKIPPED=0
  # One installation for all parts is much faster than one each. When it fails, each part tries
  # again for itself, and those that can do without are skipped with the reason.
  for part in "$@"; do
    read -r -a sets <<<"${sets[*]} $(sets_of_part "$part") $(optional_sets_of_part "$part")"
  done
  ensure_sets "${sets[@]}" || echo "Not everything could be installed: $INSTALL_PROBLEM"
  for part in "$@"; do run_part "$part"; done
  echo "$TOTAL_PASSED passed, $TOTAL_FAILED failed, $TOTAL_SKIPPED skipped"
  ((TOTAL_FAILED == 0))
}
