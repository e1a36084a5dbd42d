"""How an API server of Kubernetes says no: its Status documents, in its own words."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from tests.servers.kube_schema import Cause
from tests.servers.kube_store import Kind
from tests.servers.loopback import Answer

REASONS = {
    400: "BadRequest",
    401: "Unauthorized",
    403: "Forbidden",
    404: "NotFound",
    405: "MethodNotAllowed",
    409: "Conflict",
    410: "Expired",
    415: "UnsupportedMediaType",
    422: "Invalid",
    429: "TooManyRequests",
    500: "InternalError",
    503: "ServiceUnavailable",
    504: "Timeout",
}


def status(
    code: int, message: str, reason: str = "", details: Mapping[str, object] | None = None, **headers: str
) -> Answer:
    """An error as the server writes it."""
    document: dict[str, object] = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure"}
    document |= {"message": message, "reason": reason or REASONS[code]}
    if details:
        document["details"] = dict(details)
    return Answer(code, {**document, "code": code}, {name.replace("_", "-"): value for name, value in headers.items()})


def too_many(after_s: int = 1) -> Answer:
    """The server asks to come again later."""
    words = "The server has received too many requests and has asked us to try again later"
    return status(429, words, details={"retryAfterSeconds": after_s}, Retry_After=str(after_s))


def unavailable(code: int = 503) -> Answer:
    """The server is not well: plain words, as a gateway in front of it says them."""
    return status(code, "the server is currently unable to handle the request")


@dataclass(frozen=True)
class Denied:
    """A webhook of the cluster says no to what it is shown."""

    words: str
    webhook: str = "policy.example.test"

    @property
    def answer(self) -> Answer:
        return status(400, f'admission webhook "{self.webhook}" denied the request: {self.words}', " ")


class Refused(Exception):
    """The request ends with this answer."""

    def __init__(self, answer: Answer) -> None:
        super().__init__(answer.status)
        self.answer = answer


def details_of(kind: Kind, name: str) -> dict[str, object]:
    """What a Status tells of whom it is about."""
    details: dict[str, object] = {"name": name} if name else {}
    details |= {"group": kind.group} if kind.group else {}
    return {**details, "kind": kind.plural}


def illegal(kind: Kind, name: str, causes: list[Cause], *, who: str = "") -> Answer:
    """An object with faults."""
    words = list(dict.fromkeys(f"{cause.field}: {cause.message}" for cause in causes))
    listed = words[0] if len(words) == 1 else f"[{', '.join(words)}]"
    details = {**details_of(kind, name), "kind": kind.kind, "causes": [cause.document for cause in causes]}
    return status(422, f'{who or kind.qualified} "{name}" is invalid: {listed}', details=details)


def unrecognized(kind: Kind) -> str:
    """A body that is no object."""
    return f"the object provided is unrecognized (must be of type {kind.kind}): couldn't get version/kind"


def begin(kind: Kind) -> str:
    """How the faults of a decoder begin."""
    return f'{kind.kind} in version "{kind.version}" cannot be handled as a {kind.kind}'


def not_strict(kind: Kind, faults: list[str]) -> Answer:
    """Fields that a strict decoder does not take."""
    return status(400, f"{begin(kind)}: strict decoding error: {', '.join(faults)}")


def unknown_options(kind: str, causes: list[Cause]) -> Answer:
    """Options that nobody knows."""
    words = ", ".join(f"{cause.field}: {cause.message}" for cause in causes)
    details = {"group": "meta.k8s.io", "kind": kind, "causes": [cause.document for cause in causes]}
    return status(422, f'{kind}.meta.k8s.io "" is invalid: {words}', details=details)


def other_uid(kind: Kind, name: str, wanted: str, uid: str) -> Answer:
    """An object of this name has another uid than was said."""
    why = (
        f"the UID in the precondition ({wanted}) does not match the UID in record ({uid}). "
        "The object might have been deleted and then recreated"
    )
    words = f'Operation cannot be fulfilled on {kind.qualified} "{name}": {why}'
    return status(409, words, details={**details_of(kind, name), "kind": kind.kind})
