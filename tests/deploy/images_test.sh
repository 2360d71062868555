#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Builds the images of deploy/docker with Buildah on a Debian 12 made by
# debootstrap, and tries them: what they hold, whom they run as, their sizes; a
# server as docs/operations.md starts it, with a store that it may only read and
# without capabilities, its health check, a trainer that uses it, and how the
# server stops; the same with TLS, from variables, and with a root that is mounted
# read-only, which Buildah cannot do. Needs root and the network; 4 GB of disk,
# and 10 GB if it also compiles, or more where the kernel mounts no overlays.
#
# Usage: tests/deploy/images_test.sh [OPTION]...
#   --debs DIR     make images of the packages in this folder, instead of
#                  building them in the first stage of the Dockerfile
#   --build DIR    make images of packages made from this build folder
#   --cuda         also the trainer for GPUs (15 GB of disk)
#   --work DIR     folder for everything (default: a new one in /var/tmp)
#   --keep         leave it there
#   --help         print this text
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/../../deploy/lib.sh"
. "$ROOT/tests/deploy/debian_root.sh"
((EUID == 0)) || fail "this needs root" "run it with sudo"
need_mounted_root "$@"

debs='' build='' cuda=false work='' keep=false only_try=false
while (($# > 0)); do
  case $1 in
    --build | --debs | --work)
      (($# > 1)) || usage_error "$1 needs a folder"
      printf -v "${1#--}" '%s' "$(realpath -m "$2")"
      shift
      ;;
    --cuda) cuda=true ;;
    --keep) keep=true ;;
    --only-try) only_try=true ;;  # this script runs itself so, see the end
    --help) print_help; exit 0 ;;
    *) usage_error "unknown option $1" ;;
  esac
  shift
done
[[ -n $work ]] || work=$(mktemp -d /var/tmp/millrace-images.XXXXXX)
mkdir -p "$work"
MAX_SERVER_MB=150
targets=(tools server train)
! $cuda || targets+=(train-cuda)

# storage_driver: prints overlay where this kernel can mount overlays, and else
# vfs, with which each layer is a copy of the whole.
storage_driver() {
  local folder=$work/overlay
  mkdir -p "$folder"/{lower,upper,work,merged}
  if unshare --mount mount -t overlay overlay "$folder/merged" -o \
    "lowerdir=$folder/lower,upperdir=$folder/upper,workdir=$folder/work" \
    2>/dev/null; then
    echo overlay
  else
    echo vfs
  fi
  rm -rf "$folder"
}
driver=$(storage_driver)

# The images and containers are in the folder, and need neither a daemon nor
# namespaces of users.
buildah_here() {
  command buildah --root "$work/storage" --runroot "$work/run" \
    --storage-driver "$driver" "$@"
}

clean_up() {
  ! $only_try || return 0
  # With overlays, the folder of the layers is a mount.
  umount --recursive "$work/storage/overlay" 2>/dev/null || true
  $keep || rm -rf --one-file-system "$work"
}
trap clean_up EXIT

# import_folder FOLDER PATH IMAGE: makes an image with FOLDER at PATH.
import_folder() {
  local container
  container=$(buildah_here from scratch)
  buildah_here add --quiet "$container" "$1" "$2" >/dev/null
  buildah_here commit --quiet --rm "$container" "$3" >/dev/null
}

# As debian:bookworm-slim, which this stands in for.
make_base() {
  make_root "$work/base"
  in_root "$work/base" apt-get clean
  rm -rf "$work"/base/usr/share/{doc,locale,man,info,lintian}/* \
    "$work"/base/var/lib/apt/lists/* "$work"/base/var/log/* \
    "$work/base/usr/sbin/policy-rc.d"
  import_folder "$work/base" / localhost/base
  rm -rf "$work/base"
}

# use_pip_settings: puts options into pip_options by which pip reaches its index in
# a build as it does here.
pip_options=()
use_pip_settings() {
  local line key value
  local names='index-url|extra-index-url|trusted-host|cert|proxy|timeout'
  echo '[global]' >"$work/pip.conf"
  while IFS= read -r line; do
    [[ $line =~ ^[^=]*\.($names)=\'(.*)\'$ ]] || continue
    key=${BASH_REMATCH[1]} value=${BASH_REMATCH[2]}
    echo "$key = $value" >>"$work/pip.conf"
    [[ $key != cert ]] || pip_options+=(--volume "$value:$value:ro")
  done < <(/usr/bin/python3 -m pip config list 2>/dev/null)
  pip_options+=(--volume "$work/pip.conf:/etc/pip.conf:ro")
}

build_images() {
  local packages=build target
  use_pip_settings
  if [[ -n $debs ]]; then
    import_folder "$debs" /packages localhost/packages
    packages=localhost/packages
  fi
  for target in "${targets[@]}"; do
    say "building the image $target"
    quietly "$work/build-$target.log" buildah_here build --isolation chroot \
      --format docker --layers --build-arg BASE=localhost/base \
      --build-arg PACKAGES="$packages" --build-arg CUDA="$(! $cuda || echo yes)" \
      --target "$target" -t "localhost/millrace-$target" \
      "${pip_options[@]}" -f "$ROOT/deploy/docker/Dockerfile" "$ROOT"
  done
}

# run_in CONTAINER [OPTION]... -- COMMAND...
run_in() {
  local container=$1 options=()
  shift
  while [[ $1 != -- ]]; do
    options+=("$1")
    shift
  done
  shift
  buildah_here run --isolation chroot "${options[@]}" "$container" -- "$@"
}

# run_read_only CONTAINER VARIABLE=VALUE... -- COMMAND...: runs as `docker run
# --read-only --cap-drop ALL` does, with the store and the TLS files of try_images.
# Leaves its mounts to the end of the namespace.
run_read_only() {
  local folder root=$work/read-only variables=()
  folder=$(buildah_here mount "$1")
  shift
  while [[ $1 != -- ]]; do
    variables+=("$1")
    shift
  done
  shift
  mkdir -p "$root" "$folder/store" "$folder/tls"
  mount --bind "$folder" "$root"
  mount -t proc proc "$root/proc"
  mount --rbind /dev "$root/dev"
  mount --bind -o ro "$work/data/cora" "$root/store"
  mount --bind -o ro "$work/tls" "$root/tls"
  mount -o remount,bind,ro "$root"
  ! touch "$root/tmp/new" 2>/dev/null || fail "the root can be written to" ""
  exec chroot "$root" setpriv --reuid=10001 --regid=10001 --clear-groups \
    --no-new-privs --bounding-set=-all --inh-caps=-all \
    env -i PATH=/usr/bin:/bin "${variables[@]}" "$@"
}

# config IMAGE FIELD: what an image says of itself.
config() {
  buildah_here inspect --type image "localhost/millrace-$1" |
    jq -c ".Docker.config.$2"
}

# check NAME COMMAND...
check() {
  local name=$1
  shift
  "$@" || fail "$name" "--keep keeps everything in --work"
}

check_image() {
  local target=$1 container=$2 folder size
  folder=$(buildah_here mount "$container")
  size=$(du -sm --one-file-system "$folder" | cut -f 1)
  say "the image $target has $size MB"
  check "$target runs as root" [ "$(run_in "$container" -- id -u)" = 10001 ]
  for program in gcc cc c++ ld make python3; do
    check "$target has $program" [ ! -e "$folder/usr/bin/$program" ]
  done
  check "$target has no list of packages" \
    grep -qE '^millrace [0-9]' "$folder/usr/share/doc/millrace/packages.txt"
  [[ $target != server ]] || {
    check "the server has $size MB" [ "$size" -lt "$MAX_SERVER_MB" ]
    check "the server has LibTorch" \
      [ -z "$(find "$folder" -name 'libtorch*' -o -name 'libc10*')" ]
    check "no port" [ "$(config server ExposedPorts)" = \
      '{"7000/tcp":{},"7080/tcp":{}}' ]
    check "no signal" [ "$(config server StopSignal)" = '"SIGTERM"' ]
    check "no entry point" \
      [ "$(config server Entrypoint)" = '["millrace-server"]' ]
  }
}

# The arguments that the page gives to the image of the server.
page_options() {
  sed -n '/^docker run /,/[^\\]$/p' "$ROOT/docs/operations.md" | tr -d '\\\n' |
    sed 's/.* millrace-server //'
}

# A certificate for servers and clients in $work/tls.
make_certificate() {
  mkdir "$work/tls"
  PYTHONPATH=$ROOT/tests/support /usr/bin/python3 -B -c 'import deploy, sys
deploy.make_certificates(sys.argv[1], {"tls": "DNS:graph.example"})' "$work/tls"
  chown -R 10001:10001 "$work/tls"
}

# healthy [OPTION]...: what the image's own command says, run with the options.
healthy() {
  run_in "${containers[server]}" "$@" -- "${health[@]}"
}

# Servers: as on the page, and with TLS in a root that can only be read.
as_on_the_page() {
  run_in "${containers[server]}" --cap-drop ALL -v "$work/data/cora:/store:ro" \
    -- millrace-server "${options[@]}"
}
TLS=(MILLRACE_TLS_CA=/tls/ca.pem MILLRACE_TLS_CERT=/tls/tls.pem
     MILLRACE_TLS_KEY=/tls/tls.key MILLRACE_TLS_SERVER_NAME=graph.example)
with_tls() {
  run_read_only "${containers[server]}" "${TLS[@]}" -- millrace-server \
    "${options[@]/#--plaintext/--metrics-plaintext}"
}

# start_server FUNCTION [OPTION]...: starts a server by the function, and waits
# until it is healthy, asked with the options.
start_server() {
  "$1" 2>"$work/server.txt" &
  server=$!
  shift
  for _ in {1..100}; do
    ! healthy "$@" >/dev/null 2>&1 || break
    sleep 0.2
  done
  healthy "$@" ||
    { cat "$work/server.txt"; fail "the server is not healthy" "see above"; }
  check "the server warns" [ -z "$(grep -i warn "$work/server.txt")" ]
  # Buildah's chroot leaves it CAP_SETUID, 80.
  check "the server may have capabilities" grep -qxE 'CapBnd:.0*(80)?' \
    "/proc/$(pgrep -x millrace-server)/status"
}

stop_server() {
  local status=0
  kill -TERM "$(pgrep -x millrace-server)"
  wait "$server" || status=$?
  check "SIGTERM ends the server with $status" [ "$status" = 0 ]
}

# Runs in namespaces of its own, so that ports are free and nothing outlives it.
try_images() {
  local target health server options
  declare -A containers
  for target in "${targets[@]}"; do
    containers[$target]=$(buildah_here from "localhost/millrace-$target")
    check_image "$target" "${containers[$target]}"
  done

  mkdir -p "$work/data"
  cp -r "$ROOT/tests/data/cora" "$work/data/raw"
  chmod -R u+rwX,a+rX "$work/data"
  chown -R 10001:10001 "$work/data"
  run_in "${containers[tools]}" -v "$work/data:/data" -- millrace import ogb \
    /data/raw --split public --normalize-features row --out /data/cora

  health=$(config server Healthcheck.Test | tr -d '[]"' | tr ',' ' ')
  check "no health check" [ "${health%% *}" = CMD ]
  read -ra health <<<"${health#CMD }"
  ! healthy 2>/dev/null || fail "healthy without a server" "see HEALTHCHECK"

  say "a server as docs/operations.md starts it: $(page_options)"
  read -ra options <<<"$(page_options)"
  start_server as_on_the_page
  run_in "${containers[train]}" -- millrace-train --servers 127.0.0.1:7000 \
    --model sage --hidden 16 --layers 2 --fanouts 10,5 --batch-size 64 \
    --epochs 2 --checkpoint /tmp/checkpoint
  if $cuda; then
    # There is no GPU: the program starts, finds its libraries and says what to
    # do.
    ! run_in "${containers[train-cuda]}" -- millrace-train --device cuda \
      --servers 127.0.0.1:7000 --model sage --layers 2 --fanouts 10,5 \
      --batch-size 64 --epochs 1 2>"$work/cuda.txt" ||
      fail "the trainer for GPUs trains without one" "see docs/gpu.md"
    cat "$work/cuda.txt"
    check "the trainer for GPUs does not say what is missing" \
      grep -q 'driver 580 or later' "$work/cuda.txt"
  fi
  stop_server

  say "the same with TLS, and with a root that can only be read"
  make_certificate
  start_server with_tls -v "$work/tls:/tls:ro" "${TLS[@]/#/--env=}"
  ! healthy -v "$work/tls:/tls:ro" 2>/dev/null ||
    fail "healthy without the variables of TLS" "see HEALTHCHECK"
  stop_server
  buildah_here umount --all >/dev/null
}

if $only_try; then
  ip link set lo up
  try_images
  exit
fi
need_package buildah:buildah ip:iproute2 jq:jq openssl:openssl \
  pgrep:procps python3:python3
if [[ -n $build ]]; then
  debs=$work/debs
  need_package dpkg-shlibdeps:dpkg-dev file:file
  "$ROOT/deploy/debian/build.sh" --build "$build" "$debs"
fi
say "making a bare Debian 12"
make_base
build_images
say "trying the images"
options=(--only-try --work "$work")
! $cuda || options+=(--cuda)
unshare --net --mount --propagation unchanged --pid --fork --kill-child \
  --mount-proc "$ROOT/tests/deploy/images_test.sh" "${options[@]}"
say "all of the images work"
