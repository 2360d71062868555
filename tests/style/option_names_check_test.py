#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests option_names_check.py on trees of a few files."""
import pathlib
import subprocess
import sys
import tempfile
import unittest

CHECK = pathlib.Path(__file__).with_name("option_names_check.py")


def check(files):
    """Checks these {path: text}; returns status and output."""
    with tempfile.TemporaryDirectory() as folder:
        for name, text in files.items():
            path = pathlib.Path(folder, name)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        done = subprocess.run([sys.executable, "-B", CHECK, folder], text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        return done.returncode, done.stdout


class OptionNamesCheckTest(unittest.TestCase):
    def test_programs_may_name_options(self):
        text = 'Option("--lr"); UsageError("--lr is needed");'
        for path in ("client/cli/a.cc", "client/flags/a.h", "server/main.cc",
                     "client/train/main/a.cc", "common/cli/a.cc"):
            self.assertEqual(check({path: text}), (0, ""))

    def test_libraries_may_not(self):
        for text in ('"--lr"', '"give\\n--lr"', '"\\"--lr\\""', 'R"(a\n--lr)"',
                     '\'"\' + "use --lr"'):
            status, output = check({"common/a.h": f"\nx = {text};"})
            self.assertEqual(status, 1, text)
            self.assertTrue(output.startswith("common/a.h:2: names an option"),
                            output)

    def test_other_dashes_are_allowed(self):
        self.assertEqual(
            check({"server/a.cc": '// "--lr"\n/* "--lr" */ "--" "a--b" "- -x" '
                                  '"<--- HERE" i--; "x"'}), (0, ""))

    def test_libraries_may_not_name_programs(self):
        for text in ('"run `millrace verify`"', '"see millrace-server"'):
            self.assertEqual(check({"client/cli/a.cc": text}), (0, ""))
            self.assertEqual(
                check({"server/a.cc": text}),
                (1, f"server/a.cc:1: names a program: {text}\n"))
        self.assertEqual(check({"server/a.cc": '"millrace/damaged-file"'}),
                         (0, ""))

    def test_libraries_make_no_usage_errors(self):
        self.assertEqual(
            check({"client/nn/a.cc": 'if (IsUsageError(s)) return\n'
                                     ' UsageError("lr");'}),
            (1, "client/nn/a.cc:2: UsageError is for programs\n"))

    def test_reasons_and_advice_belong_together(self):
        files = {"client/nn/a.cc": 'WithReason(s, Reason{"cold"});\n'
                                   'constexpr Reason kHot = {"hot"};\n'
                                   'big ? Reason{"big"} : Reason{"small"}',
                 "client/cli/b.cc": '{{"cold"}, "heat"}, {{"hot"}, "cool"},\n'
                                    '{{"big"}, "cut"}, {{"small"}, "add"}'}
        self.assertEqual(check(files), (0, ""))
        files["client/nn/a.cc"] += 'Reason{"wet"}'
        files["client/cli/b.cc"] += '{{"dry"}, "--water it"}'
        self.assertEqual(check(files), (
            1, 'client/nn/a.cc:3: no program has advice for "wet"\n'
               'client/cli/b.cc: no library gives the reason "dry"\n'))


if __name__ == "__main__":
    unittest.main()
