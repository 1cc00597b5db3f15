"""Controls at the edge: what a matrix wants set on phones for its runs."""

from typing import Annotated, Self

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, model_validator
from pydantic_core import PydanticCustomError

from farm.core.base.cpu_list import core_list, core_text
from farm.core.devices.controls import Controls, CoreKind, Screen

_CONTROLS = Controls()
#: Ten times what any phone's clock is now.
_MAX_HZ = 10**11


def _screen(value: object) -> object:
    """Accept `on` and `off`, which YAML takes for true and false."""
    return {True: Screen.ON, False: Screen.OFF}[value] if isinstance(value, bool) else value


def _cores(text: str) -> str:
    kinds = ", ".join(CoreKind)
    if text in set(CoreKind):
        return text
    return _core_list(text, f"no cores: one of {kinds}, or a list such as 4-7 or 0,2, is needed")


def _online(text: str) -> str:
    return _core_list(text, "no list of cores, such as 0-3 or 0,4") if text else text


def _core_list(text: str, otherwise: str) -> str:
    """Return the kernel's own form, so that the same cores are always the same text."""
    if (cores := core_list(text)) is None:
        raise PydanticCustomError("matrix_value", otherwise)
    return core_text(cores)


class ControlsSpec(BaseModel):
    """The device settings for each run, restored afterwards."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    stay_awake: bool = _CONTROLS.stay_awake
    screen: Annotated[Screen, BeforeValidator(_screen)] = Field(_CONTROLS.screen, strict=False)
    cores: Annotated[str, Field(min_length=1, max_length=200), AfterValidator(_cores)] = _CONTROLS.cores
    governor: str = Field(_CONTROLS.governor, max_length=40, pattern=r"^([a-z][a-z0-9_-]*)?$")
    min_hz: int | None = Field(_CONTROLS.min_hz, ge=1_000_000, le=_MAX_HZ)
    max_hz: int | None = Field(_CONTROLS.max_hz, ge=1_000_000, le=_MAX_HZ)
    online: Annotated[str, Field(max_length=200), AfterValidator(_online)] = _CONTROLS.online

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        if self.min_hz is not None and self.max_hz is not None and self.min_hz > self.max_hz:
            raise PydanticCustomError("matrix_value", "min_hz is above max_hz")
        if self.online and self.cores not in set(CoreKind):
            off = set(core_list(self.cores) or ()) - set(core_list(self.online) or ())
            if off:
                raise PydanticCustomError(
                    "matrix_value", "the run is bound to cores that are not to be online"
                )
        return self
