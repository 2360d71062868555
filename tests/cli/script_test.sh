# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
# Common beginning of the scripts NAME.sh BIN_DIR WORK_DIR that start processes;
# sourced by bash. Changes to a new WORK_DIR.
bin=$1 work=$2
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
. "$root/deploy/processes.sh"
stop_groups_at_exit
rm -rf "$work"
mkdir -p "$work"
cd "$work" || exit

# fail WHAT: also prints the end of every .txt in WORK_DIR.
fail() {
  echo "FAILED: $1"
  tail -n 50 ./*.txt
  exit 1
}

# serve STORE COUNT: starts a fleet that ends with the script; sets SERVERS to
# its list.
serve() {
  start_group "$bin/millrace" up "$1" --servers "$2" >fleet.txt 2>up.txt
  wait_for_file fleet.txt "$STARTED" 10 || fail "no fleet"
  SERVERS=$(head -n 1 fleet.txt)
  grep -q ':' <<<"$SERVERS" || fail "no fleet"
}
