#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# In the system: builds the program of docs/loader.md with what libmillrace-dev
# depends on.
. "$(dirname "$0")/lib.sh"
cmake -S /srv/test/consumer -B /tmp/consumer -G Ninja -DCMAKE_BUILD_TYPE=Release
cmake --build /tmp/consumer
millrace import ogb /srv/test/cora --split public --out /tmp/cora
/tmp/consumer/count_seeds /tmp/cora | grep -x '3 batches, 140 seeds'
rm -r /tmp/consumer /tmp/cora
