// A text of a file that is part of the program (cmake/DemarcTexts.cmake).
#pragma once

#include <string_view>

namespace demarc {

struct NamedText {
  std::string_view name;  // name of the file, without its ending
  std::string_view text;
};

}  // namespace demarc
