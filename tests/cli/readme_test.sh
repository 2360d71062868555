#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# readme_test.sh BIN_DIR WORK_DIR: runs the commands from README's "The same by
# hand" verbatim, except for set-up and build, on free ports and for 2 epochs.
set -euo pipefail
. "$(dirname "$0")/script_test.sh"
ln -s "$root/tests" tests

# Picks ports below the ephemeral range, from which connections and other tests'
# servers get theirs.
free_ports() {
  local port found=()
  while ((${#found[@]} < 2)); do
    port=$((10000 + RANDOM % 20000))
    (: >"/dev/tcp/127.0.0.1/$port") 2>/dev/null || found+=("$port")
  done
  echo "${found[@]}"
}
read -r first second < <(free_ports)

{
  echo 'set -euo pipefail'
  sed -n '/^## The same by hand/,/^## In your own/p' "$root/README.md" |
    awk '/^```$/ {show = !show; next} show' |
    sed -e '/setup\.sh/d' -e '/^cmake /d' -e '/^export PATH/d' \
      -e "s/:7001/:$first/g" -e "s/:7002/:$second/g" \
      -e 's/--epochs [0-9]*/--epochs 2/'
} >commands.txt
for needed in 'import ogb' '--partition 1' millrace-train 'digest --servers'; do
  grep -q -- "$needed" commands.txt || fail "README does not show $needed"
done

start_group env PATH="$bin:$PATH" bash commands.txt >output.txt 2>&1
group=$STARTED
wait "$group" || fail "a command of README fails"

# Checks what README says about the results.
(($(grep -c '^127.* ready  ' output.txt) == 2)) || fail "two servers are not ready"
grep -q '^best epoch' output.txt || fail "no accuracy is printed"
digests=$(grep -c '^total ' output.txt) || fail "no digests are printed"
((digests == 2)) || fail "$digests digests are printed"
(($(grep '^total ' output.txt | sort -u | wc -l) == 1)) ||
  fail "the two digests differ"
