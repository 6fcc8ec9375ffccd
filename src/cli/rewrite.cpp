// demarc rewrite: PTX in, PTX out, for SM affinity and memory colours.
#include <fmt/format.h>

#include <cstdio>
#include <memory>
#include <optional>

#include "demarc/base/files.hpp"
#include "demarc/base/numbers.hpp"
#include "demarc/ptx/affine.hpp"
#include "demarc/ptx/colored.hpp"
#include "demarc/ptx/parser.hpp"
#include "verb.hpp"

namespace demarc::cli {
namespace {

struct RewriteOptions {
  std::string input;
  std::string output;
  bool affine = false;
  std::vector<std::string> masks;
  std::uint32_t color = 0;
  std::vector<std::string> kernels;
  bool allow_refused = false;
  bool silence_printf = false;
  std::string variables_at;
  std::string local_at;
  std::uint64_t local_threads = 0;
  bool needs = false;
};

Result<std::optional<std::uint64_t>> address_of(const std::string& text, const char* option) {
  if (text.empty()) return std::optional<std::uint64_t>();
  DEMARC_TRY(const std::uint64_t value, parse_u64(text, option));
  if (value % 16 != 0) return invalid_input("{}: {} is no multiple of 16", option, text);
  return std::optional(value);
}

Result<ptx::ColoredOptions> colored_options(const RewriteOptions& options) {
  ptx::ColoredOptions out;
  out.kernels = options.kernels;
  if (options.silence_printf) out.printing = ptx::ColoredPrinting::silenced;
  DEMARC_TRY(out.places.variables, address_of(options.variables_at, "--variables-at"));
  DEMARC_TRY(out.places.local, address_of(options.local_at, "--local-at"));
  out.places.local_threads = options.local_threads;
  return out;
}

// Refused kernels are an error, or a warning where the others are wanted all the same.
Result<void> judge(const std::vector<ptx::ColoredKernel>& kernels, const RewriteOptions& options) {
  auto accepted = ptx::check_accepted(kernels, options.input);
  if (accepted || !options.allow_refused) return accepted;
  fmt::print(stderr, "demarc rewrite: {}\n", accepted.error().message);
  return {};
}

Result<ptx::Module> colored(const ptx::Module& module, const RewriteOptions& options) {
  ptx::ColoredAddressing addressing;
  addressing.color = options.color;
  for (const std::string& mask : options.masks) {
    DEMARC_TRY(const std::uint64_t value, parse_u64(mask, "--color-mask"));
    addressing.masks.push_back(value);
  }
  DEMARC_TRY(const auto wanted, colored_options(options));
  DEMARC_TRY(auto made, ptx::rewrite_colored(module, addressing, wanted));
  DEMARC_CHECK(judge(made.kernels, options));
  return std::move(made.module);
}

Result<void> rewrite(const RewriteOptions& options) {
  if (!options.affine && options.masks.empty() && !options.needs) {
    return invalid_input("say what to add: --affine, --color-mask MASK or both");
  }
  if (options.masks.empty() && !options.needs &&
      (!options.kernels.empty() || options.silence_printf)) {
    return invalid_input("--kernel and --silence-printf go with --color-mask or --needs");
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
  if (!options.masks.empty()) {
    DEMARC_TRY(module, colored(module, options));
  }
  return emit(options.output, *module.text);
}

void add_colored_options(CLI::App& app, RewriteOptions& options) {
  CLI::Option* const masks =
      app.add_option("--color-mask", options.masks,
                     "address bits whose parity is the colour; may be repeated, lowest bit first");
  app.add_option("--color", options.color,
                 "bit i: the parity that mask i must have; n masks make the colours 0 to 2^n - 1")
      ->needs(masks)
      ->capture_default_str();
  CLI::Option* const needs = app.add_flag(
      "--needs", options.needs,
      "write what coloured code needs, as JSON: kernels, variables, bytes of local memory");
  app.add_option("--kernel", options.kernels,
                 "keep this kernel and remove the others; may be repeated");
  app.add_flag("--allow-refused", options.allow_refused,
               "remove kernels that cannot be coloured and say why; without it they are an error")
      ->needs(masks);
  app.add_flag("--silence-printf", options.silence_printf,
               "kernels print nothing; without it one that prints cannot be coloured");
  app.add_option("--variables-at", options.variables_at,
                 "linear address of coloured memory for the variables of the module (--needs)")
      ->needs(masks);
  CLI::Option* const local =
      app.add_option("--local-at", options.local_at,
                     "linear address of coloured memory for the local variables of threads")
          ->needs(masks);
  CLI::Option* const threads =
      app.add_option("--local-threads", options.local_threads,
                     "threads that it has room for; those beyond stop their kernel");
  threads->needs(local);
  local->needs(threads);
  needs->excludes(masks);
}

const RegisterVerb rewrite_verb{
    {90, "rewrite", "PTX in, PTX out: coloured addressing and SM affinity added",
     "demarc rewrite kernel.ptx --color-mask 0xc4000 --color 1 -o colored.ptx",
     [](CLI::App& app) -> std::function<Result<void>()> {
       auto options = std::make_shared<RewriteOptions>();
       app.add_option("ptx", options->input, "PTX file")->required();
       add_output(app, "-o,--output", options->output, "where to write; - is standard output");
       app.add_flag("--affine", options->affine,
                    "kernels run on chosen SMs only, as persistent blocks with a queue");
       add_colored_options(app, *options);
       return [options] { return rewrite(*options); };
     }}};

}  // namespace
}  // namespace demarc::cli
