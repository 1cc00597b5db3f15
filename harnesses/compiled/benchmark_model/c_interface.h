// The part of LiteRT's C interface that this program calls.
//
// The wheel `ai-edge-litert` has the library libLiteRt.so, and no header. Names, arguments and layouts are those of
// litert/c in google-ai-edge/LiteRT, tried with version 2.3.0. Older ones create a model without an environment, and
// take options as objects instead of text.
#pragma once

#include <cstddef>
#include <cstdint>

extern "C" {

// 0 is success.
using LiteRtStatus = int;
using LiteRtParamIndex = size_t;

using LiteRtEnvironment = struct LiteRtEnvironmentT*;
using LiteRtModel = struct LiteRtModelT*;
using LiteRtSignature = struct LiteRtSignatureT*;
using LiteRtSubgraph = struct LiteRtSubgraphT*;
using LiteRtTensor = struct LiteRtTensorT*;
using LiteRtOptions = struct LiteRtOptionsT*;
using LiteRtOpaqueOptions = struct LiteRtOpaqueOptionsT*;
using LiteRtCompiledModel = struct LiteRtCompiledModelT*;
using LiteRtTensorBuffer = struct LiteRtTensorBufferT*;
using LiteRtTensorBufferRequirements = struct LiteRtTensorBufferRequirementsT*;
using LiteRtProfiler = struct LiteRtProfilerT*;

// litert_environment_options.h, litert_any.h.
enum LiteRtAnyType : int { kLiteRtAnyTypeInt = 2 };
struct LiteRtAny {
  LiteRtAnyType type;
  int64_t int_value;
};
enum LiteRtEnvOptionTag : int {
  // A set of accelerators that are looked for; the default is all.
  kLiteRtEnvOptionTagAutoRegisterAccelerators = 24,
};
struct LiteRtEnvOption {
  LiteRtEnvOptionTag tag;
  LiteRtAny value;
};
static_assert(sizeof(LiteRtEnvOption) == 24 && offsetof(LiteRtEnvOption, value) == 8);

// litert_common.h: a bit of a set.
constexpr int kLiteRtHwAcceleratorCpu = 1;

// litert_model_types.h, litert_layout.h.
enum LiteRtElementType : int {
  kLiteRtElementTypeFloat32 = 1,
  kLiteRtElementTypeInt32 = 2,
  kLiteRtElementTypeUInt8 = 3,
  kLiteRtElementTypeInt64 = 4,
  kLiteRtElementTypeBool = 6,
  kLiteRtElementTypeInt16 = 7,
  kLiteRtElementTypeInt8 = 9,
};
struct LiteRtRankedTensorType {
  LiteRtElementType element_type;
  uint32_t rank : 7;
  uint32_t has_strides : 1;
  // Negative where it is free.
  int32_t dimensions[8];
  uint32_t strides[8];
};
static_assert(sizeof(LiteRtRankedTensorType) == 72 && offsetof(LiteRtRankedTensorType, dimensions) == 8);

// litert_tensor_buffer_types.h.
enum LiteRtTensorBufferLockMode : int { kLiteRtTensorBufferLockModeRead = 0, kLiteRtTensorBufferLockModeWrite = 1 };

// litert_environment.h.
LiteRtStatus LiteRtCreateEnvironment(int option_count, const LiteRtEnvOption*, LiteRtEnvironment*);

// litert_model.h.
LiteRtStatus LiteRtCreateModelFromFile(LiteRtEnvironment, const char* path, LiteRtModel*);
LiteRtStatus LiteRtGetModelSignature(LiteRtModel, LiteRtParamIndex, LiteRtSignature*);
LiteRtStatus LiteRtGetSignatureSubgraph(LiteRtSignature, LiteRtSubgraph*);
LiteRtStatus LiteRtGetNumSubgraphOps(LiteRtSubgraph, LiteRtParamIndex* count);
LiteRtStatus LiteRtGetNumSignatureInputs(LiteRtSignature, LiteRtParamIndex* count);
LiteRtStatus LiteRtGetNumSignatureOutputs(LiteRtSignature, LiteRtParamIndex* count);
LiteRtStatus LiteRtGetSignatureInputTensorByIndex(LiteRtSignature, LiteRtParamIndex, LiteRtTensor*);
LiteRtStatus LiteRtGetSignatureOutputTensorByIndex(LiteRtSignature, LiteRtParamIndex, LiteRtTensor*);
LiteRtStatus LiteRtGetRankedTensorType(LiteRtTensor, LiteRtRankedTensorType*);

// litert_options.h, litert_opaque_options.h.
LiteRtStatus LiteRtCreateOptions(LiteRtOptions*);
void LiteRtDestroyOptions(LiteRtOptions);
LiteRtStatus LiteRtSetOptionsHardwareAccelerators(LiteRtOptions, int set);
// What is added is destroyed with the options.
LiteRtStatus LiteRtCreateOpaqueOptions(const char* group, void* text, void (*destroy)(void*), LiteRtOpaqueOptions*);
LiteRtStatus LiteRtAddOpaqueOptions(LiteRtOptions, LiteRtOpaqueOptions);

// litert_compiled_model.h.
LiteRtStatus LiteRtCreateCompiledModel(LiteRtEnvironment, LiteRtModel, LiteRtOptions, LiteRtCompiledModel*);
void LiteRtDestroyCompiledModel(LiteRtCompiledModel);
LiteRtStatus LiteRtGetCompiledModelInputBufferRequirements(LiteRtCompiledModel, LiteRtParamIndex signature,
                                                           LiteRtParamIndex, LiteRtTensorBufferRequirements*);
LiteRtStatus LiteRtGetCompiledModelOutputBufferRequirements(LiteRtCompiledModel, LiteRtParamIndex signature,
                                                            LiteRtParamIndex, LiteRtTensorBufferRequirements*);
LiteRtStatus LiteRtRunCompiledModel(LiteRtCompiledModel, LiteRtParamIndex signature, size_t input_count,
                                    LiteRtTensorBuffer* inputs, size_t output_count, LiteRtTensorBuffer* outputs);
LiteRtStatus LiteRtCompiledModelIsFullyAccelerated(LiteRtCompiledModel, bool*);
// It is the compiled model's, and null unless the runtime's option `enable_profiling` is on.
LiteRtStatus LiteRtCompiledModelGetProfiler(LiteRtCompiledModel, LiteRtProfiler*);

// litert_profiler.h.
LiteRtStatus LiteRtStartProfiler(LiteRtProfiler);
LiteRtStatus LiteRtStopProfiler(LiteRtProfiler);
// The caller frees the text.
LiteRtStatus LiteRtGetProfileSummary(LiteRtProfiler, LiteRtCompiledModel, const char** text);

// litert_tensor_buffer.h.
LiteRtStatus LiteRtCreateManagedTensorBufferFromRequirements(LiteRtEnvironment, const LiteRtRankedTensorType*,
                                                             LiteRtTensorBufferRequirements, LiteRtTensorBuffer*);
LiteRtStatus LiteRtGetTensorBufferPackedSize(LiteRtTensorBuffer, size_t* bytes);
LiteRtStatus LiteRtLockTensorBuffer(LiteRtTensorBuffer, void** data, LiteRtTensorBufferLockMode);
LiteRtStatus LiteRtUnlockTensorBuffer(LiteRtTensorBuffer);
void LiteRtDestroyTensorBuffer(LiteRtTensorBuffer);

}  // extern "C"
