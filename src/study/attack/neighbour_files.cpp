// Writes neighbours as launch files.
#include "attack/neighbour_files.hpp"

#include "demarc/base/files.hpp"
#include "demarc/launch/launch_write.hpp"
#include "demarc/study/attack.hpp"

namespace demarc::study {

Result<std::filesystem::path> write_neighbour(const std::filesystem::path& folder,
                                              const std::string& stem, const Neighbour& neighbour,
                                              const NeighbourMeans& means) {
  const std::string ptx = stem + ".ptx";
  DEMARC_TRY(const std::string json,
             gpu::launch_to_json(neighbour_launch(neighbour, means, stem, ptx)));
  DEMARC_CHECK(write_file(folder / ptx, neighbour_ptx(neighbour)));
  auto file = folder / (stem + ".json");
  DEMARC_CHECK(write_file(file, json));
  return file;
}

Result<void> open_folder(const std::filesystem::path& folder) {
  std::error_code failed;
  std::filesystem::create_directories(folder, failed);
  if (failed) {
    return invalid_input("{}: cannot make a folder there: {}", folder.string(), failed.message());
  }
  return check_writable(folder / "01.json");
}

Result<void> write_ranked(const AttackResult& result, const std::filesystem::path& folder) {
  DEMARC_CHECK(open_folder(folder));
  for (std::size_t i = 0; i < result.ranked.size(); ++i) {
    const std::string stem = std::filesystem::path(ranked_file(result, i)).stem().string();
    DEMARC_CHECK(write_neighbour(folder, stem, result.ranked[i].screened.genes, result.means));
  }
  return {};
}

}  // namespace demarc::study
