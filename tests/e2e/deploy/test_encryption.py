"""A farm that others reach by TLS: its own, or that of nginx or Caddy with the recipes of `deploy/proxy`."""

import os
import re
import shutil
import ssl
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest
import trustme

from tests.e2e.farm.test_access_control import farm_command
from tests.support.farm.processes import CHECKOUT, FarmProcess, Process, eventually
from tests.support.faults.port_faults import held_port

pytestmark = pytest.mark.long

PROXY = CHECKOUT / "deploy" / "proxy"


@dataclass(frozen=True, slots=True)
class Desk:
    """A folder with the certificate of a farm, and of the authority that commands are told to trust."""

    folder: Path

    @property
    def certificate(self) -> Path:
        return self.folder / "farm.pem"

    @property
    def key(self) -> Path:
        return self.folder / "farm.key"

    @property
    def authority(self) -> Path:
        return self.folder / "authority.pem"

    def farm(self, *options: str, **environment: str) -> FarmProcess:
        command = [sys.executable, "-m", "farm.cli.shell.main", "up", "--no-agent", *options]
        return FarmProcess(self.folder / "lab", command=command, environment=environment)

    def token(self, role: str, name: str) -> Path:
        file = self.folder / f"{name}.token"
        words = ("token", "create", "--role", role, "--name", name, "--out", str(file))
        made = farm_command(self.folder, *words, "--data", str(self.folder / "lab"))
        assert made.returncode == 0, made.stderr
        return file


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    made, authority = Desk(tmp_path), trustme.CA()
    issued = authority.issue_cert("127.0.0.1", "localhost")
    authority.cert_pem.write_to_path(made.authority)
    made.certificate.write_bytes(b"".join(each.bytes() for each in issued.cert_chain_pems))
    issued.private_key_pem.write_to_path(made.key)
    return made


def check_what_people_do(desk: Desk, url: str, token: Path) -> None:
    """See commands, uploads, sign-in and events work at an address, for those who trust its authority."""
    here = {"FARM_URL": url, "FARM_TOKEN_FILE": str(token)}
    stranger = farm_command(desk.folder, "whoami", **here)
    assert stranger.returncode != 0
    assert "SSL_CERT_FILE" in stranger.stderr
    here["SSL_CERT_FILE"] = str(desk.authority)
    said = farm_command(desk.folder, "whoami", **here)
    assert said.returncode == 0, said.stderr
    assert "unencrypted" not in said.stderr
    with httpx.Client(
        base_url=url, verify=ssl.create_default_context(cafile=str(desk.authority)), timeout=60.0
    ) as browser:
        form = {"token": token.read_text().strip()}
        entered = browser.post("/login", data=form, headers={"Origin": url})
        assert entered.status_code == 303, entered.text
        assert "secure" in entered.headers["set-cookie"].lower()
        digest = "0" * 64
        answer = browser.put(
            f"/api/v1/blobs/{digest}",
            # More than proxies take by default.
            content=b"#" * 20_000_000,
            headers={"Authorization": f"Bearer {form['token']}"},
        )
        # All of it reached the farm, which compared it.
        assert answer.status_code == 422, answer.text
        assert "digest" in answer.text
        with browser.stream("GET", "/live?keys=devices") as events:
            assert events.status_code == 200
            assert next(events.iter_bytes())


def check_that_an_agent_works(desk: Desk, farm: FarmProcess, url: str) -> None:
    """See an agent join at an address, and its device get its first check from there."""
    folder, token = desk.folder / "agent", desk.folder / "join.token"
    token.write_text(farm.join_token())
    token.chmod(0o600)
    here = {"SSL_CERT_FILE": str(desk.authority)}
    words = ("agent", "join", url, "--token-file", str(token), "--host", "lab-2", "--data-dir", str(folder))
    joined = farm_command(desk.folder, *words, **here)
    assert joined.returncode == 0, joined.stderr
    assert "not encrypted" not in joined.stderr
    run = [
        sys.executable,
        "-m",
        "farm.cli.shell.main",
        "agent",
        "run",
        "--virtual",
        "1",
        "--data-dir",
        str(folder),
    ]
    agent = Process(run, desk.folder / "agent.log", here)
    agent.spawn()
    try:
        eventually(lambda: "attempt_ended" in agent.tail(), "the check of the new device has ended")
    finally:
        agent.stop()


def test_the_farms_own_tls_serves_people_agents_and_its_own_machine(desk: Desk) -> None:
    admin = desk.token("admin", "root")
    environment = {"FARM_TLS_CERT": str(desk.certificate), "FARM_TLS_KEY": str(desk.key)}
    farm = desk.farm("--agents-on", "127.0.0.1:0", FARM_REQUIRE_TOKENS="1", **environment)
    farm.start()
    try:
        # Commands on the same machine need no certificate.
        here = {"FARM_DATA_DIR": str(farm.folder), "FARM_TOKEN_FILE": str(admin)}
        said = farm_command(desk.folder, "whoami", **here)
        assert said.returncode == 0, said.stderr
        assert farm.url in said.stdout
        (people,) = re.findall(r"The farm listens at (https://127\.0\.0\.1:\d+)", farm.tail())
        check_what_people_do(desk, people, admin)
        (agents,) = re.findall(r"connect to (https://127\.0\.0\.1:\d+)$", farm.tail(), re.MULTILINE)
        check_that_an_agent_works(desk, farm, agents)
    finally:
        farm.stop()


@pytest.fixture(params=["nginx", "caddy"])
def proxy(request: pytest.FixtureRequest) -> str:
    name = str(request.param)
    if shutil.which(name, path=f"{os.environ['PATH']}:/usr/sbin") is None:
        pytest.skip(f"no {name} on this machine: `apt-get install {name}` runs this test")
    return name


def proxy_command(desk: Desk, name: str, ports: dict[str, int]) -> list[str]:
    """Return the command of a proxy with its recipe, at other ports and with the desk's certificate."""
    recipe = (PROXY / {"nginx": "nginx.conf", "caddy": "Caddyfile"}[name]).read_text()
    # One pass: a port that was put in is not looked at again.
    recipe = re.sub(r"(?<=[:\s])(443|8443|8470|8471)\b", lambda found: str(ports[found[1]]), recipe)
    recipe = recipe.replace("/etc/ssl", str(desk.folder)).replace("farm.example", "127.0.0.1")
    if name == "caddy":
        file = desk.folder / "Caddyfile"
        file.write_text("{\n\tadmin off\n\tauto_https disable_redirects\n\tskip_install_trust\n}\n" + recipe)
        return ["caddy", "run", "--config", str(file), "--adapter", "caddyfile"]
    file = desk.folder / "nginx.conf"
    folders = "".join(
        f"{each}_temp_path {desk.folder / each};\n"
        for each in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    )
    file.write_text(
        f"daemon off; user root; pid {desk.folder / 'nginx.pid'}; error_log {desk.folder / 'nginx.error'};\n"
        f"events {{}}\nhttp {{\naccess_log off;\n{folders}{recipe}\n}}\n"
    )
    return [
        shutil.which("nginx", path="/usr/sbin:/usr/bin") or "nginx",
        "-p",
        str(desk.folder),
        "-c",
        str(file),
    ]


@pytest.fixture
def ports() -> Iterator[dict[str, int]]:
    with held_port() as people, held_port() as agents, held_port() as farm, held_port() as farm_agents:
        yield {"443": people, "8443": agents, "8470": farm, "8471": farm_agents}


def test_a_proxy_serves_people_and_agents_by_its_recipe(
    desk: Desk, proxy: str, ports: dict[str, int]
) -> None:
    admin = desk.token("admin", "root")
    farm = desk.farm("--agents-on", f"127.0.0.1:{ports['8471']}", FARM_REQUIRE_TOKENS="1")
    farm.port = ports["8470"]
    farm.start()
    own = {"XDG_CONFIG_HOME": str(desk.folder / "config"), "XDG_DATA_HOME": str(desk.folder / "data")}
    served = Process(proxy_command(desk, proxy, ports), desk.folder / "proxy.log", own)
    served.spawn()
    try:
        people = f"https://127.0.0.1:{ports['443']}"
        context = ssl.create_default_context(cafile=str(desk.authority))

        def answers() -> bool:
            served.check_alive()
            try:
                return httpx.get(f"{people}/api/v1/health", verify=context).is_success
            except httpx.TransportError:
                return False

        eventually(answers, "the proxy answers")
        check_what_people_do(desk, people, admin)
        check_that_an_agent_works(desk, farm, f"https://127.0.0.1:{ports['8443']}")
    finally:
        served.stop()
        farm.stop()
