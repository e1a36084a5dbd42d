"""The kinds of objects that `aj` asks a cluster about, and where each is found."""

from __future__ import annotations

from urllib.parse import quote

from aj.base.errors import UserError
from aj.base.noun import dataclass


@dataclass(frozen=True)
class Kind:
    """A kind of object: its group (empty for the oldest ones), version, and names."""

    group: str
    version: str
    plural: str
    name: str
    is_namespaced: bool = True

    @property
    def resource(self) -> str:
        """What rules of access call it, such as `jobs.batch.volcano.sh`."""
        return f"{self.plural}.{self.group}" if self.group else self.plural

    @property
    def api_version(self) -> str:
        return f"{self.group}/{self.version}" if self.group else self.version

    def path(self, namespace: str | None = None, name: str | None = None, part: str | None = None) -> str:
        """Return the path of the kind, of one object, or of a part of it such as its log. Raises UserError."""
        for word in (namespace, name):
            if word is not None and (word in ("", ".", "..") or "/" in word):
                raise UserError(f"`{word}` cannot name an object of a cluster", code="empty-name")
        parts = ["/apis" if self.group else "/api", *([self.group] if self.group else []), self.version]
        if self.is_namespaced and namespace is not None:
            parts += ["namespaces", quote(namespace, safe="")]
        parts += [self.plural, *(quote(word, safe="") for word in (name, part) if word is not None)]
        return "/".join(parts)


JOBS = Kind("batch.volcano.sh", "v1alpha1", "jobs", "Job")
QUEUES = Kind("scheduling.volcano.sh", "v1beta1", "queues", "Queue", is_namespaced=False)
POD_GROUPS = Kind("scheduling.volcano.sh", "v1beta1", "podgroups", "PodGroup")
PODS = Kind("", "v1", "pods", "Pod")
EVENTS = Kind("", "v1", "events", "Event")
SECRETS = Kind("", "v1", "secrets", "Secret")
CLAIMS = Kind("", "v1", "persistentvolumeclaims", "PersistentVolumeClaim")
NODES = Kind("", "v1", "nodes", "Node", is_namespaced=False)
QUOTAS = Kind("", "v1", "resourcequotas", "ResourceQuota")
DEFINITIONS = Kind("apiextensions.k8s.io", "v1", "customresourcedefinitions", "CustomResourceDefinition", False)
REVIEWS = Kind("authorization.k8s.io", "v1", "selfsubjectaccessreviews", "SelfSubjectAccessReview", False)

EXEC = "pods/exec"

# What a job with everything needs: kind (with a part of it), verbs.
RIGHTS: tuple[tuple[str, tuple[str, ...]], ...] = (
    (JOBS.resource, ("create", "get", "list", "delete", "patch")),
    (QUEUES.resource, ("get", "list")),
    ("pods", ("create", "get", "list", "delete")),
    (EXEC, ("create", "get")),  # a WebSocket begins with a GET, and newer servers ask for both
    ("pods/log", ("get",)),
    ("events", ("list",)),
    ("secrets", ("create", "get", "update", "delete")),
    ("persistentvolumeclaims", ("get",)),
)
