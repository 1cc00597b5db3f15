"""Paths of the agent's files on a device: everything is under one folder of the work root."""

from farm.core.base.ids import Digest


def work_folder(work_root: str) -> str:
    """Return the agent's folder; none of our files is ever outside of it."""
    assert work_root, "the facts of the device were not read"
    return f"{work_root}/benchfarm"


def stay_on_record(work_root: str) -> str:
    """Return the path of the saved screen settings; the file exists only while they are changed."""
    return f"{work_folder(work_root)}/stay_on"


def charge_record(work_root: str) -> str:
    """Return the path of the saved charging value; the file exists only while charging is paused."""
    return f"{work_folder(work_root)}/charge"


def controls_record(work_root: str) -> str:
    """Return the path of the saved clocks and cores; the file exists only while they are set."""
    return f"{work_folder(work_root)}/controls"


def cache_folder(work_root: str) -> str:
    """Return the folder of verified files, named by their digests."""
    return f"{work_folder(work_root)}/cache"


def incoming_folder(work_root: str) -> str:
    """Return the folder of pushed files that are not verified yet."""
    return f"{work_folder(work_root)}/incoming"


def cache_path(work_root: str, digest: Digest) -> str:
    """Return the path of a verified file."""
    return f"{cache_folder(work_root)}/{digest}"


def run_folder(work_root: str, fence: int) -> str:
    """Return one run's folder, its current folder too: `${work}` of a plan."""
    return f"{work_folder(work_root)}/runs/{fence}"
