#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Makes the Debian packages and tries them in a bare Debian 12 (made by
# debootstrap): installs them with apt; without a compiler imports, serves as the
# unit of systemd says, and trains; reads the manual pages, completes command
# lines in three shells, builds a program with the loader; checks the unit with
# systemd-analyze and runs it under systemd in a container, if this kernel allows
# that; removes everything; installs again and follows docs/operations.md, section
# 1, with nothing but the packages. Needs root and the network, and 3 GB of disk.
#
# Usage: tests/deploy/packages_test.sh [OPTION]...
#   --build DIR    make the packages from this build folder
#   --debs DIR     try the packages in this folder instead of making any
#   --cuda         also millrace-train-cuda, on this machine without a GPU (20 GB
#                  of disk)
#   --work DIR     folder for the system (default: a new one in /var/tmp)
#   --keep         leave the system there
#   --help         print this text
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/../../deploy/lib.sh"
. "$ROOT/tests/deploy/debian_root.sh"

build='' debs='' cuda=false work='' keep=false
while (($# > 0)); do
  case $1 in
    --build | --debs | --work)
      (($# > 1)) || usage_error "$1 needs a folder"
      printf -v "${1#--}" '%s' "$(realpath -m "$2")"
      shift
      ;;
    --cuda) cuda=true ;;
    --keep) keep=true ;;
    --help) print_help; exit 0 ;;
    *) usage_error "unknown option $1" ;;
  esac
  shift
done
((EUID == 0)) || fail "this needs root" "run it with sudo"
[[ -n $work ]] || work=$(mktemp -d /var/tmp/millrace-packages.XXXXXX)
mkdir -p "$work"
root=$work/root

clean_up() {
  $keep || rm -rf --one-file-system "$work"
}
trap clean_up EXIT

# try NAME: runs tests/deploy/packages/NAME.sh in the system, without a network.
try() {
  say "$1"
  cp "$ROOT"/tests/deploy/packages/*.sh "$root/srv/test/"
  in_lonely_root "$root" /bin/bash "/srv/test/$1.sh" \
    >"$work/$1.log" 2>&1 || {
    tail -n 60 "$work/$1.log" >&2
    fail "$1 failed" "see above; --keep keeps the system"
  }
  grep '^note: ' "$work/$1.log" || true
}

apt_install() {
  in_root "$root" apt-get install -y --no-install-recommends "$@" \
    >>"$work/apt.log" 2>&1 || {
    tail -n 30 "$work/apt.log" >&2
    fail "apt could not install $*" "see above"
  }
}

# The files of the system, without those that apt and dpkg keep for themselves.
list_files() {
  (cd "$root" && find . -xdev \
    \( -path ./proc -o -path ./dev -o -path ./var/lib/dpkg -o -path ./var/lib/apt \
    -o -path ./var/cache -o -path ./var/log -o -path ./tmp -o -path ./srv \
    -o -path ./root -o -path ./run -o -path './etc/*-' \) -prune -o -print | sort)
}

if [[ -z $debs ]]; then
  debs=$work/debs
  need_package dpkg-shlibdeps:dpkg-dev file:file
  options=()
  [[ -z $build ]] || options+=(--build "$build")
  ! $cuda || options+=(--cuda)
  "$ROOT/deploy/debian/build.sh" "${options[@]}" "$debs"
fi

say "making a bare Debian 12"
make_root "$root"
in_root "$root" apt-get update -qq >"$work/apt.log" 2>&1 || {
  tail -n 30 "$work/apt.log" >&2
  fail "apt cannot read its sources in a bare Debian 12" \
    "see above; they are those of Debian 12 of this machine"
}
mkdir -p "$root/srv/test" "$root/srv/debs"
cp "$debs"/*.deb "$root/srv/debs/"
cp -r "$ROOT/tests/data/cora" "$ROOT/tests/install/consumer" "$root/srv/test/"
# What is copied may be closed to the user millrace here.
chmod -R a+rX "$root/srv"
# What the packages need of Debian stays when they go; see what they leave.
depends=$(for deb in "$root"/srv/debs/{millrace_,millrace-}*.deb; do
  dpkg-deb --field "$deb" Depends | tr ',' '\n' | sed 's/ *(.*//; s/ //g'
done | sort -u | grep -v '^millrace')
# shellcheck disable=SC2086  # words
apt_install $depends
wants=$root/etc/systemd/system/multi-user.target.wants
mkdir -p "$wants"
list_files >"$work/before.txt"

say "installing"
packages=(millrace millrace-server millrace-train)
! $cuda || packages+=(millrace-train-cuda)
files=()
for package in "${packages[@]}"; do
  files+=("/srv/debs/$(cd "$debs" && ls "${package}"_*.deb)")
done
apt_install "${files[@]}"
try serve_and_train
say "removing"
in_root "$root" apt-get purge -y "${packages[@]}" >"$work/purge.log" 2>&1
grep -q 'Stores are left in /var/lib/millrace' "$work/purge.log"
[[ -d $root/var/lib/millrace/cora-2 ]] || fail "a purge removed a store" ""
grep -q '^millrace:' "$root/etc/passwd" ||
  fail "a purge removed the owner of a store" ""
rm -r "$root/var/lib/millrace/"*
apt_install "${files[@]}"
# As `systemctl enable` does, which is not installed here.
ln -s /lib/systemd/system/millrace-server@.service \
  "$wants/millrace-server@graph.service"
in_root "$root" apt-get purge -y "${packages[@]}" >"$work/purge.log" 2>&1
list_files | diff "$work/before.txt" - >&2 ||
  fail "purging left or removed files" "see above"
! grep -q '^millrace:' "$root/etc/passwd" "$root/etc/group" ||
  fail "purging left the user millrace" "see deploy/debian/server/postrm"

say "section 1 of docs/operations.md"
apt_install python3
mkdir -p "$root/srv/test"/{tests/deploy,tests/support,docs}
cp "$ROOT/tests/deploy/operations_test.py" "$root/srv/test/tests/deploy/"
cp "$ROOT/tests/support/deploy.py" "$root/srv/test/tests/support/"
cp "$ROOT/docs/operations.md" "$root/srv/test/docs/"
in_root "$root" /usr/bin/python3 -B \
  /srv/test/tests/deploy/operations_test.py --packages /srv/debs \
  >"$work/operations.log" 2>&1 || {
  tail -n 60 "$work/operations.log" >&2
  fail "the packages do not suffice for docs/operations.md" \
    "see above; --keep keeps the system"
}

say "installing what reads manual pages and completes"
apt_install "${files[@]}" "/srv/debs/$(cd "$debs" && ls libmillrace-dev_*.deb)" \
  man-db mandoc bash-completion zsh fish systemd lintian \
  g++ cmake ninja-build
try pages_and_completion
try deploy_files
try unit
say "systemd"
status=0
boot_root "$root" /srv/test/systemd.sh || status=$?
case $status in
  0) ;;
  77) say "note: systemd does not come up in a container here" ;;
  *) tail -n 60 "$root/srv/test/systemd.sh.txt" >&2
     fail "servers under systemd failed" "see above; --keep keeps the system" ;;
esac
try loader
try lintian
say "all of the packages work"
