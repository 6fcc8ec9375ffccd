// Multiplies two matrices of halves as a program does that is linked with cuBLAS.
#include <dlfcn.h>

#include <cstdint>
#include <vector>

#include "subject_card.hpp"

namespace subject {

std::string multiplied() {
  constexpr int side = 40;
  constexpr std::size_t bytes = side * side * sizeof(std::uint16_t);
  constexpr std::uint16_t one = 0x3c00;
  constexpr std::uint16_t two = 0x4000;
  constexpr std::uint16_t eighty = 0x5500;
  using Create = int(void** handle);
  using Multiply =
      int(void*, int, int, int, int, int, const void*, unsigned long long, int, int,
          unsigned long long, int, int, const void*, unsigned long long, int, int, int, int);
  auto* const create = reinterpret_cast<Create*>(::dlsym(RTLD_DEFAULT, "cublasCreate_v2"));
  auto* const multiply = reinterpret_cast<Multiply*>(::dlsym(RTLD_DEFAULT, "cublasGemmEx"));
  if (create == nullptr || multiply == nullptr) return "without cuBLAS";
  call("cuCtxSetCurrent", context);
  void* handle = nullptr;
  if (const int code = create(&handle); code != 0) return "handle " + std::to_string(code);
  unsigned long long a = 0;
  unsigned long long b = 0;
  unsigned long long c = 0;
  std::vector<std::uint16_t> numbers(side * side, one);
  for (unsigned long long* at : {&a, &b, &c}) {
    if (const int code = call("cuMemAlloc_v2", at, bytes); code != 0)
      return "memory " + std::to_string(code);
    call("cuMemcpyHtoD_v2", *at, static_cast<const void*>(numbers.data()), bytes);
    numbers.assign(numbers.size(), two);
  }
  const float alpha = 1;
  const float beta = 0;
  const int code = multiply(handle, 1, 0, side, side, side, &alpha, a, 2, side, b, 2, side, &beta,
                            c, 2, side, 68, -1);
  if (code != 0) return "code " + std::to_string(code);
  call("cuMemcpyDtoH_v2", static_cast<void*>(numbers.data()), c, bytes);
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    if (numbers[i] != eighty) return "wrong at " + std::to_string(i);
  }
  return "right";
}

}  // namespace subject
