# SPDX-License-Identifier: Apache-2.0
"""What the scripts of tests/deploy have in common. Whoever imports it has, with
all programs that it starts, an environment that does not depend on who runs it:
files that others may read, messages in English, no proxy for this machine, and
Debian's programs first in PATH."""
import contextlib
import ctypes
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
# The packages that Millrace's programs need, without LibTorch.
LIBRARIES = ("libgrpc++1.51", "libspdlog1.10", "libmetis5", "libxxhash0",
             "libcivetweb1", "libprometheus-cpp-core1.0", "libgomp1")
LIMIT = 600.0  # seconds, for a program that is to end by itself


def _set_environment():
    os.umask(0o022)
    os.environ["LC_ALL"] = "C.UTF-8"
    os.environ.pop("LANGUAGE", None)
    direct = os.environ.get("no_proxy") or os.environ.get("NO_PROXY")
    os.environ["no_proxy"] = os.environ["NO_PROXY"] = ",".join(
        ([direct] if direct else []) + ["localhost", "127.0.0.1", "::1"])
    os.environ["PATH"] = ":".join(
        ["/usr/sbin", "/usr/bin", "/sbin", "/bin", os.environ["PATH"]])


_set_environment()


def install(*packages):
    """Installs those of Debian's packages that are missing. Takes root."""
    # dpkg may know of packages that are not installed.
    known = subprocess.run(
        ["dpkg-query", "--show", "--showformat",
         "${db:Status-Status} ${Package}\n", *packages],
        text=True, capture_output=True, check=False).stdout.split("\n")
    missing = [package for package in packages
               if f"installed {package}" not in known]
    if not missing:
        return
    if os.geteuid() != 0:
        sys.exit(f"{pathlib.Path(sys.argv[0]).name}: packages are missing\n"
                 f"install {' '.join(missing)}, or run this as root")
    subprocess.run(["bash", "-c", '. "$0" && install_packages "$@"',
                    ROOT / "tests/deploy/debian_root.sh", *missing],
                   check=True)


def find_programs():
    """The folder of the programs: of the newest build of a preset for them, or of
    the packages."""
    servers = [ROOT / "build" / preset / "bin/millrace-server"
               for preset in ("release", "package", "cuda")]
    return max((server for server in servers if server.exists()),
               key=lambda server: server.stat().st_mtime,
               default=pathlib.Path("/usr/bin/millrace-server")).parent


def use_pretended_cuda(folder):
    """Lets programs in `folder` that were built with tests/ptxemu find its
    libraries."""
    library = folder.parent / "tests/ptxemu/lib"
    if library.exists():
        os.environ.setdefault("LD_LIBRARY_PATH", str(library))


def folder_for_programs():
    """A folder for temporary files that can be started: where /tmp is mounted
    so that none can, that of dpkg, which starts packages' scripts there."""
    folder = tempfile.gettempdir()
    return ("/var/lib" if os.statvfs(folder).f_flag & os.ST_NOEXEC else
            folder)


CLONE_NEWNS, CLONE_NEWNET = 0x00020000, 0x40000000


def enter_namespaces(more=0):
    """Moves this process into namespaces of its own: of mounts, and those of the
    flags `more` (CLONE_NEWNET). Takes root."""
    if ctypes.CDLL(None, use_errno=True).unshare(CLONE_NEWNS | more):
        raise OSError(ctypes.get_errno(), "unshare")
    # Fails in a chroot whose root is no mount point. There the mounts are only
    # private if those of its host are.
    subprocess.run(["mount", "--make-rprivate", "/"], check=False,
                   stderr=subprocess.DEVNULL)


# SEE_INSTEAD, PATH, OTHER and a command: runs the command, as root, so that it
# sees OTHER at PATH, which others do not.
SEE_INSTEAD = ("unshare", "--mount", "--propagation", "unchanged", "sh", "-c",
               """
mount --make-rprivate / 2>/dev/null  # fails as in enter_namespaces()
mount --bind "$1" "$0" && shift && exec "$@"
""")


def await_true(what, condition, seconds, report=None):
    """Calls `condition` until it returns something true, and returns that. An
    OSError, as of a server that has not started, counts as false. What `report`
    returns, such as logs, ends the error."""
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
            raise AssertionError(f"not within {seconds} s: {what}"
                                 f"{report() if report else ''}") from error
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


def run_quietly(*words, **options):
    """Runs a program to its end, and returns its output, which is in the error
    if it fails. Raises TimeoutExpired if it does not end within LIMIT."""
    done = subprocess.run([str(word) for word in words], text=True,
                          capture_output=True, check=False, timeout=LIMIT,
                          **options)
    if done.returncode != 0:
        raise AssertionError(f"{words}: {done.returncode}\n{done.stdout}"
                             f"{done.stderr}")
    return done.stdout


def make_certificates(folder, names):
    """Makes a CA, folder/ca.pem and ca.key, and certificates of it, NAME.pem
    and NAME.key: `names` has their alternative names ("DNS:a.example,IP:...")
    by NAME."""
    key = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes")
    run_quietly("openssl", "req", "-x509", *key, "-keyout", "ca.key", "-out",
                "ca.pem", "-days", 90, "-subj", "/CN=fleet CA", cwd=folder)
    for name, alternatives in names.items():
        run_quietly("openssl", "req", *key, "-keyout", f"{name}.key", "-out",
                    f"{name}.csr", "-subj", f"/CN={name}", cwd=folder)
        (pathlib.Path(folder) / f"{name}.ext").write_text(
            f"subjectAltName={alternatives}")
        run_quietly("openssl", "x509", "-req", "-in", f"{name}.csr", "-CA",
                    "ca.pem", "-CAkey", "ca.key", "-CAcreateserial", "-days",
                    90, "-out", f"{name}.pem", "-extfile", f"{name}.ext",
                    cwd=folder)


# Options of a short training run, whose losses are compared.
TRAINING = ("--fanouts", "5,5", "--batch-size", "8", "--hidden", "16",
            "--threads", "1", "--log-every", "1")


def losses(path):
    """The losses of a --metrics-json file by epoch, step, and whether the line
    ends the run; of a step that was repeated the last."""
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    return {(line["epoch"], line["step"], "best_epoch" in line): line["loss"]
            for line in lines}
