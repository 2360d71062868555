# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
# Shell functions shared by the examples; sourced by their run.sh.
#
# WORK is where everything that an example writes goes.

. "$(dirname "${BASH_SOURCE[0]}")/../../deploy/lib.sh"
. "$ROOT/deploy/processes.sh"

# start_example "NAME..." "$@": reads the script's arguments and prepares WORK.
# --NAME VALUE sets the variable NAME (a-b: a_b); --quick calls the script's
# function `quick`, which sets them for a short run; --bin DIR says where the
# programs are; --work DIR keeps what is written in a folder
# (new or empty), otherwise it goes to a temporary one that is removed at the
# end. REST holds the arguments after "--". Leaves the script in WORK;
# STARTED_IN is where it was before.
start_example() {
  local names=" $1 bin work " bin=$ROOT/build/release/bin work='' argument
  shift
  for argument in "$@"; do
    [[ $argument != -- ]] || break
    [[ $argument != --quick ]] || quick
  done
  while (($# > 0)); do
    case $1 in
      --help) print_help; exit 0 ;;
      --quick) shift; continue ;;
      --) shift; REST=("$@"); break ;;
      --*) [[ $names == *" ${1#--} "* ]] || usage_error "unknown option $1" ;;
      *) usage_error "unknown argument $1" ;;
    esac
    (($# > 1)) || usage_error "$1 needs a value"
    argument=${1#--}
    printf -v "${argument//-/_}" %s "$2"
    shift 2
  done
  [[ -x $bin/millrace-train ]] ||
    fail "there is no $bin/millrace-train" \
      "run deploy/quickstart.sh, or say where it is with --bin DIR"
  PATH=$(cd "$bin" && pwd):$PATH
  make_work "$work"
}

make_work() {
  stop_groups_at_exit
  if [[ -n $1 ]]; then
    mkdir -p "$1"
    [[ -z $(ls -A "$1") ]] ||
      fail "--work $1 is not empty" "name a new folder, or remove it"
    WORK=$(cd "$1" && pwd)
  else
    WORK=$(mktemp -d)
    trap 'stop_groups; rm -rf "$WORK"' EXIT
  fi
  STARTED_IN=$PWD
  cd "$WORK" || exit
}

# absolute PATH: prints it as seen from where the script was started.
absolute() {
  (cd "$STARTED_IN" && realpath -- "$1")
}

# quoted WORD...: prints a command as one would type it.
quoted() {
  local word space=''
  for word in "$@"; do
    [[ $word =~ ^[[:alnum:]_./:=,@+-]+$ ]] || word=${word@Q}
    printf '%s%s' "$space" "$word"
    space=' '
  done
}

# show WORD...: prints a command that is run to the terminal.
show() {
  printf '\n$ %s\n' "$(quoted "$@")${BACKGROUND:-}" >&2
}

# run COMMAND...: shows it, runs it, and ends the script if it fails.
run() {
  show "$@"
  run_step "$@"
}

# train_on DEVICE WORKERS: reads --device (cpu, cuda or auto). TRAIN_ON has the
# trainers' options for it, MEMORY those of a store that the trainers read
# themselves, and WORKERS_ON the number of trainers: WORKERS on the CPU, or one
# for each GPU.
# shellcheck disable=SC2034  # for the scripts
train_on() {
  TRAIN_ON=() MEMORY=() WORKERS_ON=$2
  case $1 in
    cpu) return ;;
    cuda | auto) ;;
    *) usage_error "--device is cpu, cuda or auto, not '$1'" ;;
  esac
  TRAIN_ON=(--device "$1")
  MEMORY=(--graph-memory auto --feature-memory auto)
  WORKERS_ON=gpus
}

# start_fleet STORE: one server per partition; SERVERS is their LIST.
# shellcheck disable=SC2034  # for the scripts
start_fleet() {
  BACKGROUND=' &' show millrace up "$1"
  start_group millrace up "$1" >servers 2>servers.log
  wait_for_file servers "$STARTED" ||
    fail "the servers of $1 did not start" "$(tail -n 2 servers.log)"
  SERVERS=$(<servers)
}

# free_port: sets FREE_PORT to a port that nothing listens on, that it has not
# returned before, and that the system does not assign by itself.
free_port() {
  while FREE_PORT=$((20000 + (FREE_PORT - 19999) % 12000)); do
    { : </dev/tcp/127.0.0.1/"$FREE_PORT"; } 2>/dev/null || break
  done
}
FREE_PORT=$((20000 + RANDOM % 12000))

# make_with_python SCRIPT ARG...: runs SCRIPT with Debian's Python, which has
# NumPy, if there is one.
make_with_python() {
  local python=/usr/bin/python3
  [[ -x $python ]] || python=python3
  run "$python" "$@"
}

# Names of the parts that are running, by process id.
declare -A PARTS=()

# start_part NAME COMMAND...: shows and starts it; its output goes to
# WORK/NAME.log, that of rank-0 to the terminal too.
start_part() {
  local name=$1 log=$WORK/$1.log
  shift
  BACKGROUND=' &' show "$@"
  if [[ $name == rank-0 ]]; then
    start_group "$@" > >(tee "$log") 2>&1
  else
    start_group "$@" >"$log" 2>&1
  fi
  PARTS[$STARTED]=$name
}

# wait_for_parts [PREFIX]: waits until all parts of this name (default: all)
# have ended. Ends the script, and with it all parts, when one of them fails or
# when another part ends. (It polls: `wait -n` misses parts that end together.)
wait_for_parts() {
  local prefix=${1:-} status part name
  while [[ " ${PARTS[*]}" == *" $prefix"[^\ ]* ]]; do
    for part in "${!PARTS[@]}"; do
      if kill -0 "$part" 2>/dev/null; then continue; fi
      status=0
      wait "$part" || status=$?
      name=${PARTS[$part]}
      [[ $status == 0 && $name == "$prefix"* ]] ||
        fail "$name ended with status $status" "$(tail -n 2 "$WORK/$name.log")"
      unset "PARTS[$part]"
    done
    sleep 0.1
  done
}
