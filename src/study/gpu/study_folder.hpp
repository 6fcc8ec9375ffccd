// What a study puts on the machine while it runs, and how that goes away again: when the study
// ends, when a signal interrupts it, and, after a kill that it cannot notice, when the next study
// on the machine begins.
#pragma once

#include <filesystem>
#include <memory>
#include <string>

#include "demarc/base/process.hpp"

namespace demarc::study {

// A folder of our own below the folder for temporary files, locked as long as its owner lives. The
// processes that carry its mark belong to it, an MPS daemon if it has a folder `mps`, and a server
// of leases with all that runs in its parts if it has a folder `leases`.
class StudyFolder {
 public:
  // First takes away what earlier studies of this user left.
  [[nodiscard]] static Result<std::shared_ptr<StudyFolder>> make();
  ~StudyFolder();  // ends the processes, the server and the daemon, removes the folder
  StudyFolder(const StudyFolder&) = delete;
  StudyFolder& operator=(const StudyFolder&) = delete;

  [[nodiscard]] const std::filesystem::path& path() const { return path_; }
  // Belongs into the environment of every process of the study.
  [[nodiscard]] Environment mark() const;
  // The folder of the study's MPS daemon, which is there while the daemon may be, and the
  // environment of its control program.
  [[nodiscard]] std::filesystem::path mps_folder() const { return path_ / "mps"; }
  [[nodiscard]] Environment daemon_environment() const;
  void end_daemon();
  // The folder of the study's server of leases, which is there while the server may be, and what
  // the server and all that runs in its parts have in their environment.
  [[nodiscard]] std::filesystem::path lease_folder() const { return path_ / "leases"; }
  [[nodiscard]] Environment lease_environment() const;
  void end_leases();

 private:
  StudyFolder(std::filesystem::path path, int lock) : path_(std::move(path)), lock_(lock) {}
  std::filesystem::path path_;
  int lock_;
};

// Takes away the folders of studies whose owner is gone, with their processes and daemons. What
// does not heed SIGTERM for so long is killed.
void take_away_remains(double patience_seconds);

}  // namespace demarc::study
