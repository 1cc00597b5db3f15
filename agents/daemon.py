"""The composition root of the agent: one run, from the host's lock to the last task."""

import argparse
import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from random import Random
from typing import NoReturn

import structlog
from pydantic import ValidationError

from agents.adb.client import AdbClient
from agents.adb.server import SelectedServer, find_fingerprint, select_server
from agents.attempts.artifact_cache import ArtifactCache, ArtifactPrefetcher
from agents.attempts.attempts import AttemptController
from agents.attempts.runner import AttemptRunner
from agents.devices.active_attempts import ActiveAttempts
from agents.devices.adb_supervisor import AdbSupervisor, OtherServerMonitor, default_adb_port
from agents.devices.backpressure import Backpressure, DiskWatch, UsbCapacity, watch_usb_capacity
from agents.devices.monitor import DeviceMonitor
from agents.farm_api import FarmApi, farm_client
from agents.host.atomic_file import DiskThread, remove_durably
from agents.host.config import AgentConfig, agent_config
from agents.host.data_dir import host_lock
from agents.host.process import host_boot_id
from agents.host.retry import Backoff
from agents.link.clock_comparison import ClockComparison
from agents.link.enrollment import (
    Credential,
    archive_previous_enrollment,
    check_can_enroll,
    check_space,
    enroll,
    find_credential,
)
from agents.link.exchange_loop import EPOCH_FILE, CredentialRefused, ExchangeLoop, ReportReplay
from agents.link.lease import LeaseMonitor
from agents.outbox.attempt_journal import AttemptJournal
from agents.outbox.damaged_files import DamagedFiles
from agents.outbox.sender import ReportDelivery
from agents.outbox.spool import Spool
from agents.upkeep.battery_care import BatteryCare
from agents.upkeep.device_actions import DeviceActionRunner
from agents.upkeep.recovery_ladder import RecoveryLadder, recovery_rules
from agents.upkeep.recovery_state import RecoveryStateStore
from agents.virtual.pool import NNAPI_FOLDER, build_nnapi_library, start_devices, stop_devices
from farm import __version__
from farm.clock import Clock, SystemClock
from farm.core.errors import Conflict, FarmError, FarmFault, HostDiskFull
from farm.file_modes import owner_only_files
from farm.logconfig import configure_logging

log = structlog.get_logger(__name__)

ReadyCallback = Callable[[], None]
#: Time the farm may take to free this host's name after its folder was lost.
NAME_FREE_S = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentRuntime:
    """The resources of one run of the agent, all released at its end."""

    config: AgentConfig
    clock: Clock
    random: Random
    ready: ReadyCallback
    server: SelectedServer
    api: FarmApi
    disk: DiskThread
    journal: AttemptJournal
    spool: Spool


async def run_agent(
    config: AgentConfig, clock: Clock, *, ready: ReadyCallback = lambda: None, random: Random | None = None
) -> None:
    """Manage this host's devices until cancelled. Runs on devices continue for the next start of the agent.

    The data folder is made when missing. What cannot be done on a full disk waits until there is space: an
    agent that has enrolled goes on with everything else. `ready` is called at the first answer of the farm
    to an exchange.

    Raises:
        AgentRunningError: another agent works in the data folder.
        InvalidInput: this user cannot use that folder.
        AuthError: the farm does not accept the join token, or there is none.
        CredentialRefused: the farm goes on refusing the credential, and there is no join token.
        AdbServerDown: adb's server does not start.
        FarmError: the farm will not talk to this agent, and trying again would not help.
    """
    random = random or Random()
    backoff = Backoff(random)
    check_can_enroll(config)
    while True:
        try:
            with host_lock(config.data_dir):
                if find_credential(config.data_dir) is None:
                    check_space(config.data_dir)
                return await _run_in_folder(config, clock, ready, random)
        except HostDiskFull as error:
            # Not the end of the process: a supervisor would restart it in a loop.
            folder = str(config.data_dir)
            log.warning("agent_waits_for_space", folder=folder, reason=error.message, hint=error.hint)
        await asyncio.sleep(backoff.next_s())


async def _run_in_folder(config: AgentConfig, clock: Clock, ready: ReadyCallback, random: Random) -> None:
    async with _open_runtime(config, clock, ready, random) as host:
        credential = find_credential(config.data_dir) or await _enroll_with_retry(host)
        try:
            await _run_tasks(host, credential)
        except CredentialRefused:
            if config.join_token_value() is None:
                raise
            # The farm may have been created again, and its operator has given us a token for it.
            await _run_tasks(host, await _enroll_with_retry(host))


def main(argv: Sequence[str] | None = None) -> None:
    """Run one agent in this process (`farm-agent`); always leaves by SystemExit."""
    arguments = argument_parser().parse_args(argv)
    configure_logging()
    given = {name: value for name, value in vars(arguments).items() if value is not None}
    try:
        run_until_signalled(agent_config(**given))
    except ValidationError as error:
        _exit_with_error(2, f"invalid settings: {error}", "`farm-agent --help` lists them")
    except FarmError as error:
        _exit_with_error(error.blame.exit_code, error.message, error.hint)
    sys.exit(0)


@owner_only_files()
def run_until_signalled(config: AgentConfig, *, virtual: int = 0, virtual_nnapi: bool = False) -> None:
    """Run one agent in this process until SIGINT or SIGTERM, with `virtual` virtual devices beside it.

    With `virtual_nnapi` they have NNAPI, by the reference library.

    Raises:
        HostError: a virtual device does not start; also raises as `run_agent` does.
    """
    if config.log_file is not None:
        configure_logging(file=config.log_file)
    if not virtual:
        asyncio.run(_until_signalled(config))
        return
    check_can_enroll(config)
    folder = config.data_dir / "virtual"
    with host_lock(config.data_dir):
        # The devices of another agent must not be stopped below.
        nnapi = build_nnapi_library(folder / NNAPI_FOLDER) if virtual_nnapi else None
        devices = start_devices(virtual, folder, nnapi=nnapi)
    try:
        asyncio.run(
            _until_signalled(config.with_virtual_devices(tuple(device.address for device in devices)))
        )
    finally:
        stop_devices(folder)


def argument_parser() -> argparse.ArgumentParser:
    """Return the parser of the command line; every flag is also a setting."""
    parser = argparse.ArgumentParser(
        prog="farm-agent",
        description="Manage the phones of this host for a farm. Settings come from FARM_AGENT_*.",
        epilog="Exit codes: 0 stopped, 2 your input or credential, 5 this host, 6 the farm.",
    )
    parser.add_argument("--farm-url", metavar="URL", help="where the farm listens")
    parser.add_argument("--host", metavar="NAME", help="the name of this host in the farm")
    parser.add_argument("--data-dir", metavar="FOLDER", help="the agent's own folder")
    parser.add_argument("--join-token-file", metavar="FILE", help="needed once, to enroll")
    parser.add_argument("--adb-connect", metavar="HOST:PORT,...", help="devices on TCP, kept connected")
    parser.add_argument("--no-adb-usb", dest="adb_usb", action="store_false", default=None, help="TCP only")
    parser.add_argument(
        "--adb-server", metavar="HOST:PORT", help="an adb server to use instead of the agent's own"
    )
    parser.add_argument("--adb-key", metavar="FILE", help="a private key that devices already allow")
    parser.add_argument("--version", action="version", version=f"farm-agent {__version__}")
    return parser


@asynccontextmanager
async def _open_runtime(
    config: AgentConfig, clock: Clock, ready: ReadyCallback, random: Random
) -> AsyncIterator[AgentRuntime]:
    disk = DiskThread()
    try:
        async with (
            select_server(config) as server,
            farm_client(config.farm_url, plain_http=config.plain_http) as http,
        ):
            yield AgentRuntime(
                config=config,
                clock=clock,
                random=random,
                ready=ready,
                server=server,
                api=FarmApi(http),
                disk=disk,
                journal=AttemptJournal(config.data_dir / "attempts"),
                spool=Spool(config.data_dir / "spool", reserve_bytes=config.reserve_bytes),
            )
    finally:
        await asyncio.to_thread(disk.close)


async def _enroll_with_retry(host: AgentRuntime) -> Credential:
    """Enroll, retrying while the farm is unreachable; archive the state of a previous enrolment."""
    backoff = Backoff(host.random, first_s=0.25, cap_s=10.0)
    began_s = host.clock.monotonic()
    while True:
        try:
            credential = await enroll(host.config, host.api)
        except (FarmFault, Conflict) as error:
            if isinstance(error, Conflict) and host.clock.monotonic() - began_s > NAME_FREE_S:
                raise
            log.info("enrollment_delayed", code=error.code, reason=error.message)
            await asyncio.sleep(backoff.next_s())
        else:
            log.info("host_enrolled", host_id=credential.host_id)
            await host.disk.call(archive_previous_enrollment, host.journal, host.spool)
            await host.disk.call(remove_durably, host.config.data_dir / EPOCH_FILE)
            return credential


async def _run_tasks(host: AgentRuntime, credential: Credential) -> None:
    host.api.use_credential(credential.secret)
    try:
        async with asyncio.TaskGroup() as tasks:
            await _start(host, tasks)
    except BaseExceptionGroup as group:
        if (error := _first_farm_error(group)) is None:
            raise
        raise error from group


async def _start(host: AgentRuntime, tasks: asyncio.TaskGroup) -> None:
    """Build the components and start their tasks; recover attempts before any device is probed."""
    config, clock, random, active = host.config, host.clock, host.random, ActiveAttempts()
    pressure = Backpressure(active.changed)
    usb_capacity = UsbCapacity(active.changed, lasts_s=config.usb_full_s)
    damaged_files = DamagedFiles(config.data_dir, active.changed)
    adb = AdbClient(host.server.address)
    key, names = partial(find_fingerprint, host.server.public_key), config.device_names
    monitor = DeviceMonitor(
        adb=adb, active=active, clock=clock, random=random, tasks=tasks, find_key=key, names=names
    )
    artifacts = ArtifactCache(
        config.data_dir / "cache",
        host.api,
        clock,
        limit_bytes=config.cache_limit_bytes,
        needed_digests=active.digests,
    )
    prefetch = ArtifactPrefetcher(
        artifacts=artifacts, is_disturbing=lambda: bool(monitor.measured_cpu_domains()), tasks=tasks
    )
    session_opened = asyncio.Event()
    attempts = AttemptController(
        active=active,
        runner=AttemptRunner(
            monitor=monitor,
            artifacts=artifacts,
            clock=clock,
            random=random,
            device_cache_limit_bytes=config.device_cache_limit_bytes,
            max_pushes=config.max_pushes,
        ),
        delivery=ReportDelivery(host.api, host.spool, host.disk, random, session_opened=session_opened),
        journal=host.journal,
        spool=host.spool,
        disk=host.disk,
        random=random,
        tasks=tasks,
        is_more=lambda: prefetch.is_more,
    )
    lease = LeaseMonitor(active=active, devices=monitor.observations, stop=attempts.interrupt, clock=clock)
    rules, boot_id = recovery_rules(config), host_boot_id()
    state_store = RecoveryStateStore(config.data_dir, host.disk, clock, host_boot_id=boot_id)
    ladder = RecoveryLadder(
        adb=adb,
        monitor=monitor,
        active=active,
        clock=clock,
        tasks=tasks,
        state_store=state_store,
        rules=rules,
        config=config,
    )
    clock_comparison = ClockComparison(api=host.api, clock=clock)
    exchange = ExchangeLoop(
        api=host.api,
        attempts=attempts,
        device_actions=DeviceActionRunner(active=active, monitor=monitor, tasks=tasks),
        active=active,
        devices=ladder.observations,
        record_recovery_permission=ladder.record_permission,
        reprobe=monitor.reprobe,
        prefetch=prefetch.prefetch,
        pressure=pressure,
        usb_capacity=usb_capacity,
        damaged_files=damaged_files,
        lease=lease,
        replay=ReportReplay(attempts, config.data_dir, host.disk),
        clock_comparison=clock_comparison,
        clock=clock,
        random=random,
        boot_id=boot_id,
        agent_version=__version__,
        adb_address=host.server.address if host.server.is_on_this_machine else None,
        ready=host.ready,
        session_opened=session_opened,
        wants_provisioning=config.provision_devices,
    )
    adb_supervisor = AdbSupervisor(
        server=host.server, adb=adb, monitor=monitor, pressure=pressure, clock=clock, random=random
    )
    disk_watch = DiskWatch(
        spool=host.spool, disk=host.disk, cache_shortage=artifacts.shortage, pressure=pressure
    )
    await attempts.recover()
    await ladder.load()
    # Before the first exchange: an agent that starts on a full disk is given no work.
    await disk_watch.run_once()
    tasks.create_task(disk_watch.run(), name="watch disk")
    tasks.create_task(damaged_files.watch(host.disk), name="watch damaged files")
    tasks.create_task(watch_usb_capacity(config, usb_capacity, clock), name="watch usb controllers")
    tasks.create_task(adb_supervisor.track(), name="track devices")
    tasks.create_task(adb_supervisor.ping(), name="ping adb")
    if config.adb_usb and config.adb_server is None:
        other_servers = OtherServerMonitor(ours=adb, port=default_adb_port(os.environ), monitor=monitor)
        tasks.create_task(other_servers.run(), name="other adb servers")
    for address in config.adb_connect:
        tasks.create_task(adb_supervisor.keep_connected(address), name=f"connect {address}")
    battery_care = BatteryCare(
        adb=adb,
        monitor=monitor,
        active=active,
        window=config.charge_window,
        power=config.power_command,
        folder=config.data_dir,
    )
    tasks.create_task(battery_care.run(), name="charging")
    tasks.create_task(ladder.run(), name="recovery")
    tasks.create_task(exchange.run(), name="exchange")
    tasks.create_task(lease.run(), name="lease")
    tasks.create_task(clock_comparison.run(), name="compare clocks")


def _first_farm_error(group: BaseExceptionGroup[BaseException]) -> FarmError | None:
    for error in group.exceptions:
        if isinstance(error, FarmError):
            return error
        if isinstance(error, BaseExceptionGroup) and (nested := _first_farm_error(error)) is not None:
            return nested
    return None


async def _until_signalled(config: AgentConfig) -> None:
    agent = asyncio.ensure_future(run_agent(config, SystemClock(), ready=lambda: log.info("agent_ready")))
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, agent.cancel)
    try:
        await agent
    except asyncio.CancelledError:
        log.info("agent_stopped")


def _exit_with_error(code: int, message: str, hint: str) -> NoReturn:
    sys.stderr.write(f"farm-agent: {message}\nhint: {hint}\n")
    sys.exit(code)


if __name__ == "__main__":
    main()
