"""What systemd does with the project's units, without systemd: folders, environment, command and stop.

As a program it stands in for `systemctl`: `python -m tests.support.farm.units ROOT start benchfarm`. Below
ROOT are `var/lib/benchfarm` and `etc/benchfarm`; programs are those of this interpreter's environment.
"""

import os
import shlex
import signal
import subprocess
import sys
import time
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path

from agents.host.process import start_ticks

CHECKOUT = Path(__file__).resolve().parents[3]
UNITS = CHECKOUT / "deploy" / "systemd"
#: Of systemd.exec(5): what a service has before its unit says more.
_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_OPTIONAL = "-"
#: Started by this process, which has to wait for them.
_CHILDREN: dict[int, "subprocess.Popen[bytes]"] = {}


@dataclass(frozen=True, slots=True, kw_only=True)
class Service:
    """One unit, installed below a folder that is taken for the root."""

    name: str
    root: Path
    #: Words before its command.
    launcher: tuple[str, ...] = ()

    @property
    def log(self) -> Path:
        """Return the file with all that the service wrote."""
        return self.root / f"{self.name}.log"

    def settings(self) -> dict[str, list[str]]:
        """Return the unit's settings with paths below the root."""
        found: defaultdict[str, list[str]] = defaultdict(list)
        for line in (UNITS / f"{self.name}.service").read_text().splitlines():
            if line and line[0] not in "#[":
                key, _, value = line.partition("=")
                found[key].append(self._here(value))
        return found

    def environment(self) -> dict[str, str]:
        """Return the variables of the service; none of this process's."""
        settings = self.settings()
        home = str(self.root / "var/lib/benchfarm")
        variables = {"PATH": _PATH, "HOME": home, "USER": "benchfarm", "LOGNAME": "benchfarm"}
        variables |= dict(line.split("=", 1) for line in settings["Environment"])
        for name in settings["EnvironmentFile"]:
            file = Path(name.removeprefix(_OPTIONAL))
            if file.exists() or not name.startswith(_OPTIONAL):
                lines = (line.strip() for line in file.read_text().splitlines())
                variables |= dict(line.split("=", 1) for line in lines if line and line[0] != "#")
        return variables

    def start(self) -> None:
        """Make its folders and run its command; returns when that runs, as `Type=exec` does."""
        settings = self.settings()
        mode = int(settings["StateDirectoryMode"][0], 8)
        for folder in settings["StateDirectory"][0].split():
            path = self.root / "var/lib" / folder
            path.mkdir(parents=True, exist_ok=True)
            path.chmod(mode)
        with self.log.open("ab") as sink:
            child = subprocess.Popen(
                [*self.launcher, *shlex.split(settings["ExecStart"][0])],
                cwd=settings["WorkingDirectory"][0],
                env=self.environment(),
                stdin=subprocess.DEVNULL,
                stdout=sink,
                stderr=sink,
                start_new_session=True,
                umask=int(settings["UMask"][0], 8),
            )
        _CHILDREN[child.pid] = child
        self._record.write_text(f"{child.pid} {start_ticks(child.pid)}")

    def is_running(self) -> bool:
        """Return whether its main process runs."""
        if not self._record.exists():
            return False
        pid, ticks = self._record.read_text().split()
        return str(start_ticks(int(pid))) == ticks

    def stop(self) -> bool:
        """Send SIGTERM to the main process alone; return whether it ended in the unit's time.

        As `KillMode=mixed`: then SIGKILL for what is left.
        """
        is_in_time = True
        if self.is_running():
            pid = int(self._record.read_text().split()[0])
            os.kill(pid, signal.SIGTERM)
            is_in_time = self._await_end(float(self.settings()["TimeoutStopSec"][0]))
            if not is_in_time:
                os.killpg(pid, signal.SIGKILL)
                self._await_end(10.0)
            if (child := _CHILDREN.pop(pid, None)) is not None:
                child.wait()
        self._record.unlink(missing_ok=True)
        return is_in_time

    def _await_end(self, within_s: float) -> bool:
        deadline_s = time.monotonic() + within_s
        while self.is_running():
            if time.monotonic() > deadline_s:
                return False
            time.sleep(0.05)
        return True

    def _here(self, value: str) -> str:
        value = value.replace("/opt/benchfarm/.venv/bin/", f"{Path(sys.executable).parent}/")
        for folder in ("/var/lib/benchfarm", "/etc/benchfarm"):
            value = value.replace(folder, f"{self.root}{folder}")
        return value

    @property
    def _record(self) -> Path:
        return self.root / f"{self.name}.pid"


def main(root: str, verb: str, *names: str) -> None:
    """Run one `systemctl` command."""
    for name in names:
        service = Service(name=name, root=Path(root))
        if verb in ("stop", "restart"):
            service.stop()
        if verb in ("start", "restart"):
            service.start()
        if verb not in ("start", "stop", "restart"):
            sys.exit(f"systemctl {verb} is not played")


if __name__ == "__main__":
    main(*sys.argv[1:])
