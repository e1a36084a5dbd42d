"""Buckets as people ask for them: made, listed, filled, emptied and removed; with what opens them, and secrets.

A transfer works in a thread of its own and goes on while somebody asks how far it is. One that nobody has asked
about for a minute is stopped: whoever began it is gone. What it brought over stays, so it is simply begun again.
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
import threading
from collections.abc import Callable
from dataclasses import field
from pathlib import Path

from aj.base.clock import Clock, rfc3339
from aj.base.errors import AjError, NotFound, Refused, UserError
from aj.base.noun import dataclass
from aj.bucket import fetch, mirror, scan
from aj.bucket.door import Door
from aj.bucket.mirror import Upload
from aj.bucket.scope import Scope
from aj.bucket.storage import Storage, check_name, objects
from aj.bucket.transfer import Pace, Progress, Stopped
from aj.model.bucket import HERE, Bound, Kind
from aj.store import buckets, credentials, jobs, secrets
from aj.store.credentials import ACCOUNT_KEY, FOLDER, SIGN_IN, SIGNATURE, Credential
from aj.store.layout import Layout
from aj.wire.bucket import (
    BucketList,
    BucketRow,
    CredentialList,
    Direction,
    MakeBucket,
    Objects,
    SaveCredential,
    SaveSecret,
    SecretList,
    SecretRow,
    Transfer,
    TransferAnswer,
    TransferState,
)
from aj.wire.messages import Done

LOOK_S = 0.5  # how often progress is told
LEASE_S = 60.0  # a transfer that nobody has asked about for so long is stopped
KEPT = 50  # transfers that have ended and can still be asked about
PASSING = ("cannot-write", "conflict", "busy", "moving", "no-such-object")  # errors that may be over next time
PAGE = 5000  # objects of one answer, at most; the service itself gives no more


class Storages:
    """What can be asked about buckets. Safe between threads."""

    def __init__(self, layout: Layout, door: Door, clock: Clock) -> None:
        self._layout = layout
        self._door = door
        self._clock = clock
        self._guard = threading.Lock()
        self._transfers: dict[str, _Running] = {}

    # buckets

    def listing(self, credential: str | None) -> BucketList:
        """List the buckets that a credential opens, or all credentials. Raises NotFound, AjError for a single one."""
        if credential is not None:
            return BucketList(tuple(self._rows(credential)))
        rows: list[BucketRow] = []
        told: list[str] = []
        for name in (HERE, *credentials.names(self._layout)):
            try:
                rows += self._rows(name)
            except AjError as error:
                told.append(f"credential {name}: {error.message}")
        return BucketList(tuple(rows), tuple(told))

    def _rows(self, name: str) -> list[BucketRow]:
        found = self._door.credential(name)
        rows = []
        for bucket in self._door.buckets(found):
            storage = self._door.open(bucket, name)
            seen = storage.look() if found.kind is Kind.DIR else None
            job = seen.owner.job if seen and seen.owner else None
            rows.append(BucketRow(bucket, found.kind, name, storage.label, job))
        return rows

    def make(self, asked: MakeBucket) -> Done:
        """Make a bucket; one that is there stays as it is. Raises NotFound, Refused, UserError, AjError."""
        storage = self._door.open(asked.name, asked.credential)
        made = Pace(self._clock).insist(storage.create)
        buckets.remember(self._layout, asked.name, asked.credential or HERE, clock=self._clock)
        return Done("ok" if made else "noop", storage.label)

    def objects(self, bucket: str, credential: str | None, prefix: str, cursor: str | None, limit: int) -> Objects:
        """List a part of what is in a bucket. Raises NotFound, AjError."""
        storage = self._door.open(bucket, credential)
        try:
            page = Pace(self._clock).insist(lambda: storage.page(prefix, cursor, max(1, min(limit, PAGE))))
        except NotFound as error:
            if error.code == "no-such-bucket":
                error.hint = buckets.way(self._layout, bucket, credential) or _make_it(bucket, credential)
            raise
        return Objects(storage.label, page.objects, page.cursor, page.told)

    def delete(self, bucket: str, credential: str | None) -> Done:
        """Remove a bucket with all objects. Raises NotFound, Refused while a job uses it, AjError."""
        name = credential or HERE
        users = self._users(lambda bound: (bound.bucket, bound.credential) == (bucket, name))
        if users:
            raise Refused(f"bucket {bucket} is used by job {', '.join(users)}", code="in-use")
        storage = self._door.open(bucket, credential)
        pace = Pace(self._clock)
        if pace.insist(storage.look) is None:
            hint = buckets.way(self._layout, bucket, credential) or "`aj bucket list`"
            raise NotFound(f"no bucket {storage.label}", code="no-such-bucket", hint=hint)
        pace.insist(storage.delete)
        buckets.forget(self._layout, bucket, name, clock=self._clock)
        return Done("ok", storage.label)

    def _users(self, uses: Callable[[Bound], bool]) -> list[str]:
        """Return the jobs that are not over and use something."""
        return [
            job.id
            for job in jobs.listing(self._layout, lambda _: None)
            if not job.is_over and job.attached and any(uses(bound) for bound in job.attached.bound.values())
        ]

    # transfers

    def begin(self, asked: Transfer) -> TransferAnswer:
        """Begin a transfer. Raises NotFound, UserError, AjError before anything goes over."""
        storage = self._door.open(asked.bucket, asked.credential)
        if Pace(self._clock).insist(storage.look) is None:
            hint = buckets.way(self._layout, asked.bucket, asked.credential) or _make_it(asked.bucket, asked.credential)
            raise NotFound(f"no bucket {storage.label}", code="no-such-bucket", hint=hint)
        buckets.remember(self._layout, asked.bucket, asked.credential or HERE, clock=self._clock)
        path = Path(asked.path)
        if not path.is_absolute():
            raise UserError(f"{asked.path} is no absolute path", code="bad-field")
        if asked.direction is Direction.UPLOAD and not path.exists():
            hint = f"`ls {Path(asked.path).parent}` shows what is there; the path comes first, then the bucket"
            raise NotFound(f"{asked.path} does not exist", code="no-such-file", hint=hint)
        prefix = asked.prefix.strip("/")
        if prefix:
            check_name(prefix)
            if asked.direction is Direction.DOWNLOAD:
                self._need(storage, prefix)
        running = _Running(os.urandom(8).hex(), asked, storage, prefix, self._clock, self._layout.downloads)
        with self._guard:
            self._forget_old()
            self._transfers[running.id] = running
        running.start()
        return running.answer()

    def _need(self, storage: Storage, prefix: str) -> None:
        """Raise NotFound when there is no object of this name and none below it."""
        pace = Pace(self._clock)
        try:
            pace.insist(lambda: storage.head(prefix))
            return
        except NotFound as error:
            if error.code == "no-such-bucket":
                raise
        told: list[str] = []
        below = pace.insist(lambda: next(objects(storage, f"{prefix}/", told.append), None))
        if below is None and not told:
            hint = "`aj bucket list BUCKET` shows what is there"
            raise NotFound(f"nothing named {prefix} in {storage.label}", code="no-such-object", hint=hint)

    def _forget_old(self) -> None:
        over = [name for name, one in self._transfers.items() if one.state is not TransferState.RUNNING]
        for name in over[: max(0, len(over) - KEPT)]:
            del self._transfers[name]

    def follow(self, name: str, after: int, timeout_s: float) -> TransferAnswer:
        """Tell how far a transfer is, once there is news or the time is over. Raises NotFound."""
        return self._transfer(name).wait(after, timeout_s)

    def stop(self, name: str) -> TransferAnswer:
        """Stop a transfer; what it brought over stays. Raises NotFound."""
        running = self._transfer(name)
        running.stop.set()
        return running.answer()

    def _transfer(self, name: str) -> _Running:
        with self._guard:
            found = self._transfers.get(name)
        if found is None:
            raise NotFound(f"no transfer {name}", code="no-such-transfer")
        return found

    # credentials and secrets

    def credentials(self) -> CredentialList:
        """Tell of all credentials."""
        found, told = credentials.listing(self._layout)
        return CredentialList(tuple(found), tuple(told))

    def save_credential(self, asked: SaveCredential) -> Done:
        """Keep a credential. Raises UserError on parts that do not fit, Refused when the name is taken."""
        _check(asked)
        at = rfc3339(self._clock.now())
        made = Credential(
            asked.name,
            asked.kind,
            asked.opens,
            asked.account,
            asked.endpoint,
            asked.root,
            asked.tenant,
            at,
            asked.value,
        )
        credentials.save(self._layout, made)
        return Done("ok", asked.name)

    def delete_credential(self, name: str) -> Done:
        """Forget a credential. Raises NotFound, Refused while a job needs it."""
        if name == HERE:
            raise Refused(f"`{HERE}` is always there", code="built-in")
        users = self._users(lambda bound: bound.credential == name)
        if users:
            raise Refused(f"credential `{name}` is used by job {', '.join(users)}", code="in-use")
        credentials.delete(self._layout, name)
        return Done("ok", name)

    def secrets(self) -> SecretList:
        """Tell of all secrets."""
        return SecretList(tuple(SecretRow(one.name, one.created_at) for one in secrets.listing(self._layout)))

    def save_secret(self, asked: SaveSecret) -> Done:
        """Keep a secret. Raises UserError, Refused when the name is taken."""
        secrets.save(self._layout, asked.name, asked.value)
        return Done("ok", asked.name)

    def delete_secret(self, name: str) -> Done:
        """Forget a secret. Raises NotFound."""
        secrets.delete(self._layout, name)
        return Done("ok", name)


def _check(asked: SaveCredential) -> None:
    """Refuse a credential whose parts do not fit its kind. Raises UserError."""
    if asked.kind is Kind.DIR:
        if asked.opens != FOLDER or asked.value is not None or not (asked.root or "").startswith("/"):
            raise UserError(
                "a credential for folders has the absolute path of one, and no value", code="bad-credential"
            )
        return
    if not asked.account:
        raise UserError("a credential for Azure names an account", hint="`--account NAME`", code="bad-credential")
    if asked.opens not in (ACCOUNT_KEY, SIGNATURE, SIGN_IN) or (asked.opens == SIGN_IN) != (asked.value is None):
        raise UserError("an account key or a signature has a value, a sign-in has none", code="bad-credential")
    if asked.opens == ACCOUNT_KEY and not _is_base64(asked.value or ""):
        hint = "the portal shows it under `Access keys`; `--by sas` takes a signature"
        raise UserError("the value is no account key: a key is base64", hint=hint, code="bad-credential")
    if asked.endpoint is not None and not asked.endpoint.startswith(("https://", "http://")):
        raise UserError(f"`{asked.endpoint}` is no address", hint="`--endpoint https://HOST`", code="bad-credential")


def _is_base64(value: str) -> bool:
    try:
        return bool(base64.b64decode(value, validate=True))
    except ValueError:
        return False


@dataclass
class _Running:
    """One transfer on its way."""

    id: str
    asked: Transfer
    storage: Storage
    prefix: str
    clock: Clock
    folder: Path
    stop: threading.Event = field(default_factory=threading.Event)
    state: TransferState = TransferState.RUNNING
    problem: str | None = None
    goes_on: bool = True
    warnings: tuple[str, ...] = ()
    _changed: threading.Condition = field(default_factory=threading.Condition)
    _version: int = 0
    _asked_at: float = 0.0

    def __post_init__(self) -> None:
        self.progress = Progress(self._tick)
        self._asked_at = self.clock.monotonic()

    def start(self) -> None:
        """Begin to work."""
        threading.Thread(target=self._run, name="transfer", daemon=True).start()

    def _tick(self) -> None:
        with self._changed:
            self._version += 1
            self._changed.notify_all()
        if self.clock.monotonic() - self._asked_at > LEASE_S:
            self.stop.set()

    def wait(self, after: int, timeout_s: float) -> TransferAnswer:
        """Wait for news."""
        self._asked_at = self.clock.monotonic()
        with self._changed:
            self._changed.wait_for(lambda: self._version > after or self.state is not TransferState.RUNNING, timeout_s)
        return self.answer()

    def answer(self) -> TransferAnswer:
        """Tell how far it is."""
        told = self.progress
        return TransferAnswer(
            id=self.id,
            direction=self.asked.direction,
            label=f"{self.storage.label}/{self.prefix}".rstrip("/"),
            path=self.asked.path,
            state=self.state,
            objects=told.objects,
            total_objects=told.total_objects,
            bytes=told.bytes,
            total_bytes=told.total_bytes,
            skipped=told.skipped,
            problem=self.problem,
            version=self._version,
            goes_on=self.goes_on,
            warnings=self.warnings,
        )

    def _run(self) -> None:
        state, self.problem = TransferState.FAILED, "it broke off"
        try:
            self.problem = self._carry_out(Pace(self.clock, self.stop))
            state = TransferState.FAILED if self.problem else TransferState.DONE
        except Stopped as error:
            state, self.problem = TransferState.STOPPED, error.message
        except AjError as error:
            self.problem = str(error)
            self.goes_on = error.retryable or error.code in PASSING
        finally:
            with self._changed:
                self.state = state
                self._version += 1
                self._changed.notify_all()

    def _carry_out(self, pace: Pace) -> str | None:
        path = Path(self.asked.path)
        if self.asked.direction is Direction.DOWNLOAD:
            return self._download(path, pace)
        if path.is_dir():
            upload = Upload(self._scope(), path)
            upload.look(pace)
            done = upload.round(pace, self.progress)
            self.goes_on = bool(done.failed or done.moving)
            return done.problem
        return self._upload_file(path, pace)

    def _scope(self) -> Storage:
        return Scope(self.storage, f"{self.prefix}/" if self.prefix else "")

    def _upload_file(self, path: Path, pace: Pace) -> str | None:
        name = check_name(path.name)
        try:
            opened = scan.Opened(path.parent, path.name)
        except OSError as error:
            raise AjError(f"{path} cannot be read: {error.strerror}", code="unreadable-file") from error
        with opened:
            self.progress.expect(1, opened.size)
            scope = self._scope()
            try:
                there = pace.insist(lambda: scope.head(name))
            except NotFound:
                there = None
            if there is not None and (there.size_bytes, there.stamp) == (opened.size, opened.mtime_ns):
                self.progress.skip(1, opened.size)
                return None
            pace.insist(lambda: scope.put(name, opened, self.progress.moved, opened.mtime_ns))
            self.progress.done()
            return f"{path} was written to while it was uploaded" if opened.has_changed() else None

    def _download(self, path: Path, pace: Pace) -> str | None:
        if self.prefix:
            try:
                found = pace.insist(lambda: self.storage.head(self.prefix))
            except NotFound:
                found = None
            if found is not None:
                self.progress.expect(1, found.size_bytes)
                target = path / self.prefix.rpartition("/")[2] if path.is_dir() else path
                fetch.fetch(self.storage, found, target, pace, self.progress)
                self.progress.done()
                return None
        done = mirror.download(self._scope(), path, pace, notes=self._notes(path), progress=self.progress)
        self.warnings = done.told
        return None

    def _notes(self, path: Path) -> Path:
        """Return where it is noted what of this place was brought into this folder."""
        words = json.dumps([self.asked.credential, self.asked.bucket, self.prefix, os.path.realpath(path)])
        return self.folder / f"{hashlib.sha256(words.encode()).hexdigest()[:32]}.notes"


def _make_it(bucket: str, credential: str | None) -> str:
    return f"`aj bucket create {bucket}{f' --credentials {credential}' if credential else ''}`"
