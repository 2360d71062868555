#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Lets Debian's Prometheus watch two servers with mutual TLS and a trainer, and
runs every query of the Grafana dashboard and every alert of deploy/ against it:
none may fail, and those that should find something must. Also runs promtool's
unit tests of the alerts.

Runs on Debian 12; as root it installs the packages `prometheus`, `openssl` and
`python3-numpy` if they are missing.

Usage: prometheus_test.py [--bin DIR]      DIR has the programs
"""
import argparse
import json
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import time
import unittest
import urllib.error
import urllib.parse
import urllib.request

ROOT = pathlib.Path(__file__).resolve().parents[2]
RULES = ROOT / "deploy/prometheus"
DASHBOARD = ROOT / "deploy/grafana/millrace.json"
PACKAGES = ("prometheus", "openssl", "python3-numpy")
sys.path += [str(ROOT / "tests/chaos"), str(ROOT / "tests/support")]
import deploy  # noqa: E402  (its folder comes first)

# Metrics that this fleet does not have, and why. Queries and alerts that need
# one may find nothing.
ABSENT = {
    "millrace_gpu_memory_bytes": "no GPU",
    "millrace_gpu_memory_free_bytes": "no GPU",
    "millrace_calls_total{code!=OK}": "no call has failed yet",
    "container_memory_rss": "no cAdvisor",
    "container_spec_memory_limit_bytes": "no cAdvisor",
    "ALERTS": "no alert fires",
}
NAME = re.compile(r"\b(?:millrace|process|container|fleet|partition)_?[\w:]+"
                  r"(?=[{\[)\s,]|$)")


def panels():
    """(title, query) of each query of the dashboard, with the variables as
    Grafana fills them in for "All"."""
    dashboard = json.loads(DASHBOARD.read_text())
    for panel in dashboard["panels"]:
        for target in panel.get("targets", []):
            yield panel["title"], (target["expr"]
                                   .replace("$namespace", ".*")
                                   .replace("$fleet", ".*")
                                   .replace("$__rate_interval", "30s"))


def may_be_empty(query):
    return any(name.split("{")[0] in query
               and ("{" not in name or 'code!="OK"' in query)
               for name in ABSENT)


class Fleet:
    """Two servers, a trainer, and a Prometheus that watches them."""

    def __init__(self, binary, folder):
        from free_port import free_port
        from harness import make_store
        self.binary, self.folder, self.started = binary, folder, []
        self.store = make_store(binary, folder, 2)
        deploy.make_certificates(folder, {"tls": "IP:127.0.0.1"})
        self.servers = [free_port(), free_port()]
        self.pages = {port: free_port() for port in self.servers}
        self.trainer, self.port = free_port(), free_port()
        self.list = ",".join(f"127.0.0.1:{port}" for port in self.servers)
        self.tls = ["--tls-cert", "tls.pem", "--tls-key", "tls.key",
                    "--tls-ca", "ca.pem"]

    def start(self, name, *words):
        with open(self.folder / f"{name}.log", "w") as log:
            self.started.append(subprocess.Popen(
                [str(word) for word in words], cwd=self.folder, stdout=log,
                stderr=log))
        return self.started[-1]

    def start_all(self):
        for part, port in enumerate(self.servers):
            self.start(f"server-{part}", self.binary / "millrace-server",
                       "--store", self.store, "--partition", part, "--listen",
                       f"127.0.0.1:{port}", "--peers", self.list, *self.tls,
                       "--metrics", f"127.0.0.1:{self.pages[port]}",
                       "--threads", 2, "--scrub", "20M",
                       "--feature-memory", "ram")
        self.start("trainer", self.binary / "millrace-train", "--servers",
                   self.list, *self.tls, "--metrics",
                   f"127.0.0.1:{self.trainer}", "--fanouts", "5,5",
                   "--batch-size", 256, "--hidden", 16, "--epochs", 100_000,
                   "--threads", 1, "--cache-ratio", "0.2", "--eval-every", 1,
                   "--checkpoint", "run", "--checkpoint-every", 20)
        self.write_configuration()
        self.start("prometheus", "prometheus", "--config.file=prometheus.yml",
                   "--storage.tsdb.path=data",
                   f"--web.listen-address=127.0.0.1:{self.port}")

    def write_configuration(self):
        """The example of deploy/, with this fleet's targets and intervals of
        1 s."""
        text = (RULES / "prometheus.yml").read_text()
        targets = [f"127.0.0.1:{page}" for page in self.pages.values()]
        text = (text.replace("15s", "1s")
                .replace("- host-a.example:7080", f"- {targets[0]}")
                .replace("- host-b.example:7080", f"- {targets[1]}"))
        (self.folder / "prometheus.yml").write_text(text)
        rules = (RULES / "alerts.yml").read_text()
        (self.folder / "alerts.yml").write_text(rules)
        (self.folder / "trainers").mkdir()
        (self.folder / "trainers/run.json").write_text(json.dumps(
            [{"targets": [f"127.0.0.1:{self.trainer}"],
              "labels": {"run": "test"}}]))

    def ask(self, path, **parameters):
        """The data of an answer of Prometheus; raises its error."""
        url = (f"http://127.0.0.1:{self.port}/api/v1/{path}?"
               + urllib.parse.urlencode(parameters))
        try:
            with urllib.request.urlopen(url, timeout=30) as answer:
                return json.load(answer)["data"]
        except urllib.error.HTTPError as error:
            if error.code == 503:
                raise  # it is starting
            raise AssertionError(error.read().decode()) from error

    def query(self, text):
        return self.ask("query", query=text)["result"]

    def logs(self):
        return "".join(f"\n{path.name}:\n{path.read_text()[-2000:]}"
                       for path in sorted(self.folder.glob("*.log")))

    def end(self):
        for process in self.started:
            process.send_signal(signal.SIGKILL)
            process.wait()


class WatchedFleetTest(unittest.TestCase):
    bin = None

    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory(prefix="millrace-prometheus-")
        cls.addClassCleanup(folder.cleanup)
        cls.fleet = Fleet(cls.bin, pathlib.Path(folder.name))
        cls.addClassCleanup(cls.fleet.end)
        cls.fleet.start_all()
        cls.await_true("an epoch is evaluated and a checkpoint is written",
                       lambda: cls.fleet.query("millrace_trainer_metric") and
                       cls.fleet.query("millrace_trainer_last_checkpoint"
                                       "_timestamp_seconds"), 120)
        # Rates over 30 s, and all records.
        time.sleep(20)

    @classmethod
    def await_true(cls, what, condition, seconds):
        deploy.await_true(what, condition, seconds, report=cls.fleet.logs)

    def test_1_all_targets_are_up(self):
        up = self.fleet.query("up")
        self.assertEqual(len(up), 3)
        self.assertEqual({sample["value"][1] for sample in up}, {"1"})

    def test_2_every_query_of_the_dashboard_finds_something(self):
        for title, query in panels():
            with self.subTest(title, query=query):
                found = self.fleet.query(query)
                if not may_be_empty(query):
                    self.assertTrue(found)
                for sample in found:
                    float(sample["value"][1])

    def test_3_every_rule_works_and_no_alert_fires(self):
        rules = [rule for group in self.fleet.ask("rules")["groups"]
                 for rule in group["rules"]]
        self.assertGreater(len(rules), 30)
        for rule in rules:
            with self.subTest(rule["name"]):
                self.assertEqual(rule["health"], "ok", rule.get("lastError"))
                if rule["type"] == "recording":
                    self.assertTrue(self.fleet.query(rule["name"]))
        self.assertEqual([alert["labels"] for alert in
                          self.fleet.ask("alerts")["alerts"]
                          if alert["state"] == "firing"], [])

    def test_4_every_alert_has_metrics_to_go_by(self):
        for group in self.fleet.ask("rules")["groups"]:
            for rule in group["rules"]:
                for name in set(NAME.findall(rule["query"])):
                    with self.subTest(rule["name"], metric=name):
                        if name not in ABSENT:
                            self.assertTrue(self.fleet.query(name))

    def test_5_a_lost_server_is_noticed(self):
        self.fleet.started[1].kill()
        self.await_true(
            "alerts are pending",
            lambda: {"MillraceTargetDown", "MillracePartitionUnserved"} <= {
                alert["labels"]["alertname"]
                for alert in self.fleet.ask("alerts")["alerts"]}, 30)
        lost = self.fleet.query('ALERTS{alertname="MillracePartitionUnserved"}')
        self.assertEqual([one["metric"]["partition"] for one in lost], ["1"])


class FilesTest(unittest.TestCase):
    def test_promtool_accepts_the_files(self):
        for words in (["check", "rules", "alerts.yml"],
                      ["check", "config", "prometheus.yml"],
                      ["test", "rules", "alerts_test.yml",
                       "alerts_days_test.yml"]):
            done = subprocess.run(["promtool", *words], cwd=RULES, text=True,
                                  capture_output=True)
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def test_every_alert_has_a_unit_test(self):
        alerts = re.findall(r"alert: (\w+)", (RULES / "alerts.yml").read_text())
        tested = "".join(path.read_text() for path in
                         RULES.glob("alerts_*test.yml"))
        for alert in alerts:
            with self.subTest(alert):
                self.assertIn(f'alertname="{alert}"', tested)

    def test_the_operations_page_says_what_to_do_for_each_alert(self):
        page = (ROOT / "docs/operations.md").read_text()
        rules = (RULES / "alerts.yml").read_text()
        alerts = re.split(r"\n *- alert: ", rules)[1:]
        self.assertGreater(len(alerts), 30)
        for alert in alerts:
            name = alert.split("\n")[0]
            with self.subTest(name):
                self.assertEqual(re.findall(r"runbook: (.*)", alert), [
                    f"docs/operations.md#{name.lower()}"])
                self.assertIn(f"\n### {name}\n", page)
        headings = re.findall(r"\n### (Millrace\w+)\n", page)
        self.assertEqual(sorted(headings), sorted(
            alert.split("\n")[0] for alert in alerts))

    def test_every_metric_is_documented(self):
        pages = "".join(page.read_text()
                        for page in (ROOT / "docs").glob("*.md"))
        used = (RULES / "alerts.yml").read_text() + DASHBOARD.read_text()
        for name in set(re.findall(r"(?<![:\w])millrace_\w+", used)):
            with self.subTest(name):
                self.assertIn(re.sub("_(bucket|count)$", "", name), pages)

    def test_panels_do_not_overlap_and_have_a_data_source(self):
        dashboard = json.loads(DASHBOARD.read_text())
        taken, ids = set(), set()
        for panel in dashboard["panels"]:
            with self.subTest(panel["title"]):
                place = panel["gridPos"]
                cells = {(place["x"] + x, place["y"] + y)
                         for x in range(place["w"]) for y in range(place["h"])}
                self.assertFalse(cells & taken)
                taken |= cells
                self.assertLessEqual(place["x"] + place["w"], 24)
                self.assertNotIn(panel["id"], ids)
                ids.add(panel["id"])
                for target in panel.get("targets", []):
                    self.assertEqual(target["datasource"]["uid"],
                                     "${datasource}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--bin", type=pathlib.Path,
                        default=deploy.find_programs())
    flags, rest = parser.parse_known_args()
    WatchedFleetTest.bin = flags.bin.resolve()
    deploy.use_pretended_cuda(WatchedFleetTest.bin)
    deploy.install(*PACKAGES, *deploy.LIBRARIES)
    unittest.main(argv=["prometheus_test.py", *rest])
