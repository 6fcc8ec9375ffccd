// Says on standard error what is refused and what to do, once per text.
#include "refusals.hpp"

#include <cstdio>
#include <mutex>
#include <set>

namespace demarc::blas {
namespace {

constexpr const char* cure =
    "This program runs in a tenant on a card where machine code cannot be coloured, so Demarc "
    "computes in the place of cuBLAS (docs/serve.md lists what). Give the program SMs without a "
    "share of the memory to use NVIDIA's library: demarc exec --sms 50%";

void say_once(const std::string& text) {
  static auto* const said = new std::set<std::string>();  // as long as the process
  static auto* const mutex = new std::mutex();
  const std::lock_guard lock(*mutex);
  if (!said->insert(text).second) return;
  std::fprintf(stderr, "demarc: %s\n", text.c_str());
}

}  // namespace

Code refuse(const char* function, const std::string& why) {
  say_once(std::string(function) + " was refused, because " + why + ". " + cure);
  return not_supported;
}

Code refuse_lacking(const char* function) {
  return refuse(function, "libdemarc_blas.so lacks this function");
}

Code fail(const char* what, int driver_code) {
  say_once("libdemarc_blas.so: the driver refuses " + std::string(what) + " (error " +
           std::to_string(driver_code) + ")");
  return execution_failed;
}

}  // namespace demarc::blas
