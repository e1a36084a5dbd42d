"""The looking half of `aj run`: everything is resolved, checked and written down, and nothing is sent.

The same builders as for a real submission are used. No daemon, no network, no lock, no journal.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from aj.backend import registry
from aj.backend.amlt import payload
from aj.base import paths, redact
from aj.base.clock import rfc3339
from aj.base.errors import UserError
from aj.cli import spec as specs
from aj.cli.code import notes
from aj.model.job import injected
from aj.pack import digest, walk
from aj.store import atomic
from aj.view import submission as view

if TYPE_CHECKING:
    from aj.cli.context import Context
    from aj.cli.run import Options
    from aj.model.code import CodeRef
    from aj.model.job import JobSpec
    from aj.model.json import Json
    from aj.pack.selection import Selection
    from aj.template.build import Built
    from aj.view.document import Document, Item

EXPERIMENT = "aj"  # stands for the one that a real submission would ask for
VIEWS = ("argv", "files")  # what every service can show
ENVIRONMENTS = ("env", "environmentVariables")  # the names under which values of variables stand


def run(opts: Options, ctx: Context) -> int:
    """Render the submission. Raises whatever a real one would be refused for before it is sent."""
    built = specs.recipe(opts, ctx, specs.draw_id()).built()
    ctx.tell_issues(built.warnings)
    spec = _with_experiment(built.spec, ctx)
    _foresee(spec, ctx)
    selection = _selection(built, ctx) if registry.entry(spec.service).traits.moves_code else None
    if opts.strict:
        ctx.refuse_warnings()
    if opts.show:
        ctx.screen.show(_view(opts, spec, selection, ctx))
        return 0
    code = digest.of(selection) if selection else None
    found = injected(spec, accepted_at=_now(ctx), digest=code, archive_sha256=None)
    document = payload.document(spec, {**spec.env, **found})
    path = _write(spec, document, ctx)
    item = _item(spec, selection, code, path, document if opts.show_env else _masked(document))
    ctx.screen.show(view.rendered(item, str(path)))
    ctx.screen.note(view.size_text(item))
    return 0


def _now(ctx: Context) -> str:
    return rfc3339(ctx.clock.now()).replace("Z", "+00:00")


def _with_experiment(spec: JobSpec, ctx: Context) -> JobSpec:
    if spec.experiment is not None or not registry.traits(spec.service).needs_experiment:
        return spec
    ctx.screen.warn(
        "no experiment is chosen, so a submission is refused: `aj config experiment NAME`, or --experiment NAME;"
        f" here `{EXPERIMENT}` stands in its place",
        code="no-experiment",
    )
    return replace(spec, experiment=EXPERIMENT)


def _foresee(spec: JobSpec, ctx: Context) -> None:
    """Warn of everything that a submission would be refused for and that can be known here."""
    for error in registry.foresight(spec.service)(spec, ctx.config, ctx.settings, ctx.layout):
        hint = f"; {error.hint}" if error.hint else ""
        ctx.screen.warn(f"a submission is refused: {error}{hint}", code="would-be-refused")


def _selection(built: Built, ctx: Context) -> Selection:
    """Select the code and say what is odd about it. Raises UserError for what cannot be packed."""
    selection = walk.select(built.spec.code, ctx.layout.stat_cache)
    for found in selection.warnings:
        ctx.warn(found.message, code=found.code, file=found.file, line=found.line)
    notes.tell_gitignore(selection, ctx)
    walk.need_files(selection)
    specs.tell_missing_file(built, ctx)
    return selection


def _view(opts: Options, spec: JobSpec, selection: Selection | None, ctx: Context) -> Document:
    from aj.pack import ssh
    from aj.view import code as code_view

    name, traits = opts.show, registry.traits(spec.service)
    if name == "argv":
        return view.argv(spec, spec.argv, json.dumps(list(spec.argv), ensure_ascii=False))
    if name == "files" and selection is not None:
        added = ssh.payload(spec.code, paths.home(ctx.settings))
        for warning in ssh.warnings(added):
            ctx.warn(warning.message, code=warning.code)
        rows = [*code_view.members(selection), *code_view.added(added)]
        total = selection.bytes + sum(len(data) for data, _ in added.values())
        return view.files(spec, rows, selection.files + len(added), total)
    if name == "manifest" and traits.manifest and selection is not None:
        return _manifest(opts, spec, selection, ctx)
    if name == "body" and traits.native and selection is not None:
        found = _body(spec, selection, ctx)
        found = found if opts.show_env else _masked(found)
        from aj.model import commandjob

        return view.body(spec, found, commandjob.written(found).decode())
    known = [word for word in VIEWS if word == "argv" or selection is not None]
    known += ["body"] * traits.native + ["manifest"] * traits.manifest
    raise UserError(
        f"`{spec.service}` has no view `{name}`",
        hint=f"it has {', '.join(known)}",
        code="no-such-view",
    )


def _manifest(opts: Options, spec: JobSpec, selection: Selection, ctx: Context) -> Document:
    """Build the objects as a submission does; values of secrets are not among them. Raises as packing does."""
    from aj.template import dump

    packed = _packed(spec, selection, ctx)
    shown = registry.manifest(spec.service)(
        spec,
        ctx.config,
        ctx.settings,
        digest=packed.digest,
        archive_sha256=packed.archive_sha256,
        accepted_at=_now(ctx),
    )
    for note in shown.notes:
        ctx.screen.note(note)
    objects = [dict(one) if opts.show_env else _masked(one) for one in shown.objects]
    return view.manifest(spec, objects, "---\n".join(map(dump.readable, objects)).rstrip("\n"))


def _packed(spec: JobSpec, selection: Selection, ctx: Context) -> CodeRef:
    """Pack the code without keeping it."""
    from aj.pack import archive, node, ssh  # what packs costs 8 ms, and most dry runs show no body

    added = node.added if registry.traits(spec.service).native else ssh.payload
    return archive.weigh(selection, folder=ctx.layout.code, generated=added(spec.code, paths.home(ctx.settings)))


def _body(spec: JobSpec, selection: Selection, ctx: Context) -> dict[str, Json]:
    """Build the body as a submission does; what only the service can tell says so. Raises as packing does."""
    import hashlib

    from aj.model.commandjob import Code
    from aj.pack import node

    packed = _packed(spec, selection, ctx)
    code = Code(packed.digest, packed.archive_sha256, hashlib.sha256(node.bootstrap()).hexdigest())
    cloud = ctx.config.text("cloud") or "public"
    return registry.preview(spec.service)(spec, code, cloud=cloud, accepted_at=_now(ctx))


def _write(spec: JobSpec, document: Mapping[str, Json], ctx: Context) -> Path:
    """Keep the file, private, and only the newest of its kind. Raises AjError when the disk refuses."""
    from aj.template import dump

    folder = ctx.layout.dryrun
    ctx.layout.prepare()
    atomic.make_folder(folder)
    path = folder / f"{spec.id}.yaml"
    atomic.write_bytes(path, dump.dump(document).encode())
    kept = sorted(folder.glob("*.yaml"), key=lambda file: file.stat().st_mtime_ns, reverse=True)
    for old in kept[ctx.config.number("retention.dry_runs") :]:
        atomic.remove(old)
    return path


def _item(
    spec: JobSpec, selection: Selection | None, code: str | None, path: Path, document: Mapping[str, Json]
) -> Item:
    found = view.item(spec, None)
    if selection is not None:
        found["code"] = {
            "digest": code,
            "archive_sha256": None,
            "files": selection.files,
            "bytes": selection.bytes,
            "reused": None,
            "uploaded_bytes": None,
        }
    return {**found, "path": str(path), "document": document}


def _masked(value: Mapping[str, Json]) -> dict[str, Json]:
    """Return a document in which the values of variables with secret names are masked, at any depth."""
    return {key: _masked_env(item) if key in ENVIRONMENTS else _masked_below(item) for key, item in value.items()}


def _masked_below(value: Json) -> Json:
    if isinstance(value, Mapping):
        return _masked(value)
    return [_masked_below(item) for item in value] if isinstance(value, list | tuple) else value


def _masked_env(value: Json) -> Json:
    if isinstance(value, list | tuple):  # as Kubernetes has them: each with its name
        return [_masked_variable(item) for item in value]
    if not isinstance(value, Mapping):
        return _masked_below(value)
    return {name: redact.MASK if redact.is_secret_name(name) else item for name, item in value.items()}


def _masked_variable(value: Json) -> Json:
    if isinstance(value, Mapping) and "value" in value and redact.is_secret_name(str(value.get("name"))):
        return {**value, "value": redact.MASK}
    return value
