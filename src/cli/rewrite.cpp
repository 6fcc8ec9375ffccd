// demarc rewrite: PTX in, PTX out, for SM affinity and memory colours.
#include <memory>

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
};

Result<void> rewrite(const RewriteOptions& options) {
  if (!options.affine && options.masks.empty()) {
    return invalid_input("say what to add: --affine, --color-mask MASK or both");
  }
  DEMARC_TRY(auto module, ptx::load_module(options.input));
  std::string text = *module.text;
  if (options.affine) {
    DEMARC_TRY(text, ptx::rewrite_affine(module));
    DEMARC_TRY(module, ptx::parse_whole(text, options.input));
  }
  if (!options.masks.empty()) {
    ptx::ColoredAddressing addressing;
    addressing.color = options.color;
    for (const std::string& mask : options.masks) {
      DEMARC_TRY(const std::uint64_t value, parse_u64(mask, "--color-mask"));
      addressing.masks.push_back(value);
    }
    DEMARC_TRY(text, ptx::rewrite_colored(module, addressing));
  }
  return emit(options.output, text);
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
       CLI::Option* const masks = app.add_option(
           "--color-mask", options->masks,
           "address bits whose parity is the colour; may be repeated, lowest bit first");
       app.add_option("--color", options->color,
                      "bit i: the parity that mask i must have; n masks make the colours 0 to "
                      "2^n - 1")
           ->needs(masks)
           ->capture_default_str();
       return [options] { return rewrite(*options); };
     }}};

}  // namespace
}  // namespace demarc::cli
