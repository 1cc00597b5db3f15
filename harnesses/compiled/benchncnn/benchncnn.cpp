// A runner of ncnn's networks, for builds of ncnn from a source distribution, which does not have its benchncnn.
//
// Arguments by position, `param=` and `shape=`, weights of zeros, options, inputs, warm-up, what the clock covers and the
// row of the result are those of the original since 2023. It also prints the time of each inference, and of the network
// from its file and zeros instead of weights, which the original does not, and ends with an error where the original goes
// on without its network or its GPU.

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <numeric>
#include <string>
#include <vector>

#include "allocator.h"
#include "cpu.h"
#include "datareader.h"
#include "net.h"
#include "platform.h"

namespace {

constexpr int kWarmUps = 8;
constexpr int kCoolingDownS = 10;
// More lines than these are cut off on their way; the mean is printed in any case.
constexpr size_t kMostIterations = 10000;

using Clock = std::chrono::steady_clock;

struct Arguments {
  int loop_count = 4;
  int num_threads = 1;
  int powersave = 0;
  int gpu_device = -1;
  int cooling_down = 1;
  std::string param;
  std::vector<ncnn::Mat> inputs;
};

// Zeros, however many are asked for.
class Zeros : public ncnn::DataReader {
 public:
  int scan(const char*, void*) const override { return 0; }
  size_t read(void* buffer, size_t size) const override {
    std::memset(buffer, 0, size);
    return size;
  }
};

[[noreturn]] void refuse(const std::string& what) {
  std::fprintf(stderr, "ERROR: %s\n", what.c_str());
  std::exit(1);
}

int number(const std::string& word) {
  char* end = nullptr;
  const long found = std::strtol(word.c_str(), &end, 10);
  if (word.empty() || *end != '\0') {
    refuse("invalid number '" + word + "'");
  }
  return static_cast<int>(found);
}

// The fastest dimension comes first.
ncnn::Mat input_of(const std::vector<int>& shape) {
  switch (shape.size()) {
    case 1: return ncnn::Mat(shape[0]);
    case 2: return ncnn::Mat(shape[0], shape[1]);
    case 3: return ncnn::Mat(shape[0], shape[1], shape[2]);
    case 4: return ncnn::Mat(shape[0], shape[1], shape[2], shape[3]);
    default: refuse("an input has one to four dimensions");
  }
}

// `[224,224,3]`, several by comma.
std::vector<ncnn::Mat> inputs_of(const std::string& text) {
  std::vector<ncnn::Mat> inputs;
  for (size_t at = 0; (at = text.find('[', at)) != std::string::npos;) {
    const size_t end = text.find(']', at);
    if (end == std::string::npos) {
      break;
    }
    std::vector<int> shape;
    for (++at; at <= end;) {
      const size_t stop = std::min(text.find(',', at), end);
      shape.push_back(number(text.substr(at, stop - at)));
      at = stop + 1;
    }
    inputs.push_back(input_of(shape));
    inputs.back().fill(0.01f);
  }
  if (inputs.empty()) {
    refuse("no shape in '" + text + "'");
  }
  return inputs;
}

Arguments arguments_of(int argc, char** argv) {
  Arguments found;
  int* const numbers[] = {&found.loop_count, &found.num_threads, &found.powersave, &found.gpu_device,
                          &found.cooling_down};
  int position = 0;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    if (word.rfind("param=", 0) == 0) {
      found.param = word.substr(6);
    } else if (word.rfind("shape=", 0) == 0) {
      found.inputs = inputs_of(word.substr(6));
    } else if (position < 5) {
      *numbers[position++] = number(word);
    } else {
      refuse("unknown argument '" + word + "'");
    }
  }
  if (found.param.empty() || found.inputs.empty()) {
    refuse("usage: benchncnn LOOP_COUNT NUM_THREADS POWERSAVE GPU_DEVICE COOLING_DOWN param=FILE shape=[W,H,C],...");
  }
  if (found.loop_count < 1) {
    refuse("loop_count is at least 1");
  }
  return found;
}

// Returns the milliseconds that an inference took, with its extractor.
double inference_ms(const ncnn::Net& net, const std::vector<ncnn::Mat>& inputs) {
  const auto start = Clock::now();
  int failed = 0;
  {
    ncnn::Extractor extractor = net.create_extractor();
    for (size_t i = 0; i < inputs.size(); ++i) {
      failed |= extractor.input(net.input_names()[i], inputs[i]);
    }
    for (const char* name : net.output_names()) {
      ncnn::Mat output;
      failed |= extractor.extract(name, output);
    }
  }
  const double ms = std::chrono::duration<double, std::milli>(Clock::now() - start).count();
  if (failed != 0) {
    refuse("the inference failed");
  }
  return ms;
}

}  // namespace

int main(int argc, char** argv) {
  const Arguments arguments = arguments_of(argc, argv);
  if (arguments.gpu_device != -1) {
    refuse("Vulkan is not supported in this build");
  }
  ncnn::set_cpu_powersave(arguments.powersave);
  ncnn::set_omp_dynamic(0);
  ncnn::set_omp_num_threads(arguments.num_threads);
  std::fprintf(stderr, "loop_count = %d\n", arguments.loop_count);
  std::fprintf(stderr, "num_threads = %d\n", arguments.num_threads);
  std::fprintf(stderr, "powersave = %d\n", ncnn::get_cpu_powersave());
  std::fprintf(stderr, "gpu_device = %d\n", arguments.gpu_device);
  std::fprintf(stderr, "cooling_down = %d\n", arguments.cooling_down);

  ncnn::UnlockedPoolAllocator blobs;
  ncnn::PoolAllocator workspace;
  blobs.set_size_compare_ratio(0.f);
  workspace.set_size_compare_ratio(0.f);
  ncnn::Net net;
  net.opt.lightmode = true;
  net.opt.num_threads = arguments.num_threads;
  net.opt.blob_allocator = &blobs;
  net.opt.workspace_allocator = &workspace;
  net.opt.use_winograd_convolution = true;
  net.opt.use_sgemm_convolution = true;
  net.opt.use_int8_inference = true;
  net.opt.use_fp16_packed = true;
  net.opt.use_fp16_storage = true;
  net.opt.use_fp16_arithmetic = true;
  net.opt.use_int8_storage = true;
  net.opt.use_int8_arithmetic = true;
  net.opt.use_packing_layout = true;
  const auto start = Clock::now();
  if (net.load_param(arguments.param.c_str()) != 0 || net.load_model(Zeros()) != 0) {
    refuse("the network cannot be loaded: " + arguments.param);
  }
  std::fprintf(stderr, "Model loaded in %.6f ms\n",
               std::chrono::duration<double, std::milli>(Clock::now() - start).count());
  if (net.input_names().size() != arguments.inputs.size()) {
    refuse("the network has " + std::to_string(net.input_names().size()) + " inputs, and shape= states " +
           std::to_string(arguments.inputs.size()));
  }
  if (arguments.cooling_down != 0) {
    sleep(kCoolingDownS);
  }
  for (int i = 0; i < kWarmUps; ++i) {
    inference_ms(net, arguments.inputs);
  }
  std::vector<double> times(arguments.loop_count);
  std::generate(times.begin(), times.end(), [&] { return inference_ms(net, arguments.inputs); });
  // Behind the loop: printing takes time.
  for (size_t i = 0; i < times.size() && times.size() <= kMostIterations; ++i) {
    std::fprintf(stderr, "Iteration %zu of %zu: %.6f ms\n", i + 1, times.size(), times[i]);
  }
  const auto [low, high] = std::minmax_element(times.begin(), times.end());
  const double mean = std::accumulate(times.begin(), times.end(), 0.0) / times.size();
  const size_t name = arguments.param.rfind('/') + 1;
  std::fprintf(stderr, "%20s  min = %7.2f  max = %7.2f  avg = %7.2f\n", arguments.param.substr(name).c_str(), *low,
               *high, mean);
  // ncnn keeps what the allocators gave out until the network is cleared.
  net.clear();
  return 0;
}
