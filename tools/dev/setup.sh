# shellcheck shell=bash
# Finding and installing what the other parts of ./dev need. Sourced by ./dev.

# shellcheck disable=SC2034 # Used by ./dev.
PACKAGE_SETS=(build test shells bench profilers lint models clang fuzz cross arm64 zig python go jdk postgres java8 browser maven ruby ruby_bench ruby_server jruby debootstrap node rust)

ZIG_VERSION=0.17.0
# The newest that Debian 12's Go can compile.
PPROF_VERSION=v0.0.0-20240525223248-4bfdf5a9a2af
PYTHON_DECODERS=('opentelemetry-proto==1.45.*' protobuf perfetto==0.59.1)

# Prints the Debian packages of one set. A command installs only the sets that it needs, so that
# `./dev demo` on a new machine brings no test library and no second compiler.
packages_of() {
  case $1 in
    build) echo g++ cmake ninja-build ccache libprotozero-dev libcli11-dev libfmt-dev \
      nlohmann-json3-dev libexpected-dev robin-map-dev zlib1g-dev libdw-dev libsqlite3-dev ;;
    test) echo libgtest-dev libgmock-dev librapidcheck-dev libasio-dev gdb binutils python3 ;;
    # What the generated man pages and completions are tried with.
    shells) echo groff-base fish zsh ;;
    bench) echo libbenchmark-dev ;;
    profilers) echo libgoogle-perftools4 linux-perf ;;
    lint) echo clang-format-19 clang-tidy-19 shellcheck ;;
    models) echo spin gcc libc6-dev ;;
    clang) echo clang-19 ;;
    fuzz) echo clang-19 libclang-rt-19-dev ;;
    # GoogleTest's sources: a cross compiler has no installed library to link.
    cross) echo googletest ;;
    arm64) echo g++-aarch64-linux-gnu qemu-user-static ;;
    # musl's loader runs the tests that link the shared library.
    zig) echo python3-venv musl ;;
    # What reads our files in the tests: see ensure_decoders.
    python) echo python3-venv ;;
    go) if [[ -z $(find_go) ]]; then echo golang-go; fi ;;
    jdk) echo openjdk-17-jdk-headless ;;
    postgres) echo postgresql ;;
    # Makes a Java from elsewhere run here: see ensure_java_8.
    java8) echo patchelf debian-archive-keyring ;;
    browser) echo chromium ;;
    maven) echo maven ;;
    # The parser has the grammar of an old Ruby, which what runs at installation has to keep to.
    ruby) echo ruby ruby-dev ruby-minitest ruby-whitequark-parser rake ;;
    ruby_bench) echo ruby-stackprof ;;
    ruby_server) echo puma ;;
    jruby) echo jruby ;;
    # Makes systems of their own for tests: see ensure_debian_system.
    debootstrap) echo debootstrap debian-archive-keyring ;;
    # Any npm will do, and so Debian's; Node.js itself is a package of npm: see ensure_node_versions.
    node) if ! command -v npm >/dev/null; then echo npm; fi ;;
    # Debian's own Rust is too old for tokio; the one that it builds browsers with is not.
    rust) if ! has_rust; then echo cargo-web rustc-web rustfmt-web; fi ;;
    *) die "there is no package set '$1'" ;;
  esac
}

die() {
  echo "dev: $1" >&2
  if [[ -n ${2:-} ]]; then echo "  hint: $2" >&2; fi
  exit 1
}

is_one_of() {
  local wanted=$1 item
  shift
  for item in "$@"; do
    if [[ $item == "$wanted" ]]; then return 0; fi
  done
  return 1
}

# Prints those packages of the given sets that are not installed, each once.
missing_packages() {
  local set name status
  local -A wanted=()
  for set in "$@"; do
    for name in $(packages_of "$set"); do wanted[$name]=1; done
  done
  while read -r name status; do
    if [[ $status == installed ]]; then unset "wanted[$name]"; fi
  done < <(dpkg-query -W -f='${Package} ${db:Status-Status}\n' "${!wanted[@]}" 2>/dev/null || true)
  echo "${!wanted[@]}"
}

as_root() {
  if ((EUID == 0)); then
    "$@"
  elif [[ -t 0 ]]; then
    sudo "$@"
  else
    sudo -n "$@" # Nobody is there to type a password.
  fi
}

apt() {
  as_root env DEBIAN_FRONTEND=noninteractive apt-get -y -o DPkg::Lock::Timeout=300 "$@" </dev/null
}

# Debian's PostgreSQL starts a server of its own when it is installed, unless it is told not to. The tests
# start theirs.
prevent_database_server() {
  local settings=/etc/postgresql-common/createcluster.conf
  if [[ -e $settings ]]; then return 0; fi
  as_root mkdir -p "${settings%/*}" && echo 'create_main_cluster = false' | as_root tee "$settings" >/dev/null
}

# Sets INSTALL_PROBLEM and returns 1 when the sets are not complete afterwards.
INSTALL_PROBLEM=
ensure_sets() {
  local missing
  INSTALL_PROBLEM=
  if ! command -v dpkg-query >/dev/null; then
    # Another distribution: its user knows its package names, and the build says what it misses.
    return 0
  fi
  missing=$(missing_packages "$@")
  if [[ -z $missing ]]; then return 0; fi
  if [[ -n ${SPANPROF_NO_INSTALL:-} ]]; then
    INSTALL_PROBLEM="SPANPROF_NO_INSTALL is set and these packages are missing: $missing"
    return 1
  fi
  if ((EUID != 0)) && ! command -v sudo >/dev/null; then
    INSTALL_PROBLEM="these packages are missing, and only root can install them: $missing"
    return 1
  fi
  mkdir -p "$LOGS"
  echo "Installing: $missing"
  # A failed update is not the end: the lists on the machine may be good enough.
  if [[ -z ${APT_UPDATED:-} ]]; then
    apt update >"$LOGS/setup.log" 2>&1 || true
    APT_UPDATED=1
  fi
  if [[ " $missing " == *" postgresql "* ]]; then prevent_database_server || true; fi
  # shellcheck disable=SC2086 # A list of words.
  if apt install --no-install-recommends $missing >>"$LOGS/setup.log" 2>&1; then return 0; fi
  INSTALL_PROBLEM="apt-get could not install: $missing ($(grep -m1 '^E:' "$LOGS/setup.log" ||
    echo "see build/logs/setup.log"))"
  return 1
}

require_sets() {
  if ! ensure_sets "$@"; then
    die "$INSTALL_PROBLEM" "as root: apt-get update && apt-get install $(missing_packages "$@")"
  fi
}

# zig is a C++ compiler for musl and macOS inside a Python package. It stays in the user's cache,
# keyed by version: it is 400 MB, and its copies of libc++ take a minute a target to compile.
ZIG_HOME=$CACHE/zig-$ZIG_VERSION
ZIG=$ZIG_HOME/bin/zig

ensure_zig() {
  ensure_sets zig || return 1
  if [[ -x $ZIG ]]; then return 0; fi
  mkdir -p "$CACHE" "$LOGS"
  echo "Installing: ziglang $ZIG_VERSION from PyPI, into $ZIG_HOME"
  if ! install_zig >"$LOGS/zig.log" 2>&1; then
    INSTALL_PROBLEM="ziglang $ZIG_VERSION could not be installed from PyPI (see build/logs/zig.log)"
    return 1
  fi
}

# Ends with the link that ensure_zig looks for, so an interrupted installation is done again.
install_zig() {
  local package
  rm -rf "$ZIG_HOME" &&
    /usr/bin/python3 -m venv "$ZIG_HOME" &&
    "$ZIG_HOME/bin/pip" install --quiet --disable-pip-version-check "ziglang==$ZIG_VERSION" &&
    package=$("$ZIG_HOME/bin/python" -c 'import ziglang; print(ziglang.__path__[0])') &&
    ln -s "$package/zig" "$ZIG"
}

require_zig() {
  ensure_zig || die "$INSTALL_PROBLEM"
}

# ---- Decoders ------------------------------------------------------------------------------------

# Other people's readers of our file formats, for tests/independent_readers.
DECODER_SETS=(python go jdk browser postgres)
PYTHON_DECODERS_HOME=$CACHE/decoders
GO_HOME=$CACHE/go

# Prints the path of Go, if it is there: Debian's, or another in its usual place, which may be newer.
find_go() {
  command -v go || PATH=/usr/local/go/bin command -v go || true
}

# Installs each by itself: one that is not to be had takes nothing from the others. Its test is
# skipped; DECODER_PROBLEMS says why, one problem a line.
DECODER_PROBLEMS=
ensure_decoders() {
  local set
  DECODER_PROBLEMS=
  for set in "${DECODER_SETS[@]}"; do
    ensure_sets "$set" || note_decoder_problem "$INSTALL_PROBLEM"
  done
  ensure_kept "$PYTHON_DECODERS_HOME" "${PYTHON_DECODERS[*]}" install_python_decoders ||
    note_decoder_problem "$INSTALL_PROBLEM"
  ensure_kept "$GO_HOME" "google/pprof $PPROF_VERSION" install_pprof ||
    note_decoder_problem "$INSTALL_PROBLEM"
}

note_decoder_problem() {
  DECODER_PROBLEMS+=${DECODER_PROBLEMS:+$'\n'}$1
}

# ensure_kept FOLDER WHAT COMMAND: COMMAND fills a folder of the cache, unless it holds WHAT already.
# That is written down last, so an interrupted installation is done again.
ensure_kept() {
  local folder=$1 what=$2 command=$3 log=$LOGS/${1##*/}.log
  INSTALL_PROBLEM=
  if [[ $(cat "$folder/complete" 2>/dev/null) == "$what" ]]; then return 0; fi
  if [[ -n ${SPANPROF_NO_INSTALL:-} ]]; then
    INSTALL_PROBLEM="SPANPROF_NO_INSTALL is set and $folder does not have $what"
    return 1
  fi
  mkdir -p "$CACHE" "$LOGS"
  echo "Installing: $what, into $folder"
  rm -rf "$folder"
  if ! "$command" >"$log" 2>&1; then
    INSTALL_PROBLEM="$what could not be installed: $(tail -n 1 "$log") (see build/logs/${log##*/})"
    return 1
  fi
  echo "$what" >"$folder/complete"
}

install_python_decoders() {
  /usr/bin/python3 -m venv "$PYTHON_DECODERS_HOME" &&
    "$PYTHON_DECODERS_HOME/bin/pip" install --quiet --disable-pip-version-check \
      "${PYTHON_DECODERS[@]}"
}

# Go's own module cache stays out of the user's, and can be deleted like any other file.
install_pprof() {
  local go
  go=$(find_go)
  if [[ -z $go ]]; then
    echo "there is no Go"
    return 1
  fi
  GOPATH=$GO_HOME GOBIN=$GO_HOME/bin GOFLAGS=-modcacherw "$go" install \
    "github.com/google/pprof@$PPROF_VERSION"
}

require_decoders() {
  ensure_decoders
  if [[ -n $DECODER_PROBLEMS ]]; then die "$DECODER_PROBLEMS"; fi
}
