"""Failure patterns of TensorFlow Lite, ExecuTorch, QNN, Arm NN, ONNX Runtime, ncnn and MNN.

As in `generic_patterns`: the first match decides, and a pattern repeats nothing without a limit.
"""

from farm.harness.failures import kinds
from farm.harness.failures.failure_pattern import FailurePattern, failure_pattern
from farm.harness.failures.generic_patterns import GENERIC_PATTERNS

_TFLITE: tuple[FailurePattern, ...] = (
    failure_pattern(
        r"(?:Unconsumed cmdline flags|unrecognized commandline flag):\s{1,9}(?P<flag>--?[\w-]{1,100})",
        kinds.UNKNOWN_FLAG,
    ),
    failure_pattern(r"Failed to parse flag\b", kinds.BAD_FLAGS),
    failure_pattern(
        r"(?:NN API returned error|\bResultCode:) ANEURALNETWORKS_(?!NO_ERROR)\w+", kinds.NNAPI_REFUSES
    ),
    failure_pattern(
        r"Encountered unresolved custom op|Didn't find op for builtin opcode|Op builtin_code out of range",
        kinds.MISSING_OPERATOR,
    ),
    failure_pattern(r"Regular TensorFlow ops are not supported by this interpreter", kinds.MISSING_OPERATOR),
    failure_pattern(
        r"Select TensorFlow op\(s\), .{0,200}not supported by this interpreter", kinds.MISSING_OPERATOR
    ),
    failure_pattern(r"Could not find the specified NNAPI accelerator", kinds.BACKEND_FAILED),
    failure_pattern(
        r"Node number \d+ \((?:TfLite\w{1,60}|Dispatch)Delegate\w{0,10}\) failed to (?:prepare|invoke)",
        kinds.DELEGATE_REFUSED,
    ),
    failure_pattern(
        r"Failed to create a dispatch delegate kernel|No usable Dispatch runtime", kinds.BACKEND_FAILED
    ),
    failure_pattern(
        r"Unsupported dispatch runtime version|Failed to initialize (?:Dispatch API|QNN backend)",
        kinds.BACKEND_FAILED,
    ),
    failure_pattern(r"Node number \d+ \([^)\n]{1,100}\) failed to (?:prepare|invoke)", kinds.NODE_REFUSED),
    failure_pattern(r"Disallowed CPU fallback detected|not fully accelerated but", kinds.NOT_ALL_DELEGATED),
    failure_pattern(r"Some ops are not accelerated", kinds.NOT_ALL_DELEGATED),
    failure_pattern(r"Failed to initialize WebGPU", kinds.BACKEND_FAILED),
    # OpenGL is tried in its place.
    failure_pattern(
        r"Can not open OpenCL library|Failed to build program executable", kinds.BACKEND_FAILED, is_weak=True
    ),
    failure_pattern(
        r"is not accessible for the namespace|dlopen failed: ", kinds.BACKEND_FAILED, is_weak=True
    ),
    failure_pattern(r"Failed to fetch Hexagon NN version", kinds.BACKEND_FAILED, is_weak=True),
    failure_pattern(r"Unable to load external delegate from", kinds.BACKEND_FAILED, is_weak=True),
    failure_pattern(r"Please specify the name of your TF Lite input file", kinds.BAD_FLAGS),
    # Older versions print it and go on.
    failure_pattern(r"must match the number of items in --input_layer", kinds.NO_INPUT, is_weak=True),
    failure_pattern(r"\[(?i:qnn) Delegate\] Failed to |No Snapdragon SOC detected", kinds.BACKEND_FAILED),
    failure_pattern(
        r"QNN_(?:BACKEND_ERROR_CANNOT_INITIALIZE|COMMON_ERROR_PLATFORM_NOT_SUPPORTED|DEVICE_ERROR_\w{1,60})",
        kinds.BACKEND_FAILED,
    ),
    # The connection to Qualcomm's DSP, tried again in an unsigned process.
    failure_pattern(
        r"\bremote_handle(?:64)?_open(?:_domain)? failed|untrusted app trying to",
        kinds.BACKEND_FAILED,
        is_weak=True,
    ),
    failure_pattern(r"NeuronApi error: unable to open library", kinds.BACKEND_FAILED),
    failure_pattern(
        r"Failed to apply \w{1,40} delegate|[Dd]elegate could not be applied", kinds.DELEGATE_REFUSED
    ),
    failure_pattern(
        r"Failed to (?:mmap|load) model|not a valid [Ff]latbuffer|has model identifier", kinds.UNREADABLE
    ),
    failure_pattern(r"Model file not found", kinds.UNREADABLE),
    failure_pattern(r"schema version \d{1,4} not equal to supported version", kinds.TOO_NEW),
    failure_pattern(r"require the input (?:shape|tensor)|is missing a shape", kinds.NO_INPUT),
    # litert-benchmark, by Python's argparse, and its own check.
    failure_pattern(r": error: unrecognized arguments: (?P<flag>--?[\w-]{1,100})", kinds.UNKNOWN_FLAG),
    failure_pattern(
        r": error: (?:argument --?\w{1,100}|the following arguments are required): "
        r"|Signature \"[^\"\n]{0,200}\" not found",
        kinds.BAD_FLAGS,
    ),
)

#: Programs that scripts call: their option errors are not the program's.
_OF_THE_SHELL = "|".join(
    rf"[\w./]{{0,60}}\b{name}: "
    for name in (
        *("awk", "cat", "chmod", "cp", "cut", "date", "dd", "df", "env", "find", "getprop", "grep", "head"),
        *("kill", "ln", "logcat", "ls", "mkdir", "mktemp", "mv", "nice", "nohup", "ps", "renice", "rm"),
        *("sed", "seq", "setprop", "setsid", "sh", "sleep", "sort", "stat", "su", "tail", "tar", "taskset"),
        *("tee", "time", "timeout", "top", "touch", "tr", "uname", "wc", "which", "xargs"),
    )
)
#: With the number of an error after it.
_METHOD = r"method \w{1,60}(?: failed with (?:status|error)|, error:) 0x:?"

_EXECUTORCH: tuple[FailurePattern, ...] = (
    failure_pattern(r"Backend \w{1,100} is not (?:registered|available)", kinds.MISSING_BACKEND),
    failure_pattern(
        r"Missing operator: |don't have corresponding operator registered"
        r"|kernel '[\w:.]{1,100}' not found|operators missing from registration",
        kinds.MISSING_OPERATOR,
    ),
    failure_pattern(
        r"Program identifier 'ET\d\d' != expected|Program version .{0,60}not supported", kinds.TOO_NEW
    ),
    failure_pattern(r"Failed to (?:load|parse) (?:model|program)|loading program: 0x", kinds.UNREADABLE),
    failure_pattern(r"Program identifier '.{0,8}' != expected", kinds.UNREADABLE),
    failure_pattern(r"Memory allocation failed|MemoryAllocationFailed", kinds.OUT_OF_MEMORY),
    failure_pattern(r"Failed to create (?:device|backend)_handle for Backend ID", kinds.BACKEND_FAILED),
    failure_pattern(
        r"file_data_loader\.cpp:\d{1,5}\] Failed to open|DataLoader::from\(\) failed", kinds.UNREADABLE
    ),
    failure_pattern(
        r"(?:dlopen failed: library|Cannot [Oo]pen QNN library) \S{0,200}libQnn", kinds.BACKEND_FAILED
    ),
    # QNN, with or without the name of its part, and tools that use it.
    failure_pattern(
        r"<E> (?:Failed to load skel|Transport layer setup failed|DspTransport\.openSession \w+ failed"
        r"|Failed to create transport for device|Stub lib id mismatch)",
        kinds.BACKEND_FAILED,
    ),
    failure_pattern(
        r"Fail(?:ed)? to configure Qnn (?:backend|device)|Device Creation failure", kinds.BACKEND_FAILED
    ),
    failure_pattern(
        r"Can't (?:find|create) context from binary|Failed to create context from binary"
        r"|Request feature \w{1,40} with value \d{1,9} unsupported"
        r"|Fail(?:ed)? to configure Qnn (?:context|graph)",
        kinds.DELEGATE_REFUSED,
    ),
    failure_pattern(r"Init failed for backend \w{1,100}", kinds.BACKEND_FAILED),
    failure_pattern(
        r"Exception raised from create_instance|VK_ERROR_INCOMPATIBLE_DRIVER", kinds.BACKEND_FAILED
    ),
    failure_pattern(
        r"v(?:k|ma)[A-Z]\w{3,40}\([^\n]{0,300}\) returned (?:-[12]\b|VK_ERROR_OUT_OF_)",
        kinds.OUT_OF_MEMORY,
    ),
    failure_pattern(
        r"v(?:k|ma)[A-Z]\w{3,40}\([^\n]{0,300}\) returned (?:-\d|VK_ERROR_)", kinds.BACKEND_FAILED
    ),
    failure_pattern(
        r"Exception raised from \w{1,80} at [^\n:]{0,200}vk_api/(?:Runtime|Adapter|Device|Fence)\.cpp"
        r"|VK_ERROR_DEVICE_LOST|\bErrorDeviceLost\b",
        kinds.BACKEND_FAILED,
    ),
    failure_pattern(
        r"Exception raised from \w{1,80} at [^\n:]{0,200}vulkan/runtime/"
        r"|Shader \w{1,100} not compatible with device",
        kinds.DELEGATE_REFUSED,
    ),
    # SNPE.
    failure_pattern(
        r"Target runtime is not available|selected runtime is not available", kinds.BACKEND_FAILED
    ),
    # ExecuTorch's error numbers are the same in all versions; small builds print nothing else.
    failure_pattern(_METHOD + r"14\b", kinds.MISSING_OPERATOR),
    failure_pattern(_METHOD + r"20\b", kinds.MISSING_BACKEND),
    failure_pattern(_METHOD + r"(?:21|31)\b", kinds.OUT_OF_MEMORY),
    failure_pattern(_METHOD + r"23\b", kinds.UNREADABLE),
    failure_pattern(_METHOD + r"30\b", kinds.DELEGATE_REFUSED),
)

_ARMNN: tuple[FailurePattern, ...] = (
    failure_pattern(
        r"Some backend IDs are invalid|None of the preferred backends \[|No known backend specified",
        kinds.MISSING_BACKEND,
    ),
    failure_pattern(r"Could not initialize the CL runtime", kinds.BACKEND_FAILED),
    failure_pattern(
        r"Failed to assign a backend to each layer|\bTfLiteArmnn\w{0,9}Delegate: (?:Unable to "
        r"|Exception \([^\n]{0,300}\) caught from |Network could not be loaded)",
        kinds.DELEGATE_REFUSED,
    ),
    failure_pattern(
        r"Layer of type \w{1,60} is not supported on any preferred backend", kinds.DELEGATE_REFUSED
    ),
    failure_pattern(r"Operator not supported\. subgraph:\d", kinds.MISSING_OPERATOR),
)

_ORT: tuple[FailurePattern, ...] = (
    failure_pattern(
        r"Could not find an implementation for|is not a registered function/op|No Op registered for ",
        kinds.MISSING_OPERATOR,
    ),
    # ONNX Runtime's smaller builds; formats up to the fourth are older than all programs of today.
    failure_pattern(r"ONNX format model is not supported in this build", kinds.NO_FLATBUFFER),
    failure_pattern(r"ORT format model version \[[1-4]\] is not supported", kinds.UNREADABLE),
    failure_pattern(r"ORT format model version \[\d{1,9}\] is not supported", kinds.TOO_NEW),
    failure_pattern(
        r"(?:is|are) not (?:supported|enabled) in this build|(?i:unknown provider)", kinds.MISSING_BACKEND
    ),
    failure_pattern(r"backend is not included in perf test runner", kinds.MISSING_BACKEND),
    failure_pattern(
        r"Unsupported model IR version|ONNX Runtime only \*?guarantees\*? support for models", kinds.TOO_NEW
    ),
    failure_pattern(r"Protobuf parsing failed|Load model from .{0,300} failed", kinds.UNREADABLE),
    failure_pattern(
        r"QNN SetupBackend failed|Failed to get a WebGPU (?:adapter|device)", kinds.BACKEND_FAILED
    ),
    failure_pattern(r"fallback to CPU EP has been explicitly disabled", kinds.NOT_ALL_DELEGATED),
    failure_pattern(r"model cannot run using (?:the )?current set of target devices", kinds.NNAPI_REFUSES),
    failure_pattern(
        r"was inserted using the \w{1,10} format as requested by \w{1,60}, but was not",
        kinds.DELEGATE_REFUSED,
    ),
    failure_pattern(
        r"(?:[Ee]xception[^\n]{0,80}|what\(\)|create session): {1,3}"
        r"(?:model_builder|\w{0,30}op_builder\w{0,30})\.cc:\d",
        kinds.DELEGATE_REFUSED,
    ),
    failure_pattern(r"(?i:failed to (?:finalize|compose) qnn graph)", kinds.DELEGATE_REFUSED),
    failure_pattern(
        r"Failed to allocate memory for requested buffer|Non-zero status code returned while running "
        r"[^\n]{0,400}: (?:std::bad_alloc|bad allocation)",
        kinds.OUT_OF_MEMORY,
    ),
    failure_pattern(
        r"Non-zero status code returned while running (?:QNN|Nnapi|NNAPI|CoreML)\w{0,100} node",
        kinds.DELEGATE_REFUSED,
    ),
    failure_pattern(r"Non-zero status code returned while running \w{1,100} node", kinds.NODE_REFUSED),
    # getopt, with which older versions read their flags.
    failure_pattern(
        rf"(?m:^)(?!{_OF_THE_SHELL}).{{0,200}}(?:invalid|unknown|unrecognized) option -- '?"
        r"(?P<flag>[\w-]{1,100})",
        kinds.UNKNOWN_FLAG,
        is_weak=True,
    ),
    # Weights in a second file, which is missing.
    failure_pattern(
        r"Deserialize tensor .{0,300}(?:failed|error)|model_path must not be empty"
        r"|filesystem error: [^\n\[]{0,80}: No such file or directory \[",
        kinds.UNREADABLE,
    ),
    failure_pattern(r"This is an invalid model|: INVALID_GRAPH :", kinds.UNREADABLE),
    failure_pattern(
        r"Missing Input: |Invalid (?:Feed )?Input Name|Got invalid dimensions for input"
        r"|Invalid rank for input",
        kinds.NO_INPUT,
    ),
    failure_pattern(r"[Tt]here is no test data|test_data_set|no input data", kinds.NO_INPUT),
)

_NCNN_MNN: tuple[FailurePattern, ...] = (
    failure_pattern(r"layer [\w.]{1,100} not exists or registered", kinds.MISSING_OPERATOR),
    failure_pattern(r"param is too old, please regenerate", kinds.TOO_NEW),
    failure_pattern(r"no vulkan device|invalid gpu[_ ]device|vkCreateInstance failed", kinds.BACKEND_FAILED),
    failure_pattern(
        r"vkAllocateMemory failed -[12]\b|VK_ERROR_OUT_OF_(?:DEVICE|HOST)_MEMORY|CL_OUT_OF_HOST_MEMORY"
        r"|CL ERROR CODE : -[46]\b",
        kinds.OUT_OF_MEMORY,
    ),
    failure_pattern(r"vk(?!Get)[A-Z]\w{2,60} failed", kinds.BACKEND_FAILED),
    failure_pattern(r"Build program failed, err|\bERROR CODE : -(?!1001\b)", kinds.BACKEND_FAILED),
    failure_pattern(r"network graph not ready", kinds.UNREADABLE),
    failure_pattern(r"fopen \S{1,300} failed", kinds.UNREADABLE, is_weak=True),
    failure_pattern(r"Don't support type \[?\w{1,60}|Not support \w{1,60} op", kinds.MISSING_OPERATOR),
    failure_pattern(
        r"Invalid (?:MNN )?[Mm]odel|[Cc]reate (?:[Nn]et|[Ii]nterpreter) (?:failed|error)", kinds.UNREADABLE
    ),
)

#: Patterns of every runtime that has an adapter, then those of programs and devices in general.
RUNTIME_PATTERNS: tuple[FailurePattern, ...] = (
    *_TFLITE,
    *_EXECUTORCH,
    *_ARMNN,
    *_ORT,
    *_NCNN_MNN,
    *GENERIC_PATTERNS,
    # LiteRT's last line, whatever the cause was.
    failure_pattern(r"Failed to (?:compile model|create (?i:compiled ?model))\b", kinds.DELEGATE_REFUSED),
    failure_pattern(
        r"[Pp]ermission denied|Read-only file system"
        r"|\bavc: {1,3}denied {1,3}\{(?![^\n]{0,800}permissive=1)",
        kinds.DENIED,
        is_weak=True,
    ),
)
