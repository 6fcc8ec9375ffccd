// Memory that kernels reach by rewritten accesses only (ptx/colored.hpp): buffers in a range of
// linear addresses, filled and read by a copy whose accesses are rewritten in the same way.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "demarc/ptx/colored.hpp"
#include "gpu/memory_source.hpp"

namespace demarc::study {

struct RewrittenRange {
  cuda::GpuPointer gpu;
  std::shared_ptr<const void> memory;  // held as long as the range or a buffer of it is
  std::uint64_t base = 0;              // what a kernel gets as the address of linear byte 0
  std::uint64_t bytes = 0;
  std::uint64_t alignment = 256;  // of buffers, linear
  std::function<Result<std::string>(const ptx::Module& module, ptx::ColoredAccesses accesses)>
      rewrite;
  std::string color;    // "colour 0 of 2", for messages
  std::string account;  // how the memory was found
};

[[nodiscard]] Result<std::shared_ptr<MemorySource>> make_rewritten_memory(RewrittenRange range);

}  // namespace demarc::study
