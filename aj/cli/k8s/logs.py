"""aj k8s logs: what a pod printed, or the pod of one rank of a job."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from aj.base import redact
from aj.base.errors import OptionError
from aj.base.noun import dataclass
from aj.cli import cluster
from aj.cli.declare import Option, Word, filled, whole
from aj.view import k8s as view
from aj.view.screen import Format

if TYPE_CHECKING:
    from aj.cli.context import Context


@dataclass(frozen=True)
class Options:
    """Of what, how much, and where."""

    name: Annotated[str, Word("POD|JOB", "a pod, or a job by its name or AJ ID", filled)]
    rank: Annotated[int | None, Option("--rank", "of a job: the pod of this rank (0)", "N", whole())] = None
    container: Annotated[str | None, Option("-c --container", "another container than `main`", "NAME", filled)] = None
    tail: Annotated[int, Option("--tail", "how many lines at most (200)", "N", whole(1, 5000))] = 200
    previous: Annotated[bool, Option("--previous", "of the container before its last restart")] = False
    follow: Annotated[bool, Option("-f --follow", "go on until the pod has ended")] = False
    raw: Annotated[bool, Option("--raw", "as it is: nothing that looks like a secret is masked")] = False
    context: cluster.ContextName = None
    namespace: cluster.Namespace = None
    kubeconfig: cluster.Kubeconfig = None


def run(opts: Options, ctx: Context) -> int:
    """Print it. Raises NotFound, OptionError, Refused, AuthError, RemoteError."""
    if opts.follow and (opts.previous or opts.container):
        raise OptionError("`-f` goes with neither `-c` nor `--previous`", hint="leave out `-f`")
    where, client = cluster.where(opts, ctx), ctx.client.k8s
    if opts.follow:
        for page in client.follow(where, opts.name, rank=opts.rank, tail=opts.tail):
            _print(page.pod, _shown(page.data, opts), ctx)
        return 0
    page = client.log(
        where, opts.name, rank=opts.rank, container=opts.container, previous=opts.previous, tail=opts.tail
    )
    data = _shown(page.data, opts)
    if ctx.screen.format is Format.TABLE:
        ctx.screen.verbatim(data)
    else:
        ctx.screen.show(view.log(page.pod, data))
    if not data:
        ctx.screen.note(f"pod {page.pod} has printed nothing yet")
    return 0


def _print(pod: str, data: bytes, ctx: Context) -> None:
    if ctx.screen.format is Format.TABLE:
        ctx.screen.verbatim(data)
        return
    for line in data.splitlines():
        ctx.screen.item(view.line(pod, line))


def _shown(data: bytes, opts: Options) -> bytes:
    """Mask what looks like a secret, and leave every other byte as it is."""
    if opts.raw:
        return data
    return redact.text(data.decode(errors="surrogateescape")).encode(errors="surrogateescape")
