// A file descriptor that is closed when its owner is destroyed.
#pragma once

#include <unistd.h>

#include <utility>

namespace demarc {

class OwnedFile {
 public:
  OwnedFile() = default;
  // Takes over the descriptor; -1 means none.
  explicit OwnedFile(int descriptor) : descriptor_(descriptor) {}
  ~OwnedFile() {
    if (descriptor_ >= 0) ::close(descriptor_);
  }
  OwnedFile(OwnedFile&& other) noexcept : descriptor_(other.release()) {}
  OwnedFile& operator=(OwnedFile&& other) noexcept {
    std::swap(descriptor_, other.descriptor_);
    return *this;
  }

  // -1 if there is none.
  [[nodiscard]] int get() const { return descriptor_; }
  // The caller closes it.
  [[nodiscard]] int release() { return std::exchange(descriptor_, -1); }

 private:
  int descriptor_ = -1;
};

}  // namespace demarc
