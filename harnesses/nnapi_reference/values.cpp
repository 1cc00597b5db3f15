// Operations on single values, and reductions: computed in float32, and rounded to the output's 8 bits where it has them.
#include <algorithm>
#include <cmath>

#include "tensor.h"

namespace nnapi_reference {
namespace {

// The distance between neighbours along each of the output's dimensions: 0 where the operand repeats its value.
std::vector<size_t> broadcast_steps(const Dims& dims, const Dims& out) {
    std::vector<size_t> steps(out.size(), 0);
    const size_t missing = out.size() - dims.size();
    size_t step = 1;
    for (size_t i = dims.size(); i-- > 0;) {
        steps[missing + i] = dims[i] == 1 ? 0 : step;
        step *= dims[i];
    }
    return steps;
}

Dims broadcast(const Dims& a, const Dims& b) {
    Dims out(std::max(a.size(), b.size()));
    for (size_t i = 0; i < out.size(); ++i) {
        const uint32_t in_a = i < a.size() ? a[a.size() - 1 - i] : 1, in_b = i < b.size() ? b[b.size() - 1 - i] : 1;
        if (in_a != in_b && in_a != 1 && in_b != 1) throw BadData("shapes that do not broadcast");
        out[out.size() - 1 - i] = in_a == 1 ? in_b : in_a;
    }
    return out;
}

float combined(int32_t operation, float a, float b) {
    if (operation == ANEURALNETWORKS_ADD) return a + b;
    return operation == ANEURALNETWORKS_SUB ? a - b : a * b;
}

size_t axis_of(int32_t axis, size_t rank) {
    const int64_t from_front = axis < 0 ? int64_t{axis} + static_cast<int64_t>(rank) : axis;
    if (from_front < 0 || from_front >= static_cast<int64_t>(rank)) throw BadData("an axis that the operand lacks");
    return static_cast<size_t>(from_front);
}

// An operand as three dimensions, of which an axis is the middle one.
struct AroundAxis {
    size_t before = 1, along, after = 1;

    AroundAxis(const Dims& dims, size_t axis) : along(dims[axis]) {
        for (size_t i = 0; i < axis; ++i) before *= dims[i];
        for (size_t i = axis + 1; i < dims.size(); ++i) after *= dims[i];
    }
};

}  // namespace

void binary(const Arguments& arguments, int32_t operation) {
    const std::vector<float> a = arguments.values(0), b = arguments.values(1);
    const Dims out = broadcast(arguments.input(0).dims, arguments.input(1).dims);
    const auto step_a = broadcast_steps(arguments.input(0).dims, out);
    const auto step_b = broadcast_steps(arguments.input(1).dims, out);
    arguments.shape_output(out);
    std::vector<float> result(arguments.output().count());
    if (arguments.input(0).dims == arguments.input(1).dims) {
        for (size_t i = 0; i < result.size(); ++i) result[i] = combined(operation, a[i], b[i]);
    } else {
        std::vector<uint32_t> at(out.size(), 0);
        size_t at_a = 0, at_b = 0;
        for (float& value : result) {
            value = combined(operation, a[at_a], b[at_b]);
            for (size_t d = out.size(); d-- > 0;) {
                at_a += step_a[d], at_b += step_b[d];
                if (++at[d] < out[d]) break;
                at_a -= step_a[d] * out[d], at_b -= step_b[d] * out[d];
                at[d] = 0;
            }
        }
    }
    arguments.write(result, activation_range(arguments.integer(2)));
}

void unary(const Arguments& arguments, int32_t operation) {
    std::vector<float> values = arguments.values(0);
    arguments.shape_output(arguments.input(0).dims);
    int32_t clamp = ANEURALNETWORKS_FUSED_NONE;
    if (operation == ANEURALNETWORKS_RELU) clamp = ANEURALNETWORKS_FUSED_RELU;
    if (operation == ANEURALNETWORKS_RELU1) clamp = ANEURALNETWORKS_FUSED_RELU1;
    if (operation == ANEURALNETWORKS_RELU6) clamp = ANEURALNETWORKS_FUSED_RELU6;
    if (operation == ANEURALNETWORKS_LOGISTIC)
        for (float& value : values) value = 1.0f / (1.0f + std::exp(-value));
    arguments.write(values, activation_range(clamp));
}

void softmax(const Arguments& arguments) {
    std::vector<float> values = arguments.values(0);
    const Dims& dims = arguments.input(0).dims;
    const float beta = arguments.real(1);
    const AroundAxis shape(dims, axis_of(arguments.integer_or(2, -1), dims.size()));
    arguments.shape_output(dims);
    for (size_t i = 0; i < shape.before; ++i)
        for (size_t j = 0; j < shape.after; ++j) {
            float* first = values.data() + i * shape.along * shape.after + j;
            float largest = -std::numeric_limits<float>::infinity(), sum = 0;
            for (size_t k = 0; k < shape.along; ++k) largest = std::max(largest, first[k * shape.after]);
            for (size_t k = 0; k < shape.along; ++k)
                sum += first[k * shape.after] = std::exp((first[k * shape.after] - largest) * beta);
            for (size_t k = 0; k < shape.along; ++k) first[k * shape.after] /= sum;
        }
    arguments.write(values);
}

void mean(const Arguments& arguments) {
    std::vector<float> values = arguments.values(0);
    Dims dims = arguments.input(0).dims;
    std::vector<bool> is_reduced(dims.size(), false);
    for (int32_t axis : arguments.integers(1)) is_reduced[axis_of(axis, dims.size())] = true;
    for (size_t axis = 0; axis < dims.size(); ++axis) {
        if (!is_reduced[axis]) continue;
        const AroundAxis shape(dims, axis);
        std::vector<float> means(shape.before * shape.after, 0);
        for (size_t i = 0; i < shape.before; ++i)
            for (size_t k = 0; k < shape.along; ++k)
                for (size_t j = 0; j < shape.after; ++j)
                    means[i * shape.after + j] += values[(i * shape.along + k) * shape.after + j];
        for (float& value : means) value /= static_cast<float>(shape.along);
        values = std::move(means);
        dims[axis] = 1;
    }
    Dims out;
    for (size_t axis = 0; axis < dims.size(); ++axis)
        if (!is_reduced[axis] || arguments.integer(2) != 0) out.push_back(dims[axis]);
    arguments.shape_output(out);
    arguments.write(values);
}

void pool(const Arguments& arguments, bool average) {
    if (arguments.size() < 10) throw BadData("a pool without explicit padding");
    Window window = explicit_window(arguments, 1);
    window.kernel_w = static_cast<uint32_t>(arguments.integer(7));
    window.kernel_h = static_cast<uint32_t>(arguments.integer(8));
    const bool nchw = arguments.flag_or(10, false);
    Dims in = arguments.input(0).dims;
    if (in.size() != 4) throw BadData("a pool of something else than images");
    std::vector<float> image = arguments.values(0);
    if (nchw) {
        image = to_nhwc(image.data(), in);
        in = {in[0], in[2], in[3], in[1]};
    }
    const Dims out{in[0], window.out_h(in[1]), window.out_w(in[2]), in[3]};
    arguments.shape_output(nchw ? Dims{out[0], out[3], out[1], out[2]} : out);
    const size_t channels = in[3], row = in[2] * channels;
    std::vector<float> result(element_count(out), average ? 0 : -std::numeric_limits<float>::infinity());
    float* target = result.data();
    for (uint32_t n = 0; n < in[0]; ++n)
        for (uint32_t y = 0; y < out[1]; ++y)
            for (uint32_t x = 0; x < out[2]; ++x, target += channels) {
                const int64_t top = int64_t{y} * window.stride_h - window.pad_top;
                const int64_t left = int64_t{x} * window.stride_w - window.pad_left;
                const int64_t bottom = std::min<int64_t>(in[1], top + window.kernel_h);
                const int64_t right = std::min<int64_t>(in[2], left + window.kernel_w);
                size_t counted = 0;
                for (int64_t h = std::max<int64_t>(0, top); h < bottom; ++h)
                    for (int64_t w = std::max<int64_t>(0, left); w < right; ++w, ++counted) {
                        const float* pixel = image.data() + (n * in[1] + h) * row + w * channels;
                        for (size_t c = 0; c < channels; ++c)
                            target[c] = average ? target[c] + pixel[c] : std::max(target[c], pixel[c]);
                    }
                if (counted == 0) throw BadData("a window of a pool lies outside its image");
                // Padding is not counted: the interface defines it so.
                if (average)
                    for (size_t c = 0; c < channels; ++c) target[c] /= static_cast<float>(counted);
            }
    if (nchw) result = to_nchw(result.data(), out);
    arguments.write(result, activation_range(arguments.integer(9)));
}

void concatenate(const Arguments& arguments) {
    if (arguments.size() < 2) throw BadData("CONCATENATION of nothing");
    const size_t count = arguments.size() - 1;
    Dims out = arguments.input(0).dims;
    const size_t axis = axis_of(arguments.integer(count), out.size());
    out[axis] = 0;
    for (size_t i = 0; i < count; ++i) {
        const Dims& dims = arguments.input(i).dims;
        bool fits = dims.size() == out.size();
        for (size_t d = 0; fits && d < dims.size(); ++d) fits = d == axis || dims[d] == out[d];
        if (!fits) throw BadData("operands of CONCATENATION do not fit together");
        out[axis] += dims[axis];
    }
    arguments.shape_output(out);
    const AroundAxis whole(out, axis);
    std::vector<float> result(arguments.output().count());
    size_t offset = 0;
    for (size_t i = 0; i < count; ++i) {
        const std::vector<float> values = arguments.values(i);
        const size_t width = arguments.input(i).dims[axis] * whole.after;
        for (size_t j = 0; j < whole.before; ++j)
            std::copy_n(values.begin() + static_cast<std::ptrdiff_t>(j * width), width,
                        result.begin() + static_cast<std::ptrdiff_t>(j * whole.along * whole.after + offset));
        offset += width;
    }
    arguments.write(result);
}

void reshape(const Arguments& arguments) {
    const size_t count = arguments.input(0).count();
    Dims out;
    size_t known = 1, unknown = 0, at = 0;
    for (int32_t size : arguments.integers(1)) {
        if (size < -1) throw BadData("RESHAPE to a negative size");
        if (size == -1) {
            ++unknown;
            at = out.size();
        } else {
            known *= static_cast<size_t>(size);
        }
        out.push_back(static_cast<uint32_t>(std::max(size, 0)));
    }
    if (unknown > 1 || (unknown == 1 && (known == 0 || count % known != 0)))
        throw BadData("RESHAPE to a size that cannot be computed");
    if (unknown == 1) out[at] = static_cast<uint32_t>(count / known);
    if (element_count(out) != count) throw BadData("RESHAPE to another number of elements");
    arguments.shape_output(out);
    arguments.write(arguments.values(0));
}

void transpose(const Arguments& arguments) {
    const std::vector<float> values = arguments.values(0);
    const Dims& in = arguments.input(0).dims;
    const std::vector<int32_t> order = arguments.integers(1);
    if (order.size() != in.size()) throw BadData("TRANSPOSE with another number of axes");
    const std::vector<size_t> step_by_axis = broadcast_steps(in, in);
    Dims out;
    std::vector<size_t> steps;
    std::vector<bool> is_taken(in.size(), false);
    for (int32_t axis : order) {
        const size_t from = axis_of(axis, in.size());
        if (is_taken[from]) throw BadData("TRANSPOSE takes an axis twice");
        is_taken[from] = true;
        out.push_back(in[from]);
        steps.push_back(step_by_axis[from]);
    }
    arguments.shape_output(out);
    std::vector<float> result(values.size());
    std::vector<uint32_t> at(out.size(), 0);
    size_t from = 0;
    for (float& value : result) {
        value = values[from];
        for (size_t d = out.size(); d-- > 0;) {
            from += steps[d];
            if (++at[d] < out[d]) break;
            from -= steps[d] * out[d];
            at[d] = 0;
        }
    }
    arguments.write(result);
}

}  // namespace nnapi_reference
