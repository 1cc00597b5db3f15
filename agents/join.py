"""Joining a farm: a join token becomes a credential, which is kept with what every later run needs."""

from dataclasses import dataclass

from agents.config import KEPT, AgentConfig, KeptSettings, find_kept
from agents.credential import Credential, enroll, find_credential
from agents.durable import write_durably
from agents.farm_api import FarmApi, farm_client
from agents.hostlock import host_lock
from agents.journal import Journal
from agents.spool import Spool
from farm.clock import Clock
from farm.core.errors import FarmUnreachable
from farm.core.ids import HostId


@dataclass(frozen=True, slots=True, kw_only=True)
class Joined:
    """How joining ended."""

    host_id: HostId
    farm_url: str
    #: The farm and name this folder had before.
    replaced: KeptSettings | None
    #: Attempts of the former enrolment that will never be reported.
    put_aside: int


async def join(config: AgentConfig, clock: Clock) -> Joined:
    """Enroll this host and keep credential, farm and name in the data folder, for its owner alone.

    Raises:
        AgentRunningError: an agent works in the data folder, and would go on with the old credential.
        AuthError: the farm does not take the token, or there is none.
        Conflict: an agent of that name is at work elsewhere.
        FarmUnreachable: no farm answers there.
        InvalidInput: this user cannot use the data folder.
    """
    with host_lock(config.data_dir):
        replaced = find_kept(config.data_dir)
        before = find_credential(config.data_dir)
        async with farm_client(config.farm_url) as http:
            api = FarmApi(http)
            # Only to the farm that it is of: it shows that we are who had the name.
            if before is not None and replaced is not None and replaced.farm_url == config.farm_url:
                api.use_credential(before.secret)
            credential = await _enrolled(config, api)
        kept = KeptSettings(farm_url=config.farm_url, host=credential.host_id)
        write_durably(config.data_dir / KEPT, kept.model_dump_json().encode(), mode=0o600)
        journal, spool = Journal(config.data_dir / "attempts"), Spool(config.data_dir / "spool")
        return Joined(
            host_id=credential.host_id,
            farm_url=config.farm_url,
            replaced=replaced,
            put_aside=put_aside(journal, spool, clock),
        )


def put_aside(journal: Journal, spool: Spool, clock: Clock) -> int:
    """Take what is left of another enrolment out of the way; gives how many attempts that were.

    The numbers of attempts mean something else to another farm. Evidence is kept, as a refused report is.
    """
    waiting, entries = spool.pending(), journal.entries()
    for attempt_id in waiting:
        spool.refuse(attempt_id, clock.now())
    for entry in entries:
        journal.remove(entry.attempt_id)
    return len({*waiting, *(entry.attempt_id for entry in entries)})


async def _enrolled(config: AgentConfig, api: FarmApi) -> Credential:
    try:
        return await enroll(config, api)
    except FarmUnreachable as error:
        raise FarmUnreachable(
            f"no farm answers agents at {config.farm_url}: {error.message}",
            hint="`farm up --agents-on` on the farm's machine says where; can this one reach that address?",
        ) from error
