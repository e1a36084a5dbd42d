"""Which cluster a command means: options that all of `aj k8s` share."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Annotated, Protocol

from aj.base.errors import OptionError
from aj.cli.declare import Option, filled
from aj.wire.kube import Where

if TYPE_CHECKING:
    from aj.cli.context import Context

ContextName = Annotated[
    str | None, Option("--context", "a context of the kubeconfig; else its current one", "NAME", filled)
]
Namespace = Annotated[str | None, Option("-n --namespace", "a namespace; else the context's", "NAME", filled)]
Kubeconfig = Annotated[
    str | None, Option("--kubeconfig", "another kubeconfig than the usual ones", "FILE", filled, values="file")
]


class Chosen(Protocol):
    """The words of a command line that say which cluster is meant."""

    @property
    def context(self) -> str | None: ...
    @property
    def namespace(self) -> str | None: ...
    @property
    def kubeconfig(self) -> str | None: ...


def where(opts: Chosen, ctx: Context) -> Where:
    """Return the place that is meant. Raises OptionError for a kubeconfig that is not there."""
    if opts.kubeconfig is None:
        return Where(opts.context, opts.namespace)
    path = os.path.abspath(ctx.directory / opts.kubeconfig)
    if not os.path.exists(path):
        raise OptionError(f"`--kubeconfig`: {path} is not there")
    return Where(opts.context, opts.namespace, path)
