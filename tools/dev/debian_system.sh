# shellcheck shell=bash
# Debian systems in folders of the cache, for tests that must not find this tree or what is installed on
# this machine. Sourced by ./dev.

# The mirror that this machine's apt uses, or nothing.
debian_mirror() {
  apt-get indextargets --format "\$(REPO_URI) \$(LABEL)" 'Identifier: Packages' |
    awk '$2 == "Debian" { print $1; exit }'
}

# ensure_debian_system FOLDER SUITE PACKAGES: PACKAGES is a list with commas. The system is FOLDER/system.
ensure_debian_system() {
  ensure_sets debootstrap || return 1
  DEBIAN_FOLDER=$1 DEBIAN_SUITE=$2 DEBIAN_PACKAGES=$3
  # What an interrupted installation left belongs to root.
  if [[ ! -e $1/complete && -e $1 ]]; then as_root rm -rf "$1"; fi
  ensure_kept "$1" "Debian $2 with $3" install_debian_system || return 1
  if ! in_debian_system "$1" true; then
    # shellcheck disable=SC2034 # Its caller's.
    INSTALL_PROBLEM="nothing can be started in $1/system: that takes root and a mount namespace"
    return 1
  fi
}

install_debian_system() {
  local mirror
  mirror=$(debian_mirror)
  if [[ -z $mirror ]]; then
    echo "apt knows no mirror of Debian"
    return 1
  fi
  mkdir -p "$DEBIAN_FOLDER" &&
    as_root debootstrap --variant=minbase --include="$DEBIAN_PACKAGES" "$DEBIAN_SUITE" \
      "$DEBIAN_FOLDER/system" "$mirror"
}

# in_debian_system FOLDER COMMAND...: as root of that system, with a clean environment and no network.
in_debian_system() {
  enter_debian_system --net "$@"
}

# The same with this machine's network: for tests that have servers on the loopback interface.
in_debian_system_with_network() {
  enter_debian_system --mount "$@"
}

# enter_debian_system NAMESPACE FOLDER COMMAND...: what is mounted is gone when the command has ended.
enter_debian_system() {
  # shellcheck disable=SC2016 # The inner shell's.
  as_root unshare --mount "$1" --propagation private bash -c '
    set -e
    for folder in proc dev; do mount --rbind "/$folder" "$1/$folder"; done
    exec chroot "$1" env -i PATH=/usr/local/bin:/usr/bin:/bin HOME=/root LC_ALL=C.UTF-8 "${@:2}"
  ' enter_debian_system "$2/system" "${@:3}"
}
