// A runner of .mnn files for devices whose ABI the wheel `MNN` has a library for.
//
// MNN's own benchmark.out is in no wheel. Arguments by position, warm-up, what the clock covers and the lines of the
// result are those of the original. It runs the weights of the file, where the original makes others at random, and
// fills the input with ones. It has the CPU only, prints the time of each inference and the first values of the output,
// and ends with an error where the original goes on.

#include <dirent.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <numeric>
#include <string>
#include <vector>

#include "interpreter.h"

namespace {

using Clock = std::chrono::steady_clock;
using MNN::Tensor;

constexpr size_t kMostShown = 8;
// More lines than these are cut off on their way; the mean is printed in any case.
constexpr size_t kMostIterations = 10000;

[[noreturn]] void refuse(const std::string& what) {
  std::fprintf(stderr, "ERROR: %s\n", what.c_str());
  std::exit(1);
}

int number(const char* word) {
  char* end = nullptr;
  const long found = std::strtol(word, &end, 10);
  if (*word == '\0' || *end != '\0' || found < 0) {
    refuse(std::string("invalid number '") + word + "'");
  }
  return static_cast<int>(found);
}

std::vector<std::string> files_of(const std::string& folder) {
  DIR* listed = opendir(folder.c_str());
  if (listed == nullptr) {
    refuse("open " + folder + " failed: " + std::strerror(errno));
  }
  std::vector<std::string> names;
  for (const dirent* entry; (entry = readdir(listed)) != nullptr;) {
    if (entry->d_name[0] != '.') {
      names.push_back(entry->d_name);
    }
  }
  closedir(listed);
  return names;
}

size_t count_of(const Tensor& tensor) {
  const std::vector<int> shape = tensor.shape();
  return std::accumulate(shape.begin(), shape.end(), size_t{1}, std::multiplies<>());
}

template <typename T>
void fill(void* host, size_t count) {
  std::fill_n(static_cast<T*>(host), count, T{1});
}

void fill_with_ones(const Tensor& tensor) {
  const halide_type_t type = tensor.type();
  const size_t count = count_of(tensor);
  if (type.code == halide_type_float && type.bits == 32) {
    fill<float>(tensor.host(), count);
  } else if (type.code <= halide_type_uint && type.bits == 32) {
    fill<int32_t>(tensor.host(), count);
  } else if (type.code <= halide_type_uint && type.bits == 8) {
    fill<int8_t>(tensor.host(), count);
  } else {
    refuse("the input has elements of " + std::to_string(type.bits) + " bits, which cannot be filled");
  }
}

struct Network {
  MNN::Interpreter* interpreter;
  MNN::Session* session;
  Tensor* input;
  Tensor* output;
  // In the program's memory.
  Tensor* given = nullptr;
  Tensor* taken = nullptr;

  // Returns the milliseconds that an inference took, with the copies of its input and output.
  double run() {
    const auto start = Clock::now();
    input->copyFromHostTensor(given);
    const int failed = interpreter->runSession(session);
    output->copyToHostTensor(taken);
    const double ms = std::chrono::duration<double, std::milli>(Clock::now() - start).count();
    if (failed != 0) {
      refuse("the inference failed: MNN's error " + std::to_string(failed));
    }
    return ms;
  }
};

Network loaded(const std::string& path, int threads, int precision) {
  MNN::Interpreter* interpreter = MNN::Interpreter::createFromFile(path.c_str());
  if (interpreter == nullptr) {
    refuse("the network cannot be loaded: " + path);
  }
  interpreter->setSessionMode(MNN::Interpreter::Session_Release);
  MNN::BackendConfig backend;
  backend.power = MNN::BackendConfig::Power_High;
  backend.precision = static_cast<MNN::BackendConfig::PrecisionMode>(precision);
  MNN::ScheduleConfig config;
  config.thread_count = threads;
  config.backend = &backend;
  MNN::Session* session = interpreter->createSession(config);
  if (session == nullptr) {
    refuse("no session can be created for " + path);
  }
  interpreter->releaseModel();
  Network network = {interpreter, session, interpreter->getSessionInput(session, nullptr),
                     interpreter->getSessionOutput(session, nullptr)};
  if (network.input == nullptr || network.output == nullptr) {
    refuse("the network has no input or no output: " + path);
  }
  const size_t inputs = interpreter->getSessionInputAll(session).size();
  if (inputs > 1) {
    refuse("the network has " + std::to_string(inputs) + " inputs, and one can be filled: " + path);
  }
  // MNN states a free size as -1.
  for (const int size : network.input->shape()) {
    if (size <= 0) {
      refuse("the network leaves the size of its input free: " + path);
    }
  }
  network.given = Tensor::createHostTensorFromDevice(network.input, false);
  network.taken = Tensor::createHostTensorFromDevice(network.output, false);
  fill_with_ones(*network.given);
  return network;
}

void show_values(const Tensor& tensor) {
  const bool is_float = tensor.type().code == halide_type_float && tensor.type().bits == 32;
  std::printf("Output begins with [");
  for (size_t i = 0; is_float && i < std::min(count_of(tensor), kMostShown); ++i) {
    std::printf("%s%g", i == 0 ? "" : ", ", static_cast<double>(static_cast<const float*>(tensor.host())[i]));
  }
  std::printf("]\n");
}

void benchmark(const std::string& folder, const std::string& name, int loop, int warmup, int threads, int precision) {
  const auto started = Clock::now();
  Network network = loaded(folder + "/" + name, threads, precision);
  std::printf("Model loaded in %.6f ms.\n", std::chrono::duration<double, std::milli>(Clock::now() - started).count());
  for (int i = 0; i < warmup; ++i) {
    network.run();
  }
  std::vector<double> times(loop);
  std::generate(times.begin(), times.end(), [&] { return network.run(); });
  // Behind the loop: printing takes time.
  for (size_t i = 0; i < times.size() && times.size() <= kMostIterations; ++i) {
    std::printf("Iteration %zu of %zu: %.6f ms\n", i + 1, times.size(), times[i]);
  }
  show_values(*network.taken);
  const auto [low, high] = std::minmax_element(times.begin(), times.end());
  std::printf("[ - ] %-24s    max = %8.3f ms  min = %8.3f ms  avg = %8.3f ms\n", name.c_str(), *high, *low,
              std::accumulate(times.begin(), times.end(), 0.0) / times.size());
}

}  // namespace

int main(int argc, char** argv) {
  if (argc <= 2 || argc > 7) {
    refuse("Usage: mnn_benchmark models_folder loop_count [warmup] [forwardtype] [numberThread] [precision]");
  }
  const auto argument = [&](int at, int otherwise) { return argc > at ? number(argv[at]) : otherwise; };
  const int loop = argument(2, 10);
  const int warmup = argument(3, 10);
  const int threads = argument(5, 4);
  const int precision = argument(6, 2);
  if (argument(4, MNN_FORWARD_CPU) != MNN_FORWARD_CPU) {
    refuse("Can't Find type=" + std::string(argv[4]) + " backend: this build has the CPU only");
  }
  if (loop < 1) {
    refuse("loop_count is at least 1");
  }
  std::printf("MNN benchmark\nForward type: CPU thread=%d precision=%d\n", threads, precision);
  std::printf("--------> Benchmarking... loop = %d, warmup = %d\n", loop, warmup);
  for (const std::string& name : files_of(argv[1])) {
    benchmark(argv[1], name, loop, warmup, threads, precision);
  }
  // MNN's threads are ended by the process: its own clean-up is that of a module for Python.
  std::fflush(stdout);
  std::_Exit(0);
}
