// The part of LiteRT-LM's C interface that this program calls.
//
// The wheel `litert-lm-api` has the library and no header; its _ffi.py states the arguments of these functions for
// Python. They are those of c/engine.h in google-ai-edge/LiteRT-LM.
#pragma once

#include <cstddef>

extern "C" {

using LiteRtLmEngineSettings = struct LiteRtLmEngineSettingsT*;
using LiteRtLmEngine = struct LiteRtLmEngineT*;
using LiteRtLmSessionConfig = struct LiteRtLmSessionConfigT*;
using LiteRtLmSession = struct LiteRtLmSessionT*;
using LiteRtLmInputData = struct LiteRtLmInputDataT*;
using LiteRtLmResponses = struct LiteRtLmResponsesT*;
using LiteRtLmBenchmarkInfo = struct LiteRtLmBenchmarkInfoT*;

enum LiteRtLmInputDataType : int { kLiteRtLmInputDataTypeText = 0 };
enum LiteRtLmLogLevel : int { kLiteRtLmLogLevelError = 4 };

void litert_lm_set_min_log_level(int level);

// Whatever is created is null where it fails.
LiteRtLmEngineSettings litert_lm_engine_settings_create(const char* model_path, const char* backend,
                                                        const char* vision_backend, const char* audio_backend);
void litert_lm_engine_settings_delete(LiteRtLmEngineSettings);
void litert_lm_engine_settings_enable_benchmark(LiteRtLmEngineSettings);
void litert_lm_engine_settings_set_num_threads(LiteRtLmEngineSettings, int count);
void litert_lm_engine_settings_set_max_num_tokens(LiteRtLmEngineSettings, int count);
void litert_lm_engine_settings_set_num_prefill_tokens(LiteRtLmEngineSettings, int count);
void litert_lm_engine_settings_set_num_decode_tokens(LiteRtLmEngineSettings, int count);

LiteRtLmEngine litert_lm_engine_create(LiteRtLmEngineSettings);
void litert_lm_engine_delete(LiteRtLmEngine);
LiteRtLmSession litert_lm_engine_create_session(LiteRtLmEngine, LiteRtLmSessionConfig);
void litert_lm_session_delete(LiteRtLmSession);

LiteRtLmInputData litert_lm_input_data_create(int type, const void* data, size_t bytes);
void litert_lm_input_data_delete(LiteRtLmInputData);
LiteRtLmResponses litert_lm_session_generate_content(LiteRtLmSession, const LiteRtLmInputData* inputs, size_t count);
const char* litert_lm_responses_get_response_text_at(LiteRtLmResponses, int index);
void litert_lm_responses_delete(LiteRtLmResponses);

LiteRtLmBenchmarkInfo litert_lm_session_get_benchmark_info(LiteRtLmSession);
void litert_lm_benchmark_info_delete(LiteRtLmBenchmarkInfo);
// Both are in seconds.
double litert_lm_benchmark_info_get_time_to_first_token(LiteRtLmBenchmarkInfo);
double litert_lm_benchmark_info_get_total_init_time_in_second(LiteRtLmBenchmarkInfo);
int litert_lm_benchmark_info_get_num_prefill_turns(LiteRtLmBenchmarkInfo);
int litert_lm_benchmark_info_get_num_decode_turns(LiteRtLmBenchmarkInfo);
int litert_lm_benchmark_info_get_prefill_token_count_at(LiteRtLmBenchmarkInfo, int turn);
int litert_lm_benchmark_info_get_decode_token_count_at(LiteRtLmBenchmarkInfo, int turn);
double litert_lm_benchmark_info_get_prefill_tokens_per_sec_at(LiteRtLmBenchmarkInfo, int turn);
double litert_lm_benchmark_info_get_decode_tokens_per_sec_at(LiteRtLmBenchmarkInfo, int turn);

}  // extern "C"
