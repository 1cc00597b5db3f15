"""The chip of a device, by all the places in which makers name it."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from farm.phone.identity.properties import Properties
from farm.phone.identity.soc_table import CHIP_BY_PLATFORM, FAMILY_BY_PLATFORM, NAMES, VENDORS

#: The most reliable first. ro.soc.* came with Android 12; ro.chipname is Samsung's, where the platform of
#: every Exynos up to the S9 is exynos5; ro.hardware may be the chip's vendor (qcom) or the device's code
#: name.
_NAMING = (
    "ro.chipname",
    "ro.board.chiptype",
    "ro.hardware.chipname",
    "ro.vendor.soc.model",
    "ro.vendor.qti.soc_model",
    # Oppo's and related brands', and Huawei's: shown in the settings of their devices.
    *("ro.product.oplus.cpuinfo", "ro.product.cpuinfo", "ro.config.cpu_info_display"),
    # Unisoc's boot loader detects which of a platform's chips it is: `T618`.
    (_OF_UNISOC := "ro.boot.auto.efuse"),
)
#: MediaTek's platforms serve several chips: an MT6762G has MT6765 here, and its own number in /proc/cpuinfo.
_PLATFORMS = ("ro.vendor.mediatek.platform", "ro.mediatek.platform")
#: One vendor image of Qualcomm's serves several platforms, and detects the one it runs on.
_HINTING = (
    "ro.vendor.qti.soc_name",
    *("ro.board.platform", "ro.boot.hardware.platform", "ro.hardware", "ro.boot.hardware"),
)
_BOARDS = ("ro.arch", "ro.product.board")
_HARDWARE_LINE = "/proc/cpuinfo, Hardware"
#: These may hold the code name of the device instead of the chip's: a Galaxy Nexus is `tuna`.
_OF_PHONES = (_HARDWARE_LINE, "ro.hardware", "ro.boot.hardware", *_BOARDS)
_QUALCOMM = "qualcomm technologies, inc"
#: A Moto G20 is `java`, and a Moto G10 `capri`: both are Broadcom's platforms, too.
_NAMING_BY_WORDS = frozenset({"Qualcomm", "Broadcom"})
#: Part numbers within longer texts: `Qualcomm Technologies, Inc SM8350`, `Hisilicon Kirin970`.
_PARTS: tuple[tuple[str, re.Pattern[str]], ...] = tuple(
    (vendor, re.compile(rf"(?<![a-z0-9])(?:{part})", re.ASCII | re.IGNORECASE))
    for vendor, part in (
        (
            "Qualcomm",
            r"(?:(?:msm|apq) ?\d{4}|(?:sm|qcm|qcs|qrb|sxr|ssg|sg|sdw|sw)\d{4}|(?:sdm|sda|qcs|qm)\d{3}"
            # The kernel may add the stepping: `MSM8994v2.1`.
            r"|sc[78][12]80)[a-z]{0,3}(?:-[a-z]{2})?(?=v\d(?:\.\d)?(?![a-z0-9])|(?![a-z0-9]))",
        ),
        ("MediaTek", r"mtk?[5689]\d{3}[a-z]{0,2}(?:[_/-][a-z0-9_/-]{1,16})?(?![a-z0-9])"),
        ("Samsung", r"s5e\d{4}(?![a-z0-9])"),
        ("Samsung", r"(?:samsung)?exynos ?(?:\d{4}[abe]?|8[58]0|9[89]0)(?![a-z0-9])"),
        ("HiSilicon", r"(?:kirin ?\d{3,4}[a-z]{0,2}|hi\d{4}[a-z]?)(?![a-z0-9])"),
        (
            "Unisoc",
            r"(?:s[cp]\d{4}[a-z]{0,2}|(?:uis|sl)\d{4}[a-z]?|ums\d{3,4}[a-z]?|ud710|s9863a)(?![a-z0-9])",
        ),
        ("Unisoc", r"(?:(?<=unisoc )|(?<=unisoc tiger ))t\d{3,4}(?![a-z0-9])"),
        ("Google", r"tensor(?: g\d{1,2})?(?![a-z0-9])"),
        ("Xiaomi", r"xring[ _]?o\d{1,3}(?![a-z0-9])"),
        ("Leadcore", r"lc1\d{3}[a-z]?(?![a-z0-9])"),
        ("Marvell", r"pxa\d{3,4}[a-z]?(?![a-z0-9])"),
        ("Rockchip", r"rk[23]\d{3}[a-z]?(?![a-z0-9])"),
        ("Texas Instruments", r"omap\d{4}(?![a-z0-9])"),
        # Printed by the kernel of every Raspberry Pi.
        ("Broadcom", r"bcm(?!2835|270[89])\d{4,5}[a-z]?(?![a-z0-9])"),
        ("NVIDIA", r"tegra\d{0,3}(?![a-z0-9])"),
    )
)
#: Kernels before 2016 name the platform this way, whichever of its chips is there.
_TREE = re.compile(r"qualcomm (msm|apq) ?(\d{4})\b.*\(flattened device tree\)", re.ASCII | re.IGNORECASE)
#: `MSM8916MSM8916`: some kernels print it twice.
_TWICE = re.compile(r"\b([a-z]{2,8}\d{3,5}[a-z]{0,3})\1\b", re.ASCII | re.IGNORECASE)
#: Samsung's boards are named after the chip, sometimes after an older one, so they come last.
_SAMSUNG_BOARD = re.compile(r"(?:universal|erd|smdk)(\d{4}[ab]?(?![a-z0-9])|\d{4})", re.ASCII | re.IGNORECASE)
#: Some report a series as the model: a Mate 70 has `kirin`.
_SERIES = frozenset({"kirin", "exynos", "snapdragon", "dimensity", "helio", *VENDORS})
#: Chips with the code name of a headset's chip (SXR2130).
_ALSO_OF_HEADSETS = ("kona",)
_MAKERS_OF_HEADSETS = ("oculus", "meta", "pico")
#: Placeholders for missing values (android.os.Build.UNKNOWN, and makers' own); images that serve devices of
#: all chips have `common` for the platform.
_NOTHING = frozenset(
    {"", "unknown", "n/a", "na", "none", "null", "default", "0", "common", "generic"},
)
_NUMBER = re.compile(r"(S5E\d{4}|[A-Z]+\d{3,4})", re.ASCII)


@dataclass(frozen=True, slots=True, kw_only=True)
class Chip:
    """The chip of a device; None where the device does not report it."""

    vendor: str | None = None
    #: The part number as its maker writes it, or the name where only that is published (`Tensor G3`).
    model: str | None = None
    #: Its market name, where that is another word; several names where the part has them.
    name: str | None = None
    #: The code name of a platform that several chips share, where nothing more is reported.
    platform: str | None = None
    source: str | None = None

    @property
    def text(self) -> str | None:
        """Return the chip as one text for people: `Qualcomm SM8750 (Snapdragon 8 Elite)`."""
        model = self.model or self.platform
        if model is None:
            return self.vendor
        name = f" ({self.name})" if self.name else ""
        has_vendor = self.vendor is None or model.casefold().startswith(self.vendor.casefold())
        return f"{model}{name}" if has_vendor else f"{self.vendor} {model}{name}"


def chip(properties: Properties, *, hardware: str | None = None, machine: str | None = None) -> Chip:
    """Return the chip, with the place that named it.

    Args:
        properties: of the device.
        hardware: the `Hardware` line of /proc/cpuinfo, which only some kernels have.
        machine: /sys/devices/soc0/machine, which Qualcomm's kernels have.
    """
    model, maker = _value(properties, "ro.soc.model"), _value(properties, "ro.soc.manufacturer")
    if model is not None and (model.casefold() in _SERIES or _is_of_phone(model, properties)):
        model = maker = None
    by_properties = _chip_by_properties(properties, hardware, machine)
    if model is not None and (by_properties.model or "").casefold().endswith(f" {model.casefold()}"):
        # Xiaomi's devices report `O3`, on a platform xring_o3_asic.
        return by_properties
    if model is not None and (by_soc_model := _chip_by_soc_model(model, maker)).vendor is not None:
        # A platform's code name: another place may name which of its chips it is.
        is_more_exact = by_soc_model.model is None and by_properties.model is not None
        return (
            by_properties if is_more_exact and by_properties.vendor == by_soc_model.vendor else by_soc_model
        )
    # The reported model, with the maker of all other places: `T612`, platform ums9230.
    return (
        by_properties
        if model is None
        else replace(_chip_by_soc_model(model, maker), vendor=by_properties.vendor)
    )


def _is_of_phone(model: str, properties: Properties) -> bool:
    """Return whether a name is the device's: some Android builds give it as the chip's."""
    names = {
        properties.get(name, "").casefold() for name in ("ro.product.device", "ro.product.vendor.device")
    }
    return model.casefold() in names and _chip_by_name(model, "") is None


def _chip_by_properties(properties: Properties, hardware: str | None, machine: str | None) -> Chip:
    """Return the chip by all places but ro.soc.*."""
    values = [(name, _value(properties, name)) for name in _NAMING]
    values = [(name, f"Unisoc {text}" if text and name == _OF_UNISOC else text) for name, text in values]
    values += [("/sys/devices/soc0/machine", machine), (_HARDWARE_LINE, hardware)]
    values += [(name, _value(properties, name)) for name in (*_PLATFORMS, *_HINTING, *_BOARDS)]
    texts = [(name, text.strip()) for name, text in values if text is not None and text.strip()]
    if properties.get("ro.product.manufacturer", "").strip().casefold() in _MAKERS_OF_HEADSETS:
        texts = [(name, text) for name, text in texts if _code_name(text) not in _ALSO_OF_HEADSETS]
    chips = (_chip_by_name(text, source) for source, text in texts)
    first = next((candidate for candidate in chips if candidate is not None), None)
    return first or _of_board(texts) or _family(texts) or _only_vendor(texts) or Chip()


def _chip_by_soc_model(model: str, maker: str | None) -> Chip:
    """Return the chip by ro.soc.*: the reported model, except for code names (a Pixel 7 has GS201)."""
    entry = CHIP_BY_PLATFORM.get(model.casefold())
    code_name = _code_name(model)
    if code_name in FAMILY_BY_PLATFORM and code_name.isalpha():
        return Chip(vendor=FAMILY_BY_PLATFORM[code_name][0], platform=code_name, source="ro.soc.model")
    recognised = _chip_by_name(model, "")
    guessed = recognised.vendor if recognised else None
    vendor = next((vendor for vendor, _ in _vendors([("", maker)])), maker) if maker else guessed
    if entry is not None and entry[0] == (vendor or entry[0]):
        source = f"ro.soc.model, {model}"
        return Chip(vendor=entry[0], model=entry[1], name=marketing_name(entry[1]), source=source)
    first, _, rest = model.partition(" ")
    if rest and first.casefold() in {(vendor or "").casefold(), (maker or "").casefold()}:
        model = rest.strip()
    return Chip(vendor=vendor, model=model, name=marketing_name(model), source="ro.soc.model")


def _chip_by_name(text: str, source: str) -> Chip | None:
    """Return the chip that a text names, by its part number or by a code name that means one chip."""
    names_platform = source in (*_PLATFORMS, *_HINTING, *_BOARDS) or _TREE.fullmatch(text) is not None
    if names_platform and _family_name(text) is not None:
        return None
    if (entry := CHIP_BY_PLATFORM.get(_code_name(text))) is not None and _is_of_chip(entry[0], text, source):
        return Chip(
            vendor=entry[0], model=entry[1], name=marketing_name(entry[1]), source=f"{source}, {text}"
        )
    for vendor, part in _PARTS:
        if (match := part.search(_TWICE.sub(r"\1", text))) is not None:
            model = _part_text(vendor, match[0])
            return Chip(vendor=vendor, model=model, name=marketing_name(model), source=source)
    return None


def _code_name(text: str) -> str:
    """Return the code name without the maker and the device: `Qualcomm Technologies, Inc KONA`."""
    if (tree := _TREE.fullmatch(text)) is not None:
        return f"{tree[1]}{tree[2]}".casefold()
    return text.casefold().rpartition(_QUALCOMM)[2].strip(" .")


def _family_name(text: str) -> str | None:
    """Return the platform of several chips that a text names; makers append to numbers: `msm8953_64`."""
    code_name = _code_name(text)
    number = code_name.partition("_")[0]
    if code_name not in FAMILY_BY_PLATFORM and number.isalnum() and not number.isalpha():
        code_name = number
    return code_name if code_name in FAMILY_BY_PLATFORM else None


def _is_of_chip(vendor: str, text: str, source: str) -> bool:
    """Return whether a code name is the chip's: some vendors use words, which are also names of devices."""
    is_word = vendor in _NAMING_BY_WORDS and not any(letter.isdigit() for letter in text)
    return not is_word or source not in _OF_PHONES or _QUALCOMM in text.casefold()


def _part_text(vendor: str, part: str) -> str:
    """Return a part number as its maker writes it."""
    match vendor:
        case "Samsung":
            return part.casefold().replace(" ", "").removeprefix("samsung")
        case "MediaTek":
            return part.upper().replace("MTK", "MT")
        case "Google":
            return part.title()
        case "HiSilicon" if part.casefold().startswith("kirin"):
            return f"Kirin {part[5:].strip().upper()}"
        case "Xiaomi":
            return f"XRING {part[5:].strip(' _').upper()}"
        case "Unisoc" if part.casefold().startswith("sp"):
            return f"SC{part[2:].upper()}"
        case "Unisoc" if part.casefold() == "s9863a":
            return "SC9863A"
        case "NVIDIA":
            return part.capitalize()
        case _:
            return part.upper().replace(" ", "")


def _of_board(texts: list[tuple[str, str]]) -> Chip | None:
    boards = ((source, match[1]) for source, text in texts if (match := _SAMSUNG_BOARD.match(text)))
    source, number = next(boards, (None, ""))
    if source is None:
        return None
    is_numbered = f"EXYNOS{number}" not in NAMES and f"S5E{number}" in NAMES
    part = f"s5e{number}" if is_numbered else f"exynos{number}"
    return _chip_by_name(part, source) or _family([(source, part)])


def _family(texts: list[tuple[str, str]]) -> Chip | None:
    for source, text in texts:
        platform = _family_name(text)
        if platform is not None and _is_of_chip(FAMILY_BY_PLATFORM[platform][0], text, source):
            vendor, chips = FAMILY_BY_PLATFORM[platform]
            return Chip(vendor=vendor, platform=platform, source=f"{source}, which is any of {chips}")
    return None


def _only_vendor(texts: list[tuple[str, str]]) -> Chip | None:
    """Return the platform as reported, and its maker where a place names it: nothing else is recognised."""
    vendor, teller = next(_vendors(texts), (None, None))
    hints = {name: text for name, text in texts if name in _HINTING}
    source = next((name for name in _HINTING if name in hints and hints[name] != "qcom"), None)
    if source is None and vendor is None:
        return None
    return Chip(vendor=vendor, platform=hints[source] if source else None, source=source or teller)


def _vendors(texts: list[tuple[str, str]]) -> Iterator[tuple[str, str]]:
    """Yield makers, each with the place that named it."""
    for source, text in texts:
        folded = text.casefold()
        yield from ((vendor, source) for word, vendor in VENDORS.items() if folded.startswith(word))


def marketing_name(model: str) -> str | None:
    """Return the market name of a part, where it adds to its number."""
    number = _NUMBER.match(model.upper())
    name = (NAMES.get(model.upper()) or NAMES.get(number[1])) if number else None
    return None if name is None or _plain(name) == _plain(model) else name


def _plain(text: str) -> str:
    return "".join(letter for letter in text.casefold() if letter.isalnum())


def _value(properties: Mapping[str, str], name: str) -> str | None:
    value = properties.get(name, "").strip()
    return None if value.casefold() in _NOTHING else value
