"""The farm's settings: from FARM_ environment variables, overridden by the command line."""

import shlex
import socket
from datetime import timedelta
from pathlib import Path
from typing import Annotated
from urllib.parse import urlsplit

from pydantic import Field, SecretStr, ValidationError, ValidationInfo, field_validator
from pydantic_settings import BaseSettings, SettingsConfigDict

from farm.core.base.address import host_and_port, is_loopback, postgres_url, web_address
from farm.core.base.validation_messages import constraint_message
from farm.core.checks.check_schedule import CheckRules
from farm.core.errors import InvalidInput
from farm.core.jobs.timeouts import AgentTimeouts
from farm.core.operations.alarm import AlarmRules
from farm.core.operations.mail_server import mail_addresses, mail_server
from farm.core.operations.retention import StorageRules
from farm.core.operations.sign_in import ProviderSettings, role_by_group, secure_address

#: The default port of a farm.
DEFAULT_PORT = 8470

#: The shortest time that history may be kept.
MIN_HISTORY_DAYS = 30
#: Settings of farm and agent that are left out of messages: a password may be inside.
_SECRETS = frozenset({"database_url", "alarm_webhook", "smtp_url", "farm_url"})


class FarmConfig(BaseSettings):
    """The settings of a farm: built once, in the daemon; frozen from then on."""

    model_config = SettingsConfigDict(
        env_prefix="FARM_", frozen=True, extra="ignore", hide_input_in_errors=True
    )

    #: Folder of the database, the artifacts and the embedded agent's state.
    data_dir: Path = Path("farm-data")
    #: A file that contains the database URL; it overrides `database_url`.
    database_url_file: Path | None = None
    #: `postgresql://...` for several machines; None: the SQLite file in the data folder.
    database_url: Annotated[SecretStr | None, Field(validate_default=True)] = None
    #: Folder of the artifacts; None: in the data folder. Farm processes on one database share this one.
    blobs_path: Path | None = None
    #: The address for people, and for the agent of this machine.
    bind: str = "127.0.0.1"
    #: 0 takes any free port.
    port: int = DEFAULT_PORT
    #: HOST:PORT for agents on other machines, and for nothing else; None: no other machines.
    agents_bind: str | None = None
    #: PEM file of the certificate and its chain: listeners speak HTTPS. Read again when it changes.
    tls_cert: Path | None = None
    #: PEM file of the certificate's private key, without a pass phrase.
    tls_key: Annotated[Path | None, Field(validate_default=True)] = None
    #: Require a token on loopback, too: behind a reverse proxy all calls come from there.
    require_tokens: bool = False
    #: The most writing and expensive calls of one token or host in a minute, where tokens are required.
    calls_per_minute: Annotated[int, Field(gt=0)] = 1200
    #: The most unfinished jobs of one submitter, where tokens are required; None: no limit.
    open_jobs_per_person: Annotated[int, Field(gt=0)] | None = None
    #: The most bytes of stored files that one submitter uploaded, where tokens are required; None: no limit.
    stored_bytes_per_person: Annotated[int, Field(gt=0)] | None = None
    #: The identity provider (OpenID Connect) by which people sign in, as it calls itself; None: tokens only.
    oidc_issuer: str | None = None
    #: The name that the provider knows this farm by.
    oidc_client_id: Annotated[str | None, Field(validate_default=True)] = None
    #: A file with the secret of that client; None: a public client. PKCE is used either way.
    oidc_client_secret_file: Annotated[Path | None, Field(validate_default=True)] = None
    #: Roles of the provider's groups: `ml-ops=operator,ml=submitter`. The highest of a person's counts.
    oidc_roles: Annotated[str | None, Field(validate_default=True)] = None
    #: The claim of ID tokens, or else of the userinfo, that has a person's groups.
    oidc_groups_claim: Annotated[str, Field(min_length=1)] = "groups"
    #: What the farm asks the provider for, with blanks between; `openid` is among it.
    oidc_scopes: str = "openid profile groups"
    #: Interval of the search for overdue sessions and grants.
    reap_every_s: float = 5.0
    #: Time without a call after which an agent is silent; it keeps its work.
    silent_after_s: Annotated[float, Field(gt=0)] = 60.0
    #: Time without a call after which an agent is lost, with all its running attempts.
    lost_after_s: Annotated[float, Field(gt=0, validate_default=True)] = 300.0
    #: Time after its request in which a grant may be started; later the agent requests it again first.
    start_within_s: Annotated[float, Field(gt=0)] = 30.0
    #: Time after which a grant without a reported start is revoked; more than the one above.
    unstarted_after_s: Annotated[float, Field(gt=0, validate_default=True)] = 120.0
    #: The largest artifact that may be uploaded.
    max_blob_bytes: int = 4 * 1024**3
    #: Limit beyond which unneeded artifacts are deleted, least recently used first; None: no limit.
    blobs_limit_bytes: Annotated[int, Field(ge=0)] | None = None
    #: Time the raw output of finished matrices is kept; None: permanently, so that it can be parsed again.
    evidence_keep_days: Annotated[int, Field(gt=0)] | None = None
    #: Limit beyond which raw output is deleted, oldest first; None: no limit.
    evidence_limit_bytes: Annotated[int, Field(ge=0)] | None = None
    #: Uploads leave this much of the disk free: the database needs room to write.
    disk_reserve_bytes: Annotated[int, Field(ge=0)] = 1024**3
    #: Time that removed artifacts stay in the trash, or less if the disk is short of space.
    trash_keep_days: Annotated[int, Field(ge=0)] = 7
    #: Time that routine events, ended sessions, and plans whose raw output is gone are kept; 0: permanently.
    history_keep_days: Annotated[int, Field(ge=0)] = 1095
    #: A program, with its arguments, that gets each alarm as JSON on its stdin; None: none.
    alarm_command: str | None = None
    #: An http(s) address that each alarm is posted to as JSON; None: none.
    alarm_webhook: SecretStr | None = None
    #: `smtp://user:password@host:587?from=farm@example.org`, or smtps: the server that sends mail of alarms.
    smtp_url: SecretStr | None = None
    #: Addresses, with commas between them, that get a mail of each alarm; None: no mail.
    alarm_mail: Annotated[str | None, Field(validate_default=True)] = None
    #: The http(s) address of the farm's pages: alarms that are sent have a link there; None: no link.
    pages_url: str | None = None
    #: Run virtual devices although tokens are required: what runs there can read the farm's files.
    unconfined_virtual: bool = False
    #: Whether changes of model files and programs are confirmed by a small matrix of the old against the new.
    confirm_changes: bool = True
    #: Interval of the checks of a good device without work.
    check_every_h: Annotated[float, Field(gt=0)] = 24.0
    #: Number of jobs after which a good device is checked, before its next one.
    check_after_jobs: Annotated[int, Field(gt=0)] = 500
    #: Time after which an unusable device of the pool raises an alarm.
    silent_alarm_after_s: Annotated[float, Field(gt=0)] = 3600.0
    #: Interval of enforcing the limits, and of comparing the files with the database.
    sweep_every_s: Annotated[float, Field(gt=0)] = 600.0

    @field_validator("tls_key")
    @classmethod
    def _belongs_to_a_certificate(cls, value: Path | None, info: ValidationInfo) -> Path | None:
        if (value is None) != (info.data.get("tls_cert") is None):
            raise ValueError("FARM_TLS_CERT and FARM_TLS_KEY need each other")
        return value

    @field_validator("oidc_issuer")
    @classmethod
    def _is_an_issuer(cls, value: str | None) -> str | None:
        return None if value is None else secure_address(value)

    @field_validator("oidc_client_id", "oidc_roles", "oidc_client_secret_file")
    @classmethod
    def _belongs_to_an_issuer(cls, value: str | Path | None, info: ValidationInfo) -> str | Path | None:
        if value is not None and info.data.get("oidc_issuer", "") is None:
            raise ValueError("it needs FARM_OIDC_ISSUER, too")
        is_needed = info.field_name != "oidc_client_secret_file"
        if not value and is_needed and info.data.get("oidc_issuer"):
            raise ValueError("FARM_OIDC_ISSUER needs FARM_OIDC_CLIENT_ID and FARM_OIDC_ROLES, too")
        if isinstance(value, Path):
            _secret_in(value)
        elif value is not None and info.field_name == "oidc_roles":
            role_by_group(value)
        return value

    @field_validator("oidc_scopes")
    @classmethod
    def _asks_for_an_id_token(cls, value: str) -> str:
        if "openid" not in value.split():
            raise ValueError("`openid` must be among them: without it the provider sends no ID token")
        return " ".join(value.split())

    @field_validator("database_url_file")
    @classmethod
    def _holds_an_address(cls, value: Path | None) -> Path | None:
        if value is not None:
            _address_in(value)
        return value

    @field_validator("database_url")
    @classmethod
    def _is_postgres(cls, value: SecretStr | None, info: ValidationInfo) -> SecretStr | None:
        file: Path | None = info.data.get("database_url_file")
        if file is not None:
            return _address_in(file)
        return None if value is None else SecretStr(postgres_url(value.get_secret_value()))

    @field_validator("alarm_command")
    @classmethod
    def _is_a_command(cls, value: str | None) -> str | None:
        if value is not None and not shlex.split(value):
            raise ValueError("it names no program")
        return value

    @field_validator("alarm_webhook", "pages_url")
    @classmethod
    def _is_a_web_address(cls, value: SecretStr | str | None) -> SecretStr | str | None:
        if value is not None:
            text = value if isinstance(value, str) else value.get_secret_value()
            parts = urlsplit(text)
            is_address = parts.hostname and parts.port != 0 and text.isprintable() and " " not in text
            if parts.scheme not in ("http", "https") or not is_address:
                raise ValueError("it must begin with http:// or https://, and name a host")
        return value

    @field_validator("smtp_url")
    @classmethod
    def _is_a_mail_server(cls, value: SecretStr | None) -> SecretStr | None:
        if value is not None:
            mail_server(value.get_secret_value())
        return value

    @field_validator("alarm_mail")
    @classmethod
    def _can_be_sent(cls, value: str | None, info: ValidationInfo) -> str | None:
        if value is not None:
            mail_addresses(value)
            if info.data.get("smtp_url") is None:
                raise ValueError("mail needs a server: FARM_SMTP_URL=smtp://host:25")
        return value

    @field_validator("history_keep_days")
    @classmethod
    def _keeps_what_decides(cls, value: int) -> int:
        if 0 < value < MIN_HISTORY_DAYS:
            # Health, alarms and late reports look back for days.
            raise ValueError(f"it must be at least {MIN_HISTORY_DAYS} days, or 0 to keep all")
        return value

    @field_validator("agents_bind")
    @classmethod
    def _is_host_and_port(cls, value: str | None) -> str | None:
        if value is not None:
            host_and_port(value)
        return value

    @field_validator("lost_after_s", "unstarted_after_s")
    @classmethod
    def _is_later(cls, value: float, info: ValidationInfo) -> float:
        earlier = {"lost_after_s": "silent_after_s", "unstarted_after_s": "start_within_s"}[
            str(info.field_name)
        ]
        if value <= info.data.get(earlier, 0.0):
            raise ValueError(f"it must be more than {earlier}, {info.data[earlier]:g}")
        return value

    @property
    def agent_timeouts(self) -> AgentTimeouts:
        """Return the time-outs of silent agents."""
        return AgentTimeouts(
            silent_after=timedelta(seconds=self.silent_after_s),
            lost_after=timedelta(seconds=self.lost_after_s),
            start_within=timedelta(seconds=self.start_within_s),
            unstarted_after=timedelta(seconds=self.unstarted_after_s),
        )

    @property
    def check_rules(self) -> CheckRules:
        """Return how often good devices are checked."""
        return CheckRules(every=timedelta(hours=self.check_every_h), after_jobs=self.check_after_jobs)

    @property
    def alarm_rules(self) -> AlarmRules:
        """Return how long a condition may last before an alarm is raised."""
        return AlarmRules(device_after=timedelta(seconds=self.silent_alarm_after_s))

    @property
    def alarm_argv(self) -> tuple[str, ...]:
        """Return the command that receives alarms; empty: none."""
        return tuple(shlex.split(self.alarm_command or ""))

    @property
    def needs_tokens(self) -> bool:
        """Return whether people must authenticate, because callers from other machines are possible."""
        return self.require_tokens or not is_loopback(self.bind)

    @property
    def provider(self) -> ProviderSettings | None:
        """Return how people sign in by an identity provider; None where they cannot, or need not."""
        if self.oidc_issuer is None or not self.needs_tokens:
            return None
        file = self.oidc_client_secret_file
        return ProviderSettings(
            issuer=self.oidc_issuer,
            client_id=self.oidc_client_id or "",
            client_secret=None if file is None else _secret_in(file),
            roles=role_by_group(self.oidc_roles or ""),
            groups_claim=self.oidc_groups_claim,
            scopes=self.oidc_scopes,
        )

    @property
    def agents_url(self) -> str | None:
        """Return the address for agents on other machines, as far as this machine knows it."""
        return None if self.agents_bind is None else self.url_elsewhere(*host_and_port(self.agents_bind))

    @property
    def is_encrypted(self) -> bool:
        """Return whether the listeners speak HTTPS."""
        return self.tls_cert is not None

    def url_elsewhere(self, host: str, port: int) -> str:
        """Return the URL of a listener for other machines, as far as this machine knows it."""
        # A listener on every address has no name of its own; others reach this machine by its host name.
        name = socket.gethostname() if host in ("0.0.0.0", "::") else host
        return web_address(name, port, is_encrypted=self.is_encrypted)

    @property
    def storage_rules(self) -> StorageRules:
        """Return the limits of the farm's storage."""
        return StorageRules(
            blobs_limit_bytes=self.blobs_limit_bytes,
            evidence_keep_days=self.evidence_keep_days,
            evidence_limit_bytes=self.evidence_limit_bytes,
            reserve_bytes=self.disk_reserve_bytes,
            trash_keep_days=self.trash_keep_days,
            history_keep_days=self.history_keep_days or None,
        )

    @property
    def database_path(self) -> Path:
        """Return the SQLite file."""
        return self.data_dir / "farm.sqlite3"

    @property
    def blobs_dir(self) -> Path:
        """Return the folder of artifacts by digest."""
        return self.blobs_path or self.data_dir / "blobs"


def _address_in(file: Path) -> SecretStr:
    return SecretStr(postgres_url(_text_in(file)))


def _secret_in(file: Path) -> str:
    if not (secret := _text_in(file).strip()):
        raise ValueError("it is empty")
    return secret


def _text_in(file: Path) -> str:
    try:
        return file.read_text()
    except (OSError, UnicodeDecodeError) as error:
        raise ValueError(f"it cannot be read: {error}") from error


def invalid_setting(error: ValidationError, prefix: str) -> InvalidInput:
    """Return the error for invalid settings; it names the first by its environment variable."""
    first = error.errors(include_url=False)[0]
    name = f"{prefix}{first['loc'][0]}".upper()
    value = first["input"]
    text = ",".join(map(str, value)) if isinstance(value, tuple) else value
    if first["loc"][0] in _SECRETS:
        text = "..."
    message = constraint_message(first["type"], first["msg"], first.get("ctx", {}))
    if first["type"] == "string_pattern_mismatch":
        message = "blanks, `/` and control characters have no place in it"
    return InvalidInput(f"{name}={text}: {message}", hint=f"correct {name}, or the option that stands for it")
