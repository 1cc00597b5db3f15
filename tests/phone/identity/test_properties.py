import pytest

from farm.phone.identity import facts
from farm.phone.identity.properties import properties
from farm.phone.identity.soc import chip

DUMP = """\
[persist.sys.boot.reason.history]: [reboot,ota,1700000001
cold,powerkey,1700000000]
[ro.build.fingerprint]: [acme/one/one:14/AP1A.1/7:user/release-keys]
[ro.build.version.release]: [14]
[ro.build.version.sdk]: [34]
[ro.product.cpu.abilist]: [arm64-v8a,armeabi-v7a]
[ro.product.manufacturer]: [Acme]
[ro.product.model]: [One [global]]
[ro.serialno]: [A1B2C3]
[ro.soc.manufacturer]: [QTI]
[ro.soc.model]: [SM8650]
[ro.wifi.channels]: []
"""


def test_a_dump_becomes_a_mapping() -> None:
    found = properties(DUMP)
    assert len(found) == 11
    assert found["ro.product.model"] == "One [global]"
    assert found["ro.wifi.channels"] == ""


def test_a_value_over_several_lines_is_one_value() -> None:
    found = properties(DUMP)
    assert found["persist.sys.boot.reason.history"] == "reboot,ota,1700000001\ncold,powerkey,1700000000"


@pytest.mark.parametrize(
    "spoilt",
    [
        DUMP.replace("\n", "\r\n"),
        "\ufeff" + DUMP.replace("\n", "\r\n"),
        "getprop\n" + DUMP,
        "phone:/ $ getprop\n" + DUMP + "phone:/ $ \n",
        "".join(f"{number}:{line}\n" for number, line in enumerate(DUMP.splitlines(), start=1)).replace(
            "2:cold", "cold"
        ),
        DUMP.encode("utf-16-le").decode("utf-8", errors="replace"),
    ],
    ids=["crlf", "bom", "echo", "prompts", "grep -n", "utf-16 read as utf-8"],
)
def test_what_happens_to_a_dump_on_its_way_does_not_matter(spoilt: str) -> None:
    assert properties(spoilt) == properties(DUMP)


def test_a_value_that_is_cut_off_is_left_out() -> None:
    found = properties(DUMP[: DUMP.index("TI]")])
    assert "ro.soc.manufacturer" not in found
    assert found["ro.serialno"] == "A1B2C3"


def test_a_refused_dump_is_empty() -> None:
    assert properties("/system/bin/sh: getprop: inaccessible or not found") == {}


def test_a_build_prop_is_read_too() -> None:
    found = properties("# begin build properties\nro.build.version.sdk=24\nro.product.model=One\n")
    assert found == {"ro.build.version.sdk": "24", "ro.product.model": "One"}


def test_the_facts_of_a_phone_are_read_off_its_properties() -> None:
    found = properties(DUMP)
    assert facts.text_fact(found, "device_model") == "One [global]"
    assert facts.text_fact(found, "manufacturer") == "Acme"
    assert chip(found).text == "Qualcomm SM8650 (Snapdragon 8 Gen 3)"
    assert facts.text_fact(found, "android") == "14"
    assert facts.api_level(found) == 34
    assert facts.abis(found) == ("arm64-v8a", "armeabi-v7a")
    assert facts.text_fact(found, "build_fingerprint") == "acme/one/one:14/AP1A.1/7:user/release-keys"
    assert facts.text_fact(found, "serialno") == "A1B2C3"
    assert not facts.is_virtual(found)
    assert facts.text_fact(found, "cpu_domain") is None


def test_a_phone_that_says_nothing_has_no_facts() -> None:
    assert facts.text_fact({}, "device_model") is None
    assert chip({}).text is None
    assert facts.api_level({"ro.build.version.sdk": "?"}) is None
    assert facts.abis({}) == ()


def test_a_vendors_partition_names_the_model_where_nothing_else_does() -> None:
    assert facts.text_fact({"ro.product.vendor.model": "Pixel 6 Pro"}, "device_model") == "Pixel 6 Pro"


def test_an_old_phone_has_two_single_abis() -> None:
    old = {"ro.product.cpu.abi": "armeabi-v7a", "ro.product.cpu.abi2": "armeabi"}
    assert facts.abis(old) == ("armeabi-v7a", "armeabi")


@pytest.mark.parametrize(
    ("machine", "abi"),
    [("aarch64\n", "arm64-v8a"), ("x86_64", "x86_64"), ("armv8l", "armeabi-v7a"), ("", None)],
)
def test_a_machine_without_android_has_the_abi_of_its_kernel(machine: str, abi: str | None) -> None:
    assert facts.abi_of_machine(machine) == abi


def test_a_virtual_phone_says_so_and_names_its_cpu() -> None:
    found = properties("[ro.benchfarm.virtual]: [1]\n[ro.benchfarm.cpu_domain]: [host-a]\n")
    assert facts.is_virtual(found)
    assert facts.text_fact(found, "cpu_domain") == "host-a"


def test_the_last_assignment_of_a_build_prop_that_may_be_cut_is_left_out() -> None:
    text = "ro.product.model=A-9\nro.build.version.sdk=3"
    assert properties(text) == {"ro.product.model": "A-9"}
    assert properties(f"{text}\n")["ro.build.version.sdk"] == "3"


@pytest.mark.parametrize(
    "name",
    [
        "ro.asus.product.mkt_name",
        "ro.vendor.product.marketname",
        "ro.product.honor.marketname",
        "ro.product.oplus.market.name",
        "ro.vivo.market.name",
        "ro.vendor.product.display",
        "ro.product.en.display",
        "ro.zuk.product.market",
        "ro.product.display",
        "ro.config.marketing_name",
        "ro.display.series",
        "ro.product.nickname",
        "ro.lge.petname",
        "ro.product.product.tran.device.name.default",
    ],
)
def test_every_maker_has_a_property_of_its_own_for_what_it_sells_a_phone_as(name: str) -> None:
    assert facts.market_name({"ro.product.model": "A-9", name: "Acme Nine"}) == "Acme Nine"


@pytest.mark.parametrize(
    ("latin", "other"),
    [
        ("ro.oppo.market.enname", "ro.oppo.market.name"),
        ("ro.vendor.oplus.market.enname", "ro.vendor.oplus.market.name"),
        ("ro.product.en.display", "ro.product.display"),
        ("ro.product.en.display", "ro.zuk.product.market"),
    ],
)
def test_a_name_in_latin_letters_is_taken_first(latin: str, other: str) -> None:
    said = {"ro.product.model": "A-9", other: "アクメ9", latin: "Acme Nine"}
    assert facts.market_name(said) == "Acme Nine"
    assert facts.market_name({**said, latin: ""}) == "アクメ9"


def test_blanks_around_an_assignment_are_not_of_it() -> None:
    assert properties("ro.opengles.version = 196609\nro.product.name= acme \n") == {
        "ro.opengles.version": "196609",
        "ro.product.name": "acme",
    }


def test_a_market_name_that_is_the_model_again_does_not_hide_another() -> None:
    said = {
        "ro.product.model": "BX-9",
        "ro.oneplus.market.name": "bx-9",
        "ro.display.series": "Acme Nine",
    }
    assert facts.market_name(said) == "Acme Nine"
    assert facts.fact_source(said, "market_name") == "ro.display.series"
    assert facts.market_name({**said, "ro.display.series": ""}) is None


def test_a_value_that_a_build_prop_has_for_want_of_another_gives_way_to_it() -> None:
    text = "ro.hardware.egl?=acme\nro.carrier?=unknown\nro.zygote = zygote64\nro.zygote ?= zygote32\n"
    assert properties(f"ro.hardware.egl=mali\n{text}") == {
        "ro.hardware.egl": "mali",
        "ro.carrier": "unknown",
        "ro.zygote": "zygote64",
    }


def test_the_phones_own_partition_goes_before_that_of_its_board() -> None:
    said = {
        "ro.product.vendor.model": "board9",
        "ro.product.odm.model": "A-9",
        "ro.product.system.model": "s",
    }
    assert facts.text_fact(said, "device_model") == "A-9"
    assert facts.fact_source(said, "device_model") == "ro.product.odm.model"


@pytest.mark.parametrize("joint", ["", " ", "\t"])
def test_a_dump_that_lost_its_line_ends_is_read(joint: str) -> None:
    said = {
        "ro.product.model": "A-9 [b]",
        "ro.wifi.channels": "",
        "sys.usb.config": "mtp,adb",
        "a:b/c@1.0": "x",
    }
    text = joint.join(f"[{name}]: [{value}]" for name, value in said.items())
    assert properties(text) == said
    assert properties(f"{text}\n") == said


def test_brackets_within_one_value_of_a_dump_that_has_its_line_ends_are_the_values_own() -> None:
    text = "[ro.product.model]: [A-9]\n[persist.acme.on_fault]: [reset,halt][persist.acme.trim]: [2]\n"
    text += "[ro.board.platform]: [kona]\n"
    assert properties(text) == {
        "ro.product.model": "A-9",
        "persist.acme.on_fault": "reset,halt][persist.acme.trim]: [2",
        "ro.board.platform": "kona",
    }


def test_what_no_one_filled_in_is_no_fact() -> None:
    said = {
        "ro.product.manufacturer": "unknown",
        "ro.product.odm.manufacturer": "Acme",
        "ro.serialno": "unknown",
    }
    assert facts.text_fact(said, "manufacturer") == "Acme"
    assert facts.fact_source(said, "manufacturer") == "ro.product.odm.manufacturer"
    assert facts.text_fact(said, "serialno") is None


@pytest.mark.parametrize("prefix", ["12:", "12-", "getprop.txt:12:", "dumps/one-getprop.txt-12-", "  12: "])
def test_lines_of_grep_are_properties(prefix: str) -> None:
    lines = [line for line in DUMP.splitlines() if line.startswith("[ro.")]
    found = properties("".join(f"{prefix}{line}\n" for line in lines))
    assert found == {name: value for name, value in properties(DUMP).items() if name.startswith("ro.")}
    assert properties(f"{prefix}ro.product.model=One\n") == {"ro.product.model": "One"}


def test_a_property_is_read_where_grep_cut_its_first_bracket() -> None:
    assert properties("7:ro.soc.model]: [SM8650]\n") == {"ro.soc.model": "SM8650"}
