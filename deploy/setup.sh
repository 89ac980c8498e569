#!/usr/bin/env bash
# Gets a machine ready to build outboxd and to prove it: a C compiler (Rust links with it) and PostgreSQL's server
# binaries (for private, throwaway clusters). Silent when nothing is missing.
#
# Sourced by deploy/demo and tests/run; run by itself, it does the same. The tests want PgBouncer as well, which nothing
# else needs.

# Where distributions put the server binaries when they are not in PATH; src/proving/cluster/binaries.rs has the same list.
POSTGRES_PLACES=(
  '/usr/lib/postgresql/*/bin'
  '/usr/pgsql-*/bin'
  '/usr/lib/postgresql*/bin'
  '/usr/libexec/postgresql*'
  '/opt/homebrew/opt/postgresql*/bin'
  '/usr/local/opt/postgresql*/bin'
  '/home/linuxbrew/.linuxbrew/opt/postgresql*/bin'
  '/Library/PostgreSQL/*/bin'
  '/Applications/Postgres.app/Contents/Versions/*/bin'
)

setup_say() { printf 'set-up: %s\n' "$*" >&2; }

# A compiler without the C library's headers and start files does not link.
setup_has_cc() {
  command -v cc >/dev/null && printf 'int main(void) { return 0; }\n' | cc -x c -o /dev/null - 2>/dev/null
}

setup_has_postgres() {
  local place dir
  if command -v initdb >/dev/null && command -v postgres >/dev/null; then return 0; fi
  for place in "${POSTGRES_PLACES[@]}"; do
    # The pattern is meant to expand, and none of these has a space in it.
    # shellcheck disable=SC2086
    for dir in $place; do
      if [[ -x $dir/initdb && -x $dir/postgres ]]; then return 0; fi
    done
  done
  return 1
}

setup_is_root() { [[ $(id -u) -eq 0 ]]; }

setup_can_be_root() { setup_is_root || { command -v sudo >/dev/null && sudo -n true 2>/dev/null; }; }

setup_as_root() { if setup_is_root; then "$@"; else sudo -n "$@"; fi; }

# setup_quietly WHAT COMMAND…: says what it does, and shows what the command printed only if it fails.
setup_quietly() {
  local what=$1 log status=0
  shift
  log=$(mktemp)
  setup_say "$what"
  "$@" >"$log" 2>&1 </dev/null || status=$?
  if ((status != 0)); then
    cat "$log" >&2
    setup_say "failed ($status): $what"
  fi
  rm -f "$log"
  return "$status"
}

# Debian's packages start a server on port 5432 when they are installed, unless told not to. A choice already made stays.
setup_no_debian_cluster() {
  local conf=/etc/postgresql-common/createcluster.conf
  if grep -Eqs '^[[:space:]]*create_main_cluster[[:space:]]*=' "$conf"; then return 0; fi
  setup_say "create_main_cluster = false in $conf, so that no server starts by itself"
  setup_as_root mkdir -p "${conf%/*}"
  printf 'create_main_cluster = false\n' | setup_as_root tee -a "$conf" >/dev/null
}

setup_apt() {
  local apt=(env DEBIAN_FRONTEND=noninteractive UCF_FORCE_CONFFOLD=1 apt-get -qq -o DPkg::Lock::Timeout=300)
  if [[ " $* " == *' postgresql '* ]]; then setup_no_debian_cluster || return 1; fi
  # An old list may do; if it does not, installing says so.
  setup_quietly 'apt-get update' setup_as_root "${apt[@]}" update || true
  setup_quietly "apt-get install $*" setup_as_root "${apt[@]}" install -y --no-install-recommends \
    -o Dpkg::Options::=--force-confdef -o Dpkg::Options::=--force-confold "$@"
}

# Sets `install` to the command for this machine's package manager, `line` to what a person would type.
# $1 and $2: whether a C compiler and PostgreSQL are missing (1) or not (0).
setup_plan() {
  local cc=$1 postgres=$2 packages=()
  install=() line=''
  if command -v apt-get >/dev/null; then
    if ((cc)); then packages+=(gcc libc6-dev); fi
    if ((postgres)); then packages+=(postgresql); fi
    install=(setup_apt "${packages[@]}")
    line="sudo $SETUP_SELF"
  elif command -v dnf >/dev/null; then
    if ((cc)); then packages+=(gcc); fi
    if ((postgres)); then packages+=(postgresql-server); fi
    install=(setup_quietly "dnf install ${packages[*]}" setup_as_root dnf install -y -q "${packages[@]}")
    line="sudo dnf install -y ${packages[*]}"
  elif ((cc)) && [[ $(uname -s) == Darwin ]]; then
    line='xcode-select --install'
  elif command -v brew >/dev/null; then
    if ((cc)); then packages+=(gcc); fi
    if ((postgres)); then packages+=(postgresql); fi
    install=(setup_quietly "brew install ${packages[*]}" brew install --quiet "${packages[@]}")
    line="brew install ${packages[*]}"
  elif command -v apk >/dev/null; then
    if ((cc)); then packages+=(build-base); fi
    if ((postgres)); then packages+=(postgresql); fi
    line="sudo apk add ${packages[*]}"
  elif command -v pacman >/dev/null; then
    if ((cc)); then packages+=(gcc); fi
    if ((postgres)); then packages+=(postgresql); fi
    line="sudo pacman -S --needed ${packages[*]}"
  elif command -v zypper >/dev/null; then
    if ((cc)); then packages+=(gcc); fi
    if ((postgres)); then packages+=(postgresql-server); fi
    line="sudo zypper install ${packages[*]}"
  fi
}

# Makes sure that both are there; returns 1, with what to type, where it cannot.
setup_machine() {
  local cc=0 postgres=0 missing=() install line
  setup_has_cc || cc=1
  setup_has_postgres || postgres=1
  if ((!cc && !postgres)); then return 0; fi
  if ((cc)); then missing+=('a C compiler (cc)'); fi
  if ((postgres)); then missing+=("PostgreSQL's server binaries (initdb, postgres)"); fi
  setup_say "missing: $(IFS=,; printf '%s' "${missing[*]}" | sed 's/,/ and /')"

  setup_plan "$cc" "$postgres"
  if ((${#install[@]})) && { [[ ${install[2]:-} == brew ]] || setup_can_be_root; }; then
    "${install[@]}" || return 1
    if setup_has_cc && setup_has_postgres; then
      setup_say 'done'
      return 0
    fi
    setup_say 'installed, but still not found'
    return 1
  fi
  if [[ -z $line ]]; then
    setup_say 'no package manager known here: install them, then run this again'
    return 1
  fi
  setup_say 'may not install it from here; type this, then run this again:'
  printf '%s\n' "$line" >&2
  return 1
}

setup_has_pooler() { command -v pgbouncer >/dev/null || [[ -x /usr/sbin/pgbouncer ]]; }

# Debian's package starts a pooler when it is installed; the tests start their own.
setup_apt_pooler() {
  setup_apt pgbouncer || return 1
  if [[ -d /run/systemd/system ]]; then
    setup_as_root systemctl disable --quiet --now pgbouncer || return 1
  elif [[ -x /etc/init.d/pgbouncer ]]; then
    setup_as_root /etc/init.d/pgbouncer stop >/dev/null 2>&1 || true
  fi
}

# Makes sure that PgBouncer is there. Where it cannot be had, that is no reason not to run the other tests: it says so, and
# tells the tests through the environment.
setup_pooler() {
  local install=()
  if setup_has_pooler; then return 0; fi
  setup_say 'missing: PgBouncer (pgbouncer), for the tests through a pooler'
  if command -v brew >/dev/null && ! command -v apt-get >/dev/null; then
    install=(setup_quietly 'brew install pgbouncer' brew install --quiet pgbouncer)
  elif setup_can_be_root; then
    if command -v apt-get >/dev/null; then
      install=(setup_apt_pooler)
    elif command -v dnf >/dev/null; then
      install=(setup_quietly 'dnf install pgbouncer' setup_as_root dnf install -y -q pgbouncer)
    elif command -v apk >/dev/null; then
      install=(setup_quietly 'apk add pgbouncer' setup_as_root apk add --quiet pgbouncer)
    fi
  fi
  if ((${#install[@]})) && "${install[@]}" && setup_has_pooler; then
    setup_say 'done'
    return 0
  fi
  setup_say 'NOT TESTED HERE: PgBouncer cannot be installed, and the tests through it are skipped'
  export OUTBOXD_TESTS_WITHOUT_PGBOUNCER=1
}

# Rust comes from its own installer, which is the user's choice: it is only looked for.
setup_rust() {
  if ! command -v cargo >/dev/null && [[ -x ${CARGO_HOME:-${HOME:-/root}/.cargo}/bin/cargo ]]; then
    PATH=${CARGO_HOME:-${HOME:-/root}/.cargo}/bin:$PATH
    export PATH
  fi
  if command -v cargo >/dev/null; then return 0; fi
  setup_say 'Rust is missing (cargo); get it from https://rustup.rs, then run this again:'
  printf '%s\n' "curl --proto '=https' --tlsv1.2 -sSf https://sh.rustup.rs | sh" >&2
  return 1
}

SETUP_SELF=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd)/setup.sh

if [[ ${BASH_SOURCE[0]} == "$0" ]]; then
  set -euo pipefail
  setup_machine
fi
