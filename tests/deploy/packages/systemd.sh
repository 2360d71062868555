#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# In the system, booted by systemd: units that are started, killed, stopped and
# removed. There is no controller of memory here, so MemoryMax has no effect.
. "$(dirname "$0")/lib.sh"

store=/var/lib/millrace/cora-2
setpriv --reuid=millrace --regid=millrace --init-groups bash -c "cd / && umask 077 &&
  millrace import ogb /srv/test/cora --split public --out /var/lib/millrace/cora &&
  millrace partition /var/lib/millrace/cora --parts 2 --out $store"
fleet=127.0.0.1:7001,127.0.0.1:7002
for part in 0 1; do
  printf '%s\n' "store = $store" "partition = $part" "peers = $fleet" \
    "listen = 127.0.0.1:700$((part + 1))" >/etc/millrace/part$part.conf
done
limit=$(ulimit -Hn)
if ((limit < $(sed -n 's/^LimitNOFILE=//p' /lib/systemd/system/millrace-server@.service))); then
  # systemd cannot raise it here.
  mkdir -p /run/systemd/system/millrace-server@.service.d
  printf '[Service]\nLimitNOFILE=%s\n' "$limit" \
    >/run/systemd/system/millrace-server@.service.d/limit.conf
  systemctl daemon-reload
fi
# What a server must not see or use.
mknod /dev/kmsg c 1 11
mknod /dev/fd0 b 2 0
install -d -m 755 /home/somebody
touch /home/somebody/file
# As on a machine with GPUs: the drop-in lets a program make a device. A program
# that stands in for NVIDIA's makes one of zeros.
cat >/usr/bin/nvidia-modprobe <<'END'
#!/bin/sh
[ "$*" = '-c 0 -u' ] && mknod -m 666 /dev/nvidia-uvm c 1 5
END
chmod 755 /usr/bin/nvidia-modprobe
gpu=/etc/systemd/system/millrace-server@part1.service.d
install -D -t $gpu /usr/share/doc/millrace-server/examples/gpu.conf
systemctl daemon-reload
systemctl enable millrace-server@part0
wants=/etc/systemd/system/multi-user.target.wants/millrace-server@part0.service
[[ -L $wants ]]

systemctl start millrace-server@part0 millrace-server@part1 ||
  { systemctl status --no-pager --full 'millrace-server@*'; exit 1; }
millrace status --servers $fleet --wait 30s

# property UNIT NAME
property() {
  systemctl show --property="$2" --value "millrace-server@$1"
}
pid=$(property part0 MainPID)
[[ $(stat -c %U /proc/"$pid") == millrace ]]
grep -x 'NoNewPrivs:.1' /proc/"$pid"/status
grep -x 'Seccomp:.2' /proc/"$pid"/status
grep -x 'CapBnd:.0*' /proc/"$pid"/status
# Each of these is there, or works, outside of the server's namespace.
[[ -e /dev/fd0 && -e /dev/kmsg && -e /home/somebody/file ]]
touch /var/lib/millrace/new /etc/new
rm /var/lib/millrace/new /etc/new
nsenter --mount --root --target "$pid" bash -c '
  ! touch /var/lib/millrace/new && ! touch /etc/new && ! ls /home/* &&
  [[ ! -e /dev/fd0 && ! -e /dev/kmsg && ! -e /dev/nvidia-uvm ]]'
nsenter --mount --root --target "$(property part1 MainPID)" bash -c '
  ! touch /var/lib/millrace/new && ! touch /etc/new && ! ls /home/* &&
  [[ $(head -c 2 /dev/nvidia-uvm | od -An -tx1) == " 00 00" ]]'

# The limit of all servers together is as large as that of one.
[[ $(property part0 Slice) == millrace.slice ]]
grep -q '/millrace.slice/millrace-server@part0.service$' /proc/"$pid"/cgroup
most=$(systemctl show --property=MemoryMax --value millrace.slice)
[[ $most =~ ^[0-9]+$ && $most == "$(property part0 MemoryMax)" ]]

kill -KILL "$pid"
for _ in {1..200}; do
  again=$(property part0 MainPID)
  [[ $again != 0 && $again != "$pid" ]] && break
  sleep 0.1
done
[[ $(property part0 NRestarts) == 1 ]]
millrace status --servers $fleet --wait 30s
one=$(millrace digest --servers $fleet --fanouts 10,5 --batch-size 64 --epoch 1)
[[ $one == "$(millrace digest --store $store --fanouts 10,5 --batch-size 64 --epoch 1)" ]]

# Wrong usage is not tried again.
echo 'partitions = 0' >/etc/millrace/wrong.conf
systemctl start millrace-server@wrong || :
for _ in {1..100}; do
  [[ $(property wrong ActiveState) != failed ]] || break
  sleep 0.1
done
[[ $(property wrong ExecMainStatus) == 2 && $(property wrong NRestarts) == 0 ]]

systemctl stop millrace-server@part1
[[ $(property part1 Result) == success && $(property part1 ExecMainStatus) == 0 ]]
# Removing the package stops the rest, and a purge leaves no links to its unit.
pid=$(property part0 MainPID)
[[ -e /proc/$pid/exe ]]
mv /usr/sbin/policy-rc.d /srv/test/
dpkg --remove millrace-server
[[ ! -e /proc/$pid/exe && -L $wants ]]
dpkg --purge millrace-server
mv /srv/test/policy-rc.d /usr/sbin/
[[ ! -L $wants ]]
dpkg --install /srv/debs/millrace-server_*.deb
rm -r /etc/millrace/{part?,wrong}.conf /var/lib/millrace/* $gpu \
  /home/somebody /usr/bin/nvidia-modprobe
