#include "demarc/workload/load.hpp"

#include <algorithm>

#include "demarc/workload/workload.hpp"

namespace demarc::workload {
namespace {

constexpr std::string_view bundled_mark = "bundled:";

bool is_name_character(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' ||
         c == '$' || c == '%';
}

Result<gpu::Launch> launch_of(const LaunchRequest& request) {
  const bool has_file = !request.launch_file.empty();
  if (has_file && (request.text_given || !request.text.ptx.empty())) {
    return invalid_input(
        "--launch {} says kernel, grid, block and arguments itself; leave the PTX file, --kernel, "
        "--grid, --block, "
        "--args and --shared out",
        request.launch_file);
  }
  if (!has_file && request.text.ptx.empty()) {
    return invalid_input("a PTX file, bundled:NAME or --launch FILE.json was expected");
  }
  const bool own_launch =
      !has_file && !request.text_given && request.text.ptx.starts_with(bundled_mark);
  const std::string& source = has_file ? request.launch_file : request.text.ptx;
  if (has_file || own_launch) {
    const std::string_view name = source;
    if (name.starts_with(bundled_mark))
      return instance(name.substr(bundled_mark.size()), request.options);
    return gpu::read_launch(source, request.options);
  }
  if (!request.options.scale.empty() || !request.options.parameters.empty()) {
    return invalid_input("--scale and --set belong to launch files; {} is a PTX module", source);
  }
  return gpu::parse_launch(request.text);
}

Result<void> choose_kernels(LoadedLaunch& loaded) {
  const auto entries = entry_names(loaded.ptx);
  std::string known;
  for (const std::string& entry : entries) known += (known.empty() ? "" : ", ") + entry;
  for (gpu::KernelLaunch& kernel : loaded.launch.kernels) {
    if (kernel.kernel.empty() && entries.size() == 1) kernel.kernel = entries.front();
    if (kernel.kernel.empty()) {
      return invalid_input("{}: --kernel was expected; its entries are: {}", loaded.ptx_name,
                           known);
    }
    if (std::find(entries.begin(), entries.end(), kernel.kernel) == entries.end()) {
      return invalid_input("{}: there is no entry '{}'; its entries are: {}", loaded.ptx_name,
                           kernel.kernel, known);
    }
  }
  return {};
}

}  // namespace

std::vector<std::string> entry_names(std::string_view ptx) {
  constexpr std::string_view directive = ".entry";
  std::vector<std::string> names;
  for (auto at = ptx.find(directive); at != std::string_view::npos;
       at = ptx.find(directive, at + 1)) {
    const auto line = ptx.rfind('\n', at) + 1;  // npos + 1 == 0: the first line
    if (ptx.substr(line, at - line).find("//") != std::string_view::npos) continue;
    auto begin = at + directive.size();
    while (begin < ptx.size() && (ptx[begin] == ' ' || ptx[begin] == '\t' || ptx[begin] == '\n'))
      ++begin;
    auto end = begin;
    while (end < ptx.size() && is_name_character(ptx[end])) ++end;
    if (end > begin && begin > at + directive.size())
      names.emplace_back(ptx.substr(begin, end - begin));
  }
  return names;
}

Result<LoadedLaunch> load_launch(const LaunchRequest& request) {
  LoadedLaunch loaded;
  DEMARC_TRY(loaded.launch, launch_of(request));
  if (request.seed_given) loaded.launch.seed = request.text.seed;
  loaded.ptx_name = loaded.launch.ptx;
  DEMARC_TRY(loaded.ptx, ptx_text(loaded.launch, request.target));
  DEMARC_CHECK(choose_kernels(loaded));
  return loaded;
}

}  // namespace demarc::workload
