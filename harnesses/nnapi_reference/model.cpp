// Models, what is made of them, and their execution, one operation after another on the calling thread.
#include "model.h"

#include <algorithm>
#include <cstring>

#include "device_log.h"

using nnapi_reference::BadData;
using nnapi_reference::Operation;
using nnapi_reference::Tensor;

namespace {


Tensor tensor_of(const ANeuralNetworksOperandType& type) {
    nnapi_reference::element_bytes(type.type);
    Tensor tensor;
    tensor.type = type.type;
    if (type.dimensionCount > 0) tensor.dims.assign(type.dimensions, type.dimensions + type.dimensionCount);
    tensor.scale = type.scale;
    tensor.zero_point = type.zeroPoint;
    return tensor;
}

size_t size_bytes(const Tensor& tensor) { return tensor.count() * nnapi_reference::element_bytes(tensor.type); }

}  // namespace

Tensor& ANeuralNetworksModel::operand(uint32_t index) {
    if (index >= operands.size()) throw BadData("an operand that the model lacks");
    return operands[index];
}

void ANeuralNetworksModel::check_open() const {
    if (is_finished) throw BadData("a finished model is changed");
}

void ANeuralNetworksModel::add_operand(const ANeuralNetworksOperandType& type) {
    check_open();
    operands.push_back(tensor_of(type));
}

void ANeuralNetworksModel::set_value(int32_t index, const void* buffer, size_t length, bool copies) {
    check_open();
    Tensor& tensor = operand(static_cast<uint32_t>(index));
    // A value left out.
    if (buffer == nullptr) return;
    if (length != size_bytes(tensor)) throw BadData("a constant has another size than its operand");
    const uint8_t* bytes = static_cast<const uint8_t*>(buffer);
    tensor.size_bytes = length;
    if (copies) {
        tensor.storage.assign(bytes, bytes + length);
        bytes = tensor.storage.data();
    }
    tensor.data = bytes;
}

void ANeuralNetworksModel::add_operation(int32_t type, std::vector<uint32_t> in, std::vector<uint32_t> out) {
    check_open();
    if (nnapi_reference::operation_name(type) == nullptr) throw BadData("no operation " + std::to_string(type));
    for (uint32_t index : in) operand(index);
    for (uint32_t index : out) operand(index);
    if (out.size() != 1) throw BadData("an operation without exactly one output");
    operations.push_back({type, std::move(in), std::move(out)});
}

void ANeuralNetworksModel::identify(std::vector<uint32_t> in, std::vector<uint32_t> out) {
    check_open();
    for (uint32_t index : in) operand(index);
    for (uint32_t index : out) operand(index);
    inputs = std::move(in), outputs = std::move(out);
}

void ANeuralNetworksModel::finish() {
    check_open();
    std::vector<bool> has_value(operands.size());
    for (size_t i = 0; i < operands.size(); ++i) has_value[i] = operands[i].data != nullptr;
    for (uint32_t index : inputs) has_value[index] = true;
    for (const Operation& operation : operations) {
        for (uint32_t index : operation.inputs)
            if (!has_value[index]) throw BadData("an operation reads what no earlier one writes");
        if (has_value[operation.outputs[0]]) throw BadData("an operand is written twice");
        has_value[operation.outputs[0]] = true;
    }
    for (uint32_t index : outputs)
        if (!has_value[index]) throw BadData("no operation writes an output of the model");
    is_finished = true;
}

ANeuralNetworksCompilation::ANeuralNetworksCompilation(const ANeuralNetworksModel& source) {
    if (!source.is_finished) throw BadData("a model that is not finished is compiled");
    auto copy = std::make_shared<ANeuralNetworksModel>(source);
    for (Tensor& tensor : copy->operands)
        if (!tensor.storage.empty()) tensor.data = tensor.storage.data();
    model = std::move(copy);
}

void ANeuralNetworksCompilation::finish() {
    last_read.resize(model->operations.size());
    std::vector<bool> is_read(model->operands.size(), false);
    for (uint32_t index : model->outputs) is_read[index] = true;
    for (size_t at = model->operations.size(); at-- > 0;)
        for (uint32_t index : model->operations[at].inputs)
            if (!is_read[index] && model->operands[index].data == nullptr) {
                is_read[index] = true;
                last_read[at].push_back(index);
            }
    is_finished = true;
    if (!nnapi_reference::is_placement_logged()) return;
    // In the words of Android's partitioner, which is what shows placements on phones.
    std::vector<std::string> lines;
    for (const Operation& operation : model->operations)
        lines.push_back(std::string("ModelBuilder::findBestDeviceForEachOperation(") +
                        nnapi_reference::operation_name(operation.type) + ") = 0 (nnapi-reference)");
    lines.push_back("ModelBuilder::partitionTheWork: only one best device: 0 = nnapi-reference");
    nnapi_reference::log_lines("ExecutionPlan", lines);
}

ANeuralNetworksExecution::ANeuralNetworksExecution(const ANeuralNetworksCompilation& source) : compilation(source) {
    if (!source.is_finished) throw BadData("a compilation that is not finished is executed");
    for (const Tensor& operand : source.model->operands) {
        Tensor tensor;
        tensor.type = operand.type, tensor.dims = operand.dims;
        tensor.scale = operand.scale, tensor.zero_point = operand.zero_point;
        tensor.data = operand.data, tensor.size_bytes = operand.size_bytes;
        operands.push_back(std::move(tensor));
    }
    results.resize(source.model->outputs.size());
}

void ANeuralNetworksExecution::set_input(int32_t index, const ANeuralNetworksOperandType* type, const void* buffer,
                                         size_t length) {
    const std::vector<uint32_t>& inputs = compilation.model->inputs;
    if (index < 0 || static_cast<size_t>(index) >= inputs.size()) throw BadData("an input that the model lacks");
    Tensor& tensor = operands[inputs[index]];
    if (type != nullptr) {
        const Tensor given = tensor_of(*type);
        bool agrees = given.type == tensor.type && (tensor.dims.empty() || given.dims.size() == tensor.dims.size());
        for (size_t i = 0; agrees && i < tensor.dims.size(); ++i)
            agrees = tensor.dims[i] == 0 || tensor.dims[i] == given.dims[i];
        if (!agrees) throw BadData("an input has another type or shape than in the model");
        tensor.dims = given.dims;
    }
    if (length != size_bytes(tensor)) throw BadData("an input has another size than in the model");
    tensor.data = static_cast<const uint8_t*>(buffer);
    tensor.size_bytes = length;
}

void ANeuralNetworksExecution::set_output(int32_t index, void* buffer, size_t length) {
    if (index < 0 || static_cast<size_t>(index) >= results.size()) throw BadData("an output that the model lacks");
    results[index] = {static_cast<uint8_t*>(buffer), length, true};
}

int ANeuralNetworksExecution::compute() {
    const ANeuralNetworksModel& model = *compilation.model;
    if (is_computed) throw BadData("an execution is started twice");
    for (uint32_t index : model.inputs)
        if (operands[index].data == nullptr) throw BadData("an input was not given");
    for (const Buffer& buffer : results)
        if (!buffer.is_given) throw BadData("an output was not given a place");
    for (size_t at = 0; at < model.operations.size(); ++at) {
        const Operation& operation = model.operations[at];
        std::vector<const Tensor*> inputs;
        for (uint32_t index : operation.inputs) inputs.push_back(&operands[index]);
        nnapi_reference::compute(operation.type, {std::move(inputs), operands[operation.outputs[0]]});
        for (uint32_t index : compilation.last_read[at]) operands[index].storage = {};
    }
    is_computed = true;
    for (size_t i = 0; i < results.size(); ++i) {
        const Tensor& tensor = operands[model.outputs[i]];
        if (results[i].length < tensor.size_bytes) return ANEURALNETWORKS_OUTPUT_INSUFFICIENT_SIZE;
        std::copy_n(tensor.as<uint8_t>(), tensor.size_bytes, results[i].data);
    }
    return ANEURALNETWORKS_NO_ERROR;
}

const Tensor& ANeuralNetworksExecution::output(int32_t index) const {
    if (!is_computed || index < 0 || static_cast<size_t>(index) >= results.size())
        throw BadData("an output that the execution lacks");
    return operands[compilation.model->outputs[index]];
}
