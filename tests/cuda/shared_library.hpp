// A library of ours as a program of others loads it. What fails ends the test's process, which is
// its own: the launch callback has one subscriber a process.
#pragma once

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <string>

#include "fake_card.hpp"

namespace demarc::cuda {

// Ends the test's process with what went wrong.
inline void demand(bool good, const std::string& what) {
  if (good) return;
  std::fprintf(stderr, "failed: %s\n", what.c_str());
  std::_Exit(1);
}
#define DEMAND(condition) demand(condition, #condition)

inline void* library(const char* name) {
  void* opened = ::dlopen((test::build_dir() / name).c_str(), RTLD_NOW | RTLD_LOCAL);
  demand(opened != nullptr, opened == nullptr ? ::dlerror() : "");
  return opened;
}

template <class Function>
Function* symbol(void* from, const char* name) {
  return reinterpret_cast<Function*>(::dlsym(from, name));
}
#define SYMBOL(from, name) symbol<decltype(name)>(from, #name)

class SharedLibraries : public testing::Test {
 protected:
  void SetUp() override {
    GTEST_FLAG_SET(death_test_style, "threadsafe");
    ::setenv("DEMARC_LIBCUDA", test::fake_libcuda().c_str(), 1);
    ::setenv("DEMARC_CACHE", test::fresh_folder("shared").c_str(), 1);
  }
};

}  // namespace demarc::cuda
