#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# In the system: what docs/operations.md says is below /usr/share/millrace/deploy
# is there, and its programs run.
. "$(dirname "$0")/lib.sh"
page=/usr/share/doc/millrace/docs/operations.md
deploy=/usr/share/millrace/deploy
# What is made from the sources is only there.
names=$(grep -oE '\bdeploy/[a-z]+/[a-z_./]*' $page | sed 's/\.$//' | sort -u |
  grep -vE '^deploy/(debian|docker)/')
(($(wc -w <<<"$names") >= 5))
for name in $names; do
  [[ -e /usr/share/millrace/$name ]]
done
cp -r $deploy /tmp/deploy
python3 -B /tmp/deploy/kubernetes/make_prometheusrule.py --check
sed -i 's/> 1800/> 3600/' /tmp/deploy/prometheus/alerts.yml
never python3 -B /tmp/deploy/kubernetes/make_prometheusrule.py --check
/tmp/deploy/kubernetes/make_prometheusrule.py
grep -q '> 3600' /tmp/deploy/kubernetes/base/monitoring/prometheusrule.yaml
rm -r /tmp/deploy

millrace-launch servers --hosts h1,h2 --store /graph --plaintext --parts 2 \
  --dry-run >/tmp/launch.txt
cat /tmp/launch.txt
grep -q 'h1.*millrace-server.*--partition 0' /tmp/launch.txt
grep -q 'h2.*millrace-server.*--partition 1' /tmp/launch.txt
rm /tmp/launch.txt
