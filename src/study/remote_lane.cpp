// Both ends of a lane in another process.
#include "demarc/study/remote_lane.hpp"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstring>
#include <mutex>
#include <variant>

#include "demarc/base/json_messages.hpp"
#include "demarc/base/numbers.hpp"
#include "last_lines.hpp"

// Messages, a line each. Their members are found through the types' namespace.
namespace demarc::study::lane_messages {

struct Load {
  std::string name;
  std::string spec;
};
struct Sample {
  std::uint32_t count = 0;
  double longest_seconds = 0;
};
struct ReadOutputs {};
struct Unload {};
struct Start {};
struct Stop {};
using Request = std::variant<Load, Sample, ReadOutputs, Start, Stop, Unload>;

struct Done {};
struct Sampled {
  std::vector<double> times;
  std::vector<double> runs;
};
struct Seen {
  std::string digest;  // a number of 64 bits, of which JSON holds 63
  bool exact = false;
  std::string mismatch;
};
struct Stopped {
  double rate = 0;
};

template <class Fields>
void fields(Fields& to, Load& value) {
  to.member("name", value.name);
  to.member("spec", value.spec);
}
template <class Fields>
void fields(Fields& to, Sample& value) {
  to.member("count", value.count);
  to.member("longest_seconds", value.longest_seconds);
}
template <class Fields, class Empty>
requires(std::is_empty_v<Empty>) void fields(Fields&, Empty&) {}
template <class Fields>
void fields(Fields& to, Sampled& value) {
  to.member("times", value.times);
  to.member("runs", value.runs);
}
template <class Fields>
void fields(Fields& to, Seen& value) {
  to.member("digest", value.digest);
  to.member("exact", value.exact);
  to.member("mismatch", value.mismatch);
}
template <class Fields>
void fields(Fields& to, Stopped& value) {
  to.member("rate", value.rate);
}

}  // namespace demarc::study::lane_messages

namespace demarc::study {
namespace {

constexpr RequestWords<lane_messages::Request> lane_words{"load",  "sample", "outputs",
                                                          "start", "stop",   "unload"};

bool write_all(int fd, std::string_view text) {
  while (!text.empty()) {
    const ssize_t n = ::write(fd, text.data(), text.size());
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    text.remove_prefix(static_cast<std::size_t>(n));
  }
  return true;
}

// Lines from a descriptor. `seconds` < 0 waits without limit.
class LineReader {
 public:
  explicit LineReader(int fd) : fd_(fd) {}

  enum class Outcome { line, end, late };
  Outcome read(std::string& line, double seconds) {
    const auto until = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds);
    while (true) {
      if (const std::size_t end = buffer_.find('\n'); end != std::string::npos) {
        line = buffer_.substr(0, end);
        buffer_.erase(0, end + 1);
        return Outcome::line;
      }
      if (seconds >= 0) {
        const std::chrono::duration<double> left = until - std::chrono::steady_clock::now();
        pollfd waiting{fd_, POLLIN, 0};
        const int milliseconds = std::max(0, static_cast<int>(left.count() * 1e3));
        const int ready = ::poll(&waiting, 1, milliseconds);
        if (ready < 0 && errno == EINTR) continue;
        if (ready == 0) return Outcome::late;
      }
      char chunk[4096];
      const ssize_t n = ::read(fd_, chunk, sizeof chunk);
      if (n < 0 && errno == EINTR) continue;
      if (n <= 0) return Outcome::end;
      buffer_.append(chunk, static_cast<std::size_t>(n));
    }
  }

 private:
  int fd_;
  std::string buffer_;
};

Result<lane_messages::Done> carry_out(Lane& lane, const lane_messages::Load& load) {
  DEMARC_CHECK(lane.load({load.name, load.spec}));
  return lane_messages::Done();
}
Result<lane_messages::Sampled> carry_out(Lane& lane, const lane_messages::Sample& sample) {
  DEMARC_TRY(auto times, lane.sample(sample.count, sample.longest_seconds));
  return lane_messages::Sampled{std::move(times), lane.last_runs()};
}
Result<lane_messages::Seen> carry_out(Lane& lane, const lane_messages::ReadOutputs&) {
  DEMARC_TRY(Outputs seen, lane.outputs());
  return lane_messages::Seen{std::to_string(seen.digest), seen.exact, std::move(seen.mismatch)};
}
Result<lane_messages::Done> carry_out(Lane& lane, const lane_messages::Start&) {
  DEMARC_CHECK(lane.start());
  return lane_messages::Done();
}
Result<lane_messages::Done> carry_out(Lane& lane, const lane_messages::Unload&) {
  DEMARC_CHECK(lane.unload());
  return lane_messages::Done();
}
Result<lane_messages::Stopped> carry_out(Lane& lane, const lane_messages::Stop&) {
  DEMARC_TRY(const double rate, lane.stop());
  return lane_messages::Stopped{rate};
}

std::string answer_to(Lane& lane, const std::string& line) {
  const auto request = request_in<lane_messages::Request>(line, lane_words);
  if (!request) return answer_text(request.error());
  return std::visit(
      [&](const auto& asked) {
        const auto answer = carry_out(lane, asked);
        return answer ? answer_text(*answer) : answer_text(answer.error());
      },
      *request);
}

class RemoteLane : public Lane {
 public:
  RemoteLane(Process child, std::string name, double patience_seconds)
      : child_(std::move(child)),
        reader_(child_.output()),
        name_(std::move(name)),
        patience_(patience_seconds) {}
  ~RemoteLane() override { child_.end(grace_seconds); }

  Result<void> load(const Workload& workload) override {
    DEMARC_CHECK(ask<lane_messages::Done>(lane_messages::Load{workload.name, workload.spec}, 0));
    return {};
  }

  Result<void> unload() override {
    DEMARC_CHECK(ask<lane_messages::Done>(lane_messages::Unload(), 0));
    return {};
  }

  Result<std::vector<double>> sample(std::uint32_t count, double longest_seconds) override {
    DEMARC_TRY(auto sampled, ask<lane_messages::Sampled>(
                                 lane_messages::Sample{count, longest_seconds}, longest_seconds));
    runs_ = std::move(sampled.runs);
    for (const auto* times : {&sampled.times, &runs_}) {
      if (std::any_of(times->begin(), times->end(), [](double ns) { return ns < 0; })) {
        return not_understood("a time below 0");
      }
    }
    if (sampled.times.empty()) return not_understood("no times");
    return std::move(sampled.times);
  }
  std::vector<double> last_runs() const override { return runs_; }

  Result<Outputs> outputs() override {
    DEMARC_TRY(auto seen, ask<lane_messages::Seen>(lane_messages::ReadOutputs(), 0));
    const auto digest = parse_u64(seen.digest, "digest");
    if (!digest) return not_understood(digest.error().message);
    return Outputs{*digest, seen.exact, std::move(seen.mismatch)};
  }

  Result<void> start() override {
    DEMARC_CHECK(ask<lane_messages::Done>(lane_messages::Start(), 0));
    return {};
  }

  Result<double> stop() override {
    DEMARC_TRY(const auto stopped, ask<lane_messages::Stopped>(lane_messages::Stop(), 0));
    return stopped.rate;
  }

  Result<void> finish() override {
    const ProcessEnd ended = child_.end(grace_seconds);
    if (ended.exit_code == 0) return {};
    return check_failed("worker '{}' ended with {}; the last of its output: {}", name_,
                        ended.words(), last_lines(child_.kept()));
  }

 private:
  template <class Answer>
  Result<Answer> ask(const lane_messages::Request& request, double work_seconds) {
    std::string line;
    if (!write_all(child_.input(), request_text(request, lane_words) + "\n")) return has_ended();
    switch (reader_.read(line, work_seconds + patience_)) {
      case LineReader::Outcome::end:
        return has_ended();
      case LineReader::Outcome::late:
        child_.end(0);  // it is stuck: no reason to wait for it to leave
        return check_failed("worker '{}' gave no answer within {} s", name_,
                            work_seconds + patience_);
      case LineReader::Outcome::line:
        break;
    }
    auto answer = answer_in<Answer>(line, "answer");
    if (!answer) return not_understood(answer.error().message);
    return *std::move(answer);
  }

  // Its exit code and last words: what it was started through may have refused it.
  tl::unexpected<Error> has_ended() {
    const ProcessEnd ended = child_.end(grace_seconds);
    const auto kind = ended.exit_code == static_cast<int>(ErrorKind::missing_capability)
                          ? ErrorKind::missing_capability
                          : ErrorKind::check_failed;
    return tl::unexpected(
        Error{kind, fmt::format("worker '{}' ended with {}; the last of its output: {}", name_,
                                ended.words(), last_lines(child_.kept()))});
  }

  tl::unexpected<Error> not_understood(std::string_view why) {
    return check_failed("worker '{}' gave an answer that cannot be understood: {}", name_, why);
  }

  static constexpr double grace_seconds = 10;

  Process child_;
  LineReader reader_;
  std::string name_;
  double patience_;
  std::vector<double> runs_;
};

}  // namespace

Result<void> serve_lane(Lane& lane, int input, int output) {
  LineReader reader(input);
  std::string line;
  while (reader.read(line, -1) == LineReader::Outcome::line) {
    if (!write_all(output, answer_to(lane, line) + "\n")) break;
  }
  return {};
}

Result<std::unique_ptr<Lane>> spawn_lane(const std::vector<std::string>& argv,
                                         const Environment& environment, double patience_seconds) {
  // Writing to a worker that has died must be an error value, not the end of this program.
  static std::once_flag once;
  std::call_once(once, [] { ::signal(SIGPIPE, SIG_IGN); });
  ProcessOptions options;
  options.set = environment;
  options.input = options.output = ChildStream::pipe;
  options.error = ChildStream::kept;
  options.death_signal = SIGTERM;
  DEMARC_TRY(auto child, Process::spawn(argv, options));
  return std::make_unique<RemoteLane>(std::move(child), argv.front(), patience_seconds);
}

}  // namespace demarc::study
