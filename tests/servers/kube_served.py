"""What an API server of Kubernetes tells of itself: its version, and which kinds it serves."""

from __future__ import annotations

from tests.servers.kube_store import KINDS
from tests.servers.loopback import Answer, Got

VERSION = "v1.36.2"
ALL = ("create", "delete", "deletecollection", "get", "list", "patch", "update", "watch")
ALL_CUSTOM = ("delete", "deletecollection", "get", "list", "patch", "create", "update", "watch")
SHORT = {"jobs": ["vcjob", "vj"], "queues": ["q", "queue-v1beta1"], "podgroups": ["pg", "podgroup-v1beta1"]}


def discovery(got: Got) -> Answer | None:
    """Answer what is asked about the server itself; None when something else is asked."""
    if got.method != "GET":
        return None
    if got.path.rstrip("/") == "/version":
        major, minor, _ = VERSION.removeprefix("v").split(".")
        served = {"emulationMajor": major, "emulationMinor": minor}
        least = {"minCompatibilityMajor": major, "minCompatibilityMinor": str(int(minor) - 1)}
        found = {
            **served,
            **least,
            "major": major,
            "minor": minor,
            "gitVersion": VERSION,
            "platform": "linux/amd64",
        }
        made = {"buildDate": "2026-06-10T00:00:00Z", "compiler": "gc", "goVersion": "go1.26.3"}
        return Answer(200, {**found, **made, "gitCommit": "0" * 40, "gitTreeState": "", "platform": "linux/amd64"})
    if got.path in ("/livez", "/readyz", "/healthz"):
        return Answer(200, raw=b"ok", headers={"Content-Type": "text/plain"})
    if got.path.rstrip("/") == "/api":
        return Answer(200, {"kind": "APIVersions", "versions": ["v1"]})
    versions = {(kind.group, kind.version) for kind in KINDS} | {("authorization.k8s.io", "v1")}
    if got.path.rstrip("/") == "/apis":
        listed = [_group(group, version) for group, version in sorted(versions) if group]
        return Answer(200, {"kind": "APIGroupList", "apiVersion": "v1", "groups": listed})
    for group, version in versions:
        if group and got.path == f"/apis/{group}":
            return Answer(200, {"kind": "APIGroup", "apiVersion": "v1", **_group(group, version)})
        if got.path.rstrip("/") == (f"/apis/{group}/{version}" if group else f"/api/{version}"):
            return Answer(200, _resources(group, version))
    return None


def _group(group: str, version: str) -> dict[str, object]:
    served = {"groupVersion": f"{group}/{version}", "version": version}
    return {"name": group, "versions": [served], "preferredVersion": served}


def _resources(group: str, version: str) -> dict[str, object]:
    listed = []
    for kind in KINDS:
        if (kind.group, kind.version) == (group, version):
            one = {
                "name": kind.plural,
                "singularName": kind.kind.lower(),
                "namespaced": kind.namespaced,
                "kind": kind.kind,
            }
            more = {"shortNames": SHORT[kind.plural]} if kind.crd else {}
            listed.append({**one, "verbs": list(ALL_CUSTOM if kind.crd else ALL), **more})
            if kind.has_status:
                listed.append(
                    {**one, "name": f"{kind.plural}/status", "singularName": "", "verbs": ["get", "patch", "update"]}
                )
    if not group:
        for name, verbs in (("pods/log", ["get"]), ("pods/exec", ["create", "get"])):
            listed.append({"name": name, "singularName": "", "namespaced": True, "kind": "Pod", "verbs": verbs})
    api = f"{group}/{version}" if group else version
    return {"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": api, "resources": listed}
