"""A look at what this machine offers besides `aj`: programs, kubeconfigs, Azure's variables, proxies, certificates.

Nothing is asked of any network. No value of a variable that may hold a secret is shown.
"""

from __future__ import annotations

import functools
import os
import stat
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from urllib.parse import urlsplit

from aj.base import proc, redact
from aj.base.errors import ConfigError
from aj.base.settings import Settings
from aj.model import finding
from aj.model.finding import Finding
from aj.net import proxies

ANSWER_S = 10.0  # for a program to tell its version; `az` takes two seconds
# What each program is for, and how to get it. Only what is asked for needs it.
PROGRAMS: Mapping[str, tuple[tuple[str, ...], str, str]] = {
    "git": (("--version",), "templates of a shared repository", "install git"),
    "az": (
        ("version", "-o", "tsv"),
        "signing in to Azure",
        "install the Azure CLI, or set AZURE_CLIENT_ID and its kin",
    ),
    "amlt": (("--version",), "`service: amlt`", "`aj init amlt` tells how"),
    "uv": (("--version",), "scripts with dependencies of their own", "install uv, or name `python3` in the command"),
    "podman": (("--version",), "images on this machine", "install podman"),
}
PEM = b"-----BEGIN CERTIFICATE-----"


def checks(settings: Settings) -> Iterator[tuple[str, Callable[[], Finding | Iterator[Finding]]]]:
    """Yield every check with its name."""
    for name in PROGRAMS:
        yield name, functools.partial(_program, name, settings)
    yield "kubeconfig", lambda: _kubeconfigs(settings)
    yield "azure sign-in", lambda: _sign_in(settings)
    yield "proxy", lambda: _proxies(settings)
    yield "certificates", lambda: _certificates(settings)


def _program(name: str, settings: Settings) -> Finding:
    words, purpose, how = PROGRAMS[name]
    path = proc.find(name, settings.get("PATH"))
    if path is None:
        return finding.absent(name, f"not on the PATH; it is for {purpose}", how)
    try:
        ran = proc.run([path, *words], timeout_s=ANSWER_S, env=dict(settings.env))
    except OSError as error:  # it cannot start, or takes its time
        return finding.failed(name, f"{path}: {error.strerror or error}", how)
    told = (ran.out or ran.err).decode(errors="replace").strip().partition("\n")[0]
    if ran.code != 0:
        return finding.failed(name, f"{path} ends with exit code {ran.code}: {redact.text(told)}", how)
    return finding.ok(name, f"{told.split(chr(9))[0]} ({path})")


def _kubeconfigs(settings: Settings) -> Iterator[Finding]:
    named = settings.get("KUBECONFIG")
    home = settings.get("HOME")
    usual = Path(home) / ".kube" / "config" if home else None
    if named is None and (usual is None or not usual.exists()):
        yield finding.absent("kubeconfig", "none; it is for `service: volcano`", "export KUBECONFIG=FILE")
        return
    files = [Path(word) for word in named.split(os.pathsep) if word] if named else [usual] if usual else []
    for file in files:
        yield _kubeconfig(file)


def _kubeconfig(file: Path) -> Finding:
    from aj.store import kubeconfig  # it reads YAML, and most commands do not

    if not file.exists():
        return finding.failed("kubeconfig", f"{file}: no such file", "export KUBECONFIG=FILE")
    try:
        whole = kubeconfig.entries(file)
    except ConfigError as error:
        return finding.failed("kubeconfig", str(error), f"mend {error.place or file}")
    listed = whole.get("contexts")
    every = listed if isinstance(listed, list | tuple) else ()
    contexts = [one.get("name") for one in every if isinstance(one, Mapping)]
    current = whole.get("current-context")
    if current and current not in contexts:
        words = f"{file}: its current context {current} is not among {', '.join(map(str, contexts)) or 'none'}"
        return finding.warning("kubeconfig", words, "`kubectl config use-context NAME`, or set target.context")
    mode = stat.S_IMODE(file.stat().st_mode)
    if mode & 0o077:
        return finding.warning("kubeconfig", f"{file} is open to other users (mode {mode:03o})", f"`chmod 600 {file}`")
    return finding.ok("kubeconfig", f"{file}: {len(contexts)} contexts, {current or 'none'} is the current one")


def _sign_in(settings: Settings) -> Finding:
    """See which source of credentials there is. Whether Azure takes it, only `aj auth status` can tell."""
    client, tenant = settings.get("AZURE_CLIENT_ID"), settings.get("AZURE_TENANT_ID")
    secrets = ("AZURE_CLIENT_SECRET", "AZURE_CLIENT_CERTIFICATE_PATH", "AZURE_FEDERATED_TOKEN_FILE")
    given = [name for name in secrets if settings.get(name)]
    if given and not (client and tenant):
        missing = " and ".join(name for name in ("AZURE_CLIENT_ID", "AZURE_TENANT_ID") if not settings.get(name))
        return finding.failed("azure sign-in", f"{given[0]} is set without {missing}", f"export {missing}=…")
    for name in ("AZURE_CLIENT_CERTIFICATE_PATH", "AZURE_FEDERATED_TOKEN_FILE"):
        file = settings.get(name)
        if file and not os.access(file, os.R_OK):
            return finding.failed("azure sign-in", f"{name}: {file} cannot be read", f"export {name}=FILE")
    if given:
        return finding.ok("azure sign-in", f"{given[0]}; `aj auth status` asks Azure")
    home = settings.get("HOME")
    folder = settings.get("AZURE_CONFIG_DIR") or (f"{home}/.azure" if home else "")
    if folder and (Path(folder) / "azureProfile.json").exists():
        return finding.ok("azure sign-in", f"az has signed in here ({folder}); `aj auth status` asks Azure")
    first = "" if proc.find("az", settings.get("PATH")) else "install the Azure CLI, then "
    return finding.absent("azure sign-in", "nobody signed in on this machine", f"{first}`az login`")


def _proxies(settings: Settings) -> Iterator[Finding]:
    found = False
    for scheme in ("https", "http"):
        try:
            proxy = proxies.chosen(settings, scheme)
        except ConfigError as error:
            yield finding.failed("proxy", error.message, error.hint)
            found = True
            continue
        if proxy is not None:
            parts = urlsplit(proxy)
            yield finding.ok("proxy", f"{scheme}: {parts.hostname}:{parts.port or 80}")
            found = True
    if not found:
        yield finding.absent("proxy", "none is set")


def _certificates(settings: Settings) -> Iterator[Finding]:
    named = [(name, value) for name in proxies.BUNDLES if (value := settings.get(name))]
    for name, file in named:
        try:
            whole = Path(file).read_bytes()
        except OSError as error:
            yield finding.failed("certificates", f"{name}: {file}: {error.strerror}", f"`unset {name}`")
            continue
        count = whole.count(PEM)
        if count:
            yield finding.ok("certificates", f"{name}: {count} in {file}")
        else:
            yield finding.failed("certificates", f"{name}: {file} holds no certificate", f"`unset {name}`")
    if not named:
        yield finding.ok("certificates", "those of this system")
