// What reads each law from a message.
#pragma once

#include "demarc/color/law.hpp"

namespace demarc::color {

LawPtr read_parities(FieldReader& from, const char* name);
LawPtr read_remainders(FieldReader& from, const char* name);

}  // namespace demarc::color
