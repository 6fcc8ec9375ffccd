// Knows which attributes of a card say that functions of a kind may be called.
#include "calls/device_calls.hpp"

#include "demarc/driver/functions.hpp"

namespace demarc::cuda {
namespace {

// An attribute that says whether functions of a kind may be called; `rule` refuses these functions.
struct Feature {
  int attribute;  // CUdevice_attribute
  Rule rule;
};

constexpr Feature features[] = {
    {19, Rule::host_memory},     // CAN_MAP_HOST_MEMORY
    {83, Rule::managed},         // MANAGED_MEMORY
    {88, Rule::host_memory},     // PAGEABLE_MEMORY_ACCESS
    {89, Rule::managed},         // CONCURRENT_MANAGED_ACCESS
    {91, Rule::host_memory},     // CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM
    {92, Rule::stream_values},   // CAN_USE_STREAM_MEM_OPS_V1
    {93, Rule::stream_values},   // CAN_USE_64_BIT_STREAM_MEM_OPS_V1
    {94, Rule::stream_values},   // CAN_USE_STREAM_WAIT_VALUE_NOR_V1
    {96, Rule::several_cards},   // COOPERATIVE_MULTI_DEVICE_LAUNCH
    {98, Rule::stream_values},   // CAN_FLUSH_REMOTE_WRITES
    {100, Rule::host_memory},    // PAGEABLE_MEMORY_ACCESS_USES_HOST_PAGE_TABLES
    {101, Rule::managed},        // DIRECT_MANAGED_MEM_ACCESS_FROM_HOST
    {102, Rule::own_mapping},    // VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED: a range takes its bytes
    {103, Rule::other_process},  // HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED
    {108, Rule::whole_card},     // MAX_PERSISTING_L2_CACHE_SIZE
    {110, Rule::own_mapping},    // GPU_DIRECT_RDMA_WITH_CUDA_VMM_SUPPORTED
    {112, Rule::textures},       // SPARSE_CUDA_ARRAY_SUPPORTED
    {114, Rule::external},       // TIMELINE_SEMAPHORE_INTEROP_SUPPORTED
    {116, Rule::other_process},  // GPU_DIRECT_RDMA_SUPPORTED
    {119, Rule::other_process},  // MEMPOOL_SUPPORTED_HANDLE_TYPES
    {121, Rule::textures},       // DEFERRED_MAPPING_CUDA_ARRAY_SUPPORTED
    {122, Rule::stream_values},  // CAN_USE_64_BIT_STREAM_MEM_OPS
    {123, Rule::stream_values},  // CAN_USE_STREAM_WAIT_VALUE_NOR
    {124, Rule::other_process},  // DMA_BUF_SUPPORTED
    {127, Rule::tensor_map},     // TENSOR_MAP_ACCESS_SUPPORTED
    {128, Rule::other_process},  // HANDLE_TYPE_FABRIC_SUPPORTED
    {132, Rule::own_mapping},    // MULTICAST_SUPPORTED
    {136, Rule::batches},        // MEM_DECOMPRESS_ALGORITHM_MASK
    {137, Rule::batches},        // MEM_DECOMPRESS_MAXIMUM_LENGTH
};

}  // namespace

CallAnswer tell_of_card(const DriverCall& call, bool windows) {
  const auto [value, attribute] = call.parameters<AttributeOfDevice>();
  const auto* feature = std::ranges::find(features, attribute, &Feature::attribute);
  if (value == nullptr || feature == std::end(features)) return std::nullopt;
  if (windows && window_rule(feature->rule) != WindowRule::never) return std::nullopt;
  *value = 0;
  return cu_success;
}

}  // namespace demarc::cuda
