// Everything that the room does with bytes, whatever they are: for tests and a fuzzer that look for
// crashes.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "demarc/fatbin/best_ptx.hpp"
#include "demarc/fatbin/files.hpp"
#include "demarc/fatbin/kernels.hpp"
#include "demarc/fatbin/managed.hpp"
#include "demarc/fatbin/special_registers.hpp"

namespace demarc::fatbin::test {

inline void do_everything(std::string_view bytes) {
  // A block of its own size, so that a sanitizer sees every byte beyond.
  const std::vector<char> block(bytes.begin(), bytes.end());
  const auto image = image_in({block.data(), block.size()}, "bytes");
  if (image) {
    (void)best_ptx(*image, 100, "bytes");
    (void)managed_variables(*image, "bytes");
    (void)machine_code_kernels(*image, "bytes");
    (void)is_machine_code_alone(*image, 100, "bytes");
  }
  std::string code(bytes);
  (void)replace_special_register(code, SpecialRegister::launch_sm, SpecialRegister::virtual_id,
                                 "bytes");
  (void)images_of_program(std::string(bytes), "file");
  const auto file = images_of(std::string(bytes), "file");
  if (file) (void)images_report(*file, true);
}

}  // namespace demarc::fatbin::test
