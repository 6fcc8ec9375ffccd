// Reads and prints access streams as text, with errors that name the line.
#include <algorithm>
#include <array>

#include "demarc/base/numbers.hpp"
#include "demarc/sim/memory/access_stream.hpp"
#include "demarc/sim/memory/spec.hpp"

namespace demarc::sim::memory {
namespace {

struct Verb {
  std::string_view name;
  StepKind kind;
};
constexpr std::array<Verb, 6> verbs{{{"load", StepKind::load},
                                     {"store", StepKind::store},
                                     {"atomic", StepKind::atomic},
                                     {"reduce", StepKind::reduce},
                                     {"barrier", StepKind::barrier},
                                     {"work", StepKind::work}}};

std::vector<std::string_view> words_of(std::string_view line) {
  std::vector<std::string_view> words;
  line = line.substr(0, line.find('#'));
  for (std::size_t at = 0; at < line.size();) {
    if (line[at] == ' ' || line[at] == '\t' || line[at] == '\r') {
      ++at;
      continue;
    }
    const std::size_t end = std::min(line.find_first_of(" \t\r", at), line.size());
    words.push_back(line.substr(at, end - at));
    at = end;
  }
  return words;
}

class AccessReader {
 public:
  explicit AccessReader(std::string_view source) : source_(source) {}

  Result<void> line(std::string_view text, std::size_t number) {
    const auto words = words_of(text);
    if (words.empty()) return {};
    where_ = fmt::format("{}:{}", source_, number);
    if (words[0] == "kernel") return kernel(words);
    if (words[0] == "block") return block();
    if (words[0] == "warp") return warp();
    return step(words);
  }

  Result<std::shared_ptr<const PackedLaunch>> finish() {
    DEMARC_CHECK(end_kernel());
    if (launch_->kernels.empty()) return invalid_input("{}: no kernel", source_);
    return std::shared_ptr<const PackedLaunch>(launch_);
  }

 private:
  Result<void> kernel(const std::vector<std::string_view>& words) {
    DEMARC_CHECK(end_kernel());
    PackedKernel kernel;
    struct Key {
      std::string_view name;
      std::uint32_t& value;
      std::uint64_t low, high;
    };
    const std::array<Key, 3> keys{{{"threads", kernel.shape.threads, 1, 1024},
                                   {"shared", kernel.shape.shared_bytes, 0, 1U << 20U},
                                   {"registers", kernel.shape.registers, 0, 255}}};
    for (std::size_t i = 1; i < words.size(); ++i) {
      const auto equals = words[i].find('=');
      const auto key = std::find_if(keys.begin(), keys.end(), [&](const Key& k) {
        return k.name == words[i].substr(0, equals);
      });
      if (equals == std::string_view::npos || key == keys.end()) {
        return invalid_input("{}: '{}' is none of threads=N, shared=BYTES, registers=N", where_,
                             words[i]);
      }
      DEMARC_TRY(const std::uint64_t value,
                 parse_u64(words[i].substr(equals + 1), where_ + ": " + std::string(key->name)));
      if (value < key->low || value > key->high) {
        return invalid_input("{}: {}={} is out of range", where_, key->name, value);
      }
      key->value = static_cast<std::uint32_t>(value);
    }
    launch_->kernels.push_back(std::move(kernel));
    return {};
  }

  Result<void> block() {
    if (launch_->kernels.empty())
      return invalid_input("{}: a block comes before any kernel; write the kernel first", where_);
    end_block();
    block_ = std::make_shared<PackedBlock>();
    block_->warps.resize(launch_->kernels.back().shape.warps());
    warp_ = 0;
    return {};
  }

  Result<void> warp() {
    if (!block_)
      return invalid_input("{}: a warp comes before any block; write the block first", where_);
    if (warp_ == block_->warps.size()) {
      return invalid_input("{}: more than the {} warps of {} threads", where_, block_->warps.size(),
                           launch_->kernels.back().shape.threads);
    }
    ++warp_;
    return {};
  }

  Result<void> step(const std::vector<std::string_view>& words) {
    if (!block_ || warp_ == 0)
      return invalid_input("{}: a step comes before any warp; write the warp first", where_);
    Step step;
    std::size_t at = 0;
    if (words[0] == "wait") {
      step.wait = true;
      if (++at == words.size())
        return invalid_input("{}: a step must follow 'wait' on its line", where_);
    }
    const std::string_view name = words[at].substr(0, words[at].find('.'));
    const auto verb =
        std::find_if(verbs.begin(), verbs.end(), [&](const Verb& v) { return v.name == name; });
    if (verb == verbs.end()) {
      return invalid_input(
          "{}: '{}' is none of kernel, block, warp, load, store, atomic, reduce, barrier, work",
          where_, words[at]);
    }
    step.kind = verb->kind;
    DEMARC_CHECK(operators(words[at].substr(name.size()), step));
    for (++at; at < words.size(); ++at) {
      if (words[at].front() == '+') {
        DEMARC_TRY(const std::uint64_t count, parse_u64(words[at].substr(1), where_));
        if (count > 0xffffffffU)
          return invalid_input("{}: {} instructions; a step has at most 2^32 - 1", where_, count);
        step.instructions = static_cast<std::uint32_t>(count);
        continue;
      }
      if (words[at].starts_with("shared=")) {
        DEMARC_TRY(const std::uint64_t rows, parse_u64(words[at].substr(7), where_));
        if (rows > 0xffffU)
          return invalid_input("{}: {} rows of shared memory; a step has at most 65535", where_,
                               rows);
        step.shared_rows = static_cast<std::uint16_t>(rows);
        continue;
      }
      if (words[at].starts_with("float=")) {
        DEMARC_TRY(const std::uint64_t floats, parse_u64(words[at].substr(6), where_));
        if (floats > 0xffffffffU) {
          return invalid_input("{}: float={}; a step has at most 2^32 - 1", where_, floats);
        }
        step.floats = static_cast<std::uint32_t>(floats);
        continue;
      }
      DEMARC_CHECK(add_line(words[at], step));
    }
    if (step.floats > step.instructions) {
      return invalid_input("{}: float={} is more than the {} instructions of the step", where_,
                           step.floats, step.instructions);
    }
    const bool access = step.kind != StepKind::barrier && step.kind != StepKind::work;
    if (access != (step.count > 0)) {
      return invalid_input("{}: {} {}", where_, verb->name,
                           access ? "needs an address" : "takes no address");
    }
    block_->warps[warp_ - 1].add(step);
    return {};
  }

  // .cg of a load, .part of a store, .cs of an access.
  Result<void> operators(std::string_view text, Step& step) const {
    const bool access = step.kind != StepKind::barrier && step.kind != StepKind::work;
    while (!text.empty()) {
      const std::string_view one = text.substr(0, std::min(text.find('.', 1), text.size()));
      if (one == ".cg" && step.kind == StepKind::load) {
        step.past_l1 = true;
      } else if (one == ".cs" && access) {
        step.streams = true;
      } else if (one == ".part" && step.kind == StepKind::store) {
        step.partial = true;
      } else {
        return invalid_input(
            "{}: '{}' is not possible here; loads may have .cg, stores .part, and all accesses .cs",
            where_, one);
      }
      text = text.substr(one.size());
    }
    return {};
  }

  // ADDRESS or ADDRESS/SECTORS, the mask of the sectors of its line.
  Result<void> add_line(std::string_view word, Step& step) {
    const auto slash = word.find('/');
    DEMARC_TRY(const std::uint64_t number, parse_u64(word.substr(0, slash), where_));
    const Address address(number);
    std::uint64_t mask = sector_of(address);
    if (slash != std::string_view::npos) {
      DEMARC_TRY(mask, parse_u64(word.substr(slash + 1), where_));
      if (number % line_bytes != 0) {
        return invalid_input(
            "{}: '{}': a mask of sectors follows the address of a line, a multiple of {}: write "
            "{:#x}/MASK, or {:#x} alone for the sector of that address",
            where_, word, line_bytes, number - number % line_bytes, number);
      }
    }
    if (mask == 0 || mask > 15) {
      return invalid_input("{}: '{}': a mask of sectors is 1 to 15", where_, word);
    }
    if (step.count == step.lines.size()) {
      return invalid_input("{}: a warp has 32 lanes, so at most 32 lines", where_);
    }
    step.lines[step.count++] = LineEntry(address, static_cast<std::uint32_t>(mask));
    return {};
  }

  void end_block() {
    if (!block_) return;
    launch_->kernels.back().blocks.push_back(std::move(block_));
    block_.reset();
  }
  Result<void> end_kernel() {
    if (launch_->kernels.empty()) return {};
    end_block();
    PackedKernel& kernel = launch_->kernels.back();
    if (kernel.blocks.empty()) return invalid_input("{}: a kernel without blocks", where_);
    kernel.shape.blocks = static_cast<std::uint32_t>(kernel.blocks.size());
    return {};
  }

  std::string source_;
  std::string where_;
  std::shared_ptr<PackedLaunch> launch_ = std::make_shared<PackedLaunch>();
  std::shared_ptr<PackedBlock> block_;
  std::size_t warp_ = 0;  // 1: the first
};

std::string_view verb_of(StepKind kind) {
  for (const Verb& verb : verbs) {
    if (verb.kind == kind) return verb.name;
  }
  return "end";
}

}  // namespace

Result<std::shared_ptr<const PackedLaunch>> parse_access_text(std::string_view text,
                                                              std::string_view source) {
  AccessReader reader(source);
  std::size_t number = 1;
  while (!text.empty()) {
    const auto end = text.find('\n');
    DEMARC_CHECK(reader.line(text.substr(0, end), number++));
    text = end == std::string_view::npos ? std::string_view() : text.substr(end + 1);
  }
  return reader.finish();
}

std::string access_text(const PackedLaunch& launch) {
  std::string text;
  Step step;
  for (const PackedKernel& kernel : launch.kernels) {
    text +=
        fmt::format("kernel threads={} shared={}", kernel.shape.threads, kernel.shape.shared_bytes);
    if (kernel.shape.registers != 0) text += fmt::format(" registers={}", kernel.shape.registers);
    text += '\n';
    for (const auto& block : kernel.blocks) {
      text += "block\n";
      for (const PackedSteps& warp : block->warps) {
        text += "warp\n";
        std::size_t at = 0;
        for (warp.read(at, step); step.kind != StepKind::end; warp.read(at, step)) {
          text += fmt::format("{}{}{}{}{}", step.wait ? "wait " : "", verb_of(step.kind),
                              step.past_l1 ? ".cg" : "", step.streams ? ".cs" : "",
                              step.partial ? ".part" : "");
          if (step.instructions != 0) text += fmt::format(" +{}", step.instructions);
          if (step.floats != 0) text += fmt::format(" float={}", step.floats);
          if (step.shared_rows != 0) text += fmt::format(" shared={}", step.shared_rows);
          for (std::size_t i = 0; i < step.count; ++i) {
            text += fmt::format(" {:#x}/{}", step.lines[i].line(), step.lines[i].sectors());
          }
          text += '\n';
        }
      }
    }
  }
  return text;
}

}  // namespace demarc::sim::memory
