"""Flags and backends of TensorFlow Lite's `benchmark_model`."""

from collections.abc import Mapping
from types import MappingProxyType

from farm.core.base.setting_values import SettingValue
from farm.harness.base.options import Flag

FLAGS: Mapping[str, Flag] = MappingProxyType(
    {
        "num_threads": Flag(default=1, help="threads of the CPU; -1 leaves it to the program", minimum=-1),
        "num_runs": Flag(default=50, help="timed inferences at least", minimum=1),
        "min_secs": Flag(default=1.0, help="and for at least so long, seconds"),
        "max_secs": Flag(default=150.0, help="ended after so long, seconds, whatever their number"),
        "warmup_runs": Flag(default=1, help="inferences before the clock counts, at least", minimum=0),
        "warmup_min_secs": Flag(default=0.5, help="and for at least so long, seconds"),
        "run_delay": Flag(default=-1.0, help="seconds between two inferences; -1 for none"),
        "input_layer": Flag(default="", help="names of inputs, by comma, where the tool cannot detect them"),
        "input_layer_shape": Flag(default="", help="their shapes: 1,224,224,3; several by :"),
        "input_layer_value_range": Flag(
            default="", help="values to fill them with: input,0,255; several by :"
        ),
        "signature_to_run_for": Flag(default="", help="which signature of the model"),
        "allow_fp16": Flag(default=False, help="float32 may be computed as float16"),
        "require_full_delegation": Flag(default=False, help="fail where any operator is left to the CPU"),
        "max_delegated_partitions": Flag(
            default=0, help="at most this many; 0: the delegate decides", minimum=0
        ),
        "min_nodes_per_partition": Flag(default=0, help="0: the delegate decides", minimum=0),
        "gpu_precision_loss_allowed": Flag(default=True, help="gpu: compute in float16"),
        "gpu_experimental_enable_quant": Flag(default=True, help="gpu: take quantized models"),
        "gpu_inference_for_sustained_speed": Flag(default=False, help="gpu: prefer sustained speed"),
        "gpu_backend": Flag(default="", help="gpu: cl or gl; empty: OpenCL, else OpenGL"),
        "nnapi_accelerator_name": Flag(default="", help="nnapi: which driver, by its name on the device"),
        "nnapi_execution_preference": Flag(
            default="", help="nnapi: fast_single_answer, sustained_speed, low_power or undefined"
        ),
        "nnapi_execution_priority": Flag(default="", help="nnapi: default, low, medium or high (Android 11)"),
        "nnapi_allow_fp16": Flag(default=False, help="nnapi: compute in float16"),
        "nnapi_allow_dynamic_dimensions": Flag(default=False, help="nnapi: take models of dynamic size"),
        "nnapi_use_burst_mode": Flag(default=False, help="nnapi: burst mode"),
        "disable_nnapi_cpu": Flag(default=True, help="nnapi: nnapi-reference may not run anything"),
        "hexagon_lib_path": Flag(
            default="", help="hexagon: folder of its libraries; empty: the run's folder"
        ),
        "external_delegate_path": Flag(default="", help="external, qnn: the delegate's library"),
        "external_delegate_options": Flag(default="", help="external, qnn: its options, key:value by ;"),
        "use_xnnpack": Flag(default=False, help="what the backend xnnpack adds; name that instead"),
        "xnnpack_force_fp16": Flag(default=False, help="xnnpack: compute in float16"),
        "enable_op_profiling": Flag(
            default=False, help="times by operator, in a further pass that is not counted"
        ),
        "report_peak_memory_footprint": Flag(
            default=False, help="peak of memory, in a further pass that is not counted"
        ),
    }
)

#: The tool's defaults. A flag is passed only where it differs from them; counts and threads are always
#: passed.
TOOL_DEFAULTS: Mapping[str, SettingValue] = MappingProxyType(
    {
        name: flag.default
        for name, flag in FLAGS.items()
        if name not in ("num_threads", "num_runs", "warmup_runs")
    }
)

#: Flags that would slow the measurement, so each has a separate pass.
PASS_FLAGS: Mapping[str, str] = MappingProxyType(
    {"enable_op_profiling": "op_profile", "report_peak_memory_footprint": "memory"}
)
#: Iterations of a pass: of a flag that is given twice one counts, and which one differs by version.
SHORT_RUN: Mapping[str, SettingValue] = MappingProxyType({"num_runs": 10, "min_secs": 0.1})

#: `cpu` is the tool's own kernels: by default newer versions use XNNPACK wherever they can.
ARGUMENTS_BY_BACKEND: Mapping[str, Mapping[str, str]] = MappingProxyType(
    {
        "cpu": {"use_xnnpack": "false"},
        "xnnpack": {"use_xnnpack": "true"},
        "gpu": {"use_gpu": "true"},
        "nnapi": {"use_nnapi": "true"},
        "hexagon": {"use_hexagon": "true", "hexagon_lib_path": "${work}"},
        "qnn": {
            "external_delegate_path": "libQnnTFLiteDelegate.so",
            "external_delegate_options": "backend_type:htp",
        },
        "external": {},
    }
)
