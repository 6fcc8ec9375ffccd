// The types of the CUDA driver interface that Demarc uses, declared here so that neither building
// nor running needs a CUDA toolkit. Layouts are those of CUDA 11.2 to 13; handles are the driver's.
#pragma once

#include <cstddef>
#include <cstdint>

struct CUctx_st;
struct CUmod_st;
struct CUfunc_st;
struct CUstream_st;
struct CUevent_st;
struct CUgraph_st;
struct CUgraphExec_st;
struct CUgraphNode_st;
struct CUgreenCtx_st;
struct CUdevResourceDesc_st;
struct CUlib_st;
struct CUkern_st;
struct CUlinkState_st;
struct CUmemPoolHandle_st;

namespace demarc::cuda {

using CuResult = int;  // CUresult; 0 is success
using CuDevice = int;
using CuContext = CUctx_st*;
using CuModule = CUmod_st*;
using CuFunction = CUfunc_st*;
using CuStream = CUstream_st*;
using CuEvent = CUevent_st*;
using CuGraph = CUgraph_st*;
using CuGraphExec = CUgraphExec_st*;
using CuGraphNode = CUgraphNode_st*;
using CuGreenContext = CUgreenCtx_st*;
using CuResourceDesc = CUdevResourceDesc_st*;
using CuLibrary = CUlib_st*;
using CuKernel = CUkern_st*;
using CuLink = CUlinkState_st*;
using DevicePointer = unsigned long long;  // CUdeviceptr
using AllocationHandle = unsigned long long;

inline constexpr CuResult cu_success = 0;
inline constexpr CuResult cu_error_invalid_value = 1;
inline constexpr CuResult cu_error_out_of_memory = 2;
inline constexpr CuResult cu_error_invalid_context = 201;
inline constexpr CuResult cu_error_map_failed = 205;
inline constexpr CuResult cu_error_no_binary = 209;
inline constexpr CuResult cu_error_unsupported_limit = 215;
inline constexpr CuResult cu_error_invalid_handle = 400;
inline constexpr CuResult cu_error_not_found = 500;
inline constexpr CuResult cu_error_not_ready = 600;
inline constexpr CuResult cu_error_not_supported = 801;
inline constexpr CuResult cu_error_mps_server_not_ready = 807;
inline constexpr CuResult cu_error_capturing = 900;
inline constexpr CuResult cu_error_capture_invalidated = 901;
inline constexpr CuResult cu_error_unknown = 999;

struct CuIpcHandle {
  char bytes[64];
};
struct CuUuid {
  unsigned char bytes[16];
};

// CUdevice_attribute, the ones asked for.
enum CuDeviceAttribute : int {
  attribute_max_threads_per_block = 1,
  attribute_clock_khz = 13,
  attribute_sm_count = 16,
  attribute_compute_mode = 20,  // compute_mode_default: any number of processes may have contexts
  attribute_memory_clock_khz = 36,
  attribute_memory_bus_bits = 37,
  attribute_l2_bytes = 38,
  attribute_max_threads_per_sm = 39,
  attribute_capability_major = 75,
  attribute_capability_minor = 76,
  attribute_shared_bytes_per_sm = 81,
  attribute_registers_per_sm = 82,
  attribute_host_atomics = 86,     // the bus carries atomics to host memory
  attribute_pageable_memory = 88,  // kernels reach all host memory
  attribute_shared_bytes_per_block_optin = 97,
  attribute_virtual_memory = 102,
  attribute_file_descriptors = 103,  // physical memory can be lent by them
  attribute_max_blocks_per_sm = 106,
  attribute_reserved_shared_bytes = 111,
  attribute_cluster_launch = 120,
  attribute_sync_domains = 126,
  attribute_mps_enabled = 133,  // contexts of this process go through MPS; CUDA 12.1
};

inline constexpr int compute_mode_default = 0;
inline constexpr int compute_mode_prohibited = 2;
inline constexpr int peer_attribute_atomics = 3;  // CUdevice_P2PAttribute: native atomics

// CUfunction_attribute, the ones used.
enum CuFunctionAttribute : int {
  function_max_threads_per_block = 0,
  function_shared_bytes = 1,
  function_local_bytes = 3,
  function_registers = 4,
  function_max_dynamic_shared_bytes = 8,
  function_non_portable_cluster = 14,
};

inline constexpr unsigned cu_stream_non_blocking = 1;
inline constexpr unsigned cu_event_disable_timing = 2;
inline constexpr unsigned cu_green_default_stream = 1;
inline constexpr unsigned cu_split_ignore_coscheduling = 1;
inline constexpr int cu_capture_thread_local = 1;
inline constexpr unsigned cu_host_memory_mapped = 2;
inline constexpr unsigned cu_memory_host = 1;
inline constexpr unsigned cu_memory_device = 2;
inline constexpr unsigned cu_memory_array = 3;
inline constexpr unsigned cu_memory_unified = 4;

union CuLaunchAttributeValue {
  char bytes[64];
  unsigned cluster[3];
  int flag;
  unsigned char domains[2];  // of launches that choose the default one, and the remote one
};

struct CuLaunchAttribute {
  static constexpr int cooperative = 2;
  static constexpr int cluster_dimension = 4;
  static constexpr int programmatic_serialization = 6;
  static constexpr int sync_domain_map = 9;
  int id;
  char pad[4];
  CuLaunchAttributeValue value;
};

struct CuLaunchConfig {
  unsigned grid[3];
  unsigned block[3];
  unsigned shared_bytes;
  CuStream stream;
  const CuLaunchAttribute* attributes;
  unsigned attribute_count;
};

struct CuMemoryLocation {
  static constexpr int device = 1;
  int type;
  int id;
};

struct CuAllocationProperties {
  static constexpr int pinned = 1;
  static constexpr int file_descriptor = 1;
  int type;
  int handle_types;  // 0, or file_descriptor
  CuMemoryLocation location;
  void* win32_metadata;
  struct {
    unsigned char compression;
    unsigned char gpu_direct_rdma;
    unsigned short usage;
    unsigned char reserved[4];
  } flags;
};

struct CuAccess {
  static constexpr int read = 1;
  static constexpr int read_write = 3;
  CuMemoryLocation location;
  int flags;
};

// CUDA_MEMCPY2D
struct CuCopy2d {
  std::size_t source_x_bytes, source_y;
  unsigned source_type;
  const void* source_host;
  DevicePointer source_device;
  void* source_array;
  std::size_t source_pitch;
  std::size_t target_x_bytes, target_y;
  unsigned target_type;
  void* target_host;
  DevicePointer target_device;
  void* target_array;
  std::size_t target_pitch;
  std::size_t width_bytes, height;
};

// CUDA_MEMCPY3D
struct CuCopy3d {
  struct Side {
    std::size_t x_bytes, y, z, level;
    unsigned type;
    void* host;
    DevicePointer device;
    void* array;
    void* reserved;
    std::size_t pitch, height;
  };
  Side source, target;
  std::size_t width_bytes, height, depth;
};

// CUDA_KERNEL_NODE_PARAMS, first version
struct CuKernelNodeV1 {
  CuFunction function;
  unsigned grid[3];
  unsigned block[3];
  unsigned shared_bytes;
  void** arguments;
  void** extra;
};
// The second version.
struct CuKernelNode : CuKernelNodeV1 {
  CuKernel kernel;  // where there is no function
  CuContext context;
};

// CUDA_MEMSET_NODE_PARAMS
struct CuFillNode {
  DevicePointer target;
  std::size_t pitch;
  unsigned value, element_bytes;
  std::size_t width, height;  // elements, rows
};

// CUgraphNodeParams: what nodes of those types have that are read.
struct CuAnyNode {
  struct Copy {
    int flags, reserved;
    CuContext context;
    CuCopy3d params;
  };
  struct Fill {
    CuFillNode params;
    CuContext context;
  };
  int type;  // CUgraphNodeType
  int reserved[3];
  union {
    long long bytes[29];
    CuKernelNode kernel;
    Copy copy;
    Fill fill;
    CuAllocationProperties allocation;
  };
};

// CUdevResource, version 1 (CUDA 12.4 to 13.0).
struct CuDeviceResource {
  static constexpr int sm_type = 1;
  struct Sms {
    unsigned sm_count;
    unsigned min_partition;
    unsigned coscheduled_alignment;
  };
  int type;
  unsigned char internal[92];
  union {
    Sms sm;
    unsigned char oversize[48];
  };
};

}  // namespace demarc::cuda
