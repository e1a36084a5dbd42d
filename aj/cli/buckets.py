"""Options of every command that submits a job with buckets, and what they ask for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Protocol

from aj.cli.declare import Option, filled, whole

if TYPE_CHECKING:
    from aj.model.bucket import Buckets, Wanted

_NAME = "NAME"
Input = Annotated[
    str | None, Option("--input-bucket", "what stands in /mnt/input, read-only", _NAME, filled, values="bucket")
]
Output = Annotated[
    str | None, Option("--output-bucket", "where /mnt/output goes, each minute", _NAME, filled, values="bucket")
]
Checkpoint = Annotated[
    str | None,
    Option("--checkpoint-bucket", "what keeps /mnt/checkpoint for the next start", _NAME, filled, values="bucket"),
]
_OPENS = "the saved credential that opens the {} bucket"
_REGION = "the region of the {} bucket"
InputCredentials = Annotated[
    str | None,
    Option("--input-storage-credentials", _OPENS.format("input"), _NAME, filled, values="credential"),
]
OutputCredentials = Annotated[
    str | None,
    Option("--output-storage-credentials", _OPENS.format("output"), _NAME, filled, values="credential"),
]
CheckpointCredentials = Annotated[
    str | None,
    Option("--checkpoint-storage-credentials", _OPENS.format("checkpoint"), _NAME, filled, values="credential"),
]
InputRegion = Annotated[str | None, Option("--input-storage-region", _REGION.format("input"), "REGION", filled)]
OutputRegion = Annotated[str | None, Option("--output-storage-region", _REGION.format("output"), "REGION", filled)]
CheckpointRegion = Annotated[
    str | None, Option("--checkpoint-storage-region", _REGION.format("checkpoint"), "REGION", filled)
]
CheckpointKeep = Annotated[
    int | None, Option("--checkpoint-keep", "complete checkpoints that stay (3)", "N", whole(1, 1000))
]
RequireOutput = Annotated[bool, Option("--require-output", "it has failed when its last upload did")]
Secrets = Annotated[
    tuple[str, ...],
    Option("--secret", "a saved secret as a variable of the job", _NAME, filled, repeats=True, values="secret"),
]


class Given(Protocol):
    """The options of a command that submits."""

    @property
    def input_bucket(self) -> str | None: ...
    @property
    def output_bucket(self) -> str | None: ...
    @property
    def checkpoint_bucket(self) -> str | None: ...
    @property
    def input_credentials(self) -> str | None: ...
    @property
    def output_credentials(self) -> str | None: ...
    @property
    def checkpoint_credentials(self) -> str | None: ...
    @property
    def input_region(self) -> str | None: ...
    @property
    def output_region(self) -> str | None: ...
    @property
    def checkpoint_region(self) -> str | None: ...
    @property
    def checkpoint_keep(self) -> int | None: ...
    @property
    def require_output(self) -> bool: ...


def asked(opts: Given) -> Buckets | None:
    """Return what the options ask of buckets; None when they say nothing."""
    found = (
        _wanted(opts.input_bucket, opts.input_credentials, opts.input_region),
        _wanted(opts.output_bucket, opts.output_credentials, opts.output_region),
        _wanted(opts.checkpoint_bucket, opts.checkpoint_credentials, opts.checkpoint_region),
    )
    if not any(found) and opts.checkpoint_keep is None and not opts.require_output:
        return None
    from aj.model.bucket import KEEP, Buckets

    keep = KEEP if opts.checkpoint_keep is None else opts.checkpoint_keep
    return Buckets(*found, checkpoint_keep=keep, require_output=opts.require_output)


def _wanted(bucket: str | None, credential: str | None, region: str | None) -> Wanted | None:
    if bucket is None and credential is None and region is None:
        return None
    from aj.model.bucket import Wanted

    return Wanted(bucket, credential, region)
