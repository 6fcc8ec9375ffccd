// How errors leave the C interface. Nothing thrown may cross into C.
#pragma once

#include <exception>
#include <string>

#include "demarc/base/result.hpp"
#include "demarc/cuda/card.hpp"
#include "demarc/cuda/masks.hpp"

// NOLINTNEXTLINE(readability-identifier-naming): the name in the C interface
struct demarc_card {
  demarc::cuda::CardPointer card;
  std::optional<demarc::cuda::ProcessMask> process;
};

namespace demarc::c_api {

// The sentence of the calling thread's last error.
std::string& last_error();
int report(const Result<void>& result);

template <class Work>
int guarded(Work&& work) {
  try {
    return report(work());
  } catch (const std::exception& error) {
    last_error() = error.what();
    return 2;
  }
}

}  // namespace demarc::c_api

#define DEMARC_EXPORT extern "C" __attribute__((visibility("default")))
