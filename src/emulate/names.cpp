// Names spaces, accesses and findings in words, and finds the CPU's widest instruction set.
#if DEMARC_WIDE_LANES
#include <cpuid.h>
#endif

#include <cctype>
#include <string_view>

#include "demarc/emulate/emulate.hpp"
#include "lanes/alu.hpp"

namespace demarc::emulate {

const char* to_string(MemorySpace space) {
  switch (space) {
    case MemorySpace::none:
      return "none";
    case MemorySpace::global:
      return "global";
    case MemorySpace::shared:
      return "shared";
    case MemorySpace::local:
      return "local";
    case MemorySpace::constant:
      return "constant";
    case MemorySpace::param:
      return "param";
  }
  return "";
}

const char* to_string(AccessKind kind) {
  switch (kind) {
    case AccessKind::none:
      return "none";
    case AccessKind::load:
      return "load";
    case AccessKind::store:
      return "store";
    case AccessKind::atomic:
      return "atomic";
  }
  return "";
}

const char* to_string(InstructionSet set) {
  switch (set) {
    case InstructionSet::automatic:
      return "automatic";
    case InstructionSet::baseline:
      return "baseline";
    case InstructionSet::avx2:
      return "avx2";
    case InstructionSet::avx512:
      return "avx512";
  }
  return "";
}

const char* to_string(FindingKind kind) {
  switch (kind) {
    case FindingKind::out_of_bounds:
      return "out-of-bounds access";
    case FindingKind::misaligned:
      return "misaligned access";
    case FindingKind::uninitialised_read:
      return "uninitialised read";
    case FindingKind::shared_race:
      return "shared-memory race";
    case FindingKind::barrier_divergence:
      return "barrier divergence";
    case FindingKind::assertion:
      return "assertion";
    case FindingKind::trap:
      return "trap";
    case FindingKind::hang:
      return "hang";
    case FindingKind::limit:
      return "limit exceeded";
  }
  return "";
}

// As the file has it, with one blank for any white space and without the semicolon.
static std::string shown(std::string_view instruction) {
  if (instruction.ends_with(';')) instruction.remove_suffix(1);
  std::string text;
  for (const char c : instruction) {
    const bool blank = std::isspace(static_cast<unsigned char>(c)) != 0;
    if (!blank) text += c;
    if (blank && !text.ends_with(' ')) text += ' ';
  }
  return text;
}

std::string describe(const Finding& finding, const std::string& ptx_name) {
  std::string text =
      fmt::format("{}: {}:{}: {}; kernel {}, block ({},{},{}), thread ({},{},{}): {}",
                  to_string(finding.kind), ptx_name, finding.line, shown(finding.instruction),
                  finding.kernel, finding.block[0], finding.block[1], finding.block[2],
                  finding.thread[0], finding.thread[1], finding.thread[2], finding.detail);
  if (!finding.source.empty()) text += fmt::format(" [{}]", finding.source);
  if (finding.count > 1) text += fmt::format(" ({} times)", finding.count);
  return text;
}

#if DEMARC_WIDE_LANES
// F16C: bit 29 of ECX of CPUID leaf 1 (Clang 14's __builtin_cpu_supports does not know the name).
static bool has_half_conversions() {
  unsigned eax = 0;
  unsigned ebx = 0;
  unsigned ecx = 0;
  unsigned edx = 0;
  return __get_cpuid(1, &eax, &ebx, &ecx, &edx) != 0 && ((ecx >> 29) & 1U) != 0;
}
#endif

InstructionSet widest_instruction_set() {
#if DEMARC_WIDE_LANES
  __builtin_cpu_init();
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
      __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl")) {
    return InstructionSet::avx512;
  }
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && has_half_conversions())
    return InstructionSet::avx2;
#endif
  return InstructionSet::baseline;
}

HandlerTables handler_tables([[maybe_unused]] InstructionSet set) {
#if DEMARC_WIDE_LANES
  if (set == InstructionSet::avx512) return avx512::tables();
  if (set == InstructionSet::avx2) return avx2::tables();
#endif
  return baseline::tables();
}

}  // namespace demarc::emulate
