"""Devices as text: their state, the table of `farm device list`, the sheet of `farm device show`."""

from collections import Counter
from collections.abc import Iterator, Sequence

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from farm.cli.shell.tables import Listing, name, number, prose, sections, sheet
from farm.core.base.units import size_text
from farm.core.devices.condition import Condition
from farm.core.devices.device import Cluster, DeviceFacts, Gpu, NnapiDriver
from farm.core.operations.event import Event
from farm.core.results.ceiling_history import CeilingHistory
from farm.core.upkeep.device_settings import NOT_SET, DeviceSettingsRecord, SettingResult, SettingState
from farm.presentation.device_state import device_state_text, find_remedy, recovery_text, since_text
from farm.presentation.text import EMPTY_CELL, device_kind, local_time_text, plural
from farm.wire.documents.devices import DeviceDetail, DeviceView, PastAttempt

_GHZ = 1_000_000_000
#: Name, value, and the key of its source.
_Fact = tuple[str, object, str]

_STATE_TEXT = {
    SettingState.RIGHT: "right",
    SettingState.DIFFERENT: "differs",
    SettingState.SET: "set",
    SettingState.REFUSED: "refused by the device",
    SettingState.RESTORED: "restored",
    SettingState.SKIPPED: "skipped",
}


def hardware_table(facts: DeviceFacts) -> Table:
    """Return one row for each known fact of a device."""
    table = Listing[_Fact](
        name("fact", lambda fact: fact[0]),
        prose("value", lambda fact: fact[1]),
        prose("source", lambda fact: facts.sources.get(fact[2])),
    )
    return table(fact for fact in _facts(facts) if fact[1])


def _facts(facts: DeviceFacts) -> Iterator[_Fact]:
    yield "maker", facts.manufacturer, "manufacturer"
    yield "model", facts.device_model, "device_model"
    yield "sold as", facts.market_name, "market_name"
    yield "chip", facts.soc, "soc"
    yield "cores", facts.cores and plural(facts.cores, "core"), "cores"
    yield from (("", cluster_text(cluster), "clusters") for cluster in facts.clusters)
    if facts.gpu is not None:
        yield "GPU", " ".join(filter(None, (facts.gpu.vendor, facts.gpu.renderer))), "gpu"
        yield "GPU driver", facts.gpu.driver_text or facts.gpu.driver, "gpu"
        yield "Vulkan", _vulkan_text(facts.gpu), "gpu"
    yield from (("NNAPI driver", driver_text(driver), "nnapi") for driver in facts.nnapi)
    api = f", API level {facts.api_level}" if facts.api_level else ""
    yield "memory", facts.memory_bytes and size_text(facts.memory_bytes), "memory_bytes"
    yield "storage", facts.storage_bytes and size_text(facts.storage_bytes), "storage_bytes"
    yield "Android", facts.android and f"{facts.android}{api}", "android"
    yield "ABIs", ", ".join(facts.abis), "abis"
    yield "build", facts.build_fingerprint, "build_fingerprint"
    yield "security patch", facts.security_patch, "security_patch"
    yield "kernel", facts.kernel, "kernel"
    yield "kernel version", facts.kernel_version, "kernel_version"
    yield "thermal HAL", facts.thermal_hal, "thermal_hal"
    yield "root", {True: "available to the shell", False: "no", None: None}[facts.root], "root"
    yield "work root", facts.work_root, "work_root"


def _vulkan_text(gpu: Gpu) -> str | None:
    if not (gpu.vulkan or gpu.vulkan_driver):
        return None
    driver = f", driver {gpu.vulkan_driver}" if gpu.vulkan_driver else ""
    return f"{gpu.vulkan or 'version unknown'}{driver}"


def cluster_text(cluster: Cluster) -> str:
    """Return `4 x Cortex-A510 (0-3), 0.30 to 1.70 GHz`."""
    kind = f"{len(cluster.cores)} x {cluster.core or 'core'} ({_numbers(cluster.cores)})"
    if cluster.max_hz is None:
        return kind
    low = "" if cluster.min_hz is None else f"{cluster.min_hz / _GHZ:.2f} to "
    return f"{kind}, {low}{cluster.max_hz / _GHZ:.2f} GHz"


def driver_text(driver: NnapiDriver) -> str:
    """Return `google-edgetpu, version 4, runs`."""
    state = {True: "runs", False: "does not run", None: "state unknown"}[driver.running]
    version = "" if driver.version is None else f", version {driver.version}"
    return f"{driver.name}{version}, {state}"


def _numbers(cores: tuple[int, ...]) -> str:
    is_run = len(cores) > 1 and cores == tuple(range(cores[0], cores[-1] + 1))
    return f"{cores[0]}-{cores[-1]}" if is_run else ", ".join(map(str, cores))


def settings_table(record: DeviceSettingsRecord) -> Table:
    """Return one row for each setting, those that are not right first."""
    table = Listing[SettingResult](
        name("setting", lambda result: result.name),
        name("actual", lambda result: result.now or NOT_SET),
        name("required", lambda result: result.wanted),
        prose("state", _setting_state),
    )
    return table(
        sorted(record.settings, key=lambda result: (result.state is SettingState.RIGHT, result.name))
    )


def settings_reasons(record: DeviceSettingsRecord) -> Iterator[str]:
    """Return one line for each reason, with the settings that are not right."""
    names_by_reason: dict[str, list[str]] = {}
    for result in sorted(record.settings, key=lambda result: result.name):
        if result.state is not SettingState.RIGHT:
            names_by_reason.setdefault(result.note or result.why, []).append(result.name.rpartition("/")[2])
    return (f"{', '.join(names)}: {reason}" for reason, names in names_by_reason.items())


def settings_line(record: DeviceSettingsRecord) -> str:
    """Return the counts of the last check or change in one line."""
    counts = Counter(result.state for result in record.settings)
    text = ", ".join(_count_text(counts[state], state) for state in _STATE_TEXT if counts[state])
    ours = sum(result.ours for result in record.settings)
    by_farm = f"; {ours} set by the farm" if ours else ""
    return f"{text or EMPTY_CELL}{by_farm} (for {record.requested_by}, at {local_time_text(record.at)})"


def _count_text(count: int, state: SettingState) -> str:
    """Return `1 differs` or `2 differ`."""
    return f"{count} {'differ' if state is SettingState.DIFFERENT and count > 1 else _STATE_TEXT[state]}"


def _setting_state(result: SettingResult) -> str:
    text = _STATE_TEXT[result.state]
    return f"{text}, was {result.original or NOT_SET}" if result.ours else text


_table = Listing[DeviceView](
    name("device", lambda view: view.name),
    prose("model", lambda view: device_kind(view.device_model, view.soc, virtual=view.virtual)),
    prose("host", lambda view: view.host),
    prose("state", device_state_text),
    number("since", since_text),
)

_attempt_table = Listing[PastAttempt](
    name("attempt", lambda attempt: attempt.attempt_id),
    name("job", lambda attempt: attempt.job_id),
    name("what", lambda attempt: attempt.kind),
    name("ended", lambda attempt: attempt.outcome or attempt.state),
    number("claimed", lambda attempt: local_time_text(attempt.claimed_at)),
    prose("why", lambda attempt: attempt.message if attempt.outcome is None else attempt.code),
)

#: The events of a device or a host.
event_table = Listing[Event](
    name("at", lambda event: local_time_text(event.at)),
    name("what", lambda event: _change_text(event)),
    prose("by", lambda event: event.actor),
    prose("why", lambda event: event.cause),
)


def device_table(devices: Sequence[DeviceView]) -> RenderableType:
    """Return one line for each device, then one line for each that needs an operator."""
    remedies = [line for line in map(find_remedy, devices) if line is not None]
    return sections(_table(devices), Group(*map(Text, remedies)) if remedies else None)


def device_report(view: DeviceDetail) -> RenderableType:
    """Return the report of a device: hardware, state, pending reasons, recent attempts and events."""
    return sections(
        sheet(_fields(view)),
        hardware_table(view.facts) if view.facts is not None else None,
        _attempt_table(view.attempts) if view.attempts else None,
        event_table(view.events) if view.events else None,
    )


def _fields(view: DeviceDetail) -> Iterator[tuple[str, object]]:
    since = f", for {since_text(view)}" if view.since else ""
    kind = device_kind(view.device_model, view.soc, virtual=view.virtual)
    yield "device", view.name if view.label is None else f"{view.label} ({view.device_id})"
    yield "state", f"{device_state_text(view)}{since}"
    yield "no work because", "; ".join(view.waiting_for)
    yield "why", view.why
    yield "what to do", view.advice
    yield "its host", view.incident and f"{view.incident}; not counted against the device"
    yield "presence", f"{view.presence} ({view.detail})" if view.detail else view.presence
    yield "recovery", view.recovery and recovery_text(view.recovery)
    yield "health", view.health
    yield "reference run", view.reference_run
    if view.rebaselined_at:
        set_at = local_time_text(view.rebaselined_at)
        yield "baseline", f"set {set_at}: compared with its own runs since then"
    for ceiling in view.ceilings:
        yield "clock limit", ceiling_text(ceiling)
    yield "admin", view.admin
    yield "model", f"{kind}, unit {view.unit}" if view.unit else kind
    yield "tags", ", ".join(view.tags) or EMPTY_CELL
    yield "host, serial", f"{view.host}, {view.serial}; last seen {local_time_text(view.seen_at)}"
    yield "condition", view.condition and condition_text(view.condition)
    yield "settings", view.settings and settings_line(view.settings)
    yield "queue", plural(view.queued_jobs, "job")
    for action in view.device_actions:
        waits = f", waiting: {action.waiting_for}" if action.waiting_for else ""
        yield "action", f"{action.kind} for {action.requested_by}{waits}"


def ceiling_text(ceiling: CeilingHistory) -> str:
    """Return how a clock was limited during the device's last runs."""
    limited = f"{ceiling.name} down to {ceiling.lowest_hz / 1e9:.2f} of {ceiling.hardware_hz / 1e9:.2f} GHz"
    runs = f"in {ceiling.limited_runs} of {plural(ceiling.runs, 'run')}"
    when = f"{ceiling.first_s:.0f} s after the start at the earliest, last {local_time_text(ceiling.last_at)}"
    return f"{limited} {runs}; {when}"


def condition_text(condition: Condition) -> str:
    """Return the last reported condition of a device; values that it does not report are left out."""
    level, free = condition.battery_level_pct, condition.storage_free_bytes
    parts = [
        condition.thermal_status is not None and f"thermal {condition.thermal_status.name}",
        condition.skin_c is not None and f"skin {condition.skin_c:.1f} °C",
        level is not None and f"battery {level} %" + (" charging" if condition.charging else ""),
        condition.charging_note,
        condition.battery_c is not None and f"battery {condition.battery_c:.1f} °C",
        free is not None and f"{size_text(free)} free",
        condition.load_1m is not None and f"load {condition.load_1m:.2f}",
    ]
    text = ", ".join(part for part in parts if part)
    return f"{text or 'nothing reported'} (at {local_time_text(condition.taken_at)})"


def _change_text(event: Event) -> str:
    subject, _, change = event.kind.partition("_")
    what = (change if subject in ("device", "host") else event.kind).replace("_", " ")
    return f"{what} to {event.to_state}" if event.kind.endswith("_changed") else what
