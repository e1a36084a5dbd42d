"""Kubeconfig files: which clusters this user has, by what name, and how each is reached.

Files are read as `kubectl` reads them: those of `KUBECONFIG` in order, the first to name something wins,
else the usual file, else, inside a pod, the pod's own account. Nothing is guessed: a context that is not
there is an error that lists those that are.
"""

from __future__ import annotations

import base64
import binascii
import os.path
from collections.abc import Mapping
from dataclasses import field, replace
from pathlib import Path
from typing import cast

import yaml

from aj.base import paths, text
from aj.base.errors import ConfigError, Place
from aj.base.noun import dataclass
from aj.base.settings import Settings
from aj.model.json import Json
from aj.net.origin import Origin

IN_CLUSTER = "in-cluster"
ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
DEFAULT_NAMESPACE = "default"
_Loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


@dataclass(frozen=True)
class Entry:
    """Something that a file names: a cluster, a user or a context."""

    name: str
    values: Mapping[str, Json] = field(repr=False)
    file: Path

    def text(self, key: str) -> str | None:
        """Return a text, None when it is absent or empty. Raises ConfigError when something else stands there."""
        value = self.values.get(key)
        if value is None or isinstance(value, str):
            return value or None
        raise ConfigError(f"{self.file}: `{key}` of `{self.name}` is not a text")

    def path(self, key: str) -> Path | None:
        """Return a path, taken from the folder of the file when it is relative."""
        words = self.text(key)
        return None if words is None else self.file.parent / words

    def data(self, key: str) -> bytes | None:
        """Return what stands there in base64. Raises ConfigError."""
        words = self.text(key)
        try:
            return None if words is None else base64.b64decode(words, validate=True)
        except binascii.Error:
            raise ConfigError(f"{self.file}: `{key}` of `{self.name}` is not base64") from None


@dataclass(frozen=True)
class Plugin:
    """A program that gives credentials, as a kubeconfig describes it. A relative command is one of `folder`."""

    argv: tuple[str, ...]
    api_version: str
    folder: Path
    env: Mapping[str, str] = field(default_factory=dict, repr=False)
    cluster: Mapping[str, Json] | None = field(default=None, repr=False)
    hint: str | None = None
    needs_terminal: bool = False


@dataclass(frozen=True)
class Pem:
    """Certificates or a key: in a file, or as they are."""

    file: Path | None = None
    content: bytes | None = field(default=None, repr=False)


@dataclass(frozen=True)
class User:
    """How a context signs in."""

    name: str
    token: str | None = field(default=None, repr=False)
    token_file: Path | None = None
    username: str | None = None
    password: str | None = field(default=None, repr=False)
    certificate: Pem | None = None
    key: Pem | None = None
    plugin: Plugin | None = None


@dataclass(frozen=True)
class Access:
    """Everything that reaching one cluster takes. `namespace_from` says in words where the namespace comes from."""

    context: str
    server: str
    namespace: str
    namespace_from: str
    user: User
    authority: Pem | None = None
    is_insecure: bool = False
    tls_server_name: str | None = None
    proxy: str | None = None


@dataclass(frozen=True)
class Kubeconfig:
    """What the files say together."""

    files: tuple[Path, ...]
    current: str | None = None
    contexts: Mapping[str, Entry] = field(default_factory=dict)
    clusters: Mapping[str, Entry] = field(default_factory=dict, repr=False)
    users: Mapping[str, Entry] = field(default_factory=dict, repr=False)
    account: Access | None = None

    @property
    def names(self) -> tuple[str, ...]:
        """The names of all contexts."""
        return (IN_CLUSTER,) if self.account else tuple(self.contexts)

    @property
    def where(self) -> str:
        """The files, as a person would write them."""
        return ", ".join(str(file) for file in self.files)

    def namespace(self, name: str | None) -> str | None:
        """Return the namespace that a context names. Raises ConfigError for a context that is not there."""
        return self._context(name).text("namespace") if not self.account else self.account.namespace

    def access(self, name: str | None = None, namespace: str | None = None) -> Access:
        """Return how to reach the cluster of a context, by default the current one. Raises ConfigError."""
        if self.account:
            return self._in_cluster(self.account, name, namespace)
        context = self._context(name)
        cluster = self._named(self.clusters, context, "cluster")
        own = context.text("namespace")
        chosen, why = _namespace(namespace, own, context.name)
        return Access(
            context=context.name,
            server=_server(cluster),
            namespace=chosen,
            namespace_from=why,
            user=self._user(context, cluster),
            authority=_pem(cluster, "certificate-authority"),
            is_insecure=cluster.values.get("insecure-skip-tls-verify") is True,
            tls_server_name=cluster.text("tls-server-name"),
            proxy=cluster.text("proxy-url"),
        )

    def _context(self, name: str | None) -> Entry:
        wanted = name or self.current
        if not self.contexts:
            raise ConfigError(f"no context in {self.where or 'any kubeconfig'}", code="no-context", hint=_HOW)
        has = ", ".join(self.contexts)
        if wanted is None:
            hint = "write `target.context`, or `kubectl config use-context NAME`"
            raise ConfigError(f"{self.where} has no current context (has: {has})", code="no-context", hint=hint)
        if wanted not in self.contexts:
            near = text.nearest(wanted, self.contexts)
            words = f"no context called {wanted} in {self.where} (has: {has})"
            raise ConfigError(words, code="no-context", hint=f"`{near}` is the nearest name" if near else None)
        return self.contexts[wanted]

    def _named(self, entries: Mapping[str, Entry], context: Entry, kind: str) -> Entry:
        name = context.text(kind)
        if name is None or name not in entries:
            what = f"names no {kind}" if name is None else f"names the {kind} {name}, and there is none"
            raise ConfigError(f"{context.file}: the context {context.name} {what}", code="no-context")
        return entries[name]

    def _user(self, context: Entry, cluster: Entry) -> User:
        if context.text("user") is None:
            return User("nobody")
        entry = self._named(self.users, context, "user")
        if "auth-provider" in entry.values:
            words = (
                f"{entry.file}: the user {entry.name} signs in by an `auth-provider`, which no cluster takes any more"
            )
            raise ConfigError(words, hint="write an `exec` plugin in its place, as with `kubelogin convert-kubeconfig`")
        return User(
            name=entry.name,
            token=entry.text("token"),
            token_file=entry.path("tokenFile"),
            username=entry.text("username"),
            password=entry.text("password"),
            certificate=_pem(entry, "client-certificate"),
            key=_pem(entry, "client-key"),
            plugin=_plugin(entry, cluster),
        )

    @staticmethod
    def _in_cluster(account: Access, name: str | None, namespace: str | None) -> Access:
        if name not in (None, IN_CLUSTER):
            raise ConfigError(f"no context called {name}: this is a pod (has: {IN_CLUSTER})", code="no-context")
        chosen, why = _namespace(namespace, account.namespace, IN_CLUSTER)
        return replace(account, namespace=chosen, namespace_from=why)


_HOW = "write one as your cluster's owner says, as with `az aks get-credentials`, or set KUBECONFIG"


def read(settings: Settings, explicit: Path | None = None, *, account: Path = ACCOUNT) -> Kubeconfig:
    """Read the files of this user, or one that is named. Raises ConfigError when one cannot be read.

    A file of `KUBECONFIG` that is not there is passed over; one that is named explicitly must be there.
    """
    if explicit is not None:
        return _merged((explicit,), needed=True)
    listed = settings.get("KUBECONFIG")
    if listed is not None:
        return _merged(tuple(Path(part).expanduser() for part in listed.split(os.path.pathsep) if part))
    usual = (paths.home(settings) or Path("/")) / ".kube" / "config"
    host, port = settings.get("KUBERNETES_SERVICE_HOST"), settings.get("KUBERNETES_SERVICE_PORT") or "443"
    if not usual.exists() and host and (account / "token").exists():
        return Kubeconfig((), account=_account(account, host, port))
    return _merged((usual,))


def _account(folder: Path, host: str, port: str) -> Access:
    """Return how a pod reaches its own cluster."""
    name = f"[{host}]" if ":" in host else host
    namespace = folder / "namespace"
    own = namespace.read_text().strip() if namespace.exists() else DEFAULT_NAMESPACE
    user = User("service account", token_file=folder / "token")
    return Access(IN_CLUSTER, f"https://{name}:{port}", own, "the pod", user, Pem(folder / "ca.crt"))


def _merged(files: tuple[Path, ...], *, needed: bool = False) -> Kubeconfig:
    current: str | None = None
    kinds: dict[str, dict[str, Entry]] = {"contexts": {}, "clusters": {}, "users": {}}
    for file in files:
        values = _load(file, needed=needed)
        chosen = values.get("current-context")
        current = current or (chosen if isinstance(chosen, str) else None) or None
        for kind, found in kinds.items():
            for entry in _entries(values, kind, file):
                found.setdefault(entry.name, entry)
    return Kubeconfig(files, current, kinds["contexts"], kinds["clusters"], kinds["users"])


def _load(file: Path, *, needed: bool) -> Mapping[str, Json]:
    try:
        content = file.read_bytes()
    except FileNotFoundError:
        if not needed:
            return {}
        raise ConfigError(f"there is no file {file}", code="no-context") from None
    except OSError as error:
        raise ConfigError(f"{file} cannot be read: {error.strerror}", code="no-context") from error
    try:
        value = yaml.load(content, Loader=_Loader)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        place = Place(str(file), mark.line + 1, mark.column + 1) if mark else Place(str(file))
        raise ConfigError("this is not YAML", place=place) from error
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise ConfigError(f"{file} is not a kubeconfig: a mapping is due")
    return cast("Mapping[str, Json]", value)


def _entries(values: Mapping[str, Json], kind: str, file: Path) -> list[Entry]:
    """Return what a file names of one kind: `users: [{name: …, user: {…}}]`."""
    listed = values.get(kind)
    if listed is None:
        return []
    if not isinstance(listed, list):
        raise ConfigError(f"{file}: `{kind}` is not a list")
    found = []
    for item in listed:
        name = item.get("name") if isinstance(item, dict) else None
        inner = item.get(kind.removesuffix("s")) if isinstance(item, dict) else None
        if not isinstance(name, str) or not isinstance(inner, dict | None):
            raise ConfigError(f"{file}: `{kind}` has an entry without a name")
        found.append(Entry(name, inner or {}, file))
    return found


def _namespace(asked: str | None, own: str | None, context: str) -> tuple[str, str]:
    if asked:
        return asked, "as asked"
    if own:
        return own, f"the context {context} names it"
    return DEFAULT_NAMESPACE, f"the context {context} names none"


def _server(cluster: Entry) -> str:
    server = cluster.text("server")
    try:
        Origin.of_url(server or "")
    except ValueError as error:
        words = f"{cluster.file}: the server of the cluster {cluster.name} is {error}"
        raise ConfigError(words, code="no-context") from None
    return (server or "").rstrip("/")


def _pem(entry: Entry, key: str) -> Pem | None:
    """Return what stands in the file, or under `KEY-data`, which goes first as with `kubectl`."""
    content, file = entry.data(f"{key}-data"), entry.path(key)
    if content is None and file is None:
        return None
    return Pem(content=content) if content is not None else Pem(file)


def _plugin(entry: Entry, cluster: Entry) -> Plugin | None:
    values = entry.values.get("exec")
    if values is None:
        return None
    plugin = Entry(entry.name, values, entry.file) if isinstance(values, dict) else None
    command, version = (plugin.text("command"), plugin.text("apiVersion")) if plugin else (None, None)
    if plugin is None or command is None or version is None:
        raise ConfigError(f"{entry.file}: `exec` of the user {entry.name} needs `command` and `apiVersion`")
    arguments = plugin.values.get("args") or []
    if not isinstance(arguments, list):
        raise ConfigError(f"{entry.file}: `exec.args` of the user {entry.name} is not a list")
    return Plugin(
        argv=(command, *(str(word) for word in arguments)),
        api_version=version,
        folder=entry.file.parent,
        env=_variables(plugin),
        cluster=cluster.values if plugin.values.get("provideClusterInfo") is True else None,
        hint=plugin.text("installHint"),
        needs_terminal=plugin.text("interactiveMode") == "Always",
    )


def _variables(plugin: Entry) -> dict[str, str]:
    listed = plugin.values.get("env") or []
    if not isinstance(listed, list):
        raise ConfigError(f"{plugin.file}: `exec.env` of the user {plugin.name} is not a list")
    return {
        str(item["name"]): str(item.get("value", "")) for item in listed if isinstance(item, dict) and "name" in item
    }
