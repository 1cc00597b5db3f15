"""The GPU of a device and its drivers: `dumpsys SurfaceFlinger`, `cmd gpu vkjson`, features."""

import re
from collections.abc import Sequence

from farm.core.devices.device import Gpu
from farm.phone.adb.decoding import complete_lines, lines

#: The line may be quoted.
_GLES = re.compile(r"(?:^|[\s\"'`>])GLES: ?(.+?)[\"'`]*$")
_OPENGL = re.compile(r"OpenGL ES\S* \d+\.\d+(?:\.\d+)? ?(.*)", re.DOTALL)
#: `V@0762.10`, `v1.r38p1-01eac0` or `v1.g15p0-01eac0`, `build 1.13@5776728`.
_DRIVERS = (
    re.compile(r"V@\d[\d.]*", re.ASCII),
    re.compile(r"(?<![a-z0-9])[rg]\d{1,3}p\d{1,3}(?:-\d+\w{0,6})?", re.ASCII),
    re.compile(r"\d+\.\d+@\d+", re.ASCII),
)
_COMPANY = re.compile(r"(?:Ltd|Inc|Co|Corp|LLC|Limited|Corporation)\b", re.IGNORECASE)
#: Android writes whole numbers as `4206847.0`, from some version on.
_NUMBER_FIELD = re.compile(r'\s*"(apiVersion|driverVersion)"\s*:\s*(\d{1,10})(?:\.0)?\s*,?\s*', re.ASCII)
_TEXT_FIELD = re.compile(r'\s*"(driverInfo|deviceName)"\s*:\s*"([^"]{0,600})"\s*,?\s*')
_FEATURE = re.compile(r"(?:feature:)?android\.hardware\.vulkan\.version=(\d{1,10})", re.ASCII)
_PREFIX = re.compile(r"v\d+\.(?=[rg]\d)", re.ASCII)


def gpu(surfaceflinger: str, vkjson: str, features: str = "", egl: str | None = None) -> Gpu | None:
    """Return the GPU; None when the device reports nothing about it.

    Args:
        surfaceflinger: `dumpsys SurfaceFlinger`, or its GLES line.
        vkjson: `cmd gpu vkjson`, or the lines of it that name versions; the first device counts.
        features: `pm list features`, which has Vulkan's version where vkjson is missing.
        egl: ro.hardware.egl, for where nothing else names the vendor.
    """
    vendor, renderer, version = _gles(surfaceflinger)
    numbers, texts = _vulkan_fields(vkjson)
    words = (word for line in complete_lines(features) for word in line.split())
    fallback = next((int(match[1]) for match in map(_FEATURE.fullmatch, words) if match), None)
    api = numbers.get("apiVersion") or fallback
    graphics = Gpu(
        vendor=vendor or egl,
        renderer=renderer or texts.get("deviceName") or None,
        driver=_driver(version),
        driver_text=version,
        # VK_MAKE_API_VERSION: 7 bits of major, 10 of minor, 12 of patch.
        vulkan=f"{api >> 22 & 0x7F}.{api >> 12 & 0x3FF}.{api & 0xFFF}" if api else None,
        vulkan_driver=_vulkan_driver(numbers.get("driverVersion"), texts.get("driverInfo")),
    )
    return None if graphics == Gpu() else graphics


def _gles(text: str) -> tuple[str | None, str | None, str | None]:
    """Return vendor, renderer and version of the first GLES line; parts that may be cut are left out."""
    rows = lines(text)
    for number, line in enumerate(rows, start=1):
        match = _GLES.search(line)
        parts = _split(match[1]) if match else []
        # After the last line end a part may be incomplete; a single line was copied by hand.
        parts = parts[:-1] if 1 < number == len(rows) else parts
        if len(parts) >= 2 and parts[0] and parts[1] and not parts[1].startswith("OpenGL ES"):
            behind = [at for at, part in enumerate(parts) if at >= 2 and part.startswith("OpenGL ES")]
            at = behind[0] if behind else 2
            version = ", ".join(parts[at:])
            return parts[0], ", ".join(parts[1:at]), version or None
    return None, None, None


def _split(text: str) -> list[str]:
    """Split at commas outside of brackets; `Co., Ltd.` stays with its company."""
    pieces, depth = [""], 0
    for letter in text:
        depth = max(0, depth + (letter == "(") - (letter == ")"))
        if letter == "," and depth == 0:
            pieces.append("")
        else:
            pieces[-1] += letter
    parts: list[str] = []
    for piece in map(str.strip, pieces):
        if len(parts) == 1 and _COMPANY.match(piece):
            parts[0] += f", {piece}"
        else:
            parts.append(piece)
    return parts


def _driver(version: str | None) -> str | None:
    """Return the driver's own version: short where the vendor's form is known."""
    if version is None:
        return None
    matches = (pattern.search(version) for pattern in _DRIVERS)
    short = next((match[0] for match in matches if match), None)
    behind = _OPENGL.fullmatch(version)
    rest = _PREFIX.sub("", behind[1].strip()) if behind else version
    # ANGLE and translators put theirs in brackets.
    version_text = rest[1:-1] if rest.startswith("(") and rest.endswith(")") else rest
    return short or version_text or None


def _vulkan_fields(text: str) -> tuple[dict[str, int], dict[str, str]]:
    numbers: dict[str, int] = {}
    texts: dict[str, str] = {}
    # A document on one line is split first; a piece without an end may be cut.
    pieces: Sequence[str] = lines(text) if text.count("\n") > 1 else re.split(r"(?<=,)|[{}\r\n]", text)
    # The loader's version stands before that of a device, which comes just before its driver's or its name.
    version: int | None = None
    for piece in pieces[:-1]:
        if (number := _NUMBER_FIELD.fullmatch(piece)) is None:
            if (word := _TEXT_FIELD.fullmatch(piece)) is not None:
                texts.setdefault(word[1], word[2].strip())
        elif number[1] == "apiVersion":
            version = int(number[2])
        else:
            numbers.setdefault("driverVersion", int(number[2]))
        if version is not None and ("driverVersion" in numbers or "deviceName" in texts):
            numbers.setdefault("apiVersion", version)
    return numbers, texts


def _vulkan_driver(packed: int | None, info: str | None) -> str | None:
    """Decode a driver's version like an API version (Arm, Qualcomm, Imagination); all 10 bits are major."""
    number = f"{packed >> 22}.{packed >> 12 & 0x3FF}.{packed & 0xFFF}" if packed else None
    return ", ".join(dict.fromkeys(part for part in (number, info) if part)) or None
