"""Which chip a phone has, by all that it says: makers put that in a dozen places."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from farm.phone.properties import Properties
from farm.phone.soc_names import NAMES
from farm.phone.soc_table import CHIP_BY_PLATFORM, FAMILY_BY_PLATFORM, VENDORS

#: The surest first. ro.soc.* came with Android 12; ro.chipname is Samsung's, where the platform of every
#: Exynos up to the S9 says exynos5; ro.hardware may be the chip's vendor (qcom) or the phone's code name.
_SAYING = (
    "ro.chipname",
    "ro.hardware.chipname",
    "ro.vendor.soc.model",
    "ro.vendor.qti.soc_model",
)
#: MediaTek's platforms serve several chips: an MT6762G says MT6765 here, and its own number in /proc/cpuinfo.
_PLATFORMS = ("ro.vendor.mediatek.platform", "ro.mediatek.platform")
#: One vendor image of Qualcomm's serves several platforms; it finds out by itself which it runs on.
_HINTING = (
    "ro.vendor.qti.soc_name",
    *("ro.board.platform", "ro.boot.hardware.platform", "ro.hardware", "ro.boot.hardware"),
)
_BOARDS = ("ro.arch", "ro.product.board")
#: Part numbers within longer texts: `Qualcomm Technologies, Inc SM8350`, `Hisilicon Kirin970`.
_PARTS: tuple[tuple[str, re.Pattern[str]], ...] = tuple(
    (vendor, re.compile(rf"(?<![a-z0-9])(?:{part})", re.ASCII | re.IGNORECASE))
    for vendor, part in (
        (
            "Qualcomm",
            r"(?:(?:sm|msm|apq|qcm|qcs|qrb|sxr|ssg|sg|sdw|sw)\d{4}|(?:sdm|sda|qcs)\d{3}|sc[78][12]80)"
            r"[a-z]{0,3}(?:-[a-z]{2})?(?![a-z0-9])",
        ),
        ("MediaTek", r"mt[68]\d{3}[a-z]{0,2}(?:[_/-][a-z0-9_/-]{1,16})?(?![a-z0-9])"),
        ("Samsung", r"s5e\d{4}(?![a-z0-9])"),
        ("Samsung", r"(?:samsung)?exynos ?(?:\d{4}e?|8[58]0|9[89]0)(?![a-z0-9])"),
        ("HiSilicon", r"(?:kirin ?\d{3,4}[a-z]{0,2}|hi\d{4}[a-z]?)(?![a-z0-9])"),
        ("Unisoc", r"(?:s[cp]\d{4}[a-z]{0,2}|ums\d{3,4}[a-z]?|ud710|s9863a)(?![a-z0-9])"),
        ("Unisoc", r"(?<=unisoc )t\d{3,4}(?![a-z0-9])"),
        ("Leadcore", r"lc1\d{3}[a-z]?(?![a-z0-9])"),
        ("Marvell", r"pxa\d{3,4}[a-z]?(?![a-z0-9])"),
        ("Rockchip", r"rk3\d{3}[a-z]?(?![a-z0-9])"),
        ("NVIDIA", r"tegra\d{0,3}(?![a-z0-9])"),
    )
)
#: Boards of Samsung's are named after the chip, now and then after an older one: they are asked last.
_SAMSUNG_BOARD = re.compile(r"(?:universal|erd|smdk)(\d{4})", re.ASCII | re.IGNORECASE)
#: What stands where nobody filled anything in (android.os.Build.UNKNOWN, and makers' own).
_NOTHING = frozenset({"", "unknown", "n/a", "na", "none", "null", "default", "0"})
_NUMBER = re.compile(r"(S5E\d{4}|[A-Z]+\d{3,4})", re.ASCII)


@dataclass(frozen=True, slots=True, kw_only=True)
class Chip:
    """None where the phone does not say."""

    vendor: str | None = None
    #: The part's number as its maker writes it, or the name where makers say that alone (`Tensor G3`).
    model: str | None = None
    #: What it is sold as, where that is another word; several names where the part has them.
    name: str | None = None
    #: The code name of a platform that several chips share, where nothing says more.
    platform: str | None = None
    source: str | None = None

    @property
    def text(self) -> str | None:
        """All of it in one, for people: `Qualcomm SM8750 (Snapdragon 8 Elite)`."""
        said = self.model or self.platform
        if said is None:
            return self.vendor
        name = f" ({self.name})" if self.name else ""
        has_vendor = self.vendor is None or said.casefold().startswith(self.vendor.casefold())
        return f"{said}{name}" if has_vendor else f"{self.vendor} {said}{name}"


def chip(properties: Properties, *, hardware: str | None = None, machine: str | None = None) -> Chip:
    """The chip, with the place that named it.

    Args:
        properties: of the phone.
        hardware: the `Hardware` line of /proc/cpuinfo, which only some kernels have.
        machine: /sys/devices/soc0/machine, which Qualcomm's kernels have.
    """
    if (model := _value(properties, "ro.soc.model")) is not None:
        maker = _value(properties, "ro.soc.manufacturer")
        return _chip_said(model, maker)
    said = [(name, _value(properties, name)) for name in _SAYING]
    said += [("/sys/devices/soc0/machine", machine), ("/proc/cpuinfo, Hardware", hardware)]
    said += [(name, _value(properties, name)) for name in (*_PLATFORMS, *_HINTING, *_BOARDS)]
    known = [(name, text.strip()) for name, text in said if text is not None and text.strip()]
    named = (_chip_named(text, source) for source, text in known)
    found = next((each for each in named if each is not None), None)
    return found or _of_board(known) or _family(known) or _only_vendor(known) or Chip()


def _chip_said(model: str, maker: str | None) -> Chip:
    """By ro.soc.*: the model as the phone says it, but for code names (a Pixel 7 says GS201)."""
    known = CHIP_BY_PLATFORM.get(model.casefold())
    recognised = _chip_named(model, "")
    guessed = recognised.vendor if recognised else None
    vendor = next((vendor for vendor, _ in _vendors([("", maker)])), maker) if maker else guessed
    if known is not None and known[0] == (vendor or known[0]):
        source = f"ro.soc.model, {model}"
        return Chip(vendor=known[0], model=known[1], name=sold_as(known[1]), source=source)
    return Chip(vendor=vendor, model=model, name=sold_as(model), source="ro.soc.model")


def _chip_named(text: str, source: str) -> Chip | None:
    """The chip that a text names, by its part number or by a code name that means one chip."""
    if source in (*_PLATFORMS, *_HINTING, *_BOARDS) and text.casefold() in FAMILY_BY_PLATFORM:
        return None
    if (known := CHIP_BY_PLATFORM.get(_code_name(text))) is not None:
        return Chip(vendor=known[0], model=known[1], name=sold_as(known[1]), source=f"{source}, {text}")
    for vendor, part in _PARTS:
        if (match := part.search(text)) is not None:
            model = _written(vendor, match[0])
            return Chip(vendor=vendor, model=model, name=sold_as(model), source=source)
    return None


def _code_name(text: str) -> str:
    """Kernels of Qualcomm's put the maker before it: `Qualcomm Technologies, Inc TRINKET`."""
    return text.casefold().removeprefix("qualcomm technologies, inc").strip(" .")


def _written(vendor: str, part: str) -> str:
    """A part's number as its maker writes it."""
    match vendor:
        case "Samsung":
            return part.casefold().replace(" ", "").removeprefix("samsung")
        case "HiSilicon" if part.casefold().startswith("kirin"):
            return f"Kirin {part[5:].strip().upper()}"
        case "Unisoc" if part.casefold().startswith("sp"):
            return f"SC{part[2:].upper()}"
        case "Unisoc" if part.casefold() == "s9863a":
            return "SC9863A"
        case "NVIDIA":
            return part.capitalize()
        case _:
            return part.upper()


def _of_board(known: list[tuple[str, str]]) -> Chip | None:
    boards = ((source, match[1]) for source, text in known if (match := _SAMSUNG_BOARD.match(text)))
    source, number = next(boards, (None, ""))
    if source is None:
        return None
    is_numbered = f"EXYNOS{number}" not in NAMES and f"S5E{number}" in NAMES
    part = f"s5e{number}" if is_numbered else f"exynos{number}"
    return _chip_named(part, source) or _family([(source, part)])


def _family(known: list[tuple[str, str]]) -> Chip | None:
    for source, text in known:
        if (family := FAMILY_BY_PLATFORM.get(_code_name(text))) is not None:
            vendor, chips = family
            return Chip(vendor=vendor, platform=_code_name(text), source=f"{source}, which is any of {chips}")
    return None


def _only_vendor(known: list[tuple[str, str]]) -> Chip | None:
    """Nothing is recognised: the platform as it stands, and its maker where something says that."""
    vendor, teller = next(_vendors(known), (None, None))
    hints = {name: text for name, text in known if name in _HINTING}
    source = next((name for name in _HINTING if name in hints and hints[name] != "qcom"), None)
    if source is None and vendor is None:
        return None
    return Chip(vendor=vendor, platform=hints[source] if source else None, source=source or teller)


def _vendors(known: list[tuple[str, str]]) -> Iterator[tuple[str, str]]:
    """Makers, each with what told it."""
    for source, text in known:
        folded = text.casefold()
        yield from ((vendor, source) for word, vendor in VENDORS.items() if folded.startswith(word))


def sold_as(model: str) -> str | None:
    """The name a part is sold under, where that says more than its number."""
    number = _NUMBER.match(model.upper())
    name = (NAMES.get(model.upper()) or NAMES.get(number[1])) if number else None
    return None if name is None or _plain(name) == _plain(model) else name


def _plain(text: str) -> str:
    return "".join(letter for letter in text.casefold() if letter.isalnum())


def _value(properties: Mapping[str, str], name: str) -> str | None:
    value = properties.get(name, "").strip()
    return None if value.casefold() in _NOTHING else value
