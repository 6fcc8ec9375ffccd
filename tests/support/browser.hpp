// Opens a page in headless Chromium and says what happened: for tests of HTML reports. Programs
// that use it are only registered where CMake found a browser (demarc_find_browser).
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace demarc::test {

struct Opened {
  std::string dom;   // the document after its scripts ran
  std::string said;  // the <body ...> tag: what a script noted with document.body.setAttribute
  std::vector<std::string> console_errors;  // every console message of level error or warning
  std::vector<std::string> requests;        // every address outside the page that was asked for
  std::string log;                          // what the browser said, for failures
};

// `script` is appended to the page and runs after the page's own; it may click, zoom and write into
// the document. A page narrower than Chromium's narrowest window (500) is shown in a frame of its
// width, as on a phone: its innerWidth is `width`. `dark` asks for the dark colour scheme. A
// picture of the window is written to `picture` unless that is empty; the printed page where its
// name ends in ".pdf".
[[nodiscard]] Opened open_page(const std::filesystem::path& page, int width, int height,
                               const std::string& script = {}, bool dark = false,
                               const std::filesystem::path& picture = {});

// A script for open_page(): opens every part of the page, draws every figure as before printing,
// runs `then`, in which say(name, value) leaves data-name in Opened::said, and says finished "yes".
[[nodiscard]] std::string after_drawing(const std::string& then = {});

// The same for what takes frames, such as observers of sizes: `then` may `await wait(milliseconds)`
// and `await until(() => condition)`, five seconds at most. In a frame, frameElement.style changes
// the page's window.
[[nodiscard]] std::string between_frames(const std::string& then);

}  // namespace demarc::test
