// How errors leave the C interface. Nothing thrown may cross into C.
#pragma once

#include <cstdint>
#include <exception>
#include <initializer_list>
#include <string>

#include "demarc/base/result.hpp"
#include "demarc/card/card.hpp"
#include "demarc/card/masks.hpp"

// NOLINTNEXTLINE(readability-identifier-naming): the name in the C interface
struct demarc_card {
  demarc::cuda::CardPointer card;
  std::optional<demarc::cuda::ProcessMask> process;
};

namespace demarc::c_api {

// The sentence of the calling thread's last error.
std::string& last_error();
int report(const Result<void>& result);

// A pointer that a function cannot do without, by its name in the header.
struct Needed {
  const char* name;
  const void* pointer;
  std::uint64_t count = 1;  // of what lies there; 0 needs no pointer
};
Result<void> check_given(std::initializer_list<Needed> needed);

template <class Work>
int guarded(std::initializer_list<Needed> needed, Work&& work) {
  try {
    if (const Result<void> given = check_given(needed); !given) return report(given);
    return report(work());
  } catch (const std::exception& error) {
    last_error() = error.what();
    return 2;
  }
}

}  // namespace demarc::c_api

#define DEMARC_EXPORT extern "C" __attribute__((visibility("default")))
