"""Admin states of a device and their transitions, as data."""

from enum import StrEnum

from farm.core.devices.device import Admin


class AdminEvent(StrEnum):
    """Operator decisions on a device's place in the pool."""

    #: Into the pool: a new phone, or a retired one.
    ADMITTED = "device_admitted"
    #: It gets no further work; its queue stays.
    CORDONED = "device_cordoned"
    #: It gets work again.
    UNCORDONED = "device_uncordoned"
    #: Out of the farm; what waits for it is cancelled.
    RETIRED = "device_retired"


TRANSITIONS: dict[tuple[Admin, AdminEvent], Admin] = {
    (Admin.PENDING, AdminEvent.ADMITTED): Admin.ACTIVE,
    (Admin.ACTIVE, AdminEvent.CORDONED): Admin.CORDONED,
    (Admin.CORDONED, AdminEvent.UNCORDONED): Admin.ACTIVE,
    **{(state, AdminEvent.RETIRED): Admin.RETIRED for state in Admin if state is not Admin.RETIRED},
    # Only by name: nothing that a phone does brings it back.
    (Admin.RETIRED, AdminEvent.ADMITTED): Admin.ACTIVE,
}

#: State that each event leads to.
TARGET_BY_EVENT: dict[AdminEvent, Admin] = {event: to for (_, event), to in TRANSITIONS.items()}


def advance(state: Admin, event: AdminEvent) -> Admin | None:
    """Return the state after an event; None when the event cannot happen there."""
    return TRANSITIONS.get((state, event))
