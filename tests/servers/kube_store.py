"""What an API server of Kubernetes keeps: objects with uid, version and owners, lists in pages, and their history."""

from __future__ import annotations

import base64
import copy
import json
import re
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime

from tests.servers import kube_rules as rules
from tests.servers.kube_schema import Cause, Schema, core, custom

VOLCANO, SCHEDULING = "batch.volcano.sh", "scheduling.volcano.sh"
SUFFIX = "bcdfghjklmnpqrstvwxz2456789"  # the letters of names that a server makes up


@dataclass(frozen=True)
class Kind:
    """One kind of object, where it is found, and what may be done to it."""

    group: str
    version: str
    plural: str
    kind: str
    namespaced: bool = True
    crd: str = ""  # the definition of a custom resource; empty for Kubernetes' own
    rule: Callable[[Mapping], Iterator[Cause]] | None = None
    has_status: bool = False
    names_labels: bool = False  # names are labels, not subdomains

    @property
    def api_version(self) -> str:
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def full(self) -> str:
        """`jobs.batch.volcano.sh`, and `pods` for Kubernetes' own."""
        return f"{self.plural}.{self.group}" if self.group else self.plural

    @property
    def qualified(self) -> str:
        """`Job.batch.volcano.sh`, as errors of validation name it."""
        return f"{self.kind}.{self.group}" if self.group else self.kind

    @property
    def schema(self) -> Schema:
        return custom(self.crd) if self.crd else core(self.kind)


KINDS = (
    Kind(VOLCANO, "v1alpha1", "jobs", "Job", crd="batch.volcano.sh_jobs", has_status=True),
    Kind(SCHEDULING, "v1beta1", "queues", "Queue", False, "scheduling.volcano.sh_queues", has_status=True),
    Kind(SCHEDULING, "v1beta1", "podgroups", "PodGroup", True, "scheduling.volcano.sh_podgroups", has_status=True),
    Kind("", "v1", "namespaces", "Namespace", False, has_status=True, names_labels=True),
    Kind("", "v1", "pods", "Pod", rule=rules.pod, has_status=True),
    Kind("", "v1", "secrets", "Secret", rule=rules.secret),
    Kind("", "v1", "persistentvolumeclaims", "PersistentVolumeClaim", rule=rules.claim, has_status=True),
    Kind("", "v1", "events", "Event"),
    Kind("", "v1", "serviceaccounts", "ServiceAccount"),
    Kind("", "v1", "resourcequotas", "ResourceQuota", has_status=True),
    Kind("", "v1", "nodes", "Node", False, has_status=True),
)


def kind_of(plural: str) -> Kind:
    """The kind with this plural name."""
    (found,) = [kind for kind in KINDS if kind.plural == plural]
    return found


class Gone(Exception):
    """The rest of a list is asked for too late."""


class Unclear(Exception):
    """A selector that nobody understands."""


@dataclass(frozen=True)
class Page:
    """A part of a list, its version, and how to go on."""

    items: list[dict]
    version: int
    more: str = ""
    remaining: int = 0


@dataclass
class Store:
    """All objects. A change wakes those who wait on `changed`."""

    now: Callable[[], float] = time.time
    objects: dict[tuple[str, str, str], dict] = field(default_factory=dict)
    history: list[tuple[int, str, Kind, dict]] = field(default_factory=list)
    version: int = 1000
    oldest: int = 0  # lists that began before this version cannot be gone on with
    made: int = 0
    changed: threading.Condition = field(default_factory=lambda: threading.Condition(threading.RLock()))

    def find(self, kind: Kind, namespace: str, name: str) -> dict | None:
        return self.objects.get((kind.full, namespace, name))

    def moment(self) -> str:
        return datetime.fromtimestamp(self.now(), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")

    def named(self, document: Mapping) -> str:
        """The name of a new object: its own, or the beginning that it gives and five letters of ours."""
        about = document.get("metadata", {})
        if about.get("name") or not about.get("generateName"):
            return about.get("name", "")
        self.made += 1
        number, letters = self.made * 7919 + 12345, ""
        for _ in range(5):
            number, rest = divmod(number * 31 + 17, len(SUFFIX))
            letters += SUFFIX[rest]
        return about["generateName"][:58] + letters

    def created(self, kind: Kind, namespace: str, name: str, document: Mapping) -> dict:
        """What a new object looks like; it is not kept yet."""
        self.made += 1
        whole = copy.deepcopy(dict(document))
        about = {key: value for key, value in whole.get("metadata", {}).items() if key not in ("managedFields",)}
        about |= {"name": name, "uid": f"00000000-0000-0000-0000-{self.made:012x}", "creationTimestamp": self.moment()}
        if kind.namespaced:
            about["namespace"] = namespace
        if kind.crd:
            about["generation"] = 1
        return {**whole, "apiVersion": kind.api_version, "kind": kind.kind, "metadata": about}

    def keep(self, kind: Kind, document: dict, what: str = "MODIFIED") -> dict:
        """Keep an object under a new version; returns a copy."""
        with self.changed:
            self.version += 1
            document["metadata"]["resourceVersion"] = str(self.version)
            about = document["metadata"]
            self.objects[kind.full, about.get("namespace", ""), about["name"]] = document
            self._note(what, kind, document)
            return copy.deepcopy(document)

    def remove(self, kind: Kind, document: dict) -> None:
        """Forget an object, and whatever only it owned."""
        with self.changed:
            about = document["metadata"]
            if self.objects.pop((kind.full, about.get("namespace", ""), about["name"]), None) is None:
                return
            self.version += 1
            about["resourceVersion"] = str(self.version)
            self._note("DELETED", kind, document)
            for other in [one for one in KINDS if one.namespaced]:
                for dependent in self._of(other, about.get("namespace", "")):
                    owners = dependent["metadata"].get("ownerReferences", [])
                    rest = [one for one in owners if one["uid"] != about["uid"]]
                    if owners and not rest:
                        self.remove(other, dependent)

    def orphan(self, owner: dict) -> None:
        """Let nobody be owned by an object any more."""
        for kind in KINDS:
            for one in self._of(kind, owner["metadata"].get("namespace", "")):
                owners = one["metadata"].get("ownerReferences", [])
                rest = [other for other in owners if other["uid"] != owner["metadata"]["uid"]]
                if len(rest) < len(owners):
                    one["metadata"]["ownerReferences"] = rest
                    self.keep(kind, one)

    def page(self, kind: Kind, namespace: str, query: Mapping[str, str]) -> Page:
        """A page of a list. Raises Gone and Unclear."""
        if not (query.get("limit") or "0").isdigit():
            raise Unclear(f'strconv.ParseInt: parsing "{query["limit"]}": invalid syntax')
        limit, start, began = int(query.get("limit") or 0), "", self.version
        if more := query.get("continue"):
            try:
                began, start = json.loads(base64.urlsafe_b64decode(more))
            except ValueError:
                raise Unclear("invalid continue token: continue key is not valid") from None
            if began < self.oldest:
                raise Gone
        chosen = selected(query.get("labelSelector", ""))
        by_field = _by_field(kind, query.get("fieldSelector", ""))
        every = [one for one in self._of(kind, namespace) if chosen(one) and by_field(one)]
        rest = [one for one in every if _place(one) > start]
        if not limit or len(rest) <= limit:
            return Page(copy.deepcopy(rest), began)
        part = rest[:limit]
        token = base64.urlsafe_b64encode(json.dumps([began, _place(part[-1])]).encode()).decode()
        is_whole = not (query.get("labelSelector") or query.get("fieldSelector"))
        return Page(copy.deepcopy(part), began, token, len(rest) - limit if is_whole else 0)

    def since(self, version: int, kind: Kind, namespace: str) -> list[tuple[int, str, dict]]:
        """What happened to a kind after a version."""
        return [
            (at, what, one)
            for at, what, of, one in self.history
            if at > version and of is kind and (not namespace or one["metadata"].get("namespace") == namespace)
        ]

    def _of(self, kind: Kind, namespace: str) -> list[dict]:
        found = [
            one
            for (full, where, _), one in list(self.objects.items())
            if full == kind.full and (not namespace or where == namespace or not kind.namespaced)
        ]
        return sorted(found, key=_place)

    def _note(self, what: str, kind: Kind, document: dict) -> None:
        self.history.append((self.version, what, kind, copy.deepcopy(document)))
        self.changed.notify_all()


def _place(document: Mapping) -> str:
    return f"{document['metadata'].get('namespace', '')}/{document['metadata']['name']}"


def selected(words: str) -> Callable[[Mapping], bool]:
    """Read a selector of labels. Raises Unclear."""
    terms = [_term(term.strip()) for term in re.findall(r"(?:[^,(]|\([^)]*\))+", words)]
    return lambda one: all(term(one["metadata"].get("labels") or {}) for term in terms)


def _term(term: str) -> Callable[[Mapping[str, str]], bool]:
    key = r"([A-Za-z0-9][-A-Za-z0-9_./]*)"
    if found := re.fullmatch(key + r"\s*(=|==|!=)\s*([-A-Za-z0-9_.]*)", term):
        name, is_wanted, value = found[1], found[2] != "!=", found[3]
        return lambda labels: (labels.get(name) == value) is is_wanted
    if found := re.fullmatch(key + r"\s+(in|notin)\s*\(([^)]*)\)", term):
        values = [value.strip() for value in found[3].split(",")]
        name, is_wanted = found[1], found[2] == "in"
        return lambda labels: (labels.get(name) in values) is is_wanted
    if found := re.fullmatch(r"(!?)" + key, term):
        name, is_wanted = found[2], not found[1]
        return lambda labels: (name in labels) is is_wanted
    raise Unclear(f"unable to parse requirement: {term}")


FIELDS: Mapping[str, tuple[str, ...]] = {
    "pods": ("status.phase", "spec.nodeName", "spec.restartPolicy", "spec.serviceAccountName", "status.podIP"),
    "events": (
        "reason",
        "type",
        "source",
        *(f"involvedObject.{word}" for word in ("kind", "namespace", "name", "uid", "apiVersion", "fieldPath")),
    ),
    "secrets": ("type",),
    "namespaces": ("status.phase",),
}


def _by_field(kind: Kind, words: str) -> Callable[[Mapping], bool]:
    tests = []
    for term in filter(None, words.split(",")):
        found = re.fullmatch(r"([\w.]+)(!=|==|=)(.*)", term)
        if found is None:
            raise Unclear(f"invalid selector: '{words}'; can't understand '{term}'")
        if found[1] not in ("metadata.name", "metadata.namespace", *FIELDS.get(kind.plural, ())):
            raise Unclear(f"field label not supported: {found[1]}")
        tests.append((found[1].split("."), found[2] != "!=", found[3]))
    return lambda one: all((_dig(one, path) == value) is is_wanted for path, is_wanted, value in tests)


def _dig(one: object, path: list[str]) -> str:
    for word in path:
        one = one.get(word, "") if isinstance(one, Mapping) else ""
    return str(one)
