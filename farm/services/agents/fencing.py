"""Fencing tokens never go back: what agents and phones know counts, even if the database forgot it."""

from collections.abc import Mapping, Sequence
from datetime import datetime

from sqlalchemy.engine import Connection

from farm.core.base.ids import DeviceId, HostId
from farm.store.devices import fencing_tokens
from farm.wire.agents.protocol import AttemptReport


def apply_reported_fences(
    connection: Connection, host_id: HostId, reports: Sequence[AttemptReport], *, now: datetime
) -> None:
    """Raise the tokens of a host's devices to the highest that its agent quotes for them.

    A token above the database's was given and then forgotten, by a fail-over or a copy put back: were it
    given again, two runs would have it.
    """
    quoted: dict[DeviceId, int] = {}
    for report in reports:
        if report.device_id is not None:
            quoted[report.device_id] = max(report.fence, quoted.get(report.device_id, 0))
    raise_fences(connection, host_id, quoted, now=now)


def raise_fences(
    connection: Connection, host_id: HostId, quoted: Mapping[DeviceId, int], *, now: datetime
) -> None:
    """Raise tokens that are below those quoted; phones of other hosts stay as they are."""
    for device_id, fence in fencing_tokens.fences(connection, host_id, list(quoted)).items():
        if fence < quoted[device_id]:
            fencing_tokens.raise_fence_to(
                connection,
                device_id,
                quoted[device_id],
                now=now,
                actor=f"agent:{host_id}",
                cause="a higher one is known there than the database has",
            )
