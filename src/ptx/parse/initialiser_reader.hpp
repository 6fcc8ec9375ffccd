// Reads the initialiser of a variable (PTX ISA manual, section 5.4.4) and hands its parts to a
// sink: open(), close() for braces, number(Constant), address(InitialAddress), setting(name,
// value). Each answers what is wrong, or nullptr.
#pragma once

#include <bit>

#include "demarc/ptx/vocabulary.hpp"
#include "parse/constant_expression.hpp"

namespace demarc::ptx {

struct InitialAddress {
  std::string_view symbol;
  std::int64_t addend = 0;
  bool is_generic = false;  // generic(symbol)
  bool is_masked = false;   // 0xFF00(symbol)
  std::uint64_t mask = 0;
};

// The bits of a constant as an element of that type, or why it cannot be one. A literal 0f gives
// its bits to every type that takes it; narrow untyped elements take the lowest bits.
[[nodiscard]] inline ConstantError initial_bits(const Constant& value, Type type,
                                                std::uint64_t& bits) {
  const TypeKind kind = info(type).kind;
  const bool takes_floats = type == Type::f32 || type == Type::f64;
  bits = value.bits;
  if (kind != TypeKind::bits && kind != TypeKind::unsigned_ && kind != TypeKind::signed_ &&
      !takes_floats) {
    return "variables of this type take no values";
  }
  if (!is_float(value))
    return takes_floats ? "an integer stands for a floating-point number" : nullptr;
  if (!takes_floats && kind != TypeKind::bits)
    return "a floating-point number stands for an integer";
  if (value.kind == ImmediateKind::f64 && info(type).bits == 32) {
    bits = std::bit_cast<std::uint32_t>(static_cast<float>(std::bit_cast<double>(value.bits)));
  }
  return nullptr;
}

template <class Sink>
class InitialiserReader {
 public:
  InitialiserReader(Cursor& cursor, Sink& sink) : cursor_(cursor), sink_(sink) {}

  // What is wrong at the cursor, or nullptr.
  [[nodiscard]] ConstantError read() { return read_value(0); }

 private:
  static constexpr int deepest = 16;

  ConstantError read_value(int depth) {
    cursor_.skip();
    if (cursor_.is_next('{')) return read_braces(depth);
    if (Cursor::is(cursor_.peek(), char_start) && !is_warp_size(cursor_)) return read_named();
    Constant constant;
    if (ConstantError error = read_constant(cursor_, constant)) return error;
    if (!cursor_.is_next('(')) {
      return sink_.number(constant);
    }
    InitialAddress address;
    address.is_masked = true;
    address.mask = constant.bits;
    ++cursor_.at;
    cursor_.skip();
    if (ConstantError error = read_address(address)) return error;
    if (!cursor_.take(')')) return "')' was expected after a masked address";
    return sink_.address(address);
  }

  ConstantError read_braces(int depth) {
    if (depth > deepest) return "braces are nested too deeply";
    ++cursor_.at;
    if (ConstantError error = sink_.open()) return error;
    if (!cursor_.take('}')) {
      do {
        if (ConstantError error = read_value(depth + 1)) return error;
      } while (cursor_.take(','));
      if (!cursor_.take('}')) return "'}' or ',' was expected";
    }
    return sink_.close();
  }

  ConstantError read_named() {
    const char* first = cursor_.at;
    const std::string_view name = cursor_.name();
    if (cursor_.take('=')) {  // { addr_mode_0 = wrap, ... } of a sampler
      cursor_.skip();
      const char* value = cursor_.at;
      if (cursor_.name().empty()) {
        Constant constant;
        if (ConstantError error = read_constant(cursor_, constant)) return error;
      }
      return sink_.setting(name, {value, static_cast<std::size_t>(cursor_.at - value)});
    }
    cursor_.at = first;
    InitialAddress address;
    if (ConstantError error = read_address(address)) return error;
    return sink_.address(address);
  }

  // symbol, generic(symbol), both with +expression behind them.
  ConstantError read_address(InitialAddress& address) {
    address.symbol = cursor_.name();
    if (address.symbol.empty()) return "a name was expected";
    if (address.symbol == "generic" && cursor_.take('(')) {
      address.is_generic = true;
      cursor_.skip();
      address.symbol = cursor_.name();
      if (address.symbol.empty()) return "a name was expected after 'generic('";
      if (!cursor_.take(')')) return "')' was expected after a generic address";
    }
    return read_addend(address);
  }

  ConstantError read_addend(InitialAddress& address) {
    if (!cursor_.take('+')) return nullptr;
    Constant constant;
    if (ConstantError error = read_constant(cursor_, constant)) return error;
    if (is_float(constant)) return "an offset must be an integer";
    address.addend = static_cast<std::int64_t>(constant.bits);
    return nullptr;
  }

  Cursor& cursor_;
  Sink& sink_;
};

}  // namespace demarc::ptx
