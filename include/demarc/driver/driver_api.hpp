// The driver's functions as a table of pointers, filled from libcuda at run time or by a stand-in.
#pragma once

#include "demarc/driver/driver_types.hpp"

// X(required, symbol, parameters): `required` 1 means that a driver without it is refused; an
// optional function may be null.
// clang-format off
#define DEMARC_CUDA_FUNCTIONS(X)                                                                     \
  X(1, cuInit, (unsigned flags))                                                                     \
  X(1, cuDriverGetVersion, (int* version))                                                           \
  X(1, cuGetErrorName, (CuResult code, const char** text))                                           \
  X(1, cuGetErrorString, (CuResult code, const char** text))                                         \
  X(1, cuGetExportTable, (const void** table, const CuUuid* id))                                     \
  X(1, cuDeviceGetCount, (int* count))                                                               \
  X(1, cuDeviceGet, (CuDevice* device, int index))                                                   \
  X(1, cuDeviceGetName, (char* name, int size, CuDevice device))                                     \
  X(0, cuDeviceGetUuid, (CuUuid* uuid, CuDevice device))                                             \
  X(0, cuDeviceGetUuid_v2, (CuUuid* uuid, CuDevice device))                                          \
  X(1, cuDeviceGetAttribute, (int* value, int attribute, CuDevice device))                           \
  X(0, cuDeviceCanAccessPeer, (int* can, CuDevice device, CuDevice peer))                            \
  X(0, cuDeviceGetP2PAttribute, (int* value, int attribute, CuDevice device, CuDevice peer))         \
  X(1, cuDeviceTotalMem_v2, (std::size_t* bytes, CuDevice device))                                   \
  X(1, cuDevicePrimaryCtxRetain, (CuContext* context, CuDevice device))                              \
  X(1, cuDevicePrimaryCtxRelease_v2, (CuDevice device))                                              \
  X(1, cuCtxSetCurrent, (CuContext context))                                                         \
  X(1, cuCtxGetCurrent, (CuContext* context))                                                        \
  X(1, cuCtxGetDevice, (CuDevice* device))                                                           \
  X(1, cuCtxSynchronize, ())                                                                         \
  X(1, cuModuleLoadData, (CuModule* module, const void* image))                                      \
  X(1, cuModuleUnload, (CuModule module))                                                            \
  X(1, cuModuleGetFunction, (CuFunction* function, CuModule module, const char* name))               \
  X(1, cuModuleGetGlobal_v2, (DevicePointer* address, std::size_t* bytes, CuModule module, const char* name)) \
  X(1, cuFuncGetAttribute, (int* value, int attribute, CuFunction function))                         \
  X(1, cuFuncSetAttribute, (CuFunction function, int attribute, int value))                          \
  X(1, cuOccupancyMaxActiveBlocksPerMultiprocessor, (int* blocks, CuFunction function, int block_size, std::size_t shared)) \
  X(1, cuMemGetInfo_v2, (std::size_t* free, std::size_t* total))                                     \
  X(1, cuMemAlloc_v2, (DevicePointer* address, std::size_t bytes))                                   \
  X(1, cuMemFree_v2, (DevicePointer address))                                                        \
  X(1, cuMemHostAlloc, (void** address, std::size_t bytes, unsigned flags))                          \
  X(1, cuMemFreeHost, (void* address))                                                               \
  X(1, cuMemHostGetDevicePointer_v2, (DevicePointer* device, void* host, unsigned flags))            \
  X(1, cuMemcpyHtoD_v2, (DevicePointer target, const void* source, std::size_t bytes))               \
  X(1, cuMemcpyDtoH_v2, (void* target, DevicePointer source, std::size_t bytes))                     \
  X(1, cuMemcpyDtoD_v2, (DevicePointer target, DevicePointer source, std::size_t bytes))             \
  X(1, cuMemcpyHtoDAsync_v2, (DevicePointer target, const void* source, std::size_t bytes, CuStream stream)) \
  X(1, cuMemcpyDtoHAsync_v2, (void* target, DevicePointer source, std::size_t bytes, CuStream stream)) \
  X(1, cuMemcpyDtoDAsync_v2, (DevicePointer target, DevicePointer source, std::size_t bytes, CuStream stream)) \
  X(1, cuMemcpy2DAsync_v2, (const CuCopy2d* copy, CuStream stream))                                  \
  X(1, cuMemsetD8_v2, (DevicePointer target, unsigned char value, std::size_t count))                \
  X(1, cuMemsetD8Async, (DevicePointer target, unsigned char value, std::size_t count, CuStream stream)) \
  X(1, cuMemsetD32Async, (DevicePointer target, unsigned value, std::size_t count, CuStream stream)) \
  X(1, cuStreamCreateWithPriority, (CuStream* stream, unsigned flags, int priority))                 \
  X(1, cuStreamDestroy_v2, (CuStream stream))                                                        \
  X(1, cuStreamSynchronize, (CuStream stream))                                                       \
  X(1, cuStreamQuery, (CuStream stream))                                                             \
  X(1, cuStreamGetPriority, (CuStream stream, int* priority))                                        \
  X(0, cuStreamIsCapturing, (CuStream stream, int* status))                                          \
  X(0, cuStreamGetCaptureInfo, (CuStream stream, int* status, unsigned long long* id))               \
  X(0, cuStreamSetAttribute, (CuStream stream, int attribute, const CuLaunchAttributeValue* value))  \
  X(0, cuStreamGetAttribute, (CuStream stream, int attribute, CuLaunchAttributeValue* value))        \
  X(1, cuStreamWaitEvent, (CuStream stream, CuEvent event, unsigned flags))                          \
  X(1, cuEventCreate, (CuEvent* event, unsigned flags))                                              \
  X(1, cuEventDestroy_v2, (CuEvent event))                                                           \
  X(1, cuEventRecord, (CuEvent event, CuStream stream))                                              \
  X(1, cuEventQuery, (CuEvent event))                                                                \
  X(1, cuEventSynchronize, (CuEvent event))                                                          \
  X(1, cuEventElapsedTime, (float* milliseconds, CuEvent begin, CuEvent end))                        \
  X(1, cuLaunchKernel, (CuFunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z,      \
                        unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared_bytes, \
                        CuStream stream, void** arguments, void** extra))                            \
  X(0, cuLaunchKernelEx, (const CuLaunchConfig* config, CuFunction function, void** arguments, void** extra)) \
  X(0, cuTensorMapEncodeTiled, (void* map, int type, unsigned dimensions, DevicePointer address, const std::uint64_t* dims, const std::uint64_t* strides, const std::uint32_t* box, const std::uint32_t* element_strides, int interleave, int swizzle, int promotion, int fill)) \
  X(0, cuOccupancyMaxActiveClusters, (int* clusters, CuFunction function, const CuLaunchConfig* config)) \
  X(0, cuMemAllocAsync, (DevicePointer* address, std::size_t bytes, CuStream stream))                \
  X(0, cuMemFreeAsync, (DevicePointer address, CuStream stream))                                     \
  X(0, cuPointerGetAttribute, (void* value, int attribute, DevicePointer address))                   \
  X(0, cuModuleLoadDataEx, (CuModule* module, const void* image, unsigned count, int* options, void** values)) \
  X(0, cuLinkCreate_v2, (unsigned count, int* options, void** values, CuLink* link))                 \
  X(0, cuLinkAddData_v2, (CuLink link, int type, void* data, std::size_t bytes, const char* name, unsigned count, int* options, void** values)) \
  X(0, cuLinkComplete, (CuLink link, void** image, std::size_t* bytes))                              \
  X(0, cuLinkDestroy, (CuLink link))                                                                 \
  X(0, cuLibraryLoadData, (CuLibrary* library, const void* image, int* options, void** values, unsigned count, int* library_options, void** library_values, unsigned library_count)) \
  X(0, cuLibraryUnload, (CuLibrary library))                                                         \
  X(0, cuLibraryGetKernel, (CuKernel* kernel, CuLibrary library, const char* name))                  \
  X(0, cuLibraryGetGlobal, (DevicePointer* address, std::size_t* bytes, CuLibrary library, const char* name)) \
  X(0, cuKernelGetFunction, (CuFunction* function, CuKernel kernel))                                 \
  X(0, cuFuncGetName, (const char** name, CuFunction function))                                      \
  X(0, cuKernelGetName, (const char** name, CuKernel kernel))                                        \
  X(0, cuThreadExchangeStreamCaptureMode, (int* mode))                                               \
  X(0, cuMemAddressReserve, (DevicePointer* address, std::size_t bytes, std::size_t alignment, DevicePointer wanted, unsigned long long flags)) \
  X(0, cuMemAddressFree, (DevicePointer address, std::size_t bytes))                                 \
  X(0, cuMemCreate, (AllocationHandle* handle, std::size_t bytes, const CuAllocationProperties* properties, unsigned long long flags)) \
  X(0, cuMemRelease, (AllocationHandle handle))                                                      \
  X(0, cuMemMap, (DevicePointer address, std::size_t bytes, std::size_t offset, AllocationHandle handle, unsigned long long flags)) \
  X(0, cuMemUnmap, (DevicePointer address, std::size_t bytes))                                       \
  X(0, cuMemSetAccess, (DevicePointer address, std::size_t bytes, const CuAccess* access, std::size_t count)) \
  X(0, cuMemGetAllocationGranularity, (std::size_t* bytes, const CuAllocationProperties* properties, int option)) \
  X(0, cuMemExportToShareableHandle, (void* shareable, AllocationHandle handle, int type, unsigned long long flags)) \
  X(0, cuMemImportFromShareableHandle, (AllocationHandle* handle, void* shareable, int type))        \
  X(0, cuMemGetAllocationPropertiesFromHandle, (CuAllocationProperties* properties, AllocationHandle handle)) \
  X(0, cuStreamBeginCapture_v2, (CuStream stream, int mode))                                         \
  X(0, cuStreamEndCapture, (CuStream stream, CuGraph* graph))                                        \
  X(0, cuGraphInstantiateWithFlags, (CuGraphExec* executable, CuGraph graph, unsigned long long flags)) \
  X(0, cuGraphLaunch, (CuGraphExec executable, CuStream stream))                                     \
  X(0, cuGraphExecDestroy, (CuGraphExec executable))                                                 \
  X(0, cuGraphAddKernelNode_v2, (CuGraphNode* node, CuGraph graph, const CuGraphNode* after, std::size_t count, const CuKernelNode* params)) \
  X(0, cuGraphKernelNodeSetParams_v2, (CuGraphNode node, const CuKernelNode* params))                \
  X(0, cuGraphExecKernelNodeSetParams_v2, (CuGraphExec executable, CuGraphNode node, const CuKernelNode* params)) \
  X(0, cuGraphDestroy, (CuGraph graph))                                                              \
  X(0, cuDeviceGetDevResource, (CuDevice device, CuDeviceResource* resource, int type))              \
  X(0, cuCtxGetDevResource, (CuContext context, CuDeviceResource* resource, int type))               \
  X(0, cuDevSmResourceSplitByCount, (CuDeviceResource* result, unsigned* groups, const CuDeviceResource* input, \
                                     CuDeviceResource* remaining, unsigned flags, unsigned min_count)) \
  X(0, cuDevResourceGenerateDesc, (CuResourceDesc* desc, CuDeviceResource* resources, unsigned count)) \
  X(0, cuGreenCtxCreate, (CuGreenContext* context, CuResourceDesc desc, CuDevice device, unsigned flags)) \
  X(0, cuGreenCtxDestroy, (CuGreenContext context))                                                  \
  X(0, cuGreenCtxStreamCreate, (CuStream* stream, CuGreenContext context, unsigned flags, int priority)) \
  X(0, cuCtxFromGreenCtx, (CuContext* context, CuGreenContext green))
// clang-format on

namespace demarc::cuda {

struct DriverApi {
#define DEMARC_CUDA_MEMBER(required, symbol, parameters) CuResult(*symbol) parameters = nullptr;
  DEMARC_CUDA_FUNCTIONS(DEMARC_CUDA_MEMBER)
#undef DEMARC_CUDA_MEMBER
};

}  // namespace demarc::cuda
