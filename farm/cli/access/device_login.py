"""Sign in at a farm by its identity provider: a person enters a code there, in any browser."""

import time
from typing import TYPE_CHECKING

from farm.cli.shell.address import connect_with, warn_unencrypted
from farm.cli.shell.output import print_notice
from farm.core.errors import AuthError, FarmError, NotFound
from farm.presentation.text import local_time_text
from farm.wire.documents.access import DeviceCode, NewAccessToken

if TYPE_CHECKING:
    from farm.client.farm_client import FarmClient

#: What a provider adds to the interval of a program that asks too often (RFC 8628, 3.5).
_SLOWER_S = 5.0
_MAX_PAUSE_S = 60.0


def sign_in(url: str) -> str | None:
    """Return a new access token of the person; None where the farm has no identity provider.

    Raises:
        AuthError: the person refused, or took too long.
        Forbidden: none of their groups has a role.
        FarmFault: the provider is down, or refuses the farm.
    """
    with connect_with(url, None) as farm:
        try:
            code = farm.begin_sign_in()
        except (NotFound, AuthError):
            # Farms of earlier releases do not know the call.
            return None
        if farm.is_overheard:
            warn_unencrypted(url)
        print_notice(f"Open {code.address} in a browser, and enter the code {code.user_code}")
        if code.complete_address is not None:
            print_notice(f"or open {code.complete_address}")
        token = _wait_for_token(farm, code)
    if token.expires_at is not None:
        print_notice(f"The login ends at {local_time_text(token.expires_at)}.")
    return token.token


def _wait_for_token(farm: "FarmClient", code: DeviceCode) -> NewAccessToken:
    pause_s, ends_s = float(code.interval_s), time.monotonic() + code.valid_s
    while time.monotonic() + pause_s < ends_s:
        time.sleep(pause_s)
        try:
            answer = farm.ask_for_sign_in(code.device_code)
        except FarmError as error:
            if not error.transient:
                raise
            pause_s = min(2 * pause_s, _MAX_PAUSE_S)
            continue
        if answer.token is not None:
            return answer.token
        if answer.is_too_fast:
            pause_s += _SLOWER_S
    raise AuthError(
        f"the code {code.user_code} was not entered in time", hint=f"`farm login {farm.url}` gives a new one"
    )
