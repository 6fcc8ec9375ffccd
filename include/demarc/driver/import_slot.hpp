// The word of a loaded library that holds the address of a function which it imports by name.
#pragma once

#include "demarc/base/result.hpp"

namespace demarc::cuda {

class ImportSlot {
 public:
  // For the library that holds the address `inside`. missing_capability if none does, or if it
  // imports no such function through a word of its own.
  static Result<ImportSlot> find(const void* inside, const char* function);

  [[nodiscard]] const void* function() const { return *slot_; }
  // From then on the library calls this one. Its page stays as writable as it was.
  [[nodiscard]] Result<void> set(const void* function) const;

 private:
  ImportSlot(const void** slot, bool read_only) : slot_(slot), read_only_(read_only) {}
  const void** slot_;
  bool read_only_;  // once the linker has filled it in
};

}  // namespace demarc::cuda
