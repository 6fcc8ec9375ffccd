// Rewrites accesses whose addresses are in registers, alone or with their neighbours.
//
// For a group of neighbours, %demarc_first is where the lowest address lies, %demarc_last is where
// it would lie if it were in the chunk of the highest one, and %demarc_near is the number of bytes
// in front of it in its chunk.
#include "rewrite/colored/register_accesses.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "rewrite/colored/neighbours.hpp"

namespace demarc::ptx {
namespace {

// The instruction that puts the address and so many bytes more into %demarc_a.
std::string linear(const Body& body, const Operand& address, std::uint64_t bytes) {
  return fmt::format("add.s64 \t%demarc_a, {}, {};", body.register_name(address.index),
                     static_cast<std::int64_t>(address.value + bytes));
}

// Puts the place of a member into %demarc_a.
std::string choice(const Neighbour& neighbour, std::uint64_t chunk_bytes) {
  const auto& [group, distance, span, before] = neighbour;
  if (distance == 0) return fmt::format("\tmov.b64 \t%demarc_a, %demarc_first{};\n", group);
  if (distance == span) {
    return fmt::format("\tadd.s64 \t%demarc_a, %demarc_last{}, {};\n", group, distance);
  }
  return fmt::format(
      "\t.reg .pred %demarc_w;\n\tsetp.lt.u32 \t%demarc_w, %demarc_near{0}, {1};\n"
      "\tselp.b64 \t%demarc_a, %demarc_first{0}, %demarc_last{0}, %demarc_w;\n"
      "\tadd.s64 \t%demarc_a, %demarc_a, {2};\n",
      group, chunk_bytes - distance, distance);
}

// The first access of a group translates for all.
std::string leading(const Body& body, const RegisterAccess& access, const Translation& translation,
                    const Neighbour& neighbour) {
  const std::uint64_t lowest = std::uint64_t{0} - neighbour.distance;
  return fmt::format(
      "{{\n{0}\t{1}\n{2}\tsub.s64 \t%demarc_last{3}, %demarc_a, {4};\n"
      "\t{5}\n\tcvt.u32.u64 \t%demarc_near{3}, %demarc_a;\n"
      "\tand.b32 \t%demarc_near{3}, %demarc_near{3}, {6};\n"
      "{2}\tmov.b64 \t%demarc_first{3}, %demarc_a;\n{7}\t{8}\n\t}}",
      translation.declarations, linear(body, access.address, lowest + neighbour.span),
      translation.arithmetic, neighbour.group, neighbour.span, linear(body, access.address, lowest),
      translation.granule - 1, choice(neighbour, translation.granule), translated(access.text));
}

std::string following(const RegisterAccess& access, const Translation& translation,
                      const Neighbour& neighbour) {
  return fmt::format("{{\n\t.reg .b64 %demarc_a;\n{}\t{}\n\t}}",
                     choice(neighbour, translation.granule), translated(access.text));
}

std::string alone(const Body& body, const RegisterAccess& access, const Translation& translation) {
  AccessText text = access.text;
  text.address = linear(body, access.address, 0);
  return in_colored(text, translation);
}

}  // namespace

RegisterAccessesText translate(const Module& module, const Body& body,
                               const Translation& translation,
                               std::span<const RegisterAccess> accesses) {
  RegisterAccessesText out;
  const auto neighbours = find_neighbours(module, body, accesses, translation.granule);
  std::uint32_t groups = 0;
  for (const RegisterAccess& access : accesses) {
    std::string text;
    if (const auto found = neighbours.find(access.instruction); found == neighbours.end()) {
      text = alone(body, access, translation);
      out.shared += access.is_shared ? 1U : 0U;
    } else {
      const Neighbour& neighbour = found->second;
      const bool leads = neighbour.before == 0;
      text = leads ? leading(body, access, translation, neighbour)
                   : following(access, translation, neighbour);
      out.shared += neighbour.before < 2 ? 0U : 1U;  // two translations a group
      groups = std::max(groups, neighbour.group + 1);
    }
    out.splices.push_back({body.instructions[access.instruction].text_offset,
                           access.text.written.size(), std::move(text)});
  }
  if (groups != 0) {
    out.prologue = fmt::format(
        "\n\t.reg .b64 %demarc_first<{0}>, %demarc_last<{0}>;\n\t.reg .b32 %demarc_near<{0}>;",
        groups);
  }
  return out;
}

}  // namespace demarc::ptx
