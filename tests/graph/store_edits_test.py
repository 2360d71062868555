# SPDX-License-Identifier: Apache-2.0
"""Edits store.json at random and corrects its checksum: `millrace verify` and
`millrace digest` must accept the store or refuse it with a message.

--edits N: number of edits. --seed S: seed of the edits."""
import argparse
import copy
import json
import pathlib
import random
import shutil
import subprocess
import sys
import tempfile
import unittest

TESTS = pathlib.Path(__file__).resolve().parents[1]
sys.path += [str(TESTS / "support"), str(TESTS / "oracle")]
from limited_run import run_limited  # noqa: E402  (its folder comes first)
from store_writer import xxh3  # noqa: E402

LITTLE = 512 << 20    # bytes of memory
SECONDS = 60          # for a program that takes some milliseconds
NO_SUM = "0" * 16

VALUES = [None, True, False, 0, -1, 1, 2, 255, 2**31, 2**32, 2**40, 2**62,
          2**63 - 1, 2**63, 2**64 - 1, 2**64, -2**63, 0.5, -0.0, 1e300, 1e999,
          "", "0", "node", "train", "uint64", "float16", "../../x", "/etc",
          "a\n\x1b[2J", "\0", "x" * 100_000, [], {}, [0], [-1], [[[[]]]],
          [0, 2**62, 2**63], {"": 0}, {"dtype": "float32", "shape": [2**40]},
          {"dtype": "bfloat16", "shape": [-1]}]


def places(value, path=()):
    """The paths of all values inside `value`."""
    items = (value.items() if isinstance(value, dict) else
             enumerate(value) if isinstance(value, list) else ())
    for key, item in items:
        yield (*path, key)
        yield from places(item, (*path, key))


def seal(text):
    """Returns `text` with its checksum in place of 16 zeros."""
    return text.replace(f'"checksum": "{NO_SUM}"',
                        f'"checksum": "{xxh3(text.encode())}"')


class Repeated(dict):
    """An object that is written with some keys repeated."""

    def __init__(self, items):
        super().__init__(items)
        self.pairs = list(items)

    def items(self):
        return self.pairs


class Editor:
    def __init__(self, seed):
        self.random = random.Random(seed)

    def parent(self, root, path):
        for key in path[:-1]:
            root = root[key]
        return root

    def replace(self, root, path):
        self.parent(root, path)[path[-1]] = self.random.choice(VALUES)

    def remove(self, root, path):
        del self.parent(root, path)[path[-1]]

    def change_a_little(self, root, path):
        """Another number, or another letter."""
        parent, key = self.parent(root, path), path[-1]
        value = parent[key]
        if isinstance(value, bool):
            parent[key] = not value
        elif isinstance(value, int):
            parent[key] = value + self.random.choice((-1, 1, 1 << 32, 1 << 63))
        elif isinstance(value, str) and value:
            at = self.random.randrange(len(value))
            parent[key] = (value[:at] + self.random.choice("0aZ/.\\\"\u00fc\n")
                           + value[at + 1:])
        else:
            self.replace(root, path)

    def copy_another(self, root, path):
        """A value from elsewhere in the document, which may have the right
        form."""
        other = self.random.choice(list(places(root)))
        value = copy.deepcopy(self.parent(root, other)[other[-1]])
        self.parent(root, path)[path[-1]] = value

    def nest(self, root, path):
        parent, key = self.parent(root, path), path[-1]
        for _ in range(self.random.choice((1, 2, 200))):
            parent[key] = self.random.choice(([parent[key]],
                                              {str(key): parent[key]}))

    def repeat(self, root, path):
        """Repeats an entry of a list, or a key with another value."""
        parent, key = self.parent(root, path), path[-1]
        if isinstance(parent, list):
            parent += [copy.deepcopy(parent[key])] * self.random.choice((1, 9))
        elif len(path) > 1:
            pair = (key, self.random.choice(VALUES))
            pairs = [*parent.items(), pair]
            if self.random.random() < 0.5:
                pairs = [pair, *parent.items()]
            self.parent(root, path[:-1])[path[-2]] = Repeated(pairs)

    def edit(self, text):
        """Returns what was done, and the text of the edited store.json."""
        root = json.loads(text)
        root["checksum"] = NO_SUM
        done = []
        for _ in range(self.random.choice((1, 1, 1, 2, 4))):
            paths = [path for path in places(root) if path != ("checksum",)]
            # Half of the paths lead to files, which are all alike.
            rare = [path for path in paths if path[0] != "files"]
            path = self.random.choice(self.random.choice((paths, rare)))
            change = self.random.choice((
                self.replace, self.remove, self.change_a_little,
                self.change_a_little, self.copy_another, self.nest,
                self.repeat))
            change(root, path)
            done.append(f"{change.__name__} {path}")
        return "; ".join(done), seal(json.dumps(root, indent=1))


class StoreEditsTest(unittest.TestCase):
    bin = None
    edits, seed = 60, 1

    def setUp(self):
        directory = tempfile.TemporaryDirectory(prefix="millrace-edits-")
        self.addCleanup(directory.cleanup)
        self.folder = pathlib.Path(directory.name)

    def make_store(self):
        dataset, store = self.folder / "dataset", self.folder / "store"
        for words in (
                ("import", "fake", "--nodes", 60, "--avg-degree", 4,
                 "--features", 3, "--classes", 2, "--out", dataset),
                ("partition", dataset, "--parts", 2, "--out", store)):
            subprocess.run([self.bin / "millrace", *map(str, words)],
                           check=True, capture_output=True)
        return dataset, store

    def run_program(self, *words):
        """The status of a program that must exit normally."""
        ended = run_limited([self.bin / "millrace", *words], SECONDS)
        self.assertIn(ended.status, (0, 1, 2), ended.errors)
        if ended.status != 0:
            self.assertRegex(ended.errors, "^millrace [a-z]+: ")
        self.assertNotIn("bug in Millrace", ended.errors)
        self.assertNotIn("\x1b", ended.errors)
        self.assertLess(ended.peak, LITTLE)
        self.assertLess(len(ended.errors), 1 << 20)
        return ended.status

    def run_both(self, store):
        return (self.run_program("verify", store),
                self.run_program("digest", "--store", store, "--batches", 1,
                                 "--fanouts", "3,2", "--batch-size", 8))

    def test_edits(self):
        editor, accepted = Editor(self.seed), 0
        stores = {}
        for store in self.make_store():
            stores[store] = (store / "store.json").read_text()
            # A store whose checksum was computed here must work as before.
            plain = json.loads(stores[store])
            plain["checksum"] = NO_SUM
            (store / "store.json").write_text(seal(json.dumps(plain)))
            self.assertEqual(self.run_both(store), (0, 0))
        for i in range(self.edits):
            store, text = list(stores.items())[i % 2]
            done, edited = editor.edit(text)
            (store / "store.json").write_text(edited)
            with self.subTest(edit=i, done=done[:500]):
                verified, digested = self.run_both(store)
                accepted += verified == 0
        print(f"{self.edits} edits with seed {self.seed}: {accepted} accepted",
              flush=True)

    def test_files_that_are_not_there(self):
        """Missing files and folders, and files without the expected content."""
        _, store = self.make_store()
        text = (store / "store.json").read_text()
        for gone in ("part-00001", "splits"):
            shutil.rmtree(store / gone)
            self.assertEqual(self.run_both(store), (1, 1))
        for edited in ("", "{}", "[]", "null", "\0" * 1000, text[:-200],
                       "[" * 100_000, "\ufeff" + text):
            (store / "store.json").write_text(edited)
            self.assertEqual(self.run_both(store), (1, 1), edited[:20])


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bin", type=pathlib.Path, required=True)
    parser.add_argument("--edits", type=int, default=StoreEditsTest.edits)
    parser.add_argument("--seed", type=int, default=StoreEditsTest.seed)
    args, rest = parser.parse_known_args()
    StoreEditsTest.bin = args.bin
    StoreEditsTest.edits, StoreEditsTest.seed = args.edits, args.seed
    unittest.main(argv=[sys.argv[0], *rest])
