# SPDX-License-Identifier: Apache-2.0
"""Untrusted checkpoints: pickles that start programs when Python loads them or
that ask for much memory, and tensors that do not match what the file holds.
Their readers (--resume, also for evaluation, and --init) exit with status 1 (2
if given weights do not fit the model), name the file, leave it unchanged, run
nothing and take little memory."""
import argparse
import collections
import io
import os
import pathlib
import pickle
import subprocess
import sys
import tempfile
import types
import unittest
import zipfile

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from limited_run import run_limited  # noqa: E402  (its folder comes first)

LITTLE = 2048 << 20  # bytes of memory
ADDRESS_SPACE = 8 << 30
PICKLE = "archive/data.pkl"
STORAGES = "archive/data/"


class Storage:
    def __init__(self, kind, key, device, count):
        self.kind, self.key, self.device, self.count = kind, key, device, count


class Tensor:
    """A tensor as described by a pickle."""

    def __init__(self, storage, offset, sizes, strides, *_):
        self.storage, self.offset = storage, offset
        self.sizes, self.strides = sizes, strides

    def __reduce__(self):
        return sys.modules["torch._utils"]._rebuild_tensor_v2, (
            self.storage, self.offset, self.sizes, self.strides, False,
            collections.OrderedDict())


def stand_in_for_torch():
    """Modules with the names that pickles of tensors use, so that Python can
    read and write them without PyTorch."""
    torch, utils = types.ModuleType("torch"), types.ModuleType("torch._utils")
    for name in ("FloatStorage", "DoubleStorage", "LongStorage"):
        setattr(torch, name, type(name, (), {"__module__": "torch"}))

    def _rebuild_tensor_v2(*arguments):
        return Tensor(*arguments)
    _rebuild_tensor_v2.__module__ = utils.__name__
    _rebuild_tensor_v2.__qualname__ = _rebuild_tensor_v2.__name__
    utils._rebuild_tensor_v2 = _rebuild_tensor_v2
    sys.modules.update({"torch": torch, "torch._utils": utils})


class Reader(pickle.Unpickler):
    def persistent_load(self, pid):
        return Storage(*pid[1:])


class Writer(pickle.Pickler):
    def persistent_id(self, obj):
        if not isinstance(obj, Storage):
            return None
        return "storage", obj.kind, obj.key, obj.device, obj.count


def written(value):
    file = io.BytesIO()
    Writer(file, protocol=2).dump(value)
    return file.getvalue()


def wrong_views():
    """Pairs of a name and a wrong description of a matrix [n, 4] in a pickle."""
    most = 2**63 - 1
    return [("a negative size", {"sizes": (-1, 4)}),
            ("a negative stride", {"strides": (-4, 1)}),
            ("a negative offset", {"offset": -1}),
            ("the smallest integers", {"offset": -most - 1,
                                       "sizes": (-most - 1, -most - 1)}),
            ("an offset behind the storage", {"offset": 10_000}),
            ("the largest offset", {"offset": most}),
            ("a stride out of the storage", {"strides": (10_000, 1)}),
            ("the largest strides", {"strides": (most, most)}),
            ("2^62 rows", {"sizes": (2**62, 4)}),
            ("2^124 elements", {"sizes": (2**62, 2**62)}),
            ("2^124 elements or none", {"sizes": (0, 2**62, 2**62),
                                        "strides": (1, 1, 1)}),
            ("one element many times", {"sizes": (2**40, 4),
                                        "strides": (0, 0)}),
            ("sizes beyond 64 bits", {"sizes": (2**70, 4)}),
            ("an offset beyond 64 bits", {"offset": 2**70}),
            ("sizes that are texts", {"sizes": ("4", "4")}),
            ("fewer strides than sizes", {"strides": (1,)}),
            ("100,000 dimensions", {"sizes": (1,) * 100_000,
                                    "strides": (1,) * 100_000})]


def wrong_storages():
    """Pairs of a name and a wrong description of a storage in a pickle."""
    return [("one element more", lambda storage: {"count": storage.count + 1}),
            ("-1 elements", lambda _: {"count": -1}),
            ("2^61 elements", lambda _: {"count": 2**61}),  # 2^63 bytes
            ("2^62 elements", lambda _: {"count": 2**62}),  # 2^64 bytes
            ("2^63 - 1 elements", lambda _: {"count": 2**63 - 1}),
            ("2^70 elements", lambda _: {"count": 2**70}),
            ("larger elements",
             lambda _: {"kind": sys.modules["torch"].DoubleStorage}),
            ("another entry", lambda _: {"key": "../data.pkl"}),
            ("an entry with a long name", lambda _: {"key": "k" * 1_000_000})]


class Command:
    """Runs a command when Python unpickles it."""

    def __init__(self, command):
        self.command = command

    def __reduce__(self):
        return os.system, (self.command,)


class Items:
    """A dictionary as in a pickle, where a key may occur more than once."""

    def __init__(self, items):
        self.items = items

    def __reduce__(self):
        return collections.OrderedDict, (), None, None, iter(self.items)


def large_pickles():
    """Pairs of a name and instructions that ask for much memory."""
    return [("many marks", b"\x80\x02" + b"(" * 5_000_000 + b"."),
            ("many lists", b"\x80\x02" + b"]" * 5_000_000 + b"."),
            ("nested lists", b"\x80\x02]" + b"](" * 1_000_000 + b"."),
            ("an integer of 2 GiB", b"\x80\x02\x8b" + b"\xff\xff\xff\x7f."),
            ("text of 4 GiB", b"\x80\x02X" + b"\xff\xff\xff\xff."),
            ("text of 2 GiB as a key",
             b"\x80\x02}X" + b"\xff\xff\xff\x7f" + b"formatX."),
            ("short text of 255 bytes", b"\x80\x04\x8c\xffx."),
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
        cls.given = cls.folder / "given.pt"
        stand_in_for_torch()
        cls.last = cls.folder / "checkpoint" / "last.pt"
        subprocess.run(
            [cls.bin / "millrace", "import", "fake", "--nodes", "200",
             "--avg-degree", "5", "--features", "4", "--classes", "2",
             "--out", cls.folder / "graph"], check=True, capture_output=True)
        ended = cls.train(1)
        if ended.status != 0:
            raise RuntimeError(ended.errors)
        cls.valid = cls.last.read_bytes()

    @classmethod
    def run_train(cls, *words):
        return run_limited(
            [cls.bin / "millrace-train", "--store", cls.folder / "graph",
             "--fanouts", "2,2", "--hidden", 4, "--threads", 1, *words],
            address_space=ADDRESS_SPACE)

    @classmethod
    def train(cls, epochs):
        return cls.run_train("--epochs", epochs, "--checkpoint",
                             cls.last.parent, "--resume")

    def refused(self, content):
        """The errors of --resume with a last.pt of this content."""
        errors = self.refused_as(self.last, content, lambda: self.train(2))
        self.assertEqual(os.listdir(self.last.parent), ["last.pt"])
        return errors

    def refused_everywhere(self, content):
        """The errors of all readers of checkpoints for a file of this content.
        """
        return [self.refused(content),
                self.refused_as(self.last, content, lambda: self.train(0)),
                self.refused_as(self.given, content, lambda: self.run_train(
                    "--epochs", 1, "--init", self.given))]

    def refused_as(self, path, content, run, status=1):
        path.write_bytes(content)
        before = path.stat()
        ended = run()
        self.assertEqual(ended.status, status, ended.errors)
        self.assertIn(str(path), ended.errors)
        self.assertNotIn("bug in Millrace", ended.errors)
        self.assertLess(len(ended.errors), 10_000)
        self.assertLess(ended.peak, LITTLE)
        self.assertFalse(self.executed.exists())
        self.assertEqual(path.read_bytes(), content)
        after = path.stat()
        self.assertEqual((before.st_ino, before.st_mtime_ns),
                         (after.st_ino, after.st_mtime_ns))
        return ended.errors

    def changed(self, change, compression=zipfile.ZIP_STORED):
        """The valid checkpoint after change(entries by name), as a zip file
        with correct checksums."""
        path = self.folder / "changed.pt"
        with zipfile.ZipFile(path, "w", compression) as archive:
            entries = self.entries()
            change(entries)
            for name, data in entries.items():
                archive.writestr(name, data)
        return path.read_bytes()

    def entries(self):
        path = self.folder / "valid.pt"
        path.write_bytes(self.valid)
        with zipfile.ZipFile(path) as archive:
            return {name: archive.read(name) for name in archive.namelist()}

    def with_pickle(self, data):
        return self.changed(lambda entries: entries.update({PICKLE: data}))

    def with_value(self, change):
        """The valid checkpoint after change(its dictionary)."""
        value = Reader(io.BytesIO(self.entries()[PICKLE])).load()
        change(value)
        return self.with_pickle(written(value))

    def with_tensor(self, change):
        """The valid checkpoint after change(a matrix of the model), and that
        matrix's name."""
        names = []

        def change_value(value):
            name, tensor = next(
                (name, tensor) for name, tensor in value["model"].items()
                if len(tensor.sizes) == 2 and tensor.sizes[1] == 4)
            names.append(name)
            change(tensor)
        return self.with_value(change_value), names[0]

    def storages(self):
        """The entries of tensors' data, with their sizes."""
        return {name: len(data) for name, data in self.entries().items()
                if name.startswith(STORAGES)}

    def test_valid_checkpoints_are_accepted(self):
        """Even if Python wrote the zip file or the pickle."""
        for content in (self.valid, self.changed(lambda entries: None),
                        self.with_value(lambda value: None)):
            self.last.write_bytes(content)
            ended = self.train(1)
            self.assertEqual(ended.status, 0, ended.errors)

    def test_pickles_that_run_commands(self):
        command = Command(f"touch {self.executed}")
        valid = self.entries()[PICKLE]
        for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
            evil = pickle.dumps(command, protocol)
            # Below, the pickle also comes before the true content, where its
            # result is dropped.
            header = 2 if protocol >= 2 else 0
            body = evil[header:-1]
            with self.subTest(protocol=protocol):
                self.refused(evil)
                self.refused(self.with_pickle(evil))
                # Where the pickle is does not depend on how it is written.
                if protocol not in (0, 2, pickle.HIGHEST_PROTOCOL):
                    continue
                self.refused(self.with_pickle(
                    b"\x80\x02" + body + b"0" + valid[2:]))
                self.refused(self.with_pickle(pickle.dumps(
                    {"format": "millrace checkpoint", "version": 1,
                     "model": {"convs.0.lin_l.weight": command}}, protocol)))
        # Verifies that these pickles do what they seem to.
        pickle.loads(evil)
        self.assertTrue(self.executed.exists())
        self.executed.unlink()

    def test_pickles_that_ask_for_much_memory(self):
        for name, data in large_pickles():
            with self.subTest(name=name):
                refused = (self.refused_everywhere if name == "text of 4 GiB"
                           else self.refused)
                refused(self.with_pickle(data))

    def test_a_pickle_that_is_compressed(self):
        size = 512 << 20
        data = b"\x80\x02X" + size.to_bytes(4, "little") + bytes(size) + b"."
        content = self.changed(lambda entries: entries.update({PICKLE: data}),
                               zipfile.ZIP_DEFLATED)
        self.assertLess(len(content), 8 << 20)
        self.refused_everywhere(content)

    def test_storages_that_are_missing(self):
        storages = self.storages()
        self.assertGreater(len(storages), 4)
        for name in list(storages)[::4]:
            with self.subTest(name=name):
                self.refused(self.changed(lambda entries: entries.pop(name)))
        self.refused_everywhere(self.changed(lambda entries: [
            entries.pop(name) for name in storages]))

    def test_storages_that_are_short(self):
        for number, (name, size) in enumerate(self.storages().items()):
            if number % 4:
                continue
            left = 0 if number % 8 else size - 1
            with self.subTest(name=name, left=left):
                errors = self.refused(self.changed(
                    lambda entries: entries.update(
                        {name: entries[name][:left]})))
                self.assertRegex(
                    errors, rf'tensor ".+": storage "{name[len(STORAGES):]}" '
                    rf'has {left} bytes, but {size} are needed')
                self.assertIn("put a good copy", errors)
        for left in (1, 0):
            for errors in self.refused_everywhere(self.changed(
                    lambda entries: entries.update(
                        {name: entries[name][:left]
                         for name in self.storages()}))):
                self.assertRegex(errors, rf"has {left} bytes, but \d+ are")

    def test_tensors_that_are_not_in_their_storage(self):
        for number, (name, fields) in enumerate(wrong_views()):
            with self.subTest(name=name):
                content, tensor = self.with_tensor(
                    lambda tensor: vars(tensor).update(fields))
                for errors in (self.refused_everywhere(content) if number == 0
                               else [self.refused(content)]):
                    self.assertIn(tensor, errors)

    def test_storages_that_are_not_what_the_pickle_says(self):
        for number, (name, fields) in enumerate(wrong_storages()):
            with self.subTest(name=name):
                content, tensor = self.with_tensor(
                    lambda tensor: vars(tensor.storage).update(
                        fields(tensor.storage)))
                for errors in (self.refused_everywhere(content) if number == 0
                               else [self.refused(content)]):
                    self.assertIn(tensor, errors)

    def with_large_storage(self, change):
        """The valid checkpoint with a storage of 10 MiB, after
        change(its dictionary, a tensor that is all of that storage)."""
        count = 10 << 18
        whole = Tensor(Storage(sys.modules["torch"].FloatStorage, "large",
                               "cpu", count), 0, (count,), (1,))
        value = Reader(io.BytesIO(self.entries()[PICKLE])).load()
        change(value, whole)
        content = self.changed(lambda entries: entries.update(
            {PICKLE: written(value), STORAGES + "large": bytes(4 * count)}))
        self.assertLess(len(content), 20 << 20)
        return content

    def test_many_views_of_one_storage(self):
        def add_views(value, whole):
            value["model"] = Items(
                [*value["model"].items(),
                 *((f"view.{number}", whole) for number in range(30_000))])
        content = self.with_large_storage(add_views)
        for errors in (
                self.refused(content),
                self.refused_as(self.given, content, lambda: self.run_train(
                    "--epochs", 1, "--init", self.given), status=2)):
            self.assertIn('the model has no tensor "view.0"', errors)

    def test_one_name_for_many_tensors(self):
        name = "n" * (8 << 20)
        content = self.with_large_storage(lambda value, whole: value.update(
            model=Items([(name, whole)] * 30_000)))
        for errors in self.refused_everywhere(content):
            self.assertIn("two of its tensors", errors)

    def test_one_text_for_many_options(self):
        text = "t" * (10 << 20)
        self.refused(self.with_value(lambda value: value.update(
            identity={str(number): text for number in range(30_000)})))

    def test_a_tensor_of_the_wrong_shape(self):
        content, tensor = self.with_tensor(
            lambda tensor: vars(tensor).update(sizes=(1, 4)))
        for errors in (self.refused(content),
                       self.refused_as(self.last, content,
                                       lambda: self.train(0))):
            self.assertIn(f'tensor "{tensor}" is [1, 4]', errors)

    def test_impossible_counters(self):
        for name, count in (("next_batch", -1), ("epoch", -2**63),
                            ("attempt", 2**63 - 1), ("epoch", 2**70),
                            ("epoch", 2**32), ("next_batch", 2**32),
                            ("step", 2**32), ("best_epoch", 2**32),
                            ("since_best", 2**32)):
            with self.subTest(name=name, count=count):
                self.refused(self.with_value(
                    lambda value: value["counters"].update({name: count})))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bin", type=pathlib.Path, required=True)
    args, rest = parser.parse_known_args()
    HostileCheckpointTest.bin = args.bin
    unittest.main(argv=[sys.argv[0], *rest])
