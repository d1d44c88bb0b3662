"""Whether the parts of a rendered chart fit together: what schemas cannot see.

In: the YAML on standard input; as arguments the folder of the repository, the file of the chart's notes, and optionally the folder of the program.
Out: a line for each thing that does not fit, and exit code 1 if there is one. To show that each rule bites, every line
of SPOILED is tried as well: with it the same YAML must be refused.
"""

import re
import subprocess
import sys
from pathlib import Path

import yaml

# Patterns and replacements, each of which violates one rule.
SPOILED = [
    ("selector:\n    app.kubernetes.io/component: coordinator", "selector:\n    app.kubernetes.io/component: worker"),
    ("podSelector:\n    matchLabels:\n      app.kubernetes.io/component: worker", "podSelector:\n    matchLabels:\n      app: w"),
    ("- port: metrics", "- port: metric"),
    ("- port: grpc", "- port: metrics"),
    ("targetPort: grpc", "targetPort: rpc"),
    (r"(livenessProbe:\n(?:.*\n)*?.* port: )\S+", r"\g<1>1"),
    ("://grammaton-coordinator:7600", "://coordinator:7600"),
    ("://grammaton-coordinator:7600", "://grammaton-coordinator:9600"),
    ("--listen=0.0.0.0:7600", "--listen=0.0.0.0:7601"),
    ("--http=0.0.0.0:9600", "--http=0.0.0.0:9601"),
    ("--(out|store)=/results", r"--\1=/out"),
    (r"- (--resume|serve)\n", "- --quiet\n"),
    ("--token-file=/secrets/token/token", "--token-file=/secrets/token"),
    ("secretName: grammaton-token", "secretName: grammaton-tokens"),
    ("claimName: grammaton-results", "claimName: results"),
    ("image: grammaton:", "image: worker:"),
    ("runAsUser: 10001", "runAsUser: 10002"),
    ("readOnlyRootFilesystem: true", "readOnlyRootFilesystem: false"),
]


def problems(documents, root, notes, programs):
    """Everything that does not fit, as sentences."""
    found = []

    def check(fits, sentence):
        if not fits:
            found.append(sentence)

    def of_kind(*kinds):
        return [document for document in documents if document["kind"] in kinds]

    def name(document):
        return f"{document['kind']} {document['metadata']['name']}"

    def selected(labels):
        return [w for w in workloads if labels.items() <= w["spec"]["template"]["metadata"]["labels"].items()]

    def port_names(workload):
        ports = container(workload).get("ports", [])
        return {key: port["containerPort"] for port in ports for key in (port["name"], port["containerPort"])}

    def container(workload):
        containers = workload["spec"]["template"]["spec"]["containers"]
        assert len(containers) == 1, f"{name(workload)}: expected one container"
        return containers[0]

    def option(workload, flag):
        values = [arg.partition("=")[2] for arg in container(workload)["args"] if arg.partition("=")[0] == flag]
        return values[0] if values else ""

    workloads = of_kind("Job", "Deployment")
    by_role = {w["metadata"]["labels"]["app.kubernetes.io/component"]: w for w in workloads}
    check(by_role.keys() == {"coordinator", "worker"}, f"expected a coordinator and workers, found {[*by_role]}")
    coordinator, worker = by_role["coordinator"], by_role["worker"]
    configs = re.findall(r"kubectl create configmap (\S+)", notes)
    secrets = {
        secret: re.findall(r"--from-(?:literal=|file=\S*/)([\w.]+)", keys)
        for secret, keys in re.findall(r"kubectl create secret generic (\S+)(.*)", notes)
    }
    user = int(re.search(r"^USER (\d+)", (root / "deploy/docker/Dockerfile").read_text(), re.M)[1])

    for workload in workloads:
        here = name(workload)
        pod, labels = workload["spec"]["template"]["spec"], workload["spec"]["template"]["metadata"]["labels"]
        role = workload["metadata"]["labels"]["app.kubernetes.io/component"]
        check(labels["app.kubernetes.io/component"] == role, f"{here}: its pods are labelled as another part")
        wanted = workload["spec"].get("selector", {}).get("matchLabels", {})
        check(wanted.items() <= labels.items(), f"{here}: its selector does not match its own pods")
        for constraint in pod.get("topologySpreadConstraints", []):
            check(selected(constraint["labelSelector"]["matchLabels"]) == [workload], f"{here}: spreads other pods")
        main = container(workload)
        check(re.fullmatch(r"(.+/)?grammaton:\S+", main["image"]), f"{here}: the image is {main['image']}")
        check(pod["securityContext"]["runAsUser"] == user, f"{here}: runs as another user than the image's, {user}")
        check(pod["securityContext"]["runAsNonRoot"], f"{here}: may run as root")
        check(pod["securityContext"]["seccompProfile"]["type"] == "RuntimeDefault", f"{here}: no seccomp profile")
        rights = main["securityContext"]
        check(
            rights["readOnlyRootFilesystem"]
            and not rights["allowPrivilegeEscalation"]
            and rights["capabilities"] == {"drop": ["ALL"]},
            f"{here}: more rights than it needs",
        )
        check({"cpu", "memory"} <= main["resources"]["requests"].keys(), f"{here}: requests are missing")
        check("memory" in main["resources"]["limits"], f"{here}: no limit of memory")
        volumes = {volume["name"]: volume for volume in pod["volumes"]}
        mounts = {mount["name"]: mount["mountPath"] for mount in main["volumeMounts"]}
        check(volumes.keys() == mounts.keys(), f"{here}: volumes {[*volumes]}, but mounts {[*mounts]}")
        secret_files = set()
        for volume in volumes.values():
            if "secret" in volume:
                secret = volume["secret"]["secretName"]
                check(secret in secrets, f"{here}: nothing says how to make the Secret {secret}")
                secret_files |= {f"{mounts.get(volume['name'])}/{key}" for key in secrets.get(secret, [])}
            elif "configMap" in volume:
                config = volume["configMap"]["name"]
                check(config in configs, f"{here}: nothing says how to make the ConfigMap {config}")
            elif "emptyDir" in volume:
                check(any(arg.startswith("--cache=") for arg in main["args"]), f"{here}: only a cache may be lost")
            else:
                claim = volume["persistentVolumeClaim"]["claimName"]
                claims = [c["metadata"]["name"] for c in of_kind("PersistentVolumeClaim")]
                check(claim in claims, f"{here}: no PersistentVolumeClaim {claim}")
        named = {option(workload, flag) for flag in ("--token-file", "--tokens", "--ca", "--cert", "--key")} - {""}
        check(named == secret_files, f"{here}: options name {sorted(named)}, but secrets are {sorted(secret_files)}")
        for probe in (main[key] for key in main if key.endswith("Probe")):
            asked = probe["httpGet"]["port"] if "httpGet" in probe else probe["grpc"]["port"]
            wanted = "metrics" if option(workload, "--cert") else port_names(workload)["grpc"]
            check(asked == wanted, f"{here}: a probe asks port {asked}, expected {wanted}")
        if programs:
            command = [arg for arg in main["args"] if not re.match("[-/]", arg)]
            known = subprocess.run([programs / "grammaton", *command, "--help"], check=True, capture_output=True, text=True)
            for flag in (arg.partition("=")[0] for arg in main["args"] if arg.startswith("--")):
                check(re.search(rf"{flag}\b", known.stdout), f"{here}: {' '.join(command)} has no {flag}")

    ports = port_names(coordinator)
    check(option(coordinator, "--listen") == f"0.0.0.0:{ports['grpc']}", "the coordinator listens on another port")
    check(option(coordinator, "--http") == f"0.0.0.0:{ports['metrics']}", "metrics are on another port")
    goes_on = {"--resume", "serve"} & {*container(coordinator)["args"]}
    check(goes_on, "a new coordinator would refuse the old one's folder")
    results = option(coordinator, "--store") or option(coordinator, "--out")
    check({"name": "results", "mountPath": results} in container(coordinator)["volumeMounts"], f"no volume at {results}")
    annotations = coordinator["spec"]["template"]["metadata"]["annotations"]
    check(annotations["prometheus.io/port"] == str(ports["metrics"]), "Prometheus is sent to another port")

    scheme = "https" if option(coordinator, "--cert") else "http"
    services = {}
    for service in of_kind("Service"):
        check(selected(service["spec"]["selector"]) == [coordinator], f"{name(service)}: does not select the coordinator")
        for port in service["spec"]["ports"]:
            check(port["targetPort"] in ports, f"{name(service)}: no port {port['targetPort']} in its pods")
            if port["name"] == "grpc":
                services[f"{scheme}://{service['metadata']['name']}:{port['port']}"] = service
    check(option(worker, "--coordinator") in services, f"workers dial {option(worker, '--coordinator')}, not {[*services]}")

    for budget in of_kind("PodDisruptionBudget"):
        check(selected(budget["spec"]["selector"]["matchLabels"]) == [worker], f"{name(budget)}: not of the workers")

    reach = set()
    for policy in of_kind("NetworkPolicy"):
        (subject,) = selected(policy["spec"]["podSelector"]["matchLabels"]) or [None]
        check(subject is not None, f"{name(policy)}: is about no pod")
        for way, end in (("ingress", "from"), ("egress", "to")):
            for rule in policy["spec"].get(way, []):
                for peer in rule.get(end, []):
                    others = selected(peer.get("podSelector", {}).get("matchLabels", {"": ""}))
                    check(others or "namespaceSelector" in peer, f"{name(policy)}: a rule about no pod")
                    target = subject if way == "ingress" else others[0] if others else None
                    for port in rule["ports"]:
                        check(target and port["port"] in port_names(target), f"{name(policy)}: no port {port['port']}")
                        if others and target is coordinator:
                            reach.add((way, port_names(target).get(port["port"])))
    grpc = ports["grpc"]
    check(reach == {("ingress", grpc), ("egress", grpc)}, f"workers reach {sorted(map(str, reach))}, expected port {grpc}")
    return found


def main():
    root = Path(sys.argv[1])
    notes = Path(sys.argv[2]).read_text()
    programs = Path(sys.argv[3]) if len(sys.argv) > 3 else None
    text = sys.stdin.read()
    found = problems(list(yaml.safe_load_all(text)), root, notes, programs)
    for old, new in SPOILED:
        spoiled = re.sub(old, new, text)
        if spoiled == text or not problems(list(yaml.safe_load_all(spoiled)), root, notes, None):
            found.append(f"nothing is found wrong after {old!r} became {new!r}")
    print("\n".join(found) or f"the parts fit together, and {len(SPOILED)} spoiled variants were refused")
    sys.exit(bool(found))


main()
