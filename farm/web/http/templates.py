"""The templates of pages, with the filters and functions that they use."""

import shlex
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import parse_qsl, urlencode

from jinja2 import Environment, FileSystemLoader, StrictUndefined, select_autoescape
from markupsafe import Markup

from farm import __version__
from farm.core.base.units import quantity_text, ratio_text, size_text, whole_text
from farm.core.models.declared_inputs import input_text
from farm.core.operations.role import Role, is_permitted
from farm.core.results.history.change_text import effect_text, percent_text
from farm.presentation import text
from farm.presentation.cell_state import alike_reasons, rejected_cells
from farm.presentation.jobs.attempt import control_text
from farm.presentation.speedup_blocks import (
    group_name,
    group_setup_text,
    other_work_text,
    shown_baseline,
    shown_verdict,
)
from farm.presentation.trends import new_versions
from farm.web.charts.trend import axis_ms
from farm.web.http.verdict_marks import (
    interval_side,
    state_class,
    state_mark,
    verdict_class,
    verdict_glyph,
)


def _environment() -> Environment:
    environment = Environment(
        loader=FileSystemLoader(Path(__file__).parents[1] / "templates"),
        autoescape=select_autoescape(default=True, default_for_string=True),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
    )
    environment.filters |= {
        "alike": alike_reasons,
        "axis_ms": axis_ms,
        "rejected_cells": rejected_cells,
        "age": lambda at: age_element(at, datetime.now(UTC)),
        "counts": text.counts_text,
        "duration": text.duration_or_nothing,
        "group_name": group_name,
        "group_setup": group_setup_text,
        "input_text": input_text,
        "control_text": control_text,
        "local_time": text.local_time_text,
        "merged": text.merged_fields,
        "other_work": other_work_text,
        "prose": prose_html,
        "quantity": quantity_text,
        "ratio": ratio_text,
        "shown_baseline": shown_baseline,
        "shown_verdict": shown_verdict,
        "size": size_text,
        "state_class": state_class,
        "state_mark": state_mark,
        "transition": text.transition_text,
        "verdict_class": verdict_class,
        "verdict_glyph": verdict_glyph,
        "whole": whole_text,
        "with_value": _with_value,
        "without": _without,
    }
    environment.globals |= {
        "change_text": text.change_text,
        "command_line": _command_line,
        "device_kind": text.device_kind,
        "effect_text": effect_text,
        "may": lambda caller, role: caller is not None and is_permitted(caller.role, Role(role)),
        "farm_version": __version__,
        "interval_side": interval_side,
        "interval_text": text.interval_text,
        # Pages on the wall say otherwise.
        "is_wall": False,
        "new_versions": new_versions,
        "percent_text": percent_text,
        "plural": text.plural,
        "time_left_text": text.time_left_text,
    }
    return environment


def age_element(at: datetime, now: datetime) -> Markup:
    """Return how long ago a time is, as an element that the script of pages keeps right: `3 min`, `2 h`."""
    minutes = max(0, int((now - at).total_seconds() // 60))
    if minutes < 60:
        words = f"{minutes} min"
    else:
        words = f"{minutes // 60} h" if minutes < 2 * 24 * 60 else f"{minutes // (24 * 60)} days"
    return Markup('<time class="age" datetime="{}">{}</time>').format(at.isoformat(), words)


def prose_html(prose: str) -> Markup:
    """Return a text as HTML, with what stands between backticks as code."""
    parts = prose.split("`")
    if len(parts) % 2 == 0:
        return Markup.escape(prose)
    code = Markup("<code>{}</code>")
    return Markup().join(code.format(part) if place % 2 else part for place, part in enumerate(parts))


def _with_value(query: str, **values: object) -> str:
    """Return a query with other values of some names."""
    return urlencode([*(pair for pair in parse_qsl(query) if pair[0] not in values), *values.items()])


def _without(query: str, *names: str) -> str:
    """Return a query without some names."""
    return urlencode([pair for pair in parse_qsl(query) if pair[0] not in names])


def _command_line(command: str, *arguments: object, **options: object) -> str:
    """Return a command to copy into a shell: what came in an address or a label is one word of it.

    Options that are None, False or empty are left out; one that is True is a flag.
    """
    words = [command, *(shlex.quote(str(value)) for value in arguments if value not in (None, ""))]
    for name, value in options.items():
        if value is True:
            words.append(f"--{name}")
        elif value not in (None, False, ""):
            words.append(f"--{name}={shlex.quote(str(value))}")
    return " ".join(words)


TEMPLATES = _environment()
