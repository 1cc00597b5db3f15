// A runner of .tflite files for devices whose ABI the wheel `ai-edge-litert` has libraries for.
//
// LiteRT's own benchmark_model is in no wheel. This one is written against the C interface of the wheel's library:
// flags, loops, the ranges of the inputs' values and the lines of the result are those of the original since 2020. It
// has the CPU only, by XNNPACK or by LiteRT's own kernels, and ends with an error where the original ignores a flag.
// It also prints each inference and the first values of each output, which the original does not. Inputs are the same
// in every run.

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

#include "c_interface.h"

namespace {

using Clock = std::chrono::steady_clock;

constexpr size_t kMostShown = 8;
// More lines than these are cut off on their way. Of a longer loop these are the first, so that all runs of a series
// have single inferences, however many of them fit into the time.
constexpr size_t kMostIterations = 10000;

struct Flags {
  std::string graph;
  std::string num_threads = "1";
  std::string num_runs = "50";
  std::string min_secs = "1";
  std::string max_secs = "150";
  std::string warmup_runs = "1";
  std::string warmup_min_secs = "0.5";
  std::string run_delay = "-1";
  std::string use_xnnpack = "true";
};

[[noreturn]] void refuse(const std::string& what) {
  std::fprintf(stderr, "ERROR: %s\n", what.c_str());
  std::exit(1);
}

void check(LiteRtStatus status, const std::string& failure) {
  if (status != 0) {
    refuse(failure + " (LiteRT status " + std::to_string(status) + ")");
  }
}

double number(const std::string& value) {
  char* end = nullptr;
  const double found = std::strtod(value.c_str(), &end);
  if (value.empty() || *end != '\0') {
    refuse("'" + value + "' is no number");
  }
  return found;
}

bool is_true(const std::string& value) {
  if (value != "true" && value != "1" && value != "false" && value != "0") {
    refuse("'" + value + "' is neither true nor false");
  }
  return value == "true" || value == "1";
}

Flags flags_of(int argc, char** argv) {
  Flags flags;
  const std::pair<const char*, std::string*> known[] = {
      {"graph", &flags.graph},
      {"num_threads", &flags.num_threads},
      {"num_runs", &flags.num_runs},
      {"min_secs", &flags.min_secs},
      {"max_secs", &flags.max_secs},
      {"warmup_runs", &flags.warmup_runs},
      {"warmup_min_secs", &flags.warmup_min_secs},
      {"run_delay", &flags.run_delay},
      {"use_xnnpack", &flags.use_xnnpack},
  };
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    const size_t equals = std::min(word.find('='), word.size());
    const auto flag = std::find_if(std::begin(known), std::end(known), [&](const auto& each) {
      return word.substr(0, equals) == "--" + std::string(each.first);
    });
    if (flag == std::end(known) || equals == word.size()) {
      refuse("Unconsumed cmdline flags: " + word.substr(0, equals));
    }
    *flag->second = word.substr(equals + 1);
  }
  if (flags.graph.empty()) {
    refuse("usage: benchmark_model --graph=FILE [--num_threads=N] [--num_runs=N] [--use_xnnpack=true|false] ..");
  }
  return flags;
}

double us_since(Clock::time_point start) {
  return std::chrono::duration<double, std::micro>(Clock::now() - start).count();
}

// The high-water mark of this process's resident memory. That of getrusage includes the process before it was replaced.
double peak_mb() {
  std::FILE* file = std::fopen("/proc/self/status", "r");
  double kb = 0;
  for (char line[256]; file != nullptr && std::fgets(line, sizeof line, file) != nullptr;) {
    std::sscanf(line, "VmHWM: %lf kB", &kb);
  }
  if (file != nullptr) {
    std::fclose(file);
  }
  return kb / 1024;
}

// Numbers that are the same on every machine, and spread as those of the original: -0.5 to 0.5 where they are floats.
class Values {
 public:
  uint32_t next() {
    state_ = state_ * 6364136223846793005u + 1442695040888963407u;
    return static_cast<uint32_t>(state_ >> 33);
  }

  template <typename T>
  void fill(void* data, size_t bytes, int64_t low, uint32_t count) {
    for (size_t i = 0; i < bytes / sizeof(T); ++i) {
      static_cast<T*>(data)[i] = static_cast<T>(low + static_cast<int64_t>(next() % count));
    }
  }

  void fill(LiteRtElementType type, void* data, size_t bytes) {
    switch (type) {
      case kLiteRtElementTypeFloat32:
        for (size_t i = 0; i < bytes / sizeof(float); ++i) {
          static_cast<float*>(data)[i] = static_cast<float>(next() % 65536) / 65536.0f - 0.5f;
        }
        return;
      case kLiteRtElementTypeInt8: return fill<int8_t>(data, bytes, -127, 255);
      case kLiteRtElementTypeUInt8: return fill<uint8_t>(data, bytes, 0, 255);
      case kLiteRtElementTypeInt16: return fill<int16_t>(data, bytes, 0, 100);
      case kLiteRtElementTypeInt32: return fill<int32_t>(data, bytes, 0, 100);
      case kLiteRtElementTypeInt64: return fill<int64_t>(data, bytes, 0, 100);
      case kLiteRtElementTypeBool: return fill<bool>(data, bytes, 0, 2);
    }
    refuse("an input has elements of type " + std::to_string(type) + ", which cannot be filled");
  }

 private:
  uint64_t state_ = 20;
};

// The first signature of a model with its buffers.
struct Network {
  LiteRtCompiledModel compiled = nullptr;
  LiteRtSubgraph graph = nullptr;
  std::vector<LiteRtRankedTensorType> input_types;
  std::vector<LiteRtRankedTensorType> output_types;
  std::vector<LiteRtTensorBuffer> inputs;
  std::vector<LiteRtTensorBuffer> outputs;

  // Returns the microseconds that the inference took.
  double run() {
    const auto start = Clock::now();
    const LiteRtStatus status =
        LiteRtRunCompiledModel(compiled, 0, inputs.size(), inputs.data(), outputs.size(), outputs.data());
    const double us = us_since(start);
    check(status, "the inference failed");
    return us;
  }
};

// Each group of options is text in TOML.
void add_options(LiteRtOptions options, const char* group, const std::string& text) {
  LiteRtOpaqueOptions added = nullptr;
  check(LiteRtCreateOpaqueOptions(group, strdup(text.c_str()), std::free, &added), "cannot set options");
  check(LiteRtAddOpaqueOptions(options, added), "cannot set options");
}

LiteRtCompiledModel compiled(LiteRtEnvironment environment, LiteRtModel model, const Flags& flags, bool is_profiled) {
  LiteRtOptions options = nullptr;
  check(LiteRtCreateOptions(&options), "cannot set options");
  check(LiteRtSetOptionsHardwareAccelerators(options, kLiteRtHwAcceleratorCpu), "cannot choose the CPU");
  const std::string kernels = is_true(flags.use_xnnpack) ? "" : "kernel_mode = \"builtin\"\n";
  const int threads = static_cast<int>(number(flags.num_threads));
  add_options(options, "xnnpack", kernels + "num_threads = " + std::to_string(threads) + "\n");
  if (is_profiled) {
    add_options(options, "runtime_options_string", "enable_profiling = true\n");
  }
  LiteRtCompiledModel found = nullptr;
  check(LiteRtCreateCompiledModel(environment, model, options, &found), "Failed to create the compiled model");
  LiteRtDestroyOptions(options);
  return found;
}

using Tensors = LiteRtStatus (*)(LiteRtSignature, LiteRtParamIndex, LiteRtTensor*);
using Requirements = LiteRtStatus (*)(LiteRtCompiledModel, LiteRtParamIndex, LiteRtParamIndex,
                                      LiteRtTensorBufferRequirements*);

LiteRtTensorBuffer buffer_of(LiteRtEnvironment environment, LiteRtCompiledModel model, LiteRtSignature signature,
                             size_t index, Tensors tensors, Requirements requirements, LiteRtRankedTensorType* type) {
  LiteRtTensor tensor = nullptr;
  check(tensors(signature, index, &tensor), "cannot read a tensor");
  check(LiteRtGetRankedTensorType(tensor, type), "cannot read a tensor's type");
  LiteRtTensorBufferRequirements needed = nullptr;
  check(requirements(model, 0, index, &needed), "cannot read what a tensor needs");
  LiteRtTensorBuffer buffer = nullptr;
  check(LiteRtCreateManagedTensorBufferFromRequirements(environment, type, needed, &buffer),
        "cannot create the buffer of a tensor");
  return buffer;
}

Network network_of(LiteRtEnvironment environment, LiteRtModel model, const Flags& flags, bool is_profiled) {
  LiteRtSignature signature = nullptr;
  check(LiteRtGetModelSignature(model, 0, &signature), "the model has no graph");
  Network network;
  network.compiled = compiled(environment, model, flags, is_profiled);
  check(LiteRtGetSignatureSubgraph(signature, &network.graph), "the model has no graph");
  size_t inputs = 0;
  size_t outputs = 0;
  check(LiteRtGetNumSignatureInputs(signature, &inputs), "cannot read the inputs");
  check(LiteRtGetNumSignatureOutputs(signature, &outputs), "cannot read the outputs");
  network.input_types.resize(inputs);
  network.output_types.resize(outputs);
  Values values;
  for (size_t i = 0; i < inputs; ++i) {
    LiteRtTensorBuffer buffer =
        buffer_of(environment, network.compiled, signature, i, LiteRtGetSignatureInputTensorByIndex,
                  LiteRtGetCompiledModelInputBufferRequirements, &network.input_types[i]);
    void* data = nullptr;
    size_t bytes = 0;
    check(LiteRtGetTensorBufferPackedSize(buffer, &bytes), "cannot fill an input");
    check(LiteRtLockTensorBuffer(buffer, &data, kLiteRtTensorBufferLockModeWrite), "cannot fill an input");
    values.fill(network.input_types[i].element_type, data, bytes);
    check(LiteRtUnlockTensorBuffer(buffer), "cannot fill an input");
    network.inputs.push_back(buffer);
  }
  for (size_t i = 0; i < outputs; ++i) {
    network.outputs.push_back(buffer_of(environment, network.compiled, signature, i,
                                        LiteRtGetSignatureOutputTensorByIndex,
                                        LiteRtGetCompiledModelOutputBufferRequirements, &network.output_types[i]));
  }
  return network;
}

std::vector<double> timed(Network& network, const Flags& flags, const std::string& runs, const std::string& seconds) {
  const double least = number(runs);
  const double least_us = number(seconds) * 1e6;
  const double most_us = number(flags.max_secs) * 1e6;
  const double delay_us = number(flags.run_delay) * 1e6;
  std::printf("INFO: Running benchmark for at least %s iterations and at least %s seconds but terminate if exceeding %s"
              " seconds.\n",
              runs.c_str(), seconds.c_str(), flags.max_secs.c_str());
  std::vector<double> times;
  const auto start = Clock::now();
  while ((times.size() < least || us_since(start) < least_us) && us_since(start) < most_us) {
    times.push_back(network.run());
    if (delay_us > 0) {
      std::this_thread::sleep_for(std::chrono::duration<double, std::micro>(delay_us));
    }
  }
  return times;
}

double mean_of(const std::vector<double>& times) {
  return times.empty() ? 0 : std::accumulate(times.begin(), times.end(), 0.0) / times.size();
}

void show_loop(const std::vector<double>& times) {
  if (times.empty()) {
    std::printf("INFO: count=0\n\n");
    return;
  }
  std::vector<double> sorted = times;
  std::sort(sorted.begin(), sorted.end());
  const double mean = mean_of(times);
  double squares = 0;
  for (const double us : times) {
    squares += (us - mean) * (us - mean);
  }
  const auto at = [&](double fraction) { return sorted[static_cast<size_t>(fraction * (sorted.size() - 1))]; };
  std::printf("INFO: count=%zu first=%.3f curr=%.3f min=%.3f max=%.3f avg=%.3f std=%.3f", times.size(), times.front(),
              times.back(), sorted.front(), sorted.back(), mean, std::sqrt(squares / times.size()));
  std::printf(" p5=%.3f median=%.3f p95=%.3f\n\n", at(0.05), at(0.5), at(0.95));
}

// How many nodes of a graph LiteRT's own kernels run, by the profile of one inference.
size_t own_nodes(LiteRtEnvironment environment, LiteRtModel model, const Flags& flags) {
  Network network = network_of(environment, model, flags, true);
  LiteRtProfiler profiler = nullptr;
  check(LiteRtCompiledModelGetProfiler(network.compiled, &profiler), "LiteRT has no profiler");
  check(LiteRtStartProfiler(profiler), "cannot profile");
  network.run();
  check(LiteRtStopProfiler(profiler), "cannot profile");
  const char* text = nullptr;
  check(LiteRtGetProfileSummary(profiler, network.compiled, &text), "cannot profile");
  // Tables of the same nodes follow the first, which is in the order of the run.
  const char* end = std::strstr(text, "Top by Computation Time");
  if (end == nullptr) {
    refuse("the profile has another form: the nodes that XNNPACK left cannot be counted");
  }
  const std::string profile(text, end);
  size_t count = 0;
  for (size_t at = 0; (at = profile.find("[Builtin]:", at)) != std::string::npos; ++at) {
    ++count;
  }
  return count;
}

void show_placement(LiteRtEnvironment environment, LiteRtModel model, const Network& network, const Flags& flags) {
  size_t total = 0;
  bool is_whole = false;
  check(LiteRtGetNumSubgraphOps(network.graph, &total), "cannot count the nodes");
  check(LiteRtCompiledModelIsFullyAccelerated(network.compiled, &is_whole), "cannot read the placement");
  const size_t left = is_whole ? 0 : own_nodes(environment, model, flags);
  std::printf("INFO: XNNPACK delegate: %zu nodes delegated out of %zu nodes\n", total - std::min(left, total), total);
}

template <typename T>
void show_values(const void* data, size_t count) {
  for (size_t i = 0; i < std::min(count, kMostShown); ++i) {
    std::printf("%s%g", i == 0 ? "" : ", ", static_cast<double>(static_cast<const T*>(data)[i]));
  }
}

void show_outputs(const Network& network) {
  for (size_t i = 0; i < network.outputs.size(); ++i) {
    void* data = nullptr;
    size_t bytes = 0;
    check(LiteRtGetTensorBufferPackedSize(network.outputs[i], &bytes), "cannot read an output");
    check(LiteRtLockTensorBuffer(network.outputs[i], &data, kLiteRtTensorBufferLockModeRead), "cannot read an output");
    std::printf("INFO: Output %zu begins with [", i);
    switch (network.output_types[i].element_type) {
      case kLiteRtElementTypeFloat32: show_values<float>(data, bytes / 4); break;
      case kLiteRtElementTypeInt8: show_values<int8_t>(data, bytes); break;
      case kLiteRtElementTypeUInt8: show_values<uint8_t>(data, bytes); break;
      case kLiteRtElementTypeInt32: show_values<int32_t>(data, bytes / 4); break;
      case kLiteRtElementTypeInt64: show_values<int64_t>(data, bytes / 8); break;
      default: std::printf("..");
    }
    std::printf("]\n");
    check(LiteRtUnlockTensorBuffer(network.outputs[i]), "cannot read an output");
  }
}

}  // namespace

int main(int argc, char** argv) {
  const Flags flags = flags_of(argc, argv);
  std::printf("STARTING!\nINFO: Graph: [%s]\nINFO: #threads used for CPU inference: [%s]\nINFO: Use xnnpack: [%d]\n",
              flags.graph.c_str(), flags.num_threads.c_str(), is_true(flags.use_xnnpack));
  const double started_mb = peak_mb();
  // Otherwise it looks for the libraries of GPU and NPU.
  const LiteRtEnvOption only_cpu = {kLiteRtEnvOptionTagAutoRegisterAccelerators,
                                    {kLiteRtAnyTypeInt, kLiteRtHwAcceleratorCpu}};
  LiteRtEnvironment environment = nullptr;
  check(LiteRtCreateEnvironment(1, &only_cpu, &environment), "cannot start LiteRT");
  const auto start = Clock::now();
  LiteRtModel model = nullptr;
  check(LiteRtCreateModelFromFile(environment, flags.graph.c_str(), &model), "Failed to load model " + flags.graph);
  std::printf("INFO: Loaded model %s\n", flags.graph.c_str());
  Network network = network_of(environment, model, flags, false);
  const double init_us = us_since(start);
  const double init_mb = peak_mb() - started_mb;
  std::printf("INFO: Initialized session in %.3fms.\n", init_us / 1e3);
  const std::vector<double> warmup = timed(network, flags, flags.warmup_runs, flags.warmup_min_secs);
  show_loop(warmup);
  const std::vector<double> times = timed(network, flags, flags.num_runs, flags.min_secs);
  const double overall_mb = peak_mb() - started_mb;
  if (times.empty()) {
    refuse("nothing was timed: num_runs and min_secs are 0, or max_secs is");
  }
  // Behind the loop: printing takes time.
  const size_t shown = std::min(times.size(), kMostIterations);
  for (size_t i = 0; i < shown; ++i) {
    std::printf("INFO: Iteration %zu of %zu: %.6f ms\n", i + 1, shown, times[i] / 1e3);
  }
  show_loop(times);
  show_outputs(network);
  if (is_true(flags.use_xnnpack)) {
    show_placement(environment, model, network, flags);
  }
  std::printf("INFO: Inference timings in us: Init: %.3f, First inference: %.3f, Warmup (avg): %.3f, Inference (avg):"
              " %.3f\n",
              init_us, warmup.empty() ? times.front() : warmup.front(), mean_of(warmup), mean_of(times));
  std::printf("INFO: Memory footprint delta from the start of the tool (MB): init=%.3f overall=%.3f\n", init_mb,
              overall_mb);
  return 0;
}
