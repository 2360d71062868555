# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
# Bare Debian 12 systems in folders, for the scripts that try what is deployed.
# Bash scripts that run as root source this file.

# An environment that does not depend on who runs the scripts: what they make can
# be read by others, programs speak English, and Debian's come first.
umask 022
unset LANGUAGE
export LC_ALL=C.UTF-8 PATH=/usr/sbin:/usr/bin:/sbin:/bin:$PATH

# without_services COMMAND...: runs a command that installs packages; none of their
# services starts on this machine.
without_services() (
  policy=/usr/sbin/policy-rc.d
  trap 'rm -f "$policy"; [[ ! -e $policy.kept ]] || mv "$policy.kept" "$policy"' \
    EXIT
  [[ ! -e $policy || -e $policy.kept ]] || mv "$policy" "$policy.kept"
  forbid_services "$policy"
  "$@"
)

# forbid_services FILE: makes FILE the policy by which no service may start.
forbid_services() {
  rm -f "$1"
  printf '#!/bin/sh\nexit 101\n' >"$1"
  chmod 755 "$1"
}

# install_packages NAME...: installs Debian's packages, and says why if it cannot.
install_packages() {
  local apt=(env DEBIAN_FRONTEND=noninteractive apt-get -qq -y
             -o DPkg::Lock::Timeout=300 -o Acquire::Retries=3)
  local install=(without_services "${apt[@]}" --no-install-recommends install "$@")
  "${install[@]}" >/dev/null 2>&1 || {
    # Its lists may be missing or old. A source that fails may not be Debian's.
    "${apt[@]}" update || echo 'note: not all lists of packages are new' >&2
    "${install[@]}" >/dev/null
  }
}

# need_package COMMAND:PACKAGE...: installs the packages whose commands are
# missing.
need_package() {
  local pair missing=()
  for pair in "$@"; do
    command -v "${pair%:*}" >/dev/null || missing+=("${pair#*:}")
  done
  ((${#missing[@]} == 0)) || install_packages "${missing[@]}"
}

# need_mounted_root ARG...: starts the running script, with these arguments, once
# more if it runs in a chroot whose / is not a mount, which Buildah needs.
need_mounted_root() {
  if ! awk '$5 == "/" {found = 1} END {exit !found}' /proc/self/mountinfo; then
    exec unshare --mount --propagation unchanged -- bash -c '
      mount --rbind / /mnt && mount --make-rprivate /mnt && cd / &&
      exec chroot /mnt "$@"' bash "$(realpath "$0")" "$@"
  fi
}

# debian_sources: prints the sources of Debian 12 that apt has on this machine.
# (Others need keys, which a bare system lacks.)
debian_sources() {
  apt-get indextargets 'Created-By: Packages' --format \
    '$(ORIGIN) $(REPO_URI) $(RELEASE) $(COMPONENT)' |
    sed -nE -e 's/^Debian //; s/^ ?([^ ]*\/debian(-security)?\/ )/\1/; t found; d' \
      -e ': found; s/^([^ ]+ bookworm(-updates|-security)? (main|non-free-firmware))$/deb \1/p' |
    sort -u
}

# apt_setting NAME: prints a setting of apt on this machine.
apt_setting() {
  local value=''
  eval "$(apt-config shell value "$1")"
  echo "$value"
}

# copy_apt_settings ROOT: lets apt in a root fetch what it needs as apt does here:
# from the same sources of Debian, if there are any, by the same proxies and, for
# https, with the certificates of this machine.
copy_apt_settings() {
  local authorities sources
  sources=$(debian_sources)
  if grep -q ' bookworm main$' <<<"$sources"; then
    rm -f "$1"/etc/apt/sources.list.d/*
    echo "$sources" >"$1/etc/apt/sources.list"
  fi
  mkdir -p "$1/etc/apt/apt.conf.d"
  {
    apt-config dump --no-empty Acquire | grep -iE \
      '^Acquire::(https?::([^ ]*::)?(Proxy|Verify-Peer|Verify-Host|Timeout)|Retries|ForceIPv|Check-)' ||
      true
    authorities=$(apt_setting Acquire::https::CAInfo)
    authorities=${authorities:-/etc/ssl/certs/ca-certificates.crt}
    if [[ -e $authorities ]]; then
      cp "$authorities" "$1/etc/apt/authorities.pem"
      echo 'Acquire::https::CAInfo "/etc/apt/authorities.pem";'
    fi
  } >"$1/etc/apt/apt.conf.d/90millrace-test"
}

# bootstrap FOLDER: puts a minimal Debian 12 there, from where apt has it here, or
# else from debootstrap's own mirror.
bootstrap() (
  need_package debootstrap:debootstrap
  proxy=${http_proxy:-$(apt_setting Acquire::http::Proxy)}
  [[ -z $proxy || $proxy == DIRECT ]] || export http_proxy=$proxy
  mirror=$(debian_sources | awk '$3 == "bookworm" && $4 == "main" {print $2; exit}')
  debootstrap --variant=minbase bookworm "$1" ${mirror:+"$mirror"} >"$1.log" 2>&1 ||
    { tail "$1.log" >&2; return 1; }
)

# make_root FOLDER: puts a minimal Debian 12 into FOLDER, with apt working as
# here. MILLRACE_DEBIAN_ROOT may name a folder to copy, which saves a minute.
make_root() {
  if [[ -n ${MILLRACE_DEBIAN_ROOT:-} ]]; then
    mkdir -p "$1"
    tar -C "$MILLRACE_DEBIAN_ROOT" --one-file-system -cf - . | tar -C "$1" -xpf -
  else
    bootstrap "$1"
  fi
  cp /etc/resolv.conf /etc/hosts "$1/etc/" 2>/dev/null || true
  copy_apt_settings "$1"
  # No service may start in a chroot.
  forbid_services "$1/usr/sbin/policy-rc.d"
}

# in_root FOLDER COMMAND...: runs a command in a root, with the network. It and
# all that it has started end together.
in_root() {
  local root=$1 proxies
  shift
  mapfile -t proxies < <(env | grep -iE '^(https?|ftp|all|no)_proxy=')
  # In a chroot, / may be no mount, so that it cannot be made private.
  unshare --mount --propagation unchanged --pid --fork --kill-child --uts \
    --ipc -- bash -c '{ mount --make-rprivate / 2>/dev/null ||
        { mount --bind "$1" "$1" && mount --make-rprivate "$1"; }; } &&
      mount -t proc proc "$1/proc" && mount --rbind /dev "$1/dev" &&
      mount -t tmpfs tmpfs "$1/run" && shift && exec "$@"' bash "$root" \
    env -i HOME=/root TERM=dumb LANG=C.UTF-8 DEBIAN_FRONTEND=noninteractive \
    PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
    "${proxies[@]}" chroot "$root" "$@"
}

# in_lonely_root FOLDER COMMAND...: the same without a network but loopback.
in_lonely_root() {
  need_package ip:iproute2
  unshare --net -- bash -c 'ip link set lo up && . "$1" && shift && in_root "$@"' \
    bash "${BASH_SOURCE[0]}" "$@"
}

# boot_root FOLDER SCRIPT: boots systemd in a root, as a container without a
# network, and lets it run SCRIPT (a path in the root) as a service, with output
# to SCRIPT.txt. Returns the script's status; 77 if systemd does not come up,
# because this kernel or its limits do not allow it.
boot_root() {
  local root=$1 script=$2
  need_package ip:iproute2
  rm -f "$root$script.txt" "$root$script.status"
  cat >"$root/etc/systemd/system/try.service" <<END
[Unit]
DefaultDependencies=no
After=sysinit.target
Requires=sysinit.target
[Service]
Type=oneshot
StandardOutput=file:$script.txt
StandardError=inherit
Environment=LANG=C.UTF-8
ExecStart=/bin/sh -c '/bin/bash $script; echo \$\$? >$script.status'
ExecStopPost=/bin/systemctl --force --force poweroff
END
  timeout 180 unshare --mount --propagation unchanged --pid --fork --kill-child \
    --uts --ipc --net --cgroup -- bash -c '
      { mount --make-rprivate / 2>/dev/null || true; } &&
      mount --bind "$1" "$1" && mount --make-rprivate "$1" &&
      ip link set lo up && mount -t proc proc "$1/proc" &&
      mount -t sysfs -o ro sysfs "$1/sys" &&
      mount -t cgroup2 cgroup2 "$1/sys/fs/cgroup" &&
      mount -t tmpfs tmpfs "$1/run" && mount -t tmpfs tmpfs "$1/tmp" &&
      mount -t tmpfs -o mode=755 tmpfs "$1/dev" && mkdir "$1/dev/shm" "$1/dev/pts" &&
      mount -t tmpfs tmpfs "$1/dev/shm" &&
      mount -t devpts -o newinstance,ptmxmode=0666 devpts "$1/dev/pts" &&
      ln -s pts/ptmx "$1/dev/ptmx" &&
      for node in null zero full random urandom tty; do
        cp -a "/dev/$node" "$1/dev/"
      done &&
      exec env -i container=chroot PATH="$PATH" chroot "$1" /lib/systemd/systemd \
        --unit=try.service --log-target=console --log-level=err \
        --show-status=no' bash "$root" >"$root$script.console" 2>&1 || true
  rm "$root/etc/systemd/system/try.service"
  [[ -e $root$script.status ]] || return 77
  return "$(<"$root$script.status")"
}
