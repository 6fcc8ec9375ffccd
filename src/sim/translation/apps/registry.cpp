// Lists the applications of the translation simulation, and makes one by its name.
#include <array>

#include "arrays.hpp"

namespace demarc::sim::translation {

std::span<const ApplicationInfo> application_table() {
  static constexpr std::array<ApplicationInfo, 9> table{{
      {"RL", "ReLU (DNNMark): one load and one store per element, no reuse", make_relu},
      {"FIR", "FIR filter of 16 taps (Hetero-Mark)", make_fir},
      {"MP", "3x3 max pooling, stride 1 (DNNMark)", make_max_pooling},
      {"PR", "PageRank on a random graph, one wave per row (Hetero-Mark)", make_page_rank},
      {"MT", "matrix transpose, 64x64 tiles (AMD APP SDK)", make_matrix_transpose},
      {"KM", "k-means, 32 features, 5 clusters (Hetero-Mark)", make_kmeans},
      {"FFT", "512-point transforms in place (SHOC)", make_fft},
      {"ST", "9-point stencil, 16x64 tiles (SHOC)", make_stencil},
      {"AES", "AES-256 in place (Hetero-Mark)", make_aes},
  }};
  return table;
}

Result<std::unique_ptr<Application>> make_application(std::string_view name,
                                                      const Settings& settings) {
  std::string known;
  for (const ApplicationInfo& info : application_table()) {
    if (info.name == name) return info.make(settings);
    known += fmt::format(" {}", info.name);
  }
  return invalid_input("there is no application '{}'; there are{}", name, known);
}

}  // namespace demarc::sim::translation
