// demarc ptx: parses, checks and prints PTX; shows control-flow graphs, syntax trees and opcode
// counts; extracts the PTX of programs.
#include <functional>

#include "demarc/base/files.hpp"
#include "demarc/base/text.hpp"
#include "demarc/fatbin/files.hpp"
#include "demarc/ptx/address_tree.hpp"
#include "demarc/ptx/parser.hpp"
#include "demarc/ptx/printer.hpp"
#include "demarc/ptx/report.hpp"
#include "verb.hpp"

namespace demarc::cli {
namespace {

struct PtxOptions {
  std::string file, cfg, tree, extract, output, json;
  bool print = false, stats = false, list = false;
};

// A report in one of its two forms, or in both.
Result<void> emit_report(const PtxOptions& options,
                         const std::function<std::string(bool json)>& of) {
  return emit_result(
      options.json, options.output, [&] { return of(true); }, [&] { return of(false); });
}

Result<void> check_ptx(const PtxOptions& options) {
  DEMARC_TRY(std::string text, read_file(options.file));
  const ptx::ParseResult result = ptx::parse(std::move(text), options.file);
  DEMARC_CHECK(emit_report(
      options, [&](bool json) { return check_report(result.module, result.diagnostics, json); }));
  if (result.diagnostics.ok()) return {};
  return invalid_input("{}: {} error{}", options.file, result.diagnostics.malformed,
                       result.diagnostics.malformed == 1 ? "" : "s");
}

// What a program, a library, a fat binary or a cubin holds.
Result<void> open_images(const PtxOptions& options) {
  DEMARC_TRY(const fatbin::FileImages file, fatbin::read_images(options.file));
  if (options.list) {
    return emit_report(options, [&](bool json) { return fatbin::images_report(file, json); });
  }
  DEMARC_TRY(const auto written, fatbin::extract_ptx(file, options.extract));
  std::string paths;
  for (const auto& path : written) append(paths, "{}\n", path.string());
  return emit(options.output, paths);
}

Result<void> run_ptx(const PtxOptions& options) {
  if (!options.json.empty() &&
      (options.print || !options.extract.empty() || !options.tree.empty())) {
    return invalid_input("--json: {}", options.tree.empty()
                                           ? "--print and --extract give PTX; leave one out"
                                           : "--tree always gives JSON; leave one out");
  }
  if (options.list || !options.extract.empty()) return open_images(options);
  if (!options.print && !options.stats && options.cfg.empty() && options.tree.empty()) {
    return check_ptx(options);
  }
  DEMARC_TRY(const ptx::Module module, ptx::load_module(options.file));
  if (options.print) return emit(options.output, ptx::print(module));
  if (options.stats) {
    return emit_report(options, [&](bool json) { return statistics_report(module, json); });
  }
  const bool wants_cfg = !options.cfg.empty();
  DEMARC_TRY(const ptx::Function* function,
             ptx::require_function(module, wants_cfg ? options.cfg : options.tree));
  if (!wants_cfg) return emit(options.output, trees_to_json(module, *function));
  return emit_report(options, [&](bool json) { return cfg_report(module, *function, json); });
}

const RegisterVerb ptx_verb({
    .order = 202,
    .name = "ptx",
    .summary = "parse, check and print PTX; show graphs, address trees and opcode counts; extract "
               "PTX from programs",
    .example = "demarc ptx kernel.ptx --stats",
    .declare =
        [](CLI::App& app) {
          auto options = std::make_shared<PtxOptions>();
          app.add_option(
                 "file", options->file,
                 "PTX file; --list and --extract also take a program, library, fat binary or cubin")
              ->required();
          auto* what = app.add_option_group("what to do");
          what->add_flag("--check")->description("report every error in the file (default)");
          what->add_flag("--print", options->print, "print the module as Demarc understood it");
          what->add_option("--cfg", options->cfg,
                           "print the control-flow graph of this kernel as DOT")
              ->type_name("KERNEL");
          what->add_option("--tree", options->tree,
                           "print the address tree of every ld.global of this kernel as JSON")
              ->type_name("KERNEL");
          what->add_flag("--stats", options->stats, "count functions, registers and opcodes");
          what->add_flag(
              "--list", options->list,
              "list the device code in the file: kind, target, compression, bytes, kernels");
          what->add_option("--extract", options->extract,
                           "write all PTX in the file to this folder")
              ->type_name("DIR");
          what->require_option(0, 1);
          add_json(app, options->json, "the report",
                   {"demarc.ptx.check/1", "demarc.ptx.cfg/1", "demarc.ptx.stats/1",
                    "demarc.ptx.images/1"});
          add_output(app, options->output);
          return [options] { return run_ptx(*options); };
        },
});

}  // namespace
}  // namespace demarc::cli
