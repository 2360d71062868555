#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# install_test.sh CMAKE BUILD_DIR BUILD_TYPE COMPILER FLAGS: does what a user
# does to write a program with the loader.
set -euxo pipefail
cmake=$1 build=$2 build_type=$3 compiler=$4 flags=$5
here=$(cd "$(dirname "$0")" && pwd)
work=$build/install-test
rm -rf "$work"
mkdir -p "$work"

# Builds the program that docs/loader.md shows.
awk '/^```cpp$/ {show = 1; next} /^```$/ {show = 0} show' \
  "$here/../../docs/loader.md" | diff - <(sed 1d "$here/consumer/main.cc")

# The function that README shows must compile.
{
  echo '#include "common/sample/batch.h"'
  echo 'void Use(const millrace::Batch& batch);'
  awk '/^```cpp$/ {show = 1; next} /^```$/ {show = 0} show' \
    "$here/../../README.md"
} >"$work/readme.cc"

"$cmake" --install "$build" --prefix "$work/prefix" >"$work/install.log"

# The headers are those that docs/loader.md lists, and each compiles alone.
sed -n 's/^| `\(.*\.h\)` |.*/\1/p' "$here/../../docs/loader.md" | sort \
  >"$work/documented.txt"
(cd "$work/prefix/include/millrace" && find . -name '*.h' -printf '%P\n') |
  sort | diff "$work/documented.txt" -
sources=$work/readme.cc
while read -r header; do
  source=$work/header_${header//[!a-z]/_}.cc
  echo "#include \"$header\"" >"$source"
  sources+=";$source"
done <"$work/documented.txt"

# build_consumer NAME OPTION...
build_consumer() {
  "$cmake" -S "$here/consumer" -B "$work/$1" -G Ninja \
    -DCMAKE_PREFIX_PATH="$work/prefix" -DCMAKE_BUILD_TYPE="$build_type" \
    -DCMAKE_CXX_COMPILER="$compiler" -DCMAKE_CXX_FLAGS="$flags" "${@:2}"
  "$cmake" --build "$work/$1"
}
build_consumer consumer -DMILLRACE_SOURCES="$sources"
# Builds as on systems where gRPC has no CMake config.
build_consumer consumer-pkg-config -DCMAKE_DISABLE_FIND_PACKAGE_gRPC=ON

"$work/prefix/bin/millrace" import ogb "$here/../data/cora" \
  --split public --out "$work/cora"
"$work/consumer/count_seeds" "$work/cora" | tee "$work/output.txt"
# The split has 140 training seeds, in batches of 64.
grep -qx '3 batches, 140 seeds' "$work/output.txt"
