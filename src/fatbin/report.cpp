// Writes what `demarc ptx --list` says about a file's images, as text and as JSON.
#include <algorithm>

#include "demarc/base/json.hpp"
#include "demarc/base/text.hpp"
#include "demarc/ptx/parser.hpp"
#include "listed.hpp"

namespace demarc::fatbin {
namespace {

// The kernels of a PTX entry.
Result<std::vector<std::string>> kernels_of(const Entry& entry) {
  DEMARC_TRY(std::string text, content_of(entry));
  DEMARC_TRY(const ptx::Module module, ptx::parse_whole(std::move(text), entry.where));
  std::vector<std::string> names;
  for (const ptx::Function* kernel : module.kernels()) names.emplace_back(kernel->name);
  return names;
}

Json entry_json(const Entry& entry) {
  Json row = {{"kind", kind_name(entry)},
              {"target", name(entry.target)},
              {"version", fmt::format("{}.{}", entry.code_major, entry.code_minor)},
              {"compression", name(entry.compression)},
              {"stored_bytes", entry.stored.size()},
              {"content_bytes", entry.content_bytes},
              {"flags", flag_names(entry.flags)},
              {"identifier", entry.identifier},
              {"options", entry.options}};
  if (entry.kind != EntryKind::ptx) return row;
  if (const auto kernels = kernels_of(entry))
    row["kernels"] = *kernels;
  else
    row["error"] = kernels.error().message;
  return row;
}

Json image_json(const FileImage& found) {
  Json row = {{"kind", name(found.image.kind)}, {"section", found.section}};
  const auto entries = entries_of(found);
  if (!entries) {
    row["error"] = entries.error().message;
    return row;
  }
  row["entries"] = Json::array();
  for (const Entry& entry : *entries) row["entries"].push_back(entry_json(entry));
  return row;
}

std::vector<std::string> strings(const Json& list) {
  std::vector<std::string> texts;
  for (const Json& text : list) texts.push_back(text.get<std::string>());
  return texts;
}

void append_entry(std::string& out, const std::string& number, const Json& entry) {
  append(out, "  {:<8}{:<14}{:<9}{:<16}{:>9} of {:>9} bytes  {}\n", number,
         entry["kind"].get<std::string>(), entry["target"].get<std::string>(),
         entry["compression"].get<std::string>(), entry["stored_bytes"].get<std::uint64_t>(),
         entry["content_bytes"].get<std::uint64_t>(), joined(strings(entry["flags"]), " "));
  const auto options = entry["options"].get<std::string>();
  if (!options.empty()) append(out, "          options: {}\n", options);
  if (entry.contains("kernels"))
    append(out, "          kernels: {}\n", joined(strings(entry["kernels"]), ", "));
  if (entry.contains("error"))
    append(out, "          not read: {}\n", entry["error"].get<std::string>());
}

}  // namespace

std::string images_report(const FileImages& file, bool as_json) {
  Json report = {{"schema", "demarc.ptx.images/1"}, {"file", file.path}, {"images", Json::array()}};
  for (const FileImage& found : file.images) report["images"].push_back(image_json(found));
  if (as_json) return json_text(report, 2) + "\n";
  std::string out;
  for (std::size_t i = 0; i < file.images.size(); ++i) {
    const Json& image = report["images"][i];
    append(out, "{}: {}\n", file.images[i].where, image["kind"].get<std::string>());
    if (image.contains("error")) append(out, "  not read: {}\n", image["error"].get<std::string>());
    for (std::size_t j = 0; image.contains("entries") && j < image["entries"].size(); ++j)
      append_entry(out, fmt::format("{}.{}", i, j), image["entries"][j]);
  }
  return out;
}

}  // namespace demarc::fatbin
