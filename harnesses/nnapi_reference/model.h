// What the handles of the C interface point to.
#pragma once

#include <memory>

#include "tensor.h"

struct ANeuralNetworksDevice {
    const char* name;
    const char* version;
    int32_t type;
    int64_t feature_level;
};

struct ANeuralNetworksMemory {
    uint8_t* data;
    size_t size;
    // Of the mapping, which begins at a page.
    void* mapped;
    size_t mapped_size;
};

struct ANeuralNetworksEvent {
    int result;
};

namespace nnapi_reference {

// Constants up to this size are copied; larger ones stay the caller's, as the interface defines.
constexpr size_t max_copied_bytes = 128;

struct Operation {
    int32_t type;
    std::vector<uint32_t> inputs, outputs;
};

}  // namespace nnapi_reference

struct ANeuralNetworksModel {
    std::vector<nnapi_reference::Tensor> operands;
    std::vector<nnapi_reference::Operation> operations;
    std::vector<uint32_t> inputs, outputs;
    bool is_finished = false;

    void add_operand(const ANeuralNetworksOperandType& type);
    void set_value(int32_t index, const void* buffer, size_t length, bool copies);
    void add_operation(int32_t type, std::vector<uint32_t> in, std::vector<uint32_t> out);
    void identify(std::vector<uint32_t> in, std::vector<uint32_t> out);
    // Checks that each operation reads what is there by then. Throws BadData.
    void finish();

  private:
    nnapi_reference::Tensor& operand(uint32_t index);
    void check_open() const;
};

// It keeps a copy of the model, whose constants stay where they are: a caller may free the model, but not those.
struct ANeuralNetworksCompilation {
    std::shared_ptr<const ANeuralNetworksModel> model;
    // By operation: the operands that no later one reads.
    std::vector<std::vector<uint32_t>> last_read;
    bool is_finished = false;

    explicit ANeuralNetworksCompilation(const ANeuralNetworksModel& source);
    // Writes the placement to the phone's log where that is asked for.
    void finish();
};

struct ANeuralNetworksExecution {
    const ANeuralNetworksCompilation& compilation;
    // Of the model; constants point to the model's.
    std::vector<nnapi_reference::Tensor> operands;
    struct Buffer {
        uint8_t* data = nullptr;
        size_t length = 0;
        bool is_given = false;
    };
    std::vector<Buffer> results;
    bool is_computed = false;

    explicit ANeuralNetworksExecution(const ANeuralNetworksCompilation& source);
    void set_input(int32_t index, const ANeuralNetworksOperandType* type, const void* buffer, size_t length);
    void set_output(int32_t index, void* buffer, size_t length);
    // Returns a code of the interface; throws BadData.
    int compute();
    const nnapi_reference::Tensor& output(int32_t index) const;
};
