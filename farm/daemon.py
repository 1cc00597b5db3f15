"""The composition root: one farm process, with its ticks, its embedded agent and its virtual phones."""

import asyncio
import contextlib
import fcntl
import json
import os
import signal
import socket
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, TextIO

import structlog
from fastapi import FastAPI

from agents.host.config import AgentConfig
from agents.virtual.pool import NNAPI_FOLDER, build_nnapi_library, start_devices, stop_devices
from farm.api.app import create_agents_app
from farm.api.context import Context
from farm.api.http.server import bind_socket, serve, url_of
from farm.api.http.tls import TlsCertificate
from farm.clock import Clock, SystemClock
from farm.config import FarmConfig
from farm.core.base.address import host_and_port, web_address
from farm.core.base.ids import DeviceId
from farm.core.errors import InvalidInput
from farm.core.operations.mail_server import mail_addresses, mail_server
from farm.database.connect import check_server, open_database, retry_while_busy
from farm.database.migrate import upgrade
from farm.database.transaction import bind_tx
from farm.embedded_agent import agent_config, devices_left_running, run_embedded_agent
from farm.file_modes import close_folder, owner_only_files
from farm.pauses import shorten_pauses
from farm.services.access.token_uses import STORE_EVERY_S
from farm.services.access.tokens import check_an_admin_has_a_token
from farm.services.files.folder_owner import check_folder, check_new_farm
from farm.services.files.retention import Sweeper
from farm.services.files.verification import Scrubber
from farm.services.matrices.cancel import continue_cancellations
from farm.services.matrices.standing.sessions import StandingSweep
from farm.services.operations.alarm_channels import (
    AlarmChannel,
    CommandChannel,
    MailChannel,
    WebhookChannel,
)
from farm.services.operations.alarm_notifier import AlarmNotifier
from farm.services.operations.alarm_scan import AlarmScan
from farm.services.operations.order_check import OrderCheck
from farm.services.periodic.confirmations import ConfirmationSweep
from farm.services.periodic.leader_election import PeriodicLeader, PeriodicScan, serving_period_since
from farm.services.results.history.change_sweep import ChangeSweep
from farm.ticks import run_periodic_tasks, run_reminders, run_sweeps
from farm.web.app import create_app_with_pages

_log = structlog.get_logger(__name__)

ANNOUNCEMENT = "farm.json"
LOCK = "farm.lock"
#: A scrub reads a terabyte in 24 days, at about 0.5 MB/s.
_SCRUB_EVERY_S, _SCRUB_BYTES = 60.0, 32 * 1024 * 1024
_ORDER_CHECK_EVERY_S = 60.0
#: Schedules have minutes.
_STANDING_EVERY_S = 60.0
#: How often is looked for points that were stored since the last search for changes.
_CHANGES_EVERY_S = 10.0
#: How often is looked for a renewed TLS certificate.
_CERTIFICATE_EVERY_S = 60.0
#: A command that checks for a running farm holds the lock for microseconds.
_LOCK_TRIES, _LOCK_TRY_S = 5, 0.05


@dataclass(frozen=True, slots=True, kw_only=True)
class UpOptions:
    """The options of `farm up`."""

    config: FarmConfig
    #: Number of virtual phones to run beside the farm.
    virtual: int = 0
    #: True if they have NNAPI, by the reference library.
    virtual_nnapi: bool = False
    #: True to run an agent in this process.
    agent: bool = True
    #: Called when the farm listens, with its URL and the one that agents on other machines use.
    announce: Callable[[str, str | None], None] = lambda url, agents_url: None


@owner_only_files()
def run(options: UpOptions) -> list[DeviceId]:
    """Run a farm until SIGINT or SIGTERM; return the devices on which a run continues without it.

    Raises:
        Conflict: the folder of artifacts belongs to another database.
        InvalidInput: others could call and no admin has a token, an address is in use, the data folder cannot
            be used or another farm uses it, the TLS certificate cannot be used, virtual devices would be
            those of several people, people would sign in where no one has to, or a setting of the agent is
            invalid.
        FarmFault: the database is unavailable, or the farm could not start for a reason in its log.
        SchemaMismatch: the database is of a newer release.
    """
    config = options.config
    check_virtual_devices(config, options.virtual)
    check_sign_in(config)
    make_data_folder(config.data_dir)
    retry_while_busy(partial(check_server, config))
    with contextlib.ExitStack() as stack:
        stack.enter_context(data_folder_lock(config.data_dir))
        retry_while_busy(partial(_prepare_database, config, SystemClock()))
        listeners = stack.enter_context(_bind_sockets(config))
        # First, because nothing has to be stopped yet if a setting is invalid.
        agent = agent_config(config, listeners.url_here) if options.agent else None
        options = replace(options, config=_with_port(config, listeners.agents))
        # On PostgreSQL, the database's clock says whether this machine's is to be believed.
        clock = SystemClock(adopts=config.database_url is None)
        asyncio.run(_serve(options, agent, listeners, clock))
        return devices_left_running(agent) if agent else []


@dataclass(frozen=True, slots=True, kw_only=True)
class _ListeningSockets:
    """The listening sockets: for everyone, for agents of other machines, and for this machine alone."""

    people: socket.socket
    agents: socket.socket | None
    #: HTTP on a free port of loopback for commands and the agent of this machine, where the others speak TLS:
    #: a certificate has the name that others use. None where they speak HTTP.
    here: socket.socket | None
    certificate: TlsCertificate | None

    @property
    def url_here(self) -> str:
        """Return the farm's URL on this machine: a listener on every address is also on loopback."""
        host, port = (self.here or self.people).getsockname()[:2]
        return web_address({"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host), port)


@contextlib.contextmanager
def _bind_sockets(config: FarmConfig) -> Iterator[_ListeningSockets]:
    certificate = (
        TlsCertificate(config.tls_cert, config.tls_key) if config.tls_cert and config.tls_key else None
    )
    hint = "another program has the port: choose one with --port, or 0 for any"
    with contextlib.ExitStack() as stack:
        people = stack.enter_context(bind_socket(config.bind, config.port, hint=hint))
        here = None
        if certificate is not None:
            here = stack.enter_context(bind_socket("127.0.0.1", 0, hint=hint))
        agents = None
        if config.agents_bind is not None:
            hint = "give --agents-on an address of this machine, or 0.0.0.0 for all of them, and a free port"
            agents = stack.enter_context(bind_socket(*host_and_port(config.agents_bind), hint=hint))
        yield _ListeningSockets(people=people, agents=agents, here=here, certificate=certificate)


def _with_port(config: FarmConfig, agents: socket.socket | None) -> FarmConfig:
    """Return the settings with the port that was assigned for 0."""
    bind = None if agents is None else url_of(agents).removeprefix("http://")
    return config.model_copy(update={"agents_bind": bind})


async def _serve(
    options: UpOptions, agent: AgentConfig | None, listeners: "_ListeningSockets", clock: Clock
) -> None:
    app = create_app_with_pages(options.config, clock)
    stopping = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stopping.set)
    async with contextlib.AsyncExitStack() as stack:
        certificate = listeners.certificate
        people = serve(app, listeners.people, certificate=certificate)
        servers = [await stack.enter_async_context(people)]
        if listeners.here is not None:
            here = serve(app, listeners.here, lifespan=False)
            servers.append(await stack.enter_async_context(here))
        if listeners.agents is not None:
            agents_app = create_agents_app(context_of(app))
            server = serve(agents_app, listeners.agents, lifespan=False, certificate=certificate)
            servers.append(await stack.enter_async_context(server))
        if certificate is not None:
            reloads = run_sweeps(certificate.reload, every_s=_CERTIFICATE_EVERY_S)
            await stack.enter_async_context(reloads)
        # Everything that stays until the end is built: modules, routes, the connected database.
        shorten_pauses()
        beside = _background_tasks(options, agent, app, listeners, clock)
        tasks = await stack.enter_async_context(beside)
        await _wait_for_first(stopping.wait(), *servers, *tasks)
        context_of(app).held_exchanges.close()


def context_of(app: FastAPI) -> Context:
    """Return the resources of a running application."""
    context: Context = app.state.context
    return context


@contextlib.asynccontextmanager
async def _background_tasks(
    options: UpOptions, agent: AgentConfig | None, app: FastAPI, listeners: _ListeningSockets, clock: Clock
) -> AsyncIterator[list[asyncio.Task[None]]]:
    """Run ticks, virtual devices and the agent beside the API. Yields the tasks whose end ends the farm."""
    config, context = options.config, context_of(app)
    database, folder = context.database, config.data_dir
    leader = _periodic_leader(config, context)
    changes = ChangeSweep(database, clock)
    notifier = AlarmNotifier(database, _alarm_channels(config), clock, config.pages_url)

    def leads() -> bool:
        return leader.is_leader

    async with (
        run_periodic_tasks(database, leader),
        run_sweeps(notifier, every_s=leader.every_s, should_run=lambda: bool(notifier.channels) and leads()),
        run_sweeps(
            Sweeper(database, context.blobs, config.storage_rules, clock),
            every_s=config.sweep_every_s,
            should_run=leads,
        ),
        run_sweeps(
            Scrubber(database, context.blobs, clock, bytes_per_call=_SCRUB_BYTES),
            every_s=_SCRUB_EVERY_S,
            should_run=leads,
        ),
        run_sweeps(
            OrderCheck(database=database, clock=clock), every_s=_ORDER_CHECK_EVERY_S, should_run=leads
        ),
        run_sweeps(
            partial(continue_cancellations, database, clock), every_s=leader.every_s, should_run=leads
        ),
        run_sweeps(StandingSweep(database, clock), every_s=_STANDING_EVERY_S, should_run=leads),
        run_sweeps(changes, every_s=_CHANGES_EVERY_S, should_run=leads),
        run_sweeps(
            ConfirmationSweep(database, clock),
            every_s=_CHANGES_EVERY_S,
            should_run=lambda: config.confirm_changes and leads(),
        ),
        run_sweeps(context.token_uses, every_s=STORE_EVERY_S),
        run_sweeps(context.evidence_reads, every_s=STORE_EVERY_S),
        run_reminders(context.to_expand, every_s=leader.every_s, should_run=leads),
        run_reminders(context.to_grow, every_s=leader.every_s, should_run=leads),
        run_reminders(context.to_compute_points, every_s=leader.every_s, should_run=leads),
    ):
        addresses = await asyncio.to_thread(_virtual_devices, options, folder / "virtual")
        tasks: list[asyncio.Task[None]] = []
        if agent is not None:
            own = agent.with_virtual_devices(addresses)
            tasks.append(asyncio.create_task(run_embedded_agent(own, context, clock)))
        _announce(folder, listeners.url_here)
        named = config.url_elsewhere(*listeners.people.getsockname()[:2])
        options.announce(named if config.is_encrypted else listeners.url_here, config.agents_url)
        try:
            yield tasks
        finally:
            (folder / ANNOUNCEMENT).unlink(missing_ok=True)
            changes.stop()
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            await asyncio.to_thread(stop_devices, folder / "virtual")


def _alarm_channels(config: FarmConfig) -> list[AlarmChannel]:
    """Return the channels that the settings name."""
    channels: list[AlarmChannel] = []
    if config.alarm_argv:
        channels.append(CommandChannel(config.alarm_argv))
    if config.alarm_webhook is not None:
        channels.append(WebhookChannel(config.alarm_webhook.get_secret_value()))
    if config.alarm_mail is not None and config.smtp_url is not None:
        server = mail_server(config.smtp_url.get_secret_value())
        channels.append(MailChannel(server, mail_addresses(config.alarm_mail)))
    return channels


def _periodic_leader(config: FarmConfig, context: Context) -> PeriodicLeader:
    return PeriodicLeader(
        process=context.database.process,
        clock=context.clock,
        every_s=config.reap_every_s,
        serving=serving_period_since(context.started_at, every_s=config.reap_every_s),
        timeouts=config.agent_timeouts,
        rounds=PeriodicScan(checks=config.check_rules, alarms=AlarmScan(rules=config.alarm_rules)),
    )


async def _wait_for_first(stopped: Coroutine[Any, Any, object], *others: asyncio.Task[None]) -> None:
    """Wait for the signal to stop, or for a task that should not end, whose error is raised."""
    stop = asyncio.create_task(stopped)
    done, _ = await asyncio.wait([stop, *others], return_when=asyncio.FIRST_COMPLETED)
    stop.cancel()
    for task in done - {stop}:
        task.result()


def _virtual_devices(options: UpOptions, folder: Path) -> tuple[str, ...]:
    if not options.virtual:
        return ()
    nnapi = build_nnapi_library(folder / NNAPI_FOLDER) if options.virtual_nnapi else None
    return tuple(device.address for device in start_devices(options.virtual, folder, nnapi=nnapi))


def _announce(folder: Path, url: str) -> None:
    """Write the farm's URL into the data folder, where commands look for it."""
    draft = folder / f"{ANNOUNCEMENT}.new"
    try:
        draft.write_text(json.dumps({"url": url, "pid": os.getpid()}))
        draft.replace(folder / ANNOUNCEMENT)
    except OSError as error:
        # A full disk: the farm serves what it can.
        _log.warning("farm_not_announced", url=url, error=str(error))


def _prepare_database(config: FarmConfig, clock: Clock) -> None:
    """Migrate, and check artifacts and tokens, before the server starts, whose errors are only logged."""
    if config.database_url is None and not config.database_path.exists():
        check_new_farm(config.blobs_dir)
    with contextlib.closing(open_database(config)) as database:
        upgrade(database.engine)
        database.read(check_folder, config.blobs_dir)
        if config.needs_tokens:
            database.read(bind_tx(check_an_admin_has_a_token, now=clock.now()))


def check_sign_in(config: FarmConfig) -> None:
    """Refuse an identity provider on a farm that asks no one who they are.

    Raises:
        InvalidInput: tokens are not required.
    """
    if config.oidc_issuer is not None and not config.needs_tokens:
        raise InvalidInput(
            "FARM_OIDC_ISSUER is set, but on loopback this farm lets everyone of this machine in as an admin",
            hint="set FARM_REQUIRE_TOKENS=1, or listen for others with --bind",
        )


def check_virtual_devices(config: FarmConfig, count: int) -> None:
    """Refuse virtual devices on a farm of several people: what runs on them is the farm's user.

    Raises:
        InvalidInput: tokens are required, and the setting that allows it is missing.
    """
    if count and config.needs_tokens and not config.unconfined_virtual:
        raise InvalidInput(
            "virtual devices have no sandbox: every submitter could read the farm's secrets",
            hint="leave --virtual out on a farm that requires tokens, or run the devices by an agent of "
            "another user; FARM_UNCONFINED_VIRTUAL=1 allows them where submitters are trusted with all",
        )


def make_data_folder(folder: Path) -> None:
    """Create the data folder if it is missing; only its user has permissions for it.

    Raises:
        InvalidInput: it cannot be used.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        close_folder(folder)
        (folder / LOCK).touch()
    except OSError as error:
        raise InvalidInput(
            f"the data folder {folder} cannot be used: {error.strerror}",
            hint="choose a place that you may write to, with --data or FARM_DATA_DIR",
        ) from error


@contextlib.contextmanager
def data_folder_lock(folder: Path) -> Iterator[None]:
    """Lock the data folder, which only one farm may use.

    Raises:
        InvalidInput: another farm runs there.
    """
    with (folder / LOCK).open("w") as lock:
        if not any(_try_lock(lock, wait_s) for wait_s in (0.0, *[_LOCK_TRY_S] * _LOCK_TRIES)):
            raise InvalidInput(
                f"a farm already runs in {folder}",
                hint="stop that one first, or name another folder: --data",
            )
        yield


def _try_lock(lock: TextIO, wait_s: float) -> bool:
    time.sleep(wait_s)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
