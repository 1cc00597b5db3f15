// The functions of Android's C interface: they check pointers, and turn exceptions into codes.
#include <sys/mman.h>
#include <unistd.h>

#include <cstdio>
#include <new>

#include "model.h"

namespace {

ANeuralNetworksDevice reference_device{"nnapi-reference", "1", ANEURALNETWORKS_DEVICE_CPU, 29};

// Run what may throw. The reason is printed: the interface has no place for it.
template <typename Body>
int guarded(Body body) {
    try {
        return body();
    } catch (const std::bad_alloc&) {
        return ANEURALNETWORKS_OUT_OF_MEMORY;
    } catch (const std::exception& error) {
        std::fprintf(stderr, "nnapi-reference: %s\n", error.what());
        return ANEURALNETWORKS_BAD_DATA;
    }
}

template <typename... Pointers>
bool is_any_null(Pointers... pointers) {
    return ((pointers == nullptr) || ...);
}

std::vector<uint32_t> list(uint32_t count, const uint32_t* first) {
    return count == 0 ? std::vector<uint32_t>{} : std::vector<uint32_t>(first, first + count);
}

uint8_t* within(const ANeuralNetworksMemory& memory, size_t offset, size_t length) {
    if (offset > memory.size || length > memory.size - offset)
        throw nnapi_reference::BadData("a part of a memory lies outside it");
    return memory.data + offset;
}

}  // namespace

#define NNAPI extern "C" __attribute__((visibility("default")))

NNAPI int ANeuralNetworks_getDeviceCount(uint32_t* count) {
    if (count == nullptr) return ANEURALNETWORKS_UNEXPECTED_NULL;
    *count = 1;
    return ANEURALNETWORKS_NO_ERROR;
}

NNAPI int ANeuralNetworks_getDevice(uint32_t index, ANeuralNetworksDevice** device) {
    if (device == nullptr) return ANEURALNETWORKS_UNEXPECTED_NULL;
    if (index != 0) return ANEURALNETWORKS_BAD_DATA;
    *device = &reference_device;
    return ANEURALNETWORKS_NO_ERROR;
}

NNAPI int ANeuralNetworksDevice_getName(const ANeuralNetworksDevice* device, const char** name) {
    if (is_any_null(device, name)) return ANEURALNETWORKS_UNEXPECTED_NULL;
    *name = device->name;
    return ANEURALNETWORKS_NO_ERROR;
}

NNAPI int ANeuralNetworksDevice_getVersion(const ANeuralNetworksDevice* device, const char** version) {
    if (is_any_null(device, version)) return ANEURALNETWORKS_UNEXPECTED_NULL;
    *version = device->version;
    return ANEURALNETWORKS_NO_ERROR;
}

NNAPI int ANeuralNetworksDevice_getType(const ANeuralNetworksDevice* device, int32_t* type) {
    if (is_any_null(device, type)) return ANEURALNETWORKS_UNEXPECTED_NULL;
    *type = device->type;
    return ANEURALNETWORKS_NO_ERROR;
}

NNAPI int ANeuralNetworksDevice_getFeatureLevel(const ANeuralNetworksDevice* device, int64_t* level) {
    if (is_any_null(device, level)) return ANEURALNETWORKS_UNEXPECTED_NULL;
    *level = device->feature_level;
    return ANEURALNETWORKS_NO_ERROR;
}

NNAPI int ANeuralNetworksMemory_createFromFd(size_t size, int protect, int fd, size_t offset,
                                             ANeuralNetworksMemory** memory) {
    if (memory == nullptr) return ANEURALNETWORKS_UNEXPECTED_NULL;
    const size_t before = offset % static_cast<size_t>(sysconf(_SC_PAGESIZE));
    void* mapped = mmap(nullptr, size + before, protect, MAP_SHARED, fd, static_cast<off_t>(offset - before));
    if (mapped == MAP_FAILED) return ANEURALNETWORKS_UNMAPPABLE;
    *memory = new ANeuralNetworksMemory{static_cast<uint8_t*>(mapped) + before, size, mapped, size + before};
    return ANEURALNETWORKS_NO_ERROR;
}

NNAPI void ANeuralNetworksMemory_free(ANeuralNetworksMemory* memory) {
    if (memory != nullptr) munmap(memory->mapped, memory->mapped_size);
    delete memory;
}

NNAPI int ANeuralNetworksModel_create(ANeuralNetworksModel** model) {
    if (model == nullptr) return ANEURALNETWORKS_UNEXPECTED_NULL;
    return guarded([&] { return *model = new ANeuralNetworksModel, ANEURALNETWORKS_NO_ERROR; });
}

NNAPI void ANeuralNetworksModel_free(ANeuralNetworksModel* model) { delete model; }

NNAPI int ANeuralNetworksModel_addOperand(ANeuralNetworksModel* model, const ANeuralNetworksOperandType* type) {
    if (is_any_null(model, type)) return ANEURALNETWORKS_UNEXPECTED_NULL;
    return guarded([&] { return model->add_operand(*type), ANEURALNETWORKS_NO_ERROR; });
}

NNAPI int ANeuralNetworksModel_setOperandValue(ANeuralNetworksModel* model, int32_t index, const void* buffer,
                                               size_t length) {
    if (model == nullptr) return ANEURALNETWORKS_UNEXPECTED_NULL;
    const bool copies = length <= nnapi_reference::max_copied_bytes;
    return guarded([&] { return model->set_value(index, buffer, length, copies), ANEURALNETWORKS_NO_ERROR; });
}

NNAPI int ANeuralNetworksModel_setOperandValueFromMemory(ANeuralNetworksModel* model, int32_t index,
                                                         const ANeuralNetworksMemory* memory, size_t offset,
                                                         size_t length) {
    if (is_any_null(model, memory)) return ANEURALNETWORKS_UNEXPECTED_NULL;
    return guarded([&] {
        return model->set_value(index, within(*memory, offset, length), length, false), ANEURALNETWORKS_NO_ERROR;
    });
}

NNAPI int ANeuralNetworksModel_addOperation(ANeuralNetworksModel* model, int32_t type, uint32_t input_count,
                                            const uint32_t* inputs, uint32_t output_count, const uint32_t* outputs) {
    if (is_any_null(model, inputs, outputs)) return ANEURALNETWORKS_UNEXPECTED_NULL;
    return guarded([&] {
        model->add_operation(type, list(input_count, inputs), list(output_count, outputs));
        return ANEURALNETWORKS_NO_ERROR;
    });
}

NNAPI int ANeuralNetworksModel_identifyInputsAndOutputs(ANeuralNetworksModel* model, uint32_t input_count,
                                                        const uint32_t* inputs, uint32_t output_count,
                                                        const uint32_t* outputs) {
    if (is_any_null(model, inputs, outputs)) return ANEURALNETWORKS_UNEXPECTED_NULL;
    return guarded([&] {
        model->identify(list(input_count, inputs), list(output_count, outputs));
        return ANEURALNETWORKS_NO_ERROR;
    });
}

// float32 is computed as such: the interface allows less, and does not demand it.
NNAPI int ANeuralNetworksModel_relaxComputationFloat32toFloat16(ANeuralNetworksModel* model, bool) {
    return model == nullptr ? ANEURALNETWORKS_UNEXPECTED_NULL : ANEURALNETWORKS_NO_ERROR;
}

NNAPI int ANeuralNetworksModel_finish(ANeuralNetworksModel* model) {
    if (model == nullptr) return ANEURALNETWORKS_UNEXPECTED_NULL;
    return guarded([&] { return model->finish(), ANEURALNETWORKS_NO_ERROR; });
}

NNAPI int ANeuralNetworksModel_getSupportedOperationsForDevices(const ANeuralNetworksModel* model,
                                                                const ANeuralNetworksDevice* const* devices,
                                                                uint32_t count, bool* supported) {
    if (is_any_null(model, devices, supported)) return ANEURALNETWORKS_UNEXPECTED_NULL;
    if (!model->is_finished || count == 0) return ANEURALNETWORKS_BAD_STATE;
    // Others were refused when they were added.
    for (size_t i = 0; i < model->operations.size(); ++i) supported[i] = true;
    return ANEURALNETWORKS_NO_ERROR;
}

NNAPI int ANeuralNetworksCompilation_create(ANeuralNetworksModel* model, ANeuralNetworksCompilation** compilation) {
    if (is_any_null(model, compilation)) return ANEURALNETWORKS_UNEXPECTED_NULL;
    return guarded([&] { return *compilation = new ANeuralNetworksCompilation(*model), ANEURALNETWORKS_NO_ERROR; });
}

NNAPI int ANeuralNetworksCompilation_createForDevices(ANeuralNetworksModel* model,
                                                      const ANeuralNetworksDevice* const* devices, uint32_t count,
                                                      ANeuralNetworksCompilation** compilation) {
    if (devices == nullptr) return ANEURALNETWORKS_UNEXPECTED_NULL;
    return count == 0 ? ANEURALNETWORKS_BAD_DATA : ANeuralNetworksCompilation_create(model, compilation);
}

NNAPI void ANeuralNetworksCompilation_free(ANeuralNetworksCompilation* compilation) { delete compilation; }

// It knows one way to compute, whatever is preferred.
NNAPI int ANeuralNetworksCompilation_setPreference(ANeuralNetworksCompilation* compilation, int32_t preference) {
    if (compilation == nullptr) return ANEURALNETWORKS_UNEXPECTED_NULL;
    return 0 <= preference && preference <= 2 ? ANEURALNETWORKS_NO_ERROR : ANEURALNETWORKS_BAD_DATA;
}

NNAPI int ANeuralNetworksCompilation_finish(ANeuralNetworksCompilation* compilation) {
    if (compilation == nullptr) return ANEURALNETWORKS_UNEXPECTED_NULL;
    return guarded([&] { return compilation->finish(), ANEURALNETWORKS_NO_ERROR; });
}

NNAPI int ANeuralNetworksExecution_create(ANeuralNetworksCompilation* compilation,
                                          ANeuralNetworksExecution** execution) {
    if (is_any_null(compilation, execution)) return ANEURALNETWORKS_UNEXPECTED_NULL;
    return guarded([&] { return *execution = new ANeuralNetworksExecution(*compilation), ANEURALNETWORKS_NO_ERROR; });
}

NNAPI void ANeuralNetworksExecution_free(ANeuralNetworksExecution* execution) { delete execution; }

NNAPI int ANeuralNetworksExecution_setInput(ANeuralNetworksExecution* execution, int32_t index,
                                            const ANeuralNetworksOperandType* type, const void* buffer,
                                            size_t length) {
    if (is_any_null(execution, buffer)) return ANEURALNETWORKS_UNEXPECTED_NULL;
    return guarded([&] { return execution->set_input(index, type, buffer, length), ANEURALNETWORKS_NO_ERROR; });
}

NNAPI int ANeuralNetworksExecution_setInputFromMemory(ANeuralNetworksExecution* execution, int32_t index,
                                                      const ANeuralNetworksOperandType* type,
                                                      const ANeuralNetworksMemory* memory, size_t offset,
                                                      size_t length) {
    if (is_any_null(execution, memory)) return ANEURALNETWORKS_UNEXPECTED_NULL;
    return guarded([&] {
        execution->set_input(index, type, within(*memory, offset, length), length);
        return ANEURALNETWORKS_NO_ERROR;
    });
}

NNAPI int ANeuralNetworksExecution_setOutput(ANeuralNetworksExecution* execution, int32_t index,
                                             const ANeuralNetworksOperandType*, void* buffer, size_t length) {
    if (is_any_null(execution, buffer)) return ANEURALNETWORKS_UNEXPECTED_NULL;
    return guarded([&] { return execution->set_output(index, buffer, length), ANEURALNETWORKS_NO_ERROR; });
}

NNAPI int ANeuralNetworksExecution_setOutputFromMemory(ANeuralNetworksExecution* execution, int32_t index,
                                                       const ANeuralNetworksOperandType*,
                                                       const ANeuralNetworksMemory* memory, size_t offset,
                                                       size_t length) {
    if (is_any_null(execution, memory)) return ANEURALNETWORKS_UNEXPECTED_NULL;
    return guarded([&] {
        execution->set_output(index, within(*memory, offset, length), length);
        return ANEURALNETWORKS_NO_ERROR;
    });
}

NNAPI int ANeuralNetworksExecution_compute(ANeuralNetworksExecution* execution) {
    if (execution == nullptr) return ANEURALNETWORKS_UNEXPECTED_NULL;
    return guarded([&] { return execution->compute(); });
}

// It has ended when the event is there.
NNAPI int ANeuralNetworksExecution_startCompute(ANeuralNetworksExecution* execution, ANeuralNetworksEvent** event) {
    if (is_any_null(execution, event)) return ANEURALNETWORKS_UNEXPECTED_NULL;
    const int result = ANeuralNetworksExecution_compute(execution);
    return guarded([&] { return *event = new ANeuralNetworksEvent{result}, ANEURALNETWORKS_NO_ERROR; });
}

NNAPI int ANeuralNetworksEvent_wait(ANeuralNetworksEvent* event) {
    return event == nullptr ? ANEURALNETWORKS_UNEXPECTED_NULL : event->result;
}

NNAPI void ANeuralNetworksEvent_free(ANeuralNetworksEvent* event) { delete event; }

NNAPI int ANeuralNetworksExecution_getOutputOperandRank(ANeuralNetworksExecution* execution, int32_t index,
                                                        uint32_t* rank) {
    if (is_any_null(execution, rank)) return ANEURALNETWORKS_UNEXPECTED_NULL;
    return guarded([&] {
        *rank = static_cast<uint32_t>(execution->output(index).dims.size());
        return ANEURALNETWORKS_NO_ERROR;
    });
}

NNAPI int ANeuralNetworksExecution_getOutputOperandDimensions(ANeuralNetworksExecution* execution, int32_t index,
                                                              uint32_t* dimensions) {
    if (is_any_null(execution, dimensions)) return ANEURALNETWORKS_UNEXPECTED_NULL;
    return guarded([&] {
        for (uint32_t dim : execution->output(index).dims) *dimensions++ = dim;
        return ANEURALNETWORKS_NO_ERROR;
    });
}
