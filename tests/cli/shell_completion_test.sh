#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# shell_completion_test.sh BIN_DIR WORK_DIR: the scripts of `millrace
# completion`, as the shells read them.
set -euo pipefail
. "$(dirname "$0")/script_test.sh"
export PATH="$bin:$PATH"

# shellcheck source=/dev/null
source <(millrace completion bash)

# offers WORDS -- CANDIDATES: compares what bash offers for the last of WORDS.
offers() {
  local words=() expected function
  while [[ $1 != -- ]]; do
    words+=("$1")
    shift
  done
  shift
  expected="$*"
  COMP_WORDS=("${words[@]}") COMP_CWORD=$((${#words[@]} - 1))
  COMPREPLY=()
  function=$(complete -p "${words[0]}" | sed 's/.*-F \([^ ]*\).*/\1/')
  "$function"
  [[ ${COMPREPLY[*]} == "$expected" ]] ||
    fail "${words[*]}: offers ${COMPREPLY[*]} instead of $expected"
}

offers millrace imp -- import
offers millrace import re -- reddit
offers millrace help import gl -- glt-partitions
offers millrace partition x --method me -- metis
offers millrace partition x --method = ra -- random
offers millrace digest --fan -- --fanouts
offers millrace digest --seed-order '' -- global local
offers millrace completion z -- zsh
offers millrace-server --graph-memory r -- ram
mkdir -p graphs/cora
touch 'graphs/a file'
offers millrace inspect graphs/ -- 'graphs/a file' graphs/cora
offers millrace digest --store graphs/c -- graphs/cora
offers millrace digest --config 'graphs/a f' -- 'graphs/a file'
offers millrace digest --threads '' --
if [[ -x $bin/millrace-train ]]; then
  offers millrace-train --model g -- gat gatv2 gcn gin
  offers millrace-train --eval-r -- --eval-ranks
fi

# Other shells need not be installed.
for shell in zsh fish; do
  millrace completion $shell >"script.$shell"
  grep -q __complete "script.$shell" || fail "no script for $shell"
  if command -v $shell >/dev/null; then
    $shell -n "script.$shell" || fail "$shell cannot read its script"
  else
    echo "not tried: $shell is not installed"
  fi
done
