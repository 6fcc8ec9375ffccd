// Parses one instruction line of Accel-Sim's trace text.
#include "trace/accelsim_line.hpp"

#include <algorithm>
#include <bit>
#include <charconv>

namespace demarc::emulate {
namespace {

template <class T>
bool whole_number(std::string_view word, T& value, int base) {
  const char* const end = word.data() + word.size();
  const auto result = std::from_chars(word.data(), end, value, base);
  return !word.empty() && result.ec == std::errc{} && result.ptr == end;
}

struct MachineOpcode {
  std::string_view stem;
  MemorySpace space;
  AccessKind kind;
  bool generic = false;
};
constexpr MachineOpcode machine_opcodes[] = {
    {"LDG", MemorySpace::global, AccessKind::load},
    {"STG", MemorySpace::global, AccessKind::store},
    {"LD", MemorySpace::global, AccessKind::load, true},
    {"ST", MemorySpace::global, AccessKind::store, true},
    {"LDS", MemorySpace::shared, AccessKind::load},
    {"STS", MemorySpace::shared, AccessKind::store},
    {"LDSM", MemorySpace::shared, AccessKind::load},
    {"STSM", MemorySpace::shared, AccessKind::store},
    {"LDL", MemorySpace::local, AccessKind::load},
    {"STL", MemorySpace::local, AccessKind::store},
    {"LDC", MemorySpace::constant, AccessKind::load},
    {"ATOM", MemorySpace::global, AccessKind::atomic, true},
    {"ATOMG", MemorySpace::global, AccessKind::atomic},
    {"RED", MemorySpace::global, AccessKind::atomic},
    {"REDG", MemorySpace::global, AccessKind::atomic},
    {"ATOMS", MemorySpace::shared, AccessKind::atomic},
    {"LDGSTS", MemorySpace::global, AccessKind::load},
};

// Bytes a lane where the opcode says so: "LDG.E.128" 16, "STG.E.U8" 1, "RED.E.ADD.F64.RN" 8.
std::optional<std::uint32_t> bytes_in_opcode(std::string_view opcode) {
  while (!opcode.empty()) {
    const std::size_t end = std::min(opcode.find('.'), opcode.size());
    std::string_view part = opcode.substr(0, end);
    opcode.remove_prefix(std::min(end + 1, opcode.size()));
    if (!part.empty() && std::string_view("USF").find(part[0]) != std::string_view::npos)
      part.remove_prefix(1);
    std::uint32_t bits = 0;
    if (whole_number(part, bits, 10) && bits >= 8 && bits <= 256 && std::has_single_bit(bits))
      return bits / 8;
  }
  return std::nullopt;
}

// A register of the machine: R12, UR4, P0. Zero registers carry nothing from one to another.
bool carries_values(std::string_view name) {
  return name != "R255" && name != "UR255" && name != "RZ" && name != "URZ" && name != "PT";
}

// A load of n words writes n registers from the named one on.
std::string written_registers(const std::vector<std::string_view>& names, std::uint32_t bytes,
                              AccessKind kind) {
  std::string text;
  std::size_t count = 0;
  const auto add = [&](std::string_view name) {
    text += (count++ == 0 ? "" : ", ") + std::string(name);
  };
  for (const std::string_view name : names) {
    add(name);
    std::uint32_t number = 0;
    if (kind != AccessKind::load || name[0] != 'R' || !whole_number(name.substr(1), number, 10))
      continue;
    for (std::uint32_t i = 1; i < std::min(bytes, 32U) / 4 && number + i < 255; ++i)
      add("R" + std::to_string(number + i));
  }
  if (count > 1) return "{" + text + "}";
  const bool reads_memory = kind == AccessKind::load || kind == AccessKind::atomic;
  return count == 0 && reads_memory ? "_" : text;
}

bool read_registers(AccelsimWords& words, std::vector<std::string_view>& names) {
  std::uint64_t count = 0;
  if (!words.number(count, 10) || count > 64) return false;
  for (std::uint64_t i = 0; i < count; ++i) {
    const std::string_view name = words.next();
    if (name.empty()) return false;
    if (carries_values(name)) names.push_back(name);
  }
  return true;
}

bool read_addresses(AccelsimWords& words, AccelsimInstruction& out) {
  std::uint64_t mode = 0;
  if (!words.number(mode, 10) || mode > 2) return false;
  std::uint64_t address = 0;
  std::int64_t distance = 0;
  if (mode != 0 && !words.number(address, 16)) return false;
  if (mode == 1 && !words.signed_number(distance)) return false;
  bool first = true;
  for (std::uint32_t rest = out.mask; rest != 0; rest &= rest - 1) {
    if (mode == 0 && !words.number(address, 16)) return false;
    if (mode == 2 && !first && !words.signed_number(distance)) return false;
    if (mode != 0 && !first) address += static_cast<std::uint64_t>(distance);
    out.addresses[static_cast<unsigned>(std::countr_zero(rest))] = address;
    first = false;
  }
  return true;
}

}  // namespace

std::string_view AccelsimWords::next() {
  constexpr std::string_view blanks = " \t";
  rest.remove_prefix(std::min(rest.find_first_not_of(blanks), rest.size()));
  const std::string_view word = rest.substr(0, rest.find_first_of(blanks));
  rest.remove_prefix(word.size());
  return word;
}

bool AccelsimWords::number(std::uint64_t& value, int base) {
  std::string_view word = next();
  if (word.size() > 2 && word[0] == '0' && (word[1] == 'x' || word[1] == 'X')) {
    word.remove_prefix(2);
    base = 16;
  }
  return whole_number(word, value, base);
}

bool AccelsimWords::signed_number(std::int64_t& value) {
  return whole_number(next(), value, 10);
}

std::optional<std::string_view> parse_accelsim_line(std::string_view line, bool has_line_number,
                                                    AccelsimInstruction& out) {
  AccelsimWords words{line};
  std::uint64_t number = 0;
  if (has_line_number) {
    if (!words.number(number, 10) || number > 0xffffffffU) return "a source line";
    out.description.line = static_cast<std::uint32_t>(number);
  }
  if (!words.number(out.pc, 16)) return "a program counter (hexadecimal)";
  if (!words.number(number, 16) || number > 0xffffffffU) return "an active mask (hexadecimal)";
  out.mask = static_cast<std::uint32_t>(number);
  std::vector<std::string_view> written;
  if (!read_registers(words, written)) return "the registers written, after their number";
  const std::string_view opcode = words.next();
  if (opcode.empty()) return "an opcode";
  std::vector<std::string_view> read;
  if (!read_registers(words, read)) return "the registers read, after their number";
  if (!words.number(number, 10) || number > 4096) return "the bytes of an access, or 0";

  TraceInstruction& description = out.description;
  const std::string_view stem = opcode.substr(0, opcode.find('.'));
  for (const MachineOpcode& row : machine_opcodes) {
    if (row.stem != stem) continue;
    description.space = row.space;
    description.kind = row.kind;
    out.generic = row.generic;
  }
  out.has_addresses = number != 0;
  if (out.has_addresses) {
    // The tracer's own figure is not always right.
    const bool matrix = stem == "LDSM" || stem == "STSM";
    description.bytes = (matrix ? std::nullopt : bytes_in_opcode(opcode))
                            .value_or(static_cast<std::uint32_t>(number));
  }
  std::string operands = written_registers(written, description.bytes, description.kind);
  for (const std::string_view name : read) {
    operands += (operands.empty() ? "" : ", ") + std::string(name);
  }
  description.text = std::string(opcode) + (operands.empty() ? "" : " ") + operands;
  if (out.has_addresses && !read_addresses(words, out)) {
    return "the addresses of its active lanes: mode 0 and a list, 1, base and stride, or 2, base "
           "and distances";
  }
  return std::nullopt;
}

}  // namespace demarc::emulate
