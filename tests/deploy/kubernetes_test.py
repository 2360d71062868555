#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Renders each overlay of deploy/kubernetes/ with kubectl, validates the
objects against the schemas of several versions of Kubernetes, and checks what
must hold between them (kubernetes_checks.py).

Runs on Debian 12. As root it installs the packages `kubernetes-client` and
`python3-yaml`, and kubernetes-validate into build/deps/kubernetes, if they are
missing; otherwise, or with --no-install, it ends with 77 without them. With the
folder of the programs it also checks that they know the options.

Usage: kubernetes_test.py [--bin DIR] [--no-install]
"""
import argparse
import copy
import importlib
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.append(str(ROOT / "tests/support"))
import deploy  # noqa: E402  (its folder comes first)

OVERLAYS = ROOT / "deploy/kubernetes/overlays"
VALIDATOR_DIR = ROOT / "build/deps/kubernetes"
# The oldest that knows all fields, one between, and the newest.
VERSIONS = ("1.29", "1.33", "1.37")

BIN = None  # the folder of the programs, if given


def is_complete():
    try:
        import kubernetes_validate  # noqa: F401
        import yaml  # noqa: F401
    except ImportError:
        return False
    return shutil.which("kubectl") is not None


def install():
    deploy.install("python3-yaml", "python3-pip", "ca-certificates",
                   *([] if shutil.which("kubectl") else ["kubernetes-client"]))
    deploy.run_quietly(ROOT / "deploy/setup.sh", "--no-packages", "--no-train",
                       "--checks")


def render(overlay):
    import yaml
    done = subprocess.run(["kubectl", "kustomize", str(overlay)], text=True,
                          capture_output=True)
    if done.returncode:
        raise AssertionError(f"{overlay.name}: {done.stderr}")
    return list(yaml.safe_load_all(done.stdout))


def block_of_page(pattern):
    """The one block of docs/kubernetes.md that the pattern finds."""
    page = (ROOT / "docs/kubernetes.md").read_text()
    (block,) = re.findall(pattern, page, re.DOTALL)
    return block


def overlays():
    return sorted(OVERLAYS.iterdir())


class Rendered(unittest.TestCase):
    """Each overlay as it is."""

    def validate(self, one, version):
        import kubernetes_validate
        try:
            kubernetes_validate.validate(one, version, strict=True)
        except kubernetes_validate.ValidationError as error:
            self.fail(f"{list(error.absolute_path)}: {error.message}")

    def test_objects_fit_the_schemas(self):
        from kubernetes_checks import CUSTOM
        for overlay in overlays():
            for one in render(overlay):
                if one["kind"] in CUSTOM:
                    continue
                for version in VERSIONS:
                    with self.subTest(overlay.name, kind=one["kind"],
                                      version=version):
                        self.validate(one, version)

    def test_objects_fit_each_other(self):
        from kubernetes_checks import problems
        for overlay in overlays():
            with self.subTest(overlay.name):
                self.assertEqual(list(problems(render(overlay))), [])

    def test_the_volume_of_the_page_fits_the_claim(self):
        import yaml
        from kubernetes_checks import Overlay
        page = (ROOT / "docs/kubernetes.md").read_text()
        volume = yaml.safe_load(re.search(r"```yaml\n(.*?)```", page,
                                          re.DOTALL)[1])
        claim = Overlay(render(OVERLAYS / "two-by-two")).named[
            "PersistentVolumeClaim", volume["spec"]["claimRef"]["name"]]
        for version in VERSIONS:
            self.validate(volume, version)
        self.assertEqual(claim["spec"]["volumeName"],
                         volume["metadata"]["name"])
        for key in ("accessModes", "storageClassName"):
            self.assertEqual(claim["spec"][key], volume["spec"][key])

    def test_the_page_says_how_to_make_more_partitions(self):
        from kubernetes_checks import Overlay, problems
        block = block_of_page(r"```bash\n([^`]*cp -r partition-1.*?)```")
        with tempfile.TemporaryDirectory() as folder:
            copied = pathlib.Path(folder) / "deploy/kubernetes"
            shutil.copytree(ROOT / "deploy/kubernetes", copied)
            subprocess.run(["bash", "-euc", block], cwd=folder, check=True)
            documents = render(copied / "overlays/two-by-two")
        self.assertEqual(len(Overlay(documents).of("StatefulSet")), 4)
        self.assertEqual(list(problems(documents)), [])

    def test_the_page_says_how_to_replace_the_options(self):
        from kubernetes_checks import Overlay, problems
        block = block_of_page(r"```yaml\n(configMapGenerator.*?)```")
        with tempfile.TemporaryDirectory() as folder:
            copied = pathlib.Path(folder) / "kubernetes"
            shutil.copytree(ROOT / "deploy/kubernetes", copied)
            options = (copied / "base/server/server.conf").read_text()
            server = copied / "overlays/complete/server"
            (server / "server.conf").write_text(options + "cache-ratio=0.1\n")
            with open(server / "kustomization.yaml", "a") as file:
                file.write(block)
            overlay = Overlay(render(copied / "overlays/complete"))
        for one in overlay.of("StatefulSet"):
            self.assertEqual(overlay.config(one)["cache-ratio"], "0.1")
        self.assertEqual(list(problems(overlay.all)), [])

    def test_another_namespace_is_let_in_as_the_policy_says(self):
        from kubernetes_checks import Overlay, admits
        ours = {"app.kubernetes.io/part-of": "millrace"}
        with tempfile.TemporaryDirectory() as folder:
            copied = pathlib.Path(folder) / "kubernetes"
            shutil.copytree(ROOT / "deploy/kubernetes", copied)
            file = copied / "base/fleet/networkpolicy.yaml"
            comment = r"(?m)^    # (- namespaceSelector|  \S| {4,}\S)"
            text, signs = re.subn(comment, r"    \1", file.read_text())
            self.assertEqual(signs, 6)
            file.write_text(text)
            policy = Overlay(render(copied / "overlays/two-by-two")).named[
                "NetworkPolicy", "millrace-servers"]
        for version in VERSIONS:
            self.validate(policy, version)
        self.assertTrue(admits(policy, "grpc", ours, "analytics"))
        self.assertTrue(admits(policy, "grpc", ours))
        self.assertFalse(admits(policy, "grpc", {}, "analytics"))
        self.assertFalse(admits(policy, "grpc", ours, "elsewhere"))
        self.assertFalse(admits(policy, "metrics", ours, "analytics"))

    def test_the_rules_are_those_of_the_alerts_file(self):
        subprocess.run([ROOT / "deploy/kubernetes/make_prometheusrule.py",
                        "--check"], check=True)

    def test_programs_accept_the_options(self):
        from kubernetes_checks import Overlay
        if BIN is None:
            self.skipTest("no --bin")
        for path in overlays():
            overlay = Overlay(render(path))
            for workload in overlay.workloads():
                with self.subTest(path.name, name=workload["metadata"]["name"]):
                    self.check_options(overlay, workload)

    def check_options(self, overlay, workload):
        """The program must say where each option comes from."""
        from kubernetes_checks import main_container, variables
        given = {one["name"]: one.get("value", "0" if "fieldRef" in
                                      one.get("valueFrom", {}) else "4")
                 for one in variables(workload).values()}
        with tempfile.NamedTemporaryFile("w") as file:
            file.write(overlay.config_text(workload))
            file.flush()
            done = subprocess.run(
                [BIN / main_container(workload)["command"][0], "--config",
                 file.name, "--print-config"], text=True, capture_output=True,
                env={**os.environ, **given})
        self.assertEqual(done.returncode, 0, done.stderr)
        places = {**dict.fromkeys(overlay.config(workload), file.name),
                  **{option: one["name"]
                     for option, one in variables(workload).items()}}
        for option, place in places.items():
            self.assertRegex(done.stdout, rf"(?m)^{option} = .*  # {place}$")


def set_in(document, path, value):
    *parents, last = path
    for key in parents:
        document = document[key]
    document[last] = value


# Kind, path of a value, a wrong value, and what must be said about it.
POD = ("spec", "template", "spec")
SERVER = (*POD, "containers", 0)
PLANTED = [
    ("PodDisruptionBudget",
     ("spec", "selector", "matchLabels", "millrace-partition"), "1",
     "disruption budget"),
    ("StatefulSet", (*POD, "terminationGracePeriodSeconds"), 60, "too short"),
    ("StatefulSet", (*SERVER, "ports", 1, "containerPort"), 7090,
     "metrics is 7090"),
    ("StatefulSet", (*SERVER, "readinessProbe", "httpGet", "port"), "grpc",
     "readinessProbe"),
    ("StatefulSet", (*SERVER, "securityContext", "readOnlyRootFilesystem"),
     False, "not restricted"),
    ("StatefulSet", (*SERVER, "image"), "millrace-server", "no version"),
    ("StatefulSet", ("spec", "serviceName"), "servers", "no service"),
    ("StatefulSet", (*POD, "volumes", 1, "secret", "secretName"), "tls",
     "secret of tls"),
    ("StatefulSet", (*POD, "topologySpreadConstraints", 0, "labelSelector",
                     "matchLabels"),
     {"app.kubernetes.io/name": "millrace-server"}, "its own pods only"),
    ("StatefulSet", ("spec", "template", "metadata", "labels",
                     "millrace-partition"), "7", "the partitions are"),
    ("StatefulSet", ("spec", "replicas"), 2, "either an autoscaler"),
    ("HorizontalPodAutoscaler", ("spec", "scaleTargetRef", "name"),
     "millrace-server", "autoscalers have targets"),
    ("Service", ("spec", "ports", 0, "port"), 7001, "no port 7000"),
    ("ServiceMonitor", ("spec", "endpoints", 0, "port"), "http",
     "no such port"),
    ("Certificate", ("spec", "dnsNames"), ["elsewhere"], "not in tls-allow"),
    ("NetworkPolicy", ("spec", "ingress", 0, "from", 0),
     {"namespaceSelector": {}}, "strangers are let in at grpc"),
    ("NetworkPolicy", ("spec", "ingress", 0, "from", 0, "podSelector",
                       "matchLabels"),
     {"app.kubernetes.io/name": "millrace-server"}, "clients are refused"),
    ("NetworkPolicy", ("spec", "ingress", 1, "from", 0, "namespaceSelector",
                       "matchLabels"),
     {"kubernetes.io/metadata.name": "default"}, "Prometheus is refused"),
    ("StatefulSet", (*SERVER, "env", 1, "name"), "MILLRACE_STORE",
     "in its file and a variable"),
    ("Job", (*SERVER, "env", 1, "value"), "3", "WORLD_SIZE differ"),
    ("Job", ("metadata", "name"), "other", "rank 0 is not at"),
]


class Planted(unittest.TestCase):
    """The checks find mistakes that are put into a copy."""

    def test_mistakes_are_found(self):
        from kubernetes_checks import problems
        good = {"Job": render(OVERLAYS / "trainers")}
        rest = render(OVERLAYS / "complete")
        for kind, path, value, told in PLANTED:
            with self.subTest(kind, path=path):
                documents = copy.deepcopy(good.get(kind, rest))
                chosen = next(one for one in documents if one["kind"] == kind
                              and (path[1] != "dnsNames"
                                   or "dnsNames" in one["spec"]))
                set_in(chosen, path, value)
                self.assertRegex("\n".join(problems(documents)), told)


def main():
    global BIN
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--bin", type=pathlib.Path)
    parser.add_argument("--no-install", action="store_true")
    flags, rest = parser.parse_known_args()
    BIN = flags.bin and flags.bin.resolve()
    sys.path.append(str(VALIDATOR_DIR))
    if not is_complete():
        if flags.no_install or os.geteuid() != 0:
            print("skipped: kubectl, yaml or kubernetes_validate is missing")
            sys.exit(77)
        install()
        importlib.invalidate_caches()
    unittest.main(argv=[sys.argv[0], *rest])


if __name__ == "__main__":
    main()
