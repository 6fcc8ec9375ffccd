// A program of a grid of blocks of two warps, for tests that start one of its blocks.
#pragma once

#include <gtest/gtest.h>

#include "machine.hpp"

namespace demarc::emulate {

class StartedBlock : public testing::Test {
 protected:
  StartedBlock() {
    program.grid = {5, 3, 2};
    program.block = {10, 5, 1};  // two warps, of 32 and of 18 threads
    program.shared_bytes = 100;
    program.functions.resize(1);
    program.functions[0].entry = 7;
    program.functions[0].frame_bytes = 128;
    program.functions[0].local_bytes = 40;
    program.tids.resize(std::size_t{2} * 3 * warp_size);
  }

  Program program;
  FramePool pool;
};

}  // namespace demarc::emulate
