"""Where the agent's own files lie on a phone: everything under one folder of the work root."""

from farm.core.base.ids import Digest


def work_folder(work_root: str) -> str:
    """The agent's folder; nothing of ours is ever outside of it."""
    return f"{work_root}/benchfarm"


def stay_on_record(work_root: str) -> str:
    """What the phone's screen is to do again once nothing of ours runs; there only until then."""
    return f"{work_folder(work_root)}/stay_on"


def charge_record(work_root: str) -> str:
    """How the phone's charging goes on again; there only while it is kept from charging."""
    return f"{work_folder(work_root)}/charge"


def controls_record(work_root: str) -> str:
    """What the phone's clocks and cores were before they were set; there only while they are."""
    return f"{work_folder(work_root)}/controls"


def cache_folder(work_root: str) -> str:
    """Verified files, named by their digests."""
    return f"{work_folder(work_root)}/cache"


def incoming_folder(work_root: str) -> str:
    """Files on their way to the cache, not verified yet."""
    return f"{work_folder(work_root)}/incoming"


def cache_path(work_root: str, digest: Digest) -> str:
    """The name a file has once it is verified."""
    return f"{cache_folder(work_root)}/{digest}"


def run_folder(work_root: str, fence: int) -> str:
    """One run's folder, its current folder too: `${work}` of a plan."""
    return f"{work_folder(work_root)}/runs/{fence}"
