// The device code that a file holds. Its PTX can be written to files.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "demarc/base/result.hpp"
#include "demarc/fatbin/image.hpp"

namespace demarc::fatbin {

struct FileImage {
  std::string where;    // "a.out: .nv_fatbin: image 0", for messages
  std::string section;  // section of an executable or library; else empty
  Image image;
};

// Movable and copyable; copies share the file's bytes.
struct FileImages {
  std::string path;
  std::shared_ptr<const std::string> content;  // all views point into it
  std::vector<FileImage> images;               // at least one, in the order of the file
};

// An executable, shared library or object with device code (sections .nv_fatbin, and __nv_relfatbin
// of nvcc -rdc=true), a fat binary, a cubin or PTX. An archive is refused, because its members are
// files of their own.
[[nodiscard]] Result<FileImages> read_images(const std::filesystem::path& path);

// The image of a file that a program loads into the driver (cuModuleLoad, cuLibraryLoadFromFile).
// missing_capability where it has more than one.
[[nodiscard]] Result<FileImages> read_loadable(const std::filesystem::path& path);

// The images of an executable or a library, which may have no device code.
[[nodiscard]] Result<std::vector<FileImage>> images_of_program(const std::string& content,
                                                               const std::string& path);

// Images that lie elsewhere in such a file, among its data: fat binaries, cubins, and texts of PTX
// that a program gives to the driver itself. cuFFT's and some of cuBLAS's are such. `found` are
// those of images_of_program(), in whose bytes none is looked for.
[[nodiscard]] Result<std::vector<FileImage>> images_among_data(const std::string& content,
                                                               const std::string& path,
                                                               const std::vector<FileImage>& found);

// As read_images(), but from the file's content; `path` stands in the messages.
[[nodiscard]] Result<FileImages> images_of(std::string content, std::string path);

// One line for each entry of each image: section, kind, target, compression, bytes, flags, and the
// kernels of PTX. JSON schema: demarc.ptx.images/1.
[[nodiscard]] std::string images_report(const FileImages& file, bool as_json);

// Writes every PTX into `folder`, which is made if it does not exist, and returns the paths. It is
// an error if there is no PTX.
[[nodiscard]] Result<std::vector<std::filesystem::path>> extract_ptx(
    const FileImages& file, const std::filesystem::path& folder);

}  // namespace demarc::fatbin
