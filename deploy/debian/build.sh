#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Makes the Debian packages millrace, millrace-server, millrace-train and
# libmillrace-dev. Needs dpkg-dev and file besides what deploy/setup.sh installs.
#
# Usage: deploy/debian/build.sh [OPTION]... FOLDER
#   FOLDER         where to put the packages
#   --build DIR    make them from this build folder, which has been built,
#                  instead of building build/package
#   --cuda         build programs that can use GPUs (build/package-cuda), and
#                  also make millrace-train-cuda, which takes 3 GB
#   --help         print this text
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/../lib.sh"

build='' cuda=false folder=''
while (($# > 0)); do
  case $1 in
    --build)
      (($# > 1)) || usage_error "--build needs a folder"
      build=$2
      shift
      ;;
    --cuda) cuda=true ;;
    --help) print_help; exit 0 ;;
    -*) usage_error "unknown option $1" ;;
    *) folder=$1 ;;
  esac
  shift
done
[[ -n $folder ]] || usage_error "no FOLDER"
for tool in dpkg-shlibdeps:dpkg-dev file:file; do
  command -v "${tool%:*}" >/dev/null ||
    fail "there is no ${tool%:*}" "install it: apt-get install ${tool#*:}"
done

if [[ -z $build ]]; then
  preset=package options=()
  if $cuda; then preset=package-cuda options=(--cuda --torch cuda); fi
  "$ROOT/deploy/setup.sh" "${options[@]}"
  say "building build/$preset with $JOBS jobs"
  build_preset "$preset"
  build=$ROOT/build/$preset
fi
mkdir -p "$folder"
folder=$(cd "$folder" && pwd)
work=$(mktemp -d "$folder/work.XXXXXX")
trap 'rm -rf "$work"' EXIT

# make_packages OPTION...
make_packages() {
  umask 022
  quietly "$ROOT/build/logs/cpack.log" \
    cpack --config "$build/CPackConfig.cmake" -B "$work" "$@" || exit
  mv "$work"/*.deb "$folder"
  rm -rf "${work:?}"/*
}

say "making packages"
make_packages
if $cuda; then
  make_packages -D CPACK_COMPONENTS_ALL=train-cuda \
    -D CPACK_DEBIAN_COMPRESSION_TYPE=zstd
fi
ls -l "$folder"/*.deb >&2
