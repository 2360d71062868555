#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Checks deploy/nftables/millrace.nft with Debian's nft, which it installs: the
# rules are valid, and loading them twice leaves them as after the first time.
# Needs root; changes the rules of a network namespace of its own only.
set -euo pipefail
cd "$(dirname "$0")/../.."
command -v nft >/dev/null || {
  apt-get update -qq
  apt-get install -y -qq --no-install-recommends nftables >/dev/null
}
rules=deploy/nftables/millrace.nft
unshare --net bash -euc '
  nft -c -f "$0"
  nft -f "$0"
  once=$(nft list ruleset)
  nft -f "$0"
  [[ $(nft list ruleset) == "$once" ]]
  for port in 7000 7080 29500; do grep -q "\<$port\>" <<<"$once"; done
' "$rules"
echo "$rules is valid"
