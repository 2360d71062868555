#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# In the system: what systemd says of the unit and its slice, and of the unit with
# the drop-in for GPUs. Exposure is 0 (best) to 10; a unit without settings has 9.6.
. "$(dirname "$0")/lib.sh"
unit=millrace-server@part0.service
folder=/etc/systemd/system/$unit.d
cp /etc/millrace/example.conf /etc/millrace/part0.conf
systemd-analyze verify $unit millrace.slice 2>&1 | tee /tmp/verify.txt
never grep -i millrace /tmp/verify.txt
systemd-analyze security --offline=yes --threshold=20 $unit
mkdir -p $folder
cp /usr/share/doc/millrace-server/examples/gpu.conf $folder/
systemd-analyze verify $unit 2>&1 | tee /tmp/verify.txt
never grep -i millrace /tmp/verify.txt
systemd-analyze security --offline=yes --threshold=25 $unit
rm -r $folder /etc/millrace/part0.conf
