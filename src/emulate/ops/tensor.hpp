// Copies and reductions of a box of a tensor that a tensor map describes, between global and shared
// memory. They are done when they are issued.
#pragma once

#include "demarc/launch/tensor_map.hpp"
#include "ops/bulk.hpp"

namespace demarc::emulate {

struct TensorDetails {
  // To shared memory: the box, with its barrier. To global memory: any 16 bytes of the tensor.
  BulkArrival arrival;
  MicroOp from;  // likewise
  MicroOp map;   // a generic access to 16 bytes
  bool loads = true;
  bool reduces = false;
  AtomicKind kind = AtomicKind::add;
  unsigned dimensions = 1;
  std::uint32_t coordinates[gpu::max_tensor_dimensions] = {};  // slots; along dimension 0 first
  bool coordinate_uniform[gpu::max_tensor_dimensions] = {};
};

namespace tensor_ops {
const MicroOp* copy(Warp& w, const MicroOp* op);  // aux: TensorDetails
}  // namespace tensor_ops

}  // namespace demarc::emulate
