# SPDX-License-Identifier: Apache-2.0
"""What the scripts of tests/deploy have in common."""
import contextlib
import json
import os
import pathlib
import subprocess
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
# The packages that Millrace's programs need, without LibTorch.
LIBRARIES = ("libgrpc++1.51", "libspdlog1.10", "libmetis5", "libxxhash0",
             "libcivetweb1", "libprometheus-cpp-core1.0", "libgomp1")


def install(*packages):
    """Installs those of Debian's packages that are missing, as root."""
    # dpkg may know of packages that are not installed.
    known = subprocess.run(
        ["dpkg-query", "--show", "--showformat",
         "${db:Status-Status} ${Package}\n", *packages],
        text=True, capture_output=True, check=False).stdout.split("\n")
    if all(f"installed {package}" in known for package in packages):
        return
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    subprocess.run(["apt-get", "-qq", "update"], check=True, env=environment)
    subprocess.run(["apt-get", "-qq", "-y", "--no-install-recommends",
                    "install", *packages], check=True, env=environment,
                   stdout=subprocess.DEVNULL)


def find_programs():
    """The folder of the programs: of the first build that is there, or of the
    packages."""
    for preset in ("release", "cuda"):
        folder = ROOT / "build" / preset / "bin"
        if (folder / "millrace-server").exists():
            return folder
    return pathlib.Path("/usr/bin")


def use_pretended_cuda(folder):
    """Lets programs in `folder` that were built with tests/ptxemu find its
    libraries."""
    library = folder.parent / "tests/ptxemu/lib"
    if library.exists():
        os.environ.setdefault("LD_LIBRARY_PATH", str(library))


def await_true(what, condition, seconds):
    """Calls `condition` until it returns something true, and returns that. An
    OSError, as of a server that has not started, counts as false."""
    until = time.monotonic() + seconds
    while True:
        error = None
        try:
            value = condition()
            if value:
                return value
        except OSError as caught:
            error = caught
        if time.monotonic() > until:
            raise AssertionError(
                f"not within {seconds} s: {what}") from error
        time.sleep(0.1)


def processes(folder, *programs):
    """Ids of the processes of Millrace's programs, or of these only, that have
    a path in `folder` on their command line, whoever started them."""
    found = []
    for process in pathlib.Path("/proc").iterdir():
        with contextlib.suppress(OSError):
            words = (process / "cmdline").read_bytes().split(b"\0")
            name = pathlib.Path(os.fsdecode(words[0])).name
            if (name.startswith("millrace") and (not programs
                                                 or name in programs)
                    and any(os.fsencode(folder) in word for word in words)):
                found.append(int(process.name))
    return sorted(found)


def make_cora_store(programs, data, folder):
    """Makes folder/store, of two partitions, of the dataset data/cora."""
    for command in (
            ["import", "ogb", data / "cora", "--split", "public", "--out",
             folder / "cora"],
            ["partition", folder / "cora", "--parts", "2", "--out",
             folder / "store"]):
        run_quietly(programs / "millrace", *command)
    return folder / "store"


def run_quietly(*words):
    """Runs a program to its end; its output is in the error if it fails."""
    done = subprocess.run([str(word) for word in words], text=True,
                          capture_output=True, check=False)
    if done.returncode != 0:
        raise AssertionError(f"{words}: {done.returncode}\n{done.stdout}"
                             f"{done.stderr}")


# Options of a short training run, whose losses are compared.
TRAINING = ("--fanouts", "5,5", "--batch-size", "8", "--hidden", "16",
            "--threads", "1", "--log-every", "1")


def losses(path):
    """The losses of a --metrics-json file by epoch, step, and whether the line
    ends the run; of a step that was repeated the last."""
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    return {(line["epoch"], line["step"], "best_epoch" in line): line["loss"]
            for line in lines}
