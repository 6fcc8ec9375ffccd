// What was found of a program, as one screen and as JSON.
#include <algorithm>
#include <cctype>
#include <filesystem>
#include <sstream>

#include "demarc/base/json.hpp"
#include "demarc/base/text.hpp"
#include "demarc/exec/program_doctor.hpp"

namespace demarc::cuda {
namespace {

constexpr std::size_t width = 100;
constexpr std::size_t max_rows = 7;       // for files and what compiles at run time
constexpr std::size_t max_unchecked = 2;  // rows
constexpr std::size_t file_width = 46;
constexpr std::size_t command_width = 30;               // in the first line
constexpr std::string_view in_front = "             ";  // where the first column has no word

// Lines of at most `width` columns, broken at blanks.
std::string wrapped(const std::string& text) {
  std::string out;
  std::string line;
  std::istringstream words(text);
  for (std::string word; words >> word;) {
    if (!line.empty() && line.size() + 1 + word.size() > width) {
      out += line + "\n";
      line.clear();
    } else if (!line.empty()) {
      line += " ";
    }
    line += word;
  }
  return out + line + "\n";
}

std::string cut(const std::string& text, std::size_t most) {
  return text.size() <= most ? text : text.substr(0, most - 3) + "...";
}

std::string one_line(std::string text) {
  std::replace(text.begin(), text.end(), '\n', ' ');
  return text;
}

std::string upper(std::string_view text) {
  std::string out(text);
  std::transform(out.begin(), out.end(), out.begin(),
                 [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  return out;
}

// As a POSIX shell reads it back.
std::string quoted(const std::string& word) {
  constexpr std::string_view safe =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+=./:,@%";
  if (!word.empty() && word.find_first_not_of(safe) == std::string::npos) return word;
  std::string out = "'";
  for (const char c : word) {
    if (c == '\'') {
      out += "'\\''";
    } else {
      out += c;
    }
  }
  return out + "'";
}

std::string command_line_of(const std::vector<std::string>& words) {
  std::vector<std::string> all;
  std::transform(words.begin(), words.end(), std::back_inserter(all), quoted);
  return joined(all, " ");
}

std::string label_of(const FileCode& code) {
  const std::string name = std::filesystem::path(code.file.path).filename();
  const std::string& of = code.library.empty() ? code.file.package : code.library;
  return of.empty() ? name : fmt::format("{} ({})", name, of);
}

void append_row(std::string& text, std::string_view state, const std::string& label,
                const std::string& rest) {
  text += cut(fmt::format("{:<11}  {:<{}}  {}", state, cut(label, file_width), file_width, rest),
              width) +
          "\n";
}

void append_unknown(std::string& text, const std::string& what, const std::string& why) {
  text += cut(fmt::format("{:<11}  {}: {}", to_string(FileState::not_checked), what, one_line(why)),
              width) +
          "\n";
}

void append_files(std::string& text, const ProgramFindings& findings) {
  const std::vector<FileCode>& files = findings.files;
  const auto with_code =
      static_cast<std::size_t>(std::count_if(files.begin(), files.end(), [](const FileCode& code) {
        return code.state != FileState::no_code;
      }));
  if (with_code > 0) append_row(text, "state", "file", "kernels: PTX  unfit PTX  machine code");
  const std::size_t others = std::min(max_rows - 1, findings.compilers.size());
  const std::size_t shown = std::min(max_rows - others, with_code);
  for (std::size_t i = 0; i < shown; ++i) {
    const FileCode& code = files[i];
    if (code.state == FileState::not_checked) {
      append_unknown(text, label_of(code), code.why);
      continue;
    }
    append_row(text, to_string(code.state), label_of(code),
               fmt::format("{:>12}  {:>9}  {:>12}", code.ptx_kernels, code.unfit_kernels,
                           code.machine_kernels));
  }
  if (shown < with_code) {
    std::uint64_t machine = 0;
    for (std::size_t i = shown; i < with_code; ++i)
      machine += files[i].machine_kernels + files[i].unfit_kernels;
    append(text, "{}{} more files with device code, {} of their kernels refused or machine code\n",
           in_front, with_code - shown, machine);
  }
}

// "12 files have no device code for this card: 3 with calls of CUDA"
void append_others(std::string& text, const ProgramFindings& findings) {
  std::size_t none = 0;
  std::size_t cuda = 0;
  std::size_t others = 0;
  for (const FileCode& code : findings.files) {
    if (code.state != FileState::no_code) continue;
    ++none;
    if (code.other_images > 0) {
      ++others;
    } else if (code.uses_cuda) {
      ++cuda;
    }
  }
  if (none == 0) return;
  append(text, "{}{} {} no device code for this card", in_front, none,
         none == 1 ? "file has" : "files have");
  std::vector<std::string> parts;
  if (cuda > 0) parts.push_back(fmt::format("{} with calls of CUDA", cuda));
  if (others > 0) parts.push_back(fmt::format("{} with code for other cards alone", others));
  text += (parts.empty() ? "" : ": " + joined(parts, ", ")) + "\n";
}

void append_unfit(std::string& text, const ProgramFindings& findings) {
  const auto found = std::find_if(findings.files.begin(), findings.files.end(),
                                  [](const FileCode& code) { return code.unfit_kernels > 0; });
  if (found == findings.files.end()) return;
  text += cut(fmt::format("{}unfit PTX: {}", in_front, one_line(found->why_unfit)), width) + "\n";
}

void append_unchecked(std::string& text, const ProgramFiles& program) {
  const std::size_t shown = std::min(max_unchecked, program.unchecked.size());
  for (std::size_t i = 0; i < shown; ++i) {
    append_unknown(text, program.unchecked[i].what, program.unchecked[i].why);
  }
  if (shown < program.unchecked.size())
    append(text, "{}and {} more: --json has all\n", in_front, program.unchecked.size() - shown);
  if (!program.missing.empty()) {
    text += cut(fmt::format("{}imports that are not installed: {}", in_front,
                            joined(program.missing, ", ")),
                width) +
            "\n";
  }
}

}  // namespace

std::string command_to_type(const ProgramFindings& findings) {
  std::vector<std::string> words{"demarc", "exec"};
  const TenantCard& card = findings.card;
  words.insert(words.end(), card.options.begin(), card.options.end());
  if (findings.verdict == Verdict::cannot) {
    words.insert(words.end(), {"--sms", fmt::to_string((card.sms + 1) / 2)});
  } else {
    words.insert(words.end(), {"--part", "1/2"});
    if (!card.description.empty()) words.insert(words.end(), {"--description", card.description});
  }
  // It says what was refused, and why.
  if (findings.verdict == Verdict::in_part || findings.verdict == Verdict::not_known)
    words.emplace_back("--report");
  words.emplace_back("--");
  words.insert(words.end(), findings.program.command.begin(), findings.program.command.end());
  return command_line_of(words);
}

std::string findings_to_text(const ProgramFindings& findings) {
  const TenantCard& card = findings.card;
  std::string text =
      wrapped(fmt::format("{}: {} in a tenant on {} (compute capability {}.{}, {:.1f} GiB)",
                          upper(to_string(findings.verdict)),
                          cut(command_line_of(findings.program.command), command_width), card.name,
                          card.capability.major, card.capability.minor,
                          static_cast<double>(card.memory_bytes) / (1U << 30U)));
  text += wrapped(findings.because) + "\n";
  append_files(text, findings);
  append_unfit(text, findings);
  for (const RuntimeCompiler& compiler : findings.compilers) {
    const bool fine = compiler.gives_ptx || card.windows;
    text += cut(fmt::format("{:<11}  {}: {}", to_string(fine ? FileState::ok : FileState::refused),
                            compiler.name, compiler.what),
                width) +
            "\n";
  }
  append_others(text, findings);
  append_unchecked(text, findings.program);
  append(text, "{:<11}  libraries and code that the program loads by name while it runs\n",
         to_string(FileState::not_checked));
  return text + "\n" + command_to_type(findings) + "\n";
}

std::string findings_to_json(const ProgramFindings& findings, const std::string& device) {
  const TenantCard& card = findings.card;
  Json json{
      {"schema", "demarc.doctor.program/1"},
      {"device", device},
      {"card", card.name},
      {"compute_capability", fmt::format("{}.{}", card.capability.major, card.capability.minor)},
      {"memory_bytes", card.memory_bytes},
      {"colors", card.has_colors},
      {"why_no_colors", card.why_no_colors},
      {"windows", card.windows.has_value()},
      {"window_colors", card.windows ? card.windows->colors : 0},
      {"window_granule_bytes", card.windows ? card.windows->granule : 0},
      {"why_no_windows", card.why_no_windows},
      {"program", findings.program.command},
      {"verdict", to_string(findings.verdict)},
      {"because", findings.because}};
  json["files"] = Json::array();
  for (const FileCode& code : findings.files) {
    json["files"].push_back({{"path", code.file.path},
                             {"package", code.file.package},
                             {"library", code.library},
                             {"state", to_string(code.state)},
                             {"why", code.why},
                             {"uses_cuda", code.uses_cuda},
                             {"images", code.images},
                             {"images_for_other_cards", code.other_images},
                             {"images_for_linking", code.link_images},
                             {"images_not_known", code.unknown_images},
                             {"kernels_with_ptx", code.ptx_kernels},
                             {"kernels_with_unfit_ptx", code.unfit_kernels},
                             {"why_unfit", code.why_unfit},
                             {"kernels_not_tried", code.untried_kernels},
                             {"kernels_of_machine_code", code.machine_kernels}});
  }
  json["compilers"] = Json::array();
  for (const RuntimeCompiler& compiler : findings.compilers) {
    json["compilers"].push_back(
        {{"name", compiler.name}, {"gives_ptx", compiler.gives_ptx}, {"what", compiler.what}});
  }
  json["packages"] = findings.program.packages;
  json["missing"] = findings.program.missing;
  json["not_checked"] = Json::array();
  for (const Unchecked& one : findings.program.unchecked)
    json["not_checked"].push_back({{"what", one.what}, {"why", one.why}});
  json["command"] = command_to_type(findings);
  return json_text(json, 2) + "\n";
}

}  // namespace demarc::cuda
