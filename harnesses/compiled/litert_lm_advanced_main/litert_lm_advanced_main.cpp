// A runner of .litertlm files for devices whose ABI the wheel `litert-lm-api` has a library for.
//
// LiteRT-LM's own litert_lm_advanced_main is in no wheel. This one takes the flags that the farm gives it, has the
// runtime measure, and prints what the runtime measured as the original does (runtime/engine/io_types.cc). It has the
// CPU only, and refuses flags that it does not know.

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <string>

#include "c_interface.h"

namespace {

constexpr const char* kRule = "--------------------------------------------------\n";

[[noreturn]] void refuse(const std::string& what) {
  std::fprintf(stderr, "E0000 litert_lm_advanced_main] %s\n", what.c_str());
  std::exit(1);
}

template <typename T>
T created(T made, const std::string& failure) {
  if (made == nullptr) {
    refuse(failure);
  }
  return made;
}

struct Flags {
  std::map<std::string, std::string> value_by_name = {
      {"benchmark", "false"},
      {"model_path", ""},
      {"backend", "cpu"},
      // The text is the same.
      {"async", "true"},
      {"input_prompt", "What is the tallest building in the world?"},
      {"benchmark_prefill_tokens", "0"},
      {"benchmark_decode_tokens", "0"},
      {"num_cpu_threads", "0"},
      {"num_iterations", "1"},
      {"max_num_tokens", "0"},
      {"metric_proto_file_path", ""},
  };

  const std::string& text(const char* name) const { return value_by_name.at(name); }

  int number(const char* name) const {
    const std::string& value = text(name);
    char* end = nullptr;
    const long found = std::strtol(value.c_str(), &end, 10);
    if (value.empty() || *end != '\0' || found < 0) {
      refuse("Illegal value '" + value + "' specified for flag '" + name + "'");
    }
    return static_cast<int>(found);
  }
};

Flags flags_of(int argc, char** argv) {
  Flags flags;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    const size_t equals = word.find('=');
    const bool is_flag = word.rfind("--", 0) == 0;
    const std::string name = is_flag ? word.substr(2, equals == std::string::npos ? equals : equals - 2) : "";
    const auto flag = flags.value_by_name.find(name);
    if (flag == flags.value_by_name.end()) {
      refuse("Unknown command line flag '" + (name.empty() ? word : name) + "'");
    }
    flag->second = equals == std::string::npos ? "true" : word.substr(equals + 1);
  }
  if (flags.text("model_path").empty() || flags.text("benchmark") != "true") {
    refuse("usage: litert_lm_advanced_main --benchmark --model_path=FILE [--benchmark_decode_tokens=N] ..");
  }
  for (const char* name : {"benchmark_prefill_tokens", "benchmark_decode_tokens", "num_cpu_threads", "num_iterations",
                           "max_num_tokens"}) {
    flags.number(name);
  }
  if (flags.text("backend") != "cpu") {
    refuse("the backend " + flags.text("backend") + " is not in this build");
  }
  return flags;
}

LiteRtLmEngine engine_of(const Flags& flags) {
  const std::string& path = flags.text("model_path");
  const auto settings = created(litert_lm_engine_settings_create(path.c_str(), "cpu", nullptr, nullptr),
                                "cannot create the settings of the engine");
  litert_lm_engine_settings_enable_benchmark(settings);
  if (flags.number("num_cpu_threads") > 0) {
    litert_lm_engine_settings_set_num_threads(settings, flags.number("num_cpu_threads"));
  }
  if (flags.number("max_num_tokens") > 0) {
    litert_lm_engine_settings_set_max_num_tokens(settings, flags.number("max_num_tokens"));
  }
  litert_lm_engine_settings_set_num_prefill_tokens(settings, flags.number("benchmark_prefill_tokens"));
  litert_lm_engine_settings_set_num_decode_tokens(settings, flags.number("benchmark_decode_tokens"));
  const auto engine = created(litert_lm_engine_create(settings), "cannot create an engine for " + path);
  litert_lm_engine_settings_delete(settings);
  return engine;
}

void show_turn(const char* kind, int turn, int tokens, double rate) {
  // The interface has the rate, and not the duration that it was computed from.
  std::fprintf(stderr, "    %s Turn %d: Processed %d tokens in ", kind, turn + 1, tokens);
  std::fprintf(stderr, rate > 0 ? "%.9fs" : "0", rate > 0 ? tokens / rate : 0.0);
  std::fprintf(stderr, " duration.\n      %s Speed: %.2f tokens/sec.\n", kind, rate);
}

void show(LiteRtLmBenchmarkInfo info) {
  std::fprintf(stderr, "I0000 litert_lm_lib.cc] BenchmarkInfo:\n  Init Phases (1):\n    - Init Total: %.2f ms\n",
               litert_lm_benchmark_info_get_total_init_time_in_second(info) * 1e3);
  std::fprintf(stderr, "%s  Time to first token: %.2f s\n", kRule,
               litert_lm_benchmark_info_get_time_to_first_token(info));
  const int prefills = litert_lm_benchmark_info_get_num_prefill_turns(info);
  std::fprintf(stderr, "%s  Prefill Turns (Total %d turns):\n", kRule, prefills);
  for (int turn = 0; turn < prefills; ++turn) {
    show_turn("Prefill", turn, litert_lm_benchmark_info_get_prefill_token_count_at(info, turn),
              litert_lm_benchmark_info_get_prefill_tokens_per_sec_at(info, turn));
  }
  const int decodes = litert_lm_benchmark_info_get_num_decode_turns(info);
  std::fprintf(stderr, "%s  Decode Turns (Total %d turns):\n", kRule, decodes);
  for (int turn = 0; turn < decodes; ++turn) {
    show_turn("Decode", turn, litert_lm_benchmark_info_get_decode_token_count_at(info, turn),
              litert_lm_benchmark_info_get_decode_tokens_per_sec_at(info, turn));
  }
  std::fprintf(stderr, "%s", kRule);
}

// Protobuf: fields of LitertLmMetricsList (runtime/proto/litert_lm_metrics.proto).
std::string varint(uint64_t value) {
  std::string written;
  for (; value > 0x7F; value >>= 7) {
    written += static_cast<char>((value & 0x7F) | 0x80);
  }
  return written + static_cast<char>(value);
}

std::string message(int number, const std::string& content) {
  return varint(number << 3 | 2) + varint(content.size()) + content;
}

std::string integer(int number, uint64_t value) { return varint(number << 3) + varint(value); }

// Little-endian, as every ABI of Android is.
std::string real(int number, double value) {
  return varint(number << 3 | 1) + std::string(reinterpret_cast<const char*>(&value), sizeof value);
}

uint64_t rounded_us(double seconds) { return static_cast<uint64_t>(std::llround(seconds * 1e6)); }

std::string turn_of(int tokens, double rate) {
  return integer(1, rate > 0 ? rounded_us(tokens / rate) : 0) + integer(2, tokens) + real(3, rate);
}

// Returns an iteration as a message LitertLmMetrics: phases, turns, time to first token.
std::string metrics_of(LiteRtLmBenchmarkInfo info) {
  const uint64_t init_us = rounded_us(litert_lm_benchmark_info_get_total_init_time_in_second(info));
  std::string written = message(2, message(1, "Init Total") + integer(2, init_us));
  for (int turn = 0; turn < litert_lm_benchmark_info_get_num_prefill_turns(info); ++turn) {
    written += message(4, turn_of(litert_lm_benchmark_info_get_prefill_token_count_at(info, turn),
                                  litert_lm_benchmark_info_get_prefill_tokens_per_sec_at(info, turn)));
  }
  for (int turn = 0; turn < litert_lm_benchmark_info_get_num_decode_turns(info); ++turn) {
    written += message(5, turn_of(litert_lm_benchmark_info_get_decode_token_count_at(info, turn),
                                  litert_lm_benchmark_info_get_decode_tokens_per_sec_at(info, turn)));
  }
  return written + real(7, litert_lm_benchmark_info_get_time_to_first_token(info));
}

void write_file(const std::string& path, const std::string& content) {
  std::FILE* file = std::fopen(path.c_str(), "wb");
  const bool is_written = file != nullptr && std::fwrite(content.data(), 1, content.size(), file) == content.size();
  if (file == nullptr || std::fclose(file) != 0 || !is_written) {
    refuse("cannot write " + path);
  }
}

// Returns what was measured, as a message LitertLmMetrics.
std::string iterate(LiteRtLmEngine engine, const Flags& flags) {
  const auto session = created(litert_lm_engine_create_session(engine, nullptr), "cannot create a session");
  const std::string& prompt = flags.text("input_prompt");
  const auto input = created(litert_lm_input_data_create(kLiteRtLmInputDataTypeText, prompt.data(), prompt.size()),
                             "cannot take the prompt");
  const auto responses = created(litert_lm_session_generate_content(session, &input, 1), "cannot generate");
  if (flags.number("benchmark_prefill_tokens") == 0) {
    const char* text = litert_lm_responses_get_response_text_at(responses, 0);
    std::printf("%s\n", text == nullptr ? "" : text);
    std::fflush(stdout);
  }
  litert_lm_responses_delete(responses);
  const auto info = created(litert_lm_session_get_benchmark_info(session), "the runtime measured nothing");
  show(info);
  const std::string metrics = metrics_of(info);
  litert_lm_benchmark_info_delete(info);
  litert_lm_input_data_delete(input);
  litert_lm_session_delete(session);
  return metrics;
}

}  // namespace

int main(int argc, char** argv) {
  const Flags flags = flags_of(argc, argv);
  litert_lm_set_min_log_level(kLiteRtLmLogLevelError);
  const LiteRtLmEngine engine = engine_of(flags);
  std::string metrics;
  for (int i = 0; i < flags.number("num_iterations"); ++i) {
    metrics += message(1, iterate(engine, flags));
  }
  litert_lm_engine_delete(engine);
  if (!flags.text("metric_proto_file_path").empty()) {
    write_file(flags.text("metric_proto_file_path"), metrics);
  }
  return 0;
}
