// Lays out a module's variables, with their initial contents and the addresses in these.
#include "rewrite/colored/variables.hpp"
#include "demarc/base/rounding.hpp"

#include <algorithm>
#include <set>

namespace demarc::ptx {
namespace {

bool is_handle(Type type) {
  return info(type).kind == TypeKind::opaque;
}

}  // namespace

BlockLayout::BlockLayout(const Module& module) : module_(module) {
  collect();
  place();
  point();
}

void BlockLayout::collect() {
  for (std::uint32_t i = 0; i < module_.variables.size(); ++i) {
    const Variable& variable = module_.variables[i];
    if (variable.is_repeated) continue;
    Placed placed;
    placed.variable = i;
    auto image = initial_image(module_, variable);
    if (image) {
      placed.image = std::move(*image);
    } else {
      placed.refusal = "has an initialiser that cannot be read";
    }
    placed.bytes = std::max<std::uint64_t>(variable.byte_size(), placed.image.bytes.size());
    if (placed.refusal.empty()) placed.refusal = reason_of(variable, placed);
    placed_.emplace(variable.name, std::move(placed));
  }
}

std::string BlockLayout::reason_of(const Variable& variable, const Placed& placed) const {
  if (variable.space == StateSpace::local) return "lies in local memory of the whole module";
  if (variable.space != StateSpace::global) return {};
  if (variable.linkage == Linkage::external) return "is defined in another module";
  if (variable.attributes.find("managed") != std::string_view::npos) {
    return "is managed memory, which the host reaches too";
  }
  if (is_handle(variable.type)) return "is a texture, a surface or a sampler";
  if (placed.bytes == 0) return "has no size";
  return {};
}

// What has a first content comes first, so that the image can end with it.
void BlockLayout::place() {
  for (const bool initialised : {true, false}) {
    for (std::uint32_t i = 0; i < module_.variables.size(); ++i) {
      const Variable& variable = module_.variables[i];
      Placed& placed = placed_.at(variable.name);
      if (placed.variable != i || variable.space != StateSpace::global || !placed.refusal.empty() ||
          variable.initialiser.empty() == initialised) {
        continue;
      }
      const std::uint64_t alignment = std::max<std::uint64_t>(variable.alignment(), 16);
      block_.bytes = round_up(block_.bytes, alignment);
      block_.alignment = std::max(block_.alignment, alignment);
      placed.offset = block_.bytes;
      block_.variables.push_back({std::string(variable.name), block_.bytes, placed.bytes});
      block_.bytes += placed.bytes;
      if (!initialised) continue;
      block_.image.resize(block_.bytes);
      std::copy(placed.image.bytes.begin(), placed.image.bytes.end(),
                block_.image.begin() + static_cast<std::ptrdiff_t>(*placed.offset));
    }
  }
}

// Addresses in initialisers: of variables in the block they are known once the block has a place.
void BlockLayout::point() {
  for (auto& [name, placed] : placed_) {
    for (const Relocation& relocation : placed.image.relocations) {
      const auto target = placed_.find(relocation.symbol);
      const bool global = module_.variables[placed.variable].space == StateSpace::global;
      const bool placed_target = target != placed_.end() && target->second.offset;
      const bool names_global =
          target != placed_.end() &&
          module_.variables[target->second.variable].space == StateSpace::global;
      if (global && placed.offset && placed_target) {
        block_.pointers.push_back(
            {*placed.offset + relocation.offset, relocation.bytes, relocation.shift,
             static_cast<std::int64_t>(*target->second.offset) + relocation.addend});
      } else if (global || names_global) {
        // In constant memory the driver writes addresses of its own choice.
        placed.refusal = fmt::format("holds the address of '{}', which is not in coloured memory",
                                     relocation.symbol);
      }
    }
  }
}

std::optional<std::uint64_t> BlockLayout::offset(std::uint32_t variable) const {
  return placed_.at(module_.variables[variable].name).offset;
}

// A variable leads to those whose addresses it holds.
std::string BlockLayout::refusal(std::uint32_t variable) const {
  std::set<std::string_view> seen{module_.variables[variable].name};
  std::vector<std::string_view> work(seen.begin(), seen.end());
  while (!work.empty()) {
    const auto at = placed_.find(work.back());
    work.pop_back();
    if (at == placed_.end()) continue;
    if (!at->second.refusal.empty()) {
      return fmt::format("the variable '{}' {}", at->first, at->second.refusal);
    }
    for (const Relocation& relocation : at->second.image.relocations) {
      if (seen.insert(relocation.symbol).second) work.push_back(relocation.symbol);
    }
  }
  return {};
}

}  // namespace demarc::ptx
