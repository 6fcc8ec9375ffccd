// Modules rewritten for colours that are given by their numbers.
#pragma once

#include "demarc/color/translation.hpp"
#include "demarc/ptx/colored.hpp"

namespace demarc::color {

inline Result<ptx::ColoredModule> rewrite_parities(const ptx::Module& module,
                                                   const Parities& parities,
                                                   const ptx::ColoredOptions& options = {}) {
  DEMARC_TRY(const ptx::Translation translation, translation_of(parities));
  return ptx::rewrite_colored(module, translation, options);
}

// `by`: the RemainderAddressing, or the RemainderShape alone.
template <class By = RemainderAddressing>
Result<ptx::ColoredModule> rewrite_remainders(const ptx::Module& module, const By& by,
                                              const ptx::ColoredOptions& options = {}) {
  DEMARC_TRY(const ptx::Translation translation, translation_of(by, module));
  return ptx::rewrite_colored(module, translation, options);
}

}  // namespace demarc::color
