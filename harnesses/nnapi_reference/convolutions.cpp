// CONV_2D, DEPTHWISE_CONV_2D and FULLY_CONNECTED: sums of products, in float32 or in integers.
#include <algorithm>
#include <cmath>

#include "tensor.h"

namespace nnapi_reference {
namespace {

// Products of 32-bit floats. Sixteen sums, which a compiler keeps in vectors; one would order the additions.
struct FloatKernel {
    using Element = float;
    using Sum = float;
    const float* bias;
    Range range;

    FloatKernel(const Arguments& arguments, Range activation)
        : bias(arguments.input(2).as<float>()), range(activation) {}

    float dot(const float* a, const float* b, size_t count) const {
        constexpr size_t lanes = 16;
        float sums[lanes] = {};
        size_t i = 0;
        for (; i + lanes <= count; i += lanes)
            for (size_t lane = 0; lane < lanes; ++lane) sums[lane] += a[i + lane] * b[i + lane];
        float sum = 0;
        for (; i < count; ++i) sum += a[i] * b[i];
        for (float part : sums) sum += part;
        return sum;
    }
    float product(float a, float b) const { return a * b; }
    float result(float sum) const { return std::clamp(sum, range.low, range.high); }
};

// Products of 8-bit integers less their zero points, in 32 bits; then rounded half to even to the output's scale.
struct QuantizedKernel {
    using Element = uint8_t;
    using Sum = int32_t;
    const int32_t* bias;
    int32_t zero_a, zero_b, zero_out, low = 0, high = 255;
    float multiplier;

    QuantizedKernel(const Arguments& arguments, Range activation) : bias(arguments.input(2).as<int32_t>()) {
        const Tensor &a = arguments.input(0), &b = arguments.input(1), &out = arguments.output();
        if (!(a.scale > 0 && b.scale > 0 && out.scale > 0)) throw BadData("a quantized operand has no scale");
        zero_a = a.zero_point, zero_b = b.zero_point, zero_out = out.zero_point;
        multiplier = a.scale * b.scale / out.scale;
        if (std::isfinite(activation.low)) low = std::max(low, quantized(activation.low, out));
        if (std::isfinite(activation.high)) high = std::min(high, quantized(activation.high, out));
    }

    int32_t dot(const uint8_t* a, const uint8_t* b, size_t count) const {
        int32_t sum = 0;
        for (size_t i = 0; i < count; ++i) sum += product(a[i], b[i]);
        return sum;
    }
    int32_t product(uint8_t a, uint8_t b) const { return (a - zero_a) * (b - zero_b); }
    uint8_t result(int32_t sum) const {
        float steps = std::clamp(std::nearbyint(static_cast<float>(sum) * multiplier), -512.0f, 512.0f);
        return static_cast<uint8_t>(std::clamp(static_cast<int32_t>(steps) + zero_out, low, std::max(low, high)));
    }
    static int32_t quantized(float value, const Tensor& out) {
        float steps = std::clamp(std::nearbyint(value / out.scale), -512.0f, 512.0f);
        return std::clamp(static_cast<int32_t>(steps) + out.zero_point, 0, 255);
    }
};

// One position of the window over the image: which rows and columns of the kernel lie within the image.
struct Overlap {
    int64_t top, left;
    uint32_t from_h, to_h, from_w, to_w;

    Overlap(const Window& window, uint32_t in_h, uint32_t in_w, uint32_t y, uint32_t x)
        : top(int64_t{y} * window.stride_h - window.pad_top), left(int64_t{x} * window.stride_w - window.pad_left) {
        from_h = static_cast<uint32_t>(std::max<int64_t>(0, -top));
        from_w = static_cast<uint32_t>(std::max<int64_t>(0, -left));
        to_h = static_cast<uint32_t>(std::clamp<int64_t>(in_h - top, from_h, std::max(from_h, window.kernel_h)));
        to_w = static_cast<uint32_t>(std::clamp<int64_t>(in_w - left, from_w, std::max(from_w, window.kernel_w)));
    }
};

// Filters are [out, kernel_h, kernel_w, in]: a row of a kernel is contiguous, as is that of the image.
template <typename Kernel>
void full(const Kernel& kernel, const Window& window, const typename Kernel::Element* image, const Dims& in,
          const typename Kernel::Element* filters, uint32_t channels_out, typename Kernel::Element* out) {
    const size_t channels = in[3], row = size_t{in[2]} * channels, kernel_row = window.kernel_w * channels;
    const uint32_t out_h = window.out_h(in[1]), out_w = window.out_w(in[2]);
    for (uint32_t n = 0; n < in[0]; ++n, image += in[1] * row)
        for (uint32_t y = 0; y < out_h; ++y)
            for (uint32_t x = 0; x < out_w; ++x) {
                const Overlap overlap(window, in[1], in[2], y, x);
                const size_t count = (overlap.to_w - overlap.from_w) * channels;
                for (uint32_t o = 0; o < channels_out; ++o) {
                    typename Kernel::Sum sum = kernel.bias[o];
                    for (uint32_t h = overlap.from_h; h < overlap.to_h; ++h)
                        sum += kernel.dot(
                            image + (overlap.top + h) * row + (overlap.left + overlap.from_w) * channels,
                            filters + (size_t{o} * window.kernel_h + h) * kernel_row + overlap.from_w * channels,
                            count);
                    *out++ = kernel.result(sum);
                }
            }
}

// Filters are [1, kernel_h, kernel_w, out]; `each` outputs in a row belong to one channel of the image.
template <typename Kernel>
void depthwise(const Kernel& kernel, const Window& window, const typename Kernel::Element* image, const Dims& in,
               const typename Kernel::Element* filters, uint32_t each, typename Kernel::Element* out) {
    const size_t channels = in[3], row = size_t{in[2]} * channels, channels_out = channels * each;
    const uint32_t out_h = window.out_h(in[1]), out_w = window.out_w(in[2]);
    std::vector<typename Kernel::Sum> sums(channels_out);
    for (uint32_t n = 0; n < in[0]; ++n, image += in[1] * row)
        for (uint32_t y = 0; y < out_h; ++y)
            for (uint32_t x = 0; x < out_w; ++x) {
                const Overlap overlap(window, in[1], in[2], y, x);
                std::copy_n(kernel.bias, channels_out, sums.begin());
                for (uint32_t h = overlap.from_h; h < overlap.to_h; ++h)
                    for (uint32_t w = overlap.from_w; w < overlap.to_w; ++w) {
                        const auto* pixel = image + (overlap.top + h) * row + (overlap.left + w) * channels;
                        const auto* filter = filters + (h * window.kernel_w + w) * channels_out;
                        if (each == 1)
                            for (size_t c = 0; c < channels; ++c) sums[c] += kernel.product(pixel[c], filter[c]);
                        else
                            for (size_t c = 0; c < channels_out; ++c)
                                sums[c] += kernel.product(pixel[c / each], filter[c]);
                    }
                for (auto sum : sums) *out++ = kernel.result(sum);
            }
}

void check_types(const Arguments& arguments) {
    const int32_t type = arguments.input(0).type;
    const bool is_float = type == ANEURALNETWORKS_TENSOR_FLOAT32;
    if (!is_float && !arguments.input(0).is_quantized())
        throw BadData("an input is neither float32 nor quantized in 8 bits");
    const int32_t of_bias = is_float ? ANEURALNETWORKS_TENSOR_FLOAT32 : ANEURALNETWORKS_TENSOR_INT32;
    if (arguments.input(1).type != type || arguments.output().type != type || arguments.input(2).type != of_bias)
        throw BadData("the operands of a sum of products have types that do not belong together");
}

struct Convolution {
    bool is_depthwise, nchw;
    Window window;
    uint32_t each, channels_out;
    Range activation;

    Convolution(const Arguments& arguments, bool depthwise) : is_depthwise(depthwise) {
        check_types(arguments);
        const Tensor& filters = arguments.input(1);
        // Where the activation stands. With implicit padding there are fewer inputs, or bools among the integers.
        const size_t at = depthwise ? 10 : 9;
        if (arguments.size() <= at) throw BadData("a convolution without explicit padding");
        window = explicit_window(arguments, 3);
        each = depthwise ? static_cast<uint32_t>(arguments.integer(9)) : 1;
        activation = activation_range(arguments.integer(at));
        nchw = arguments.flag_or(at + 1, false);
        if (arguments.integer_or(at + 2, 1) != 1 || arguments.integer_or(at + 3, 1) != 1)
            throw BadData("a convolution with dilation");
        if (arguments.input(0).dims.size() != 4 || filters.dims.size() != 4)
            throw BadData("a convolution of something else than images");
        window.kernel_h = filters.dims[1], window.kernel_w = filters.dims[2];
        channels_out = depthwise ? filters.dims[3] : filters.dims[0];
    }

    template <typename Kernel>
    void run(const Arguments& arguments) const {
        using Element = typename Kernel::Element;
        const Tensor &image = arguments.input(0), &filters = arguments.input(1);
        std::vector<Element> copy;
        Dims in = image.dims;
        const Element* data = image.as<Element>();
        if (nchw) {
            copy = to_nhwc(data, in);
            data = copy.data();
            in = {in[0], in[2], in[3], in[1]};
        }
        const bool fits = is_depthwise ? filters.dims[0] == 1 && uint64_t{in[3]} * each == channels_out
                                       : filters.dims[3] == in[3];
        if (!fits || arguments.input(2).count() != channels_out)
            throw BadData("filters or bias of a convolution do not fit its image");
        const Dims out{in[0], window.out_h(in[1]), window.out_w(in[2]), channels_out};
        arguments.shape_output(nchw ? Dims{out[0], out[3], out[1], out[2]} : out);
        Element* target = reinterpret_cast<Element*>(arguments.output().storage.data());
        const Kernel kernel(arguments, activation);
        if (is_depthwise)
            depthwise(kernel, window, data, in, filters.as<Element>(), each, target);
        else
            full(kernel, window, data, in, filters.as<Element>(), channels_out, target);
        if (nchw) {
            const std::vector<Element> swapped = to_nchw(target, out);
            std::copy(swapped.begin(), swapped.end(), target);
        }
    }
};

template <typename Kernel>
void multiply(const Arguments& arguments, Range activation) {
    using Element = typename Kernel::Element;
    const Tensor &input = arguments.input(0), &weights = arguments.input(1);
    const uint32_t outputs = weights.dims[0], inputs = weights.dims[1];
    const uint32_t batch = static_cast<uint32_t>(input.count() / inputs);
    arguments.shape_output({batch, outputs});
    Element* target = reinterpret_cast<Element*>(arguments.output().storage.data());
    const Kernel kernel(arguments, activation);
    for (uint32_t n = 0; n < batch; ++n)
        for (uint32_t o = 0; o < outputs; ++o)
            *target++ = kernel.result(kernel.bias[o] + kernel.dot(input.as<Element>() + size_t{n} * inputs,
                                                                 weights.as<Element>() + size_t{o} * inputs,
                                                                 inputs));
}

}  // namespace

void convolve(const Arguments& arguments, bool depthwise) {
    const Convolution convolution(arguments, depthwise);
    if (arguments.input(0).is_quantized())
        convolution.run<QuantizedKernel>(arguments);
    else
        convolution.run<FloatKernel>(arguments);
}

void fully_connected(const Arguments& arguments) {
    check_types(arguments);
    const Dims& weights = arguments.input(1).dims;
    const bool fits = weights.size() == 2 && weights[1] != 0 && arguments.input(0).count() % weights[1] == 0;
    if (!fits || arguments.input(2).count() != weights[0])
        throw BadData("weights or bias of FULLY_CONNECTED do not fit its input");
    const Range activation = activation_range(arguments.integer(3));
    if (arguments.input(0).is_quantized())
        multiply<QuantizedKernel>(arguments, activation);
    else
        multiply<FloatKernel>(arguments, activation);
}

}  // namespace nnapi_reference
