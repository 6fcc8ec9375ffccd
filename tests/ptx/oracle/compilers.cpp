// Runs nvcc, clang and ptxas, and keeps what they made in a cache of the build tree.
#include "compilers.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <map>
#include <sstream>
#include <stdexcept>

#include "demarc/base/process.hpp"
#include "elf_text.hpp"
#include "paths.hpp"

namespace demarc::ptx::test {
namespace {

std::string slurp_file(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) throw std::runtime_error("cannot read " + path.string());
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

// FNV-1a, twice with different seeds.
std::string hash_of(const std::string& content) {
  std::uint64_t a = 0xCBF29CE484222325ULL;
  std::uint64_t b = 0x6C62272E07BB0142ULL;
  for (const char c : content) {
    a = (a ^ static_cast<unsigned char>(c)) * 0x100000001B3ULL;
    b = (b ^ static_cast<unsigned char>(c)) * 0x100000001B5ULL;
  }
  return fmt::format("{:016x}{:016x}", a, b);
}

std::string joined(const std::vector<std::string>& words) {
  std::string out;
  for (const std::string& word : words) out += " '" + word + "'";
  return out;
}

std::filesystem::path scratch_file(const std::string& suffix) {
  static std::atomic<int> counter{0};
  const auto folder = std::filesystem::temp_directory_path();
  return folder / fmt::format("demarc_oracle_{}_{}{}", ::getpid(), counter++, suffix);
}

// Runs a shell command and gives its messages, which become the exception when it fails.
std::string run_compiler(const std::string& command) {
  ProcessOptions options;
  options.output = options.error = ChildStream::kept;
  options.kept_bytes = 1U << 20U;
  auto compiler = Process::spawn({"/bin/sh", "-c", command}, options);
  if (!compiler) throw std::runtime_error(compiler.error().message);
  if (compiler->wait(-1)->exit_code != 0) {
    throw std::runtime_error(command + "\n" + compiler->kept());
  }
  return compiler->kept();
}

// Size and time of the program stand for its version.
std::string stamp_of(const std::string& program) {
  const std::filesystem::path path(program);
  return fmt::format("{} {} {}", program, std::filesystem::file_size(path),
                     std::filesystem::last_write_time(path).time_since_epoch().count());
}

template <class Make>
std::string cached(const std::string& key, Make&& make) {
  const auto folder = demarc::test::build_dir() / "ptx_oracle_cache";
  std::filesystem::create_directories(folder);
  const auto path = folder / hash_of(key);
  if (std::filesystem::exists(path)) return slurp_file(path);
  const std::string content = make();
  const auto temporary = folder / scratch_file(".part").filename();
  std::ofstream(temporary, std::ios::binary) << content;
  std::filesystem::rename(temporary, path);
  return content;
}

// What the source may include from this tree.
std::string headers_of_kernels() {
  std::string all;
  const auto folder = demarc::test::source_dir() / "kernels" / "include";
  if (!std::filesystem::exists(folder)) return all;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    all += entry.path().filename().string() + slurp_file(entry.path());
  }
  return all;
}

std::string compile_ptx(const std::string& program, const std::filesystem::path& source,
                        const std::vector<std::string>& flags) {
  const std::string key = stamp_of(program) + joined(flags) + source.filename().string() +
                          slurp_file(source) + headers_of_kernels();
  return cached(key, [&] {
    const auto out = scratch_file(".ptx");
    run_compiler("'" + program + "'" + joined(flags) + " -o '" + out.string() + "' '" +
                 source.string() + "'");
    const std::string ptx = slurp_file(out);
    std::filesystem::remove(out);
    return ptx;
  });
}

std::string target_of(const std::string& ptx) {
  const std::size_t at = ptx.find(".target");
  const std::size_t first = ptx.find("sm_", at);
  if (at == std::string::npos || first == std::string::npos) return "sm_90";  // ptxas says why not
  const std::string target = ptx.substr(first, ptx.find_first_of(" ,\n\r\t/", first) - first);
  // ptxas 13 makes code for sm_75 and above, of text for any card before it too.
  return std::atoi(target.c_str() + 3) < 75 ? "sm_75" : target;
}

struct Assembled {
  std::map<std::string, std::string> sections;  // content_sections()
  std::string messages;
};

Assembled assembled(const std::string& ptx, const std::vector<std::string>& flags) {
  const auto in = scratch_file(".ptx");
  const auto out = scratch_file(".o");
  std::ofstream(in, std::ios::binary) << ptx;
  const std::string messages =
      run_compiler(std::string("'") + DEMARC_PTXAS + "' -w -arch=" + target_of(ptx) +
                   joined(flags) + " -o '" + out.string() + "' '" + in.string() + "'");
  Assembled made{content_sections(slurp_file(out)), messages};
  std::filesystem::remove(in);
  std::filesystem::remove(out);
  return made;
}

std::vector<std::uint64_t> numbers_behind(const std::string& text, std::string_view words) {
  std::vector<std::uint64_t> numbers;
  for (std::size_t at = text.find(words); at != std::string::npos; at = text.find(words, at + 1)) {
    numbers.push_back(std::strtoull(text.c_str() + at + words.size(), nullptr, 10));
  }
  return numbers;
}

}  // namespace

std::vector<std::filesystem::path> cuda_sources(const std::filesystem::path& folder) {
  std::vector<std::filesystem::path> found;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() == ".cu") found.push_back(entry.path());
  }
  std::sort(found.begin(), found.end());
  return found;
}

std::string nvcc_ptx(const std::filesystem::path& source, const std::vector<std::string>& flags) {
  std::vector<std::string> all = {
      "-ptx", "-std=c++17", "-Wno-deprecated-gpu-targets",
      "-w",   "-I",         (demarc::test::source_dir() / "kernels" / "include").string()};
  all.insert(all.end(), flags.begin(), flags.end());
  return compile_ptx(DEMARC_NVCC, source, all);
}

std::string clang_ptx(const std::filesystem::path& source, const std::vector<std::string>& flags) {
  return compile_ptx(DEMARC_PTX_CLANG, source, flags);
}

std::string machine_code_digest(const std::string& ptx, const std::vector<std::string>& flags) {
  return cached("contents" + stamp_of(DEMARC_PTXAS) + joined(flags) + ptx, [&] {
    std::string digest;
    for (const auto& [name, content] : assembled(ptx, flags).sections) {
      digest += fmt::format("{} {} {}\n", name, content.size(), hash_of(content));
    }
    return digest;
  });
}

Verdict verdict_of_ptxas(const std::string& ptx) {
  const std::string verdict =
      cached("verdict" + stamp_of(DEMARC_PTXAS) + ptx, [&]() -> std::string {
        try {
          (void)assembled(ptx, {});
          return "taken";
        } catch (const std::runtime_error& error) {
          return std::string_view(error.what()).find("ptxas fatal") == std::string_view::npos
                     ? "crashed"
                     : "refused";
        }
      });
  if (verdict == "taken") return Verdict::taken;
  return verdict == "refused" ? Verdict::refused : Verdict::crashed;
}

bool is_taken_as_a_part(const std::string& ptx) {
  return cached("part" + stamp_of(DEMARC_PTXAS) + ptx, [&]() -> std::string {
           try {
             (void)assembled(ptx, {"-c", "-O0"});
             return "taken";
           } catch (const std::runtime_error&) {
             return "refused";
           }
         }) == "taken";
}

Judgement judgement_of_ptxas(const std::string& ptx) {
  const std::string said = cached("lines" + stamp_of(DEMARC_PTXAS) + ptx, [&]() -> std::string {
    try {
      (void)assembled(ptx, {"-O0"});
      return "taken";
    } catch (const std::runtime_error& error) {
      return error.what();
    }
  });
  if (said == "taken") return {.taken = true, .lines = {}};
  Judgement judgement;
  for (const std::uint64_t line : numbers_behind(said, ", line ")) {
    judgement.lines.insert(static_cast<int>(line));
  }
  return judgement;
}

namespace {

constexpr std::size_t instruction_bytes = 16;

// The opcode is the lowest twelve bits: 0xfae with a register for the address, 0xdae with a uniform
// one besides (LDGSTS, as nvdisasm of CUDA 13.0 shows them).
std::uint64_t uniform_copies_in(const std::string& code) {
  constexpr unsigned uniform_copy = 0xdae;
  std::uint64_t count = 0;
  for (std::size_t at = 0; at + instruction_bytes <= code.size(); at += instruction_bytes) {
    const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(code[at + i]); };
    if ((byte(0) | (byte(1) & 0xfU) << 8U) == uniform_copy) ++count;
  }
  return count;
}

}  // namespace

MachineCodeFigures machine_code_figures(const std::string& ptx) {
  const std::string text = cached(stamp_of(DEMARC_PTXAS) + "figures, copies" + ptx, [&] {
    const Assembled made = assembled(ptx, {"-v"});
    std::uint64_t bytes = 0;
    std::uint64_t copies = 0;
    for (const auto& [name, content] : made.sections) {
      if (!name.starts_with(".text")) continue;
      bytes += content.size();
      copies += uniform_copies_in(content);
    }
    std::uint64_t max_registers = 0;
    for (const std::uint64_t one : numbers_behind(made.messages, "Used ")) {
      max_registers = std::max(max_registers, one);
    }
    std::uint64_t spilled = 0;
    for (const std::uint64_t one : numbers_behind(made.messages, "bytes stack frame, ")) {
      spilled += one;
    }
    return fmt::format("{} {} {} {}", bytes / instruction_bytes, copies, max_registers, spilled);
  });
  MachineCodeFigures figures;
  std::istringstream(text) >> figures.instructions >> figures.uniform_copies >> figures.registers >>
      figures.spilled_bytes;
  return figures;
}

}  // namespace demarc::ptx::test
