// Writes the instructions of a translated access, in a scope of their own so that their registers
// do not clash with others.
#include "rewrite/colored/access_text.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "rewrite/colored/eviction.hpp"
#include "rewrite/colored/origins.hpp"

namespace demarc::ptx {
namespace {

// Where the bracket opens; npos where there is none.
std::size_t bracket_of(const AccessText& access) {
  std::size_t open = access.written.find('[');
  for (int left = access.bracket; left > 0 && open != std::string_view::npos; --left) {
    open = access.written.find('[', open + 1);
  }
  return open;
}

// At the address in %demarc_a.
std::string at_translated(const AccessText& access) {
  std::string text(access.written);
  const std::size_t open = bracket_of(access);
  return text.replace(open, text.find(']', open) - open + 1, "[%demarc_a]");
}

std::string as_global(const AccessText& access, std::string text) {
  if (access.mnemonic.space == StateSpace::local) text.replace(text.find(".local"), 6, ".global");
  return text;
}

std::string scope_of(const AccessText& access, const Translation& translation,
                     std::string_view before, std::string_view behind, std::string_view made) {
  return fmt::format("{{\n{}\t{}\n{}{}{}\t{}\n\t}}", translation.declarations, access.address,
                     before, translation.arithmetic, behind, made);
}

}  // namespace

bool is_plainly_written(const AccessText& access) {
  const std::string_view text = access.written;
  const std::size_t open = bracket_of(access);
  return open != std::string_view::npos && text.find(']', open) != std::string_view::npos &&
         text.find(access.mnemonic.text) != std::string_view::npos &&
         text.find('/') == std::string_view::npos;
}

bool can_name_shared(const Mnemonic& mnemonic) {
  return std::none_of(mnemonic.modifiers.begin(), mnemonic.modifiers.end(), [](ModifierUse use) {
    return use.id == Modifier::unknown || info(use.id).modifier_class == ModifierClass::cache ||
           use.text == "nc";
  });
}

// `.shared` comes behind the opcode, how the access is ordered, and the shape of a tile.
std::string in_shared(const AccessText& access) {
  static constexpr Modifier in_front[] = {
      Modifier::weak,    Modifier::volatile_, Modifier::relaxed, Modifier::acquire,
      Modifier::release, Modifier::acq_rel,   Modifier::mmio,    Modifier::cta,
      Modifier::cluster, Modifier::gpu,       Modifier::sys,     Modifier::shape_mnk};
  const Mnemonic& mnemonic = access.mnemonic;
  std::string text = at_translated(access);
  const std::size_t begin = text.find(mnemonic.text);
  std::size_t at = begin + info(mnemonic.opcode).name.size();
  for (const ModifierUse& use : mnemonic.modifiers) {
    if (std::find(std::begin(in_front), std::end(in_front), use.id) == std::end(in_front)) continue;
    const auto end = use.text.data() + use.text.size() - mnemonic.text.data();
    at = std::max(at, begin + static_cast<std::size_t>(end));
  }
  text.insert(at, ".shared");
  return fmt::format(
      "{{\n\t.reg .b64 %demarc_a;\n\t{}\n\tcvta.to.shared.u64 \t%demarc_a, %demarc_a;\n\t{}\n\t}}",
      access.address, text);
}

std::string translated(const AccessText& access) {
  const std::string at = at_translated(access);
  return access.destination.empty()
             ? as_global(access, streaming(access.mnemonic, at, access.has_policies))
             : streaming_copy(access.mnemonic, at, access.destination);
}

std::string in_colored(const AccessText& access, const Translation& translation) {
  return scope_of(access, translation, "", "", translated(access));
}

std::string in_one_of(const AccessText& access, const Translation& translation,
                      std::uint8_t windows) {
  static constexpr std::pair<Origin, std::string_view> questions[] = {
      {from_shared, "shared"},
      {from_cluster, "shared::cluster"},
      {from_constant, "const"},
      {from_param, "param"}};
  std::string ask =
      "\t.reg .pred %demarc_w, %demarc_v;\n\t.reg .b64 %demarc_g;\n"
      "\tmov.b64 \t%demarc_g, %demarc_a;\n";
  bool first = true;
  for (const auto& [origin, space] : questions) {
    if ((windows & origin) == 0) continue;
    ask +=
        fmt::format("\tisspacep.{} \t{}, %demarc_g;\n", space, first ? "%demarc_w" : "%demarc_v");
    if (!first) ask += "\tor.pred \t%demarc_w, %demarc_w, %demarc_v;\n";
    first = false;
  }
  return scope_of(access, translation, ask,
                  "\tselp.b64 \t%demarc_a, %demarc_g, %demarc_a, %demarc_w;\n",
                  at_translated(access));
}

}  // namespace demarc::ptx
