"""Texts by which a failed program shows why it failed.

They come from Android's linker and shell (mksh, toybox), the C++ runtimes of gcc and clang, the loaders of
PyTorch, and from TensorFlow Lite, ExecuTorch, QNN, Arm NN, ONNX Runtime, ncnn, MNN, TVM and llama.cpp.

The first match decides, so the more specific patterns come first. Programs print megabytes: a pattern begins
with something rare, and repeats nothing without a limit, because it would take hours.
"""

import re
from dataclasses import dataclass

from farm.harness.failures.kinds import KINDS, FailureKind


@dataclass(frozen=True, slots=True, kw_only=True)
class FailurePattern:
    """A pattern, and the kind of failure that it shows."""

    pattern: re.Pattern[str]
    kind: FailureKind
    #: Programs also print it and go on: it decides only without another pattern or a signal.
    is_weak: bool = False


def _patterns(table: str) -> tuple[FailurePattern, ...]:
    r"""Read a table: the code of a kind, with a `?` before it for weak patterns, and a pattern in each line.

    Indented lines continue the pattern before them; a space at the end of a line is written `\x20`.
    """
    joined = re.sub(r"\n {2,}", "", table)
    rows = (line.split(maxsplit=1) for line in joined.splitlines() if line and not line.startswith("#"))
    return tuple(
        FailurePattern(
            pattern=re.compile(pattern), kind=KINDS[code.removeprefix("?")], is_weak=code.startswith("?")
        )
        for code, pattern in rows
    )


GENERIC_PATTERNS = _patterns(r"""
# The agent's own script, which is never a user's program.
run.start_cut_off         /runs/\d+/run\.sh\b.{0,80}(?:[Ss]yntax error|unexpected (?:EOF|end of file)
                          |unmatched|no closing quote)
# bzip2, lzip, xz, 7zip, gzip and compress files, which mksh identifies by two bytes; an error page has no
# ELF magic.
run.no_program            not executable: magic (?:425A|4C5A|FD37|377A|1F8B|1F9D)|bad ELF magic
run.no_program            is too small to be an ELF|file offset for the library .{0,300} >= file size:\x20
run.wrong_abi             not executable: \d+-bit ELF|Exec format error|is for EM_\w+ .{0,400}instead of EM_
run.wrong_abi             is \d+-bit instead of \d+-bit|\" not (?:32|64)-bit: \d
run.wrong_abi             has unexpected e_machine|not executable: magic
# A shell that read a program of another machine as a script.
run.wrong_abi             (?:\[\d{1,3}\]|: (?:line )?\d{1,3}): \W{0,3}ELF\W?[^\n:]{0,80}:\x20
                          (?:inaccessible or )?not found
# Programs that do not run at any address: up to Android 4.4 the only ones that run, since 5.0 refused.
run.wrong_layout          only (?:support )?position.independent executables|has unexpected e_type: 2\b
run.wrong_layout          cannot be smaller than system page size|TLS segment is underaligned
                          |CANNOT LINK EXECUTABLE.{0,300}(?:has text relocations|W ?\+ ?E load segments
                          |empty/missing DT_(?:GNU_)?HASH)
run.not_executable        CANNOT LINK EXECUTABLE.{0,300}couldn't map .{0,300}\x20
                          (?:Permission denied|Operation not permitted)
# Android up to 6, whose dlopen prints the same after words of its own.
run.cannot_link           CANNOT LINK EXECUTABLE|error while loading shared libraries|cannot locate symbol
                          |(?m:^)\S{0,60} {0,3}(?:\d{1,9} )?could not load\x20
                          (?:needed )?library [\"'][^\"'\n]{1,200}[\"'] (?:needed by|for)\x20
                          |version .GLIBC\w*_[\d.]{1,12}. not found
run.not_executable        can't execute: Permission denied
run.not_found             inaccessible or not found
variant.missing_operator  Following ops cannot be found|Could not run '[\w:.]+' with arguments from
variant.missing_operator  [Uu]nknown builtin op
                          |Could not find (?:any similar ops|schema for|an implementation|operator)
run.backend_missing       not linked with support for \w+ devices
                          |supported devices include .{0,400}however got
run.backend_missing       Vulkan backend is not available|Didn't find engine for operation
run.nnapi_missing         Failed to load libneuralnetworks
# A function that this Android's NNAPI does not have, or one that failed.
run.nnapi_refuses         enforce fail at nnapi_wrapper\.cpp:\d+\] (?:nnapi_\.|.{0,400}failed with error)
variant.format_missing    (?i:build hasn't enabled flatbuffer)
variant.too_new           Lite Interpreter version|maximum supported version for reading
# An operator that has gained arguments since.
variant.too_new           Expected at most \d{1,3} argument(?:s but found|\(s\) for operator)
# Classes that hold weights packed for a backend, or are its own operators.
run.backend_missing       torch\.classes\.(?:xnnpack|vulkan|metal|_nnapi)\.
# The lite interpreter's words for the state of such a class where the build does not have it.
run.backend_missing       Expected GenericDict but got Tuple
run.backend_missing       Unknown custom class type (?:xnnpack|vulkan|metal|_nnapi)\.
variant.missing_operator  Unknown custom class type \w
# Newer versions of torch write this for attributes that are None.
variant.too_new           Unknown type name 'NoneType'
variant.unreadable        PytorchStreamReader|failed finding central directory|Unknown type name
                          |Unrecognized data format
variant.unreadable        file not found: |errno \d{1,3} on fopen|inline_container\.cc|istream reader failed
variant.unreadable        open file failed, file path|model is not generated from the api _save_for_lite
# torch 1.3, for tensors that were saved on a GPU.
variant.unreadable        tensorTypeIdToBackend
variant.node_refused      xnnpack::\w{1,60} not available! Reason:\x20
variant.no_bundled_input  does not have bundled inputs|Model has only \d+ bundled inputs
# c10's flag library (caffe2's prints the same and goes on); gflags and Abseil; our own program.
run.unknown_flag          C10 flag: unrecognized commandline argument: (?P<flag>--?[\w-]{1,100})
run.unknown_flag          (?i:unknown command line flag) '(?P<flag>[\w-]{1,100})'
run.unknown_flag          \b(?P<flag>\w{1,100}) is not available: Python does not offer
run.bad_flags             Failed to parse command line flags|C10 flag:\x20
run.bad_flags             (?i:illegal value) '.{0,200}' specified for\x20
device.storage_full       No space left on device|INSUFFICIENT_STORAGE|[Nn]ot enough space|Disk quota exceeded
# The kernel's message about a process that it killed, which the process did not ask for.
run.killed                (?i:out of memory): Kill(?:ed)? process|oom_reaper: reaped process
run.out_of_memory         std::bad_alloc|can't allocate memory|not enough memory|Cannot allocate memory
                          |(?i:out of memory)|Scudo ERROR: .{0,80}NO MEMORY|OutOfMemoryError
                          |(?m:^)MemoryError\b
run.killed                (?:low ?memory ?killer|Low ?[Mm]emory ?[Kk]iller|\blmkd\b).{0,40}[Kk]ill
run.illegal_instruction   [Ss]ignal 4 \(SIGILL\)|(?m:^Illegal instruction)
# A shell's message about a program that it started.
run.killed                (?m:^)(?:Killed {0,9}(?:$|\n)
                          |(?:\[\d{1,3}\] ?[+-]?|\S{1,100}: line \d{1,6}:) {1,9}(?:\d{1,9} )?Killed\b)
""")

#: adb's own errors, where a program or a script calls adb. They are never the program's.
ADB_PATTERNS = _patterns(r"""
host.usb_denied           [Ii]nsufficient permissions for device|no permissions \(
# adb was called without a serial number where the host has several devices.
host.several_devices      (?:error|adb(?:\.exe)?): more than one (?:device|emulator)\b
device.unauthorized       (?:error|failed|adb(?:\.exe)?|feature set): device\x20
                          (?:unauthorized|still authorizing)\b
device.offline            (?:error|failed|adb(?:\.exe)?|feature set): device\x20
                          (?:offline\b|still connecting\b|'[^'\n]{1,100}' not found)
device.offline            (?:error|adb(?:\.exe)?|feature set): no devices(?:/emulators)? found
                          |(?m:^(?:adb(?:\.exe)?: )?error: device not found)
device.closed             (?m:^(?:adb(?:\.exe)?: )?error: closed[ \t]{0,9}$)|error: protocol fault \(
""")

_DEVICE_KINDS = (
    *("run.no_program", "run.wrong_abi", "run.wrong_layout", "run.cannot_link", "run.not_executable"),
    *("run.not_found", "device.storage_full", "run.out_of_memory", "run.killed"),
)
#: Failures that every program on a device can meet, whatever it runs.
DEVICE_PATTERNS = tuple(pattern for pattern in GENERIC_PATTERNS if pattern.kind.code in _DEVICE_KINDS)

_TFLITE = _patterns(r"""
run.unknown_flag          (?:Unconsumed cmdline flags|unrecognized commandline flag):
                          \s{1,9}(?P<flag>--?[\w-]{1,100})
run.bad_flags             Failed to parse flag\b
run.nnapi_refuses         (?:NN API returned error|\bResultCode:) ANEURALNETWORKS_(?!NO_ERROR)\w+
variant.missing_operator  Encountered unresolved custom op|Didn't find op for builtin opcode
                          |Op builtin_code out of range
variant.missing_operator  Regular TensorFlow ops are not supported by this interpreter
variant.missing_operator  Select TensorFlow op\(s\), .{0,200}not supported by this interpreter
run.backend_failed        Could not find the specified NNAPI accelerator
run.delegate_refused      Node number \d+ \((?:TfLite\w{1,60}|Dispatch)Delegate\w{0,10}\) failed to\x20
                          (?:prepare|invoke)
run.backend_failed        Failed to create a dispatch delegate kernel|No usable Dispatch runtime
run.backend_failed        Unsupported dispatch runtime version
                          |Failed to initialize (?:Dispatch API|QNN backend)
variant.node_refused      Node number \d+ \([^)\n]{1,100}\) failed to (?:prepare|invoke)
run.not_fully_delegated   Disallowed CPU fallback detected|not fully accelerated but
run.not_fully_delegated   Some ops are not accelerated
run.backend_failed        Failed to initialize WebGPU
# OpenGL is tried in its place.
?run.backend_failed       Can not open OpenCL library|Failed to build program executable
?run.backend_failed       is not accessible for the namespace|dlopen failed:\x20
?run.backend_failed       Failed to fetch Hexagon NN version
?run.backend_failed       Unable to load external delegate from
run.bad_flags             Please specify the name of your TF Lite input file
# Older versions print it and go on.
?variant.no_input         must match the number of items in --input_layer
run.backend_failed        \[(?i:qnn) Delegate\] Failed to |No Snapdragon SOC detected
run.backend_failed        QNN_(?:BACKEND_ERROR_CANNOT_INITIALIZE|COMMON_ERROR_PLATFORM_NOT_SUPPORTED
                          |DEVICE_ERROR_\w{1,60})
# The connection to Qualcomm's DSP, tried again in an unsigned process.
?run.backend_failed       \bremote_handle(?:64)?_open(?:_domain)? failed|untrusted app trying to
run.backend_failed        NeuronApi error: unable to open library
run.delegate_refused      Failed to apply \w{1,40} delegate|[Dd]elegate could not be applied
# llama.cpp; it names the option, too, whose value is a device that is not there.
run.backend_failed        error: invalid device: \S
run.bad_flags             error: invalid parameter for argument: -
variant.unreadable        error: failed to (?:load model|create context with model) '
variant.unreadable        Failed to (?:mmap|load) model|not a valid [Ff]latbuffer|has model identifier
variant.unreadable        Model file not found
variant.too_new           schema version \d{1,4} not equal to supported version
variant.no_input          require the input (?:shape|tensor)|is missing a shape
# ONNX Runtime GenAI's model_benchmark.
run.unknown_flag          Error: Unknown option: (?P<flag>--?[\w-]{1,100})
# litert-benchmark, by Python's argparse, and its own check.
run.unknown_flag          : error: unrecognized arguments: (?P<flag>--?[\w-]{1,100})
run.bad_flags             : error: (?:argument --?\w{1,100}|the following arguments are required):\x20
                          |Signature \"[^\"\n]{0,200}\" not found
""")

_EXECUTORCH = _patterns(r"""
run.backend_missing       Backend \w{1,100} is not (?:registered|available)
variant.missing_operator  Missing operator: |don't have corresponding operator registered
                          |kernel '[\w:.]{1,100}' not found|operators missing from registration
variant.too_new           Program identifier 'ET\d\d' != expected|Program version .{0,60}not supported
variant.unreadable        Failed to (?:load|parse) (?:model|program)|loading program: 0x
variant.unreadable        Program identifier '.{0,8}' != expected
run.out_of_memory         Memory allocation failed|MemoryAllocationFailed
run.backend_failed        Failed to create (?:device|backend)_handle for Backend ID
variant.unreadable        file_data_loader\.cpp:\d{1,5}\] Failed to open|DataLoader::from\(\) failed
run.backend_failed        (?:dlopen failed: library|Cannot [Oo]pen QNN library) \S{0,200}libQnn
# QNN, with or without the name of its part, and tools that use it.
run.backend_failed        <E> (?:Failed to load skel|Transport layer setup failed
                          |DspTransport\.openSession \w+ failed|Failed to create transport for device
                          |Stub lib id mismatch)
run.backend_failed        Fail(?:ed)? to configure Qnn (?:backend|device)|Device Creation failure
run.delegate_refused      Can't (?:find|create) context from binary|Failed to create context from binary
                          |Request feature \w{1,40} with value \d{1,9} unsupported
                          |Fail(?:ed)? to configure Qnn (?:context|graph)
run.backend_failed        Init failed for backend \w{1,100}
run.backend_failed        Exception raised from create_instance|VK_ERROR_INCOMPATIBLE_DRIVER
run.out_of_memory         v(?:k|ma)[A-Z]\w{3,40}\([^\n]{0,300}\) returned (?:-[12]\b|VK_ERROR_OUT_OF_)
run.backend_failed        v(?:k|ma)[A-Z]\w{3,40}\([^\n]{0,300}\) returned (?:-\d|VK_ERROR_)
run.backend_failed        Exception raised from \w{1,80} at [^\n:]{0,200}
                          vk_api/(?:Runtime|Adapter|Device|Fence)\.cpp
                          |VK_ERROR_DEVICE_LOST|\bErrorDeviceLost\b
run.delegate_refused      Exception raised from \w{1,80} at [^\n:]{0,200}vulkan/runtime/
                          |Shader \w{1,100} not compatible with device
# SNPE.
run.backend_failed        Target runtime is not available|selected runtime is not available
# ExecuTorch's error numbers are the same in all versions; small builds print nothing else.
variant.missing_operator  method \w{1,60}(?: failed with (?:status|error)|, error:) 0x:?14\b
run.backend_missing       method \w{1,60}(?: failed with (?:status|error)|, error:) 0x:?20\b
run.out_of_memory         method \w{1,60}(?: failed with (?:status|error)|, error:) 0x:?(?:21|31)\b
variant.unreadable        method \w{1,60}(?: failed with (?:status|error)|, error:) 0x:?23\b
run.delegate_refused      method \w{1,60}(?: failed with (?:status|error)|, error:) 0x:?30\b
""")

_ARMNN = _patterns(r"""
run.backend_missing       Some backend IDs are invalid|None of the preferred backends \[
                          |No known backend specified
run.backend_failed        Could not initialize the CL runtime
run.delegate_refused      Failed to assign a backend to each layer
                          |\bTfLiteArmnn\w{0,9}Delegate: (?:Unable to\x20
                          |Exception \([^\n]{0,300}\) caught from |Network could not be loaded)
run.delegate_refused      Layer of type \w{1,60} is not supported on any preferred backend
variant.missing_operator  Operator not supported\. subgraph:\d
""")

#: Programs that scripts call: their option errors are not the program's.
_SHELL_COMMANDS = (
    "awk cat chmod cp cut date dd df env find getprop grep head kill ln logcat ls mkdir mktemp mv nice nohup"
    " ps renice rm sed seq setprop setsid sh sleep sort stat su tail tar taskset tee time timeout top touch"
    " tr uname wc which xargs"
)
_OF_THE_SHELL = "|".join(rf"[\w./]{{0,60}}\b{name}: " for name in _SHELL_COMMANDS.split())

_ONNXRUNTIME = _patterns(
    r"""
variant.missing_operator  Could not find an implementation for|is not a registered function/op
                          |No Op registered for\x20
# ONNX Runtime's smaller builds; formats up to the fourth are older than all programs of today.
variant.format_missing    ONNX format model is not supported in this build
variant.unreadable        ORT format model version \[[1-4]\] is not supported
variant.too_new           ORT format model version \[\d{1,9}\] is not supported
run.backend_missing       (?:is|are) not (?:supported|enabled) in this build|(?i:unknown provider)
run.backend_missing       backend is not included in perf test runner
variant.too_new           Unsupported model IR version|ONNX Runtime only \*?guarantees\*? support for models
variant.unreadable        Protobuf parsing failed|Load model from .{0,300} failed
run.backend_failed        QNN SetupBackend failed|Failed to get a WebGPU (?:adapter|device)
run.not_fully_delegated   fallback to CPU EP has been explicitly disabled
run.nnapi_refuses         model cannot run using (?:the )?current set of target devices
run.delegate_refused      was inserted using the \w{1,10} format as requested by \w{1,60}, but was not
run.delegate_refused      (?:[Ee]xception[^\n]{0,80}|what\(\)|create session): {1,3}
                          (?:model_builder|\w{0,30}op_builder\w{0,30})\.cc:\d
run.delegate_refused      (?i:failed to (?:finalize|compose) qnn graph)
run.out_of_memory         Failed to allocate memory for requested buffer
                          |Non-zero status code returned while running [^\n]{0,400}:\x20
                          (?:std::bad_alloc|bad allocation)
run.delegate_refused      Non-zero status code returned while running (?:QNN|Nnapi|NNAPI|CoreML)\w{0,100} node
variant.node_refused      Non-zero status code returned while running \w{1,100} node
# getopt, with which older versions read their flags.
?run.unknown_flag         (?m:^)(?!OF_THE_SHELL).{0,200}
                          (?:invalid|unknown|unrecognized) option -- '?(?P<flag>[\w-]{1,100})
# Weights in a second file, which is missing.
variant.unreadable        Deserialize tensor .{0,300}(?:failed|error)|model_path must not be empty
                          |filesystem error: [^\n\[]{0,80}: No such file or directory \[
variant.unreadable        This is an invalid model|: INVALID_GRAPH :
variant.no_input          Missing Input: |Invalid (?:Feed )?Input Name|Got invalid dimensions for input
                          |Invalid rank for input
variant.no_input          [Tt]here is no test data|test_data_set|no input data
""".replace("OF_THE_SHELL", _OF_THE_SHELL)
)

_NCNN_MNN_TVM = _patterns(r"""
variant.missing_operator  layer [\w.]{1,100} not exists or registered
variant.too_new           param is too old, please regenerate
run.backend_failed        no vulkan device|invalid gpu[_ ]device|vkCreateInstance failed
run.out_of_memory         vkAllocateMemory failed -[12]\b|VK_ERROR_OUT_OF_(?:DEVICE|HOST)_MEMORY
                          |CL_OUT_OF_HOST_MEMORY|CL ERROR CODE : -[46]\b
run.backend_failed        vk(?!Get)[A-Z]\w{2,60} failed
run.backend_failed        Build program failed, err|\bERROR CODE : -(?!1001\b)
# TVM, whose libraries are of one CPU; and its check of what the network is called with.
variant.unreadable        Failed to load dynamic shared library
variant.no_input          match_cast error|expect Tensor with \w{1,20}\x20
                          |Invoking function \w{1,60} expects \d{1,3} arguments
variant.unreadable        network graph not ready
?variant.unreadable       fopen \S{1,300} failed
variant.missing_operator  Don't support type \[?\w{1,60}|Not support \w{1,60} op
variant.unreadable        Invalid (?:MNN )?[Mm]odel|[Cc]reate (?:[Nn]et|[Ii]nterpreter) (?:failed|error)
""")

_ANY_RUNTIME = _patterns(r"""
# LiteRT's last line, whatever the cause was.
run.delegate_refused      Failed to (?:compile model|create (?i:compiled ?model))\b
?run.permission_denied    [Pp]ermission denied|Read-only file system
                          |\bavc: {1,3}denied {1,3}\{(?![^\n]{0,800}permissive=1)
""")

#: Patterns of every runtime that has an adapter, then those of programs and devices in general.
RUNTIME_PATTERNS = (
    *(*_TFLITE, *_EXECUTORCH, *_ARMNN, *_ONNXRUNTIME, *_NCNN_MNN_TVM),
    *(*GENERIC_PATTERNS, *_ANY_RUNTIME),
)

#: A program's own words on its end; TorchScript prints the error after two tracebacks.
LAST_LINE_PATTERNS = (
    # Also after the prefix of a logger.
    re.compile(r"(?:^|: )RuntimeError: ", re.MULTILINE),
    re.compile(r"what\(\):|uncaught exception|assertion .{0,400} failed|FATAL EXCEPTION|Abort message: "),
    re.compile(r"Scudo ERROR: |\bFORTIFY: |AddressSanitizer: |(?:smashing|overflow) detected"),
    re.compile(r"Segmentation fault|Aborted|Fatal signal \d+|\bsignal \d+ \(SIG"),
)
#: Messages of a crash, whatever exit code the surrounding shell made of it.
CRASH = re.compile(
    r"Segmentation fault|Fatal signal \d+|uncaught exception|terminate called|FATAL EXCEPTION|\bAborted\b"
    r"|\bsignal \d+ \(SIG[A-Z]+\)|AddressSanitizer: |Abort message: |Scudo ERROR: |\bFORTIFY: "
    r"|(?:stack smashing|buffer overflow) detected|double free or corruption|heap corruption detected"
    r"|^(?:Bus error|Memory fault|Bad system call|Floating point exception|Trace/breakpoint trap)\b",
    re.MULTILINE,
)
