// Lists the applications of the translation simulation, and makes one by its name.
#include <array>

#include "arrays.hpp"

namespace demarc::sim::translation {

std::span<const ApplicationInfo> application_table() {
  static const std::array table{relu(),   fir(), max_pooling(), page_rank(), matrix_transpose(),
                                kmeans(), fft(), stencil(),     aes()};
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
