// The stand-in driver for tests of rooms that work on a card.
#pragma once

#include <dlfcn.h>

#include "demarc/card/card.hpp"
#include "fake/fake_gpu.hpp"
#include "paths.hpp"

namespace demarc::test {

// Loaded afresh for each test: the driver's version is read then, and a test may have changed it.
inline std::shared_ptr<const cuda::Driver> fake_driver() {
  return cuda::Driver::load(test::fake_libcuda().string()).value();
}

template <class Function>
Function* fake_symbol(const char* name) {
  const std::string path = fake_driver()->origin();
  void* library = ::dlopen(path.c_str(), RTLD_NOW | RTLD_NOLOAD);
  return reinterpret_cast<Function*>(::dlsym(library, name));
}

inline void configure(const fake::FakeConfig& config) {
  fake_symbol<void(const fake::FakeConfig*)>("fake_configure")(&config);
}

// A card of the stand-in, as `config` says, with nothing remembered.
inline cuda::GpuPointer fake_gpu(const fake::FakeConfig& config = fake::small_gpu()) {
  configure(config);
  return cuda::Gpu::open(fake_driver(), 0).value();
}

inline Result<cuda::CardPointer> fake_card(const fake::FakeConfig& config = fake::small_gpu(),
                                           bool use_masks = true) {
  cuda::CardOptions options;
  options.cache_folder = fresh_folder("facts").string();
  options.refresh = true;
  options.use_masks = use_masks;
  return cuda::Card::open(fake_gpu(config), options);
}

}  // namespace demarc::test
