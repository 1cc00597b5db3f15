"""The trends of series as text: what is another version from session to session, and points as CSV."""

from collections.abc import Iterable, Iterator

from farm.presentation.csv_text import csv_line
from farm.presentation.labels import device_name
from farm.wire.documents.results.history import HistoryPoint, SeriesHistory, VersionPart

_PART_TEXT = {
    VersionPart.FILE: "model file",
    VersionPart.PROGRAM: "program",
    VersionPart.BASELINE_FILE: "model file of the baseline",
    VersionPart.BASELINE_PROGRAM: "program of the baseline",
    VersionPart.OS: "system build or driver",
    VersionPart.CONTROLS: "control level",
}
_SIDE_BY_BASELINE = {
    VersionPart.BASELINE_FILE: VersionPart.FILE,
    VersionPart.BASELINE_PROGRAM: VersionPart.PROGRAM,
}
#: Fields of points as charts and tables show them.
_DRAWN = ("cell_id", "time_ns", "baseline_ns", "speedup", "ci_low", "ci_high")
#: The columns that `farm history detect` reads, and those that are drawn.
CSV_COLUMNS = (
    "series",
    "device",
    "device_model",
    "unit",
    "network",
    "variant",
    "harness",
    "day",
    "time",
    "log_time",
    "se_time",
    "log_speedup",
    "se_speedup",
    "n",
    "file",
    "program",
    "os",
    "session",
    *_DRAWN,
)


def changed_versions(before: HistoryPoint, after: HistoryPoint) -> list[str]:
    """Return `model file 3f2a91c4 → 9c1b07de`, for each version in which a point is another one."""
    return [
        f"{_PART_TEXT[part]} {_version(part, before)} → {_version(part, after)}" for part in after.changed
    ]


def new_versions(point: HistoryPoint) -> str:
    """Return `model file 9c1b07de, control level fixed`: what a point has in another version than before.

    Of a baseline that has the same new version, nothing is said.
    """
    new = {part: _version(part, point) for part in point.changed}
    return ", ".join(
        f"{_PART_TEXT[part]} {version}"
        for part, version in new.items()
        if part not in _SIDE_BY_BASELINE or new.get(_SIDE_BY_BASELINE[part]) != version
    )


def _version(part: VersionPart, point: HistoryPoint) -> str:
    match part:
        case VersionPart.FILE:
            return _short(point.variant_digest)
        case VersionPart.PROGRAM:
            return _short(point.program_digest)
        case VersionPart.BASELINE_FILE:
            return _short(point.baseline_variant_digest)
        case VersionPart.BASELINE_PROGRAM:
            return _short(point.baseline_program_digest)
        case VersionPart.OS:
            return point.os or "unknown"
        case VersionPart.CONTROLS:
            return point.control_level.word


def _short(digest: str | None) -> str:
    return "none" if digest is None else digest[:8]


def csv_lines(histories: Iterable[SeriesHistory]) -> Iterator[str]:
    """Yield the points as lines of CSV with a header.

    A series that others are compared with has the variant `base` and no speedup; an unknown value is empty.
    """
    yield csv_line(CSV_COLUMNS)
    for view in histories:
        baseline = "" if view.baseline_series_id is None else f":{view.baseline_series_id}"
        same = {
            "series": f"{view.series_id}{baseline}",
            "device": view.device_id,
            "device_model": view.device_model,
            "unit": device_name(view),
            "network": view.model or view.harness,
            "variant": "base" if view.baseline_series_id is None else view.label,
            "harness": view.harness,
        }
        for point in view.points:
            row = {
                **same,
                "day": point.ended_at.strftime("%Y-%m-%d"),
                "time": point.ended_at.isoformat(),
                "log_time": point.log_time,
                "se_time": point.se_time,
                "log_speedup": point.log_speedup,
                "se_speedup": point.se_speedup,
                "n": point.rounds,
                "file": point.variant_digest,
                "program": point.program_digest,
                "os": point.os,
                "session": point.matrix_id,
                **{name: getattr(point, name) for name in _DRAWN},
            }
            yield csv_line([row[name] for name in CSV_COLUMNS])
