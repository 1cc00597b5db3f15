// Runs a library that TVM compiled, by the virtual machine of TVM's runtime, and prints the time of each inference. With --serve=N
// it serves one session of TVM's RPC of at most N seconds instead (rpc_server.cpp).
//
// TVM's packages have a runtime and neither of these programs. Everything is called by its name in the runtime's own registry, so
// the headers of tvm_ffi suffice.

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <new>
#include <sstream>
#include <string>
#include <vector>

#include <tvm/ffi/any.h>
#include <tvm/ffi/container/array.h>
#include <tvm/ffi/container/shape.h>
#include <tvm/ffi/container/tensor.h>
#include <tvm/ffi/dtype.h>
#include <tvm/ffi/extra/module.h>
#include <tvm/ffi/function.h>

#include "rpc_server.h"

namespace {

using tvm::ffi::Any;
using tvm::ffi::AnyView;
using tvm::ffi::Array;
using tvm::ffi::Function;
using tvm::ffi::Module;
using tvm::ffi::Shape;
using tvm::ffi::Tensor;
using Clock = std::chrono::steady_clock;

constexpr DLDevice kCpu{kDLCPU, 0};
// Of the virtual machine's memory: freed blocks are used again.
constexpr int kPooled = 2;
constexpr size_t kAlignment = 64;
constexpr int64_t kMostShown = 10;

struct Flags {
  std::string model;
  // As 1x3x224x224:float32;1x16:int64
  std::string inputs;
  long num_runs = 50;
  long warmup_runs = 5;
  long num_threads = 1;
  // Seconds of a session; 0: time the model.
  long serve = 0;
};

[[noreturn]] void refuse(const char* what, const std::string& word) {
  std::fprintf(stderr, "ERROR: %s '%s'\n", what, word.c_str());
  std::exit(1);
}

[[noreturn]] void refuse_value(const std::string& value, const std::string& name) {
  std::fprintf(stderr, "ERROR: illegal value '%s' specified for flag '%s'\n", value.c_str(), name.c_str());
  std::exit(1);
}

long number(const std::string& name, const std::string& value) {
  char* end = nullptr;
  const long found = std::strtol(value.c_str(), &end, 10);
  if (value.empty() || *end != '\0' || found < 0) {
    refuse_value(value, name);
  }
  return found;
}

Flags flags_of(int argc, char** argv) {
  Flags flags;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    const size_t equals = word.find('=');
    if (word.rfind("--", 0) != 0 || equals == std::string::npos) {
      refuse("not --NAME=VALUE:", word);
    }
    const std::string name = word.substr(2, equals - 2);
    const std::string value = word.substr(equals + 1);
    if (name == "model") {
      flags.model = value;
    } else if (name == "inputs") {
      flags.inputs = value;
    } else if (name == "num_runs") {
      flags.num_runs = number(name, value);
    } else if (name == "warmup_runs") {
      flags.warmup_runs = number(name, value);
    } else if (name == "num_threads") {
      flags.num_threads = number(name, value);
    } else if (name == "serve") {
      flags.serve = number(name, value);
    } else {
      refuse("unknown command line flag", name);
    }
  }
  return flags;
}

struct CpuMemory {
  void AllocData(DLTensor* tensor) {
    const size_t size = tvm::ffi::GetDataSize(*tensor);
    tensor->data = std::aligned_alloc(kAlignment, (size + kAlignment - 1) / kAlignment * kAlignment);
    if (tensor->data == nullptr) {
      throw std::bad_alloc();
    }
  }
  void FreeData(DLTensor* tensor) {
    std::free(tensor->data);
  }
};

template <typename T>
void fill(const Tensor& tensor) {
  T* values = static_cast<T*>(tensor.data_ptr());
  std::fill(values, values + tensor.numel(), T(1));
}

const std::map<std::string, void (*)(const Tensor&)> kFillByType = {
    {"float32", fill<float>},
    {"float64", fill<double>},
    {"int8", fill<int8_t>},
    {"uint8", fill<uint8_t>},
    {"bool", fill<uint8_t>},
    {"int32", fill<int32_t>},
    {"int64", fill<int64_t>},
};

// Of an input as 1x3x224x224:float32
Tensor ones(const std::string& text) {
  const size_t colon = std::min(text.find(':'), text.size());
  const std::string type = text.substr(std::min(colon + 1, text.size()));
  const auto fill_tensor = kFillByType.find(type);
  if (fill_tensor == kFillByType.end()) {
    refuse_value(text, "inputs");
  }
  std::vector<int64_t> sizes;
  std::istringstream words(text.substr(0, colon));
  for (std::string word; std::getline(words, word, 'x') && word != "scalar";) {
    sizes.push_back(number("inputs", word));
  }
  const Shape shape(sizes.begin(), sizes.end());
  const Tensor tensor = Tensor::FromNDAlloc(CpuMemory(), shape, tvm::ffi::StringToDLDataType(type), kCpu);
  fill_tensor->second(tensor);
  return tensor;
}

std::vector<Tensor> inputs_of(const std::string& text) {
  std::vector<Tensor> inputs;
  std::istringstream words(text);
  for (std::string word; std::getline(words, word, ';');) {
    inputs.push_back(ones(word));
  }
  return inputs;
}

Function named(const Module& module, const char* name) {
  const auto found = module->GetFunction(name);
  if (!found.has_value()) {
    refuse("Failed to load model: it has no function", name);
  }
  return found.value();
}

// By the loader itself: the name of a file on a device has no suffix that would select it.
Module loaded(const std::string& path) {
  const auto load = Function::GetGlobalRequired("ffi.Module.load_from_file.so");
  const Module library = load(path, "so").cast<Module>();
  const Module machine = named(library, "vm_load_executable")().cast<Module>();
  named(machine, "vm_initialization")(
      static_cast<int>(kCpu.device_type), kCpu.device_id, kPooled, static_cast<int>(kCpu.device_type), kCpu.device_id, kPooled);
  return machine;
}

double ms_since(Clock::time_point start) {
  return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

double timed_ms(const Function& main, const std::vector<AnyView>& inputs, Any& outputs) {
  outputs = Any();
  const auto start = Clock::now();
  main.CallPacked(inputs.data(), static_cast<int32_t>(inputs.size()), &outputs);
  return ms_since(start);
}

// The first values of each output: the same inputs are the same numbers.
void show(const Any& output, int index) {
  if (const auto several = output.as<Array<Any>>()) {
    for (const Any& each : *several) {
      show(each, index++);
    }
    return;
  }
  const auto tensor = output.as<Tensor>();
  if (!tensor || tensor->dtype().code != kDLFloat || tensor->dtype().bits != 32) {
    std::printf("Output %d: not of float32\n", index);
    return;
  }
  std::printf("Output %d:", index);
  for (int64_t i = 0; i < tensor->numel() && i < kMostShown; ++i) {
    std::printf(" %g", static_cast<const float*>(tensor->data_ptr())[i]);
  }
  std::printf("\n");
}

void benchmark(const Flags& flags) {
  const auto started = Clock::now();
  const Module machine = loaded(flags.model);
  const Function main = named(machine, "main");
  std::printf("Model loaded in %.6f ms.\n", ms_since(started));
  std::fflush(stdout);
  const std::vector<Tensor> tensors = inputs_of(flags.inputs);
  const std::vector<AnyView> inputs(tensors.begin(), tensors.end());
  Any outputs;
  for (long i = 0; i < flags.warmup_runs; ++i) {
    timed_ms(main, inputs, outputs);
  }
  std::vector<double> times;
  times.reserve(flags.num_runs);
  for (long i = 0; i < flags.num_runs; ++i) {
    times.push_back(timed_ms(main, inputs, outputs));
  }
  std::printf("Device: cpu(0), threads: %ld\n", flags.num_threads);
  double total_ms = 0;
  for (long i = 0; i < flags.num_runs; ++i) {
    total_ms += times[i];
    std::printf("Iteration %ld of %ld: %.6f ms\n", i + 1, flags.num_runs, times[i]);
  }
  std::printf("Mean of %ld iterations: %.6f ms\n", flags.num_runs, total_ms / flags.num_runs);
  show(outputs, 0);
}

} // namespace

int main(int argc, char** argv) {
  const Flags flags = flags_of(argc, argv);
  // Read when the runtime starts its threads, which it would bind to cores of its own choice.
  setenv("TVM_NUM_THREADS", std::to_string(flags.num_threads).c_str(), 1);
  setenv("TVM_BIND_THREADS", "0", 1);
  try {
    if (flags.serve > 0) {
      return serve_session(flags.serve);
    }
    benchmark(flags);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "ERROR: %s\n", error.what());
    return 1;
  }
  return 0;
}
