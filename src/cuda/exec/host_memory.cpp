// The functions that give memory of the host, one row each. Layouts are those of CUDA's own header.
#include "exec/host_memory.hpp"

#include <algorithm>
#include <cstdint>

namespace demarc::cuda {
namespace {

// CU_MEM_ALLOCATION_TYPE_PINNED (the other one is managed), CU_MEM_LOCATION_TYPE_DEVICE,
// CU_GRAPH_NODE_TYPE_MEM_ALLOC.
constexpr std::uint32_t pinned = 1;
constexpr std::uint32_t on_a_card = 1;
constexpr std::uint32_t allocation_node = 10;

std::uint32_t word_at(const char* address, std::size_t offset) {
  std::uint32_t word = 0;
  std::memcpy(&word, address + offset, sizeof word);
  return word;
}

// CUmemAllocationProp and CUmemPoolProps begin alike: type, kinds of handles, type of the location.
// Without properties the driver refuses the call itself.
bool off_the_card(const char* properties) {
  return properties != nullptr &&
         (word_at(properties, 0) != pinned || word_at(properties, 8) != on_a_card);
}

// Of a location that an argument points to, with the type of the allocations as the argument after
// it.
bool pool_off_the_card(const DriverCall& call) {
  const auto* location = call.argument<const char*>(8);
  return location != nullptr &&
         (word_at(location, 0) != on_a_card || call.argument<std::uint32_t>(16) != pinned);
}

// CUgraphNodeParams: the type, then from byte 16 on what such a node has.
bool node_off_the_card(const char* node) {
  return node != nullptr && word_at(node, 0) == allocation_node && off_the_card(node + 16);
}

struct Giver {
  std::string_view name;  // DriverCall::base_name()
  bool (*gives)(const DriverCall& call);
};

bool always(const DriverCall&) {
  return true;
}

constexpr Giver givers[] = {
    {"cuMemAllocHost", always},
    {"cuMemHostAlloc", always},
    {"cuMemHostRegister", always},
    {"cuMemAllocManaged", always},
    {"cuMemCreate",
     [](const DriverCall& call) { return off_the_card(call.argument<const char*>(16)); }},
    {"cuMemPoolCreate",
     [](const DriverCall& call) { return off_the_card(call.argument<const char*>(8)); }},
    {"cuMemGetDefaultMemPool", pool_off_the_card},
    {"cuMemGetMemPool", pool_off_the_card},
    {"cuGraphAddMemAllocNode",
     [](const DriverCall& call) { return off_the_card(call.argument<const char*>(32)); }},
    // Its second version has one argument more in front of the number of dependencies.
    {"cuGraphAddNode",
     [](const DriverCall& call) {
       const bool second = call.name().starts_with("cuGraphAddNode_v2");
       return node_off_the_card(call.argument<const char*>(second ? 40 : 32));
     }},
    {"cuMemImportFromShareableHandle", always},
    {"cuMemPoolImportFromShareableHandle", always},
    {"cuImportExternalMemory", always},
    {"cuGraphicsMapResources", always},
    {"cuGLMapBufferObject", always},
    {"cuGLMapBufferObjectAsync", always},
    {"cuGraphicsEGLRegisterImage", always},
    {"cuEGLStreamConsumerAcquireFrame", always},
    {"cuEGLStreamProducerReturnFrame", always},
};

}  // namespace

bool gives_host_memory(const DriverCall& call) {
  const std::string_view name = call.base_name();
  const auto* row = std::find_if(std::begin(givers), std::end(givers),
                                 [&](const Giver& known) { return known.name == name; });
  return row != std::end(givers) && row->gives(call);
}

}  // namespace demarc::cuda
