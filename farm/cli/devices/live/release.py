"""The release of a device at the end of a command that holds it, whichever signal ends it."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from farm.cli.shell.identity import operator_request
from farm.cli.shell.output import print_notice
from farm.client.farm_client import FarmClient
from farm.core.base.ids import DeviceId
from farm.core.errors import Conflict, FarmUnreachable
from farm.wire.documents.devices import ReleaseRequest

#: Ctrl-C, `kill`, and a terminal that was closed.
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@contextmanager
def released(farm: FarmClient, device_id: DeviceId) -> Iterator[None]:
    """Release a device after the block, which each of SIGNALS ends by KeyboardInterrupt."""
    before = {number: signal.signal(number, signal.default_int_handler) for number in SIGNALS}
    try:
        yield
    finally:
        # The release is short, and another signal would leave the device reserved.
        for number in SIGNALS:
            signal.signal(number, signal.SIG_IGN)
        try:
            _release(farm, device_id)
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)


def _release(farm: FarmClient, device_id: DeviceId) -> None:
    # Another person's reservation is not ended; a farm that does not answer ends it when its time is over.
    with suppress(Conflict, FarmUnreachable):
        request = operator_request(ReleaseRequest, force=False, assert_clean=False, reason=None)
        print_notice(f"{farm.change_device(device_id, 'release', request).message}.")
