"""An agent's exchange: applied, and held while there is nothing to say."""

import asyncio
from collections.abc import Callable

from farm.api.context import Context
from farm.services.agents.exchange.answer import CallAnswer, no_news
from farm.services.agents.exchange.loop_call import answer_again, answer_call
from farm.services.agents.heartbeats import ExchangeCall
from farm.wire.agents.protocol import ExchangeAnswer


async def answer_exchange(farm: Context, call: ExchangeCall) -> ExchangeAnswer:
    """The answer to a call, whatever is in it; raises like `exchange`."""
    ends_s = _deadline_s(call)
    with farm.held_exchanges.listening(call.host_id, call.session_id) as changed:
        found = await _in_transaction(farm, answer_call, call)
        if not found.has_news:
            farm.heartbeats.remember(call)
        return await _hold_until_news(farm, call, found, changed, ends_s)


async def answer_if_idle(farm: Context, call: ExchangeCall) -> ExchangeAnswer | None:
    """The answer to a call with nothing in it; None of one that may have, which is then not applied.

    Raises:
        SessionFenced: another session of the host began while the call was held.
    """
    if not farm.heartbeats.may_be_idle(call):
        return None
    ends_s = _deadline_s(call)
    with farm.held_exchanges.listening(call.host_id, call.session_id) as changed:
        if not await farm.heartbeats.notes(call):
            return None
        found = no_news(call.said, farm.config.patience)
        return await _hold_until_news(farm, call, found, changed, ends_s)


def _deadline_s(call: ExchangeCall) -> float:
    return asyncio.get_running_loop().time() + call.said.wait_s


async def _hold_until_news(
    farm: Context, call: ExchangeCall, found: CallAnswer, changed: asyncio.Event, ends_s: float
) -> ExchangeAnswer:
    while not (found.has_news or farm.held_exchanges.closed) and await _wait_for_change(changed, ends_s):
        if not farm.held_exchanges.is_latest(call.host_id, call.session_id, changed):
            break
        changed.clear()
        found = await _peek(farm, call)
    return found.answer


async def _peek(farm: Context, call: ExchangeCall) -> CallAnswer:
    """What there is to say now to a call that was applied: mostly, still nothing."""
    if await farm.heartbeats.is_still_idle(call):
        return no_news(call.said, farm.config.patience)
    return await _in_transaction(farm, answer_again, call)


async def _in_transaction(
    farm: Context, service: Callable[..., CallAnswer], call: ExchangeCall
) -> CallAnswer:
    now, patience = farm.clock.now(), farm.config.patience
    return await farm.database.write_async(
        service, call.host_id, call.session_id, call.said, now=now, patience=patience
    )


async def _wait_for_change(changed: asyncio.Event, ends_s: float) -> bool:
    try:
        async with asyncio.timeout_at(ends_s):
            await changed.wait()
    except TimeoutError:
        return False
    return True
