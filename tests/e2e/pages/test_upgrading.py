"""The page on upgrades is typed with both services while a matrix runs, on each database; no run is lost."""

import re
import sys
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from farm.client.farm_client import FarmClient
from farm.database.engine import Database, sqlite_url
from tests.e2e.pages.console_page import Console, Step, console, steps
from tests.support.database.postgres import PostgresServer
from tests.support.farm.processes import CHECKOUT, eventually, running_phones
from tests.support.farm.units import Service
from tests.support.faults.port_faults import held_port

# A matrix of a minute, behind two services that are started several times.
pytestmark = [pytest.mark.long, pytest.mark.timeout(900)]

PAGE = (CHECKOUT / "docs" / "upgrading.md").read_text()
ROUNDS = 25
#: Runs long enough to be under way whenever a service is stopped.
PROGRAM = "#!/bin/sh\nsleep 2\n"


def section(title: str) -> list[Step]:
    """The steps of one section of the page."""
    _, _, rest = PAGE.partition(f"\n## {title}\n")
    assert rest, title
    return steps(rest.partition("\n## ")[0])


@dataclass(frozen=True, slots=True, kw_only=True)
class Lab:
    """Both services with a phone, and an operator's terminal."""

    root: Path
    terminal: Console
    url: str
    database_url: str

    def play(self, *titles: str) -> None:
        for title in titles:
            for step in section(title):
                self.terminal.play(step)

    def submit(self) -> None:
        """Have a matrix run."""
        program = self.root / "slow"
        program.write_text(PROGRAM)
        program.chmod(0o755)
        command = f"farm run --no-watch --rounds {ROUNDS} -- {program}"
        self.terminal.play(Step(command=command, expected="..."))
        eventually(lambda: self.count("state = 'measuring'"), "a run is under way", within_s=120)

    def count(self, condition: str) -> int:
        """Return how many attempts at benchmarks there are of a kind."""
        database = Database(self.database_url)
        of_benchmarks = "job_id IN (SELECT job_id FROM jobs WHERE kind = 'benchmark')"
        query = f"SELECT count(*) FROM attempts WHERE {of_benchmarks} AND {condition}"
        try:
            found: int = database.read(lambda connection: connection.exec_driver_sql(query).scalar_one())
        finally:
            database.close()
        return found

    def await_matrix(self) -> None:
        with FarmClient(self.url) as client:
            (summary,) = client.matrices()
            matrix_id = summary.matrix_id
            eventually(lambda: client.matrix(matrix_id).finished_at, "it ends", within_s=300, every_s=0.5)
            assert client.matrix(matrix_id).jobs_by_outcome == {"succeeded": ROUNDS}


@contextmanager
def lab(
    root: Path, *, database_url: str | None = None, here: Mapping[str, str] | None = None
) -> Iterator[Lab]:
    """Install both services below a folder; on PostgreSQL where an address is given."""
    settings, data = root / "etc/benchfarm", root / "var/lib/benchfarm/farm"
    services = [Service(name=name, root=root) for name in ("benchfarm-agent", "benchfarm")]
    tools = root / "bin"
    for folder in (settings, tools, root / "mnt/backups"):
        folder.mkdir(parents=True)
    systemctl = tools / "systemctl"
    systemctl.write_text(
        f"#!/bin/sh\ncd {CHECKOUT} && exec env PYTHONPATH={CHECKOUT} {sys.executable} "
        f'-m tests.support.farm.units {root} "$@"\n'
    )
    path = f"{tools}:{Path(sys.executable).parent}:/usr/bin:/bin"
    environment = {"FARM_DATA_DIR": str(data), "PATH": path, "FARM_USER": "ann"}
    sudo = tools / "sudo"
    sudo.write_text('#!/bin/sh\nshift 2\nexec "$@"\n')
    for tool in (systemctl, sudo):
        tool.chmod(0o755)
    here = dict(here or {})
    here |= {f"/{name}": f"{root}/{name}" for name in ("var/lib/benchfarm", "etc/benchfarm", "mnt/backups")}
    with ExitStack() as stack:
        port, agents_port = stack.enter_context(held_port()), stack.enter_context(held_port())
        (phone,) = stack.enter_context(running_phones(1, root / "phones"))
        farm_env = f"FARM_PORT={port}\nFARM_AGENTS_BIND=127.0.0.1:{agents_port}\n"
        if database_url is not None:
            (settings / "database_url").write_text(f"{database_url}\n")
            environment["FARM_DATABASE_URL_FILE"] = str(settings / "database_url")
            farm_env += f"FARM_DATABASE_URL_FILE={settings / 'database_url'}\n"
        (settings / "farm.env").write_text(farm_env)
        agent_env = f"FARM_AGENT_ADB_CONNECT={phone.address}\nFARM_AGENT_ADB_USB=0\nFARM_AGENT_HOST=bench-1\n"
        (settings / "agent.env").write_text(agent_env)
        for service in services:
            stack.callback(service.stop)
        terminal = stack.enter_context(console(root, environment=environment, here_by_said=here))
        made = Lab(
            root=root,
            terminal=terminal,
            url=f"http://127.0.0.1:{port}",
            database_url=database_url or sqlite_url(data / "farm.sqlite3"),
        )
        _set_up(made, agents_port)
        yield made


def _set_up(made: Lab, agents_port: int) -> None:
    """Start both services and wait until the phone has passed its check."""
    join = f"farm agent join http://127.0.0.1:{agents_port} --data-dir /var/lib/benchfarm/agent"
    for command in (
        "systemctl start benchfarm",
        # Named, since another farm of this machine may answer at the usual address until this one is up.
        f"until env FARM_URL={made.url} farm host list > /dev/null 2>&1; do sleep 1; done",
        f"farm token create --auto-admit --out {made.root}/token",
        f"env FARM_AGENT_HOST=bench-1 {join} --token-file {made.root}/token",
        "systemctl start benchfarm-agent",
    ):
        made.terminal.play(Step(command=command, expected="..."))
    with FarmClient(made.url) as client:
        eventually(
            lambda: [view.health for view in client.devices()] == ["good"], "it is checked", within_s=120
        )


def test_a_farm_on_sqlite_is_upgraded_and_put_back_as_the_page_says(short_path: Path) -> None:
    with lab(short_path) as made:
        made.submit()
        made.play("Upgrade a farm on SQLite", "Upgrade agents")
        assert made.count("state IN ('lost')") == 0, "no run was given up"
        assert made.count("state = 'finished'") > 0
        made.play("Go back, on SQLite")
        made.await_matrix()
        assert list((short_path / "mnt/backups/newer").glob("farm.sqlite3")), "the newer database is kept"


def test_a_farm_on_postgresql_is_upgraded_and_put_back_as_the_page_says(
    short_path: Path, postgres: PostgresServer
) -> None:
    with postgres.database() as name:
        restored = f"{name}_restored"
        # By the test: the server is not where `createdb` would look for it.
        postgres.execute(f"CREATE DATABASE {restored}")
        here = {
            "createdb --owner=benchfarm benchfarm_restored": "true",
            "s|/benchfarm$|/benchfarm_restored|": f"s|/{name}|/{restored}|",
        }
        try:
            with lab(short_path, database_url=postgres.url(name), here=here) as made:
                made.submit()
                made.play("A farm on PostgreSQL")
                made.await_matrix()
        finally:
            postgres.execute(f"DROP DATABASE {restored} WITH (FORCE)")


def test_every_link_and_file_of_the_page_is_there() -> None:
    linked = [target.partition("#")[0] for target in re.findall(r"\]\(([^)]+)\)", PAGE)]
    assert [path for path in linked if path and not (CHECKOUT / "docs" / path).exists()] == []
