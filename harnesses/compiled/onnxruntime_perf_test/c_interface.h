// The part of ONNX Runtime's C interface that this program calls.
//
// The wheel `onnxruntime` has the library, and no header. The interface is a table of functions, to which each version
// adds at the end: places, names and arguments of those here are the same since version 1.5.
#pragma once

#include <cstddef>
#include <cstdint>

extern "C" {

struct OrtStatus;
struct OrtEnv;
struct OrtSession;
struct OrtSessionOptions;
struct OrtRunOptions;
struct OrtValue;
struct OrtTypeInfo;
struct OrtTensorTypeAndShapeInfo;
struct OrtAllocator;

// Of the interface that has all functions below.
constexpr uint32_t ORT_API_VERSION = 5;

// Severities of the log.
enum OrtLoggingLevel : int { ORT_LOGGING_LEVEL_VERBOSE = 0, ORT_LOGGING_LEVEL_WARNING = 2 };
enum ExecutionMode : int { ORT_SEQUENTIAL = 0, ORT_PARALLEL = 1 };

// Types of elements, without those that are no numbers.
enum ONNXTensorElementDataType : int {
  ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT = 1,
  ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT8 = 2,
  ONNX_TENSOR_ELEMENT_DATA_TYPE_INT8 = 3,
  ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT16 = 4,
  ONNX_TENSOR_ELEMENT_DATA_TYPE_INT16 = 5,
  ONNX_TENSOR_ELEMENT_DATA_TYPE_INT32 = 6,
  ONNX_TENSOR_ELEMENT_DATA_TYPE_INT64 = 7,
  ONNX_TENSOR_ELEMENT_DATA_TYPE_BOOL = 9,
  ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT16 = 10,
  ONNX_TENSOR_ELEMENT_DATA_TYPE_DOUBLE = 11,
  ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT32 = 12,
  ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT64 = 13,
  ONNX_TENSOR_ELEMENT_DATA_TYPE_BFLOAT16 = 16,
};

// A function that this program does not call.
using Other = void (*)();

// Whatever returns a status returns null where it succeeds.
struct OrtApi {
  Other from_0[2];
  const char* (*GetErrorMessage)(const OrtStatus*);
  OrtStatus* (*CreateEnv)(OrtLoggingLevel, const char* log_id, OrtEnv**);
  Other from_4[3];
  OrtStatus* (*CreateSession)(const OrtEnv*, const char* path, const OrtSessionOptions*, OrtSession**);
  Other from_8[1];
  OrtStatus* (*Run)(OrtSession*, const OrtRunOptions*, const char* const* input_names, const OrtValue* const* inputs,
                    size_t input_count, const char* const* output_names, size_t output_count, OrtValue** outputs);
  OrtStatus* (*CreateSessionOptions)(OrtSessionOptions**);
  Other from_11[2];
  OrtStatus* (*SetSessionExecutionMode)(OrtSessionOptions*, ExecutionMode);
  OrtStatus* (*EnableProfiling)(OrtSessionOptions*, const char* prefix);
  Other from_15[8];
  OrtStatus* (*SetSessionGraphOptimizationLevel)(OrtSessionOptions*, int level);
  OrtStatus* (*SetIntraOpNumThreads)(OrtSessionOptions*, int count);
  OrtStatus* (*SetInterOpNumThreads)(OrtSessionOptions*, int count);
  Other from_26[4];
  OrtStatus* (*SessionGetInputCount)(const OrtSession*, size_t*);
  OrtStatus* (*SessionGetOutputCount)(const OrtSession*, size_t*);
  Other from_32[1];
  OrtStatus* (*SessionGetInputTypeInfo)(const OrtSession*, size_t index, OrtTypeInfo**);
  Other from_34[2];
  OrtStatus* (*SessionGetInputName)(const OrtSession*, size_t index, OrtAllocator*, char**);
  OrtStatus* (*SessionGetOutputName)(const OrtSession*, size_t index, OrtAllocator*, char**);
  Other from_38[10];
  OrtStatus* (*CreateTensorAsOrtValue)(OrtAllocator*, const int64_t* shape, size_t rank, ONNXTensorElementDataType,
                                       OrtValue**);
  Other from_49[2];
  OrtStatus* (*GetTensorMutableData)(OrtValue*, void**);
  Other from_52[3];
  OrtStatus* (*CastTypeInfoToTensorInfo)(const OrtTypeInfo*, const OrtTensorTypeAndShapeInfo**);
  Other from_56[4];
  OrtStatus* (*GetTensorElementType)(const OrtTensorTypeAndShapeInfo*, ONNXTensorElementDataType*);
  OrtStatus* (*GetDimensionsCount)(const OrtTensorTypeAndShapeInfo*, size_t*);
  OrtStatus* (*GetDimensions)(const OrtTensorTypeAndShapeInfo*, int64_t*, size_t rank);
  OrtStatus* (*GetSymbolicDimensions)(const OrtTensorTypeAndShapeInfo*, const char** names, size_t rank);
  Other from_64[14];
  OrtStatus* (*GetAllocatorWithDefaultOptions)(OrtAllocator**);
  Other from_79[16];
  void (*ReleaseSession)(OrtSession*);
  void (*ReleaseValue)(OrtValue*);
  Other from_97[13];
  OrtStatus* (*SessionEndProfiling)(OrtSession*, OrtAllocator*, char** path);
  Other from_111[13];
  OrtStatus* (*AddFreeDimensionOverrideByName)(OrtSessionOptions*, const char* name, int64_t size);
  Other from_125[5];
  OrtStatus* (*AddSessionConfigEntry)(OrtSessionOptions*, const char* key, const char* value);
};
static_assert(offsetof(OrtApi, Run) == 9 * sizeof(Other));
static_assert(offsetof(OrtApi, SetSessionGraphOptimizationLevel) == 23 * sizeof(Other));
static_assert(offsetof(OrtApi, CreateTensorAsOrtValue) == 48 * sizeof(Other));
static_assert(offsetof(OrtApi, GetAllocatorWithDefaultOptions) == 78 * sizeof(Other));
static_assert(offsetof(OrtApi, SessionEndProfiling) == 110 * sizeof(Other));
static_assert(offsetof(OrtApi, AddSessionConfigEntry) == 130 * sizeof(Other));

struct OrtApiBase {
  const OrtApi* (*GetApi)(uint32_t version);
  const char* (*GetVersionString)();
};

const OrtApiBase* OrtGetApiBase();

}  // extern "C"
