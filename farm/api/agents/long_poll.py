"""An agent's exchange: applied, and held while there is no news."""

import asyncio

from farm.api.context import Context
from farm.services.agents.exchange.answer import CallAnswer, no_news
from farm.services.agents.exchange.exchange import exchange
from farm.services.agents.heartbeats import ExchangeCall
from farm.wire.agents.protocol import ExchangeAnswer


async def answer_exchange(farm: Context, call: ExchangeCall) -> ExchangeAnswer:
    """Return the answer to any call; raises like `exchange`."""
    ends_s = _deadline_s(call)
    with farm.held_exchanges.listening(call.host_id, call.session_id) as changed:
        result = await _answer(farm, call)
        if not result.has_news:
            farm.heartbeats.remember(call)
        return await _hold_until_news(farm, call, result, changed, ends_s)


async def answer_if_idle(farm: Context, call: ExchangeCall) -> ExchangeAnswer | None:
    """Return the answer to an idle call; None for one that may not be idle, which is then not applied.

    Raises:
        SessionFenced: another session of the host began while the call was held.
    """
    if not farm.heartbeats.may_be_idle(call):
        return None
    ends_s = _deadline_s(call)
    with farm.held_exchanges.listening(call.host_id, call.session_id) as changed:
        if not await farm.heartbeats.notes(call):
            return None
        result = no_news(call.exchange, farm.config.agent_timeouts)
        return await _hold_until_news(farm, call, result, changed, ends_s)


def _deadline_s(call: ExchangeCall) -> float:
    return asyncio.get_running_loop().time() + call.exchange.wait_s


async def _hold_until_news(
    farm: Context, call: ExchangeCall, result: CallAnswer, changed: asyncio.Event, ends_s: float
) -> ExchangeAnswer:
    while not (result.has_news or farm.held_exchanges.closed) and (
        result.needs_plans or await _wait_for_change(changed, ends_s)
    ):
        if not farm.held_exchanges.is_latest(call.host_id, call.session_id, changed):
            break
        changed.clear()
        result = await _peek(farm, call)
    return result.answer


async def _peek(farm: Context, call: ExchangeCall) -> CallAnswer:
    """Return the present answer to a call that was applied: mostly, it is still idle."""
    if await farm.heartbeats.is_still_idle(call):
        return no_news(call.exchange, farm.config.agent_timeouts)
    return await _answer(farm, call, already_applied=True)


async def _answer(farm: Context, call: ExchangeCall, *, already_applied: bool = False) -> CallAnswer:
    """Answer in a transaction that writes, with plans from one that only reads."""
    plans = await farm.database.peek_async(farm.planner.plan_next_jobs, call.host_id)
    return await farm.database.write_async(
        farm.bind(exchange),
        call.host_id,
        call.session_id,
        call.exchange,
        plans=plans,
        timeouts=farm.config.agent_timeouts,
        already_applied=already_applied,
    )


async def _wait_for_change(changed: asyncio.Event, ends_s: float) -> bool:
    try:
        async with asyncio.timeout_at(ends_s):
            await changed.wait()
    except TimeoutError:
        return False
    return True
