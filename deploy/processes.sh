# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
# Processes that a script starts and that never outlive it; sourced by bash.
# Each runs in a session of its own (so group id = process id), and what it
# starts ends with it.

# Process group ids of what is running.
GROUPS_STARTED=()

# Seconds that a group has to end after it is asked to.
GRACE_SECONDS=10

# stop_groups_at_exit: from now on, whatever ends the script ends the groups.
stop_groups_at_exit() {
  trap stop_groups EXIT
  trap 'exit 130' INT
  trap 'exit 143' TERM
  trap 'exit 129' HUP
}

# start_group PROGRAM ARG...: in the background. STARTED is its process id.
start_group() {
  setsid "$@" </dev/null &
  STARTED=$!
  GROUPS_STARTED+=("$STARTED")
}

# run_step PROGRAM ARG...: like the plain command, but signals to the script
# are acted on at once. Returns its status.
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

# wait_for_file FILE PID [SECONDS]: until FILE has content. Fails when process
# PID ends first or after SECONDS (default 30).
wait_for_file() {
  local until=$((SECONDS + ${3:-30}))
  while [[ ! -s $1 ]]; do
    kill -0 "$2" 2>/dev/null && ((SECONDS < until)) || return 1
    sleep 0.02
  done
}

# group_runs GROUP: has it a process that is not a zombie?
group_runs() {
  awk -v group="$1" '
    {sub(/.*\) /, "")  # the name may hold anything
     if ($3 == group && $1 != "Z") {found = 1; exit}}
    END {exit !found}' /proc/[0-9]*/stat 2>/dev/null
}

# stop_groups: asks all groups to end, then makes them; returns when they are
# gone.
stop_groups() {
  local group until=$((SECONDS + GRACE_SECONDS))
  trap '' INT TERM HUP  # a second Ctrl-C must not stop the stopping
  # A signal may have come before start_group noted its process, and before
  # that became a group of its own.
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

# job_runs PID: is it a background process of this script that has not ended?
job_runs() {
  local running
  running=$(jobs -pr)
  [[ $'\n'$running$'\n' == *$'\n'$1$'\n'* ]]
}
