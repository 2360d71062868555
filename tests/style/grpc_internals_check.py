#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks that the code does not use gRPC's internals.

  tests/style/grpc_internals_check.py [FOLDER]...

Everything below impl/ or in namespace grpc::internal may change between
versions of gRPC, and the code should compile with newer versions than Debian's. Prints
the lines of the FOLDERs (default: everything that is installed) that name
either, and exits with 1 if there are any."""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
FOLDERS = ["common", "server", "client"]
SUFFIXES = {".h", ".cc", ".cpp", ".cu", ".cuh"}
INTERNALS = re.compile(r"\bgrpc\s*::\s*internal\b|\bgrpc(?:pp)?/impl/")


def main(folders):
    found = 0
    for folder in folders:
        for path in sorted(pathlib.Path(folder).rglob("*")):
            if path.suffix not in SUFFIXES:
                continue
            for number, line in enumerate(path.read_text().split("\n"), 1):
                if INTERNALS.search(line):
                    print(f"{path}:{number}: {line.strip()}")
                    found += 1
    if found:
        print(f"{found} lines use internals of gRPC; use its public headers")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:] or [ROOT / name for name in FOLDERS]))
