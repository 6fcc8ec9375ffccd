// Declares the options that name a launch, and loads the launch that they name.
#include "launch_options.hpp"

#include <algorithm>

#include "demarc/base/numbers.hpp"
#include "help.hpp"
#include "verb.hpp"

namespace demarc::cli {
namespace {

std::string unset_detail(const workload::UnsetConstant& one) {
  return fmt::format(
      "kernel '{}' reads the __constant__ variable '{}', which has not been set: it contains "
      "zeros; set it "
      "by --variable {}=SPEC or by \"variables\" of a launch file",
      one.kernel, one.variable, one.variable);
}

}  // namespace

void LaunchOptions::declare(CLI::App& app) {
  gpu::LaunchText& text = request_.text;
  app.add_option("ptx", text.ptx, "PTX file, or bundled:NAME")->option_text("FILE.ptx");
  app.add_option("--launch", request_.launch_file, "launch file (JSON), or bundled:NAME")
      ->option_text("FILE.json");
  text_options_ = {
      // The first: chosen_kernel() counts on it.
      app.add_option("--kernel", text.kernel,
                     "kernel by its name in PTX or C++ (default: the only one)"),
      app.add_option("--grid", text.grid, "number of blocks (default: 1)")
          ->option_text("X[,Y[,Z]]"),
      app.add_option("--block", text.block, "threads per block (default: 1)")
          ->option_text("X[,Y[,Z]]"),
      app.add_option("--cluster", text.cluster, "blocks per cluster (default: as the kernel says)")
          ->option_text("X[,Y[,Z]]"),
      app.add_option("--args", text.arguments,
                     "arguments: i32:7, u64:0x10, f32:1.5, hex:00ff or "
                     "buf:BYTES[:zero|iota|random|@file[:ELEMENT]] (comma list)")
          ->option_text("SPEC"),
      app.add_option("--shared", text.dynamic_shared_bytes,
                     "bytes of dynamic shared memory (default: 0)")
          ->option_text("BYTES"),
  };
  seed_ = app.add_option("--seed", text.seed, "seed of random buffer contents");
  app.add_option("--scale", request_.options.scale, "size named in the launch file, such as large");
  app.add_option("--param", parameters_, "parameter of the launch file, such as n=4096")
      ->option_text("NAME=VALUE");
  app.add_option("--variable", request_.variables,
                 "initial content of a variable of the module: f32:1.5, hex:00ff or "
                 "zero|iota|random|@file[:ELEMENT]; may be repeated")
      ->option_text("NAME=SPEC")
      ->allow_extra_args(false);
  target_ = app.add_option("--sm", request_.target,
                           "target of bundled modules: 75, 80, 90 or 100 (default: 90)")
                ->option_text("TARGET");
  group(app);
}

void LaunchOptions::group(CLI::App& app) {
  group_options(app, "Launch",
                {"--launch", "--kernel", "--grid", "--block", "--cluster", "--args", "--shared",
                 "--seed", "--scale", "--param", "--variable", "--sm"});
}

std::string LaunchOptions::chosen_kernel() const {
  const bool own_launch = !request_.launch_file.empty() || gpu::bundled_name(request_.text.ptx);
  const bool others = std::any_of(text_options_.begin() + 1, text_options_.end(),
                                  [](const CLI::Option* option) { return option->count() > 0; });
  return kernel_chooses_ && own_launch && !others ? request_.text.kernel : std::string();
}

Result<workload::LoadedLaunch> LaunchOptions::load() const {
  workload::LaunchRequest request = request_;
  request.text_given = std::any_of(text_options_.begin(), text_options_.end(),
                                   [](const CLI::Option* option) { return option->count() > 0; }) &&
                       chosen_kernel().empty();
  request.seed_given = seed_->count() > 0;
  request.target_given = target_->count() > 0;
  for (const std::string& parameter : parameters_) {
    const auto equals = parameter.find('=');
    if (equals == std::string::npos)
      return invalid_input("--param {}: NAME=VALUE was expected", parameter);
    DEMARC_TRY(request.options.parameters[parameter.substr(0, equals)],
               parse_i64(parameter.substr(equals + 1), "--param " + parameter));
  }
  return workload::load_launch(request);
}

void warn_of_unset(std::string_view verb, const std::vector<workload::UnsetConstant>& unset) {
  const auto tell = tell_of(std::string(verb));
  for (const workload::UnsetConstant& one : unset) tell("warning: " + unset_detail(one));
}

Json unset_json(const std::vector<workload::UnsetConstant>& unset) {
  Json all = Json::array();
  for (const workload::UnsetConstant& one : unset) {
    all.push_back(
        {{"kernel", one.kernel}, {"variable", one.variable}, {"detail", unset_detail(one)}});
  }
  return all;
}

}  // namespace demarc::cli
