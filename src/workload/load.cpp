#include "demarc/workload/load.hpp"

#include <algorithm>
#include <filesystem>
#include <set>

#include "demarc/base/files.hpp"
#include "demarc/ptx/parser.hpp"
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

// Which buffer: as the user wrote it, where it stands among the arguments.
std::string name_of_buffer(const gpu::Launch& launch, std::size_t index) {
  for (const gpu::KernelLaunch& kernel : launch.kernels) {
    for (std::size_t i = 0; i < kernel.arguments.size(); ++i) {
      const auto* use = std::get_if<gpu::BufferUse>(&kernel.arguments[i]);
      if (use != nullptr && use->buffer == index)
        return fmt::format("argument {} (buffer '{}')", i + 1, launch.buffers[index].name);
    }
  }
  return fmt::format("buffer '{}'", launch.buffers[index].name);
}

// Files of contents, before anything is computed: not all that use a launch read them.
Result<void> check_fills(const gpu::Launch& launch) {
  for (std::size_t i = 0; i < launch.buffers.size(); ++i) {
    const gpu::Buffer& buffer = launch.buffers[i];
    if (buffer.fill.kind != gpu::FillKind::file) continue;
    const std::filesystem::path file = buffer.fill.file;
    std::error_code ignored;
    if (!std::filesystem::exists(file, ignored) || std::filesystem::is_directory(file, ignored)) {
      // Says which of the two, and why.
      const auto content = read_file(file, 1);
      if (!content)
        return invalid_input("{}: {}", name_of_buffer(launch, i), content.error().message);
    }
    if (!std::filesystem::is_regular_file(file, ignored)) continue;
    const auto size = std::filesystem::file_size(file, ignored);
    if (!ignored && size > buffer.bytes) {
      return invalid_input("{}: {} holds {} bytes, more than the buffer's {}",
                           name_of_buffer(launch, i), buffer.fill.file, size, buffer.bytes);
    }
  }
  return {};
}

Result<void> choose_kernels(LoadedLaunch& loaded) {
  const auto entries = entry_names(loaded.ptx);
  std::string known;
  for (const std::string& entry : entries) known += (known.empty() ? "" : ", ") + entry;
  for (gpu::KernelLaunch& kernel : loaded.launch.kernels) {
    if (entries.empty())
      return invalid_input("{}: it has no entry, so nothing to run", loaded.ptx_name);
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

Result<void> keep_kernel(gpu::Launch& launch, std::string_view kernel) {
  std::vector<gpu::KernelLaunch> kept;
  std::set<std::string> known;
  for (const gpu::KernelLaunch& one : launch.kernels) {
    known.insert(one.kernel);
    if (one.kernel == kernel) kept.push_back(one);
  }
  if (kept.empty()) {
    std::string names;
    for (const std::string& name : known) names += (names.empty() ? "" : ", ") + name;
    return invalid_input("--kernel {}: the launch runs no kernel of that name; its kernels are: {}",
                         kernel, names);
  }
  if (kept.size() < launch.kernels.size()) launch.check = {};
  launch.kernels = std::move(kept);
  return {};
}

Result<LoadedLaunch> load_launch(const LaunchRequest& request) {
  LoadedLaunch loaded;
  DEMARC_TRY(loaded.launch, launch_of(request));
  if (request.seed_given) loaded.launch.seed = request.text.seed;
  loaded.ptx_name = loaded.launch.ptx;
  if (request.target_given && !loaded.ptx_name.starts_with(bundled_mark)) {
    return invalid_input(
        "--sm {} chooses among bundled modules; {} is a PTX file, for its own .target",
        request.target, loaded.ptx_name);
  }
  DEMARC_CHECK(check_fills(loaded.launch));
  DEMARC_TRY(loaded.ptx, ptx_text(loaded.launch, request.target));
  if (const auto text = ptx::check_is_text(loaded.ptx, loaded.ptx_name); !text)
    return invalid_input("{}: {}", loaded.ptx_name, text.error().message);
  DEMARC_CHECK(choose_kernels(loaded));
  return loaded;
}

}  // namespace demarc::workload
