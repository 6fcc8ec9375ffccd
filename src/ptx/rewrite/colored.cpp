// Builds a module with coloured addressing from its functions.
#include "demarc/ptx/colored.hpp"

#include <algorithm>
#include <cstring>
#include <limits>
#include <optional>
#include <set>
#include <span>

#include "demarc/ptx/initialiser.hpp"
#include "demarc/ptx/parser.hpp"
#include "rewrite/colored/cache_policies.hpp"
#include "rewrite/colored/function_rewriter.hpp"
#include "rewrite/colored/origins.hpp"
#include "rewrite/colored/remains.hpp"
#include "rewrite/marks.hpp"

namespace demarc::ptx {
namespace {

// A module, taken apart.
struct Survey {
  explicit Survey(const Module& module) : reach(module), frames(module, reach), variables(module) {}

  Reach reach;
  Frames frames;
  BlockLayout variables;
  std::vector<std::uint32_t> kernels;            // Module::functions, those that are asked for
  std::vector<std::vector<std::uint32_t>> runs;  // what each of them may run
  std::vector<std::uint8_t> windows;             // by index in Module::functions
};

Result<void> choose_kernels(const Module& module, const std::vector<std::string>& wanted,
                            Survey& survey) {
  for (const std::string& name : wanted) {
    const Function* found = module.find_function(name);
    if (found != nullptr && found->is_entry) continue;
    return invalid_input("{}: there is no kernel '{}'", module.source_name, name);
  }
  for (std::uint32_t i = 0; i < module.functions.size(); ++i) {
    const Function& function = module.functions[i];
    if (!function.is_entry || !function.has_body) continue;
    if (!wanted.empty() && std::find(wanted.begin(), wanted.end(), function.name) == wanted.end()) {
      continue;
    }
    survey.kernels.push_back(i);
    survey.runs.push_back(survey.reach.from(i));
  }
  return {};
}

Result<Survey> survey_of(const Module& module, const ColoredOptions& options) {
  if (module.address_size != 64) {
    return invalid_input("{}: coloured addressing needs 64-bit addresses (.address_size 64)",
                         module.source_name);
  }
  DEMARC_CHECK(check_not_rewritten(module, "coloured", {Rewriting::colored}));
  Survey survey(module);
  DEMARC_CHECK(choose_kernels(module, options.kernels, survey));
  survey.windows.resize(module.functions.size());
  for (const auto& run : survey.runs) {
    std::uint8_t made = 0;
    for (const std::uint32_t function : run) {
      made |= windows_made(module, module.functions[function]);
    }
    for (const std::uint32_t function : run) survey.windows[function] |= made;
  }
  return survey;
}

struct Rewritten {
  std::vector<ColoredKernel> kernels;        // as Survey::kernels
  std::vector<RewrittenFunction> functions;  // by index in Module::functions
};

Rewritten rewrite_functions(const Module& module, const Survey& survey,
                            const Translation& translation, const ColoredOptions& options) {
  const bool keeps_local =
      std::any_of(module.functions.begin(), module.functions.end(), [](const Function& function) {
        const auto& variables = function.body.variables;
        return std::any_of(variables.begin(), variables.end(), [](const Variable& variable) {
          return variable.space == StateSpace::local;
        });
      });
  const auto* known = std::get_if<ColoredPlaces>(&options.places);
  const PlaceOperands places(known == nullptr ? std::nullopt : std::optional(*known), 0);
  const ColoredContext context{module,           translation,   options,    places,
                               survey.variables, survey.frames, keeps_local};
  std::set<std::uint32_t> reached;
  for (const auto& run : survey.runs) reached.insert(run.begin(), run.end());
  Rewritten out;
  out.functions.resize(module.functions.size());
  for (const std::uint32_t function : reached) {
    out.functions[function] = rewrite_function(context, function, survey.windows[function]);
  }
  for (std::size_t i = 0; i < survey.kernels.size(); ++i) {
    const Function& function = module.functions[survey.kernels[i]];
    ColoredKernel kernel{std::string(function.name), function.line, {}};
    for (const std::uint32_t run : survey.runs[i]) {
      const auto& refusals = out.functions[run].refusals;
      kernel.refusals.insert(kernel.refusals.end(), refusals.begin(), refusals.end());
      kernel.accesses += out.functions[run].accesses;
      kernel.shared_accesses += out.functions[run].shared;
    }
    kernel.local_bytes = survey.frames.bytes_of(survey.runs[i]);
    out.kernels.push_back(std::move(kernel));
  }
  return out;
}

// Where variables of a module may begin. One of 64-bit addresses says so.
std::size_t behind_address_size(std::string_view text) {
  constexpr std::string_view directive = ".address_size";
  const std::size_t number = text.find_first_not_of(
      " \t\r\n", text.find(directive, text.find(".target")) + directive.size());
  return text.find_first_not_of("0123456789", number);
}

std::set<std::uint32_t> with_one_in_front(const std::set<std::uint32_t>& indices) {
  std::set<std::uint32_t> moved{0};
  for (const std::uint32_t index : indices) moved.insert(index + 1);
  return moved;
}

Result<ColoredModule> rewrite_module(const Module& module, const Translation& translation,
                                     const ColoredOptions& options) {
  DEMARC_TRY(const Survey survey, survey_of(module, options));
  Rewritten rewritten = rewrite_functions(module, survey, translation, options);
  std::set<std::uint32_t> functions;
  for (std::size_t i = 0; i < survey.kernels.size(); ++i) {
    if (rewritten.kernels[i].accepted()) {
      functions.insert(survey.runs[i].begin(), survey.runs[i].end());
    }
  }
  std::vector<Splice> splices;
  std::set<std::uint32_t> variables;
  for (const std::uint32_t function : functions) {
    RewrittenFunction& one = rewritten.functions[function];
    splices.insert(splices.end(), one.splices.begin(), one.splices.end());
    variables.insert(one.kept.begin(), one.kept.end());
  }
  Remains remains = remains_of(module, functions, std::move(variables), options.printing);
  if (options.printing == ColoredPrinting::silenced) silence_printing(module, splices);
  if (std::holds_alternative<PlacesAtLoad>(options.places)) {
    const std::size_t bytes = sizeof(ColoredPlaces) + translation.constant_bytes;
    splices.push_back(
        {behind_address_size(*module.text), 0,
         fmt::format("\n.visible .const .align 8 .b8 {}[{}];\n", colored_constants_name, bytes)});
    remains.variables = with_one_in_front(remains.variables);
  }
  const bool has_policies = std::any_of(functions.begin(), functions.end(), [&](std::uint32_t one) {
    return rewritten.functions[one].has_policies;
  });
  if (auto newer = target_with_policies(module, options.card); has_policies && newer) {
    splices.push_back(std::move(*newer));
  }
  DEMARC_TRY(auto whole, spliced(module, std::move(splices)));
  DEMARC_TRY(auto made, without_the_rest(std::move(whole), remains));
  return ColoredModule{std::move(made), std::move(rewritten.kernels)};
}

}  // namespace

std::vector<std::uint8_t> ColoredBlock::content(std::uint64_t address) const {
  std::vector<std::uint8_t> filled = image;
  for (const Pointer& pointer : pointers) {
    const std::uint64_t value =
        (address + static_cast<std::uint64_t>(pointer.target)) >> pointer.shift;
    std::memcpy(filled.data() + pointer.offset, &value,
                std::min<std::size_t>(pointer.bytes, sizeof value));
  }
  return filled;
}

Result<ColoredNeeds> find_colored_needs(const Module& module, const ColoredOptions& options) {
  DEMARC_TRY(const Survey survey, survey_of(module, options));
  ColoredOptions with_places = options;
  with_places.places = PlacesAtLoad{};
  const Translation anything{.granule = std::numeric_limits<std::uint64_t>::max()};
  ColoredNeeds needs;
  needs.kernels = rewrite_functions(module, survey, anything, with_places).kernels;
  needs.variables = survey.variables.block();
  needs.local_alignment = survey.frames.alignment();
  for (const ColoredKernel& kernel : needs.kernels) {
    if (kernel.accepted()) needs.local_bytes = std::max(needs.local_bytes, kernel.local_bytes);
  }
  return needs;
}

Result<ColoredModule> rewrite_colored(const Module& module, const Translation& translation,
                                      const ColoredOptions& options) {
  if (translation.constant_bytes == 0) return rewrite_module(module, translation, options);
  const auto* known = std::get_if<ColoredPlaces>(&options.places);
  if (known != nullptr && *known != ColoredPlaces{}) {
    return invalid_input(
        "coloured addressing: leave out the places of variables and of local memory; they are set "
        "with the colours when the module is loaded");
  }
  ColoredOptions at_load = options;
  at_load.places = PlacesAtLoad{};
  return rewrite_module(module, translation, at_load);
}

std::vector<std::byte> colored_constants(const ColoredPlaces& places,
                                         std::span<const std::byte> of_colors) {
  std::vector<std::byte> bytes(sizeof places);
  std::memcpy(bytes.data(), &places, sizeof places);
  bytes.insert(bytes.end(), of_colors.begin(), of_colors.end());
  return bytes;
}

}  // namespace demarc::ptx
