"""Actions of people: each asks first, says what it will do, and calls the API's own route."""

import secrets
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from shlex import quote
from typing import Any, TypeVar

from fastapi import APIRouter, Request
from fastapi.responses import RedirectResponse, Response
from pydantic import ValidationError

from farm.api.context import Context, Farm
from farm.api.http.authorization import Operator, Submitter, name_of
from farm.api.routes import devices as device_routes
from farm.api.routes import matrices as matrix_routes
from farm.api.routes import operations as operation_routes
from farm.core.base.ids import AttemptId, MatrixId
from farm.core.errors import NotFound
from farm.core.jobs.job import JobState
from farm.core.operations.role import Caller
from farm.presentation.labels import device_name
from farm.presentation.text import local_time_text, plural, seconds
from farm.services.checks.device_detail import device_detail
from farm.services.matrices.views import matrix_view
from farm.services.operations.alarms import list_alarms
from farm.services.results.rerun import plan_rerun
from farm.web.http.forms import form_values
from farm.web.http.page_route import PageRoute
from farm.web.http.rendering import respond
from farm.web.http.templates import TEMPLATES
from farm.wire.base import Count
from farm.wire.documents.devices import (
    DeviceChange,
    DeviceView,
    OperatorRequest,
    ReleaseRequest,
    ReservationRequest,
)
from farm.wire.documents.matrices.plans import CancelRequest
from farm.wire.documents.operations import ClearRequest
from farm.wire.request_errors import invalid_field

router = APIRouter(route_class=PageRoute)

A = TypeVar("A", bound=OperatorRequest)

_MAX_TYPED = 500


def _plain_request(caller: Caller, _: DeviceView, form: Mapping[str, str]) -> OperatorRequest:
    return _request_of(OperatorRequest, caller, form)


def _reservation(caller: Caller, _: DeviceView, form: Mapping[str, str]) -> ReservationRequest:
    return _request_of(ReservationRequest, caller, form, for_s=seconds(form.get("for", "")))


def _release(caller: Caller, device: DeviceView, form: Mapping[str, str]) -> ReleaseRequest:
    """Return the end of a reservation: of another person's only as it was asked about."""
    is_other = device.reserved_by not in (None, _name_in(form, caller))
    return _request_of(
        ReleaseRequest, caller, form, force=is_other and form.get("reserved_by") == device.reserved_by
    )


def _release_effects(device: DeviceView) -> Sequence[str]:
    if device.reserved_by is None:
        return ["No one has reserved it: nothing will change."]
    return [
        f"The reservation of {device.reserved_by} until {local_time_text(device.reserved_until)} ends now.",
        "It is checked, and then gets work again.",
    ]


@dataclass(frozen=True, slots=True, kw_only=True)
class _DeviceAction:
    """What people do to a device: its button, what it does, and the route of the API that does it."""

    button: str
    effects: Callable[[DeviceView], Sequence[str]]
    route: Callable[[str, Any, Caller, Context], Awaitable[DeviceChange]]
    #: The request of a form.
    request: Callable[[Caller, DeviceView, Mapping[str, str]], OperatorRequest] = _plain_request
    #: Whether it is for a time, which is asked for.
    is_timed: bool = False


#: By their names in addresses.
_DEVICE_ACTIONS: Mapping[str, _DeviceAction] = {
    "cordon": _DeviceAction(
        button="Cordon",
        effects=lambda _: ["It gets no further work; the run on it ends first.", "Its queue stays."],
        route=device_routes.post_cordon,
    ),
    "uncordon": _DeviceAction(
        button="Uncordon",
        effects=lambda _: ["It gets work again, after a check if it needs one."],
        route=device_routes.post_uncordon,
    ),
    "reserve": _DeviceAction(
        button="Reserve",
        effects=lambda device: [
            "It is yours for this time: the run on it ends first, and the farm starts no other.",
            "Its queue stays. After the reservation it is checked, and then gets work again.",
            f"farm adb {quote(device.name)} shell connects to it.",
        ],
        route=device_routes.post_reserve,
        request=_reservation,
        is_timed=True,
    ),
    "release": _DeviceAction(
        button="Release", effects=_release_effects, route=device_routes.post_release, request=_release
    ),
    "check": _DeviceAction(
        button="Check now",
        effects=lambda _: ["A check runs ahead of all jobs that are queued for it."],
        route=device_routes.post_check,
    ),
}


def _question(
    request: Request,
    caller: Caller,
    *,
    title: str,
    effects: Sequence[str],
    button: str,
    back: str,
    reason: str = "optional",
    is_timed: bool = False,
    is_named: bool = False,
    hidden: Mapping[str, str] | None = None,
) -> Response:
    """Return the page that asks before an action.

    Args:
        request: for the page.
        caller: who asks.
        title: the action and what it is done to.
        effects: sentences on what it will do.
        button: that does it.
        back: the page to return to.
        reason: `none`, `optional` or `required`.
        is_timed: whether it asks for how long.
        is_named: whether it is done in a name, which it asks of a caller without a proven one.
        hidden: fields that are sent as they are.
    """
    html = TEMPLATES.get_template("actions/page.html").render(
        caller=caller,
        here=request.url.path,
        query="",
        title=title,
        effects=effects,
        button=button,
        back=back,
        reason=reason,
        # Of a form whose session had ended.
        typed={name: value[:_MAX_TYPED] for name, value in request.query_params.items()},
        is_timed=is_timed,
        asks_name=is_named and not caller.is_authenticated,
        # A form that is sent twice does its work once.
        hidden={"key": secrets.token_hex(16), **(hidden or {})},
    )
    return respond(request, html)


def _request_of(kind: type[A], caller: Caller, form: Mapping[str, str], **values: object) -> A:
    """Return the request of a form in its caller's name. Raises InvalidInput."""
    fields = {"by": _name_in(form, caller), "reason": form.get("reason") or None, **values}
    try:
        return kind.model_validate(fields)
    except ValidationError as error:
        raise invalid_field(error) from None


def _name_in(form: Mapping[str, str], caller: Caller) -> str:
    """Return the name that a form is sent in: the proven one, else the one typed into it."""
    return name_of(caller, form.get("by", ""))


def _done(path: str) -> Response:
    return RedirectResponse(path, status_code=303)


@router.get("/matrices/{matrix_id}/cancel")
async def ask_cancel(request: Request, matrix_id: Count, caller: Submitter, farm: Farm) -> Response:
    """Ask before a matrix is cancelled."""
    view = await farm.database.read_async(farm.bind(matrix_view), MatrixId(matrix_id))
    queued, active = (view.jobs_by_outcome.get(state, 0) for state in (JobState.QUEUED, JobState.ACTIVE))
    return _question(
        request,
        caller,
        title=f"Cancel matrix {matrix_id}, {view.name}?",
        effects=[
            f"{plural(queued, 'queued job')} will never start.",
            f"{plural(active, 'run')} under way will be stopped, and count no longer.",
            "What was measured stays.",
        ],
        button="Cancel the matrix",
        back=f"/matrices/{matrix_id}",
        reason="none",
    )


@router.post("/matrices/{matrix_id}/cancel")
async def do_cancel(request: Request, matrix_id: Count, caller: Submitter, farm: Farm) -> Response:
    """Cancel a matrix; what is left of a large one is cancelled by the farm."""
    await form_values(request)
    await matrix_routes.post_cancel(matrix_id, CancelRequest(), caller, farm)
    return _done(f"/matrices/{matrix_id}")


@router.get("/attempts/{attempt_id}/rerun")
async def ask_rerun(request: Request, attempt_id: Count, caller: Submitter, farm: Farm) -> Response:
    """Ask before a number is measured again, and say what is no longer the same."""
    plan = await farm.database.read_async(plan_rerun, AttemptId(attempt_id))
    compared = f" against {plan.baseline}" if plan.baseline else ""
    return _question(
        request,
        caller,
        title=f"Measure {plan.label} again?",
        effects=[
            f"A matrix of {plural(plan.jobs, 'job')} in {plural(plan.rounds, 'round')} measures it{compared}"
            f" on {device_name(plan)}, by the same files.",
            *(
                f"{difference.part}: it was {difference.before}, now it is {difference.now}; "
                + ("the rerun uses what was." if difference.uses_before else "the rerun uses what is now.")
                for difference in plan.differences
            ),
        ],
        button="Measure it again",
        back=f"/attempts/{attempt_id}",
        reason="none",
    )


@router.post("/attempts/{attempt_id}/rerun")
async def do_rerun(request: Request, attempt_id: Count, caller: Submitter, farm: Farm) -> Response:
    """Measure a number again."""
    form = await form_values(request)
    view = await matrix_routes.post_number_rerun(attempt_id, caller, farm, form.get("key") or None)
    return _done(f"/matrices/{view.matrix_id}")


@router.get("/devices/{device}/{action}")
async def ask_device_action(
    request: Request, device: str, action: str, caller: Operator, farm: Farm
) -> Response:
    """Ask before something is done to a device."""
    wanted = _device_action(action)
    view = await farm.database.read_async(device_detail, device)
    return _question(
        request,
        caller,
        title=f"{wanted.button}: {view.name}?",
        effects=wanted.effects(view),
        button=wanted.button,
        back=f"/devices/{device}",
        is_timed=wanted.is_timed,
        is_named=True,
        hidden={"reserved_by": view.reserved_by} if view.reserved_by else None,
    )


@router.post("/devices/{device}/{action}")
async def do_device_action(
    request: Request, device: str, action: str, caller: Operator, farm: Farm
) -> Response:
    """Do something to a device."""
    wanted = _device_action(action)
    form = await form_values(request)
    view = await farm.database.read_async(device_detail, device)
    await wanted.route(device, wanted.request(caller, view, form), caller, farm)
    return _done(f"/devices/{device}")


def _device_action(action: str) -> _DeviceAction:
    if action not in _DEVICE_ACTIONS:
        known = ", ".join(_DEVICE_ACTIONS)
        raise NotFound(f"there is no page for {action!r} of a device", hint=f"there is: {known}")
    return _DEVICE_ACTIONS[action]


@router.get("/alarms/{alarm_id}/clear")
async def ask_clear(request: Request, alarm_id: Count, caller: Operator, farm: Farm) -> Response:
    """Ask before an alarm is cleared."""
    listed = await farm.database.read_async(list_alarms)
    alarm = next((alarm for alarm in listed if alarm.alarm_id == alarm_id), None)
    if alarm is None:
        raise NotFound(f"there is no open alarm {alarm_id}", hint="/alarms?cleared=true lists all")
    return _question(
        request,
        caller,
        title=f"Clear alarm {alarm_id}?",
        effects=[alarm.message, "Where its cause lasts, it is raised again after a day."],
        button="Clear it",
        back="/alarms",
        reason="required",
        is_named=True,
    )


@router.post("/alarms/{alarm_id}/clear")
async def do_clear(request: Request, alarm_id: Count, caller: Operator, farm: Farm) -> Response:
    """Clear an alarm."""
    form = await form_values(request)
    wanted = _request_of(ClearRequest, caller, form)
    await operation_routes.post_clear(alarm_id, wanted, caller, farm)
    return _done("/alarms")
