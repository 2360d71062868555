#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks that each mistake of planted.cu is noticed with some seed and schedule,
and that none is reported where there is none.

  planted_test.py PLANTED
"""
import os
import subprocess
import sys

SEEDS = range(1, 9)
SCHEDULES = ("random", "lazy")


def is_noticed(program, mistake, schedule, seed):
    """Whether the program prints a wrong result, fails or crashes."""
    run = subprocess.run(
        [program, mistake], capture_output=True, text=True, timeout=60,
        check=False, env={**os.environ, "PTXEMU_SCHED": schedule,
                          "PTXEMU_SEED": str(seed)})
    return run.returncode != 0 or run.stdout != "right\n"


def main(program):
    mistakes = subprocess.run([program], capture_output=True, text=True,
                              check=True).stdout.split()
    failed = "none" not in mistakes or len(mistakes) < 2
    for mistake in mistakes:
        noticed = sum(is_noticed(program, mistake, schedule, seed)
                      for schedule in SCHEDULES for seed in SEEDS)
        print(f"{mistake}: noticed by {noticed} of "
              f"{len(SEEDS) * len(SCHEDULES)} runs")
        failed |= (noticed > 0) == (mistake == "none")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
