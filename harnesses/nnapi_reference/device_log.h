// The log of the phone that the library is installed on.
#pragma once

#include <string>
#include <vector>

namespace nnapi_reference {

// Tell whether the property `debug.nn.vlog` asks for the log of how models are placed.
bool is_placement_logged();

// Append lines under a tag. Does nothing where the library is on no virtual phone.
void log_lines(const char* tag, const std::vector<std::string>& lines);

}  // namespace nnapi_reference
