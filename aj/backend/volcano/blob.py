"""Code through blob storage: the archive goes up under its own hash, and pods get an address that reads it alone.

It is the same archive as everywhere, uploaded with the signed-in user's own token; nobody signs an upload.
"""

from __future__ import annotations

from pathlib import Path

from aj.azure import blobs, blocks
from aj.azure.arm import Session
from aj.azure.blocks import SIZES, Sizes, Uploaded
from aj.azure.line import ByToken, Limits, Place
from aj.backend.volcano import variables
from aj.backend.volcano.options import Options
from aj.backend.volcano.telling import Tell, Telling
from aj.base.noun import dataclass
from aj.base.settings import Settings
from aj.model.code import CodeRef

ARCHIVE_TYPE = "application/gzip"


def place(session: Session, chosen: Options) -> Place:
    """Return the container that a template names for code."""
    account, container = chosen.upload.storage_account or "", chosen.upload.container or ""
    return Place(account, container, session.cloud.blob_url(account))


@dataclass(frozen=True)
class Upload:
    """The code of one job on its way to a container."""

    session: Session
    settings: Settings
    chosen: Options
    archive: Path
    code: CodeRef
    sizes: Sizes = SIZES
    limits: Limits | None = None

    def carry_out(self, tell: Tell) -> Uploaded:
        """Bring it, or find it there. Raises UserError when it is too large, and as `blocks.upload`."""
        session, sha256 = self.session, self.code.archive_sha256
        blocks.check_size(self.code.archive_bytes, limit=self.sizes.limit)
        where, telling = place(session, self.chosen), Telling(session.clock, tell)
        name = variables.blob_path(self.chosen, sha256)
        telling.begin(f"to container {where.container} of {where.account}")
        with (
            blocks.of_file(self.archive, sha256, ARCHIVE_TYPE) as source,
            blobs.opened(where, ByToken(session.tokens, session.tenant), self.settings, self.limits) as container,
        ):
            done = blocks.upload(container, name, source, clock=session.clock, progress=telling.moved, sizes=self.sizes)
        telling.end(done.size_bytes, done.sent_bytes, done.skipped_bytes)
        return done
