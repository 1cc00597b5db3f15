// A runner of ExecuTorch programs for devices whose ABI the wheel `executorch` has libraries for.
//
// ExecuTorch's own executor_runner is in no wheel. This one is written against the wheel's headers: flags, inputs,
// what the clock covers and the lines of the result are those of the newest original; it also prints which backends the
// method was exported for, and how long loading took, which the original does not. As in the original, --etdump_path
// has the runtime trace its events, which takes time of its own, and names the file that they are written to.

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include <executorch/devtools/etdump/etdump_flatcc.h>
#include <executorch/extension/data_loader/file_data_loader.h>
#include <executorch/extension/memory_allocator/malloc_memory_allocator.h>
#include <executorch/extension/tensor/tensor_ptr_maker.h>
#include <executorch/runtime/executor/method.h>
#include <executorch/runtime/executor/program.h>
#include <executorch/runtime/platform/log.h>
#include <executorch/runtime/platform/platform.h>
#include <executorch/runtime/platform/runtime.h>

// The wheel has the library, but not its header.
namespace executorch::extension::threadpool {
class ThreadPool {
 public:
  size_t get_thread_count() const;
  bool _unsafe_reset_threadpool(uint32_t count);
};
ThreadPool* get_threadpool();
} // namespace executorch::extension::threadpool

namespace {

using executorch::etdump::ETDumpGen;
using executorch::extension::FileDataLoader;
using executorch::extension::MallocMemoryAllocator;
using executorch::extension::TensorPtr;
using executorch::runtime::Error;
using executorch::runtime::EValue;
using executorch::runtime::HierarchicalAllocator;
using executorch::runtime::MemoryManager;
using executorch::runtime::Method;
using executorch::runtime::MethodMeta;
using executorch::runtime::Program;
using executorch::runtime::Span;
using executorch::runtime::Tag;

constexpr int kMostShown = 10;
// More lines than these are cut off on their way; the mean is printed in any case.
constexpr long kMostIterations = 10000;

struct Flags {
  std::string model_path = "model.pte";
  long num_executions = 1;
  long cpu_threads = -1;
  // Empty: nothing is traced.
  std::string etdump_path;
};

[[noreturn]] void refuse(const char* what, const std::string& word) {
  std::fprintf(stderr, "ERROR: %s '%s'\n", what, word.c_str());
  std::exit(1);
}

long number(const std::string& name, const std::string& value) {
  char* end = nullptr;
  const long found = std::strtol(value.c_str(), &end, 10);
  if (value.empty() || *end != '\0') {
    std::fprintf(stderr, "ERROR: illegal value '%s' specified for int32 flag '%s'\n", value.c_str(), name.c_str());
    std::exit(1);
  }
  return found;
}

Flags flags_of(int argc, char** argv) {
  Flags flags;
  for (int i = 1; i < argc; ++i) {
    std::string word = argv[i];
    if (word.rfind("--", 0) != 0) {
      refuse("not a flag:", word);
    }
    const size_t equals = word.find('=');
    const std::string name = word.substr(2, equals == std::string::npos ? equals : equals - 2);
    std::string value;
    if (equals != std::string::npos) {
      value = word.substr(equals + 1);
    } else if (i + 1 < argc) {
      value = argv[++i];
    }
    if (name == "model_path") {
      flags.model_path = value;
    } else if (name == "num_executions") {
      flags.num_executions = number(name, value);
    } else if (name == "cpu_threads") {
      flags.cpu_threads = number(name, value);
    } else if (name == "etdump_path") {
      flags.etdump_path = value;
    } else {
      refuse("unknown command line flag", name);
    }
  }
  return flags;
}

[[noreturn]] void fail(const char* what, Error error) {
  ET_LOG(Error, "%s: 0x%x", what, static_cast<unsigned>(error));
  std::exit(1);
}

template <typename T>
T got(executorch::runtime::Result<T> result, const char* failure) {
  if (!result.ok()) {
    fail(failure, result.error());
  }
  return std::move(result.get());
}

void use_threads(long count) {
  auto* pool = executorch::extension::threadpool::get_threadpool();
  if (count > 0 && (pool == nullptr || !pool->_unsafe_reset_threadpool(static_cast<uint32_t>(count)))) {
    refuse("cannot use so many threads:", std::to_string(count));
  }
  if (pool != nullptr) {
    ET_LOG(Info, "Threads of the CPU: %zu", pool->get_thread_count());
  }
}

// A program names its backends when it is exported: these compute, or the method does not load.
void say_backends(const MethodMeta& meta) {
  for (size_t i = 0; i < meta.num_backends(); ++i) {
    ET_LOG(Info, "Method uses backend %s", got(meta.get_backend_name(i), "Cannot name a backend"));
  }
  if (meta.num_backends() == 0) {
    ET_LOG(Info, "Method is left to the kernels of the CPU, delegate calls: 0");
  }
}

std::vector<TensorPtr> ones(const MethodMeta& meta) {
  std::vector<TensorPtr> found(meta.num_inputs());
  for (size_t i = 0; i < meta.num_inputs(); ++i) {
    if (got(meta.input_tag(i), "Cannot read an input") != Tag::Tensor) {
      continue;
    }
    const auto info = got(meta.input_tensor_meta(i), "Cannot read an input's shape");
    const std::vector<executorch::aten::SizesType> sizes(info.sizes().begin(), info.sizes().end());
    found[i] = executorch::extension::full(sizes, 1, info.scalar_type());
  }
  return found;
}

void set_inputs(Method& method, const std::vector<TensorPtr>& inputs) {
  for (size_t i = 0; i < inputs.size(); ++i) {
    const Error error = inputs[i] ? method.set_input(EValue(*inputs[i]), i) : Error::Ok;
    if (error != Error::Ok) {
      fail("Could not set an input", error);
    }
  }
}

void show_output(const Method& method, size_t index) {
  const EValue& value = method.get_output(index);
  if (!value.isTensor()) {
    std::printf("OutputX %zu: no tensor\n", index);
    return;
  }
  const auto tensor = value.toTensor();
  std::printf("OutputX %zu: tensor(sizes=[", index);
  for (ssize_t i = 0; i < tensor.dim(); ++i) {
    std::printf("%s%d", i == 0 ? "" : ", ", static_cast<int>(tensor.size(i)));
  }
  std::printf("], [");
  const bool is_float = tensor.scalar_type() == executorch::aten::ScalarType::Float;
  for (ssize_t i = 0; is_float && i < tensor.numel() && i < kMostShown; ++i) {
    std::printf("%s%g", i == 0 ? "" : ", ", tensor.const_data_ptr<float>()[i]);
  }
  std::printf("%s])\n", is_float && tensor.numel() <= kMostShown ? "" : ", ...");
}

double ns_since(et_timestamp_t start) {
  const et_timestamp_t end = et_pal_current_ticks();
  const auto ticks = et_pal_ticks_to_ns_multiplier();
  return static_cast<double>(end - start) * ticks.numerator / ticks.denominator;
}

std::vector<double> timed_ms(Method& method, const std::vector<TensorPtr>& inputs, long count) {
  std::vector<double> times;
  times.reserve(count > 0 ? count : 0);
  for (long i = 0; i < count; ++i) {
    // Before each execution, outside of the clock: planned memory of inputs is used for other tensors as well.
    set_inputs(method, inputs);
    const et_timestamp_t start = et_pal_current_ticks();
    const Error error = method.execute();
    times.push_back(ns_since(start) / 1e6);
    if (error != Error::Ok) {
      fail("Execution of method forward failed with status", error);
    }
  }
  return times;
}

void write_etdump(ETDumpGen& tracer, const std::string& path) {
  const auto dump = tracer.get_etdump_data();
  std::FILE* file = dump.buf != nullptr && dump.size > 0 ? std::fopen(path.c_str(), "wb") : nullptr;
  const bool is_written = file != nullptr && std::fwrite(dump.buf, 1, dump.size, file) == dump.size;
  if (file == nullptr || std::fclose(file) != 0 || !is_written) {
    refuse("cannot write the ETDump", path);
  }
  std::free(dump.buf);
  ET_LOG(Info, "ETDump of %zu bytes is written to %s", dump.size, path.c_str());
}

} // namespace

int main(int argc, char** argv) {
  executorch::runtime::runtime_init();
  const Flags flags = flags_of(argc, argv);
  use_threads(flags.cpu_threads);
  const et_timestamp_t started = et_pal_current_ticks();
  auto loader = got(FileDataLoader::from(flags.model_path.c_str()), "Failed to load model file");
  Program program = got(Program::load(&loader), "Failed to parse model file");
  ET_LOG(Info, "Model file %s is loaded.", flags.model_path.c_str());
  const char* name = got(program.get_method_name(0), "Program has no methods");
  ET_LOG(Info, "Using method %s", name);
  const MethodMeta meta = got(program.method_meta(name), "Failed to get what the method is like");
  say_backends(meta);

  MallocMemoryAllocator method_memory;
  MallocMemoryAllocator temporary_memory;
  std::vector<std::vector<uint8_t>> planned;
  std::vector<Span<uint8_t>> spans;
  for (size_t i = 0; i < meta.num_memory_planned_buffers(); ++i) {
    planned.emplace_back(got(meta.memory_planned_buffer_size(i), "Cannot read a buffer's size"));
    spans.emplace_back(planned.back().data(), planned.back().size());
  }
  HierarchicalAllocator planned_memory({spans.data(), spans.size()});
  MemoryManager memory(&method_memory, &planned_memory, &temporary_memory);
  const auto tracer = flags.etdump_path.empty() ? nullptr : std::make_unique<ETDumpGen>();
  Method method = got(program.load_method(name, &memory, tracer.get()), "Failed to load method forward, error");
  ET_LOG(Info, "Model loaded in %f ms.", ns_since(started) / 1e6);
  const std::vector<double> times = timed_ms(method, ones(meta), flags.num_executions);
  // Behind the loop, like the newest of the originals: printing takes time.
  for (long i = 0; i < flags.num_executions && flags.num_executions <= kMostIterations; ++i) {
    ET_LOG(Info, "Iteration %ld of %ld: %f ms", i + 1, flags.num_executions, times[i]);
  }
  const double total_ms = std::accumulate(times.begin(), times.end(), 0.0);
  ET_LOG(Info, "Model executed successfully %ld time(s) in %f ms.", flags.num_executions, total_ms);
  ET_LOG(Info, "%zu outputs: ", method.outputs_size());
  for (size_t i = 0; i < method.outputs_size(); ++i) {
    show_output(method, i);
  }
  if (tracer != nullptr) {
    write_etdump(*tracer, flags.etdump_path);
  }
  return 0;
}
