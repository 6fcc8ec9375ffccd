// A script that stands in for nvidia-cuda-mps-control: its daemon does nothing until it is told to
// quit.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>

#include "demarc/base/files.hpp"

namespace demarc::test {

// For a PATH that begins with this folder.
inline void write_mps_control(const std::filesystem::path& folder) {
  const auto control = folder / "nvidia-cuda-mps-control";
  ASSERT_TRUE(write_file(control, R"(#!/bin/sh
d=$CUDA_MPS_PIPE_DIRECTORY
case "$1" in
-d) "$0" --daemon </dev/null >/dev/null 2>&1 & while [ ! -s "$d/pid" ]; do sleep 0.01; done; exit 0;;
--daemon) echo $$ > "$d/pid"; while [ ! -e "$d/quit" ]; do sleep 0.01; done; exit 0;;
esac
read word; [ "$word" = quit ] && touch "$d/quit"
exit 0
)"));
  std::filesystem::permissions(control, std::filesystem::perms::owner_all);
}

}  // namespace demarc::test
