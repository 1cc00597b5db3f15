"""A file that is computed in a way known to be slow is named below the table, on either side."""

from dataclasses import replace
from typing import Any

import pytest

from farm.cli.results.speedups.table import speedup_table
from farm.core.models.variant import Precision, SlowPath
from farm.database.transaction import bind_tx
from farm.services.files.registration import register_variant
from farm.services.results.speedups.listing import list_speedups
from tests.services.results.history.test_latest_speedups import measured
from tests.support.farm.service_fixture import ANN, FarmRig, HostRig
from tests.support.sample_views import cell_setup, speedup_view

SAID = {
    SlowPath.PORTABLE_KERNELS: "portable kernels compute convolutions of it",
    SlowPath.DYNAMIC_RANGE: "quantize activations in each run",
    SlowPath.SIGNED_ACTIVATIONS: "take signed activations",
}


def table(**changes: Any) -> str:
    return " ".join(speedup_table([speedup_view(**changes)], width=100).plain.split())


@pytest.mark.parametrize("path", SlowPath)
def test_a_candidate_with_a_slow_path_is_named(path: SlowPath) -> None:
    caution = table(slow_path=path, virtual=True).partition("caution: int8-core: ")[2]
    assert SAID[path] in caution


def test_a_baseline_with_a_slow_path_is_named() -> None:
    setup = cell_setup(precision=Precision.FLOAT32, slow_path=SlowPath.PORTABLE_KERNELS)
    text = table(baseline_setup=setup)
    assert "caution: float32: ExecuTorch's portable kernels" in text
    assert "caution: int8-core" not in text


def test_signed_activations_are_slow_on_pcs_and_not_named_for_phones() -> None:
    assert "signed" not in table(slow_path=SlowPath.SIGNED_ACTIVATIONS, virtual=False)
    assert "dynamic range" in table(slow_path=SlowPath.DYNAMIC_RANGE, virtual=False)


def test_other_files_have_no_such_caution() -> None:
    assert "caution" not in table(virtual=True)


def test_it_is_known_of_a_registered_file_from_then_on(farm: FarmRig, host: HostRig) -> None:
    seen = replace(farm.variant("int8-core").manifest, slow_path=SlowPath.DYNAMIC_RANGE)
    farm.write(bind_tx(register_variant, now=farm.clock.now()), seen, ANN)
    [view] = farm.read(list_speedups, measured(farm, host, rounds=5))
    assert (view.slow_path, view.baseline_setup.slow_path) == (SlowPath.DYNAMIC_RANGE, None)
    assert "caution: int8-core: its convolutions" in speedup_table([view], width=100).plain
