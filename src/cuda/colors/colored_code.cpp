// Rewrites kernels so that they keep to a share.
#include "demarc/cuda/colored_code.hpp"

namespace demarc::cuda {
Result<ptx::ColoredModule> ColoredCode::rewrite(const ptx::Module& module,
                                                ptx::ColoredOptions options) const {
  options.card = card_.number();
  const auto* parities = std::get_if<ptx::ColoredAddressing>(&addressing_);
  if (parities != nullptr) return ptx::rewrite_colored(module, *parities, options);
  const auto& remainders = std::get<ptx::RemainderAddressing>(addressing_);
  if (!std::holds_alternative<ptx::PlacesAtLoad>(options.places)) {
    return ptx::rewrite_remainders(module, remainders, options);
  }
  ptx::RemainderShape shape = remainders.shape;
  shape.shifts_quotients = remainders.constants.reciprocal_shift != 0;
  return ptx::rewrite_remainders(module, shape, options);
}

std::vector<std::byte> ColoredCode::constants(const ptx::ColoredPlaces& places) const {
  const auto* remainders = std::get_if<ptx::RemainderAddressing>(&addressing_);
  return ptx::colored_constants(places, remainders == nullptr ? nullptr : &remainders->constants);
}

}  // namespace demarc::cuda
