#include <cstdio>

#include "demarc/base/gf2.hpp"
#include "demarc/base/version.hpp"

int main() {
  const std::uint64_t rows[] = {0b110, 0b011, 0b101};
  std::printf("demarc %s rank %zu\n", demarc::version(), demarc::gf2_rank(rows));
}
