// Says what happens to calls of the driver's functions: names of CUDA 13.0, in alphabetical order.
#include "calls/call_rules.hpp"

#include <algorithm>
#include <iterator>

#include "driver/driver_call.hpp"
#include "driver/function_names.hpp"

namespace demarc::cuda {
namespace {

using Name = std::string_view;

// They give or take no address of the card's memory, or only hand on what others gave.
constexpr Name passing_names[] = {"cuCoredumpGetAttribute",
                                  "cuCoredumpGetAttributeGlobal",
                                  "cuCoredumpSetAttribute",
                                  "cuCoredumpSetAttributeGlobal",
                                  "cuCtxAttach",
                                  "cuCtxCreate",
                                  "cuCtxDetach",
                                  "cuCtxFromGreenCtx",
                                  "cuCtxGetApiVersion",
                                  "cuCtxGetCacheConfig",
                                  "cuCtxGetCurrent",
                                  "cuCtxGetDevResource",
                                  "cuCtxGetDevice",
                                  "cuCtxGetExecAffinity",
                                  "cuCtxGetFlags",
                                  "cuCtxGetId",
                                  "cuCtxGetLimit",
                                  "cuCtxGetSharedMemConfig",
                                  "cuCtxGetStreamPriorityRange",
                                  "cuCtxPopCurrent",
                                  "cuCtxPushCurrent",
                                  "cuCtxRecordEvent",
                                  "cuCtxSetCacheConfig",
                                  "cuCtxSetCurrent",
                                  "cuCtxSetFlags",
                                  "cuCtxSetSharedMemConfig",
                                  "cuCtxSynchronize",
                                  "cuCtxWaitEvent",
                                  "cuDevResourceGenerateDesc",
                                  "cuDevSmResourceSplitByCount",
                                  "cuDeviceCanAccessPeer",
                                  "cuDeviceComputeCapability",
                                  "cuDeviceGet",
                                  "cuDeviceGetAttribute",
                                  "cuDeviceGetByPCIBusId",
                                  "cuDeviceGetCount",
                                  "cuDeviceGetDefaultMemPool",
                                  "cuDeviceGetDevResource",
                                  "cuDeviceGetExecAffinitySupport",
                                  "cuDeviceGetGraphMemAttribute",
                                  "cuDeviceGetHostAtomicCapabilities",
                                  "cuDeviceGetLuid",
                                  "cuDeviceGetMemPool",
                                  "cuDeviceGetName",
                                  "cuDeviceGetNvSciSyncAttributes",
                                  "cuDeviceGetP2PAtomicCapabilities",
                                  "cuDeviceGetP2PAttribute",
                                  "cuDeviceGetPCIBusId",
                                  "cuDeviceGetProperties",
                                  "cuDeviceGetTexture1DLinearMaxWidth",
                                  "cuDeviceGetUuid",
                                  "cuDeviceGraphMemTrim",
                                  "cuDevicePrimaryCtxGetState",
                                  "cuDevicePrimaryCtxRelease",
                                  "cuDevicePrimaryCtxRetain",
                                  "cuDevicePrimaryCtxSetFlags",
                                  "cuDeviceRegisterAsyncNotification",
                                  "cuDeviceSetGraphMemAttribute",
                                  "cuDeviceSetMemPool",
                                  "cuDeviceTotalMem",
                                  "cuDeviceUnregisterAsyncNotification",
                                  "cuDriverGetVersion",
                                  "cuEventCreate",
                                  "cuEventDestroy",
                                  "cuEventElapsedTime",
                                  "cuEventQuery",
                                  "cuEventRecord",
                                  "cuEventRecordWithFlags",
                                  "cuEventSynchronize",
                                  "cuFlushGPUDirectRDMAWrites",
                                  "cuFuncGetAttribute",
                                  "cuFuncGetModule",
                                  "cuFuncGetName",
                                  "cuFuncGetParamInfo",
                                  "cuFuncIsLoaded",
                                  "cuFuncLoad",
                                  "cuFuncSetAttribute",
                                  "cuFuncSetCacheConfig",
                                  "cuFuncSetSharedMemConfig",
                                  "cuGetErrorName",
                                  "cuGetErrorString",
                                  "cuGetExportTable",
                                  "cuGetProcAddress",
                                  "cuGraphAddDependencies",
                                  "cuGraphAddEmptyNode",
                                  "cuGraphAddEventRecordNode",
                                  "cuGraphAddEventWaitNode",
                                  "cuGraphAddHostNode",
                                  "cuGraphChildGraphNodeGetGraph",
                                  "cuGraphClone",
                                  "cuGraphConditionalHandleCreate",
                                  "cuGraphCreate",
                                  "cuGraphDebugDotPrint",
                                  "cuGraphEventRecordNodeGetEvent",
                                  "cuGraphEventRecordNodeSetEvent",
                                  "cuGraphEventWaitNodeGetEvent",
                                  "cuGraphEventWaitNodeSetEvent",
                                  "cuGraphExecDestroy",
                                  "cuGraphExecEventRecordNodeSetEvent",
                                  "cuGraphExecEventWaitNodeSetEvent",
                                  "cuGraphExecGetFlags",
                                  "cuGraphExecHostNodeSetParams",
                                  "cuGraphExecUpdate",
                                  "cuGraphGetEdges",
                                  "cuGraphGetNodes",
                                  "cuGraphGetRootNodes",
                                  "cuGraphHostNodeGetParams",
                                  "cuGraphHostNodeSetParams",
                                  "cuGraphInstantiate",
                                  "cuGraphKernelNodeCopyAttributes",
                                  "cuGraphKernelNodeGetAttribute",
                                  "cuGraphKernelNodeGetParams",
                                  "cuGraphKernelNodeSetAttribute",
                                  "cuGraphNodeFindInClone",
                                  "cuGraphNodeGetDependencies",
                                  "cuGraphNodeGetDependentNodes",
                                  "cuGraphNodeGetEnabled",
                                  "cuGraphNodeSetEnabled",
                                  "cuGraphReleaseUserObject",
                                  "cuGraphRetainUserObject",
                                  "cuGraphUpload",
                                  "cuGreenCtxCreate",
                                  "cuGreenCtxDestroy",
                                  "cuGreenCtxGetDevResource",
                                  "cuGreenCtxGetId",
                                  "cuGreenCtxRecordEvent",
                                  "cuGreenCtxStreamCreate",
                                  "cuGreenCtxWaitEvent",
                                  "cuInit",
                                  "cuIpcGetEventHandle",
                                  "cuIpcOpenEventHandle",
                                  "cuKernelGetAttribute",
                                  "cuKernelGetFunction",
                                  "cuKernelGetLibrary",
                                  "cuKernelGetName",
                                  "cuKernelGetParamInfo",
                                  "cuKernelSetAttribute",
                                  "cuKernelSetCacheConfig",
                                  "cuLaunchHostFunc",
                                  "cuLibraryEnumerateKernels",
                                  "cuLibraryGetKernel",
                                  "cuLibraryGetKernelCount",
                                  "cuLibraryGetManaged",
                                  "cuLibraryGetModule",
                                  "cuLibraryGetUnifiedFunction",
                                  "cuLogsCurrent",
                                  "cuLogsDumpToFile",
                                  "cuLogsDumpToMemory",
                                  "cuLogsUnregisterCallback",
                                  "cuMemAllocHost",
                                  "cuMemFreeHost",
                                  "cuMemGetAllocationGranularity",
                                  "cuMemGetDefaultMemPool",
                                  "cuMemGetMemPool",
                                  "cuMemHostAlloc",
                                  "cuMemHostGetFlags",
                                  "cuMemHostRegister",
                                  "cuMemHostUnregister",
                                  "cuMemPoolCreate",
                                  "cuMemPoolDestroy",
                                  "cuMemPoolGetAccess",
                                  "cuMemPoolGetAttribute",
                                  "cuMemPoolSetAccess",
                                  "cuMemPoolSetAttribute",
                                  "cuMemPoolTrimTo",
                                  "cuMemSetMemPool",
                                  "cuModuleEnumerateFunctions",
                                  "cuModuleGetFunction",
                                  "cuModuleGetFunctionCount",
                                  "cuModuleGetLoadingMode",
                                  "cuMulticastGetGranularity",
                                  "cuOccupancyAvailableDynamicSMemPerBlock",
                                  "cuOccupancyMaxActiveBlocksPerMultiprocessor",
                                  "cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags",
                                  "cuOccupancyMaxActiveClusters",
                                  "cuOccupancyMaxPotentialBlockSize",
                                  "cuOccupancyMaxPotentialBlockSizeWithFlags",
                                  "cuOccupancyMaxPotentialClusterSize",
                                  "cuProfilerInitialize",
                                  "cuProfilerStart",
                                  "cuProfilerStop",
                                  "cuStreamAddCallback",
                                  "cuStreamCopyAttributes",
                                  "cuStreamCreate",
                                  "cuStreamCreateWithPriority",
                                  "cuStreamDestroy",
                                  "cuStreamGetAttribute",
                                  "cuStreamGetCaptureInfo",
                                  "cuStreamGetCtx",
                                  "cuStreamGetDevice",
                                  "cuStreamGetFlags",
                                  "cuStreamGetGreenCtx",
                                  "cuStreamGetId",
                                  "cuStreamGetPriority",
                                  "cuStreamIsCapturing",
                                  "cuStreamQuery",
                                  "cuStreamSetAttribute",
                                  "cuStreamSynchronize",
                                  "cuStreamUpdateCaptureDependencies",
                                  "cuStreamWaitEvent",
                                  "cuThreadExchangeStreamCaptureMode",
                                  "cuUserObjectCreate",
                                  "cuUserObjectRelease",
                                  "cuUserObjectRetain"};

constexpr Name textures_names[] = {"cuArray3DCreate",
                                   "cuArray3DGetDescriptor",
                                   "cuArrayCreate",
                                   "cuArrayDestroy",
                                   "cuArrayGetDescriptor",
                                   "cuArrayGetMemoryRequirements",
                                   "cuArrayGetPlane",
                                   "cuArrayGetSparseProperties",
                                   "cuMemMapArrayAsync",
                                   "cuMemcpyAtoA",
                                   "cuMemcpyAtoD",
                                   "cuMemcpyAtoH",
                                   "cuMemcpyAtoHAsync",
                                   "cuMemcpyDtoA",
                                   "cuMemcpyHtoA",
                                   "cuMemcpyHtoAAsync",
                                   "cuMipmappedArrayCreate",
                                   "cuMipmappedArrayDestroy",
                                   "cuMipmappedArrayGetLevel",
                                   "cuMipmappedArrayGetMemoryRequirements",
                                   "cuMipmappedArrayGetSparseProperties",
                                   "cuModuleGetSurfRef",
                                   "cuModuleGetTexRef",
                                   "cuParamSetTexRef",
                                   "cuSurfObjectCreate",
                                   "cuSurfObjectDestroy",
                                   "cuSurfObjectGetResourceDesc",
                                   "cuSurfRefGetArray",
                                   "cuSurfRefSetArray",
                                   "cuTexObjectCreate",
                                   "cuTexObjectDestroy",
                                   "cuTexObjectGetResourceDesc",
                                   "cuTexObjectGetResourceViewDesc",
                                   "cuTexObjectGetTextureDesc",
                                   "cuTexRefCreate",
                                   "cuTexRefDestroy",
                                   "cuTexRefGetAddress",
                                   "cuTexRefGetAddressMode",
                                   "cuTexRefGetArray",
                                   "cuTexRefGetBorderColor",
                                   "cuTexRefGetFilterMode",
                                   "cuTexRefGetFlags",
                                   "cuTexRefGetFormat",
                                   "cuTexRefGetMaxAnisotropy",
                                   "cuTexRefGetMipmapFilterMode",
                                   "cuTexRefGetMipmapLevelBias",
                                   "cuTexRefGetMipmapLevelClamp",
                                   "cuTexRefGetMipmappedArray",
                                   "cuTexRefSetAddress",
                                   "cuTexRefSetAddress2D",
                                   "cuTexRefSetAddressMode",
                                   "cuTexRefSetArray",
                                   "cuTexRefSetBorderColor",
                                   "cuTexRefSetFilterMode",
                                   "cuTexRefSetFlags",
                                   "cuTexRefSetFormat",
                                   "cuTexRefSetMaxAnisotropy",
                                   "cuTexRefSetMipmapFilterMode",
                                   "cuTexRefSetMipmapLevelBias",
                                   "cuTexRefSetMipmapLevelClamp",
                                   "cuTexRefSetMipmappedArray"};

constexpr Name managed_names[] = {"cuMemAdvise",
                                  "cuMemAllocManaged",
                                  "cuMemDiscardAndPrefetchBatchAsync",
                                  "cuMemDiscardBatchAsync",
                                  "cuMemPrefetchAsync",
                                  "cuMemPrefetchBatchAsync",
                                  "cuMemRangeGetAttribute",
                                  "cuMemRangeGetAttributes",
                                  "cuStreamAttachMemAsync"};

constexpr Name host_memory_names[] = {"cuMemHostGetDevicePointer"};

constexpr Name own_mapping_names[] = {"cuMemGetAllocationPropertiesFromHandle",
                                      "cuMemRetainAllocationHandle",
                                      "cuMulticastAddDevice",
                                      "cuMulticastBindAddr",
                                      "cuMulticastBindMem",
                                      "cuMulticastCreate",
                                      "cuMulticastUnbind"};

constexpr Name other_process_names[] = {"cuIpcCloseMemHandle",
                                        "cuIpcGetMemHandle",
                                        "cuIpcOpenMemHandle",
                                        "cuMemExportToShareableHandle",
                                        "cuMemGetHandleForAddressRange",
                                        "cuMemImportFromShareableHandle",
                                        "cuMemPoolExportPointer",
                                        "cuMemPoolExportToShareableHandle",
                                        "cuMemPoolImportFromShareableHandle",
                                        "cuMemPoolImportPointer"};

constexpr Name several_cards_names[] = {"cuCtxDisablePeerAccess", "cuCtxEnablePeerAccess",
                                        "cuLaunchCooperativeKernelMultiDevice", "cuMemcpy3DPeer",
                                        "cuMemcpy3DPeerAsync"};

constexpr Name external_names[] = {"cuDestroyExternalMemory",
                                   "cuDestroyExternalSemaphore",
                                   "cuExternalMemoryGetMappedBuffer",
                                   "cuExternalMemoryGetMappedMipmappedArray",
                                   "cuGraphAddExternalSemaphoresSignalNode",
                                   "cuGraphAddExternalSemaphoresWaitNode",
                                   "cuGraphExecExternalSemaphoresSignalNodeSetParams",
                                   "cuGraphExecExternalSemaphoresWaitNodeSetParams",
                                   "cuGraphExternalSemaphoresSignalNodeGetParams",
                                   "cuGraphExternalSemaphoresSignalNodeSetParams",
                                   "cuGraphExternalSemaphoresWaitNodeGetParams",
                                   "cuGraphExternalSemaphoresWaitNodeSetParams",
                                   "cuImportExternalMemory",
                                   "cuImportExternalSemaphore",
                                   "cuSignalExternalSemaphoresAsync",
                                   "cuWaitExternalSemaphoresAsync"};

constexpr Name graphics_names[] = {"cuEGLApiInit",
                                   "cuEGLStreamConsumerAcquireFrame",
                                   "cuEGLStreamConsumerConnect",
                                   "cuEGLStreamConsumerConnectWithFlags",
                                   "cuEGLStreamConsumerDisconnect",
                                   "cuEGLStreamConsumerReleaseFrame",
                                   "cuEGLStreamProducerConnect",
                                   "cuEGLStreamProducerDisconnect",
                                   "cuEGLStreamProducerPresentFrame",
                                   "cuEGLStreamProducerReturnFrame",
                                   "cuGLCtxCreate",
                                   "cuGLGetDevices",
                                   "cuGLInit",
                                   "cuGLMapBufferObject",
                                   "cuGLMapBufferObjectAsync",
                                   "cuGLRegisterBufferObject",
                                   "cuGLSetBufferObjectMapFlags",
                                   "cuGLUnmapBufferObject",
                                   "cuGLUnmapBufferObjectAsync",
                                   "cuGLUnregisterBufferObject",
                                   "cuGraphicsEGLRegisterImage",
                                   "cuGraphicsGLRegisterBuffer",
                                   "cuGraphicsGLRegisterImage",
                                   "cuGraphicsMapResources",
                                   "cuGraphicsResourceGetMappedEglFrame",
                                   "cuGraphicsResourceGetMappedMipmappedArray",
                                   "cuGraphicsResourceGetMappedPointer",
                                   "cuGraphicsResourceSetMapFlags",
                                   "cuGraphicsSubResourceGetMappedArray",
                                   "cuGraphicsUnmapResources",
                                   "cuGraphicsUnregisterResource",
                                   "cuGraphicsVDPAURegisterOutputSurface",
                                   "cuGraphicsVDPAURegisterVideoSurface",
                                   "cuVDPAUCtxCreate",
                                   "cuVDPAUGetDevice"};

constexpr Name graph_memory_names[] = {"cuGraphAddMemAllocNode", "cuGraphAddMemFreeNode",
                                       "cuGraphMemAllocNodeGetParams",
                                       "cuGraphMemFreeNodeGetParams"};

constexpr Name any_node_names[] = {"cuGraphExecNodeSetParams", "cuGraphNodeSetParams"};

constexpr Name stream_values_names[] = {"cuGraphAddBatchMemOpNode",
                                        "cuGraphBatchMemOpNodeGetParams",
                                        "cuGraphBatchMemOpNodeSetParams",
                                        "cuGraphExecBatchMemOpNodeSetParams",
                                        "cuStreamBatchMemOp",
                                        "cuStreamWaitValue32",
                                        "cuStreamWaitValue64",
                                        "cuStreamWriteValue32",
                                        "cuStreamWriteValue64"};

constexpr Name tensor_map_names[] = {"cuTensorMapEncodeIm2col", "cuTensorMapEncodeIm2colWide",
                                     "cuTensorMapEncodeTiled", "cuTensorMapReplaceAddress"};

constexpr Name batches_names[] = {"cuMemBatchDecompressAsync", "cuMemcpy3DBatchAsync",
                                  "cuMemcpyBatchAsync"};

constexpr Name old_launch_names[] = {"cuFuncSetBlockShape", "cuFuncSetSharedSize", "cuLaunch",
                                     "cuLaunchGrid",        "cuLaunchGridAsync",   "cuParamSetSize",
                                     "cuParamSetf",         "cuParamSeti",         "cuParamSetv"};

constexpr Name checkpoint_names[] = {
    "cuCheckpointProcessCheckpoint", "cuCheckpointProcessGetRestoreThreadId",
    "cuCheckpointProcessGetState",   "cuCheckpointProcessLock",
    "cuCheckpointProcessRestore",    "cuCheckpointProcessUnlock"};

constexpr Name whole_card_names[] = {"cuCtxResetPersistingL2Cache"};

constexpr Name log_names[] = {"cuLogsRegisterCallback"};

constexpr RefusedCalls refused_groups[] = {
    {textures_names, "textures and arrays lie in memory that has no colour"},
    {managed_names, "managed memory moves to where no colour is"},
    {host_memory_names, "coloured kernels do not reach memory of the host"},
    {own_mapping_names, "this way of mapping memory is not known"},
    {other_process_names, "coloured memory is of one process"},
    {several_cards_names, "a lease is of one card"},
    {external_names, "memory of other interfaces has no colour"},
    {graphics_names, "memory of graphics has no colour"},
    {graph_memory_names, "memory that a graph allocates has no colour"},
    {any_node_names, "nodes are changed by the functions of their own kinds"},
    {stream_values_names, "values that streams wait for lie in memory that has no colour"},
    {tensor_map_names, "copies by tensor maps would miss the colours"},
    {batches_names, "copies in batches are not known"},
    {old_launch_names, "this way of launching is not watched"},
    {checkpoint_names, "checkpoints of coloured memory are not known"},
    {whole_card_names, "it changes the L2 of all tenants"},
    {log_names, "the driver would call the program while Demarc calls the driver"},
};

bool lists(std::span<const Name> names, Name name) {
  return std::binary_search(names.begin(), names.end(), name);
}

}  // namespace

bool passes_colored(std::string_view versioned_name) {
  return lists(passing_names, without_version(versioned_name)) && is_known_function(versioned_name);
}

bool makes_context(std::string_view base_name) {
  return base_name == "cuDevicePrimaryCtxRetain" || base_name == "cuCtxCreate" ||
         base_name == "cuCtxFromGreenCtx";
}

bool pins_host_memory(std::string_view base_name) {
  return base_name == "cuMemHostAlloc" || base_name == "cuMemAllocHost" ||
         base_name == "cuMemHostRegister";
}

bool passes_unmapped(std::string_view base_name) {
  return base_name == "cuCtxDestroy";
}

std::span<const std::string_view> passing_calls() {
  return passing_names;
}

std::span<const RefusedCalls> refused_calls() {
  return refused_groups;
}

const char* why_refused(std::string_view base_name) {
  const auto* group =
      std::find_if(std::begin(refused_groups), std::end(refused_groups),
                   [&](const RefusedCalls& one) { return lists(one.names, base_name); });
  return group == std::end(refused_groups) ? "this function, or its version, is not known"
                                           : group->why;
}

}  // namespace demarc::cuda
