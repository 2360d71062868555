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

# Not LibTorch's libraries for GPUs, which are gigabytes.
components=(tools server dev)
[[ ! -e $build/bin/millrace-train ]] || components+=(train)
for component in "${components[@]}"; do
  "$cmake" --install "$build" --prefix "$work/first" \
    --component "$component" >>"$work/install.log" 2>&1
done
mv "$work/first" "$work/prefix"  # what is installed can be moved

# Programs do not need the build, and nor do the libraries that they bring along.
for file in "$work"/prefix/bin/* "$work"/prefix/lib/millrace/*.so*; do
  [[ $(head -c 2 "$file") != '#!' ]] || continue  # a script
  objdump -p "$file" | awk '/^ *(RPATH|RUNPATH) / {print $2}' |
    while read -r path; do
      [[ $path == '$ORIGIN'* ]]
    done
  env -u LD_LIBRARY_PATH ldd "$file" >"$work/libraries.txt"
  awk -v prefix="$work/prefix/" '
    $2 == "=>" && $3 !~ /^\/(usr\/)?lib/ && index($3, prefix) != 1 {
      print "needs " $0
      bad = 1
    }
    END {exit bad}' "$work/libraries.txt"
done
for component in "${components[@]}"; do
  case $component in
    tools) program=millrace ;;
    dev) continue ;;
    *) program=millrace-$component ;;
  esac
  env -u LD_LIBRARY_PATH "$work/prefix/bin/$program" --version
  # Each option of the help is in the manual page.
  "$work/prefix/bin/$program" --help | grep -o '^  --[a-z-]*' | tr -d ' ' |
    while read -r option; do
      grep -qe "^\.B \"${option//-/\\\\-}[^a-z]" \
        "$work/prefix/share/man/man1/$program.1"
    done
done
[[ -s $work/prefix/share/man/man1/millrace-import.1 ]]
for script in bash-completion/completions/millrace-server \
  zsh/vendor-completions/_millrace fish/vendor_completions.d/millrace.fish; do
  grep -q __complete "$work/prefix/share/$script"
done

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
rm -rf "$work/prefix"
