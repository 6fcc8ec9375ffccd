// The server of a study whose parts are leases. `demarc exec --part` starts it in a folder of the
// study, so it is neither that of the user nor one that other programs join.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "demarc/base/process.hpp"
#include "demarc/base/result.hpp"
#include "gpu/study_folder.hpp"

namespace demarc::study {

struct LeaseServerOptions {
  std::string program;          // `demarc`
  std::uint64_t mebibytes = 0;  // memory for all parts; 0: what is free, as exec takes it
  std::string description;      // describes the card's memory; empty: the built-in one
};

class LeaseServer {
 public:
  // Starts nothing: the first program in a part does.
  static Result<std::shared_ptr<LeaseServer>> prepare(const std::shared_ptr<StudyFolder>& folder,
                                                      LeaseServerOptions options);
  ~LeaseServer();  // ends the server, and what still runs in its parts
  LeaseServer(const LeaseServer&) = delete;
  LeaseServer& operator=(const LeaseServer&) = delete;

  // What `demarc exec` needs in its environment to find the server.
  [[nodiscard]] Environment environment() const;
  // "--part", "1/2", ... of `demarc exec`. `part` is a partition's name.
  [[nodiscard]] std::vector<std::string> exec_options(const std::string& part) const;
  // Words in front of a program in a part, which get it the caller's XDG_RUNTIME_DIR back.
  [[nodiscard]] static std::vector<std::string> restoring_words();
  // What each part has, and whether parts take turns, by the server's own word.
  [[nodiscard]] Result<std::string> account() const;

 private:
  LeaseServer(std::shared_ptr<StudyFolder> folder, LeaseServerOptions options)
      : folder_(std::move(folder)), options_(std::move(options)) {}
  [[nodiscard]] Result<std::string> socket() const;
  std::shared_ptr<StudyFolder> folder_;
  LeaseServerOptions options_;
};

}  // namespace demarc::study
