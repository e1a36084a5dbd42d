"""What the API server of the tests makes of one request: who may, what is legal, what is kept, what is answered."""

from __future__ import annotations

import copy
import json
import re
from dataclasses import dataclass, field, replace
from urllib.parse import unquote

from tests.servers import kube_rules
from tests.servers.kube_bodies import checked, fixed, patched
from tests.servers.kube_pods import Nodes
from tests.servers.kube_schema import Cause, core, invalid, parsed, unsupported
from tests.servers.kube_served import discovery
from tests.servers.kube_store import KINDS, VOLCANO, Gone, Kind, Store, Unclear, kind_of
from tests.servers.kube_words import (
    Denied,
    Refused,
    details_of,
    illegal,
    not_strict,
    other_uid,
    status,
    unknown_options,
)
from tests.servers.loopback import Answer, Got

NAMESPACE = "training"
TOKEN = "token-of-the-admin"
STRICTNESS = ("", "Ignore", "Strict", "Warn")
_PATH = re.compile(
    r"/(?:api/(?P<core>v1)|apis/(?P<group>[^/]+)/(?P<version>[^/]+))"
    r"(?:/namespaces/(?P<namespace>[^/]+))?/(?P<plural>[a-z]+)(?:/(?P<name>[^/]+)(?:/(?P<sub>[a-z]+))?)?\Z"
)


@dataclass(frozen=True)
class User:
    """Who holds a token. `rights` are pairs of a verb and a full resource (`pods/exec`, `jobs.batch.volcano.sh`)."""

    name: str
    rights: frozenset[tuple[str, str]] | None = None  # None: everything
    namespaces: frozenset[str] | None = None  # None: everywhere

    def may(self, verb: str, resource: str, namespace: str) -> bool:
        is_here = self.namespaces is None or namespace in self.namespaces
        return self.rights is None or (is_here and (verb, resource) in self.rights)


@dataclass(frozen=True)
class Asked:
    """One request about objects of a kind."""

    got: Got
    kind: Kind
    namespace: str
    name: str
    sub: str
    user: User

    @property
    def query(self) -> dict[str, str]:
        return dict(self.got.query)

    @property
    def is_dry(self) -> bool:
        return self.query.get("dryRun") == "All"


@dataclass
class Kube:
    """The server's mind. `users` are known by their tokens; `has_volcano` turns Volcano's admission on."""

    nodes: Nodes
    store: Store
    users: dict[str, User] = field(default_factory=lambda: {TOKEN: User("admin")})
    has_volcano: bool = True
    knows_dry_run: bool = True
    denials: list[tuple[str, Denied]] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    priorities: set[str] = field(default_factory=lambda: {"system-node-critical", "system-cluster-critical"})

    def answer(self, got: Got) -> Answer:
        """Answer one request."""
        try:
            with self.store.changed:
                return self._answer(got)
        except Refused as refused:
            return refused.answer

    def asked(self, got: Got) -> Asked:
        """Find out what a request is about and whether it may be. Raises Refused."""
        user = self._user(got)
        kind, names = _place(got.path)
        asked = Asked(got, kind, names["namespace"] or "", names["name"] or "", names["sub"] or "", user)
        for verb in self._verbs(asked):
            self._allow(asked, verb)
        if asked.sub == "exec" and not user.may("create", "pods/exec", asked.namespace):
            # Since 1.35 an upgrade by GET needs both rights; of the second the server says no word.
            words = f'pods "{asked.name}" is forbidden: '
            raise Refused(status(403, words, details=details_of(kind, asked.name)))
        return asked

    def add(self, plural: str, name: str, namespace: str = NAMESPACE, **more: object) -> dict:
        """Put an object in, checked like any other."""
        kind = kind_of(plural)
        where = namespace if kind.namespaced else ""
        about = {"name": name, **more.pop("metadata", {})}  # type: ignore[dict-item]
        document = {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": about, **more}
        new = self.store.created(kind, where, name, checked(kind, document, name, is_strict=True)[0])
        kept = self.store.keep(kind, new, "ADDED")
        if kind.plural == "pods":
            self.nodes.begin(self.stored("pods", name, where))
        return kept

    def stored(self, plural: str, name: str, namespace: str = NAMESPACE) -> dict:
        """The object itself, to be looked at and changed; fails when there is none."""
        kind = kind_of(plural)
        found = self.store.find(kind, namespace if kind.namespaced else "", name)
        assert found is not None, f"no {kind.full} called {name}"
        return found

    def names(self, plural: str, namespace: str = NAMESPACE) -> list[str]:
        """The names of the objects of a kind."""
        kind = kind_of(plural)
        return [
            one["metadata"]["name"] for one in self.store.page(kind, namespace if kind.namespaced else "", {}).items
        ]

    def _answer(self, got: Got) -> Answer:
        known = discovery(got)
        if known is not None:
            self._user(got)
            return known
        if got.path.startswith("/apis/authorization.k8s.io/v1/"):
            return self._review(got, self._user(got))
        asked = self.asked(got)
        self._options_of(asked)
        if asked.sub == "log":
            raise AssertionError("logs are streamed")
        act = {
            "GET": self._read,
            "POST": self._create,
            "PUT": self._replace,
            "PATCH": self._patch,
            "DELETE": self._delete,
        }.get(got.method)
        if act is None or asked.sub not in ("", "status"):
            return status(405, "the server does not allow this method on the requested resource")
        return act(asked)

    def _options_of(self, asked: Asked) -> None:
        """Check how an object is to be written. Raises Refused."""
        kind = {"POST": "CreateOptions", "PUT": "UpdateOptions", "PATCH": "PatchOptions", "DELETE": "DeleteOptions"}
        causes, dry = [], asked.query.get("dryRun")
        if dry not in (None, "All"):
            causes.append(unsupported("dryRun", [dry], ["All"]))
        strictness = asked.query.get("fieldValidation", "")
        if asked.got.method != "DELETE" and strictness not in STRICTNESS:
            causes.append(unsupported("fieldValidation", strictness, list(STRICTNESS)))
        if causes and asked.got.method in kind:
            raise Refused(unknown_options(kind[asked.got.method], causes))

    def _user(self, got: Got) -> User:
        scheme, _, token = got.headers.get("authorization", "").partition(" ")
        if not scheme:
            return User("system:anonymous", frozenset())
        user = self.users.get(token)
        if scheme != "Bearer" or user is None:
            raise Refused(status(401, "Unauthorized"))
        return user

    def _verbs(self, asked: Asked) -> list[str]:
        method, is_watch = asked.got.method, asked.query.get("watch") in ("1", "true")
        if asked.sub == "exec":
            return ["get"]
        if method == "GET":
            return ["get" if asked.name else "watch" if is_watch else "list"]
        if method == "DELETE" and not asked.name:
            return ["deletecollection"]
        return [{"POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}.get(method, "get")]

    def _allow(self, asked: Asked, verb: str) -> None:
        sub = f"/{asked.sub}" if asked.sub else ""
        full = f"{asked.kind.plural}{sub}" + (f".{asked.kind.group}" if asked.kind.group else "")
        if asked.user.may(verb, full, asked.namespace):
            return
        who = asked.kind.full + (f' "{asked.name}"' if asked.name else "")
        where = f'in the namespace "{asked.namespace}"' if asked.namespace else "at the cluster scope"
        words = (
            f'{who} is forbidden: User "{asked.user.name}" cannot {verb} resource "{asked.kind.plural}{sub}" '
            f'in API group "{asked.kind.group}" {where}'
        )
        raise Refused(status(403, words, details=details_of(asked.kind, asked.name)))

    def _read(self, asked: Asked) -> Answer:
        if asked.name:
            found = self._found(asked)
            if asked.kind.plural == "pods":
                self.nodes.look(found)
            return Answer(200, copy.deepcopy(found))
        if asked.kind.plural == "pods":
            for one in self.store.page(asked.kind, asked.namespace, {}).items:
                self.nodes.look(self.stored("pods", one["metadata"]["name"], one["metadata"]["namespace"]))
        try:
            page = self.store.page(asked.kind, asked.namespace, asked.query)
        except Gone:
            words = (
                "The provided continue parameter is too old to display a consistent list result. You can start a new "
                "list without the continue parameter."
            )
            return status(410, words)
        except Unclear as unclear:
            return status(400, str(unclear))
        about: dict[str, object] = {"resourceVersion": str(page.version)}
        if page.more:
            about["continue"] = page.more
        if page.remaining:
            about["remainingItemCount"] = page.remaining
        items = page.items
        if not asked.kind.crd:
            items = [{key: value for key, value in one.items() if key not in ("apiVersion", "kind")} for one in items]
        listed = {"apiVersion": asked.kind.api_version, "kind": f"{asked.kind.kind}List"}
        return Answer(200, {**listed, "metadata": about, "items": items})

    def _found(self, asked: Asked) -> dict:
        found = self.store.find(asked.kind, asked.namespace, asked.name)
        if found is None:
            words = f'{asked.kind.full} "{asked.name}" not found'
            raise Refused(status(404, words, details=details_of(asked.kind, asked.name)))
        return found

    def _create(self, asked: Asked) -> Answer:
        if asked.name:
            return status(405, "the server does not allow this method on the requested resource")
        document, doubled = self._body(asked)
        name = self.store.named(document)
        if doubled and asked.query.get("fieldValidation", "Strict") == "Strict" and "fieldValidation" in asked.query:
            raise Refused(not_strict(asked.kind, doubled))
        whole, warned = checked(asked.kind, document, name, is_strict=asked.query.get("fieldValidation") == "Strict")
        self._admit(asked, whole)
        if self.store.find(asked.kind, asked.namespace, name) is not None:
            words = f'{asked.kind.full} "{name}" already exists'
            return status(409, words, "AlreadyExists", details_of(asked.kind, name))
        new = self.store.created(asked.kind, asked.namespace, name, whole)
        if asked.kind.plural == "pods":
            new["status"] = {"phase": "Pending", "qosClass": "BestEffort"}
        if not asked.is_dry:
            self.store.keep(asked.kind, new, "ADDED")
            if asked.kind.plural == "pods":
                self.nodes.begin(self.stored("pods", name, asked.namespace))
        else:
            self._must_know_dry_run()
        return self._warned(Answer(201, copy.deepcopy(new)), warned)

    def _replace(self, asked: Asked) -> Answer:
        found, (document, _) = self._found(asked), self._body(asked)
        return self._changed(asked, found, document)

    def _patch(self, asked: Asked) -> Answer:
        found = self._found(asked)
        media = asked.got.headers.get("content-type", "").partition(";")[0]
        return self._changed(asked, found, patched(found, asked.kind, media, asked.got.body))

    def _changed(self, asked: Asked, found: dict, document: dict) -> Answer:
        about, own = document.get("metadata", {}), found["metadata"]
        if about.get("name", asked.name) != asked.name:
            words = f"the name of the object ({about['name']}) does not match the name on the URL ({asked.name})"
            return status(400, words)
        if about.get("uid", own["uid"]) != own["uid"]:
            cause = invalid("metadata.uid", about["uid"], "field is immutable")
            return illegal(asked.kind, asked.name, [cause, cause])
        if about.get("resourceVersion", own["resourceVersion"]) != own["resourceVersion"]:
            words = "the object has been modified; please apply your changes to the latest version and try again"
            return self._conflict(asked, words)
        if asked.kind.crd and asked.got.method == "PUT" and "resourceVersion" not in about:
            cause = Cause(
                "metadata.resourceVersion", "FieldValueInvalid", "Invalid value: 0: must be specified for an update"
            )
            answer = illegal(asked.kind, asked.name, [cause], who=asked.kind.full)
            assert isinstance(answer.document, dict)
            answer.document["details"]["kind"] = asked.kind.plural
            return answer
        is_strict = asked.query.get("fieldValidation") == "Strict"
        unknown = asked.kind.schema.unknown(document) if asked.got.method == "PATCH" and is_strict else []
        if unknown:
            words = ", ".join(f'unknown field "{path}"' for path in unknown)
            cause = invalid("patch", json.dumps(document), f"strict decoding error: {words}")
            said = f' "" is invalid: {cause.field}: {cause.message}'
            return status(422, said, details={"causes": [cause.document]})
        whole, warned = checked(asked.kind, document, asked.name, is_strict=is_strict)
        kept = ("uid", "creationTimestamp", "generation", "namespace", "name", "deletionTimestamp", "resourceVersion")
        whole["metadata"] = {**whole["metadata"], **{word: own[word] for word in kept if word in own}}
        if asked.kind.has_status:
            other = {word: found[word] for word in found if word not in ("status",)}
            if asked.sub == "status":
                whole = {**other, "status": whole.get("status", {})}
            else:
                whole = {key: value for key, value in whole.items() if key != "status"}
                whole |= {"status": found["status"]} if "status" in found else {}
        if asked.kind.plural == "pods" and asked.sub == "" and fixed(whole) != fixed(found):
            words = (
                "Forbidden: pod updates may not change fields other than `spec.containers[*].image`,"
                "`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to "
                "existing tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was "
                "previously negative)"
            )
            return illegal(asked.kind, asked.name, [Cause("spec", "FieldValueForbidden", words)])
        if found.get("immutable") and whole.get("data") != found.get("data"):
            words = "Forbidden: field is immutable when `immutable` is set"
            return illegal(asked.kind, asked.name, [Cause("data", "FieldValueForbidden", words)])
        if whole == found or asked.is_dry:
            return self._warned(Answer(200, whole), warned)
        if self._ownerless(whole):
            self.store.remove(asked.kind, found)
            return self._warned(Answer(200, whole), warned)
        if asked.kind.crd and whole.get("spec") != found.get("spec"):
            whole["metadata"]["generation"] = own.get("generation", 1) + 1
        return self._warned(Answer(200, self.store.keep(asked.kind, whole)), warned)

    def _ownerless(self, document: dict) -> bool:
        """Whether an object is said to be owned, and no owner exists: it is collected soon."""
        owners = document["metadata"].get("ownerReferences") or []
        known = {one["metadata"]["uid"] for one in self.store.objects.values()}
        return bool(owners) and not any(one["uid"] in known for one in owners)

    def _conflict(self, asked: Asked, words: str) -> Answer:
        message = f'Operation cannot be fulfilled on {asked.kind.full} "{asked.name}": {words}'
        return status(409, message, details=details_of(asked.kind, asked.name))

    def _delete(self, asked: Asked) -> Answer:
        if not asked.name:
            return status(405, "the server does not allow this method on the requested resource")
        options = self._options(asked)
        policy = options.get("propagationPolicy") or asked.query.get("propagationPolicy", "")
        if policy not in ("", "Background", "Foreground", "Orphan"):
            known = ["Foreground", "Background", "Orphan", "nil"]
            return unknown_options("DeleteOptions", [unsupported("propagationPolicy", policy, known)])
        found = self._found(asked)
        uid = found["metadata"]["uid"]
        wanted = options.get("preconditions", {})
        if wanted.get("uid", uid) != uid:
            return other_uid(asked.kind, asked.name, wanted["uid"], uid)
        version = found["metadata"]["resourceVersion"]
        if wanted.get("resourceVersion", version) != version:
            asked_for = wanted["resourceVersion"]
            words = (
                f"Precondition failed: ResourceVersion in precondition: {asked_for}, "
                f"ResourceVersion in object meta: {version}"
            )
            return self._conflict(asked, words)
        is_dry = asked.is_dry or options.get("dryRun") == ["All"]
        if not is_dry:
            if policy == "Orphan":
                self.store.orphan(found)
            self.store.remove(asked.kind, found)
        if asked.kind.plural == "pods":
            about = {**found["metadata"], "deletionTimestamp": self.store.moment(), "deletionGracePeriodSeconds": 0}
            return Answer(200, {**copy.deepcopy(found), "metadata": about})
        details = {**details_of(asked.kind, asked.name), "uid": uid}
        done = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": details}
        return Answer(200, done)

    def _options(self, asked: Asked) -> dict:
        if not asked.got.body:
            return {}
        options = {key: value for key, value in self._body(asked)[0].items() if value is not None}
        causes = core("DeleteOptions").causes(options)
        if causes:
            raise Refused(status(400, causes[0].decoding or causes[0].message))
        return options

    def _body(self, asked: Asked) -> tuple[dict, list[str]]:
        kind = asked.got.headers.get("content-type", "application/json").partition(";")[0]
        if kind != "application/json":
            listed = "application/json, application/yaml, application/vnd.kubernetes.protobuf"
            words = f"the body of the request was in an unknown format - accepted media types include: {listed}"
            raise Refused(status(415, words))
        try:
            document, doubled = parsed(asked.got.body)
        except ValueError as error:
            words = (
                f"the object provided is unrecognized (must be of type {asked.kind.kind}): couldn't get version/kind"
            )
            raise Refused(status(400, f"{words}; json parse error: {error}")) from None
        if not isinstance(document, dict):
            words = (
                f"the object provided is unrecognized (must be of type {asked.kind.kind}): couldn't get version/kind"
            )
            raise Refused(status(400, f"{words}; json parse error: json: cannot unmarshal array into Go value"))
        if asked.got.method == "DELETE":
            return document, doubled
        about = document.get("metadata")
        if about is not None and not isinstance(about, dict):
            raise Refused(status(400, "metadata is no object"))
        if about and asked.kind.namespaced and about.get("namespace", asked.namespace) != asked.namespace:
            words = "the namespace of the provided object does not match the namespace sent on the request"
            raise Refused(status(400, words))
        return document, [f'duplicate field "{path}"' for path in doubled]

    def _admit(self, asked: Asked, document: dict) -> None:
        """Ask everybody who may say no to a new object. Raises Refused."""
        kind, name = asked.kind, document["metadata"]["name"]
        if kind.namespaced and self.store.find(kind_of("namespaces"), "", asked.namespace) is None:
            words = f'namespaces "{asked.namespace}" not found'
            raise Refused(status(404, words, details={"name": asked.namespace, "kind": "namespaces"}))
        for number, (words, denied) in enumerate(self.denials):
            if words in f"{kind.full}/{name}":
                if not asked.is_dry:
                    del self.denials[number]
                raise Refused(denied.answer)
        if kind.group == VOLCANO and self.has_volcano:
            faults = kube_rules.job(document, lambda queue: self.store.find(kind_of("queues"), "", queue))
            if faults:
                raise Refused(Denied("; ".join(faults) + ";", "validatejob.volcano.sh").answer)
        account = document.get("spec", {}).get("serviceAccountName", "default") if kind.plural == "pods" else "default"
        if account != "default" and self.store.find(kind_of("serviceaccounts"), asked.namespace, account) is None:
            words = (
                f'error looking up service account {asked.namespace}/{account}: serviceaccount "{account}" not found'
            )
            raise Refused(status(403, f'pods "{name}" is forbidden: {words}', details=details_of(kind, name)))
        priority = document.get("spec", {}).get("priorityClassName") if kind.plural == "pods" else None
        if priority and priority not in self.priorities:
            words = f"no PriorityClass with name {priority} was found"
            raise Refused(status(403, f'pods "{name}" is forbidden: {words}', details=details_of(kind, name)))

    def _must_know_dry_run(self) -> None:
        if not self.knows_dry_run:
            raise Refused(status(400, "the dryRun feature is disabled"))

    def _warned(self, answer: Answer, unknown: list[str]) -> Answer:
        words = [*self.warnings, *unknown]
        if not words:
            return answer
        headers = {**answer.headers, "Warning": ", ".join(f"299 - {json.dumps(word)}" for word in words)}
        return replace(answer, headers=headers)

    def _review(self, got: Got, user: User) -> Answer:
        if got.method != "POST" or not got.path.endswith("/selfsubjectaccessreviews"):
            return status(404, "the server could not find the requested resource")
        document, begin = json.loads(got.body), 'SelfSubjectAccessReview in version "v1" cannot be handled as a'
        unknown = core("SelfSubjectAccessReview").unknown(document)
        if unknown and got.value("fieldValidation") == "Strict":
            words = ", ".join(f'unknown field "{path}"' for path in unknown)
            return status(400, f"{begin} SelfSubjectAccessReview: strict decoding error: {words}")
        asked = document.get("spec", {}).get("resourceAttributes")
        if not asked:
            words = "exactly one of nonResourceAttributes or resourceAttributes must be specified"
            cause = invalid("spec.resourceAttributes", None, words)
            details = {"group": "authorization.k8s.io", "causes": [cause.document]}
            said = f'.authorization.k8s.io "" is invalid: {cause.field}: {cause.message}'
            return status(422, said, details=details)
        sub = f"/{asked['subresource']}" if asked.get("subresource") else ""
        group = f".{asked['group']}" if asked.get("group") else ""
        is_allowed = user.may(
            asked.get("verb", ""), f"{asked.get('resource', '')}{sub}{group}", asked.get("namespace", "")
        )
        about = {"allowed": is_allowed} | (
            {"reason": "RBAC: allowed"} if is_allowed and user.rights is not None else {}
        )
        return Answer(201, {**document, "metadata": {}, "status": about})


def _place(path: str) -> tuple[Kind, dict[str, str]]:
    """Which kind a path is about. Raises Refused."""
    found = _PATH.match(path)
    if found:
        names = {word: unquote(value) if value else "" for word, value in found.groupdict().items()}
        if names["namespace"] and names["plural"] == "status":  # of a namespace itself
            names |= {"plural": "namespaces", "name": names["namespace"], "sub": "status", "namespace": ""}
        for kind in KINDS:
            is_this = (kind.group, kind.version, kind.plural) == (
                names["group"],
                names["version"] or names["core"],
                names["plural"],
            )
            if is_this and (kind.namespaced or not names["namespace"]):
                return kind, names
    answer = Answer(404, raw=b"404 page not found\n", headers={"Content-Type": "text/plain; charset=utf-8"})
    raise Refused(answer)
