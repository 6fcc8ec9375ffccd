// What libdemarc_mpi.so gives the program: plain functions, because it is loaded by name.
#pragma once

#include <cstddef>

namespace demarc::sweep {

struct MpiTable {
  int (*start)();  // 0: done
  unsigned (*rank)();
  unsigned (*size)();
  int (*send)(unsigned to, const char* bytes, std::size_t count);  // copied; 0: done
  long (*probe)(unsigned* from);  // bytes of the message that has come next; -1: none has
  void (*read)(char* bytes, std::size_t count);  // that message
  void (*abandon)(int exit_code);                // ends all ranks
  void (*end)();
};

}  // namespace demarc::sweep
