// Uses the installed package from outside: a program that links two rooms and calls them.
#include <cstdio>

#include "demarc/base/gf2.hpp"
#include "demarc/base/version.hpp"
#include "demarc/ptx/parser.hpp"

int main() {
  const std::uint64_t rows[] = {0b110, 0b011, 0b101};
  const auto parsed = demarc::ptx::parse(
      ".version 8.0\n.target sm_80\n.address_size 64\n.entry k() { ret; }\n", "k.ptx");
  std::printf("demarc %s rank %zu kernels %zu\n", demarc::version(), demarc::gf2_rank(rows),
              parsed.module.kernels().size());
}
