# SPDX-License-Identifier: Apache-2.0
"""Models scripted by Python's PyTorch train on Cora: the checkpoint's weights,
back in the Python module, give the logits of --predict over the whole graph;
a resumed run has the losses of one that never stopped; what is no script is
refused.

Skipped (77) without PyTorch.
"""
import argparse
import gzip
import json
import pathlib
import subprocess
import sys
import tempfile

import numpy as np

try:
    import torch
    from torch import Tensor
except ImportError as error:
    print(f"skipped: this Python has no PyTorch ({error}); "
          "Debian's is the package python3-torch")
    sys.exit(77)


class Sage(torch.nn.Module):
    """One layer as PyG's SAGEConv."""

    def __init__(self, inputs: int, outputs: int):
        super().__init__()
        self.lin_l = torch.nn.Linear(inputs, outputs)
        self.lin_r = torch.nn.Linear(inputs, outputs, bias=False)

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        source, target = edge_index[0], edge_index[1]
        total = torch.zeros_like(x).index_add(0, target, x[source])
        count = torch.bincount(target, minlength=x.size(0)).clamp(min=1)
        return self.lin_l(total / count[:, None]) + self.lin_r(x)


class Model(torch.nn.Module):
    def __init__(self, features: int, classes: int):
        super().__init__()
        self.convs = torch.nn.ModuleList([Sage(features, 64),
                                          Sage(64, classes)])
        self.norm = torch.nn.BatchNorm1d(64)
        self.dropout = torch.nn.Dropout(0.5)

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        for i, conv in enumerate(self.convs):
            x = conv(x, edge_index)
            if i == 0:
                x = self.dropout(torch.relu(self.norm(x)))
        return x.log_softmax(1)


def read_csv(path, dtype):
    return np.loadtxt(gzip.open(path), delimiter=",", dtype=dtype, ndmin=2)


class Runs:
    def __init__(self, flags, directory):
        self.flags, self.directory = flags, directory
        self.store = directory / "cora"
        self.script = directory / "model.pt"

    def millrace(self, *arguments):
        subprocess.run([self.flags.bin / "millrace", *arguments], check=True)

    def command(self, *more):
        return [self.flags.bin / "millrace-train", "--store", self.store,
                "--model", f"script:{self.script}", "--fanouts", "25,10",
                "--batch-size", "32", "--lr", "0.01", "--weight-decay", "5e-4",
                *more]

    def train(self, *more):
        """The lines of --metrics-json."""
        metrics = self.directory / "metrics.json"
        subprocess.run([*self.command(*more), "--metrics-json", metrics],
                       check=True, stdout=subprocess.DEVNULL)
        return [json.loads(line) for line in metrics.read_text().splitlines()]

    def refused(self, message, *more):
        run = subprocess.run(self.command(*more), capture_output=True,
                             text=True)
        assert run.returncode != 0 and message in run.stderr, run
        print(run.stderr.strip())


def whole_graph(raw):
    """x and edge_index as --undirected --coalesce leave them."""
    x = read_csv(raw / "node-feat.csv.gz", np.float32)
    edges = read_csv(raw / "edge.csv.gz", np.int64)
    both = np.unique(np.concatenate([edges, edges[:, ::-1]]), axis=0)
    return torch.from_numpy(x), torch.from_numpy(both.T.copy())


def check_rows(runs, module, raw):
    """Of a run by two trainers: it learns, and its weights are the module's."""
    run, rows = runs.directory / "run", runs.directory / "rows.npy"
    lines = runs.train("--workers", "2", "--epochs", "8", "--eval-every", "0",
                       "--checkpoint", run)
    print(f"test accuracy {lines[-1]['test']:.3f}")
    assert lines[-1]["test"] > 0.7, lines[-1]
    runs.train("--epochs", "0", "--resume", "--checkpoint", run,
               "--eval-fanouts=-1,-1", "--predict", rows)
    module.load_state_dict(torch.load(run / "last.pt")["model"])
    module.eval()
    with torch.no_grad():
        want = module(*whole_graph(raw)).numpy()
    difference = np.abs(np.load(rows) - want).max()
    print(f"max |difference| {difference:.2e}")
    assert difference < 1e-4, difference


def check_resume(runs):
    run = runs.directory / "resumed"
    options = ["--workers", "2", "--log-every", "1", "--eval-every", "0"]
    calm = runs.train(*options, "--epochs", "4")
    runs.train(*options, "--epochs", "2", "--checkpoint", run)
    resumed = runs.train(*options, "--epochs", "4", "--checkpoint", run,
                         "--resume")
    # The file holds both attempts.
    losses = [[line["loss"] for line in lines if line["loss"] is not None]
              for lines in (calm, resumed)]
    assert len(losses[0]) > 4 and losses[0] == losses[1], losses


def check_refusals(runs, module):
    runs.refused("leave it out, and script", "--hidden", "16")
    runs.refused("use --inference sampled", "--inference", "full")
    runs.script = runs.directory / "state.pt"
    torch.save(module.state_dict(), runs.script)
    runs.refused("is no TorchScript module")
    runs.script = runs.directory / "absent.pt"
    runs.refused("absent.pt")
    runs.script = runs.directory / "classes.pt"
    torch.jit.script(Model(1433, 6)).save(str(runs.script))
    runs.refused("gives 6 columns, but the labels have 7 classes")
    torch.jit.script(Model(500, 7)).save(str(runs.script))
    runs.refused("mat1 and mat2 shapes cannot be multiplied")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--bin", type=pathlib.Path, required=True)
    parser.add_argument("--data", type=pathlib.Path, required=True)
    flags = parser.parse_args()
    torch.manual_seed(1)
    with tempfile.TemporaryDirectory(prefix="millrace-script-") as name:
        runs = Runs(flags, pathlib.Path(name))
        runs.millrace("import", "ogb", flags.data / "cora", "--split", "public",
                      "--undirected", "--coalesce", "--out", runs.store)
        module = Model(1433, 7)
        torch.jit.script(module).save(str(runs.script))
        check_rows(runs, module, flags.data / "cora" / "raw")
        check_resume(runs)
        check_refusals(runs, module)


if __name__ == "__main__":
    main()
