"""Sessions of TVM's RPC on a phone: a process each, connected by adb's shell, with a folder of its own."""

import asyncio
import math
import secrets
from asyncio import StreamReader, StreamWriter
from asyncio.subprocess import PIPE, Process
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from shlex import quote
from string import Template

from agents.adb.client import AdbDevice
from agents.device.device_cache import ensure_cached
from agents.device.paths import work_folder
from farm.core.base.ids import Digest
from farm.core.errors import HarnessInvalid
from farm.core.programs.bundle import Bundle, command_words, plan_files
from farm.core.runs.plan import placeholder_values

_READ_BYTES = 256 * 1024
_SHELL_DEADLINE_S = 30.0
#: From the end of a client to that of its process, 2 s later at most, and the removal of its files.
_END_S = 15.0
#: What a session takes beside its seconds, which its process counts: the start of the process, and its end.
_START_S = 15.0
#: What is said of a line at once.
_LINE_BYTES = 4096
_FOLDER = "live-"
#: On the standard error of a program that serves: others, too, end without an error where there is no input.
_SERVES = "serves a session of TVM's RPC"


@dataclass(frozen=True, slots=True, kw_only=True)
class LivePhone:
    """A phone with the program that serves sessions in its cache."""

    device: AdbDevice
    #: Runs `adb` on the phone, up to its command.
    adb: Sequence[str]
    environment: Mapping[str, str]
    bundle: Bundle
    path_by_name: Mapping[str, str]
    say: Callable[[str], None]

    async def clear(self) -> None:
        """Remove what a session left whose phone was cut off or restarted."""
        await self.device.shell(f"rm -rf {quote(self._folders)}*", deadline_s=_SHELL_DEADLINE_S)

    async def check_starts(self) -> None:
        """Start the program once, without a client.

        Raises:
            HarnessInvalid: it does not start on this phone, or serves no sessions.
            DeviceError: the phone went away, or was too slow.
        """
        command = self._command(math.ceil(_SHELL_DEADLINE_S))
        # Its input is at its end, and so is the session.
        done = await self.device.shell(command, deadline_s=_SHELL_DEADLINE_S)
        if done.exit_code != 0 or _SERVES not in done.message:
            raise HarnessInvalid(
                f"{self.bundle.entry} serves no session on {self.device.serial}: {done.message[:300]}",
                hint="register one that does: docs/harnesses.md#drive-a-phone-live-by-tvms-rpc",
            )

    async def serve_session(self, reader: StreamReader, writer: StreamWriter, seconds: int) -> None:
        """Connect a client with a process on the phone, until either ends.

        A client that goes away, or a command that ends however it may, closes the process's input: then it
        ends, and its folder is removed by the shell that started it. So does a process that goes on after its
        seconds.

        Raises:
            OSError: adb does not start.
        """
        words = [*self.adb, "shell", "-T", self._command(seconds)]
        longest_s = seconds + _START_S
        await connect_process(words, self.environment, reader, writer, self.say, longest_s=longest_s)

    def _command(self, seconds: int) -> str:
        """Return the shell's command for one session of so many seconds, which leaves no file behind."""
        work, files = f"{self._folders}{secrets.token_hex(4)}", plan_files(self.bundle)
        values = placeholder_values(work=work, path_by_name=self.path_by_name)
        words = command_words(self.bundle, [f"--serve={seconds}"])
        variables = [f"{name}={value}" for name, value in self.bundle.env.items()]
        filled = [quote(Template(word).substitute(values)) for word in ("env", *variables, *words)]
        links = [(self.path_by_name[file.name], f"{work}/{file.path}") for file in files if file.path]
        folders = sorted({work, *(str(Path(path).parent) for _, path in links)})
        return "\n".join(
            [
                # The shell of a connection that breaks goes on, to remove the folder.
                "trap '' HUP",
                f"mkdir -p {' '.join(map(quote, folders))} || exit 1",
                *(f"ln -s {quote(cached)} {quote(path)} || exit 1" for cached, path in links),
                f"cd {quote(work)} || exit 1",
                " ".join(filled),
                "code=$?",
                f"cd / && rm -rf {quote(work)}",
                "exit $code",
            ]
        )

    @property
    def _folders(self) -> str:
        """Return what the paths of all sessions' folders begin with."""
        return f"{work_folder(self.device.work_root)}/{_FOLDER}"


async def live_phone(
    device: AdbDevice,
    bundle: Bundle,
    local_path: Callable[[Digest], Awaitable[Path]],
    adb: Sequence[str],
    environment: Mapping[str, str],
    say: Callable[[str], None],
) -> LivePhone:
    """Push the program to the phone's cache, and start it once.

    Raises:
        HarnessInvalid: it does not start there.
        DeviceError, HostError: it cannot be pushed.
    """
    cached = await ensure_cached(device, plan_files(bundle), local_path)
    phone = LivePhone(
        device=device,
        adb=adb,
        environment=environment,
        bundle=bundle,
        path_by_name=cached.path_by_name,
        say=say,
    )
    await phone.clear()
    await phone.check_starts()
    return phone


async def connect_process(
    words: Sequence[str],
    environment: Mapping[str, str],
    reader: StreamReader,
    writer: StreamWriter,
    say: Callable[[str], None],
    *,
    longest_s: float,
    end_s: float = _END_S,
) -> None:
    """Run a command with a connection as its input and output, until either ends; report its errors.

    After `longest_s` its input is closed, and `end_s` later it is killed.

    Raises:
        OSError: it does not start.
    """
    process = await asyncio.create_subprocess_exec(
        *words,
        env=dict(environment),
        stdin=PIPE,
        stdout=PIPE,
        stderr=PIPE,
        # Ctrl-C is for the command that serves, which ends the session.
        start_new_session=True,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    assert process.stderr is not None
    to_process = asyncio.create_task(_copy(reader, process.stdin))
    to_client = asyncio.create_task(_copy(process.stdout, writer))
    said = asyncio.create_task(_pass_on(process.stderr, say))
    try:
        copies = (to_process, to_client)
        await asyncio.wait(copies, timeout=longest_s, return_when=asyncio.FIRST_COMPLETED)
    finally:
        to_process.cancel()
        process.stdin.close()
        # Once more cancelled, it would leave the process behind.
        await asyncio.shield(asyncio.create_task(_ended(process, (to_client, said), end_s)))


async def _pass_on(source: StreamReader, say: Callable[[str], None]) -> None:
    """Report lines, those without an end in parts: a process whose errors are not read comes to a halt."""
    rest = b""
    while data := await source.read(_READ_BYTES):
        *lines, rest = (rest + data).split(b"\n")
        if len(rest) > _LINE_BYTES:
            lines, rest = [*lines, rest], b""
        _report(lines, say)
    if rest:
        _report([rest], say)


def _report(lines: Sequence[bytes], say: Callable[[str], None]) -> None:
    # The terminal may have gone.
    with suppress(OSError):
        for line in lines:
            say(f"phone: {line.decode(errors='replace').rstrip()}")


async def _copy(source: StreamReader, sink: StreamWriter) -> None:
    with suppress(OSError):
        while data := await source.read(_READ_BYTES):
            sink.write(data)
            await sink.drain()


async def _ended(process: Process, readers: Sequence["asyncio.Task[None]"], end_s: float) -> None:
    """Wait for the end of a process whose input is closed; kill adb where the phone does not answer."""
    try:
        await asyncio.wait((*readers, asyncio.create_task(process.wait())), timeout=end_s)
    finally:
        if process.returncode is None:
            with suppress(ProcessLookupError):
                process.kill()
        for reader in readers:
            reader.cancel()
        await asyncio.gather(*readers, return_exceptions=True)
        # What the client did not read: asyncio waits for the end of the pipes as well.
        await process.communicate()
