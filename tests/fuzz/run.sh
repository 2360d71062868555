#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs one fuzz target of build/asan over its corpus. Findings are written to
# build/asan/findings/NAME, and inputs that reach new code to
# build/asan/corpus/NAME, from which the next run starts.
#
# Usage: tests/fuzz/run.sh NAME SECONDS [LIBFUZZER OPTION...]
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/../../deploy/lib.sh"

(($# >= 2)) || usage_error "needs NAME and SECONDS"
name=$1 seconds=$2
shift 2
program=$ROOT/build/asan/fuzz/fuzz_$name
[[ -x $program ]] ||
  fail "there is no target $name in build/asan/fuzz" \
    "build it: cmake --preset asan && cmake --build --preset asan --target fuzzers"

grown=$ROOT/build/asan/corpus/$name findings=$ROOT/build/asan/findings/$name
mkdir -p "$grown" "$findings"
# Keeps files in memory if possible, since targets write one for each input.
base=/dev/shm
[[ -w $base ]] || base=${TMPDIR:-/tmp}
TMPDIR=$(mktemp -d "$base/millrace-fuzz.XXXXXX")
export TMPDIR
trap 'rm -rf "$TMPDIR"' EXIT

# Every input needs less than these limits; no number in an input may decide how
# much memory is allocated.
ASAN_OPTIONS=detect_leaks=1:quarantine_size_mb=32 UBSAN_OPTIONS=print_stacktrace=1 \
  "$program" "$grown" "$ROOT/tests/fuzz/corpus/$name" \
  -max_total_time="$seconds" -timeout=5 -rss_limit_mb=1024 \
  -malloc_limit_mb=256 -max_len=65536 -print_final_stats=1 -verbosity=1 \
  -artifact_prefix="$findings/" "$@"
