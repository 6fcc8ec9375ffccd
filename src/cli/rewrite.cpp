// demarc rewrite: adds SM affinity and memory colours to PTX.
#include <fmt/format.h>

#include <cstdio>
#include <memory>

#include "demarc/base/files.hpp"
#include "demarc/base/numbers.hpp"
#include "demarc/base/standard_error.hpp"
#include "demarc/color/color_scheme.hpp"
#include "demarc/color/translation.hpp"
#include "demarc/device/device.hpp"
#include "demarc/device/device_ref.hpp"
#include "demarc/driver/gpu.hpp"
#include "demarc/partition/part.hpp"
#include "demarc/ptx/affine.hpp"
#include "demarc/ptx/colored.hpp"
#include "demarc/ptx/parser.hpp"
#include "demarc/ptx/report.hpp"
#include "help.hpp"
#include "verb.hpp"

namespace demarc::cli {
namespace {

struct RewriteOptions {
  std::string input;
  std::string output;
  bool affine = false;
  std::vector<std::string> masks;
  std::uint32_t color = 0;
  std::string colors;  // "1/2"
  std::string device;
  std::string description;
  bool stats = false;
  std::vector<std::string> kernels;
  bool allow_refused = false;
  bool silence_printf = false;
  std::string variables_at;
  std::string local_at;
  std::uint64_t local_threads = 0;
  bool places_at_load = false;
  bool needs = false;
};

// 0 where nothing is said.
Result<std::uint64_t> address_of(const std::string& text, const char* option) {
  if (text.empty()) return std::uint64_t{0};
  DEMARC_TRY(const std::uint64_t value, parse_u64(text, option));
  if (value % 16 != 0) return invalid_input("{}: {} is not a multiple of 16", option, text);
  if (value == 0) return invalid_input("{}: no memory has the address 0", option);
  return value;
}

Result<ptx::ColoredOptions> colored_options(const RewriteOptions& options) {
  ptx::ColoredOptions out;
  out.kernels = options.kernels;
  out.counts_shared = options.stats;
  if (options.silence_printf) out.printing = ptx::ColoredPrinting::silenced;
  if (options.places_at_load) {
    out.places = ptx::PlacesAtLoad{};
    return out;
  }
  ptx::ColoredPlaces places;
  DEMARC_TRY(places.variables, address_of(options.variables_at, "--variables-at"));
  DEMARC_TRY(places.local, address_of(options.local_at, "--local-at"));
  places.local_threads = options.local_threads;
  out.places = places;
  return out;
}

// Refused kernels are an error, or a warning where the others are wanted all the same.
Result<void> judge(const std::vector<ptx::ColoredKernel>& kernels, const RewriteOptions& options) {
  auto accepted = ptx::check_accepted(kernels, options.input);
  if (accepted || !options.allow_refused) return accepted;
  say_to_standard_error(fmt::format("demarc rewrite: {}\n", accepted.error().message));
  return {};
}

// The card of --device, else of --description.
Result<gpu::Device> device_of(const RewriteOptions& options) {
  if (options.device.empty()) return gpu::find_device(options.description);
  DEMARC_TRY(const gpu::GpuRef ref, gpu::parse_gpu_ref(options.device));
  if (const auto* simulated = std::get_if<gpu::SimulatedRef>(&ref)) {
    if (options.description.empty()) return gpu::find_device(simulated->name);
    return invalid_input("--description: {} has a description of its own", options.device);
  }
  DEMARC_TRY(const auto driver, cuda::Driver::load());
  DEMARC_TRY(const auto gpu, cuda::Gpu::open(driver, std::get<gpu::CardRef>(ref).index));
  return gpu::describe_card(gpu->name(), options.description);
}

// A colour of a card, by its description. Where colours are remainders, which of them it has is
// found when the module is loaded.
Result<ptx::ColoredModule> in_color_of_device(const ptx::Module& module,
                                              const RewriteOptions& options,
                                              ptx::ColoredOptions wanted) {
  const auto color = partition::parse_part(options.colors);
  if (!color) return invalid_input("--colors: {}", color.error().message);
  DEMARC_TRY(const gpu::Device device, device_of(options));
  DEMARC_TRY(const color::ColorScheme scheme, color::color_scheme(device, color->of));
  if (scheme.colors != color->of) {
    return invalid_input("--colors: {} divides its memory into {} colours, not {}", device.name,
                         scheme.colors, color->of);
  }
  wanted.card = device.compute_capability.number();
  DEMARC_TRY(const ptx::Translation translation, scheme.translation(module, color->index));
  const bool places_given = !options.variables_at.empty() || !options.local_at.empty();
  if (translation.constant_bytes != 0 && places_given) {
    return invalid_input(
        "{} does not support --variables-at and --local-at: there these places are set when the "
        "module is loaded, in its variable '{}'",
        device.name, ptx::colored_constants_name);
  }
  return ptx::rewrite_colored(module, translation, wanted);
}

Result<ptx::ColoredModule> in_color_of_masks(const ptx::Module& module,
                                             const RewriteOptions& options,
                                             const ptx::ColoredOptions& wanted) {
  color::Parities addressing;
  addressing.color = options.color;
  for (const std::string& mask : options.masks) {
    DEMARC_TRY(const std::uint64_t value, parse_u64(mask, "--color-mask"));
    addressing.masks.push_back(value);
  }
  DEMARC_TRY(const ptx::Translation translation, color::translation_of(addressing));
  return ptx::rewrite_colored(module, translation, wanted);
}

std::uint64_t instructions_of(const ptx::Module& module) {
  std::uint64_t count = 0;
  for (const ptx::MnemonicCount& row : ptx::count_mnemonics(module)) count += row.count;
  return count;
}

// What was added: one line per kernel, and one for the module.
void print_stats(const ptx::Module& before, const ptx::ColoredModule& made) {
  for (const ptx::ColoredKernel& kernel : made.kernels) {
    say_to_standard_error(fmt::format("{}: {} accesses translated", kernel.name, kernel.accesses));
    if (kernel.accesses != 0) {
      const std::uint64_t full = kernel.accesses - kernel.shared_accesses;
      const double share = static_cast<double>(full) / static_cast<double>(kernel.accesses);
      say_to_standard_error(
          fmt::format(", {} ({:.0f} %) with the full translation", full, 100 * share));
    }
    say_to_standard_error("\n");
  }
  say_to_standard_error(fmt::format("{}: {} instructions before, {} now\n", before.source_name,
                                    instructions_of(before), instructions_of(made.module)));
}

Result<ptx::Module> colored(const ptx::Module& module, const RewriteOptions& options) {
  DEMARC_TRY(const auto wanted, colored_options(options));
  DEMARC_TRY(auto made, options.colors.empty() ? in_color_of_masks(module, options, wanted)
                                               : in_color_of_device(module, options, wanted));
  DEMARC_CHECK(judge(made.kernels, options));
  if (options.stats) print_stats(module, made);
  return std::move(made.module);
}

Result<void> rewrite(const RewriteOptions& options) {
  const bool colors = !options.masks.empty() || !options.colors.empty();
  if (!options.affine && !colors && !options.needs) {
    return invalid_input("say what to add: --affine, a colour (--colors, --color-mask) or both");
  }
  if (!colors && !options.needs && (!options.kernels.empty() || options.silence_printf)) {
    return invalid_input("--kernel and --silence-printf go with --colors, --color-mask or --needs");
  }
  if (!colors && (options.allow_refused || options.stats || options.places_at_load ||
                  !options.variables_at.empty() || !options.local_at.empty())) {
    return invalid_input(
        "--allow-refused, --stats, --variables-at, --local-at and --places-at-load go with "
        "--colors or --color-mask");
  }
  if (!options.colors.empty() && options.device.empty() && options.description.empty()) {
    return invalid_input("--colors needs a card: give --device or --description");
  }
  DEMARC_TRY(auto module, ptx::load_module(options.input));
  if (options.affine) {
    DEMARC_TRY(module, ptx::rewrite_affine(module));
  }
  if (options.needs) {
    DEMARC_TRY(const auto wanted, colored_options(options));
    DEMARC_TRY(const auto needs, ptx::find_colored_needs(module, wanted));
    return emit(options.output, ptx::needs_to_json(needs));
  }
  if (colors) {
    DEMARC_TRY(module, colored(module, options));
  }
  return emit(options.output, *module.text);
}

void add_colored_options(CLI::App& app, RewriteOptions& options) {
  CLI::Option* const colors =
      app.add_option("--colors,--colours", options.colors,
                     "K/N: the K-th of the N colours of a card, such as 1/2");
  app.add_option("--device", options.device, "card of --colors: cuda:N or sim:NAME")->needs(colors);
  app.add_option("--description", options.description,
                 "description of the card of --colors: a built-in name or a file")
      ->needs(colors);
  CLI::Option* const masks = app.add_option(
      "--color-mask,--colour-mask", options.masks,
      "address bits whose parity is one bit of the colour, lowest bit first; may be repeated");
  app.add_option("--color,--colour", options.color,
                 "colour under --color-mask: bit i is the parity of mask i; n masks make the "
                 "colours 0 to 2^n - 1")
      ->needs(masks);
  CLI::Option* const needs = app.add_flag(
      "--needs", options.needs,
      "write as JSON what coloured code needs: kernels, variables, bytes of local memory");
  app.add_option("--kernel", options.kernels,
                 "keep this kernel and remove the others; may be repeated");
  app.add_flag("--allow-refused", options.allow_refused,
               "remove kernels that cannot be coloured, and say why (default: an error)");
  app.add_flag("--stats", options.stats, "print on standard error what was added");
  app.add_flag("--silence-printf", options.silence_printf,
               "let kernels print nothing (default: a kernel that prints cannot be coloured)");
  CLI::Option* const variables =
      app.add_option("--variables-at", options.variables_at,
                     "linear address of coloured memory for the variables of the module");
  CLI::Option* const local =
      app.add_option("--local-at", options.local_at,
                     "linear address of coloured memory for the local variables of threads");
  CLI::Option* const threads =
      app.add_option(
             "--local-threads", options.local_threads,
             "number of threads for which --local-at has room; a kernel with more threads stops")
          ->default_str("");
  app.add_flag("--places-at-load", options.places_at_load,
               "leave these places open; the loader of the module sets its variable demarc_colors")
      ->excludes(variables)
      ->excludes(local);
  threads->needs(local);
  local->needs(threads);
  needs->excludes(masks);
  needs->excludes(colors);
  masks->excludes(colors);
}

const RegisterVerb rewrite_verb{
    {203, "rewrite", "add coloured addressing and SM affinity to PTX",
     "demarc rewrite kernel.ptx --color-mask 0xc4000 --color 1 -o colored.ptx",
     [](CLI::App& app) -> std::function<Result<void>()> {
       auto options = std::make_shared<RewriteOptions>();
       app.add_option("ptx", options->input, "PTX file")->required();
       add_output(app, options->output);
       app.add_flag(
           "--affine", options->affine,
           "let kernels run only on chosen SMs: persistent blocks take the work from a queue");
       add_colored_options(app, *options);
       group_options(app, "Colour",
                     {"--colors", "--device", "--description", "--color-mask", "--color",
                      "--allow-refused", "--silence-printf"});
       group_options(
           app, "Places of variables",
           {"--needs", "--variables-at", "--local-at", "--local-threads", "--places-at-load"});
       return [options] { return rewrite(*options); };
     }}};

}  // namespace
}  // namespace demarc::cli
