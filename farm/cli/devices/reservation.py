"""A reservation of a device, and the wait for the end of the run on it."""

from farm.cli.shell.identity import operator_request
from farm.cli.shell.output import print_notice
from farm.cli.shell.wait import wait_for
from farm.client.farm_client import FarmClient
from farm.wire.documents.devices import DeviceView, ReservationRequest


def reserve_device(
    farm: FarmClient, device: str, for_s: int, reason: str | None, *, detached: str
) -> DeviceView:
    """Reserve a device, and wait for the end of the run on it; an unreachable device is not waited for.

    `detached` says what becomes of the reservation after Ctrl-C.
    """
    request = operator_request(ReservationRequest, for_s=for_s, reason=reason)
    change = farm.change_device(device, "reserve", request)
    print_notice(f"{change.message}.")
    return wait_for(
        lambda: farm.device(change.device.device_id),
        lambda now: now.is_quiet or not now.is_reachable,
        _run_text,
        detached=f"{detached}, and the run on it ends normally.",
    )


def _run_text(view: DeviceView) -> str:
    step = f"job {view.job_id} to end on" if view.job_id is not None else "the clean-up of"
    return f"waiting for {step} {view.name}"
