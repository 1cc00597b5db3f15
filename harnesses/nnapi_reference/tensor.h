// Operands of a model, and what the operations compute on.
#pragma once

#include <cstdint>
#include <limits>
#include <stdexcept>
#include <string>
#include <vector>

#include "neural_networks.h"

namespace nnapi_reference {

// A model, a value or a call that the library refuses; becomes ANEURALNETWORKS_BAD_DATA.
struct BadData : std::runtime_error {
    using std::runtime_error::runtime_error;
};

using Dims = std::vector<uint32_t>;

// The number of elements; 1 for a scalar, 0 where a dimension is unknown.
inline size_t element_count(const Dims& dims) {
    size_t count = 1;
    for (uint32_t dim : dims) {
        if (dim != 0 && count > std::numeric_limits<uint32_t>::max() / dim) throw BadData("an operand is too large");
        count *= dim;
    }
    return count;
}

// An operand. `data` is where its value is: a constant, a caller's buffer or `storage`; null until it has one.
struct Tensor {
    int32_t type = 0;
    Dims dims;
    float scale = 0;
    int32_t zero_point = 0;
    const uint8_t* data = nullptr;
    size_t size_bytes = 0;
    std::vector<uint8_t> storage;

    bool is_quantized() const { return type == ANEURALNETWORKS_TENSOR_QUANT8_ASYMM; }
    size_t count() const { return element_count(dims); }
    template <typename T>
    const T* as() const {
        if (data == nullptr) throw BadData("an operand without a value is read");
        return reinterpret_cast<const T*>(data);
    }
};

// Bytes of one element. Throws BadData for types that the library does not have.
size_t element_bytes(int32_t type);

struct Range {
    float low;
    float high;
};

// The values that a fused activation lets pass.
Range activation_range(int32_t fuse_code);

// The inputs and the output of one operation. The operation sets the output's dimensions, then its values.
class Arguments {
  public:
    Arguments(std::vector<const Tensor*> inputs, Tensor& output) : inputs_(std::move(inputs)), output_(output) {}

    size_t size() const { return inputs_.size(); }
    const Tensor& input(size_t at) const {
        if (at >= inputs_.size()) throw BadData("an operation has too few inputs");
        return *inputs_[at];
    }
    Tensor& output() const { return output_; }
    int32_t integer(size_t at) const;
    int32_t integer_or(size_t at, int32_t absent) const { return at < size() ? integer(at) : absent; }
    float real(size_t at) const;
    bool flag_or(size_t at, bool absent) const;
    // A vector of integers: axes, a permutation or a shape.
    std::vector<int32_t> integers(size_t at) const;
    // The real values of a tensor: dequantized where it has 8 bits.
    std::vector<float> values(size_t at) const;
    // Give the output its dimensions and space. Throws BadData where the model declares others.
    void shape_output(const Dims& dims) const;
    // Write real values to the output: quantized, rounded half to even, where it has 8 bits.
    void write(const std::vector<float>& values, Range range = activation_range(0)) const;

  private:
    std::vector<const Tensor*> inputs_;
    Tensor& output_;
};

// Return the name of an operation as Android's log has it; null for those that the library does not have.
const char* operation_name(int32_t operation);

// Compute one operation. Throws BadData for arguments that it does not have.
void compute(int32_t operation, const Arguments& arguments);

// Of the operations: each file has some of them.
void convolve(const Arguments& arguments, bool depthwise);
void fully_connected(const Arguments& arguments);
void pool(const Arguments& arguments, bool average);
void binary(const Arguments& arguments, int32_t operation);
void unary(const Arguments& arguments, int32_t operation);
void softmax(const Arguments& arguments);
void mean(const Arguments& arguments);
void concatenate(const Arguments& arguments);
void reshape(const Arguments& arguments);
void transpose(const Arguments& arguments);

// Swap channels-first and channels-last; `dims` are those of the source.
template <typename T>
std::vector<T> to_nhwc(const T* source, const Dims& dims) {
    size_t batch = dims[0], channels = dims[1], plane = size_t{dims[2]} * dims[3];
    std::vector<T> result(batch * channels * plane);
    for (size_t n = 0; n < batch; ++n)
        for (size_t c = 0; c < channels; ++c)
            for (size_t p = 0; p < plane; ++p)
                result[(n * plane + p) * channels + c] = source[(n * channels + c) * plane + p];
    return result;
}

template <typename T>
std::vector<T> to_nchw(const T* source, const Dims& dims) {
    size_t batch = dims[0], channels = dims[3], plane = size_t{dims[1]} * dims[2];
    std::vector<T> result(batch * channels * plane);
    for (size_t n = 0; n < batch; ++n)
        for (size_t c = 0; c < channels; ++c)
            for (size_t p = 0; p < plane; ++p)
                result[(n * channels + c) * plane + p] = source[(n * plane + p) * channels + c];
    return result;
}

// The window of a convolution or a pool over an image in NHWC.
struct Window {
    uint32_t kernel_h, kernel_w, stride_h, stride_w, pad_top, pad_bottom, pad_left, pad_right;

    uint32_t out_h(uint32_t in_h) const { return out(in_h, pad_top + pad_bottom, kernel_h, stride_h); }
    uint32_t out_w(uint32_t in_w) const { return out(in_w, pad_left + pad_right, kernel_w, stride_w); }

  private:
    static uint32_t out(uint32_t size, uint32_t padding, uint32_t kernel, uint32_t stride) {
        if (kernel == 0 || kernel > size + padding) throw BadData("a window is larger than its padded image");
        return (size + padding - kernel) / stride + 1;
    }
};

// Of the inputs from `at` on: padding left, right, top and bottom, then the strides. The kernel stays 0.
Window explicit_window(const Arguments& arguments, size_t at);

}  // namespace nnapi_reference
