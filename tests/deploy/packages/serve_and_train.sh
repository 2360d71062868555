#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# In the system: two servers, each as its unit says, and a trainer.
. "$(dirname "$0")/lib.sh"
never command -v gcc cc c++ clang ld
for program in millrace millrace-server millrace-train; do
  $program --version
done
[[ $(stat -c '%U:%G %a' /var/lib/millrace) == 'millrace:millrace 750' ]]
getent passwd millrace | grep -q ':/usr/sbin/nologin$'
never compgen -G '/*/systemd/system/multi-user.target.wants/millrace-server@*'

# as_user COMMAND...: as systemd starts it, but for namespaces, cgroups and the
# filter of system calls: the user, no capabilities, no new privileges, the
# limit on files, an empty environment.
as_user() {
  cd /
  umask 077
  ulimit -n "$limit" 2>/dev/null || ulimit -n "$(ulimit -Hn)"
  exec setpriv --reuid=millrace --regid=millrace --init-groups \
    --no-new-privs --bounding-set=-all --inh-caps=-all \
    env -i PATH=/usr/bin:/bin "$@"
}
unit=/lib/systemd/system/millrace-server@.service
start=$(sed -n 's/^ExecStart=//p' $unit)
limit=$(sed -n 's/^LimitNOFILE=//p' $unit)
[[ $(sed -n 's/^User=//p' $unit) == millrace ]]

(ulimit -n "$limit") 2>/dev/null ||
  echo "note: servers may open $(ulimit -Hn) files here, not $limit as in the unit"

store=/var/lib/millrace/cora-2
(as_user millrace import ogb /srv/test/cora --split public \
  --normalize-features row --out /var/lib/millrace/cora)
(as_user millrace partition /var/lib/millrace/cora --parts 2 --out $store)
(as_user millrace verify $store)

# The example with other values is the configuration.
fleet=127.0.0.1:7001,127.0.0.1:7002
for part in 0 1; do
  sed -e "s|^store = .*|store = $store|" -e "s|^partition = .*|partition = $part|" \
    -e "s|^listen = .*|listen = 127.0.0.1:700$((part + 1))|" \
    -e "s|^metrics = .*|metrics = 127.0.0.1:708$((part + 1))|" \
    -e "s|^#peers = .*|peers = $fleet|" /etc/millrace/example.conf \
    >/etc/millrace/part$part.conf
  # shellcheck disable=SC2086  # words, as systemd reads them
  (as_user ${start//%i/part$part}) 2>/tmp/server$part.txt &
  servers[part]=$!
done
millrace status --servers $fleet --wait 30s
exec 3<>/dev/tcp/127.0.0.1/7081
printf 'GET /readyz HTTP/1.0\r\n\r\n' >&3
grep -q ' 200 ' <&3
exec 3>&-
never grep -i 'warn' /tmp/server0.txt

train=(millrace-train --model sage --hidden 16 --layers 2 --fanouts 10,5
       --batch-size 64 --lr 0.01 --epochs 3 --seed 1)
"${train[@]}" --servers $fleet --workers 2 --checkpoint /tmp/checkpoint
"${train[@]}" --store $store --device auto 2>&1 | tee /tmp/alone.txt
if command -v millrace-train-cuda; then
  # There is no GPU here: it starts, finds its libraries and says what to do.
  never "${train[@]}" --store $store --device cuda 2>/tmp/cuda.txt
  cat /tmp/cuda.txt
  grep 'driver 580 or later' /tmp/cuda.txt
fi
for part in 0 1; do
  kill -TERM "${servers[part]}"
  wait "${servers[part]}"
done
rm -r /tmp/checkpoint /tmp/*.txt /etc/millrace/part?.conf /var/lib/millrace/cora
