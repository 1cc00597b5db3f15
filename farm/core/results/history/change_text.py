"""Changes in words: what, by how much, and which version."""

import math
from collections.abc import Mapping, Sequence
from datetime import date

from farm.core.results.history.recorded_change import ChangedVersion

_NORMAL_97_5 = 1.96
#: From this factor on a change is written as a factor.
_AS_FACTOR_FROM = 3.0
_DIGEST_LENGTH = 64


def effect_bounds(delta: float, se_delta: float) -> tuple[float, float]:
    """Return the 95 % interval of a change of the logarithm of time."""
    half = _NORMAL_97_5 * se_delta
    return delta - half, delta + half


def effect_text(delta: float, se_delta: float) -> str:
    """Return `+5.1 % (+4.2 to +6.0)`: the change of time with its 95 % interval; large ones as `4.0x`."""
    low, high = effect_bounds(delta, se_delta)
    if delta >= math.log(_AS_FACTOR_FROM):
        return f"{math.exp(delta):.3g}x ({math.exp(low):.3g} to {math.exp(high):.3g})"
    percents = [100 * math.expm1(value) for value in (delta, low, high)]
    digits = 1 if abs(percents[0]) < 20 else 0
    change, least, most = (f"{percent:+.{digits}f}" for percent in percents)
    return f"{change} % ({least} to {most})"


def percent_text(delta: float) -> str:
    """Return `+5.1 %`: a change of the logarithm of time, in percent."""
    return f"{100 * math.expm1(delta):+.1f} %"


def scope_text(scope: Mapping[str, str]) -> str:
    """Return what the changed series have in common: `mobilenet_v2 int8-core on phone-1`.

    Where they have no model in common, or none, it is their harness.
    """
    named = [scope[key] for key in ("model", "variant") if key in scope]
    if named and "model" not in scope and "harness" in scope:
        named.insert(0, scope["harness"])
    elif not named:
        named = [f"everything of {scope['harness']}" if "harness" in scope else "everything"]
    device = [f"on {scope['device']}"] if "device" in scope else []
    return " ".join([*named, *device])


def version_text(version: ChangedVersion) -> str:
    """Return `program 3f2a91c4 → 9c1b07de`."""
    return f"{version.part} {_short(version.old)} → {_short(version.new)}"


def _short(text: str | None) -> str:
    if text is None:
        return "unknown"
    return text[:8] if len(text) == _DIGEST_LENGTH else text


def dates_text(before: date, since: date) -> str:
    """Return the interval of dates in which a change lies: `2026-07-13 to 07-14`."""
    if before == since:
        return since.isoformat()
    if before.year == since.year:
        return f"{before.isoformat()} to {since:%m-%d}"
    return f"{before.isoformat()} to {since.isoformat()}"


def change_text(
    scope: Mapping[str, str], delta: float, se_delta: float, versions: Sequence[ChangedVersion]
) -> str:
    """Return what changed by how much, with the versions: `mobilenet_v2 int8: +5.1 % (...), file a → b`."""
    parts = [effect_text(delta, se_delta), *map(version_text, versions)]
    return f"{scope_text(scope)}: {', '.join(parts)}"
