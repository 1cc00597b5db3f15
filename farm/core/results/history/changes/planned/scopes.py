"""Scopes that a new version may concern: all series that have it, and parts of them."""

from collections.abc import Callable, Collection, Mapping

import numpy as np

from farm.core.results.history.changes.breaks import Catalog, VersionBreak
from farm.core.results.history.changes.differences import Difference
from farm.core.results.history.changes.points import BASELINE, Cause

#: What the series of a scope have in common, and what each of them shows.
Scope = tuple[dict[str, str], Mapping[int, Difference]]


def version_scope(catalog: Catalog, known: VersionBreak) -> dict[str, str]:
    """Return what all series of a break have: the program, the build, or the device of a method."""
    match known.cause:
        case Cause.FILE:
            return {}
        case Cause.METHOD:
            return {"device": catalog.series[next(iter(known.tick_by_row))].device}
    return {str(known.cause): known.version}


def scopes_of(catalog: Catalog, known: VersionBreak, evidence: Mapping[int, Difference]) -> list[Scope]:
    """Return all series of a break, first, and its parts: devices of a file, else networks and variants."""
    series = catalog.series
    by_device = (("device",), lambda row: (series[row].device,))
    if known.cause is Cause.FILE:
        first = series[next(iter(evidence))]
        whole = {"network": first.network, "variant": first.variant}
        return [(whole, evidence), *_parts(evidence, {}, *by_device)]
    version = version_scope(catalog, known)
    scopes = [
        (version, evidence),
        *_parts(evidence, version, ("network",), lambda row: (series[row].network,)),
        *_parts(evidence, version, ("variant",), lambda row: (series[row].variant,)),
        *_parts(
            evidence, version, ("network", "variant"), lambda row: (series[row].network, series[row].variant)
        ),
    ]
    return [*scopes, *_parts(evidence, version, *by_device)] if known.cause is Cause.OS else scopes


def baseline_scopes(catalog: Catalog, known: VersionBreak, evidence: Mapping[int, Difference]) -> list[Scope]:
    """Return the networks whose variants all moved alike, as they do where their baseline moves."""
    version = {**version_scope(catalog, known), "variant": BASELINE}
    networks = _partition(evidence, lambda row: (catalog.series[row].network,))
    return [
        ({**version, "network": network}, rows)
        for (network,), rows in sorted(networks.items())
        if _move_alike(catalog, rows)
    ]


def _move_alike(catalog: Catalog, evidence: Mapping[int, Difference]) -> bool:
    """Return whether two or more variants of a network moved by the same, which one baseline does."""
    by_variant: dict[str, list[float]] = {}
    for row, part in evidence.items():
        by_variant.setdefault(catalog.series[row].variant, []).append(part.size)
    sizes = [float(np.mean(values)) for values in by_variant.values()]
    if len(sizes) < 2 or max(sizes) * min(sizes) <= 0:
        return False
    return min(map(abs, sizes)) >= 0.5 * max(map(abs, sizes))


def _parts(
    evidence: Mapping[int, Difference],
    whole: Mapping[str, str],
    names: tuple[str, ...],
    values_of: Callable[[int], tuple[str, ...]],
) -> list[Scope]:
    """Return the parts of a scope by what its series have of some names; none where all have the same."""
    parts = _partition(evidence, values_of)
    if len(parts) < 2:
        return []
    return [({**whole, **dict(zip(names, values, strict=True))}, rows) for values, rows in parts.items()]


def _partition(
    evidence: Mapping[int, Difference], values_of: Callable[[int], tuple[str, ...]]
) -> dict[tuple[str, ...], dict[int, Difference]]:
    """Return what series show, by values that they have."""
    parts: dict[tuple[str, ...], dict[int, Difference]] = {}
    for row, part in evidence.items():
        parts.setdefault(values_of(row), {})[row] = part
    return parts


def is_alone(catalog: Catalog, rows: Collection[int]) -> bool:
    """Return whether no other device measures what these series are: none can be compared with them.

    One session of one series or of one baseline may be an outlier, however far it moved.
    """
    slots = {catalog.series[row].slot for row in rows}
    return all(row in rows for slot in slots for row in catalog.rows_by_slot[slot])


def is_in_scope(catalog: Catalog, row: int, scope: Mapping[str, str]) -> bool:
    """Return whether a series, or the baseline of it, is one of a scope."""
    series = catalog.series[row]
    parts = {"device": series.device, "network": series.network}
    if scope.get("variant") != BASELINE:
        parts["variant"] = series.variant
    return all(scope.get(key, value) == value for key, value in parts.items())
