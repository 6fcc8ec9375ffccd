// Reads the initialiser of a variable (PTX ISA manual, section 5.4.4) and hands its parts to a
// sink: open(), close() for braces, number(Constant), address(InitialAddress), setting(name,
// value).
#pragma once

#include "constant_expression.hpp"

namespace demarc::ptx {

struct InitialAddress {
  std::string_view symbol;
  std::int64_t addend = 0;
  bool is_generic = false;  // generic(symbol)
  bool is_masked = false;   // 0xFF00(symbol)
  std::uint64_t mask = 0;
};

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
    if (Cursor::is(cursor_.peek(), char_start)) return read_named();
    Constant constant;
    // Plain small numbers are what large tables are made of.
    if (ConstantError error = read_constant(cursor_, constant)) return error;
    if (!cursor_.is_next('(')) {
      sink_.number(constant);
      return nullptr;
    }
    InitialAddress address;
    address.is_masked = true;
    address.mask = constant.bits;
    ++cursor_.at;
    cursor_.skip();
    if (ConstantError error = read_address(address)) return error;
    if (!cursor_.take(')')) return "')' was expected after a masked address";
    sink_.address(address);
    return nullptr;
  }

  ConstantError read_braces(int depth) {
    if (depth > deepest) return "braces are nested too deeply";
    ++cursor_.at;
    sink_.open();
    if (!cursor_.take('}')) {
      do {
        if (ConstantError error = read_value(depth + 1)) return error;
      } while (cursor_.take(','));
      if (!cursor_.take('}')) return "'}' or ',' was expected";
    }
    sink_.close();
    return nullptr;
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
      sink_.setting(name, {value, static_cast<std::size_t>(cursor_.at - value)});
      return nullptr;
    }
    cursor_.at = first;
    InitialAddress address;
    if (ConstantError error = read_address(address)) return error;
    sink_.address(address);
    return nullptr;
  }

  // symbol, generic(symbol), both with +constant and -constant behind them.
  ConstantError read_address(InitialAddress& address) {
    address.symbol = cursor_.name();
    if (address.symbol.empty()) return "a name was expected";
    if (address.symbol == "generic" && cursor_.take('(')) {
      address.is_generic = true;
      cursor_.skip();
      address.symbol = cursor_.name();
      if (address.symbol.empty()) return "a name was expected after 'generic('";
      if (ConstantError error = read_addend(address)) return error;
      if (!cursor_.take(')')) return "')' was expected after a generic address";
    }
    return read_addend(address);
  }

  ConstantError read_addend(InitialAddress& address) {
    cursor_.skip();
    while (cursor_.is_next('+') || cursor_.is_next('-')) {
      const char sign = *cursor_.at++;
      Constant constant;
      if (ConstantError error = read_constant_term(cursor_, constant)) return error;
      const std::uint64_t step = sign == '-' ? 0 - constant.bits : constant.bits;
      address.addend = static_cast<std::int64_t>(static_cast<std::uint64_t>(address.addend) + step);
      cursor_.skip();
    }
    return nullptr;
  }

  Cursor& cursor_;
  Sink& sink_;
};

}  // namespace demarc::ptx
