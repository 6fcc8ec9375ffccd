// Carries out printf, malloc, free and failed assertions of kernels.
#include "ops/device_calls.hpp"

#include <algorithm>
#include <bit>
#include <cstdio>
#include <cstring>

namespace demarc::emulate::device_calls {

namespace {

// What lies behind a generic address, as far as it goes.
struct DeviceBytes {
  const std::byte* at = nullptr;  // null: nothing
  const std::uint8_t* written = nullptr;
  std::size_t room = 0;
};

DeviceBytes device_bytes(Warp& w, unsigned lane, std::uint64_t address) {
  Block& block = *w.block;
  Region region;
  std::uint64_t pitch = 0;
  if (address - shared_window < window_bytes) {
    region = block.shared_region;
    address -= shared_window;
  } else if (address - local_window < window_bytes) {
    region = block.local_region(w);
    pitch = block.local_bytes;
    address -= local_window;
  } else if (address - constant_window < window_bytes) {
    region = w.program->constant_region;
    address -= constant_window;
  } else if (const Region* found = w.program->find_region(address, address + 1)) {
    region = *found;
  }
  if (address < region.low || address >= region.high) return {};
  DeviceBytes out;
  out.at = reinterpret_cast<const std::byte*>(address + region.delta + lane * pitch);
  if (region.shadow != nullptr) out.written = region.shadow + (address - region.low) + lane * pitch;
  out.room = region.high - address;
  return out;
}

// Whether printf and assert may read so many of them; where not, that is reported.
bool may_read(Warp& w, const MicroOp* op, unsigned lane, const DeviceBytes& from, std::size_t bytes,
              const std::string& what) {
  if (from.at == nullptr || bytes > from.room) {
    w.block->report(w, op, lane, FindingKind::out_of_bounds,
                    fmt::format("{} lies outside of every buffer", what));
    return false;
  }
  const bool written = from.written == nullptr ||
                       std::all_of(from.written, from.written + bytes,
                                   [](std::uint8_t byte) { return byte == wholly_written; });
  if (!written) {
    w.block->report(w, op, lane, FindingKind::uninitialised_read,
                    fmt::format("{} has bytes that were not written before", what));
  }
  return true;
}

// `what` it is, for findings.
std::string device_string(Warp& w, const MicroOp* op, unsigned lane, std::uint64_t address,
                          const std::string& what) {
  if (address == 0) return "(null)";
  const DeviceBytes from = device_bytes(w, lane, address);
  const auto* text = reinterpret_cast<const char*>(from.at);
  const std::size_t length = from.at == nullptr ? 0 : strnlen(text, from.room);
  if (!may_read(w, op, lane, from, length + 1, what)) return "(null)";
  return std::string(text, length);
}

std::uint64_t argument_of(Warp& w, const CallDetails& details, std::size_t index, unsigned lane) {
  // Parameters of calls are padded to 16 bytes a lane (call_pitch).
  std::uint64_t value = 0;
  std::memcpy(&value, w.frame + details.arguments[index].offset + std::size_t{lane} * 16,
              sizeof value);
  return value;
}

std::uint32_t line_of(const Warp& w, const MicroOp* op) {
  return w.program->instructions[op->instruction].trace.line;
}

template <class T>
void append_formatted(std::string& out, const std::string& specification, T value) {
  constexpr std::size_t longest = 1 << 20;
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
  const int length = std::snprintf(nullptr, 0, specification.c_str(), value);
  if (length <= 0) return;
  std::string text(std::min<std::size_t>(static_cast<std::size_t>(length), longest) + 1, '\0');
  std::snprintf(text.data(), text.size(), specification.c_str(), value);
#pragma GCC diagnostic pop
  text.pop_back();
  out += text;
}

// One conversion of a format: %, flags, width, precision, length and kind.
struct Conversion {
  std::string specification;  // without length and kind
  unsigned halves = 0;        // h
  unsigned longs = 0;         // l, and the lengths that are as long
  char kind = 0;              // 0: the format ends before
};

// Arguments as the compiler lays them out, each aligned to its size.
class PrintedArguments {
 public:
  explicit PrintedArguments(const PrintedValue& value) : value_(value) {}

  template <class T>
  T next() {
    at_ = (at_ + sizeof(T) - 1) / sizeof(T) * sizeof(T);
    const std::uint64_t bits = value_(at_, sizeof(T));
    at_ += sizeof(T);
    ++count_;
    if constexpr (sizeof(T) == 4) {
      return std::bit_cast<T>(static_cast<std::uint32_t>(bits));
    } else {
      return std::bit_cast<T>(bits);
    }
  }
  [[nodiscard]] std::int32_t count() const { return count_; }

 private:
  const PrintedValue& value_;
  std::size_t at_ = 0;
  std::int32_t count_ = 0;
};

// From the letter behind the %; `at` is then that of the kind.
Conversion read_conversion(const std::string& format, std::size_t& at,
                           PrintedArguments& arguments) {
  Conversion out{.specification = "%"};
  for (; at < format.size() && std::strchr("-+ #0123456789.*", format[at]) != nullptr; ++at) {
    if (format[at] != '*') {
      out.specification += format[at];
      continue;
    }
    const auto given = arguments.next<std::int32_t>();
    const bool no_precision = given < 0 && out.specification.back() == '.';
    if (no_precision) {
      out.specification.pop_back();
    } else {
      out.specification += std::to_string(given);
    }
  }
  for (; at < format.size() && std::strchr("lhzjtL", format[at]) != nullptr; ++at) {
    out.halves += format[at] == 'h' ? 1U : 0U;
    out.longs += format[at] != 'h' && format[at] != 'L' ? 1U : 0U;
  }
  if (at < format.size()) out.kind = format[at];
  return out;
}

// False: there is no such conversion.
bool print_conversion(std::string& out, const Conversion& conversion, PrintedArguments& arguments,
                      const std::function<std::string(std::uint64_t)>& text) {
  const std::string& start = conversion.specification;
  const std::string length = conversion.longs > 0     ? "ll"
                             : conversion.halves == 1 ? "h"
                             : conversion.halves > 1  ? "hh"
                                                      : "";
  const char kind = conversion.kind;
  switch (kind) {
    case '%':
      out += '%';
      return true;
    case 'd':
    case 'i':
    case 'u':
    case 'x':
    case 'X':
    case 'o':
      if (conversion.longs > 0) {
        append_formatted(out, start + length + kind, arguments.next<unsigned long long>());
      } else {
        append_formatted(out, start + length + kind, arguments.next<unsigned>());
      }
      return true;
    case 'c':
      append_formatted(out, start + kind, arguments.next<int>());
      return true;
    case 'p':
      append_formatted(out, start + kind, arguments.next<void*>());
      return true;
    case 's':
      append_formatted(out, start + kind, text(arguments.next<std::uint64_t>()).c_str());
      return true;
    case 'f':
    case 'F':
    case 'e':
    case 'E':
    case 'g':
    case 'G':
    case 'a':
    case 'A':
      append_formatted(out, start + kind, arguments.next<double>());
      return true;
    default:
      return false;
  }
}

}  // namespace

Printed format_print(const std::string& format, const PrintedValue& value,
                     const std::function<std::string(std::uint64_t)>& text) {
  constexpr std::int32_t max_arguments = 32;  // what is behind them is printed as it stands
  Printed out;
  PrintedArguments arguments(value);
  for (std::size_t i = 0; i < format.size(); ++i) {
    const std::size_t start = i;
    const bool converts = format[i] == '%' && arguments.count() < max_arguments;
    if (converts &&
        print_conversion(out.text, read_conversion(format, ++i, arguments), arguments, text))
      continue;
    out.text.append(format, start, i - start + 1);
  }
  out.arguments = arguments.count();
  return out;
}

const MicroOp* print(Warp& w, const MicroOp* op) {
  const auto& details = *static_cast<const CallDetails*>(op->aux);
  for (Mask rest = w.mask; rest != 0; rest &= rest - 1) {
    const auto lane = static_cast<unsigned>(std::countr_zero(rest));
    const std::uint64_t format = argument_of(w, details, 0, lane);
    const std::uint64_t place = argument_of(w, details, 1, lane);
    std::int32_t result = -1;  // there is no format
    if (format != 0) {
      const Printed printed = format_print(
          device_string(w, op, lane, format, "the format of printf"),
          [&](std::size_t at, std::size_t bytes) {
            std::uint64_t bits = 0;
            const DeviceBytes from = device_bytes(w, lane, place + at);
            if (may_read(w, op, lane, from, bytes, "an argument of printf"))
              std::memcpy(&bits, from.at, bytes);
            return bits;
          },
          [&](std::uint64_t address) {
            return device_string(w, op, lane, address, "a string that printf prints");
          });
      w.block->printed += printed.text;
      result = printed.arguments;
    }
    if (!details.results.empty()) {
      std::memcpy(w.frame + details.results[0].offset + std::size_t{lane} * 16, &result,
                  sizeof result);
    }
  }
  return op + 1;
}

const MicroOp* allocate(Warp& w, const MicroOp* op) {
  const auto& details = *static_cast<const CallDetails*>(op->aux);
  for (Mask rest = w.mask; rest != 0; rest &= rest - 1) {
    const auto lane = static_cast<unsigned>(std::countr_zero(rest));
    const std::uint64_t address =
        w.program->heap->allocate(argument_of(w, details, 0, lane), line_of(w, op));
    std::memcpy(w.frame + details.results[0].offset + std::size_t{lane} * 16, &address,
                sizeof address);
  }
  return op + 1;
}

const MicroOp* release(Warp& w, const MicroOp* op) {
  const auto& details = *static_cast<const CallDetails*>(op->aux);
  for (Mask rest = w.mask; rest != 0; rest &= rest - 1) {
    const auto lane = static_cast<unsigned>(std::countr_zero(rest));
    const std::uint64_t address = argument_of(w, details, 0, lane);
    if (address == 0) continue;
    std::string wrong = w.program->heap->release(address, line_of(w, op));
    if (!wrong.empty()) w.block->report(w, op, lane, FindingKind::out_of_bounds, std::move(wrong));
  }
  return op + 1;
}

const MicroOp* assertion(Warp& w, const MicroOp* op) {
  const auto& details = *static_cast<const CallDetails*>(op->aux);
  const auto lane = static_cast<unsigned>(std::countr_zero(w.mask));
  const auto text = [&](std::size_t argument) {
    return device_string(w, op, lane, argument_of(w, details, argument, lane),
                         "a text of the assertion");
  };
  return w.block->stop_with(
      w, op, lane, FindingKind::assertion,
      fmt::format("assertion '{}' does not hold at {}:{} in {}", text(0), text(1),
                  static_cast<std::uint32_t>(argument_of(w, details, 2, lane)), text(3)));
}

}  // namespace demarc::emulate::device_calls
