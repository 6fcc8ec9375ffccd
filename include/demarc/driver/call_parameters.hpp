// The parameters of the driver's functions as DriverCall::parameters() reads them: members in the
// order of the declaration, each where a struct has it. functions.def says which function has
// which; a struct may leave out the last members, and functions that begin alike share one.
#pragma once

#include "demarc/driver/driver_types.hpp"

namespace demarc::cuda {

// clang-format off
// The callback shows no parameters at all.
struct NoParameters {};
// Nothing reads them.
struct Unread {};

struct ExportTableOf { const void** table; const CuUuid* id; };
struct SetLimit { int limit; };
struct AttributeOfDevice { int* value; int attribute; };

// Memory.
struct Allocate { DevicePointer* address; std::size_t bytes; };
struct AllocatePitch {
  DevicePointer* address; std::size_t *pitch, width, height;  // pitch and width: bytes
};
struct Free { DevicePointer address; };
struct FreeAsync { DevicePointer address; CuStream stream; };
struct GetMemoryInfo { std::size_t *free, *total; };
struct GetAddressRange { DevicePointer* base; std::size_t* bytes; DevicePointer address; };
struct AttributeOfPointer { void* value; int attribute; DevicePointer address; };
struct GetIpcHandle { CuIpcHandle* handle; DevicePointer address; };
struct OpenIpcHandle { DevicePointer* address; CuIpcHandle handle; unsigned flags; };
struct GetPointerAttributes {
  unsigned count; const int* attributes; void** values; DevicePointer address;
};

// Mappings.
struct ReserveAddresses {
  DevicePointer* address; std::size_t bytes, alignment; DevicePointer wanted;
  unsigned long long flags;
};
struct MappedRange { DevicePointer address; std::size_t bytes; };
struct CreateMemory {
  AllocationHandle* handle; std::size_t bytes; const CuAllocationProperties* properties;
};
struct ReleaseMemory { AllocationHandle handle; };
struct MapMemory { DevicePointer address; std::size_t bytes, offset; AllocationHandle handle; };
struct SetAccess {
  DevicePointer address; std::size_t bytes; const CuAccess* access; std::size_t count;
};
struct GetAccess {
  unsigned long long* flags; const CuMemoryLocation* location; DevicePointer address;
};
struct CreatePool {
  void** pool; const CuAllocationProperties* properties;  // CUmemPoolProps, which begins alike
};
struct GetPoolOf {
  void** pool; const CuMemoryLocation* location; int type;  // `type` of the allocations
};

// Copies and fills; addresses of host memory are numbers too.
struct LinearCopy { DevicePointer to, from; std::size_t bytes; };
struct LinearCopyAsync { DevicePointer to, from; std::size_t bytes; CuStream stream; };
struct PeerCopy {
  DevicePointer to; CuContext to_context; DevicePointer from; CuContext from_context;
  std::size_t bytes;
};
struct PeerCopyAsync {
  DevicePointer to; CuContext to_context; DevicePointer from; CuContext from_context;
  std::size_t bytes; CuStream stream;
};
template <class Copy> struct ShapedCopy { const Copy* copy; };
template <class Copy> struct ShapedCopyAsync { const Copy* copy; CuStream stream; };
template <class Value> struct LinearFill {
  DevicePointer to; Value value; std::size_t width;  // values
};
template <class Value> struct LinearFillAsync {
  DevicePointer to; Value value; std::size_t width; CuStream stream;
};
template <class Value> struct PitchedFill {
  DevicePointer to; std::size_t pitch; Value value; std::size_t width, height;
};
template <class Value> struct PitchedFillAsync {
  DevicePointer to; std::size_t pitch; Value value; std::size_t width, height; CuStream stream;
};

// Code: a handle is a module or a library.
struct LoadCode { const void** handle; const void* image; };
struct LoadModuleEx {
  const void** handle; const void* image; unsigned count; int* options; void** values;
};
struct LoadFile { const void** handle; const char* path; };
struct LoadLibrary {
  const void** handle; const void* image;  // or the path of a file
  int* options; void** values; unsigned count;
  const int* library_options; void* const* library_values; unsigned library_count;
};
struct UnloadCode { const void* handle; };
struct GetVariable {
  DevicePointer* address; std::size_t* bytes; const void* handle; const char* name;
};
struct GetModule { const void** module; const void* library; };
struct GetKernel {
  const void** kernel;  // a function or a library's kernel
  const void* handle; const char* name;
};
struct GetFunction { const void** function; const void* kernel; };
struct CreateLink { unsigned count; const int* options; void** values; const void** link; };
struct AddLinkData {
  const void* link; int type; const char* data; std::size_t bytes; const char* name;
  unsigned count; const int* options; void** values;
};
struct AddLinkFile {
  const void* link; int type; const char* path; unsigned count; const int* options; void** values;
};
struct CompleteLink { const void* link; const void** image; std::size_t* bytes; };
struct DestroyLink { const void* link; };

// Launches.
struct LaunchCooperative {
  CuFunction function; unsigned grid_x, grid_y, grid_z, block_x, block_y, block_z;
  unsigned shared_bytes; CuStream stream; void** arguments;
};
struct LaunchKernel {
  CuFunction function; unsigned grid_x, grid_y, grid_z, block_x, block_y, block_z;
  unsigned shared_bytes; CuStream stream; void **arguments, **extra;
};
struct LaunchKernelEx {
  const CuLaunchConfig* config; CuFunction function; void **arguments, **extra;
};

// Streams and graphs. Parameters of nodes are of the node's type.
struct DestroyStream { CuStream stream; };
struct EndCapture { CuStream stream; CuGraph* graph; };
struct LaunchGraph { CuGraphExec executable; CuStream stream; };
struct DestroyExecutable { CuGraphExec executable; };
struct InstantiateGraph { CuGraphExec* executable; CuGraph graph; unsigned long long flags; };
struct CuInstantiation {  // the beginning of the function's own parameters
  static constexpr std::uint64_t upload = 2;  // a flag
  std::uint64_t flags; CuStream upload_stream;
};
struct InstantiateGraphWith {
  CuGraphExec* executable; CuGraph graph; const CuInstantiation* how;
};
template <class Node> struct AddNode {
  CuGraphNode* node; CuGraph graph; const CuGraphNode* after; std::size_t count;
  const Node* params;
};
template <class Node> struct AddNodeIn {
  CuGraphNode* node; CuGraph graph; const CuGraphNode* after; std::size_t count;
  const Node* params; CuContext context;
};
struct AddAnyNode {  // the second version of the function
  CuGraphNode* node; CuGraph graph; const CuGraphNode* after; const char* edges;
  std::size_t count; const CuAnyNode* params;
};
template <class Node> struct NodeParams { CuGraphNode node; Node* params; };
template <class Node> struct LaunchedNodeParams {
  CuGraphExec executable; CuGraphNode node; const Node* params;
};
template <class Node> struct LaunchedNodeParamsIn {
  CuGraphExec executable; CuGraphNode node; const Node* params; CuContext context;
};
struct GetNodeType { CuGraphNode node; int* type; };
struct SetNodeAttribute {
  CuGraphNode node; int attribute; const int* value;  // the first member of any
};
struct DestroyGraph { CuGraph graph; };
struct DestroyNode { CuGraphNode node; };
// clang-format on

}  // namespace demarc::cuda
