"""Who stands at the socket: a daemon that answers, nobody, a daemon that hangs, or a stranger.

Looking changes nothing and takes at most about five seconds, also when nothing ever answers.
"""

from __future__ import annotations

from aj.base import paths as places
from aj.base import proc
from aj.base.clock import SYSTEM
from aj.base.errors import AjError, DaemonError
from aj.base.noun import dataclass
from aj.base.proc import Identity
from aj.base.settings import Settings
from aj.net.uds import Answer, Lost, Nonsense, NotSent, Silent, Wire
from aj.store import lock
from aj.store.layout import Layout
from aj.store.runtime import Place
from aj.version import VERSION
from aj.wire import codec, errors, paths
from aj.wire.daemon import Presence
from aj.wire.messages import Hello

# Pauses before asking again when the other side hung up or had no place: a second or two in all.
AGAIN_S = (0.05, 0.2, 0.5, 1.0)
FULL = f"all of its {paths.MAX_CONNECTIONS} connections are taken"


@dataclass(frozen=True)
class Sight:
    """What one look at the socket saw."""

    presence: Presence
    hello: Hello | None = None
    who: Identity | None = None
    why: str = ""


def place_of(settings: Settings) -> Place:
    """Return the runtime folder of this user. Raises DaemonError when it exists and is not private."""
    place = Place(Layout(places.folders(settings)))
    place.check()
    return place


def look(place: Place) -> Sight:
    """Ask the socket who is there. Changes nothing."""
    wire = Wire(place.socket)
    try:
        return _look(place, wire)
    finally:
        wire.close()


def _look(place: Place, wire: Wire) -> Sight:
    why = ""
    for pause_s in (*AGAIN_S, 0.0):
        try:
            answer = wire.read(paths.HELLO.path(), {paths.CLIENT: VERSION}, silence_s=paths.ADMIN_S)
        except NotSent as error:
            if error.absent:
                return Sight(Presence.STOPPED, why=str(error))
            quiet = _silent(place, str(error))
            if quiet.presence is not Presence.FOREIGN:
                return quiet
            why = str(error)  # it was killed just now, before it took the question: then the next look finds nobody
        except Silent as error:
            return _silent(place, str(error))
        except Lost:  # it may have died of the question; a stranger does it every time
            why = "it hung up without an answer"
        except Nonsense as error:
            return Sight(Presence.FOREIGN, why=str(error))
        else:
            sight = _read(answer)
            if sight is not None:
                return sight
            why = FULL
        SYSTEM.sleep(pause_s)
    said = place.read()
    if why == FULL and said is not None and proc.is_alive(said.who):
        return Sight(Presence.RUNNING, who=said.who, why=why)
    return Sight(Presence.FOREIGN, why=why)


def lingering(place: Place) -> Identity | None:
    """Return the process that is the daemon still or already, although nobody answers; or None."""
    said, held = place.read(), lock.holder(place.instance_lock)
    found = [said.who] if said is not None else []
    found += [Identity(held.pid, held.start_time, held.boot_id)] if held is not None else []
    return next((who for who in found if proc.is_alive(who)), None)


def _read(answer: Answer) -> Sight | None:
    """Say what an answer means; None when there was no place for the question."""
    hello = _read_hello(answer.body)
    if hello is not None:
        return Sight(Presence.RUNNING, hello, Identity(hello.pid, hello.start_time, proc.boot_id()))
    refused = errors.from_document(parsed(answer.body))
    if refused is not None and refused.code == "busy":
        return None
    if refused is not None and refused.code == "leaving":
        return Sight(Presence.STOPPED, why=refused.message)
    return Sight(Presence.FOREIGN, why=f"it answered {answer.status} and no word of ours")


def _silent(place: Place, why: str) -> Sight:
    said = place.read()
    if said is not None and proc.is_alive(said.who):
        return Sight(Presence.HUNG, who=said.who, why=why)
    return Sight(Presence.FOREIGN, why=why)


def parsed(body: bytes) -> object:
    """Return a JSON document, or None when it is none."""
    try:
        return codec.parse(body)
    except AjError:
        return None


def _read_hello(body: bytes) -> Hello | None:
    """Read a hello of any version; None when it is none."""
    try:
        hello = codec.load(Hello, codec.parse(body), lenient=True)
    except AjError:
        return None
    return hello if hello.name == "aj" else None


def hung(place: Place, who: Identity, why: str) -> DaemonError:
    """Say that the daemon lives and does not answer."""
    return DaemonError(
        f"the daemon (process {who.pid}) does not answer: {why}",
        code="hung",
        hint="`aj daemon restart`",
        details={"pid": who.pid, "log": str(place.layout.daemon_log)},
    )


def demand(place: Place, sight: Sight) -> Hello | None:
    """Return the hello of a running daemon, None when none runs. Raises DaemonError on a hung, full or foreign one."""
    if sight.presence is Presence.RUNNING and sight.hello is None:
        raise DaemonError(f"the daemon has no place for another caller: {sight.why}", code="busy", hint="try again")
    if sight.presence is Presence.HUNG and sight.who is not None:
        raise hung(place, sight.who, sight.why)
    if sight.presence is Presence.FOREIGN:
        raise foreign(place, sight)
    return sight.hello


def foreign(place: Place, sight: Sight) -> DaemonError:
    """Say that a stranger has the socket's path."""
    return DaemonError(
        f"what listens at {place.socket} is not the daemon of `aj`: {sight.why}",
        code="foreign",
        hint=f"find out what uses {place.socket}, or set AJ_RUNTIME_DIR to another folder",
        details={"socket": str(place.socket)},
    )
