// Addresses as people write them: param5 + 4*(tid.y + 4*ctaid.y).
#pragma once

#include <string>

#include "demarc/ptx/address_tree.hpp"

namespace demarc::locality {

// A sum of products of the leaves of the tree, parameters first, common factors taken out. Parts
// that are no polynomial appear as functions: min(a, b), (a / b), (a >> 2), load(...). A register
// that a loop advances by a constant appears as start + step*i1, i2 ...
[[nodiscard]] std::string address_expression(const ptx::Module& module,
                                             const ptx::Function& function,
                                             const ptx::AddressTree& tree);

}  // namespace demarc::locality
