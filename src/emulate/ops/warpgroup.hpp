// Matrix products of a warpgroup (wgmma): 64 rows, of which each of its four warps makes 16, with
// operands in shared memory that a word of 64 bits describes. They are made when they are issued,
// each warp's by itself: what a program that waits as it must cannot tell.
#pragma once

#include "ops/matrix.hpp"

namespace demarc::emulate {

// Where an operand in shared memory lies [PTX ISA 9.7.15.5.1]. Rows of a are m, those of b are n.
struct MatrixDescriptor {
  std::uint64_t start = 0;    // bytes
  std::uint64_t leading = 0;  // bytes
  std::uint64_t stride = 0;   // bytes
  unsigned base_offset = 0;
  unsigned swizzled_bytes = 0;  // bytes of a row that is swizzled: 32, 64, 128; 0: none

  [[nodiscard]] static MatrixDescriptor read(std::uint64_t bits);
  // Address of 16 bytes that follow each other: of those at `row` that begin with byte `byte` of
  // its k, and where rows follow each other in memory, of eight rows of 16 bits from `row` on.
  [[nodiscard]] std::uint64_t along_k(unsigned row, unsigned byte) const;
  [[nodiscard]] std::uint64_t along_rows(unsigned row, unsigned k) const;

 private:
  [[nodiscard]] std::uint64_t swizzled(std::uint64_t address) const;
};

struct WarpgroupOperand {
  bool in_memory = true;
  bool along_rows = false;  // else k follows k in memory
  bool negated = false;
  std::uint32_t descriptor = 0;  // slot of 8 bytes
  bool uniform = false;          // it
  Fragment fragment;
};

struct WarpgroupDetails {
  static constexpr unsigned warp_rows = 16;
  static constexpr unsigned max_registers = 128;
  ProductSize size;  // per warp
  ProductTypes types;
  ProductSteps steps;
  WarpgroupOperand a;
  WarpgroupOperand b;
  std::uint32_t scale = 0;  // slot of the predicate that says whether d is added to
  bool scale_negated = false;
  MicroOp part;               // an access to 16 bytes of shared memory by each lane
  std::uint32_t scratch = 0;  // slot of 32 addresses
  unsigned registers = 0;
  std::uint32_t d[max_registers] = {};
};

namespace matrix_ops {
const MicroOp* multiply_warpgroup(Warp& w, const MicroOp* op);  // aux: WarpgroupDetails
}  // namespace matrix_ops

// Whether wgmma has that shape for the type of a: 64 rows, and n and k as said.
[[nodiscard]] bool is_warpgroup_shape(MatrixType a_type, unsigned n, unsigned k);

}  // namespace demarc::emulate
