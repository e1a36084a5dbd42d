"""Routes of buckets, of transfers into them and out of them, of credentials and of secrets."""

from __future__ import annotations

from collections.abc import Mapping

from aj.daemon.call import Answer, Call, Handler, reply
from aj.wire import paths
from aj.wire.bucket import MakeBucket, SaveCredential, SaveSecret, Transfer, TransferAnswer, TransferState
from aj.wire.paths import Route

LIMIT = 1000  # objects of a list when nobody says how many


def listing(call: Call) -> Answer:
    """List buckets."""
    with call.line.alive():
        return reply(call.engine.buckets.listing(call.query.get("credential")))


def make(call: Call) -> Answer:
    """Make a bucket."""
    return reply(call.engine.buckets.make(call.decode(MakeBucket)))


def objects(call: Call) -> Answer:
    """List what is in a bucket."""
    limit, query = call.whole("limit", LIMIT), call.query
    with call.line.alive():
        found = call.engine.buckets.objects(
            call.name, query.get("credential"), query.get("prefix", ""), query.get("cursor"), limit
        )
        return reply(found)


def delete(call: Call) -> Answer:
    """Remove a bucket."""
    return reply(call.engine.buckets.delete(call.name, call.query.get("credential")))


def begin(call: Call) -> Answer:
    """Begin a transfer."""
    return reply(call.engine.buckets.begin(call.decode(Transfer)))


def follow(call: Call) -> Answer:
    """Wait for news of a transfer."""
    after = call.whole("after", 0)

    def look(timeout_s: float) -> TransferAnswer:
        return call.engine.buckets.follow(call.name, after, timeout_s)

    def has_news(answer: TransferAnswer) -> bool:
        return answer.version > after or answer.state is not TransferState.RUNNING

    return reply(call.line.poll(look, has_news, call.seconds("timeout_s")))


def stop(call: Call) -> Answer:
    """Stop a transfer."""
    return reply(call.engine.buckets.stop(call.name))


def credentials(call: Call) -> Answer:
    """List credentials, without what they hold."""
    return reply(call.engine.buckets.credentials())


def save_credential(call: Call) -> Answer:
    """Keep a credential."""
    return reply(call.engine.buckets.save_credential(call.decode(SaveCredential)))


def delete_credential(call: Call) -> Answer:
    """Forget a credential."""
    return reply(call.engine.buckets.delete_credential(call.name))


def secrets(call: Call) -> Answer:
    """List the names of secrets."""
    return reply(call.engine.buckets.secrets())


def save_secret(call: Call) -> Answer:
    """Keep a secret."""
    return reply(call.engine.buckets.save_secret(call.decode(SaveSecret)))


def delete_secret(call: Call) -> Answer:
    """Forget a secret."""
    return reply(call.engine.buckets.delete_secret(call.name))


HANDLERS: Mapping[Route, Handler] = {
    paths.BUCKETS: listing,
    paths.BUCKET_MAKE: make,
    paths.BUCKET: objects,
    paths.BUCKET_DELETE: delete,
    paths.TRANSFER: begin,
    paths.TRANSFER_LOOK: follow,
    paths.TRANSFER_STOP: stop,
    paths.CREDENTIALS: credentials,
    paths.CREDENTIAL_SAVE: save_credential,
    paths.CREDENTIAL_DELETE: delete_credential,
    paths.SECRETS: secrets,
    paths.SECRET_SAVE: save_secret,
    paths.SECRET_DELETE: delete_secret,
}
