// Serves one session of TVM's RPC on standard input and output, which adb's shell connects with a client: so nothing listens on the
// phone, and the session ends with the connection.

#include "rpc_server.h"

#include <dlfcn.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>

#include <tvm/ffi/any.h>
#include <tvm/ffi/error.h>
#include <tvm/ffi/extra/module.h>
#include <tvm/ffi/function.h>
#include <tvm/ffi/string.h>

namespace {

using tvm::ffi::Bytes;
using tvm::ffi::Function;
using tvm::ffi::Module;
using tvm::ffi::String;

constexpr int kExpired = 3;
// What the client's last calls may take once it has gone.
constexpr auto kGrace = std::chrono::seconds(2);
constexpr size_t kMaxRead = 1 << 20;
// Functions that the runtime leaves out and TVM's tuner calls; runs of models do without.
constexpr const char* kFurtherFunctions = "libtvm_runtime_extra.so";

int client_in = -1;
int client_out = -1;
// Held while a message is written, so that the one of an expired session follows whole messages.
std::mutex writing;

bool wrote(const char* data, size_t size) {
  while (size > 0) {
    const ssize_t count = write(client_out, data, size);
    if (count < 0 && errno == EINTR) {
      continue;
    }
    if (count <= 0) {
      return false;
    }
    data += count;
    size -= static_cast<size_t>(count);
  }
  return true;
}

int64_t send_bytes(const Bytes& message) {
  const std::lock_guard<std::mutex> lock(writing);
  if (!wrote(message.data(), message.size())) {
    throw std::runtime_error("the client has gone");
  }
  return static_cast<int64_t>(message.size());
}

// At most so many bytes; none when the client has gone.
Bytes receive_bytes(int64_t most) {
  std::string buffer(std::min(static_cast<size_t>(most), kMaxRead), '\0');
  ssize_t count = 0;
  do {
    count = read(client_in, buffer.data(), buffer.size());
  } while (count < 0 && errno == EINTR);
  buffer.resize(count > 0 ? static_cast<size_t>(count) : 0);
  return Bytes(std::move(buffer));
}

// As TVM's server in Python names files: in the session's folder, which an empty name means, and nowhere else.
String workpath(const String& name) {
  const std::string text = name;
  if (text.find('/') != std::string::npos || text == "." || text == "..") {
    throw std::runtime_error("not the name of a file: " + text);
  }
  return String("./" + text);
}

Module load_module(const String& name) {
  const auto load = Function::GetGlobalRequired("ffi.Module.load_from_file.so");
  return load(workpath(name), "so").cast<Module>();
}

// The message by which TVM's client knows that its session has expired, which the runtime writes to sockets only.
void report_expiry(long seconds) {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends) != 0) {
    return;
  }
  const std::string text = "RPCSessionTimeoutError: Your " + std::to_string(seconds) +
      "s session has expired, or the phone is no longer held; it was ended.";
  Function::GetGlobalRequired("rpc.ReturnException")(static_cast<int64_t>(ends[0]), text);
  close(ends[0]);
  char buffer[4096];
  const std::lock_guard<std::mutex> lock(writing);
  for (ssize_t count; (count = read(ends[1], buffer, sizeof(buffer))) > 0;) {
    wrote(buffer, static_cast<size_t>(count));
  }
}

// Ends the process, whatever a library computes, when the time is over or the client has gone.
void watch(long seconds) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(seconds);
  pollfd input{client_in, POLLRDHUP, 0};
  while (true) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(end - std::chrono::steady_clock::now());
    if (left.count() <= 0) {
      // The message is not waited for longer: a client that reads nothing lets neither it nor the one before be written.
      std::thread([] {
        std::this_thread::sleep_for(kGrace);
        _exit(kExpired);
      }).detach();
      report_expiry(seconds);
      _exit(kExpired);
    }
    const auto wait = std::min<int64_t>(left.count(), 60'000);
    if (poll(&input, 1, static_cast<int>(wait)) > 0) {
      std::this_thread::sleep_for(kGrace);
      _exit(0);
    }
  }
}

} // namespace

int serve_session(long seconds) {
  client_in = dup(STDIN_FILENO);
  client_out = dup(STDOUT_FILENO);
  if (client_in < 0 || client_out < 0 || dup2(STDERR_FILENO, STDOUT_FILENO) < 0) {
    std::perror("ERROR: standard input and output");
    return 1;
  }
  if (dlopen(kFurtherFunctions, RTLD_NOW | RTLD_GLOBAL) == nullptr) {
    std::fprintf(stderr, "ERROR: %s\n", dlerror());
    return 1;
  }
  Function::SetGlobal("tvm.rpc.server.workpath", Function::FromTyped(workpath), true);
  Function::SetGlobal("tvm.rpc.server.load_module", Function::FromTyped(load_module), true);
  // By this line `farm live tvm` knows a program that serves.
  std::fprintf(stderr, "serves a session of TVM's RPC for at most %ld s\n", seconds);
  std::thread(watch, seconds).detach();
  Function::GetGlobalRequired("rpc.ServerLoop")(Function::FromTyped(send_bytes), Function::FromTyped(receive_bytes));
  // Without destructors of libraries that threads may still use.
  std::fflush(stderr);
  _exit(0);
}
