"""What goes wrong when, and what people order meanwhile: drawn from a seed, before anything runs."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from random import Random
from types import MappingProxyType

from tests.chaos.network.proxy import Mischief


class Kind(StrEnum):
    """What a fault or an order is about."""

    FARM_KILLED = "farm_killed"
    FARM_STOPPED = "farm_stopped"
    #: Nothing that a farm writes finds room: its database is on its disk.
    FARM_DISK_FULL = "farm_disk_full"
    AGENT_KILLED = "agent_killed"
    AGENT_STOPPED = "agent_stopped"
    #: Another agent in the same folder; it must give up.
    SECOND_AGENT = "second_agent"
    ADB_KILLED = "adb_killed"
    ADB_STOPPED = "adb_stopped"
    #: A fault of `agents.virtual.faults`, named by `Fault.detail`.
    PHONE_AILS = "phone_ails"
    #: To the next agent.
    PHONE_MOVES = "phone_moves"
    #: A mischief of the proxy, named by `Fault.detail`.
    NETWORK = "network"
    DATABASE_LOCKED = "database_locked"
    BACKENDS_TERMINATED = "backends_terminated"


class Order(StrEnum):
    """What people do meanwhile."""

    SUBMIT = "submit"
    CANCEL = "cancel"
    RERUN = "rerun"
    CORDON = "cordon"
    HOLD = "hold"
    CLEAN = "clean"


#: How a phone may ail: what `Faults` is told.
AILMENTS: Mapping[str, Mapping[str, bool | int | float]] = MappingProxyType(
    {
        "vanish": {"vanish": True},
        "flap": {"flap_s": 0.7},
        "hang": {"hang": True},
        "offline": {"offline": True},
        "unauthorized": {"unauthorized": True},
        "reboot": {"reboots": 1},
        "boot_loop": {"boot_loop": True, "reboot_s": 0.5},
        "adbd_restart": {"adbd_restarts": 1},
        "adbd_restart_ends_runs": {"adbd_restarts": 1, "adbd_takes_runs": True},
        "slow": {"slow_ms": 400},
        "exit1": {"exit1": True},
        "drip": {"drips": True},
        "eof": {"eofs": 1},
        "corrupt_push": {"corrupt_pushes": 1},
        "truncate_push": {"truncate_pushes": 1},
        "power_cut_push": {"power_cut_pushes": 1},
        "disk_full": {"disk_full": True},
    }
)
#: Requests that a mischief waits for, by part of their path: those of agents, and people's about matrices.
PATHS = ("/exchange", "/exchange", "/report", "/report", "/agent/sessions", "/blobs/", "/matrices")
_WEIGHTS: Mapping[Kind, int] = MappingProxyType(
    {
        Kind.FARM_KILLED: 3,
        Kind.FARM_STOPPED: 3,
        Kind.FARM_DISK_FULL: 2,
        Kind.AGENT_KILLED: 4,
        Kind.AGENT_STOPPED: 4,
        Kind.SECOND_AGENT: 1,
        Kind.ADB_KILLED: 3,
        Kind.ADB_STOPPED: 2,
        Kind.PHONE_AILS: 12,
        Kind.PHONE_MOVES: 2,
        Kind.NETWORK: 16,
        Kind.DATABASE_LOCKED: 2,
        Kind.BACKENDS_TERMINATED: 3,
    }
)
_ORDER_WEIGHTS: Mapping[Order, int] = MappingProxyType(
    {Order.SUBMIT: 10, Order.CANCEL: 1, Order.RERUN: 1, Order.CORDON: 1, Order.HOLD: 1, Order.CLEAN: 1}
)
_ONLY_ON = {
    Kind.FARM_DISK_FULL: "sqlite",
    Kind.DATABASE_LOCKED: "sqlite",
    Kind.BACKENDS_TERMINATED: "postgresql",
}
_GAP_S, _ORDER_GAP_S = 0.55, 1.6
#: Most disturbances are short; one in five lasts long enough for somebody to be called silent or lost.
_SHORT_S, _LONG_S = (0.1, 2.5), (4.0, 12.0)
_LONG_SHARE = 0.2
#: So long a part is left in peace afterwards, so that there is work for the next fault to hit: what was
#: killed has to start, and phones to be found again.
_PEACE_S = {"farm": 6.0, "agent": 6.0, "phone": 3.0}


@dataclass(frozen=True, slots=True, kw_only=True)
class Cast:
    """Who can be hit."""

    farms: int
    agents: int
    phones: int
    #: `sqlite` or `postgresql`.
    database: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """Something goes wrong at `at_s` of the storm, and is right again `lasts_s` later."""

    kind: Kind
    at_s: float
    lasts_s: float
    #: Which of its kind: a farm, an agent, a phone.
    target: int = 0
    detail: str = ""
    #: Which requests, for mischief of the network.
    path: str = ""

    @property
    def name(self) -> str:
        return f"{self.kind}:{self.detail}" if self.detail else self.kind


@dataclass(frozen=True, slots=True, kw_only=True)
class Demand:
    """Somebody orders something at `at_s`, and takes it back `lasts_s` later where it can be taken back."""

    order: Order
    at_s: float
    lasts_s: float
    #: Below 1; picks the phone, the matrix, or how long runs take.
    pick: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Schedule:
    """A storm as it was drawn; the same for the same seed and cast."""

    faults: tuple[Fault, ...]
    demands: tuple[Demand, ...]


def schedule(seed: int, count: int, cast: Cast) -> Schedule:
    """Draw `count` faults, and orders as long as they go on."""
    faults = tuple(_Faults(Random(f"{seed} faults"), cast).draw(count))
    demands = tuple(_demands(Random(f"{seed} orders"), max((fault.at_s for fault in faults), default=0.0)))
    return Schedule(faults=faults, demands=demands)


@dataclass
class _Faults:
    random: Random
    cast: Cast
    #: When each part is well again: it suffers one thing at a time, and different parts at once.
    well_at_s: dict[str, float] = field(default_factory=dict)

    def draw(self, count: int) -> Iterator[Fault]:
        now_s = 0.0
        while count:
            now_s += self.random.expovariate(1 / _GAP_S)
            fault = self._fault(now_s)
            parts = _parts(fault)
            if any(self.well_at_s.get(part, 0.0) > now_s for part in parts):
                continue
            peace_s = _PEACE_S.get(_part(fault.kind), 0.0)
            self.well_at_s.update(dict.fromkeys(parts, now_s + fault.lasts_s + peace_s))
            count -= 1
            yield fault

    def _fault(self, at_s: float) -> Fault:
        kinds = [kind for kind in _WEIGHTS if _ONLY_ON.get(kind, self.cast.database) == self.cast.database]
        (kind,) = self.random.choices(kinds, [_WEIGHTS[kind] for kind in kinds])
        long = self.random.random() < _LONG_SHARE
        lasts_s = self.random.uniform(*(_LONG_S if long else _SHORT_S))
        target = self.random.randrange(self._count(kind))
        detail = path = ""
        if kind is Kind.PHONE_AILS:
            detail = self.random.choice(sorted(AILMENTS))
        elif kind is Kind.NETWORK:
            detail, path = self.random.choice(sorted(Mischief)), self.random.choice(PATHS)
        return Fault(kind=kind, at_s=at_s, lasts_s=lasts_s, target=target, detail=detail, path=path)

    def _count(self, kind: Kind) -> int:
        part = _part(kind)
        return {"farm": self.cast.farms, "agent": self.cast.agents, "phone": self.cast.phones}.get(part, 1)


def _part(kind: Kind) -> str:
    match kind:
        case Kind.FARM_KILLED | Kind.FARM_STOPPED | Kind.FARM_DISK_FULL:
            return "farm"
        case Kind.AGENT_KILLED | Kind.AGENT_STOPPED | Kind.SECOND_AGENT | Kind.ADB_KILLED | Kind.ADB_STOPPED:
            return "agent"
        case Kind.PHONE_AILS | Kind.PHONE_MOVES:
            return "phone"
        case _:
            return kind


def _parts(fault: Fault) -> list[str]:
    """What nothing else may happen to meanwhile; the network has room for any number of traps."""
    return [] if fault.kind is Kind.NETWORK else [f"{_part(fault.kind)} {fault.target}"]


def _demands(random: Random, until_s: float) -> Iterator[Demand]:
    now_s = 0.0
    while now_s <= until_s:
        (order,) = random.choices(list(_ORDER_WEIGHTS), list(_ORDER_WEIGHTS.values()))
        yield Demand(order=order, at_s=now_s, lasts_s=random.uniform(0.5, 6.0), pick=random.random())
        now_s += random.expovariate(1 / _ORDER_GAP_S)
