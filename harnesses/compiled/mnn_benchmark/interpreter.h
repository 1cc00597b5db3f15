// The part of MNN's C++ interface that this program calls.
//
// The wheel `MNN` has the library inside of its module for Python, and no header. Names and layouts are those of
// include/MNN in alibaba/MNN (Interpreter.hpp, Tensor.hpp, MNNForwardType.h, HalideRuntime.h), tried with 3.6.1.
// The library was compiled with the strings that libstdc++ had before C++11: _GLIBCXX_USE_CXX11_ABI=0.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

enum MNNForwardType : int { MNN_FORWARD_CPU = 0 };

enum halide_type_code_t : uint32_t { halide_type_int = 0, halide_type_uint = 1, halide_type_float = 2 };
struct halide_type_t {
  halide_type_code_t code;
  uint8_t bits;
  uint16_t lanes;
};
struct halide_buffer_t {
  uint64_t device;
  const void* device_interface;
  uint8_t* host;
  uint64_t flags;
  halide_type_t type;
  int32_t dimensions;
  void* dim;
  void* padding;
};

namespace MNN {

struct BackendConfig {
  enum MemoryMode : int { Memory_Normal = 0 } memory = Memory_Normal;
  enum PowerMode : int { Power_Normal = 0, Power_High = 1 } power = Power_Normal;
  enum PrecisionMode : int { Precision_Normal = 0 } precision = Precision_Normal;
  void* shared_context = nullptr;
};

struct ScheduleConfig {
  std::vector<std::string> saved_tensors;
  MNNForwardType type = MNN_FORWARD_CPU;
  int thread_count = 4;
  struct {
    std::vector<std::string> inputs;
    std::vector<std::string> outputs;
    int mode = 0;
  } path;
  MNNForwardType backup_type = MNN_FORWARD_CPU;
  BackendConfig* backend = nullptr;
};

class Session;

class Tensor {
 public:
  // Returns a tensor in host memory like one of a session, with its values or without.
  static Tensor* createHostTensorFromDevice(const Tensor*, bool copies);
  // Both return whether this is a tensor of a session.
  bool copyFromHostTensor(const Tensor*);
  bool copyToHostTensor(Tensor*) const;
  std::vector<int> shape() const;

  halide_type_t type() const { return buffer_.type; }
  void* host() const { return buffer_.host; }

 private:
  halide_buffer_t buffer_;
};

class Interpreter {
 public:
  enum SessionMode : int { Session_Release = 1 };

  // Null where it is no network.
  static Interpreter* createFromFile(const char* path);
  void setSessionMode(SessionMode);
  Session* createSession(const ScheduleConfig&);
  void releaseModel();
  // Without a name, the first.
  Tensor* getSessionInput(const Session*, const char* name);
  Tensor* getSessionOutput(const Session*, const char* name);
  // By their names.
  const std::map<std::string, Tensor*>& getSessionInputAll(const Session*) const;
  // 0 is success.
  int runSession(Session*) const;
};

}  // namespace MNN
