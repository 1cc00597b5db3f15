"""Access tokens of people and scripts, and join tokens, by which agents of other hosts enroll."""

from fastapi import APIRouter, Request

from farm.api.context import Context, Farm
from farm.api.http.authentication import bearer
from farm.api.http.authorization import Admin, Operator, Viewer
from farm.api.http.pages import AfterName, ListPageSize
from farm.core.errors import NotFound
from farm.services.access.enrollment import issue_join_token, revoke_join_token
from farm.services.access.identity_provider import IdentityProvider, NotYet
from farm.services.access.people import sign_in_person
from farm.services.access.refused_requests import ANONYMOUS
from farm.services.access.tokens import (
    ASK_AN_ADMIN,
    end_sign_in,
    issue_access_token,
    revoke_access_token,
    rotate_access_token,
)
from farm.store.hosts.join_tokens import list_join_tokens
from farm.store.operations.access_tokens import list_access_tokens
from farm.wire.base import MAX_LIST_PAGE
from farm.wire.documents.access import (
    AccessRequest,
    AccessToken,
    CallerView,
    DeviceCode,
    DeviceCodeRequest,
    DeviceSignIn,
    JoinToken,
    NewAccessToken,
    NewJoinToken,
    RotationRequest,
    SignInEnd,
    TokenRequest,
)

router = APIRouter(prefix="/api/v1")


@router.get("/caller")
async def get_caller(caller: Viewer) -> CallerView:
    """Return the caller as the farm identifies it."""
    return CallerView.model_validate(caller, from_attributes=True)


@router.post("/access-tokens", status_code=201)
async def post_access_token(request: AccessRequest, caller: Admin, farm: Farm) -> NewAccessToken:
    """Issue an access token; only this answer shows its secret."""
    return await farm.database.write_async(farm.bind(issue_access_token, actor=caller.actor), request)


@router.post("/access-tokens/{token_id}/rotation", status_code=201)
async def post_rotation(token_id: str, request: RotationRequest, caller: Admin, farm: Farm) -> NewAccessToken:
    """Issue a token in place of another, which stays valid for a while; only this answer shows its secret."""
    rotate = farm.bind(rotate_access_token, actor=caller.actor)
    return await farm.database.write_async(rotate, token_id, request)


@router.get("/access-tokens")
async def get_access_tokens(
    _: Viewer, farm: Farm, after: AfterName = "", limit: ListPageSize = MAX_LIST_PAGE
) -> list[AccessToken]:
    """Return a page of the access tokens, by id; a page that is not full is the last."""
    return await farm.database.read_async(farm.bind(list_access_tokens), after=after, limit=limit)


@router.delete("/access-tokens/{token_id}")
async def delete_access_token(token_id: str, caller: Admin, farm: Farm) -> AccessToken:
    """Revoke an access token."""
    return await farm.database.write_async(farm.bind(revoke_access_token, actor=caller.actor), token_id)


@router.post("/sign-in/device")
async def post_device_code(farm: Farm) -> DeviceCode:
    """Begin the sign-in of a command: a person enters its code at the identity provider."""
    async with farm.refused.telling(ANONYMOUS):
        return await provider_of(farm).authorize_device()


@router.post("/sign-in/device/token")
async def post_device_sign_in(request: DeviceCodeRequest, farm: Farm) -> DeviceSignIn:
    """Issue an access token to the person who entered a code; only this answer shows its secret."""
    async with farm.refused.telling(ANONYMOUS):
        person = await provider_of(farm).identify_device(request.device_code)
    if isinstance(person, NotYet):
        return DeviceSignIn(is_too_fast=person.is_too_fast)
    return DeviceSignIn(token=await farm.database.write_async(farm.bind(sign_in_person), person))


@router.delete("/sign-in")
async def delete_sign_in(request: Request, caller: Viewer, farm: Farm) -> SignInEnd:
    """Revoke the token of this call, if it is of a sign-in by the identity provider."""
    credential = bearer(request.headers) or ""
    return await farm.database.write_async(farm.bind(end_sign_in, actor=caller.actor), credential)


def provider_of(farm: Context, *, hint: str = ASK_AN_ADMIN) -> IdentityProvider:
    """Return the identity provider of a farm.

    Raises:
        NotFound: it has none; `hint` says how people sign in then.
    """
    if farm.identity_provider is None:
        raise NotFound("this farm signs no one in by an identity provider", hint=hint)
    return farm.identity_provider


@router.post("/tokens", status_code=201)
async def post_token(request: TokenRequest, caller: Operator, farm: Farm) -> NewJoinToken:
    """Issue a single-use join token; only this answer shows its secret."""
    return await farm.database.write_async(
        farm.bind(issue_join_token, actor=caller.actor),
        request,
        agents_url=farm.config.agents_url,
    )


@router.get("/tokens")
async def get_tokens(
    _: Viewer, farm: Farm, after: AfterName = "", limit: ListPageSize = MAX_LIST_PAGE
) -> list[JoinToken]:
    """Return a page of the join tokens, by id; a page that is not full is the last."""
    return await farm.database.read_async(farm.bind(list_join_tokens), after=after, limit=limit)


@router.delete("/tokens/{token_id}")
async def delete_token(token_id: str, caller: Operator, farm: Farm) -> JoinToken:
    """Revoke a join token."""
    return await farm.database.write_async(farm.bind(revoke_join_token, actor=caller.actor), token_id)
