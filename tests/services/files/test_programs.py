"""Programs on a farm: which one a matrix runs, and what an older one is not given."""

from datetime import timedelta

import pytest

from farm.core.base.ids import Digest, digest_of
from farm.core.errors import ArtifactMissing, InvalidInput, MatrixInvalid
from farm.database.transaction import bind_tx
from farm.harness.registry import get_harness
from farm.services.files.programs import harness_view, inspect_program, list_program_views, register_program
from farm.store.files.artifacts import put_artifact
from farm.wire.documents.files.programs import ProgramRegistration, RegisteredProgramView
from tests.support.farm.service_fixture import FarmRig, HostRig, plan_of
from tests.support.models.elf_samples import elf_file

HARNESS = "speed_benchmark_torch"
OLD_FLAGS = ("iter", "warmup", "input_dims", "input_type", "print_output", "pytext_len")


def upload(farm: FarmRig, content: bytes) -> Digest:
    digest = digest_of(content)
    farm.blobs.put([content], digest)
    farm.write(bind_tx(put_artifact, now=farm.clock.now()), digest, len(content))
    return digest


def register(farm: FarmRig, content_by_path: dict[str, bytes], **said: object) -> RegisteredProgramView:
    """Register a bundle whose first file is started."""
    entry = next(iter(content_by_path))
    registration = ProgramRegistration.model_validate(
        {
            "name": HARNESS,
            "files": [
                {"path": path, "digest": upload(farm, content), "executable": path == entry}
                for path, content in content_by_path.items()
            ],
            "entry": entry,
            **said,
        }
    )
    inspection = inspect_program(registration, farm.blobs)
    farm.clock.advance(1)
    return farm.write(bind_tx(register_program, now=farm.clock.now(), actor="user"), inspection)


def program_with(flags: tuple[str, ...]) -> bytes:
    """A binary for the rig's phones that knows these flags."""
    return elf_file(62, text=b"".join(b"\0" + flag.encode() + b"\0" for flag in flags))


def one_command(farm: FarmRig, host: HostRig, **changes: object) -> list[str]:
    """The command of the next run of a new matrix."""
    farm.submit(rounds=1, **changes)
    return list(plan_of(host.exchange().assignments[0]).argv)


def test_a_new_matrix_runs_the_program_registered_last_with_environment_and_files(
    farm: FarmRig, host: HostRig
) -> None:
    program = program_with(tuple(get_harness(HARNESS).flags))
    register(
        farm,
        {"bench": program, "lib/libfoo.so": elf_file(62, loader=None)},
        env={"LD_LIBRARY_PATH": "${work}/lib"},
        command=["taskset", "f0", "${program}", "${arguments}"],
    )
    farm.submit(rounds=1)
    plan = plan_of(host.exchange().assignments[0])
    assert plan.argv[:4] == ("taskset", "f0", "${work}/bench", "--model=${file_model}")
    assert plan.env == {"LD_LIBRARY_PATH": "${work}/lib"}
    assert [file.path for file in plan.files] == ["bench", "lib/libfoo.so", ""]


def test_a_matrix_keeps_the_program_it_was_submitted_with(farm: FarmRig, host: HostRig) -> None:
    farm.submit(rounds=1)
    register(farm, {"bench": program_with(("iter", "warmup"))})
    plan = plan_of(host.exchange().assignments[0])
    assert [file.executable for file in plan.files if file.name == "program"] == [True]
    assert plan.file("program").digest != digest_of(program_with(("iter", "warmup")))


def test_an_older_program_is_not_given_what_it_does_not_know(farm: FarmRig, host: HostRig) -> None:
    missing_flags = register(farm, {"bench": program_with(OLD_FLAGS)}).program.missing_flags
    assert {"pthreadpool_size", "use_bundled_input"} < set(missing_flags)
    words = one_command(farm, host, settings={"iter": 5, "input_dims": "1,3,224,224", "input_type": "float"})
    assert not [word for word in words if word.startswith(("--pthreadpool_size", "--use_bundled_input"))]
    assert "--iter=5" in words
    assert "--warmup=5" in words


def test_a_flag_that_the_program_lacks_cannot_be_set(farm: FarmRig, host: HostRig) -> None:
    register(farm, {"bench": program_with(OLD_FLAGS)})
    with pytest.raises(MatrixInvalid, match="pthreadpool_size"):
        farm.submit(settings={"pthreadpool_size": 4})


def test_looking_again_after_an_update_of_the_farm_mends_what_is_known_of_a_program(farm: FarmRig) -> None:
    first = register(farm, {"bench": program_with(OLD_FLAGS)})
    again = register(farm, {"bench": program_with(OLD_FLAGS)})
    assert (again.was_registered, again.replaces) == (True, None)
    assert again.program.created_at == first.program.created_at
    assert again.program.chosen_at - first.program.chosen_at == timedelta(seconds=1)


def test_the_farms_own_program_does_not_push_a_users_aside_at_the_next_start(
    farm: FarmRig,
) -> None:
    from farm.services.files.builtin_programs import register_builtin_programs

    mine = register(farm, {"bench": program_with(OLD_FLAGS)}).program.digest
    farm.clock.advance(60)
    register_builtin_programs(farm.database, farm.blobs, now=farm.clock.now())
    in_use = {view.abi: view.digest for view in farm.read(list_program_views) if view.in_use}
    assert in_use == {"x86_64": mine}


def test_a_file_that_is_no_longer_recorded_is_missed_at_registration(farm: FarmRig) -> None:
    content = program_with(OLD_FLAGS)
    farm.blobs.put([content], digest_of(content))
    registration = ProgramRegistration.model_validate(
        {
            "name": HARNESS,
            "files": [{"path": "bench", "digest": digest_of(content), "executable": True}],
            "entry": "bench",
        }
    )
    inspection = inspect_program(registration, farm.blobs)
    with pytest.raises(ArtifactMissing, match="bench"):
        farm.write(bind_tx(register_program, now=farm.clock.now(), actor="user"), inspection)


def test_a_program_in_a_persons_name_space_is_read_by_the_farms_adapter_and_leaves_the_shared_one(
    farm: FarmRig, host: HostRig
) -> None:
    register(farm, {"bench": program_with(("iter", "warmup"))}, name=f"ben/{HARNESS}")
    farm.submit(rounds=1)
    farm.submit(rounds=1, harness=f"ben/{HARNESS}", priority=9)
    plan = plan_of(host.exchange().assignments[0])
    assert plan.harness == f"ben/{HARNESS}"
    assert plan.file("program").digest == digest_of(program_with(("iter", "warmup")))
    in_use = {view.name: view.digest for view in farm.read(list_program_views) if view.in_use}
    assert set(in_use) == {HARNESS, f"ben/{HARNESS}"}
    assert len(set(in_use.values())) == 2


def test_a_definition_is_the_same_in_every_name_space(farm: FarmRig) -> None:
    definition = {"name": "hello", "arguments": "--size ${size}", "flags": {"size": {"default": 3}}}
    register(farm, {"hello.sh": b"#!/bin/sh\n"}, name="ben/hello", definition=definition)
    other = {**definition, "flags": {"size": {"default": 4}}}
    # No history of the one is a history of the other, so their defaults need not agree.
    register(farm, {"hello.sh": b"#!/bin/sh\n"}, name="hello", definition=other)
    flags = [farm.read(harness_view, name).flags[0].default for name in ("ben/hello", "hello")]
    assert flags == [3, 4]
    named = {**definition, "name": HARNESS}
    with pytest.raises(InvalidInput, match="adapter of the farm's own"):
        register(farm, {"hello.sh": b"#!/bin/sh\n"}, name=f"ben/{HARNESS}", definition=named)


def test_a_generic_harness_is_shown_by_its_definition(farm: FarmRig) -> None:
    definition = {
        "name": "hello",
        "arguments": "--size ${size}",
        "flags": {"size": {"default": 3, "minimum": 1}},
    }
    register(farm, {"hello.sh": b"#!/bin/sh\n"}, name="hello", definition=definition)
    view = farm.read(harness_view, "hello")
    assert view.definition is not None
    assert (view.needs_model, [flag.name for flag in view.flags]) == (False, ["size"])
    assert [program.abi for program in view.programs] == ["any"]


def test_a_flag_is_looked_for_by_the_word_that_the_tool_has_for_it(farm: FarmRig) -> None:
    """ExecuTorch's runner has `--etdump_path` only where it was built with a tracer."""
    traced, plain = ("num_executions", "cpu_threads", "etdump_path"), ("num_executions", "profile", "warm_up")
    for flags, is_missing in ((traced, False), (plain, True)):
        found = register(farm, {"runner": program_with(flags)}, name="executor_runner").program.missing_flags
        assert ("profile" in found) == is_missing
        assert "etdump_path" not in found
