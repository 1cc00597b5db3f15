"""Software of a device that updates replace and that can change results: system build and drivers."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from farm.core.base.ids import FactsId, digest_of
from farm.core.devices.device import DeviceFacts, Gpu


@dataclass(frozen=True, slots=True, kw_only=True)
class SoftwareChange:
    """One part of a phone that is another version than before."""

    part: str
    before: str
    after: str

    def __str__(self) -> str:
        return f"{self.part} {self.before} to {self.after}"


def software_changes(before: DeviceFacts, after: DeviceFacts) -> tuple[SoftwareChange, ...]:
    """Return the software updates between two readings of a device's facts, the system build first.

    A value missing from one reading counts as unchanged: a driver may have been too slow to answer. Whether a
    driver runs, and everything that is measured at each reading, is no version.
    """
    was, now = dict(_versions(before)), dict(_versions(after))
    changes = [
        SoftwareChange(part=part, before=was[part], after=version)
        for part, version in now.items()
        if was.get(part, version) != version
    ]
    return (*changes, *_drivers_changed(before, after))


def build_by_facts(facts: Mapping[FactsId, DeviceFacts]) -> dict[FactsId, int]:
    """Number the builds of a device by its snapshots: those without an updated component share a number."""
    first: list[DeviceFacts] = []
    numbers: dict[FactsId, int] = {}
    for facts_id in sorted(facts):
        snapshot = facts[facts_id]
        equal_builds = (number for number, build in enumerate(first) if not software_changes(build, snapshot))
        numbers[facts_id] = next(equal_builds, len(first))
        if numbers[facts_id] == len(first):
            first.append(snapshot)
    return numbers


def build_names(facts: Mapping[FactsId, DeviceFacts]) -> dict[FactsId, str]:
    """Return a name of the software of each snapshot of a device, the same for all of one build.

    It is the fingerprint of the system build, with the beginning of a digest of kernel and drivers, so that
    devices of one name run the same software.
    """
    numbers = build_by_facts(facts)
    names: dict[int, str] = {}
    for facts_id in sorted(facts):
        names.setdefault(numbers[facts_id], _build_name(facts[facts_id]))
    return {facts_id: names[number] for facts_id, number in numbers.items()}


def _build_name(facts: DeviceFacts) -> str:
    versions = dict(_versions(facts))
    build = versions.pop("build", None) or f"Android {facts.android or 'unknown'}"
    drivers = "\n".join(f"{part} {version}" for part, version in sorted(versions.items()))
    return f"{build} {digest_of(drivers.encode())[:8]}" if drivers else build


def _versions(facts: DeviceFacts) -> Iterator[tuple[str, str]]:
    graphics = facts.gpu or Gpu()
    system_versions = {
        "build": facts.build_fingerprint,
        "kernel": facts.kernel,
        "GPU driver": graphics.driver_text or graphics.driver,
        "Vulkan driver": graphics.vulkan_driver,
    }
    drivers = {f"NNAPI driver {driver.name}": driver.version for driver in facts.nnapi}
    for part, version in {**system_versions, **drivers}.items():
        if version is not None:
            yield part, version


def _drivers_changed(before: DeviceFacts, after: DeviceFacts) -> Iterator[SoftwareChange]:
    """Yield added and removed drivers; a device that lists none may not have reported them."""
    was, now = (", ".join(sorted(driver.name for driver in facts.nnapi)) for facts in (before, after))
    if was and now and was != now:
        yield SoftwareChange(part="NNAPI drivers", before=was, after=now)
