# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
# Starts processes that never outlive the script that sources this file (in
# bash). Each runs in its own session (so its group id is its process id), and
# its child processes end with it.

# Process group ids of the processes that are running.
GROUPS_STARTED=()

# Seconds that a group gets to end before it is killed.
GRACE_SECONDS=10

# stop_groups_at_exit: from now on, the groups are stopped however the script
# ends.
stop_groups_at_exit() {
  trap stop_groups EXIT
  trap 'exit 130' INT
  trap 'exit 143' TERM
  trap 'exit 129' HUP
}

# start_group PROGRAM ARG...: runs a program in the background. Sets STARTED to
# its process id.
start_group() {
  setsid "$@" </dev/null &
  STARTED=$!
  GROUPS_STARTED+=("$STARTED")
}

# run_step PROGRAM ARG...: runs a program in the foreground, but lets the script
# handle signals at once. Returns the program's status.
run_step() {
  local status=0
  start_group "$@"
  wait "$STARTED" || status=$?
  forget_group "$STARTED"
  return "$status"
}

forget_group() {
  local group kept=()
  for group in "${GROUPS_STARTED[@]}"; do
    [[ $group == "$1" ]] || kept+=("$group")
  done
  GROUPS_STARTED=("${kept[@]}")
}

# wait_for_file FILE PID [SECONDS]: waits until FILE has content. Fails if
# process PID ends first, or after SECONDS (default 30).
wait_for_file() {
  local until=$((SECONDS + ${3:-30}))
  while [[ ! -s $1 ]]; do
    kill -0 "$2" 2>/dev/null && ((SECONDS < until)) || return 1
    sleep 0.02
  done
}

# group_runs GROUP: succeeds if the group has a process that is not a zombie.
# Debian's awk (mawk) would end at a file that is not there, as when a process
# ends meanwhile.
group_runs() {
  awk -v group="$1" '
    {sub(/.*\) /, "")  # the name may contain anything
     if ($3 == group && $1 != "Z") {found = 1; exit}}
    END {exit !found}' < <(cat /proc/[0-9]*/stat 2>/dev/null)
}

# stop_groups: sends SIGTERM to all groups and, after GRACE_SECONDS, SIGKILL.
# Returns when they are gone.
stop_groups() {
  local group until=$((SECONDS + GRACE_SECONDS))
  trap '' INT TERM HUP  # a second Ctrl-C must not interrupt this
  # The signal may have arrived before start_group recorded its process, or
  # before the process had its own group.
  local groups=("${GROUPS_STARTED[@]}")
  for group in $(jobs -p); do groups+=("$group"); done
  for group in "${groups[@]}"; do
    kill -TERM -- "-$group" 2>/dev/null || kill -TERM "$group" 2>/dev/null ||
      true
  done
  for group in "${groups[@]}"; do
    while group_runs "$group" || job_runs "$group"; do
      ((SECONDS < until)) || kill -KILL -- "-$group" "$group" 2>/dev/null ||
        true
      sleep 0.05
    done
    wait "$group" 2>/dev/null || true
  done
  GROUPS_STARTED=()
}

# job_runs PID: succeeds if PID is a background process of this script that has
# not ended.
job_runs() {
  local running
  running=$(jobs -pr)
  [[ $'\n'$running$'\n' == *$'\n'$1$'\n'* ]]
}
