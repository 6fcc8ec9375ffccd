// Turns the initialiser of a variable into bytes and relocations.
#include "demarc/ptx/initialiser.hpp"

#include <algorithm>
#include <bit>
#include <cstring>

#include "parse/initialiser_reader.hpp"
#include "parse/reporter.hpp"

namespace demarc::ptx {
namespace {

constexpr std::uint64_t largest_image = 1ULL << 32U;

// Writes elements one after another; a closing brace moves on to the end of its array.
class ImageSink {
 public:
  ImageSink(const Variable& variable, InitialImage& image)
      : variable_(variable), image_(image), element_(ptx::byte_size(variable.type)) {
    // Elements in one sub-array at each depth; a vector is the innermost array.
    for (const std::uint64_t size : variable.dimensions) shape_.push_back(size);
    if (variable.vector_width > 1) shape_.push_back(variable.vector_width);
  }

  ConstantError open() {
    starts_.push_back(at_);
    return nullptr;
  }
  ConstantError close() {
    const std::size_t depth = starts_.size() - 1;
    std::uint64_t length = element_;
    for (std::size_t i = depth; i < shape_.size(); ++i) length *= shape_[i];
    const std::uint64_t end = starts_.back() + length;
    starts_.pop_back();
    if (depth > 0) at_ = std::max(at_, end);
    return nullptr;
  }
  ConstantError number(const Constant& value) {
    std::uint64_t bits = 0;
    if (ConstantError error = initial_bits(value, variable_.type, bits)) return error;
    put(bits);
    return nullptr;
  }
  ConstantError address(const InitialAddress& address) {
    Relocation relocation;
    relocation.offset = at_;
    relocation.bytes = element_;
    relocation.is_generic = address.is_generic;
    relocation.symbol = address.symbol;
    relocation.addend = address.addend;
    if (address.is_masked && address.mask != 0) {
      relocation.shift = static_cast<std::uint32_t>(std::countr_zero(address.mask));
    }
    image_.relocations.push_back(relocation);
    put(0);
    return nullptr;
  }

  ConstantError setting(std::string_view, std::string_view) { return nullptr; }  // no bytes

 private:
  void put(std::uint64_t bits) {
    // An array without size takes what it is given; the parser has counted the values of the
    // others.
    if (image_.bytes.size() < at_ + element_) image_.bytes.resize(at_ + element_);
    std::memcpy(image_.bytes.data() + at_, &bits, std::min<std::size_t>(element_, sizeof bits));
    at_ += element_;
  }

  const Variable& variable_;
  InitialImage& image_;
  std::uint32_t element_;
  std::vector<std::uint64_t> shape_;
  std::vector<std::uint64_t> starts_;
  std::uint64_t at_ = 0;
};

}  // namespace

Result<InitialImage> initial_image(const Module& module, const Variable& variable) {
  InitialImage image;
  if (variable.initialiser.empty()) return image;
  const std::uint64_t size = variable.byte_size();
  if (size > largest_image) {
    return invalid_input("{}:{}: '{}' is larger than 4 GiB", module.source_name, variable.line,
                         excerpt(variable.name, 60));
  }
  image.bytes.resize(size);
  // The reader looks one character beyond the text it is given; the initialiser is part of a text
  // that goes on.
  Cursor cursor(variable.initialiser);
  ImageSink sink(variable, image);
  InitialiserReader reader(cursor, sink);
  if (const char* error = reader.read()) {
    return invalid_input("{}:{}: initialiser of '{}': {}\n  {}", module.source_name, variable.line,
                         excerpt(variable.name, 60), error, excerpt(variable.initialiser));
  }
  return image;
}

}  // namespace demarc::ptx
