#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests grpc_internals_check.py on files of a few lines."""
import pathlib
import subprocess
import sys
import tempfile
import unittest

CHECK = pathlib.Path(__file__).with_name("grpc_internals_check.py")


def check(text):
    """Runs the check over a file of this text; returns status and output."""
    with tempfile.TemporaryDirectory() as folder:
        pathlib.Path(folder, "a.cc").write_text(text)
        done = subprocess.run([sys.executable, "-B", CHECK, folder], text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        return done.returncode, done.stdout


class GrpcInternalsCheckTest(unittest.TestCase):
    def test_finds_internals(self):
        for line in ("#include <grpcpp/impl/service_type.h>",
                     "#include <grpc/impl/codegen/grpc_types.h>",
                     "#include <grpcpp/impl/codegen/proto_utils.h>",
                     "new ::grpc::internal::RpcServiceMethod(path);",
                     "using grpc :: internal :: Call;"):
            with self.subTest(line):
                status, output = check(f"int a;\n{line}\n")
                self.assertEqual(status, 1)
                self.assertIn(f"a.cc:2: {line}\n", output)

    def test_allows_the_rest(self):
        self.assertEqual(check("""
            #include <grpc/grpc.h>
            #include <grpcpp/support/byte_buffer.h>
            #include "common/grpc/implied.h"
            ::grpc::Status internal;
            namespace internal = millrace::internal;
            """), (0, ""))


if __name__ == "__main__":
    unittest.main()
