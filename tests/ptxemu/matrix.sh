#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs what uses GPUs under many schedules of tests/ptxemu: its tests and the
# jobs of tests/golden, with 8 seeds of each of three schedules, half of them with
# two GPUs; compares all jobs of tests/oracle; and lets each call of the CUDA
# runtime fail once in a program. Takes an hour and a half on two cores.
#
# Usage: tests/ptxemu/matrix.sh [OPTION]...
#   --build DIR  a build of the preset cuda (default: build/cuda)
#   --seeds A-B  the first and the last seed (default: 1-8), so that several
#                machines can share the work
#   --help       this text
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/../../deploy/lib.sh"

build=$ROOT/build/cuda seeds=1-8
while (($# > 0)); do
  case $1 in
    --build | --seeds)
      (($# > 1)) || usage_error "$1 needs a value"
      case $1 in
        --build) build=$(cd "$2" && pwd) ;;
        --seeds) seeds=$2 ;;
      esac
      shift
      ;;
    --help) print_help; exit 0 ;;
    *) usage_error "unknown option $1" ;;
  esac
  shift
done
[[ $seeds =~ ^([0-9]+)-([0-9]+)$ ]] ||
  usage_error "--seeds is a range such as 1-8, not '$seeds'"
first=${BASH_REMATCH[1]} last=${BASH_REMATCH[2]}
export LD_LIBRARY_PATH=$build/tests/ptxemu/lib
mkdir -p "$build/logs"
failed=0

# attempt WHAT COMMAND...: runs it, and says how it ended.
attempt() {
  local what=$1 start=$SECONDS outcome=passed
  shift
  if ! "$@" >"$build/logs/matrix.txt" 2>&1; then
    outcome=FAILED
    failed=$((failed + 1))
    tail -n 40 "$build/logs/matrix.txt"
  fi
  say "$what: $outcome in $((SECONDS - start)) s"
}

# shellcheck disable=SC2317  # called by name
golden() {
  /usr/bin/python3 -B "$ROOT/tests/golden/digests_test.py" --bin "$build/bin" \
    --data "$ROOT/tests/data" --seed "$1" --sources "$2" --memory "$3" "${@:4}"
}

for ((seed = first; seed <= last; ++seed)); do
  for schedule in random lazy eager; do
    PTXEMU_SEED=$seed PTXEMU_SCHED=$schedule PTXEMU_DEVICES=2 attempt \
      "tests, seed $seed, $schedule" ctest --test-dir "$build" \
      --output-on-failure --parallel "$TEST_JOBS" \
      --tests-regex '^(device_|cuda_runtime|memory_tiers|nccl_|ptxemu_nccl)'
  done
  # Schedules of sources change with the seed; see SCHEDULES in digests_test.py.
  for ((number = 3 * seed - 2; number <= 3 * seed; ++number)); do
    attempt "digests, schedule $number" golden "$number" store,fleet-2 \
      "--graph-memory cuda --feature-memory cuda" --small
    PTXEMU_DEVICES=2 attempt "digests, schedule $number, two GPUs" golden \
      "$number" store-2,fleet \
      "--graph-memory pinned --cache-ratio 0.4 --gpus 0,1" --small
  done
done
attempt "digests of all jobs" golden 1 store,store-2,fleet,fleet-2 \
  "--graph-memory cuda --feature-memory cuda"
attempt "comparisons with the oracle" /usr/bin/python3 -B \
  "$ROOT/tests/oracle/compare.py" --millrace "$build/bin/millrace" --memory \
  "--graph-memory cuda --feature-memory cuda --device-fallback forbid"
attempt "failures at each call" /usr/bin/python3 -B \
  "$ROOT/tests/cuda/failed_programs_test.py" --bin "$build/bin"
say "$failed runs failed"
exit "$((failed > 0))"
