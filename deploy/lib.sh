# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
# Shell functions shared by deploy/, tests/run.sh and .ci/run. Bash scripts
# source this file.
#
# Sets ROOT to the repository's folder, JOBS to the number of compilers that may
# run at once, and TEST_JOBS to the number of tests.

unset CDPATH  # with it, `cd` may print the folder
ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)

# Tests talk to servers of this machine, which no proxy reaches.
no_proxy=${no_proxy:-${NO_PROXY:-}}
[[ ,$no_proxy, == *,127.0.0.1,* ]] ||
  no_proxy+=${no_proxy:+,}localhost,127.0.0.1,::1
export no_proxy NO_PROXY=$no_proxy

# A compiler needs up to about 1.5 GB of memory (for LibTorch's headers), so
# memory may allow fewer jobs than there are processors.
jobs_for_this_machine() {
  local processors memory_kb by_memory
  processors=$(nproc)
  memory_kb=$(awk '/^MemAvailable:/ {print $2}' /proc/meminfo)
  by_memory=$((memory_kb / 1536 / 1024))
  ((by_memory < 1)) && by_memory=1
  echo $((processors < by_memory ? processors : by_memory))
}
JOBS=${MILLRACE_JOBS:-$(jobs_for_this_machine)}
TEST_JOBS=$((2 * JOBS))  # tests wait for programs that they start

# say TEXT...: prints a line of progress, with the seconds since the script
# started.
say() {
  printf '[%4ds] %s\n' "$SECONDS" "$*" >&2
}

# fail WHAT WHAT_TO_DO: prints two lines and exits with status 1.
fail() {
  printf '%s: %s\n%s: %s\n' "${0##*/}" "$1" "${0##*/}" "$2" >&2
  exit 1
}

# usage_error TEXT: prints TEXT and exits with status 2.
usage_error() {
  printf '%s: %s\n%s: see %s --help\n' "${0##*/}" "$1" "${0##*/}" "$0" >&2
  exit 2
}

# print_help: prints the comment at the top of the running script.
print_help() {
  sed -n '3,/^[^#]/ {s/^# \{0,1\}//p}' "$0"
}

# quietly LOG COMMAND...: runs a command with its output going to LOG, and shows
# the end of LOG if it fails. Returns the command's status.
quietly() {
  local log=$1 status=0
  shift
  mkdir -p "$(dirname "$log")"
  "$@" >"$log" 2>&1 || status=$?
  if ((status != 0)); then
    tail -n 40 "$log" >&2
    say "failed: $* (all output: $log)"
  fi
  return "$status"
}

# build_preset PRESET [CMAKE OPTION...]: configures and builds build/PRESET,
# with ccache if it is installed. Builds only BUILD_TARGETS if that is set.
# Continues after an error, so that one run shows all errors.
build_preset() {
  local preset=$1 launcher=() targets=()
  [[ -z ${BUILD_TARGETS:-} ]] || read -ra targets <<<"--target $BUILD_TARGETS"
  shift
  if command -v ccache >/dev/null; then
    launcher=(-DCMAKE_C_COMPILER_LAUNCHER=ccache
              -DCMAKE_CXX_COMPILER_LAUNCHER=ccache)
  fi
  (
    cd "$ROOT" || exit
    quietly "build/logs/configure-$preset.log" \
      cmake --preset "$preset" "${launcher[@]}" "$@" &&
      quietly "build/logs/build-$preset.log" \
        cmake --build --preset "$preset" --parallel "$JOBS" \
        "${targets[@]}" -- -k 0
  )
}

# run_ctest NAME PRESET [CTEST OPTION...]: runs tests of build/PRESET. Prints
# the skipped cases with their reasons and then ctest's summary, which it also
# writes to build/logs/summary-NAME.txt. Returns ctest's status.
run_ctest() {
  local output=$ROOT/build/logs/ctest-$1.txt
  local summary=$ROOT/build/logs/summary-$1.txt
  local preset=$2 status=0
  shift 2
  mkdir -p "$ROOT/build/logs"
  (
    set -o pipefail
    ctest --test-dir "$ROOT/build/$preset" --output-on-failure \
      --no-tests=error --parallel "$TEST_JOBS" "$@" 2>&1 | tee "$output" | sed '/tests passed/,$d'
  ) || status=$?
  sed -n '/tests passed/,$p' "$output" >"$summary"
  print_skipped "$ROOT/build/$preset/Testing/Temporary/LastTest.log"
  cat "$summary"
  return "$status"
}

# print_skipped LOG: prints the cases that GoogleTest or ctest skipped, and why.
print_skipped() {
  awk '
    /: Skipped$/ {getline reason}
    /^\[  SKIPPED \] .*\(.* ms\)$/ {
      printf "skipped: %s: %s\n", $4, reason
      ++count
    }
    /^skipped: / {print; ++count}  # scripts
    END {if (count) printf "%d test cases skipped\n", count}' "$1"
}
