"""Changes in the history of series, as text for terminals and pages."""

from collections.abc import Iterator, Mapping, Sequence
from textwrap import wrap

from farm.core.base.units import ratio_text
from farm.core.results.history.change_text import dates_text, effect_text, scope_text, version_text
from farm.core.results.history.confirmation import ConfirmationOutcome
from farm.core.results.history.recorded_change import ChangeCause
from farm.presentation.labels import device_name
from farm.presentation.text import EMPTY_CELL, change_text, distinct_time_texts, local_time_text
from farm.wire.documents.results.changes import ChangeDetail, ChangedSeriesView, ChangeView, ConfirmationView

_HEADINGS = ("change", "time", "since", "devices", "cause", "state")
_INDENT = "        "


def change_what(change: ChangeView) -> str:
    """Return what changed: `mobilenet_v2 int8-core on phone-1, 3 series`."""
    scope = dict(change.scope)
    if change.device_label is not None:
        scope["device"] = change.device_label
    return scope_text(scope) + (f", {change.series} series" if change.series > 1 else "")


def change_since(change: ChangeView) -> str:
    """Return the interval of dates in which it happened, in the local time zone."""
    before, since = (at.astimezone().date() for at in (change.before_at, change.since_at))
    return dates_text(before, since)


def change_devices(change: ChangeView) -> str:
    """Return `3 of 4`: the devices that show it, of those that measured the same."""
    return f"{change.devices} of {change.of_devices}"


def change_row(change: ChangeView) -> Mapping[str, str]:
    """Return the texts of a change in a list."""
    return {
        "what": change_what(change),
        "effect": effect_text(change.delta, change.se_delta),
        "since": change_since(change),
        "devices": change_devices(change),
        "versions": ", ".join(version_text(version) for version in change.versions),
    }


def change_lines(changes: Sequence[ChangeView], *, width: int) -> Iterator[str]:
    """Yield the lines of a list of changes: what is counted in columns, what has names below it."""
    rows = [
        (
            str(change.change_id),
            effect_text(change.delta, change.se_delta),
            change_since(change),
            change_devices(change),
            str(change.cause),
            f"{change.state}{', gone' if change.gone_at else ''}",
        )
        for change in changes
    ]
    widths = [max(map(len, column)) for column in zip(_HEADINGS, *rows, strict=True)]
    yield _row(_HEADINGS, widths)
    for change, row in zip(changes, rows, strict=True):
        yield _row(row, widths)
        versions = "".join(f", {version_text(version)}" for version in change.versions)
        yield from wrap(
            f"{change_what(change)}{versions}",
            width,
            initial_indent=_INDENT,
            subsequent_indent=_INDENT,
            break_on_hyphens=False,
        )


def _row(cells: Sequence[str], widths: Sequence[int]) -> str:
    first, *others = zip(cells, widths, strict=True)
    padded = [first[0].rjust(first[1]), *(cell.ljust(size) for cell, size in others)]
    return "  ".join(padded).rstrip()


def change_fields(detail: ChangeDetail) -> list[tuple[str, object]]:
    """Return what is known of a change, by name."""
    change = detail.change
    fields: list[tuple[str, object]] = [
        ("what", change_what(change)),
        ("time", effect_text(change.delta, change.se_delta)),
        ("since", "after {}, by {}".format(*distinct_time_texts(change.before_at, change.since_at))),
        ("cause", cause_text(change)),
        ("devices", f"{change_devices(change)} show it"),
        ("state", change.state),
    ]
    for version in change.versions:
        fields += [(f"old {version.part}", version.old), (f"new {version.part}", version.new)]
    if detail.confirmation is not None:
        fields.append(("confirmation", confirmation_text(detail.confirmation)))
    if change.gone_at is not None:
        gone = f"since {local_time_text(change.gone_at)} what is measured shows it no more"
        fields.append(("evidence", f"{gone}: retracted, or parsed again"))
    fields += [
        (
            "judged",
            f"{local_time_text(decision.decided_at)} {decision.decided_by.removeprefix('user:')}:"
            f" {decision.state}, {decision.reason}",
        )
        for decision in detail.decisions
    ]
    return fields


def cause_text(change: ChangeView) -> str:
    """Return the cause, with the reason where there is none: `noise: ...`."""
    refuted = f"the {change.found_cause} is not it: old and new side by side do not show it"
    match change.cause:
        case ChangeCause.NOISE if change.is_passing:
            return "noise: it came and went within a month, without a new version"
        case ChangeCause.NOISE:
            return f"noise: {refuted}"
        case ChangeCause.UNKNOWN if change.found_cause is not ChangeCause.UNKNOWN:
            return f"unknown: {refuted}, and another version began with it"
        case ChangeCause.UNKNOWN:
            return "unknown: no new version explains it, and what is measured beside it stayed"
        case _:
            return change.cause


_OUTCOME_TEXTS = {
    ConfirmationOutcome.RUNNING: "is being measured",
    ConfirmationOutcome.CONFIRMED: "confirmed",
    ConfirmationOutcome.NOT_CONFIRMED: "not confirmed",
    ConfirmationOutcome.UNDECIDED: "undecided",
    ConfirmationOutcome.NOT_MEASURED: "not measured",
    ConfirmationOutcome.IMPOSSIBLE: "impossible",
}


def confirmation_text(view: ConfirmationView) -> str:
    """Return `confirmed: 1.05x of the old time, 1.04x to 1.06x on phone-1 (matrix 17)`."""
    text = _OUTCOME_TEXTS[view.outcome]
    if view.ratio is not None and view.ratio_low is not None and view.ratio_high is not None:
        interval = f"{ratio_text(view.ratio_low)} to {ratio_text(view.ratio_high)}"
        text += f": {ratio_text(view.ratio)} of the old time, {interval}"
    if view.matrix_id is None:
        return f"{text}: {view.reason}"
    return f"{text} on {device_name(view)} (matrix {view.matrix_id})"


def series_times(view: ChangedSeriesView) -> str:
    """Return `43.1 → 18.7 ms`."""
    return change_text(view.before_ns, view.after_ns)


def series_speedups(view: ChangedSeriesView) -> str:
    """Return `1.82x → 0.91x`; `-` for what is compared with none."""
    if view.before_speedup is None and view.after_speedup is None:
        return EMPTY_CELL
    before, after = (
        EMPTY_CELL if value is None else ratio_text(value)
        for value in (view.before_speedup, view.after_speedup)
    )
    return f"{before} → {after}"


def series_matrices(view: ChangedSeriesView) -> str:
    """Return `11 → 12 to 15`: the last matrix of the old level, and those of the new one."""
    before = EMPTY_CELL if view.before_matrix_id is None else str(view.before_matrix_id)
    first, last = view.after_matrix_ids[0], view.after_matrix_ids[-1]
    return f"{before} → {first}" + ("" if first == last else f" to {last}")
