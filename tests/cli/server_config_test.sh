#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# server_config_test.sh BIN_DIR WORK_DIR: the file for a server in
# docs/command-line.md. The server reads each of its lines, and --print-config
# prints them so that they can be read back.
set -euo pipefail
. "$(dirname "$0")/script_test.sh"

# `option = value` lines without comments.
settings() { sed -E 's/ +# .*//; /^#/d; /^$/d' "$1"; }

sed -n '/^# server.conf$/,/^```$/p' "$root/docs/command-line.md" |
  sed '/^```$/d' >server.conf
[[ $(settings server.conf | wc -l) -ge 20 ]] || fail "there is no example"

"$bin/millrace-server" --config server.conf --print-config >printed.conf
# Sizes are printed in bytes.
settings server.conf | sed 's/= 20M/= 20971520/; s/= 8G/= 8589934592/' |
  sort >expected
settings printed.conf | sort >actual
diff expected actual || fail "--print-config prints other options"
grep -q '^partition = 0,2  # server.conf$' printed.conf || fail "no origin"

"$bin/millrace-server" --config printed.conf --print-config >again.conf
diff <(settings printed.conf) <(settings again.conf) || fail "not the same"

# The command line wins over the file, and that over a variable.
MILLRACE_THREADS=2 MILLRACE_MAX_CONNECTIONS=9 "$bin/millrace-server" \
  --config server.conf --trace-slow 2s --print-config >mixed.conf
for line in 'threads = 8  # server.conf' 'trace-slow = 2s  # command line' \
  'max-connections = 9  # MILLRACE_MAX_CONNECTIONS'; do
  grep -qxF "$line" mixed.conf || fail "no line '$line'"
done

echo 'thread = 3' >>server.conf
if "$bin/millrace-server" --config server.conf --print-config 2>error.txt; then
  fail "an unknown option is read"
fi
grep -q 'there is no option --thread' error.txt || fail "$(<error.txt)"
