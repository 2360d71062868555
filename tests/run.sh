#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Sets up, builds and runs all tests. Ends with ctest's summary; its exit
# status is 0 when every test passed.
#
# Usage: tests/run.sh [OPTION]...
#   --data DIR     a folder of larger graphs in OGB's raw format (arxiv/, acm/,
#                  ...); without it the tests that need them are skipped,
#                  printed and counted
#   --preset NAME  release (default), dev, cuda, asan (with Clang, and with the
#                  fuzz targets) or tsan; folder build/NAME
#   --cuda         the tests of the preset cuda, which also builds what runs on
#                  GPUs and runs it on the CPU (tests/ptxemu/README.md); no GPU
#                  is used
#   --no-train     without LibTorch and the trainer's tests
#   --no-setup     everything that deploy/setup.sh installs is there
#   --filter REGEX only the tests whose name matches
#   --fast         only the tests that take less than about ten seconds each
#   --help         this text
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/../deploy/lib.sh"

data='' preset=release with_setup=true setup_options=(--tests) cmake_options=()
ctest_options=()
while (($# > 0)); do
  case $1 in
    --data | --preset | --filter)
      (($# > 1)) || usage_error "$1 needs a value"
      case $1 in
        --data) data=$2 ;;
        --preset) preset=$2 ;;
        --filter) ctest_options+=(--tests-regex "$2") ;;
      esac
      shift
      ;;
    --cuda) preset=cuda ;;
    --no-train)
      setup_options=(--no-train)
      cmake_options+=(-DMILLRACE_TRAIN=OFF)
      ;;
    --no-setup) with_setup=false ;;
    --fast) ctest_options+=(--label-regex '^fast$') ;;
    --help) print_help; exit 0 ;;
    *) usage_error "unknown option $1" ;;
  esac
  shift
done
[[ $preset =~ ^(release|dev|cuda|asan|tsan)$ ]] ||
  usage_error "--preset is release, dev, cuda, asan or tsan, not '$preset'"
[[ $preset != cuda ]] || setup_options+=(--cuda)
[[ $preset != asan ]] || setup_options+=(--checks)  # for Clang
if [[ -n $data ]]; then
  [[ -d $data ]] || usage_error "--data: there is no folder $data"
  MILLRACE_DATA=$(cd "$data" && pwd)
  export MILLRACE_DATA
fi

if $with_setup; then "$ROOT/deploy/setup.sh" "${setup_options[@]}"; fi
say "building build/$preset with $JOBS jobs"
build_preset "$preset" "${cmake_options[@]}"
say "testing"
run_ctest "$preset" "$preset" "${ctest_options[@]}"
