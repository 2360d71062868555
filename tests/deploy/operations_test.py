#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the commands of docs/operations.md, section 1, as they stand there, one
block after another in one shell, on free ports, and checks after each what the
page says about it.

Runs on Debian 12; as root it installs the packages `prometheus`, `openssl`
and `curl` if they are missing.

Usage: operations_test.py [--bin DIR]      DIR has the programs
"""
import argparse
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import tempfile
import time
import unittest
import urllib.request

ROOT = pathlib.Path(__file__).resolve().parents[2]
PACKAGES = {"prometheus": "prometheus", "promtool": "prometheus",
            "openssl": "openssl", "curl": "curl"}
PORTS = (7001, 7002, 7003, 7004, 7101, 7102, 7103, 7104, 7201, 9091)
SHIFT = 10_000  # added to these, so that a fleet that runs here is left alone


def install():
    missing = {package for program, package in PACKAGES.items()
               if shutil.which(program) is None}
    if missing:
        subprocess.run(["apt-get", "update", "-qq"], check=True)
        subprocess.run(["apt-get", "install", "-y", "-qq",
                        "--no-install-recommends", *missing], check=True,
                       stdout=subprocess.DEVNULL,
                       env={**os.environ, "DEBIAN_FRONTEND": "noninteractive"})


def blocks():
    """The section's commands by the bold words at the head of their block."""
    page = (ROOT / "docs/operations.md").read_text()
    section = page.split("\n## 1. ")[1].split("\n## 2. ")[0]
    found = {}
    for part in re.split(r"\n(?=\*\*)", section):
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

    def run(self, text):
        """Returns the output; the last command must have ended with 0."""
        self.process.stdin.write(f"{text}\necho END-OF-BLOCK $?\n")
        self.process.stdin.flush()
        lines = []
        for line in self.process.stdout:
            end = re.fullmatch(r"END-OF-BLOCK (\d+)\n", line)
            if end:
                output = "".join(lines)
                assert end[1] == "0", f"{text}\nends with {end[1]}:\n{output}"
                return output
            lines.append(line)
        raise AssertionError("the shell has ended:\n" + "".join(lines))

    def end(self):
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.communicate()


class OperationsTest(unittest.TestCase):
    bin = None

    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="millrace-operations-")
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.shell = Shell(self.folder, {
            **os.environ, "PATH": f"{self.bin}:{os.environ['PATH']}",
            "MILLRACE_DEPLOY": str(ROOT / "deploy")})
        self.addCleanup(self.shell.end)

    def ask(self, path):
        """The answer of Prometheus."""
        with urllib.request.urlopen(
                f"http://127.0.0.1:{9091 + SHIFT}/api/v1/{path}") as answer:
            return json.load(answer)["data"]

    def await_true(self, what, condition, seconds):
        deadline = time.monotonic() + seconds
        while True:
            try:
                if condition():
                    return
            except OSError:
                pass  # Prometheus is starting
            self.assertLess(time.monotonic(), deadline, what)
            time.sleep(0.5)

    def targets_up(self):
        return sum(int(sample["value"][1]) for sample in
                   self.ask("query?query=up{job='millrace-server'}")["result"])

    def page(self, port, name=""):
        with urllib.request.urlopen(
                f"http://127.0.0.1:{port + SHIFT}/{name}") as answer:
            return answer.read().decode()

    def active_alerts(self):
        return {alert["labels"]["alertname"]
                for alert in self.ask("alerts")["alerts"]}

    def test_section_1(self):
        steps = {name: shifted(text) for name, text in blocks().items()}
        self.assertEqual(list(steps), [
            "A store", "Certificates", "Servers", "Is it up",
            "Prometheus", "Train", "Lose a server", "Stop"])
        for name in ("A store", "Certificates", "Servers"):
            self.shell.run(steps[name])
        output = self.shell.run(steps["Is it up"])
        self.assertEqual(len(re.findall(r"^localhost:\d+ +ready ", output,
                                        re.MULTILINE)), 4, output)

        output = self.shell.run(steps["Prometheus"])
        self.assertIn("SUCCESS", output)
        self.await_true("four targets are up",
                        lambda: self.targets_up() == 4, 60)
        self.assertIn("<html", self.page(7101))
        self.await_true(
            "all rules are evaluated",
            lambda: {rule["health"] for group in self.ask("rules")["groups"]
                     for rule in group["rules"]} == {"ok"}, 60)

        self.shell.run(steps["Train"])

        lose, start = steps["Lose a server"].split("millrace-server", 1)
        output = self.shell.run(lose)
        self.assertRegex(output, rf"localhost:{7001 + SHIFT} +unreachable")
        self.await_true("an alert names it",
                        lambda: "MillraceTargetDown" in self.active_alerts(),
                        60)
        output = self.shell.run("millrace-server" + start)
        self.assertRegex(output, rf"localhost:{7001 + SHIFT} +ready")
        self.assertIn("millrace_trainer_steps_total", self.page(7201, "metrics"))
        self.await_true("four targets are up again",
                        lambda: self.targets_up() == 4, 60)

        output = self.shell.run(steps["Stop"])
        self.assertIn("best epoch", output)
        self.shell.run("wait")
        for port in (7001, 7002, 7003, 7004):
            log = (self.folder / "fleet" / f"{port + SHIFT}.log").read_text()
            last = json.loads(log.splitlines()[-1])
            self.assertEqual(last["message"], "ended", log)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--bin", type=pathlib.Path,
                        default=ROOT / "build/release/bin")
    options, rest = parser.parse_known_args()
    OperationsTest.bin = options.bin.resolve()
    install()
    unittest.main(argv=["operations_test.py", *rest], verbosity=2)
