// Rewrites kernels so that they keep to a share.
#include "demarc/guest/colored_code.hpp"

namespace demarc::cuda {

Result<ptx::ColoredModule> ColoredCode::rewrite(const ptx::Module& module,
                                                ptx::ColoredOptions options) const {
  options.card = card_.number();
  const bool at_load = std::holds_alternative<ptx::PlacesAtLoad>(options.places);
  DEMARC_TRY(const ptx::Translation translation,
             at_load ? law_->translation(module) : law_->translation(module, place_));
  return ptx::rewrite_colored(module, translation, options);
}

std::vector<std::byte> ColoredCode::constants(const ptx::ColoredPlaces& places) const {
  return ptx::colored_constants(places, law_->constants(place_));
}

}  // namespace demarc::cuda
