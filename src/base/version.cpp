// Gives the version and the source revision that the build was told.
#include "demarc/base/version.hpp"

namespace demarc {

const char* version() {
  return DEMARC_VERSION;
}
const char* revision() {
  return DEMARC_REVISION;
}

}  // namespace demarc
