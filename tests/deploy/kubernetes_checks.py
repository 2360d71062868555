# SPDX-License-Identifier: Apache-2.0
"""What must hold between the objects of a rendered overlay, beyond each
object's own schema."""
import re

SECRETS = {"millrace-server-tls", "millrace-trainer-tls", "millrace-rendezvous"}
# Objects of operators, which the schemas of Kubernetes do not know, and the
# fields that their specs may have.
CUSTOM = {
    "Certificate": {"secretName", "dnsNames", "usages", "duration",
                    "renewBefore", "privateKey", "issuerRef", "isCA",
                    "commonName"},
    "Issuer": {"selfSigned", "ca"},
    "PrometheusRule": {"groups"},
    "ServiceMonitor": {"selector", "endpoints", "podTargetLabels"}}


class Overlay:
    """The objects of an overlay, by kind and name."""

    def __init__(self, documents):
        self.all = documents
        self.named = {(one["kind"], one["metadata"]["name"]): one
                      for one in documents}

    def of(self, *kinds):
        return [one for one in self.all if one["kind"] in kinds]

    def has(self, kind, name):
        return (kind, name) in self.named

    def workloads(self):
        return self.of("StatefulSet", "Job")

    def config(self, workload):
        """The options of the configuration file that a workload's pods read."""
        return read_config(self.config_text(workload))

    def config_text(self, workload):
        volume = next(one for one in pod(workload)["volumes"]
                      if one["name"] == "config")
        data = self.named["ConfigMap", volume["configMap"]["name"]]["data"]
        (text,) = data.values()
        return text

    def pods_matching(self, selector):
        """Names of the workloads whose pods a selector of labels matches."""
        return {name(one) for one in self.workloads()
                if matches(selector, labels(one))}


def read_config(text):
    lines = (line.split("#")[0].strip() for line in text.splitlines())
    return dict(line.split("=", 1) for line in lines if line)


def name(one):
    return one["metadata"]["name"]


def pod(workload):
    return workload["spec"]["template"]["spec"]


def main_container(workload):
    return pod(workload)["containers"][0]


def labels(workload):
    return workload["spec"]["template"]["metadata"]["labels"]


def matches(selector, labels_):
    return selector.items() <= labels_.items()


def ports(workload):
    return {port["name"]: port["containerPort"]
            for port in main_container(workload)["ports"]}


def variables(workload):
    """Options that a workload's pods take from variables, by name."""
    return {one["name"].removeprefix("MILLRACE_").lower().replace("_", "-"):
            one for one in main_container(workload)["env"]
            if one["name"].startswith("MILLRACE_")}


def admits(policy, port, pod_labels, namespace=None):
    """Whether a network policy lets pods with these labels reach a port: pods of
    its own namespace, or of the one of this name."""
    for rule in policy["spec"]["ingress"]:
        if "ports" in rule and port not in [one["port"]
                                            for one in rule["ports"]]:
            continue
        for peer in rule["from"]:
            space = peer.get("namespaceSelector")
            from_there = namespace is None if space is None else matches(
                space.get("matchLabels", {}),
                {"kubernetes.io/metadata.name": namespace})
            if from_there and matches(peer.get("podSelector", {}).get(
                    "matchLabels", {}), pod_labels):
                return True
    return False


def seconds(text):
    number, unit = re.fullmatch(r"(\d+)(s|m)", text).groups()
    return int(number) * {"s": 1, "m": 60}[unit]


def check_references(overlay):
    """Volumes, configuration, claims and services that pods name."""
    for workload in overlay.workloads():
        spec = pod(workload)
        volumes = {one["name"] for one in spec["volumes"]}
        for container in spec["containers"] + spec.get("initContainers", []):
            mounts = [one["name"] for one in container["volumeMounts"]]
            if not set(mounts) <= volumes:
                yield f"{name(workload)}: no volume for all of {mounts}"
            if ":" not in container["image"]:
                yield f"{name(workload)}: the image has no version"
        for one in spec["volumes"]:
            known = {"configMap": lambda v: overlay.has("ConfigMap", v["name"]),
                     "secret": lambda v: v["secretName"] in SECRETS,
                     "persistentVolumeClaim": lambda v: overlay.has(
                         "PersistentVolumeClaim", v["claimName"]),
                     "emptyDir": lambda v: True, "ephemeral": lambda v: True}
            kind = next(key for key in one if key != "name")
            if not known[kind](one[kind]):
                yield f"{name(workload)}: {kind} of {one['name']} is not there"
        service = workload["spec"].get("serviceName") or spec["subdomain"]
        if not overlay.has("Service", service):
            yield f"{name(workload)}: there is no service {service}"


def check_selectors(overlay):
    for one in overlay.of("StatefulSet"):
        own = {name(one)}
        spread = [rule["labelSelector"]["matchLabels"]
                  for rule in pod(one)["topologySpreadConstraints"]]
        apart = [term["labelSelector"]["matchLabels"] for term in
                 pod(one)["affinity"]["podAntiAffinity"]
                 ["requiredDuringSchedulingIgnoredDuringExecution"]]
        for selector in [one["spec"]["selector"]["matchLabels"], *spread,
                         *apart]:
            if overlay.pods_matching(selector) != own:
                yield f"{name(one)}: {selector} is not of its own pods only"
        budgets = [budget for budget in overlay.of("PodDisruptionBudget")
                   if overlay.pods_matching(
                       budget["spec"]["selector"]["matchLabels"]) == own]
        if len(budgets) != 1 or budgets[0]["spec"]["maxUnavailable"] != 1:
            yield f"{name(one)}: needs one disruption budget of its own"
    for one in overlay.of("Service"):
        found = overlay.pods_matching(one["spec"]["selector"])
        same = {name(other) for other in overlay.workloads()
                if labels(other)["app.kubernetes.io/name"]
                == one["metadata"]["labels"]["app.kubernetes.io/name"]}
        if found != same:
            yield f"service {name(one)} has the pods of {found}, not {same}"
    for one in overlay.of("NetworkPolicy"):
        if not overlay.pods_matching(one["spec"]["podSelector"]["matchLabels"]):
            yield f"network policy {name(one)} is of no pods"


def check_partitions(overlay):
    sets = overlay.of("StatefulSet")
    numbers = sorted(int(labels(one)["millrace-partition"]) for one in sets)
    if numbers != list(range(len(sets))):
        yield f"the partitions are {numbers}"
    scaled = {one["spec"]["scaleTargetRef"]["name"]
              for one in overlay.of("HorizontalPodAutoscaler")}
    if scaled - {name(one) for one in sets}:
        yield f"autoscalers have targets {scaled}"
    for one in sets:
        if (name(one) in scaled) == ("replicas" in one["spec"]):
            yield f"{name(one)}: either an autoscaler or a number of replicas"


def check_ports(overlay):
    for workload in overlay.workloads():
        config, have = overlay.config(workload), ports(workload)
        wanted = {"metrics": config["metrics"]}
        if "listen" in config:
            wanted["grpc"] = config["listen"]
        for port, address in wanted.items():
            if address != f"0.0.0.0:{have[port]}":
                yield f"{name(workload)}: {port} is {have[port]}, not {address}"
        for probe in ("startupProbe", "livenessProbe", "readinessProbe"):
            http = main_container(workload).get(probe, {}).get("httpGet")
            if http and have.get(http["port"]) != have["metrics"]:
                yield f"{name(workload)}: {probe} is at {http['port']}"
    for policy in overlay.of("NetworkPolicy"):
        chosen = policy["spec"]["podSelector"]["matchLabels"]
        named = {port["port"] for rule in policy["spec"]["ingress"]
                 for port in rule.get("ports", [])}
        for workload in overlay.workloads():
            if matches(chosen, labels(workload)) and named - set(
                    ports(workload)):
                yield f"{name(policy)}: no port for all of {named}"
    for monitor in overlay.of("ServiceMonitor"):
        for service in overlay.of("Service"):
            offered = {port["name"] for port in service["spec"]["ports"]}
            if (matches(monitor["spec"]["selector"]["matchLabels"],
                        service["metadata"]["labels"])
                    and monitor["spec"]["endpoints"][0]["port"] not in offered):
                yield f"{name(monitor)}: no such port of {name(service)}"


def check_network(overlay):
    ours = {"app.kubernetes.io/part-of": "millrace"}
    for policy in overlay.of("NetworkPolicy"):
        if not admits(policy, "metrics", {}, "monitoring"):
            yield f"{name(policy)}: Prometheus is refused"
        for labels_, namespace in (({}, None), (ours, "elsewhere"),
                                   ({}, "elsewhere")):
            for port in ("grpc", "metrics"):
                if admits(policy, port, labels_, namespace):
                    yield (f"{name(policy)}: strangers are let in at {port}: "
                           f"{labels_} of {namespace or 'the namespace'}")
    if overlay.has("NetworkPolicy", "millrace-servers") and not admits(
            overlay.named["NetworkPolicy", "millrace-servers"], "grpc", ours):
        yield "millrace-servers: clients are refused"


def check_options(overlay):
    """A configuration file counts more than a variable."""
    for workload in overlay.workloads():
        both = overlay.config(workload).keys() & variables(workload).keys()
        if both:
            yield f"{name(workload)}: {both} are in its file and a variable"


def check_servers(overlay):
    for one in overlay.of("StatefulSet"):
        config = overlay.config(one)
        peers = config["peers"].removeprefix("dns:///")
        service, _, port = peers.partition(":")
        service = overlay.named["Service", service]
        if int(port) not in [p["port"] for p in service["spec"]["ports"]]:
            yield f"{name(one)}: the service has no port {port}"
        grace = pod(one)["terminationGracePeriodSeconds"]
        if grace < seconds(config["drain-timeout"]) + 10:
            yield f"{name(one)}: {grace} s are too short to drain"
        names = set(config["tls-allow"].split(","))
        for certificate in overlay.of("Certificate"):
            dns = certificate["spec"].get("dnsNames")
            if dns and not names & set(dns):
                yield f"certificate {name(certificate)}: not in tls-allow"


def check_jobs(overlay):
    for job in overlay.of("Job"):
        spec, container = job["spec"], main_container(job)
        env = {one["name"]: one.get("value") for one in container["env"]}
        if not spec["completions"] == spec["parallelism"] == int(
                env["WORLD_SIZE"]):
            yield f"{name(job)}: completions, parallelism and WORLD_SIZE differ"
        if env["MASTER_ADDR"] != (f"{name(job)}-0.{pod(job)['subdomain']}."
                                  "$(NAMESPACE).svc.cluster.local"):
            yield f"{name(job)}: rank 0 is not at {env['MASTER_ADDR']}"
        config = overlay.config(job)
        if config["resume"] != "true" or "checkpoint" not in config:
            yield f"{name(job)}: would not continue after a lost rank"


def check_security(overlay):
    """The profile `restricted` of Kubernetes' pod security standards, and a
    root file system that nobody can write."""
    for workload in overlay.workloads():
        spec = pod(workload)
        outer = spec["securityContext"]
        if not (outer["runAsNonRoot"] and outer["runAsUser"] > 0
                and outer["seccompProfile"]["type"] == "RuntimeDefault"
                and not spec["automountServiceAccountToken"]
                and not spec["enableServiceLinks"]):
            yield f"{name(workload)}: the pod is not restricted"
        for container in spec["containers"] + spec.get("initContainers", []):
            inner = container["securityContext"]
            if not (inner["readOnlyRootFilesystem"]
                    and not inner["allowPrivilegeEscalation"]
                    and inner["capabilities"]["drop"] == ["ALL"]):
                yield f"{name(workload)}: {container['name']} is not restricted"
            if "memory" not in container["resources"]["limits"]:
                yield f"{name(workload)}: no memory limit"


def check_custom(overlay):
    for one in overlay.of(*CUSTOM):
        unknown = set(one["spec"]) - CUSTOM[one["kind"]]
        if unknown:
            yield f"{one['kind']} {name(one)} has {unknown}"
        issuer = one["spec"].get("issuerRef")
        if issuer and not overlay.has("Issuer", issuer["name"]):
            yield f"certificate {name(one)}: no issuer {issuer['name']}"


def problems(documents):
    """Yields what is wrong with an overlay, as texts."""
    overlay = Overlay(documents)
    if len(overlay.named) != len(documents):
        yield "two objects have the same name"
    for check in (check_references, check_selectors, check_partitions,
                  check_ports, check_network, check_options, check_servers,
                  check_jobs, check_security, check_custom):
        yield from check(overlay)
