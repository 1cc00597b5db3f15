"""Join tokens, by which agents of other machines enroll."""

from fastapi import APIRouter

from farm.api.context import Farm
from farm.api.http.authorization import Operator, Viewer
from farm.services.access.enrollment import issue_join_token, list_token_views, revoke_join_token
from farm.wire.documents.join_tokens import NewTokenView, TokenRequest, TokenView

router = APIRouter(prefix="/api/v1/tokens")


@router.post("", status_code=201)
async def post_token(request: TokenRequest, caller: Operator, farm: Farm) -> NewTokenView:
    """A single-use join token, said this once."""
    return await farm.database.write_async(
        issue_join_token,
        request,
        now=farm.clock.now(),
        actor=caller.actor,
        agents_url=farm.config.agents_url,
    )


@router.get("")
async def get_tokens(_: Viewer, farm: Farm) -> list[TokenView]:
    """Every join token there was, newest first."""
    return await farm.database.read_async(list_token_views, now=farm.clock.now())


@router.delete("/{token_id}")
async def delete_token(token_id: str, caller: Operator, farm: Farm) -> TokenView:
    """Let nobody enroll with a token any more."""
    return await farm.database.write_async(
        revoke_join_token, token_id, now=farm.clock.now(), actor=caller.actor
    )
