"""Access tokens of people and scripts, and join tokens, by which agents of other hosts enroll."""

from fastapi import APIRouter

from farm.api.context import Farm
from farm.api.http.authorization import Admin, Operator, Viewer
from farm.services.access.enrollment import issue_join_token, list_token_views, revoke_join_token
from farm.services.access.tokens import issue_access_token, list_access_views, revoke_access_token
from farm.wire.documents.access import AccessRequest, AccessTokenView, CallerView, NewAccessTokenView
from farm.wire.documents.join_tokens import NewTokenView, TokenRequest, TokenView

router = APIRouter(prefix="/api/v1")


@router.get("/caller")
async def get_caller(caller: Viewer) -> CallerView:
    """Who the farm takes you for."""
    return CallerView.model_validate(caller, from_attributes=True)


@router.post("/access-tokens", status_code=201)
async def post_access_token(request: AccessRequest, caller: Admin, farm: Farm) -> NewAccessTokenView:
    """An access token, said this once."""
    return await farm.database.write_async(
        issue_access_token, request, now=farm.clock.now(), actor=caller.actor
    )


@router.get("/access-tokens")
async def get_access_tokens(_: Viewer, farm: Farm) -> list[AccessTokenView]:
    """Every access token there was, newest first."""
    return await farm.database.read_async(list_access_views, now=farm.clock.now())


@router.delete("/access-tokens/{token_id}")
async def delete_access_token(token_id: str, caller: Admin, farm: Farm) -> AccessTokenView:
    """Let nobody in with a token any more."""
    return await farm.database.write_async(
        revoke_access_token, token_id, now=farm.clock.now(), actor=caller.actor
    )


@router.post("/tokens", status_code=201)
async def post_token(request: TokenRequest, caller: Operator, farm: Farm) -> NewTokenView:
    """A single-use join token, said this once."""
    return await farm.database.write_async(
        issue_join_token,
        request,
        now=farm.clock.now(),
        actor=caller.actor,
        agents_url=farm.config.agents_url,
    )


@router.get("/tokens")
async def get_tokens(_: Viewer, farm: Farm) -> list[TokenView]:
    """Every join token there was, newest first."""
    return await farm.database.read_async(list_token_views, now=farm.clock.now())


@router.delete("/tokens/{token_id}")
async def delete_token(token_id: str, caller: Operator, farm: Farm) -> TokenView:
    """Let nobody enroll with a token any more."""
    return await farm.database.write_async(
        revoke_join_token, token_id, now=farm.clock.now(), actor=caller.actor
    )
