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
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TextIO

import structlog
import uvicorn
from fastapi import FastAPI

from agents.config import AgentConfig
from agents.virtual.pool import start_phones, stop_phones
from farm.api.app import create_app
from farm.api.context import Context
from farm.clock import Clock, SystemClock
from farm.config import FarmConfig
from farm.core.address import is_loopback
from farm.core.errors import InvalidInput
from farm.core.ids import DeviceId
from farm.embedded_agent import agent_config, phones_left_running, run_embedded_agent, with_phones
from farm.ticks import ticking

_log = structlog.get_logger(__name__)

ANNOUNCEMENT = "farm.json"
LOCK = "farm.lock"
#: A command that looks whether a farm runs here holds the lock for microseconds.
_LOCK_TRIES, _LOCK_TRY_S = 5, 0.05
#: Open connections get this long to end by themselves when the farm stops.
_GRACE_S = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class UpOptions:
    """What `farm up` is asked for."""

    config: FarmConfig
    #: How many virtual phones to run beside the farm.
    virtual: int = 0
    #: Whether to run an agent in this process.
    agent: bool = True
    #: Called with the farm's URL when it listens.
    announce: Callable[[str], None] = lambda url: None


def run(options: UpOptions) -> list[DeviceId]:
    """Run a farm until SIGINT or SIGTERM; the phones on which a run goes on without it.

    Raises:
        InvalidInput: the address is not on loopback or taken, the data folder cannot be used or another farm
            uses it, or a setting of the agent cannot be.
    """
    config = options.config
    _check_loopback(config.bind)
    _make_data_folder(config.data_dir)
    with data_folder_lock(config.data_dir), _listening(config) as listener:
        # Before anything is started that would have to be stopped.
        agent = agent_config(config, _url(listener)) if options.agent else None
        asyncio.run(_serve(options, agent, listener, SystemClock()))
        return phones_left_running(agent) if agent else []


class _Server(uvicorn.Server):
    """Leaves signals to the daemon, which stops things in an order of its own."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


async def _serve(
    options: UpOptions, agent: AgentConfig | None, listener: socket.socket, clock: Clock
) -> None:
    app = create_app(options.config, clock)
    server = _Server(
        uvicorn.Config(app, log_config=None, access_log=False, timeout_graceful_shutdown=_GRACE_S)
    )
    stopping = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stopping.set)
    serving = asyncio.create_task(server.serve(sockets=[listener]))
    try:
        await _started(server, serving)
        async with _beside(options, agent, app, _url(listener), clock) as beside:
            await _first(stopping.wait(), serving, *beside)
            context_of(app).waiters.close()
    finally:
        server.should_exit = True
        await serving


async def _started(server: uvicorn.Server, serving: asyncio.Task[None]) -> None:
    while not server.started:
        if serving.done():
            await serving
            raise RuntimeError("the server ended before it listened")
        await asyncio.sleep(0.01)


def context_of(app: FastAPI) -> Context:
    """The resources of a running application."""
    context: Context = app.state.context
    return context


@contextlib.asynccontextmanager
async def _beside(
    options: UpOptions, agent: AgentConfig | None, app: FastAPI, url: str, clock: Clock
) -> AsyncIterator[list[asyncio.Task[None]]]:
    """What runs beside the API: ticks, phones, the agent. Yields the tasks whose end is the farm's end."""
    context = context_of(app)
    folder = options.config.data_dir
    async with ticking(
        context.database,
        clock,
        up_since=context.started_at,
        every_s=options.config.reap_every_s,
        after=context.waiters.wake,
    ):
        addresses = await asyncio.to_thread(_phones, options.virtual, folder / "virtual")
        tasks: list[asyncio.Task[None]] = []
        if agent is not None:
            own = with_phones(agent, addresses)
            tasks.append(asyncio.create_task(run_embedded_agent(own, context, clock)))
        _announce(folder, url)
        options.announce(url)
        try:
            yield tasks
        finally:
            (folder / ANNOUNCEMENT).unlink(missing_ok=True)
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            await asyncio.to_thread(stop_phones, folder / "virtual")


async def _first(stopped: Coroutine[Any, Any, object], *others: asyncio.Task[None]) -> None:
    """Wait for the order to stop, or for something that should not end; its error is raised."""
    waiting = asyncio.create_task(stopped)
    done, _ = await asyncio.wait([waiting, *others], return_when=asyncio.FIRST_COMPLETED)
    waiting.cancel()
    for task in done - {waiting}:
        task.result()


def _phones(count: int, folder: Path) -> tuple[str, ...]:
    return tuple(phone.address for phone in start_phones(count, folder)) if count else ()


def _announce(folder: Path, url: str) -> None:
    """Tell commands that look into the data folder where the farm is."""
    draft = folder / f"{ANNOUNCEMENT}.new"
    draft.write_text(json.dumps({"url": url, "pid": os.getpid()}))
    draft.replace(folder / ANNOUNCEMENT)


def _check_loopback(bind: str) -> None:
    if is_loopback(bind):
        return
    raise InvalidInput(
        f"this version serves loopback addresses only, and {bind} is none: it has no tokens for people yet",
        hint="use --bind 127.0.0.1, and an SSH tunnel to reach it from elsewhere",
    )


def _make_data_folder(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / LOCK).touch()
    except OSError as error:
        raise InvalidInput(
            f"the data folder {folder} cannot be used: {error.strerror}",
            hint="choose a place that you may write to, with --data or FARM_DATA_DIR",
        ) from error


@contextlib.contextmanager
def data_folder_lock(folder: Path) -> Iterator[None]:
    """Two farms on one database would each be right about half of it.

    Raises:
        InvalidInput: another farm runs there.
    """
    with (folder / LOCK).open("w") as lock:
        if not any(_locks(lock, wait_s) for wait_s in (0.0, *[_LOCK_TRY_S] * _LOCK_TRIES)):
            raise InvalidInput(
                f"a farm already runs in {folder}",
                hint="stop it, or give this one a folder of its own: --data",
            )
        yield


def _locks(lock: TextIO, wait_s: float) -> bool:
    time.sleep(wait_s)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


@contextlib.contextmanager
def _listening(config: FarmConfig) -> Iterator[socket.socket]:
    family = socket.AF_INET6 if ":" in config.bind else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind((config.bind, config.port))
        except OSError as error:
            raise InvalidInput(
                f"cannot listen on {config.bind}:{config.port}: {error.strerror}",
                hint="another program has the port: choose one with --port, or 0 for any",
            ) from error
        yield listener


def _url(listener: socket.socket) -> str:
    host, port = listener.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
