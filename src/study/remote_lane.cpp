// Both ends of a lane in another process.
#include "demarc/study/remote_lane.hpp"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <csignal>
#include <cstring>
#include <mutex>
#include <optional>

#include "demarc/base/numbers.hpp"
#include "last_lines.hpp"

namespace demarc::study {
namespace {

// One request or answer a line; fields are divided by tabs.
std::vector<std::string> split_tabs(std::string_view line) {
  std::vector<std::string> fields;
  while (true) {
    const std::size_t tab = line.find('\t');
    fields.emplace_back(line.substr(0, tab));
    if (tab == std::string_view::npos) return fields;
    line.remove_prefix(tab + 1);
  }
}

std::string one_line(std::string text) {
  std::replace_if(
      text.begin(), text.end(), [](char c) { return c == '\n' || c == '\t'; }, ' ');
  return text;
}

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

std::string answer_error(const Error& error) {
  return fmt::format("error\t{}\t{}\n", static_cast<int>(error.kind), one_line(error.message));
}

Result<std::string> answer_to(Lane& lane, const std::vector<std::string>& request) {
  if (request[0] == "load" && request.size() == 3) {
    DEMARC_CHECK(lane.load({request[1], request[2]}));
    return "ok\n";
  }
  if (request[0] == "sample" && request.size() == 3) {
    DEMARC_TRY(const auto count, parse_u64(request[1], "sample count"));
    DEMARC_TRY(const double seconds, parse_double(request[2], "sample seconds"));
    DEMARC_TRY(const auto times, lane.sample(static_cast<std::uint32_t>(count), seconds));
    std::string out = "ok";
    for (const double ns : times) out += fmt::format("\t{:.3f}", ns);
    for (const double ns : lane.last_runs()) out += fmt::format("\tr{:.3f}", ns);
    return out + "\n";
  }
  if (request[0] == "outputs") {
    DEMARC_TRY(const Outputs seen, lane.outputs());
    return fmt::format("ok\t{}\t{}\t{}\n", seen.digest, seen.exact ? 1 : 0,
                       one_line(seen.mismatch));
  }
  if (request[0] == "start") {
    DEMARC_CHECK(lane.start());
    return "ok\n";
  }
  if (request[0] == "stop") {
    DEMARC_TRY(const double rate, lane.stop());
    return fmt::format("ok\t{:.6f}\n", rate);
  }
  return invalid_input("a worker does not know the request '{}'", request[0]);
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
    DEMARC_CHECK(ask(fmt::format("load\t{}\t{}\n", workload.name, workload.spec), 0));
    return {};
  }

  Result<std::vector<double>> sample(std::uint32_t count, double longest_seconds) override {
    DEMARC_TRY(const auto fields,
               ask(fmt::format("sample\t{}\t{}\n", count, longest_seconds), longest_seconds));
    std::vector<double> times;
    runs_.clear();
    for (std::size_t i = 1; i < fields.size(); ++i) {
      const bool run = fields[i].starts_with('r');
      const auto ns = parse_double(std::string_view(fields[i]).substr(run ? 1 : 0), "a sample");
      if (!ns || !std::isfinite(*ns) || *ns < 0) return not_understood(fields);
      (run ? runs_ : times).push_back(*ns);
    }
    if (times.empty()) return not_understood(fields);
    return times;
  }
  std::vector<double> last_runs() const override { return runs_; }

  Result<Outputs> outputs() override {
    DEMARC_TRY(const auto fields, ask("outputs\n", 0));
    if (fields.size() != 4) return not_understood(fields);
    const auto digest = parse_u64(fields[1], "a worker's digest");
    if (!digest) return not_understood(fields);
    return Outputs{*digest, fields[2] == "1", fields[3]};
  }

  Result<void> start() override {
    DEMARC_CHECK(ask("start\n", 0));
    return {};
  }

  Result<double> stop() override {
    DEMARC_TRY(const auto fields, ask("stop\n", 0));
    if (fields.size() != 2) return not_understood(fields);
    const auto rate = parse_double(fields[1], "a worker's rate");
    if (!rate) return not_understood(fields);
    return *rate;
  }

  Result<void> finish() override {
    const ProcessEnd ended = child_.end(grace_seconds);
    if (ended.exit_code == 0) return {};
    return check_failed("worker '{}' ended with {}; the last of its output: {}", name_,
                        ended.words(), last_lines(child_.kept()));
  }

 private:
  Result<std::vector<std::string>> ask(const std::string& request, double work_seconds) {
    std::string line;
    if (!write_all(child_.input(), request)) return has_ended();
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
    auto fields = split_tabs(line);
    if (fields[0] == "ok") return fields;
    if (fields[0] != "error" || fields.size() != 3 || fields[1].size() != 1 || fields[1][0] < '1' ||
        fields[1][0] > '3') {
      return not_understood(fields);
    }
    return tl::unexpected(Error{static_cast<ErrorKind>(fields[1][0] - '0'), fields[2]});
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

  tl::unexpected<Error> not_understood(const std::vector<std::string>& fields) {
    return check_failed("worker '{}' gave an answer that cannot be understood: {}", name_,
                        fields[0].substr(0, 60));
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
    const auto answer = answer_to(lane, split_tabs(line));
    if (!write_all(output, answer ? *answer : answer_error(answer.error()))) break;
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
