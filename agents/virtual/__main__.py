"""Run one virtual phone: `python -m agents.virtual --state DIR --serial NAME`."""

import argparse
import asyncio
import shutil
import signal
import sys
from pathlib import Path

from agents.virtual.device import TICK_S, VirtualDevice, VirtualDeviceBusy, VirtualDeviceConfig
from agents.virtual.init import start_init
from agents.virtual.sandbox import exec_device


def main() -> int:
    """Serve until SIGTERM or SIGINT."""
    parser = argparse.ArgumentParser(prog="python -m agents.virtual", description=__doc__)
    parser.add_argument("--state", type=Path, required=True, help="the phone's folder; made when missing")
    parser.add_argument("--serial", required=True, help="its ro.serialno")
    parser.add_argument("--port", type=int, default=0, help="where to listen; by default where it did before")
    parser.add_argument("--shell", default="/bin/sh", help="what runs commands, e.g. mksh")
    parser.add_argument(
        "--own-cpu", action="store_true", help="report an unshared CPU: for load tests, not for results"
    )
    parser.add_argument(
        "--tick", type=float, default=TICK_S, help="seconds between looks at processes and faults"
    )
    parser.add_argument(
        "--storage", type=_some_mib, help="MiB of storage of its own; without it, the machine's"
    )
    parser.add_argument("--nnapi", type=Path, metavar="LIBRARY", help="the NNAPI library that it has")
    parser.add_argument("--mounted", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    shell = shutil.which(arguments.shell)
    if shell is None:
        parser.error(f"there is no shell {arguments.shell}")
    if arguments.storage is not None and not arguments.mounted:
        exec_device(arguments.state, arguments.storage, [*sys.argv[1:], "--mounted"])
    if (ended := start_init(arguments.state)) is not None:
        return ended
    setup = VirtualDeviceConfig(
        state=arguments.state,
        serial=arguments.serial,
        port=arguments.port,
        shell=shell,
        shared_cpu=not arguments.own_cpu,
        nnapi=arguments.nnapi,
        tick_s=arguments.tick,
    )
    try:
        asyncio.run(_serve(setup))
    except VirtualDeviceBusy as error:
        sys.stderr.write(f"{error}\n")
        return 1
    return 0


def _some_mib(text: str) -> int:
    size = int(text)
    if size < 1:
        raise ValueError(text)
    return size


async def _serve(setup: VirtualDeviceConfig) -> None:
    loop = asyncio.get_running_loop()
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    # Commands inherit ignored signals; a parent in the background may have ignored these.
    for number in (signal.SIGQUIT, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)
    await VirtualDevice(setup).run(stop)


if __name__ == "__main__":
    sys.exit(main())
