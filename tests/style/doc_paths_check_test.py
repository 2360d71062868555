#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests doc_paths_check.py on trees of a few files."""
import pathlib
import subprocess
import sys
import tempfile
import unittest

CHECK = pathlib.Path(__file__).with_name("doc_paths_check.py")


def check(text, document="docs/a.md"):
    """Checks a tree that has server/core/core.h; returns status and output."""
    with tempfile.TemporaryDirectory() as folder:
        for name, content in {document: text, "server/core/core.h": ""}.items():
            path = pathlib.Path(folder, name)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(content)
        done = subprocess.run([sys.executable, "-B", CHECK, folder], text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        return done.returncode, done.stdout


class DocPathsCheckTest(unittest.TestCase):
    def test_finds_paths_that_lead_nowhere(self):
        for path in ("server/cor.h", "server/core/core.cc", "tests/", "server/*.cc",
                     "tests/run.sh --fast"):
            with self.subTest(path):
                status, output = check(f"one\nsee `server/core/core.h`, `{path}`\n")
                self.assertEqual(status, 1)
                self.assertIn(f"a.md:2: there is no {path.split()[0]}\n",
                              output)

    def test_allows_paths_that_exist_and_other_text(self):
        self.assertEqual(check("""
            `server/core/core.h` `server/` `server/core/*.h` `server/core/core.h --help`
            `millrace-server` `build/logs` `part-00000/nodes` server/gone.h
            """), (0, ""))

    def test_finds_links_that_lead_nowhere(self):
        for link in ("b.md", "#two", "a.md#on-e", "../server/core/gone.h"):
            with self.subTest(link):
                status, output = check(f"# One\n[text]({link})\n")
                self.assertEqual(status, 1)
                self.assertIn(f"a.md:2: there is no {link}\n", output)

    def test_allows_links_that_lead_somewhere(self):
        self.assertEqual(check("""
# 1. One: `two` (3), [four](#five-six_7)
## Five six_7
[a](#1-one-two-3-four) [b](a.md#five-six_7) [c](../server/core/core.h)
[d](https://host.example/gone) [e](../server/core)
"""), (0, ""))

    def test_does_not_take_comments_in_code_for_headings(self):
        status, _ = check("```\n# comment\n```\n[text](#comment)\n")
        self.assertEqual(status, 1)

    def test_does_not_read_the_changelog_and_builds(self):
        for document in ("CHANGELOG.md", "build/a.md"):
            self.assertEqual(check("`server/gone.h`", document), (0, ""))


if __name__ == "__main__":
    unittest.main()
