// A library that throws, catches, asks for random numbers and computes a distance with the
// functions of packaging/tarball/older_c_library.c; and, with MAIN, a program that does the same
// and then loads the library.
#include <dlfcn.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <stdexcept>

namespace {

int works() {
  try {
    throw std::runtime_error("thrown");
  } catch (const std::exception&) {
    // The C++ library calls it for std::random_device on processors without random numbers.
    const bool differ = arc4random() != arc4random() || arc4random() != arc4random();
    volatile double side = 3;
    return differ && std::hypot(side, side + 1) == 5 ? 0 : 1;
  }
}

}  // namespace

extern "C" int library_works() {
  return works();
}

#ifdef MAIN
int main(int, char** arguments) {
  if (works() != 0) return 1;
  void* library = dlopen(arguments[1], RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return 2;
  const auto there = reinterpret_cast<int (*)()>(dlsym(library, "library_works"));
  if (there == nullptr || there() != 0) return 3;
  std::puts("works");
}
#endif
