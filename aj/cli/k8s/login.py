"""aj k8s login: put a cluster into the kubeconfig, from a profile of the settings or a file that was given."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from aj.base import paths
from aj.base.errors import ConfigError, OptionError
from aj.base.noun import dataclass
from aj.cli.declare import Option, filled
from aj.view import k8s as view

if TYPE_CHECKING:
    from aj.cli.context import Context
    from aj.model.json import Json

KEYS = ("server", "issuer", "client_id", "namespace", "certificate_authority")
NEEDED = ("server", "issuer", "client_id")


@dataclass(frozen=True)
class Options:
    """From where, and under which names."""

    profile: Annotated[str | None, Option("--profile", "a table [clusters.NAME] of aj.toml", "NAME", filled)] = None
    source: Annotated[
        str | None, Option("--from", "a kubeconfig that you were given", "FILE", filled, values="file")
    ] = None
    cluster: Annotated[str | None, Option("--cluster", "the name of the cluster there", "NAME", filled)] = None
    context: Annotated[str | None, Option("--context", "the name of the context there", "NAME", filled)] = None
    namespace: Annotated[str | None, Option("-n --namespace", "the namespace of the context", "NAME", filled)] = None
    kubeconfig: Annotated[
        str | None, Option("--kubeconfig", "another kubeconfig than the usual one", "FILE", filled, values="file")
    ] = None
    keep_current: Annotated[bool, Option("--keep-current", "leave the current context as it is")] = False
    force: Annotated[bool, Option("-f --force", "replace entries of the same names")] = False
    dry_run: Annotated[bool, Option("-d --dry-run", "only show what would change")] = False


def run(opts: Options, ctx: Context) -> int:
    """Write it. Raises OptionError, ConfigError at file and line, Refused for a name that is taken."""
    from aj.store import kubeconfig

    if (opts.profile is None) == (opts.source is None):
        raise OptionError("one of `--profile` and `--from` is due", hint="`aj k8s login --profile NAME`")
    added = _of_profile(opts, ctx) if opts.profile else _of_file(opts, ctx)
    context = str(added["contexts"]["name"])
    done = kubeconfig.merge(
        ctx.layout.folders,
        _target(opts, ctx),
        added,
        current=None if opts.keep_current else context,
        force=opts.force,
        dry=opts.dry_run,
    )
    if done.backup:
        ctx.screen.note(f"the kubeconfig of before is {paths.shown(str(done.backup), ctx.directory)}")
    ctx.screen.show(view.login(context, str(done.file), done.changed, is_dry=opts.dry_run))
    return 0


def _target(opts: Options, ctx: Context) -> Path:
    """The file that is written: the one that is named, else the first of KUBECONFIG, else the usual one."""
    listed = [part for part in (ctx.settings.get("KUBECONFIG") or "").split(os.pathsep) if part]
    if opts.kubeconfig is not None:
        return ctx.directory / opts.kubeconfig
    home = paths.home(ctx.settings)
    if listed:
        return Path(listed[0])
    if home is None:
        raise ConfigError("there is no home folder for a kubeconfig", hint="`--kubeconfig FILE`")
    return home / ".kube" / "config"


def _of_profile(opts: Options, ctx: Context) -> dict[str, Mapping[str, Json]]:
    """Make the entries of a profile: its user signs in by the program kubelogin."""
    key = f"clusters.{opts.profile}"
    found = next((setting for layer in ctx.config.layers if (setting := layer.find(key)) is not None), None)
    table = found.value if found is not None else None
    if not isinstance(table, Mapping) or found is None:
        raise ConfigError(f"no profile [{key}] in the settings", hint="write one with server, issuer and client_id")
    strange = sorted(set(table) - set(KEYS))
    missing = [name for name in NEEDED if not isinstance(table.get(name), str) or not table[name]]
    if strange or missing:
        words = f"unknown key {strange[0]}" if strange else f"{missing[0]} is missing"
        raise ConfigError(f"[{key}]: {words}", hint=f"keys are {', '.join(KEYS)}", place=found.place)
    name = opts.cluster or str(opts.profile)
    argv: tuple[Json, ...] = (
        "get-token",
        f"--oidc-issuer-url={table['issuer']}",
        f"--oidc-client-id={table['client_id']}",
    )
    login: dict[str, Json] = {
        "apiVersion": "client.authentication.k8s.io/v1",
        "command": "kubelogin",
        "args": list(argv),
        "interactiveMode": "IfAvailable",
    }
    cluster: dict[str, Json] = {"server": table["server"]}
    if table.get("certificate_authority"):
        cluster["certificate-authority"] = table["certificate_authority"]
    namespace = opts.namespace or table.get("namespace")
    return _named(opts, name, cluster, {"exec": login}, {"namespace": namespace} if namespace else {})


def _of_file(opts: Options, ctx: Context) -> dict[str, Mapping[str, Json]]:
    """Take one context of a file with its cluster and user."""
    from aj.store import kubeconfig

    file = ctx.directory / str(opts.source)
    values = kubeconfig.entries(file)
    if not file.exists():
        raise OptionError(f"`--from`: {file} is not there")
    current = values.get("current-context")
    contexts = _entries(values, "contexts")
    name = current if isinstance(current, str) and current in contexts else next(iter(contexts), None)
    if name is None:
        raise ConfigError(f"{file} has no context", code="no-context")
    context = contexts[name].get("context")
    about = dict(context) if isinstance(context, Mapping) else {}
    parts = {}
    for kind, word in (("clusters", "cluster"), ("users", "user")):
        entry = _entries(values, kind).get(str(about.get(word)), {}).get(word)
        if not isinstance(entry, Mapping):
            raise ConfigError(f"{file}: context {name} names no {word} of this file", code="no-context")
        parts[word] = entry
    rest = {key: value for key, value in about.items() if key not in ("cluster", "user")}
    if opts.namespace:
        rest["namespace"] = opts.namespace
    return _named(opts, opts.cluster or str(about["cluster"]), parts["cluster"], parts["user"], rest, default=name)


def _entries(values: Mapping[str, Json], kind: str) -> dict[str, Mapping[str, Json]]:
    listed = values.get(kind)
    found = [one for one in listed if isinstance(one, Mapping)] if isinstance(listed, list | tuple) else []
    return {str(one.get("name")): one for one in found}


def _named(
    opts: Options,
    cluster: str,
    server: Mapping[str, Json],
    user: Mapping[str, Json],
    rest: Mapping[str, Json],
    *,
    default: str | None = None,
) -> dict[str, Mapping[str, Json]]:
    context = opts.context or default or cluster
    return {
        "clusters": {"name": cluster, "cluster": dict(server)},
        "users": {"name": context, "user": dict(user)},
        "contexts": {"name": context, "context": {"cluster": cluster, "user": context, **rest}},
    }
