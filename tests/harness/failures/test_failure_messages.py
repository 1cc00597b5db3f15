"""Further words of linkers, kernels, shells and runtimes for what ended a run."""

import pytest

from farm.core.runs.measurement import Outcome
from farm.harness.failures.classification import classify
from farm.harness.failures.patterns import RUNTIME_PATTERNS
from tests.support.harness import run_samples as sample

TOO_NEW, NO_MEMORY = "variant.too_new", "run.out_of_memory"
MISSING, NO_BACKEND = "variant.missing_operator", "run.backend_failed"
UNSUPPORTED, FAILED, INCONCLUSIVE = Outcome.UNSUPPORTED, Outcome.FAILED, Outcome.INCONCLUSIVE


@pytest.mark.parametrize(
    ("code", "said", "expected", "outcome"),
    [
        (
            1,
            'CANNOT LINK EXECUTABLE "a": program alignment (4096) cannot be smaller than system page size',
            "run.wrong_layout",
            UNSUPPORTED,
        ),
        (
            134,
            'error: "./a": executable\'s TLS segment is underaligned: alignment is 8, needs to be 64',
            "run.wrong_layout",
            UNSUPPORTED,
        ),
        (1, 'error: "./a" has unexpected e_machine: 62 (EM_X86_64)', "run.wrong_abi", UNSUPPORTED),
        (126, "sh: ./a: not executable: magic 7F45", "run.wrong_abi", UNSUPPORTED),
        (126, "sh: ./a: not executable: magic 4D5A", "run.wrong_abi", UNSUPPORTED),
        (126, "sh: ./a: not executable: magic FD37", "run.no_program", FAILED),
        (126, "sh: ./a: not executable: magic 1F8B", "run.no_program", FAILED),
        (
            1,
            'CANNOT LINK EXECUTABLE "./a": "/tmp/b.so" has bad ELF magic: 3c21646f',
            "run.no_program",
            FAILED,
        ),
        (1, 'dlopen failed: "/tmp/b.so" is too small to be an ELF executable', "run.no_program", FAILED),
        (1, 'could not load library "libb.so" needed by "./a"; caused by', "run.cannot_link", FAILED),
        (134, "what():  unknown builtin op: aten::foo", "variant.missing_operator", UNSUPPORTED),
        (
            134,
            "Unknown type name '__torch__.torch.classes.xnnpack.Conv2dOpContext':",
            "run.backend_missing",
            UNSUPPORTED,
        ),
        (
            134,
            'isGenericDict() INTERNAL ASSERT FAILED at "ivalue_inl.h":2119, please report a bug to PyTorch.'
            " Expected GenericDict but got Tuple ()",
            "run.backend_missing",
            UNSUPPORTED,
        ),
        (
            134,
            "Unknown custom class type vulkan.Conv2dPackedContext. Please ensure it is registered.",
            "run.backend_missing",
            UNSUPPORTED,
        ),
        (
            134,
            "Unknown custom class type quantized.LinearPackedParamsBase. Please ensure it is registered.",
            "variant.missing_operator",
            UNSUPPORTED,
        ),
        (134, "Expected at most 12 arguments but found 13 positional arguments.", TOO_NEW, UNSUPPORTED),
        (
            134,
            "Expected at most 9 argument(s) for operator 'aten::pad', but received 10 argument(s).",
            TOO_NEW,
            UNSUPPORTED,
        ),
        (
            134,
            "false CHECK FAILED at ../c10/core/Backend.h (tensorTypeIdToBackend at x)",
            "variant.unreadable",
            FAILED,
        ),
        (
            134,
            "The model is not generated from the api _save_for_lite_interpreter.",
            "variant.unreadable",
            FAILED,
        ),
        (
            134,
            "xnnpack::convolution not available! Reason: The provided parameters are invalid",
            "variant.node_refused",
            UNSUPPORTED,
        ),
        (134, "c10::Error: open file failed, file path: /tmp/net.pt", "variant.unreadable", FAILED),
        (1, "error: no devices/emulators found", "device.offline", INCONCLUSIVE),
        (
            1,
            "./a: /lib/aarch64-linux-gnu/libc.so.6: version `GLIBC_2.34' not found (required by ./a)",
            "run.cannot_link",
            FAILED,
        ),
        (1, "write: Disk quota exceeded", "device.storage_full", INCONCLUSIVE),
        (137, "Out of memory: Killed process 812 (sbt) total-vm:91234kB", "run.killed", INCONCLUSIVE),
        (137, "malloc: Out of memory", "run.out_of_memory", UNSUPPORTED),
        (
            1,
            "F libc    : Fatal signal 4 (SIGILL), code 1 (ILL_ILLOPC), fault addr 0x5 in tid 812 (sbt)",
            "run.illegal_instruction",
            UNSUPPORTED,
        ),
        (1, "signal 11 (SIGSEGV), code 1 (SEGV_MAPERR), fault addr 0x0", "run.crashed", FAILED),
        (99, "==812==ERROR: HWAddressSanitizer: tag-mismatch on address 0x0", "run.crashed", FAILED),
        (134, "Error: Could not find operator torchvision::nms", "variant.missing_operator", UNSUPPORTED),
        (
            134,
            "RuntimeError: Didn't find engine for operation quantized::linear_prepack NoQEngine",
            "run.backend_missing",
            UNSUPPORTED,
        ),
        (1, "ERROR: illegal value 'x' specified for int32 flag 'iter'", "run.bad_flags", FAILED),
    ],
)
def test_what_ended_a_run_is_told_by_its_words(code: int, said: str, expected: str, outcome: Outcome) -> None:
    found = classify(sample.evidence(code=code, stderr=f"something before\n{said}\nsomething behind\n"))
    assert found is not None
    assert (found.code, found.outcome, found.line) == (expected, outcome, said)


@pytest.mark.parametrize(
    ("code", "said", "expected"),
    [
        (
            137,
            'INFO: no OpenCL here - dlopen failed: could not load library "libb.so" needed by "libOpenCL.so"',
            "run.killed",
        ),
        (134, "could not load library libOpenCL.so, using the CPU\nstd::bad_alloc", NO_MEMORY),
        (
            1,
            "Non-zero status code returned while running Conv node. Name:'/c' Status Message: std::bad_alloc",
            NO_MEMORY,
        ),
        (
            1,
            "10 : INVALID_GRAPH : This is an invalid model. Error No Op registered for GridSample",
            MISSING,
        ),
        (139, "grep: invalid option -- 'E'\nSegmentation fault", "run.crashed"),
    ],
)
def test_what_is_said_on_the_way_does_not_hide_what_ended_it(code: int, said: str, expected: str) -> None:
    found = classify(sample.evidence(code=code, stderr=f"{said}\n"), patterns=RUNTIME_PATTERNS)
    assert found is not None
    assert found.code == expected


def test_a_library_that_the_shell_may_not_load_does_not_hide_what_ended_the_run() -> None:
    said = (
        'dlopen failed: library "libOpenCL.so" needed by "./a" is not accessible for the namespace "default"'
    )
    crashed = classify(
        sample.evidence(code=139, stderr=f"{said}\nSegmentation fault\n"), patterns=RUNTIME_PATTERNS
    )
    ended = classify(sample.evidence(code=1, stderr=f"{said}\n"), patterns=RUNTIME_PATTERNS)
    assert crashed is not None
    assert ended is not None
    assert (crashed.code, ended.code) == ("run.crashed", "run.backend_failed")


@pytest.mark.parametrize(
    ("code", "said", "expected"),
    [
        (1, "E 00:00:00.001 executorch:operator_registry.cpp:9] kernel 'aten::add.out' not found.", MISSING),
        (
            1,
            "E executorch:method.cpp:7] There are 2 operators missing from registration to Executor.",
            MISSING,
        ),
        (
            134,
            "F executorch:executor_runner.cpp:9] FileDataLoader::from() failed: 0x22",
            "variant.unreadable",
        ),
        (134, "[ERROR] [Qnn ExecuTorch]:  <E> Failed to load skel, error: 4000", NO_BACKEND),
        (1, "07-02 11:20:31.402 812 812 E QnnDsp  :  <E> Transport layer setup failed: 14001", NO_BACKEND),
        (1, "     0.0ms [ ERROR ] QnnDsp <E> DspTransport.openSession qnn_open failed, 0x8", NO_BACKEND),
        (134, "QnnDsp <E> Stub lib id mismatch: expected (v2.30.1), detected (v2.31.0)", NO_BACKEND),
        (134, "E executorch:QnnManager.cpp:3] Fail to configure Qnn device", NO_BACKEND),
        (134, "E executorch:QnnManager.cpp:3] Fail to configure Qnn context", "run.delegate_refused"),
        (1, "error_code=500; error_message=Target runtime is not available.", NO_BACKEND),
        (134, "E executorch:VulkanBackend.cpp:5] Exception raised from create_instance: x", NO_BACKEND),
        (134, "vkCreateComputePipelines( device_, cache, 1u, nullptr, &handle_) returned -3", NO_BACKEND),
        (
            134,
            "Exception raised from f at /e/vulkan/runtime/vk_api/M.cpp:9: vmaCreateBuffer(a) returned -2",
            NO_MEMORY,
        ),
        (134, "vkAllocateMemory(device_, &info) returned VK_ERROR_OUT_OF_DEVICE_MEMORY", NO_MEMORY),
        (134, "vkCreateDevice(handle, &info) returned VK_ERROR_EXTENSION_NOT_PRESENT", NO_BACKEND),
        (
            134,
            "  what():  Exception raised from get_shader_info at /e/backends/vulkan/runtime/vk_api/Shader"
            "Registry.cpp:54: (it != listings_.end()) is false! Could not find ShaderInfo with name x",
            "run.delegate_refused",
        ),
        (
            134,
            "Exception raised from init at /e/vulkan/runtime/vk_api/Runtime.cpp:9: no suitable device",
            NO_BACKEND,
        ),
        (134, "Shader conv2d_int8 not compatible with device. Missing support", "run.delegate_refused"),
        (1, "vkCreateComputePipelines failed -3", NO_BACKEND),
        (1, "vkAllocateMemory failed -2", NO_MEMORY),
        (1, "vkAllocateMemory failed -1000072003", NO_BACKEND),
        (1, "CL ERROR CODE : -4, info:clCreateBuffer", NO_MEMORY),
        (1, "CL ERROR CODE : -45, info:getKernel", NO_BACKEND),
        (
            134,
            "F executorch:executor_runner.cpp:9] Loading of method forward failed with status 0x14",
            MISSING,
        ),
        (1, "Failed to load method forward, error: 0x:20", "run.backend_missing"),
        (134, "Loading of method forward failed with status 0x21", NO_MEMORY),
        (134, "Loading of method forward failed with status 0x23", "variant.unreadable"),
        (134, "Loading of method forward failed with status 0x30", "run.delegate_refused"),
        (1, "Armnn Error: Some backend IDs are invalid: GpuAcc", "run.backend_missing"),
        (1, "ERROR: None of the preferred backends [GpuAcc ] are supported.", "run.backend_missing"),
        (
            1,
            "ERROR: Layer of type Softmax is not supported on any preferred backend [CpuAcc ]",
            "run.delegate_refused",
        ),
        (1, "Operator not supported. subgraph:0 operator:3 opcode_index:1 opcode:32 / CUSTOM", MISSING),
    ],
)
def test_runtimes_say_why_they_run_nothing(code: int, said: str, expected: str) -> None:
    found = classify(
        sample.evidence(code=code, stderr=f"something before\n{said}\nAborted\n"), patterns=RUNTIME_PATTERNS
    )
    assert found is not None
    assert (found.code, found.line) == (expected, said.strip())


def test_a_trap_is_a_crash() -> None:
    found = classify(sample.evidence(code=133, stderr="Trap\n"))
    assert found is not None
    assert (found.code, found.outcome) == ("run.crashed", FAILED)
    assert "SIGTRAP" in found.message


def test_a_linkers_warning_ends_where_its_line_does_whatever_ends_that() -> None:
    for end in ("\n", "\r\n", "\r"):
        said = f"WARNING: linker: a: unused DT entry{end}Could not run 'aten::add' with arguments from{end}"
        found = classify(sample.evidence(code=134, stderr=said))
        assert found is not None
        assert found.code == MISSING
