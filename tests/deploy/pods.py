# SPDX-License-Identifier: Apache-2.0
"""Runs pods of rendered manifests without a cluster: each in a network
namespace with an address of its own, with its volumes at their paths in a
read-only root file system, and as its user without capabilities. Names of
services are lines of /etc/hosts. Limits of resources are not enforced.

Everything is in namespaces of this process (call enter_namespaces() first), so
nothing is left when it ends.
"""
import http.client
import os
import pathlib
import re
import shlex
import signal
import subprocess
import sys
import time

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "support"))
import deploy  # noqa: E402  (its folder comes first)

NODE = "10.77.0.1"
# The folder where pods see the programs and their libraries. Those of this
# machine may be in one that is closed to the users of pods, such as a home.
PROGRAMS = "/run/millrace"
UNSHARE = ("unshare", "--mount", "--propagation", "unchanged")


def run(*words, **options):
    return subprocess.run([str(word) for word in words], check=True,
                          **options)


def enter_namespaces():
    """Moves this process into namespaces of its own: a node with a bridge."""
    deploy.enter_namespaces(deploy.CLONE_NEWNET)
    pathlib.Path("/run/netns").mkdir(parents=True, exist_ok=True)
    run("mount", "-t", "tmpfs", "tmpfs", "/run/netns")
    run("ip", "link", "set", "lo", "up")
    run("ip", "link", "add", "bridge", "type", "bridge")
    run("ip", "address", "add", f"{NODE}/24", "dev", "bridge")
    run("ip", "link", "set", "bridge", "up")


def library_folders(binary):
    """The folders outside of /usr from which programs load libraries."""
    found = {}
    for program in ("millrace-server", "millrace-train"):
        lines = subprocess.run(["ldd", binary / program], text=True, check=True,
                               stdout=subprocess.PIPE).stdout
        for path in re.findall(r"=> (/.*) \(0x", lines):
            folder = os.path.realpath(os.path.dirname(path))
            if not folder.startswith("/usr/"):
                found[folder] = None
    return list(found)


class Node:
    """Runs pods. `claims` and `secrets` are folders by name, `config_maps` the
    data by name. Programs are found in `binary` first."""

    def __init__(self, folder, binary, claims, secrets, config_maps):
        self.folder, self.binary = folder, binary
        self.claims, self.secrets = claims, secrets
        self.config_maps = config_maps
        self.libraries = library_folders(binary)
        self.pods, self.hosts = {}, folder / "hosts"
        self.next_address = 10
        self.hosts.write_text("")

    def start(self, pod):
        self.pods[pod.name] = pod
        self.publish()
        pod.start()
        return pod

    def remove(self, pod):
        del self.pods[pod.name]
        self.publish()

    def publish(self):
        """The addresses of all pods, under their own names and those of their
        services."""
        lines = ["127.0.0.1 localhost"]
        for pod in self.pods.values():
            short = f"{pod.name}.{pod.service}"
            space = f"{pod.namespace}.svc"
            lines += [f"{pod.address} {short}.{space}.cluster.local {short}",
                      f"{pod.address} {pod.service} {pod.service}.{space}"]
        self.hosts.write_text("\n".join(lines) + "\n")

    def new_address(self):
        self.next_address += 1
        return f"10.77.0.{self.next_address}"


class Pod:
    """A pod of a workload: its init containers, and the first of the others."""

    def __init__(self, node, workload, index, more_args=()):
        template = workload["spec"]["template"]
        self.node, self.spec = node, template["spec"]
        self.container = self.spec["containers"][0]
        self.name = f"{workload['metadata']['name']}-{index}"
        self.service = self.spec.get("subdomain",
                                     workload["spec"].get("serviceName"))
        self.namespace = workload["metadata"]["namespace"]
        self.fields = {
            f"metadata.labels['{key}']": value
            for key, value in template["metadata"]["labels"].items()}
        self.fields["metadata.namespace"] = self.namespace
        self.fields["metadata.annotations['batch.kubernetes.io/"
                    "job-completion-index']"] = str(index)
        self.args = [*self.container["args"], *more_args]
        self.address = node.new_address()
        self.folder = node.folder / f"{self.name}-{self.address}"
        self.log = self.folder / "log"
        self.process = None

    def start(self):
        """Runs the init containers to their end, and starts the container."""
        self.folder.mkdir()
        self.connect()
        for container in self.spec.get("initContainers", []):
            if self.start_container(container, []).wait(timeout=60) != 0:
                raise AssertionError(self.log.read_text())
        self.process = self.start_container(self.container, self.args)

    def start_container(self, container, args):
        folder = self.folder / container["name"]
        folder.mkdir()
        script = folder / "start"
        script.write_text(self.script(container, args))
        with open(self.log, "a") as log:
            return subprocess.Popen([*UNSHARE, "bash", "-eu", script],
                                    stdout=log, stderr=log,
                                    env=self.environment(container))

    def connect(self):
        space, end = self.address, f"v{self.address.rpartition('.')[2]}"
        run("ip", "netns", "add", space)
        run("ip", "link", "add", end, "type", "veth", "peer", "name", "eth0",
            "netns", space)
        run("ip", "link", "set", end, "master", "bridge", "up")
        inside = ("nsenter", f"--net=/run/netns/{space}", "ip")
        run(*inside, "address", "add", f"{space}/24", "dev", "eth0")
        run(*inside, "link", "set", "eth0", "up")
        run(*inside, "link", "set", "lo", "up")

    def environment(self, container):
        made = {"PATH": f"{PROGRAMS}/bin:/usr/bin:/bin", "HOME": "/"}
        if self.node.libraries:
            made["LD_LIBRARY_PATH"] = ":".join(
                f"{PROGRAMS}/{i}" for i in range(len(self.node.libraries)))
        for one in container["env"]:
            source = one.get("valueFrom", {})
            if "value" in one:
                made[one["name"]] = re.sub(
                    r"\$\((\w+)\)", lambda match: made[match[1]], one["value"])
            elif "fieldRef" in source:
                made[one["name"]] = self.fields[source["fieldRef"]["fieldPath"]]
            else:
                kind, key = source["resourceFieldRef"]["resource"].split(".")
                made[one["name"]] = container["resources"][kind][key]
        return made

    def source_of(self, volume):
        """The folder with the files of a volume."""
        if "persistentVolumeClaim" in volume:
            return self.node.claims[
                volume["persistentVolumeClaim"]["claimName"]]
        if "secret" in volume:
            return self.node.secrets[volume["secret"]["secretName"]]
        folder = self.folder / volume["name"]
        if folder.exists():
            return folder
        folder.mkdir(mode=0o755)
        if "configMap" in volume:
            data = self.node.config_maps[volume["configMap"]["name"]]
            for name, text in data.items():
                (folder / name).write_text(text)
        else:
            folder.chmod(0o1777)  # empty at first
        return folder

    def script(self, container, args):
        """Makes the root file system, and becomes the container's command."""
        volumes = {one["name"]: one for one in self.spec["volumes"]}
        user = self.spec["securityContext"]
        root, over = (self.folder / container["name"] / name
                      for name in ("root", "over"))
        lines = [
            f"mkdir {root} {over}",
            f"mount -t tmpfs tmpfs {over}; mkdir {over}/new {over}/work",
            f"mount -t overlay overlay -o lowerdir=/,upperdir={over}/new,"
            f"workdir={over}/work {root}",
            f"for d in proc dev sys; do mount --rbind /$d {root}/$d; done",
            f"touch {root}/etc/hosts; mount --bind {self.node.hosts} "
            f"{root}/etc/hosts",
            *(f"mkdir -p {root}{PROGRAMS}/{name}; "
              f"mount --bind {shlex.quote(str(path))} {root}{PROGRAMS}/{name}"
              for name, path in [("bin", self.node.binary),
                                 *enumerate(self.node.libraries)])]
        for mount in container["volumeMounts"]:
            path = f"{root}{mount['mountPath']}"
            lines.append(f"mkdir -p {path}; mount --bind "
                         f"{self.source_of(volumes[mount['name']])} {path}")
            if mount.get("readOnly"):
                lines.append(f"mount -o remount,bind,ro {path}")
        words = shlex.join([*container["command"], *args])
        if container["securityContext"]["readOnlyRootFilesystem"]:
            lines.append(f"mount -o remount,ro {root}")
        lines.append(
            f"exec nsenter --net=/run/netns/{self.address} /usr/sbin/chroot "
            f"{root} setpriv --reuid {user['runAsUser']} "
            f"--regid {user['runAsGroup']} --groups {user['fsGroup']} "
            f"--no-new-privs --inh-caps=-all --bounding-set=-all {words}")
        return "\n".join(lines) + "\n"

    def get(self, path, port_name, seconds=5):
        """Whether a page of the container is there, and its text or why not."""
        port = next(one["containerPort"] for one in self.container["ports"]
                    if one["name"] == port_name)
        connection = http.client.HTTPConnection(self.address, port,
                                                timeout=seconds)
        try:
            connection.request("GET", path)
            answer = connection.getresponse()
            return answer.status == 200, answer.read().decode().strip()
        except OSError as error:
            return False, str(error)

    def probe(self, name):
        """Whether a probe of the container passes, and the page's text."""
        wanted = self.container[name]["httpGet"]
        return self.get(wanted["path"], wanted["port"],
                        self.container[name]["timeoutSeconds"])

    def await_probe(self, name, seconds):
        deadline = time.monotonic() + seconds
        while True:
            passes, text = self.probe(name)
            if passes:
                return
            if time.monotonic() > deadline or self.process.poll() is not None:
                raise AssertionError(f"{self.name}: {name}: {text}\n"
                                     + self.log.read_text())
            time.sleep(0.2)

    def terminate(self):
        """Ends it as Kubernetes does; returns its exit status."""
        self.process.send_signal(signal.SIGTERM)
        return self.wait(self.spec["terminationGracePeriodSeconds"])

    def wait(self, seconds):
        status = self.process.wait(timeout=seconds)
        self.node.remove(self)
        return status

    def kill(self):
        self.process.kill()
        return self.wait(10)
