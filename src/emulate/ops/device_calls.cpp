// Carries out printf, malloc, free and failed assertions of kernels.
#include "ops/device_calls.hpp"

#include <bit>
#include <cstdio>
#include <cstring>

namespace demarc::emulate::device_calls {

namespace {

// Host bytes behind a generic address, as far as they go.
std::pair<const std::byte*, std::size_t> host_bytes(Warp& w, unsigned lane, std::uint64_t address) {
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
  if (address < region.low || address >= region.high) return {nullptr, 0};
  return {reinterpret_cast<const std::byte*>(address + region.delta + lane * pitch),
          region.high - address};
}

std::string device_string(Warp& w, unsigned lane, std::uint64_t address) {
  const auto [at, room] = host_bytes(w, lane, address);
  if (at == nullptr) return "(null)";
  const auto* text = reinterpret_cast<const char*>(at);
  return std::string(text, strnlen(text, room));
}

std::uint64_t argument_of(Warp& w, const CallDetails& details, std::size_t index, unsigned lane) {
  // Parameters of calls are padded to 16 bytes a lane (call_pitch).
  std::uint64_t value = 0;
  std::memcpy(&value, w.frame + details.arguments[index].offset + std::size_t{lane} * 16,
              sizeof value);
  return value;
}

template <class T>
void append_formatted(std::string& out, const std::string& specification, T value) {
  char buffer[512];
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
  const int length = std::snprintf(buffer, sizeof buffer, specification.c_str(), value);
#pragma GCC diagnostic pop
  if (length > 0)
    out.append(buffer, std::min<std::size_t>(static_cast<std::size_t>(length), sizeof buffer - 1));
}

}  // namespace

std::string format_print(const std::string& format, const std::vector<std::byte>& arguments,
                         const std::function<std::string(std::uint64_t)>& text) {
  std::string out;
  std::size_t at = 0;
  const auto next = [&](std::size_t bytes) {
    at = (at + bytes - 1) / bytes * bytes;
    std::uint64_t value = 0;
    if (at + bytes <= arguments.size()) std::memcpy(&value, arguments.data() + at, bytes);
    at += bytes;
    return value;
  };
  for (std::size_t i = 0; i < format.size(); ++i) {
    if (format[i] != '%') {
      out += format[i];
      continue;
    }
    std::string specification = "%";
    std::size_t j = i + 1;
    while (j < format.size() && std::strchr("-+ #0123456789.*", format[j]) != nullptr) {
      if (format[j] == '*') {
        specification += std::to_string(static_cast<std::int32_t>(next(4)));
      } else {
        specification += format[j];
      }
      ++j;
    }
    unsigned longs = 0;
    while (j < format.size() && std::strchr("lhzjtL", format[j]) != nullptr) {
      longs +=
          format[j] == 'l' || format[j] == 'z' || format[j] == 'j' || format[j] == 't' ? 1U : 0U;
      ++j;
    }
    if (j >= format.size()) break;
    const char kind = format[j];
    i = j;
    switch (kind) {
      case '%':
        out += '%';
        break;
      case 'd':
      case 'i':
        if (longs > 0) {
          append_formatted(out, specification + "lld", static_cast<long long>(next(8)));
        } else {
          append_formatted(out, specification + "d", static_cast<int>(next(4)));
        }
        break;
      case 'u':
      case 'x':
      case 'X':
      case 'o':
        if (longs > 0) {
          append_formatted(out, specification + "ll" + kind,
                           static_cast<unsigned long long>(next(8)));
        } else {
          append_formatted(out, specification + kind, static_cast<unsigned>(next(4)));
        }
        break;
      case 'c':
        append_formatted(out, specification + "c", static_cast<int>(next(4)));
        break;
      case 'p':
        append_formatted(out, specification + "p", reinterpret_cast<void*>(next(8)));
        break;
      case 's':
        append_formatted(out, specification + "s", text(next(8)).c_str());
        break;
      case 'f':
      case 'F':
      case 'e':
      case 'E':
      case 'g':
      case 'G':
      case 'a':
      case 'A':
        append_formatted(out, specification + kind, std::bit_cast<double>(next(8)));
        break;
      default:
        out += specification + kind;
        break;
    }
  }
  return out;
}

const MicroOp* print(Warp& w, const MicroOp* op) {
  const auto& details = *static_cast<const CallDetails*>(op->aux);
  for (Mask rest = w.mask; rest != 0; rest &= rest - 1) {
    const auto lane = static_cast<unsigned>(std::countr_zero(rest));
    const std::string format = device_string(w, lane, argument_of(w, details, 0, lane));
    std::vector<std::byte> arguments;
    const auto [at, room] = host_bytes(w, lane, argument_of(w, details, 1, lane));
    if (at != nullptr) arguments.assign(at, at + std::min<std::size_t>(room, 1024));
    w.block->printed += format_print(
        format, arguments, [&](std::uint64_t address) { return device_string(w, lane, address); });
    if (!details.results.empty()) {
      const std::uint32_t count = 0;
      std::memcpy(w.frame + details.results[0].offset + std::size_t{lane} * 16, &count,
                  sizeof count);
    }
  }
  return op + 1;
}

const MicroOp* allocate(Warp& w, const MicroOp* op) {
  const auto& details = *static_cast<const CallDetails*>(op->aux);
  for (Mask rest = w.mask; rest != 0; rest &= rest - 1) {
    const auto lane = static_cast<unsigned>(std::countr_zero(rest));
    const std::uint64_t address = w.program->heap->allocate(argument_of(w, details, 0, lane));
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
    if (address != 0 && !w.program->heap->release(address)) {
      w.block->report(w, op, lane, FindingKind::out_of_bounds,
                      fmt::format("free of 0x{:x}, which malloc did not return", address));
    }
  }
  return op + 1;
}

const MicroOp* assertion(Warp& w, const MicroOp* op) {
  const auto& details = *static_cast<const CallDetails*>(op->aux);
  const auto lane = static_cast<unsigned>(std::countr_zero(w.mask));
  w.block->report(w, op, lane, FindingKind::assertion,
                  fmt::format("assertion '{}' does not hold at {}:{} in {}",
                              device_string(w, lane, argument_of(w, details, 0, lane)),
                              device_string(w, lane, argument_of(w, details, 1, lane)),
                              static_cast<std::uint32_t>(argument_of(w, details, 2, lane)),
                              device_string(w, lane, argument_of(w, details, 3, lane))));
  w.block->stopped = true;
  return nullptr;
}

}  // namespace demarc::emulate::device_calls
