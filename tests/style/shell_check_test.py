#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests shell_check.py on trees of a few files."""
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

CHECK = pathlib.Path(__file__).with_name("shell_check.py")
BASH = "#!/usr/bin/env bash\n"


def check(files, **environment):
    """Checks a tree of the files; returns status and output."""
    with tempfile.TemporaryDirectory() as folder:
        for name, content in files.items():
            path = pathlib.Path(folder, name)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(content)
        done = subprocess.run(
            [sys.executable, "-B", CHECK, folder], text=True,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            env=environment or None)
        return done.returncode, done.stdout


class ShellCheckTest(unittest.TestCase):
    @unittest.skipUnless(shutil.which("shellcheck"), "there is no shellcheck")
    def test_finds_faults_in_shell_scripts_alone(self):
        fault = "cat $1\n"
        status, output = check({
            "a/run": BASH + fault, "b.sbatch": "#!/bin/sh\n" + fault,
            "lib.sh": "# shellcheck shell=bash\n" + fault, "good.sh": BASH,
            "c.py": "#!/usr/bin/env python3\n" + fault,
            "build/d.sh": BASH + fault})
        self.assertEqual(status, 1)
        for name in ("a/run", "b.sbatch", "lib.sh"):
            self.assertIn(f"{name}:2:5: note: Double quote", output)
        self.assertEqual(output.count("\n"), 3, output)

    @unittest.skipUnless(shutil.which("shellcheck"), "there is no shellcheck")
    def test_allows_scripts_without_faults(self):
        self.assertEqual(check({"a.sh": BASH + 'cat "$1"\n'}), (0, ""))

    def test_fails_where_nothing_can_be_checked(self):
        for files, told in (({"a.py": ""}, "no shell scripts below"),
                            ({"a.sh": BASH}, "there is no shellcheck")):
            status, output = check(files, PATH="/nowhere")
            self.assertEqual(status, 1)
            self.assertIn(told, output)


if __name__ == "__main__":
    unittest.main()
