# SPDX-License-Identifier: Apache-2.0
"""Models scripted by Python's PyTorch train on Cora: the checkpoint's weights,
loaded into the Python module, give the logits of --predict over the whole
graph; a resumed run has the losses of an uninterrupted one; tied weights and
buffers outside the state_dict survive the round trip; files that are not
scripts, and weights that do not fit --init, are refused.

Skipped (77) without PyTorch."""
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


class Tied(torch.nn.Module):
    """Two names for one weight, one module under two names, and buffers."""

    def __init__(self, scale: float):
        super().__init__()
        self.first = torch.nn.Linear(1433, 7, bias=False)
        self.second = torch.nn.Linear(1433, 7, bias=False)
        self.second.weight = self.first.weight
        self.norm = torch.nn.BatchNorm1d(7)
        self.again = self.norm
        self.register_buffer("scale", torch.tensor(scale), persistent=False)
        self.register_buffer("one", torch.ones(1))

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        x = self.first(x) + self.scale * self.second(x)
        return self.again(self.norm(x)) * self.one


class Halves(torch.nn.Module):
    """Two weights that are tied only because they share memory."""

    def __init__(self):
        super().__init__()
        self.first = torch.nn.Linear(1433, 7)
        self.second = torch.nn.Linear(1433, 7)
        self.second.weight = torch.nn.Parameter(self.first.weight.data)

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        return self.first(x) + self.second(x)


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
    """x and edge_index as produced by --undirected --coalesce."""
    x = read_csv(raw / "node-feat.csv.gz", np.float32)
    edges = read_csv(raw / "edge.csv.gz", np.int64)
    both = np.unique(np.concatenate([edges, edges[:, ::-1]]), axis=0)
    return torch.from_numpy(x), torch.from_numpy(both.T.copy())


def check_rows(runs, module, raw):
    """Checks that a run with two trainers learns and that its weights fit
    the module."""
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
    baseline = runs.train(*options, "--epochs", "4")
    runs.train(*options, "--epochs", "2", "--checkpoint", run)
    resumed = runs.train(*options, "--epochs", "4", "--checkpoint", run,
                         "--resume")
    # The file contains both attempts.
    losses = [losses_of(lines) for lines in (baseline, resumed)]
    assert len(losses[0]) > 4 and losses[0] == losses[1], losses


def losses_of(lines):
    return [line["loss"] for line in lines if line["loss"] is not None]


def check_tied(runs):
    """A checkpoint's weights fit the script and the Python module, and theirs
    fit --init."""
    module, run = Tied(0.5), runs.directory / "tied"
    options = ["--workers", "2", "--epochs", "1", "--log-every", "1",
               "--eval-every", "0"]
    runs.script = runs.directory / "tied.pt"
    torch.jit.script(module).save(str(runs.script))
    losses = losses_of(runs.train(*options, "--checkpoint", run))
    saved = torch.load(run / "last.pt")
    assert len(saved["optimizer"]) == 2 * 3, saved["optimizer"].keys()
    weights = saved["model"]
    torch.jit.load(str(runs.script)).load_state_dict(weights)
    # TorchScript does not record which buffers are persistent.
    keys = Tied(0.5).load_state_dict(weights, strict=False)
    assert keys == ([], ["scale"]), keys

    # This script has other weights, which --init replaces.
    runs.script = runs.directory / "other.pt"
    torch.jit.script(Tied(0.5)).save(str(runs.script))
    init, start = runs.directory / "init.pt", module.state_dict()
    for weights, zipped in ((start, True), (start, False),
                            (module.state_dict(keep_vars=True), True)):
        torch.save(weights, init, _use_new_zipfile_serialization=zipped)
        assert losses_of(runs.train(*options, "--init", init)) == losses
    runs.train(*options, "--init", run / "last.pt")

    torch.save({**start, "second.weight": start["second.weight"] + 1}, init)
    runs.refused("differ, but they are one tensor", "--init", init)
    torch.save({k: v for k, v in start.items() if k != "norm.bias"
                and k != "again.bias"}, init)
    runs.refused('"norm.bias" is missing', "--init", init)


def check_no_weights(runs, module):
    init = runs.directory / "init.pt"
    torch.jit.script(module).save(str(init))
    runs.refused("a TorchScript archive", "--init", init)
    for zipped in (True, False):
        torch.save(module, init, _use_new_zipfile_serialization=zipped)
        runs.refused("Model is not supported: it is a class or function",
                     "--init", init)
    for zipped in (True, False):
        torch.save(module.state_dict(), init,
                   _use_new_zipfile_serialization=zipped)
        init.write_bytes(init.read_bytes()[:-2000])
        runs.refused("the file is damaged: copy or save it again",
                     "--init", init)


def check_refusals(runs, module):
    runs.refused("leave it out, and script", "--hidden", "16")
    runs.refused("use --inference sampled", "--inference", "full")
    runs.script = runs.directory / "state.pt"
    torch.save(module.state_dict(), runs.script)
    runs.refused("is not a TorchScript module")
    runs.script = runs.directory / "absent.pt"
    runs.refused("absent.pt")
    runs.script = runs.directory / "classes.pt"
    torch.jit.script(Model(1433, 6)).save(str(runs.script))
    runs.refused("gives 6 columns, but the labels have 7 classes")
    torch.jit.script(Model(500, 7)).save(str(runs.script))
    runs.refused("mat1 and mat2 shapes cannot be multiplied")
    torch.jit.script(Halves()).save(str(runs.script))
    runs.refused("are distinct but share memory")


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
        check_no_weights(runs, module)
        check_refusals(runs, module)
        check_tied(runs)


if __name__ == "__main__":
    main()
