// Loads the ranks of MPI.
#include "demarc/sweep/transport.hpp"

#include <dlfcn.h>

#include <cstdlib>

#include "demarc/base/process.hpp"
#include "mpi_table.hpp"

namespace demarc::sweep {
namespace {

constexpr const char* library_name = "libdemarc_mpi.so";

class MpiRanks final : public Transport {
 public:
  explicit MpiRanks(const MpiTable& table) : table_(table) {}
  ~MpiRanks() override { table_.end(); }

  std::uint32_t rank() const override { return table_.rank(); }
  std::uint32_t size() const override { return table_.size(); }
  void send(std::uint32_t to, const std::string& text) override {
    // MPI ends the job on its errors; what is left is memory.
    if (table_.send(to, text.data(), text.size()) != 0) std::abort();
  }
  void abandon(int exit_code) override { table_.abandon(exit_code); }
  std::optional<RankMessage> receive() override {
    RankMessage message;
    const long count = table_.probe(&message.from);
    if (count < 0) return {};
    message.text.resize(static_cast<std::size_t>(count));
    table_.read(message.text.data(), message.text.size());
    return message;
  }

 private:
  const MpiTable& table_;
};

unsigned long number_of(const char* variable) {
  const char* const text = std::getenv(variable);
  return text == nullptr ? 0 : std::strtoul(text, nullptr, 10);
}

}  // namespace

bool started_by_mpi() {
  return number_of("OMPI_COMM_WORLD_SIZE") > 1 ||
         (std::getenv("PMIX_RANK") != nullptr && number_of("SLURM_STEP_NUM_TASKS") > 1);
}

Result<std::unique_ptr<Transport>> open_mpi() {
  const std::string path = find_own_library(library_name);
  if (path.empty()) {
    return missing_capability(
        "mpirun has started this program, but it was built without MPI: there is no {} beside {}; "
        "install libopenmpi-dev and build again",
        library_name, program_folder().string());
  }
  // Open MPI loads parts of its own, which look for its symbols among those of all.
  void* const library = ::dlopen(path.c_str(), RTLD_NOW | RTLD_GLOBAL);
  if (library == nullptr) return missing_capability("{}: {}", path, ::dlerror());
  const auto* table = static_cast<const MpiTable*>(::dlsym(library, "demarc_mpi_table_1"));
  if (table == nullptr)
    return missing_capability("{}: it belongs to another version of Demarc", path);
  if (table->start() != 0) return missing_capability("{}: MPI does not start", path);
  return std::unique_ptr<Transport>(std::make_unique<MpiRanks>(*table));
}

}  // namespace demarc::sweep
