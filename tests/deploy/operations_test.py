#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the commands of docs/operations.md, section 1, as they stand there, one
block after another in one shell, on free ports, and checks after each what the
page says about it. Without --packages, the first block, which installs, is left
out.

Runs on Debian 12; as root it installs the packages `prometheus`, `openssl`
and `curl` if they are missing.

Usage: operations_test.py [OPTION]
  --bin DIR        the programs (default: of the newest build)
  --packages DIR   the packages, instead: runs the first block there, and the
                   others with what it has installed. Begins as a new system
                   does, without apt's lists of packages
"""
import argparse
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import unittest
import urllib.request

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.append(str(ROOT / "tests/support"))
import deploy  # noqa: E402  (its folder comes first)

PAGE = ROOT / "docs/operations.md"
PACKAGES = "prometheus", "openssl", "curl"
PORTS = (7001, 7002, 7003, 7004, 7101, 7102, 7103, 7104, 7201, 9091)
SHIFT = 10_000  # added to these, so that a fleet that runs here is left alone


def blocks():
    """The section's commands by the bold words at the head of their block; those
    of the first block, which has none, by "Packages"."""
    page = PAGE.read_text()
    section = page.split("\n## 1. ")[1].split("\n## 2. ")[0]
    first, *parts = re.split(r"\n(?=\*\*)", section)
    found = {"Packages": re.search(r"\n```\n(.*?)```", first, re.DOTALL)[1]}
    for part in parts:
        code = re.search(r"```bash\n(.*?)```", part, re.DOTALL)
        if code:
            found[re.match(r"\*\*([^*]+?)[.?]?\*\*", part).group(1)] = code[1]
    return found


def shifted(text):
    for port in PORTS:
        text = re.sub(rf"\b{port}\b", str(port + SHIFT), text)
    return text


class Shell:
    """A shell that runs one block after another, as a reader's does."""

    def __init__(self, folder, environment):
        self.process = subprocess.Popen(
            ["bash"], cwd=folder, env=environment, stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
            start_new_session=True)
        self.run("set -e; trap 'echo END-OF-BLOCK $?' EXIT")

    def run(self, text):
        """Returns the output; each command must end with 0, and all of them
        within LIMIT."""
        timer = threading.Timer(deploy.LIMIT, self.kill)
        timer.start()
        try:
            self.process.stdin.write(f"{text}\necho END-OF-BLOCK $?\n")
            self.process.stdin.flush()
            lines = []
            for line in self.process.stdout:
                end = re.fullmatch(r"END-OF-BLOCK (\d+)\n", line)
                if end:
                    output = "".join(lines)
                    assert end[1] == "0", (
                        f"{text}\nends with {end[1]}:\n{output}")
                    return output
                lines.append(line)
        finally:
            timer.cancel()
        raise AssertionError(f"{text}\ndoes not end within {deploy.LIMIT} s:\n"
                             + "".join(lines))

    def kill(self):
        """Ends the shell and all that it has started."""
        os.killpg(self.process.pid, signal.SIGKILL)

    def end(self):
        self.kill()
        self.process.communicate()


class OperationsTest(unittest.TestCase):
    bin = None
    packages = None

    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="millrace-operations-")
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        built = {} if self.packages else {
            "PATH": f"{self.bin}:{os.environ['PATH']}",
            "MILLRACE_DEPLOY": str(ROOT / "deploy")}
        self.shell = Shell(self.folder, {**os.environ, **built})
        self.addCleanup(self.shell.end)

    def ask(self, path):
        """The answer of Prometheus."""
        with urllib.request.urlopen(
                f"http://127.0.0.1:{9091 + SHIFT}/api/v1/{path}",
                timeout=30) as answer:
            return json.load(answer)["data"]

    def targets_up(self):
        return sum(int(sample["value"][1]) for sample in
                   self.ask("query?query=up{job='millrace-server'}")["result"])

    def page(self, port, name=""):
        with urllib.request.urlopen(
                f"http://127.0.0.1:{port + SHIFT}/{name}",
                timeout=30) as answer:
            return answer.read().decode()

    def active_alerts(self):
        return {alert["labels"]["alertname"]
                for alert in self.ask("alerts")["alerts"]}

    def install_packages(self, commands):
        for program in ("millrace", "millrace-server", "millrace-train"):
            self.assertIsNone(shutil.which(program))
        shutil.rmtree("/var/lib/apt/lists")
        self.shell.run(f"cd {self.packages}")
        self.shell.run(commands)
        self.shell.run(f"cd {self.folder}")
        # Who has only the packages reads the same page.
        self.assertEqual(
            pathlib.Path("/usr/share/doc/millrace/docs/operations.md")
            .read_text(), PAGE.read_text())

    def test_section_1(self):
        steps = {name: shifted(text) for name, text in blocks().items()}
        self.assertEqual(list(steps), [
            "Packages", "A store", "Certificates", "Servers", "Is it up",
            "Prometheus", "Train", "Lose a server", "Start it again", "Stop"])
        if self.packages:
            self.install_packages(steps["Packages"])
        for name in ("A store", "Certificates", "Servers"):
            self.shell.run(steps[name])
        output = self.shell.run(steps["Is it up"])
        self.assertEqual(len(re.findall(r"^localhost:\d+ +ready ", output,
                                        re.MULTILINE)), 4, output)

        output = self.shell.run(steps["Prometheus"])
        self.assertIn("SUCCESS", output)
        deploy.await_true("four targets are up",
                          lambda: self.targets_up() == 4, 60)
        self.assertIn("<html", self.page(7101))
        deploy.await_true(
            "all rules are evaluated",
            lambda: {rule["health"] for group in self.ask("rules")["groups"]
                     for rule in group["rules"]} == {"ok"}, 60)

        self.shell.run(steps["Train"])
        deploy.await_true("the trainer has a page",
                          lambda: "millrace_trainer_steps_total" in
                          self.page(7201, "metrics"), 60)

        output = self.shell.run(steps["Lose a server"])
        self.assertRegex(output, rf"localhost:{7001 + SHIFT} +unreachable")
        deploy.await_true("an alert names it",
                          lambda: "MillraceTargetDown" in self.active_alerts(),
                          60)
        output = self.shell.run(steps["Start it again"])
        self.assertRegex(output, rf"localhost:{7001 + SHIFT} +ready")
        deploy.await_true("four targets are up again",
                          lambda: self.targets_up() == 4, 60)

        output = self.shell.run(steps["Stop"])
        self.assertIn("best epoch", output)
        self.assertEqual(output.count('"message":"ended"'), 4, output)
        for port in (7001, 7002, 7003, 7004):
            self.shell.run(f"wait $(cat {port + SHIFT}.pid)")
            log = (self.folder / "fleet" / f"{port + SHIFT}.log").read_text()
            last = json.loads(log.splitlines()[-1])
            self.assertEqual((last["message"], last["level"], last["why"]),
                             ("ended", "info", "SIGTERM"), log)
        self.assertIn(" ended why=done ",
                      (self.folder / "fleet/train.log").read_text())


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--bin", type=pathlib.Path,
                        default=deploy.find_programs())
    parser.add_argument("--packages", type=pathlib.Path)
    options, rest = parser.parse_known_args()
    OperationsTest.bin = options.bin.resolve()
    OperationsTest.packages = options.packages
    if not options.packages:
        deploy.install(*PACKAGES, *deploy.LIBRARIES)
        deploy.use_pretended_cuda(OperationsTest.bin)
    unittest.main(argv=["operations_test.py", *rest], verbosity=2)
