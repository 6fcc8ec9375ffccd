# Texts of files as part of a room, so that a program carried elsewhere still knows them: the files FOLDER/*.json by name.
# demarc_embed_texts(ROOM FOLDER NAMESPACE FUNCTION HEADER): HEADER declares std::span<const NamedText> NAMESPACE::FUNCTION().
function(demarc_embed_texts room folder namespace function header)
  file(GLOB files CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/${folder}/*.json")
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${files})
  set(entries "")
  foreach(file IN LISTS files)
    get_filename_component(name "${file}" NAME_WE)
    file(READ "${file}" text)
    string(APPEND entries "    {\"${name}\", R\"json(${text})json\"},\n")
  endforeach()
  set(generated "${CMAKE_CURRENT_BINARY_DIR}/${function}.cpp")
  file(CONFIGURE OUTPUT "${generated}" @ONLY CONTENT [[
// Generated from @folder@/*.json; edit those.
#include "@header@"

namespace @namespace@ {
namespace {
constexpr NamedText all_texts[] = {
@entries@};
}  // namespace

std::span<const NamedText> @function@() {
  return all_texts;
}

}  // namespace @namespace@
]])
  target_sources(demarc_${room} PRIVATE "${generated}")
  set_property(SOURCE "${generated}" PROPERTY SKIP_UNITY_BUILD_INCLUSION ON)
endfunction()
