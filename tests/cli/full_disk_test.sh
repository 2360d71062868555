#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# full_disk_test.sh BIN_DIR WORK_DIR: import and partition with limited file
# sizes and, where root may mount, on a full disk: the error names the file and
# the reason, nothing is left behind, and nothing that existed is lost.
set -euo pipefail
. "$(dirname "$0")/script_test.sh"

import() { "$bin/millrace" import ogb "$root/tests/data/cora" --split public "$@"; }
import --out cora >import.txt
"$bin/millrace" partition cora --parts 2 --method hash --out store >out.txt
"$bin/millrace" digest --store store --fanouts 5,5 >expected.txt
# The triples are only the edges of Cora, as names.
mkdir triples
gunzip -c "$root/tests/data/cora/raw/edge.csv.gz" |
  sed 's/,/\tcites\t/' >triples/train.txt
head -n 20 triples/train.txt | tee triples/valid.txt >triples/test.txt
import_triples() { "$bin/millrace" import triples triples "$@"; }
checksums() { find cora triples -type f -print0 | sort -z | xargs -0 sha256sum; }
checksums >sources.txt

# refused WHAT REASON FOLDER FILE COMMAND...: the command must exit with 1, give
# REASON for FILE (the end of a path), and leave nothing new in FOLDER.
refused() {
  local what=$1 reason=$2 folder=$3 file=$4 status=0
  shift 4
  ls -A "$folder" >before.txt
  "$@" >out.txt 2>error.txt || status=$?
  [[ $status == 1 ]] || fail "$what: exit status $status"
  grep -q "cannot write $folder/[^ ]*/$file: $reason" error.txt ||
    fail "$what: no \"$reason\" for $file"
  ls -A "$folder" >after.txt
  cmp -s before.txt after.txt || fail "$what: something is left in $folder"
}

limited() { (ulimit -f 200 && "$@"); }  # 200 KiB per file
mkdir results
refused "import with limited files" "File too large" results feature.npy \
  limited import --out results/cora
refused "partition with limited files" "File too large" results feature.npy \
  limited "$bin/millrace" partition cora --parts 2 --method hash \
  --out results/store
# Edges waiting on disk need a larger file than the dataset.
limited import_triples --out triples.store >out.txt
refused "import with a limited scratch file" "File too large" results \
  in.edges limited import_triples --memory 16k --out results/triples

mkdir full
if mount -t tmpfs -o size=2m tmpfs full 2>mount.txt; then
  trap 'umount full; stop_groups' EXIT
  refused "import on a full disk" "No space left" full feature.npy \
    import --out full/cora
  refused "partition on a full disk" "No space left" full feature.npy \
    "$bin/millrace" partition cora --parts 2 --method hash --out full/store
else
  echo "skipped: full disk: $(head -n 1 mount.txt)"
fi

"$bin/millrace" partition cora --parts 2 --method hash --out results/store \
  >out.txt
"$bin/millrace" digest --store results/store --fanouts 5,5 >digest.txt
cmp expected.txt digest.txt || fail "another store"
checksums >after.txt
cmp sources.txt after.txt || fail "a source was changed"
