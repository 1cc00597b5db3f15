"""An agent's exchange: applied, and held while there is nothing to say."""

import asyncio
from collections.abc import Callable

from farm.api.context import Context
from farm.services.agents.exchange import Exchanged, exchange, look, nothing_to_say
from farm.services.agents.heartbeats import Call
from farm.wire.agents.protocol import ExchangeAnswer


async def answer(farm: Context, call: Call) -> ExchangeAnswer:
    """The answer to a call, whatever is in it; raises like `exchange`."""
    ends_s = _ends_s(call)
    with farm.waiters.listening(call.host_id, call.session_id) as changed:
        found = await _in_transaction(farm, exchange, call)
        if not found.is_news:
            farm.roll_call.remember(call)
        return await _held(farm, call, found, changed, ends_s)


async def answer_if_quiet(farm: Context, call: Call) -> ExchangeAnswer | None:
    """The answer to a call with nothing in it; None of one that may have, which is then not applied.

    Raises:
        SessionFenced: another session of the host began while the call was held.
    """
    if not farm.roll_call.may_include(call):
        return None
    ends_s = _ends_s(call)
    with farm.waiters.listening(call.host_id, call.session_id) as changed:
        if not await farm.roll_call.notes(call):
            return None
        found = nothing_to_say(call.said, farm.config.patience)
        return await _held(farm, call, found, changed, ends_s)


def _ends_s(call: Call) -> float:
    return asyncio.get_running_loop().time() + call.said.wait_s


async def _held(
    farm: Context, call: Call, found: Exchanged, changed: asyncio.Event, ends_s: float
) -> ExchangeAnswer:
    while not (found.is_news or farm.waiters.closed) and await _changed_before(changed, ends_s):
        if not farm.waiters.is_latest(call.host_id, call.session_id, changed):
            break
        changed.clear()
        found = await _looked_at(farm, call)
    return found.answer


async def _looked_at(farm: Context, call: Call) -> Exchanged:
    """What there is to say now to a call that was applied: mostly, still nothing."""
    if await farm.roll_call.is_still_quiet(call):
        return nothing_to_say(call.said, farm.config.patience)
    return await _in_transaction(farm, look, call)


async def _in_transaction(farm: Context, service: Callable[..., Exchanged], call: Call) -> Exchanged:
    now, patience = farm.clock.now(), farm.config.patience
    return await farm.database.write_async(
        service, call.host_id, call.session_id, call.said, now=now, patience=patience
    )


async def _changed_before(changed: asyncio.Event, ends_s: float) -> bool:
    try:
        async with asyncio.timeout_at(ends_s):
            await changed.wait()
    except TimeoutError:
        return False
    return True
