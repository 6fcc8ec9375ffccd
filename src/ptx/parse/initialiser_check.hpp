// A sink of InitialiserReader that finds what does not fit the variable: braces that do not follow
// its dimensions, numbers of another type, addresses where none can stand.
#pragma once

#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include "parse/initialiser_reader.hpp"

namespace demarc::ptx {

class InitialiserCheck {
 public:
  // `find` says what is wrong with the symbol of an address.
  using FindSymbol = std::function<ConstantError(const InitialAddress&)>;

  InitialiserCheck(const Variable& variable, FindSymbol find)
      : variable_(variable), find_(std::move(find)), shape_(variable.dimensions) {
    if (variable.vector_width > 1) shape_.push_back(variable.vector_width);
  }

  ConstantError open() {
    if (counts_.size() >= shape_.size() && !is_opaque()) return "braces are deeper than its arrays";
    if (ConstantError error = counts_.empty() ? nullptr : add()) return error;
    counts_.push_back(0);
    return nullptr;
  }
  ConstantError close() {
    const bool is_vector = variable_.vector_width > 1 && counts_.size() == shape_.size();
    const bool is_short = is_vector && counts_.back() != variable_.vector_width;
    outermost_ = counts_.back();
    counts_.pop_back();
    return is_short ? "a vector has fewer values than elements" : nullptr;
  }
  ConstantError number(const Constant& value) {
    if (ConstantError error = element()) return error;
    std::uint64_t ignored = 0;
    return initial_bits(value, variable_.type, ignored);
  }
  ConstantError address(const InitialAddress& address) {
    if (ConstantError error = element()) return error;
    if (address.is_masked) {
      for (std::uint64_t byte = 0xFF; byte != 0; byte <<= 8U) {
        if (address.mask == byte) {
          return variable_.type == Type::u8 ? find_(address)
                                            : "a byte of an address needs type .u8";
        }
      }
      return "a mask must select one byte of the address, as 0xFF or 0xFF00 does";
    }
    if (variable_.type != Type::u64 && variable_.type != Type::u32) {
      return "an address needs type .u64 or .u32";
    }
    return find_(address);
  }
  ConstantError setting(std::string_view, std::string_view) {
    return is_opaque() ? nullptr : "only textures, samplers and surfaces have settings";
  }
  // The values of the outermost braces, each of which may be braces: the size of an array that has
  // none of its own.
  [[nodiscard]] std::uint64_t outermost() const { return outermost_; }

 private:
  [[nodiscard]] bool is_opaque() const { return info(variable_.type).kind == TypeKind::opaque; }
  ConstantError element() {
    if (counts_.size() != shape_.size()) return "a value stands where an array needs braces";
    return counts_.empty() ? nullptr : add();
  }
  // One more value in the innermost braces; an array of size 0 takes what it is given.
  ConstantError add() {
    const std::size_t depth = counts_.size() - 1;
    if (depth >= shape_.size()) return nullptr;
    const std::uint64_t most = shape_[depth];
    return ++counts_.back() > most && most != 0 ? "it has more values than the variable" : nullptr;
  }

  const Variable& variable_;
  FindSymbol find_;
  std::vector<std::uint64_t> shape_;   // dimensions, and the vector as the innermost
  std::vector<std::uint64_t> counts_;  // values so far, of each brace that is open
  std::uint64_t outermost_ = 0;
};

}  // namespace demarc::ptx
