"""Which files a host's agent may have: those of its own work, now and next."""

from collections.abc import Iterator

from sqlalchemy.engine import Connection

from farm.core.base.ids import Digest, HostId
from farm.core.errors import Forbidden
from farm.services.agents.exchange.answer import upcoming_files
from farm.store.hosts import hosts
from farm.store.jobs import attempts


def check_file_is_needed(connection: Connection, host_id: HostId, digest: Digest) -> None:
    """Refuse an agent a file that is none of its own work's.

    Raises:
        Forbidden: neither an attempt it has in hand nor the next job of one of its phones names it.
    """
    if digest not in _needed(connection, host_id):
        raise Forbidden(
            f"no work of host {host_id} names the file {digest}",
            hint="an agent gets what its attempts and the next jobs of its phones need, while they do",
        )


def _needed(connection: Connection, host_id: HostId) -> Iterator[Digest]:
    session = hosts.current_session(connection, host_id)
    if session is not None:
        for attempt in attempts.live_attempts(connection, session.session_id):
            yield from (file.digest for file in attempt.plan.files)
    yield from upcoming_files(connection, host_id)
