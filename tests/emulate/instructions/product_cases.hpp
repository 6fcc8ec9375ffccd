// Matrix products whose rounding is the hardware's own: each instruction on numbers of eleven
// kinds. The same table drives the comparison with a card and the test against what a card gave,
// which tests/emulate/products keeps.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "demarc/launch/launch.hpp"

namespace demarc::emulate::test {

struct ProductCase {
  std::string name;           // name of the file that is kept
  std::string text;           // a module with the kernel `k`
  std::vector<std::byte> in;  // a, b and c of each block
  std::size_t out_bytes = 0;  // d of each block
  std::uint32_t blocks = 0;
  std::uint32_t threads = 0;

  // Buffers: `in`, then d.
  [[nodiscard]] gpu::Launch launch() const;
};

[[nodiscard]] std::vector<ProductCase> product_cases();

}  // namespace demarc::emulate::test
