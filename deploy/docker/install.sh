#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# install.sh PACKAGE: in an image, installs a package of the folder /packages with
# what it needs, removes what nobody reads there, and lists all packages of the
# image with their versions in /usr/share/doc/millrace/packages.txt.
set -eu
apt-get update
DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends \
  "/packages/$1"_*.deb
rm -rf /var/lib/apt/lists/* /var/cache/apt/*.bin /var/cache/apt/archives/*.deb \
  /var/cache/debconf/*-old /var/log/apt /var/log/dpkg.log /usr/share/man/* \
  /usr/share/bash-completion /usr/share/fish /usr/share/zsh
mkdir -p /usr/share/doc/millrace
dpkg-query --show --showformat='${Package} ${Version}\n' |
  sort >/usr/share/doc/millrace/packages.txt
