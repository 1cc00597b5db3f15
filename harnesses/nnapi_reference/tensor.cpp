// Arguments of operations, and which function computes an operation.
#include "tensor.h"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace nnapi_reference {

size_t element_bytes(int32_t type) {
    switch (type) {
        case ANEURALNETWORKS_FLOAT32:
        case ANEURALNETWORKS_INT32:
        case ANEURALNETWORKS_TENSOR_FLOAT32:
        case ANEURALNETWORKS_TENSOR_INT32:
            return 4;
        case ANEURALNETWORKS_TENSOR_QUANT8_ASYMM:
        case ANEURALNETWORKS_BOOL:
            return 1;
    }
    throw BadData("no operands of type " + std::to_string(type));
}

Range activation_range(int32_t fuse_code) {
    constexpr float infinity = std::numeric_limits<float>::infinity();
    switch (fuse_code) {
        case ANEURALNETWORKS_FUSED_NONE:
            return {-infinity, infinity};
        case ANEURALNETWORKS_FUSED_RELU:
            return {0, infinity};
        case ANEURALNETWORKS_FUSED_RELU1:
            return {-1, 1};
        case ANEURALNETWORKS_FUSED_RELU6:
            return {0, 6};
    }
    throw BadData("no fused activation " + std::to_string(fuse_code));
}

int32_t Arguments::integer(size_t at) const {
    const Tensor& tensor = input(at);
    if (tensor.type != ANEURALNETWORKS_INT32) throw BadData("an input is not an integer");
    return *tensor.as<int32_t>();
}

float Arguments::real(size_t at) const {
    const Tensor& tensor = input(at);
    if (tensor.type != ANEURALNETWORKS_FLOAT32) throw BadData("an input is not a float");
    return *tensor.as<float>();
}

bool Arguments::flag_or(size_t at, bool absent) const {
    if (at >= size()) return absent;
    const Tensor& tensor = input(at);
    if (tensor.type != ANEURALNETWORKS_BOOL) throw BadData("an input is not a bool");
    return *tensor.as<uint8_t>() != 0;
}

std::vector<int32_t> Arguments::integers(size_t at) const {
    const Tensor& tensor = input(at);
    if (tensor.type != ANEURALNETWORKS_TENSOR_INT32) throw BadData("an input is not a vector of integers");
    const int32_t* begin = tensor.as<int32_t>();
    return {begin, begin + tensor.count()};
}

std::vector<float> Arguments::values(size_t at) const {
    const Tensor& tensor = input(at);
    size_t count = tensor.count();
    std::vector<float> result(count);
    if (tensor.is_quantized()) {
        const uint8_t* source = tensor.as<uint8_t>();
        for (size_t i = 0; i < count; ++i)
            result[i] = tensor.scale * static_cast<float>(int32_t{source[i]} - tensor.zero_point);
    } else if (tensor.type == ANEURALNETWORKS_TENSOR_FLOAT32) {
        std::copy_n(tensor.as<float>(), count, result.begin());
    } else {
        throw BadData("an input is neither float32 nor quantized in 8 bits");
    }
    return result;
}

void Arguments::shape_output(const Dims& dims) const {
    const Dims& declared = output_.dims;
    bool agrees = declared.empty() || declared.size() == dims.size();
    for (size_t i = 0; agrees && i < declared.size(); ++i) agrees = declared[i] == 0 || declared[i] == dims[i];
    if (!agrees) throw BadData("an operation's output is declared in another shape");
    output_.dims = dims;
    output_.size_bytes = element_count(dims) * element_bytes(output_.type);
    output_.storage.resize(output_.size_bytes);
    output_.data = output_.storage.data();
}

void Arguments::write(const std::vector<float>& values, Range range) const {
    if (values.size() != output_.count()) throw BadData("an operation's output is declared in another size");
    if (output_.is_quantized()) {
        if (!(output_.scale > 0)) throw BadData("a quantized operand has no scale");
        uint8_t* target = output_.storage.data();
        for (size_t i = 0; i < values.size(); ++i) {
            float value = std::clamp(values[i], range.low, range.high);
            // Clamped before the zero point is added: a large value has no integer.
            float steps = std::clamp(std::nearbyint(value / output_.scale), -512.0f, 512.0f);
            target[i] = static_cast<uint8_t>(std::clamp(static_cast<int>(steps) + output_.zero_point, 0, 255));
        }
    } else if (output_.type == ANEURALNETWORKS_TENSOR_FLOAT32) {
        float* target = reinterpret_cast<float*>(output_.storage.data());
        for (size_t i = 0; i < values.size(); ++i) target[i] = std::clamp(values[i], range.low, range.high);
    } else {
        throw BadData("an output is neither float32 nor quantized in 8 bits");
    }
}

Window explicit_window(const Arguments& arguments, size_t at) {
    int32_t given[6];
    for (size_t i = 0; i < 6; ++i) given[i] = arguments.integer(at + i);
    bool are_paddings = std::all_of(given, given + 4, [](int32_t size) { return 0 <= size && size < 1 << 16; });
    if (!are_paddings || given[4] < 1 || given[5] < 1) throw BadData("a window has a wrong padding or stride");
    Window window{};
    window.pad_left = given[0], window.pad_right = given[1];
    window.pad_top = given[2], window.pad_bottom = given[3];
    window.stride_w = given[4], window.stride_h = given[5];
    return window;
}

const char* operation_name(int32_t operation) {
    switch (operation) {
        case ANEURALNETWORKS_ADD: return "ADD";
        case ANEURALNETWORKS_AVERAGE_POOL_2D: return "AVERAGE_POOL_2D";
        case ANEURALNETWORKS_CONCATENATION: return "CONCATENATION";
        case ANEURALNETWORKS_CONV_2D: return "CONV_2D";
        case ANEURALNETWORKS_DEPTHWISE_CONV_2D: return "DEPTHWISE_CONV_2D";
        case ANEURALNETWORKS_DEQUANTIZE: return "DEQUANTIZE";
        case ANEURALNETWORKS_FULLY_CONNECTED: return "FULLY_CONNECTED";
        case ANEURALNETWORKS_LOGISTIC: return "LOGISTIC";
        case ANEURALNETWORKS_MAX_POOL_2D: return "MAX_POOL_2D";
        case ANEURALNETWORKS_MEAN: return "MEAN";
        case ANEURALNETWORKS_MUL: return "MUL";
        case ANEURALNETWORKS_QUANTIZE: return "QUANTIZE";
        case ANEURALNETWORKS_RELU: return "RELU";
        case ANEURALNETWORKS_RELU1: return "RELU1";
        case ANEURALNETWORKS_RELU6: return "RELU6";
        case ANEURALNETWORKS_RESHAPE: return "RESHAPE";
        case ANEURALNETWORKS_SOFTMAX: return "SOFTMAX";
        case ANEURALNETWORKS_SUB: return "SUB";
        case ANEURALNETWORKS_TRANSPOSE: return "TRANSPOSE";
    }
    return nullptr;
}

void compute(int32_t operation, const Arguments& arguments) {
    switch (operation) {
        case ANEURALNETWORKS_CONV_2D:
        case ANEURALNETWORKS_DEPTHWISE_CONV_2D:
            return convolve(arguments, operation == ANEURALNETWORKS_DEPTHWISE_CONV_2D);
        case ANEURALNETWORKS_AVERAGE_POOL_2D:
        case ANEURALNETWORKS_MAX_POOL_2D:
            return pool(arguments, operation == ANEURALNETWORKS_AVERAGE_POOL_2D);
        case ANEURALNETWORKS_ADD:
        case ANEURALNETWORKS_MUL:
        case ANEURALNETWORKS_SUB:
            return binary(arguments, operation);
        case ANEURALNETWORKS_DEQUANTIZE:
        case ANEURALNETWORKS_LOGISTIC:
        case ANEURALNETWORKS_QUANTIZE:
        case ANEURALNETWORKS_RELU:
        case ANEURALNETWORKS_RELU1:
        case ANEURALNETWORKS_RELU6:
            return unary(arguments, operation);
        case ANEURALNETWORKS_CONCATENATION:
            return concatenate(arguments);
        case ANEURALNETWORKS_FULLY_CONNECTED:
            return fully_connected(arguments);
        case ANEURALNETWORKS_MEAN:
            return mean(arguments);
        case ANEURALNETWORKS_RESHAPE:
            return reshape(arguments);
        case ANEURALNETWORKS_SOFTMAX:
            return softmax(arguments);
        case ANEURALNETWORKS_TRANSPOSE:
            return transpose(arguments);
    }
    throw BadData("no operation " + std::to_string(operation));
}

}  // namespace nnapi_reference
