"""aj credentials create: keep what opens a storage account, or a folder."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from aj.base.errors import OptionError
from aj.base.noun import dataclass
from aj.cli import value
from aj.cli.declare import Option, Word, choice, filled
from aj.model.bucket import Kind
from aj.view import action
from aj.wire.bucket import SaveCredential

if TYPE_CHECKING:
    from aj.cli.context import Context

KEY, SAS, SIGN_IN = "key", "sas", "sign-in"
OPENS = {KEY: "account key", SAS: "signature", SIGN_IN: "sign-in"}
# What other tools keep, and why it is of no use here.
FOREIGN = {"aws": "Amazon S3", "s3": "Amazon S3", "gcp": "Google Cloud Storage", "gcs": "Google Cloud Storage"}


def kind(word: str) -> str:
    """Take a kind of storage; one of another release or tool is named."""
    if word in FOREIGN:
        raise ValueError(f"{FOREIGN[word]} is not supported: `azure` and `dir` are")
    choice(*(one.value for one in Kind))(word)
    return word


@dataclass(frozen=True)
class Options:
    """What it opens, and by which right."""

    name: Annotated[str, Word("NAME", "its name here", filled)]
    kind: Annotated[str, Option("--kind", "azure, or dir for folders", "KIND", kind, values="storage")] = "azure"
    account: Annotated[str | None, Option("--account", "the storage account", "NAME", filled)] = None
    by: Annotated[
        str,
        Option("--by", "key, sas, or sign-in: then there is no value", "RIGHT", choice(KEY, SAS, SIGN_IN), values="by"),
    ] = KEY
    endpoint: Annotated[
        str | None, Option("--endpoint", "the account's address, if it is no usual one", "URL", filled)
    ] = None
    tenant: Annotated[str | None, Option("--tenant", "with --by sign-in: whose token", "ID", filled)] = None
    root: Annotated[str | None, Option("--root", "with --kind dir: the folder", "PATH", filled, values="folder")] = None
    source: Annotated[str | None, Option("--from", "the value's file; else stdin", "FILE", filled, values="file")] = (
        None
    )


def run(opts: Options, ctx: Context) -> int:
    """Keep it. Raises OptionError on parts that do not fit, Refused when the name is taken."""
    done = ctx.client.buckets.save_credential(_folder(opts, ctx) if opts.kind == Kind.DIR else _azure(opts, ctx))
    ctx.screen.show(action.done("create", [action.item(opts.name, status=done.status, state=None)], done.status))
    return 0


def _folder(opts: Options, ctx: Context) -> SaveCredential:
    if opts.root is None:
        raise OptionError("a credential of kind dir needs a folder", hint="`--root PATH`")
    if opts.account or opts.endpoint or opts.source or opts.tenant:
        raise OptionError("a folder has no account and no value", hint="`--root PATH` is all it takes")
    return SaveCredential(opts.name, Kind.DIR, "folder", root=str(ctx.directory / opts.root))


def _azure(opts: Options, ctx: Context) -> SaveCredential:
    if opts.account is None:
        raise OptionError("a credential for Azure needs an account", hint="`--account NAME`")
    if opts.root is not None:
        raise OptionError("`--root` belongs to `--kind dir`")
    if opts.by == SIGN_IN and opts.source:
        raise OptionError("a sign-in has no value", hint="leave out `--from`")
    if opts.tenant and opts.by != SIGN_IN:
        raise OptionError("`--tenant` belongs to `--by sign-in`")
    how = f"aj credentials create {opts.name} --account {opts.account}"
    found = None if opts.by == SIGN_IN else value.read(ctx, opts.source, how)
    return SaveCredential(
        opts.name, Kind.AZURE, OPENS[opts.by], opts.account, opts.endpoint, tenant=opts.tenant, value=found
    )
