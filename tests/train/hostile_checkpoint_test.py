# SPDX-License-Identifier: Apache-2.0
"""Checkpoints that someone else made: pickles that start programs when Python
loads them or that ask for much, and tensors without their data. --resume ends with status 1, leaves
the file as it is, runs nothing and takes little memory."""
import argparse
import os
import pathlib
import pickle
import subprocess
import sys
import tempfile
import unittest
import zipfile

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from limited_run import run_limited  # noqa: E402  (its folder comes first)

LITTLE = 2048 << 20  # bytes of memory
ADDRESS_SPACE = 8 << 30
PICKLE = "archive/data.pkl"


class Command:
    """Runs a command where Python unpickles it."""

    def __init__(self, command):
        self.command = command

    def __reduce__(self):
        return os.system, (self.command,)


def large_pickles():
    """(name, instructions that ask for much)"""
    return [("many marks", b"\x80\x02" + b"(" * 5_000_000 + b"."),
            ("many lists", b"\x80\x02" + b"]" * 5_000_000 + b"."),
            ("nested lists", b"\x80\x02]" + b"](" * 1_000_000 + b"."),
            ("an integer of 2 GiB", b"\x80\x02\x8b" + b"\xff\xff\xff\x7f."),
            ("bytes of 4 GiB", b"\x80\x03B" + b"\xff\xff\xff\xff."),
            ("a frame of 2^63", b"\x80\x04\x95" + bytes(7) + b"\x80."),
            ("text of 2^64", b"\x80\x04\x8d" + b"\xff" * 8 + b"."),
            ("memo entry 2^32", b"\x80\x02]r\xff\xff\xff\xff."),
            ("nothing", b""), ("an end", b"."), ("no end", b"\x80\x02}")]


class HostileCheckpointTest(unittest.TestCase):
    bin = None

    @classmethod
    def setUpClass(cls):
        directory = tempfile.TemporaryDirectory(prefix="millrace-checkpoint-")
        cls.addClassCleanup(directory.cleanup)
        cls.folder = pathlib.Path(directory.name)
        cls.executed = cls.folder / "executed"
        cls.last = cls.folder / "checkpoint" / "last.pt"
        subprocess.run(
            [cls.bin / "millrace", "import", "fake", "--nodes", "200",
             "--avg-degree", "5", "--features", "4", "--classes", "2",
             "--out", cls.folder / "graph"], check=True, capture_output=True)
        ended = cls.train(1)
        if ended.status != 0:
            raise RuntimeError(ended.errors)
        cls.sound = cls.last.read_bytes()

    @classmethod
    def train(cls, epochs):
        return run_limited(
            [cls.bin / "millrace-train", "--store", cls.folder / "graph",
             "--fanouts", "2,2", "--hidden", 4, "--threads", 1, "--epochs",
             epochs, "--checkpoint", cls.last.parent, "--resume"],
            address_space=ADDRESS_SPACE)

    def refused(self, content):
        """The errors, by a last.pt of this content."""
        self.last.write_bytes(content)
        before = self.last.stat()
        ended = self.train(2)
        self.assertEqual(ended.status, 1, ended.errors)
        self.assertIn(str(self.last), ended.errors)
        self.assertNotIn("bug in Millrace", ended.errors)
        self.assertLess(ended.peak, LITTLE)
        self.assertFalse(self.executed.exists())
        self.assertEqual(self.last.read_bytes(), content)
        after = self.last.stat()
        self.assertEqual((before.st_ino, before.st_mtime_ns),
                         (after.st_ino, after.st_mtime_ns))
        self.assertEqual(os.listdir(self.last.parent), ["last.pt"])
        return ended.errors

    def changed(self, change, compression=zipfile.ZIP_STORED):
        """The sound checkpoint after change(entries by name), as a zip file
        whose own checksums are right."""
        path = self.folder / "changed.pt"
        with zipfile.ZipFile(path, "w", compression) as archive:
            entries = self.entries()
            change(entries)
            for name, data in entries.items():
                archive.writestr(name, data)
        return path.read_bytes()

    def entries(self):
        path = self.folder / "sound.pt"
        path.write_bytes(self.sound)
        with zipfile.ZipFile(path) as archive:
            return {name: archive.read(name) for name in archive.namelist()}

    def with_pickle(self, data):
        return self.changed(lambda entries: entries.update({PICKLE: data}))

    def test_sound_checkpoints_are_taken(self):
        """Also when Python wrote the zip file."""
        for content in (self.sound, self.changed(lambda entries: None)):
            self.last.write_bytes(content)
            ended = self.train(1)
            self.assertEqual(ended.status, 0, ended.errors)

    def test_pickles_that_run_commands(self):
        command = Command(f"touch {self.executed}")
        sound = self.entries()[PICKLE]
        for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
            evil = pickle.dumps(command, protocol)
            # Before the true content: what Python would leave no trace of.
            header = 2 if protocol >= 2 else 0
            body = evil[header:-1]
            with self.subTest(protocol=protocol):
                self.refused(evil)
                self.refused(self.with_pickle(evil))
                self.refused(self.with_pickle(
                    b"\x80\x02" + body + b"0" + sound[2:]))
                self.refused(self.with_pickle(pickle.dumps(
                    {"format": "millrace checkpoint", "version": 1,
                     "model": {"convs.0.lin_l.weight": command}}, protocol)))
        # That these pickles are what they seem.
        pickle.loads(evil)
        self.assertTrue(self.executed.exists())
        self.executed.unlink()

    def test_pickles_that_ask_for_much(self):
        for name, data in large_pickles():
            with self.subTest(name=name):
                self.refused(self.with_pickle(data))

    def test_storages_that_are_missing(self):
        storages = [name for name in self.entries()
                    if name.startswith("archive/data/")]
        self.assertGreater(len(storages), 4)
        for name in storages:
            with self.subTest(name=name):
                self.refused(self.changed(lambda entries: entries.pop(name)))
        self.refused(self.changed(lambda entries: [
            entries.pop(name) for name in storages]))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bin", type=pathlib.Path, required=True)
    args, rest = parser.parse_known_args()
    HostileCheckpointTest.bin = args.bin
    unittest.main(argv=[sys.argv[0], *rest])
