// Rewrites kernels so that they keep to a share.
#include "demarc/cuda/colored_code.hpp"

namespace demarc::cuda {
Result<ptx::ColoredModule> ColoredCode::rewrite(const ptx::Module& module,
                                                ptx::ColoredOptions options) const {
  options.card = card_.number();
  DEMARC_TRY(const ptx::Translation translation, translation_for(module, options));
  return ptx::rewrite_colored(module, translation, options);
}

Result<ptx::Translation> ColoredCode::translation_for(const ptx::Module& module,
                                                      const ptx::ColoredOptions& options) const {
  const auto* parities = std::get_if<color::Parities>(&addressing_);
  if (parities != nullptr) return color::translation_of(*parities);
  const auto& remainders = std::get<color::RemainderAddressing>(addressing_);
  if (!std::holds_alternative<ptx::PlacesAtLoad>(options.places)) {
    return color::translation_of(remainders, module);
  }
  color::RemainderShape shape = remainders.shape;
  shape.shifts_quotients = remainders.constants.reciprocal_shift != 0;
  return color::translation_of(shape, module);
}

std::vector<std::byte> ColoredCode::constants(const ptx::ColoredPlaces& places) const {
  const auto* remainders = std::get_if<color::RemainderAddressing>(&addressing_);
  if (remainders == nullptr) return ptx::colored_constants(places);
  return ptx::colored_constants(places, std::as_bytes(std::span(&remainders->constants, 1)));
}

}  // namespace demarc::cuda
