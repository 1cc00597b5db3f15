// A virtual phone is a folder: the library is in its `lib`, what getprop prints and logcat reads are beside that.
#include "device_log.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <ctime>
#include <fstream>

namespace nnapi_reference {
namespace {

// The phone's folder; empty where the library was loaded from elsewhere.
std::string phone_folder() {
    Dl_info info;
    if (dladdr(reinterpret_cast<const void*>(&is_placement_logged), &info) == 0 || info.dli_fname == nullptr) return "";
    const std::string path = info.dli_fname;
    const size_t name = path.rfind('/');
    const size_t folder = name == std::string::npos || name == 0 ? std::string::npos : path.rfind('/', name - 1);
    if (folder == std::string::npos || path.compare(folder, name - folder, "/lib") != 0) return "";
    const std::string state = path.substr(0, folder);
    return access((state + "/properties").c_str(), R_OK) == 0 ? state : "";
}

// Of logcat's format `threadtime`.
std::string time_text() {
    const auto now = std::chrono::system_clock::now();
    const std::time_t seconds = std::chrono::system_clock::to_time_t(now);
    const auto since_epoch = std::chrono::duration_cast<std::chrono::milliseconds>(now.time_since_epoch());
    std::tm local{};
    localtime_r(&seconds, &local);
    char text[32], whole[40];
    std::strftime(text, sizeof text, "%m-%d %H:%M:%S", &local);
    std::snprintf(whole, sizeof whole, "%s.%03d", text, static_cast<int>(since_epoch.count() % 1000));
    return whole;
}

}  // namespace

bool is_placement_logged() {
    const std::string state = phone_folder();
    if (state.empty()) return false;
    const std::string start = "[debug.nn.vlog]: [";
    std::ifstream properties(state + "/properties");
    for (std::string line; std::getline(properties, line);)
        if (line.compare(0, start.size(), start) == 0) {
            const std::string value = line.substr(start.size(), line.size() - start.size() - 1);
            return !value.empty() && value != "0";
        }
    return false;
}

void log_lines(const char* tag, const std::vector<std::string>& lines) {
    const std::string state = phone_folder();
    if (state.empty()) return;
    const std::string head = time_text() + " " + std::to_string(getpid()) + " " +
                             std::to_string(syscall(SYS_gettid)) + " V " + tag + ": ";
    std::string text;
    for (const std::string& line : lines) text += head + line + "\n";
    const int file = open((state + "/logcat").c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0644);
    if (file < 0) return;
    // At once: lines of other processes stay whole.
    if (write(file, text.data(), text.size()) < 0) std::perror("nnapi-reference: logcat");
    close(file);
}

}  // namespace nnapi_reference
