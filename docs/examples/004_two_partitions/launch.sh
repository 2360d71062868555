#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Starts a sampler server and trainers on each host of a list, waits for the
# trainers, and stops everything: at their end, when a part fails, or at
# Ctrl-C. Line I of the list serves partition I; trainers are ranks in the
# order of the list. Hosts other than 127.0.0.1 and localhost are reached by
# ssh without a password; programs, store and the current folder have the same
# paths there.
#
# Usage: docs/examples/004_two_partitions/launch.sh --hosts FILE --store STORE
#            [OPTION]... -- OPTION OF millrace-train...
#   --hosts FILE       one host per line, "HOST [PORT]"; # starts a comment
#                      (default ports: a free one here, 7001 elsewhere)
#   --store STORE      made by millrace partition
#   --trainers N       trainers on each host (default 1)
#   --master-port N    port of rank 0 (default: a free one if it runs here, else
#                      29500)
#   --bin DIR          where the programs are (default build/release/bin)
#   --work DIR         keep the logs here (default: a temporary folder)
#   --help             this text
# MILLRACE_SSH is the program to use instead of ssh.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/../lib.sh"

# shellcheck disable=SC2034  # of processes.sh
GRACE_SECONDS=5  # less than the process that started this allows
hosts='' store='' trainers=1 master_port='' REST=()
quick() { :; }
start_example 'hosts store trainers master-port' "$@"
cd "$STARTED_IN"
[[ -n $hosts && -n $store ]] || usage_error "--hosts and --store are needed"
bin=$(dirname "$(command -v millrace-train)")
store=$(realpath -- "$store")

is_here() { [[ $1 == 127.0.0.1 || $1 == localhost ]]; }

# start_at HOST NAME COMMAND... With -tt what ssh started dies with it.
start_at() {
  local host=$1 name=$2
  shift 2
  is_here "$host" || set -- "${MILLRACE_SSH:-ssh}" -tt -o BatchMode=yes \
    "$host" "cd ${PWD@Q} && exec $(quoted "$@")"
  start_part "$name" "$@"
}

names=() list=''
while read -r host port _ || [[ -n $host ]]; do
  [[ -n $host && $host != '#'* ]] || continue
  if [[ -z $port ]] && is_here "$host"; then
    free_port
    port=$FREE_PORT
  fi
  names+=("$host")
  list+=${list:+,}$host:${port:-7001}
done <"$hosts"
((${#names[@]} > 0)) || fail "$hosts names no host" "write one per line"

IFS=, read -ra addresses <<<"$list"
for i in "${!names[@]}"; do
  start_at "${names[i]}" "server-$i" "$bin/millrace-server" --store "$store" \
    --partition "$i" --listen "${addresses[i]}" --peers "$list"
done
start_part status-0 "$bin/millrace" status --servers "$list" --wait 60s
wait_for_parts status

free_port
if [[ -z $master_port ]]; then
  is_here "${names[0]}" && master_port=$FREE_PORT || master_port=29500
fi
for ((rank = 0; rank < ${#names[@]} * trainers; ++rank)); do
  host=${names[rank / trainers]}
  on_host=$(printf '%s\n' "${names[@]}" | grep -cFx -- "$host")
  start_at "$host" "rank-$rank" env RANK="$rank" \
    WORLD_SIZE=$((${#names[@]} * trainers)) \
    LOCAL_WORLD_SIZE=$((on_host * trainers)) MASTER_ADDR="${names[0]}" \
    MASTER_PORT="$master_port" "$bin/millrace-train" --servers "$list" \
    "${REST[@]}"
done
wait_for_parts rank
