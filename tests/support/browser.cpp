// Opens a page in headless Chromium and reads what it said and requested.
#include "browser.hpp"

#include <unistd.h>

#include <fstream>
#include <regex>
#include <sstream>
#include <stdexcept>

#include "paths.hpp"
#include "program.hpp"

namespace demarc::test {
namespace {

std::string file_text(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

std::string browser_program() {
  for (const char* name : {"chromium", "chromium-browser", "google-chrome"})
    for (const char* folder : {"/usr/bin/", "/usr/local/bin/", "/snap/bin/"})
      if (access((std::string(folder) + name).c_str(), X_OK) == 0)
        return std::string(folder) + name;
  throw std::runtime_error("no chromium in /usr/bin, /usr/local/bin or /snap/bin");
}

// Without a screen Chromium's window is at least this many pixels wide.
constexpr int narrowest_window = 500;

// The page in a frame of its own width and height.
std::string framed(const std::string& html, int width, int height) {
  std::string quoted;
  for (const char c : html) {
    if (c == '&') {
      quoted += "&amp;";
    } else if (c == '"') {
      quoted += "&quot;";
    } else {
      quoted += c;
    }
  }
  return "<!DOCTYPE html>\n<html><head><meta charset=\"utf-8\"><link rel=\"icon\" "
         "href=\"data:,\"></head>\n"
         "<body style=\"margin:0\">\n<iframe style=\"border:0;width:" +
         std::to_string(width) + "px;height:" + std::to_string(height) + "px\" srcdoc=\"" + quoted +
         "\"></iframe></body></html>\n";
}

// What a script of between_frames() begins with.
const std::string real_frames = "/* real frames */";

std::string drawn_and(const std::string& then) {
  return "for (const part of document.querySelectorAll('details')) part.open = true;"
         "dispatchEvent(new Event('beforeprint')); dispatchEvent(new Event('afterprint'));"
         "const said = (frameElement ? parent : window).document.body;"
         "const say = (name, value) => said.setAttribute('data-' + name, value);" +
         then +
         // A page in a frame leaves its document where --dump-dom finds it.
         "if (frameElement) said.append(document.body.cloneNode(true));"
         "say('finished', 'yes');";
}

}  // namespace

std::string after_drawing(const std::string& then) {
  return "addEventListener('load', () => {" + drawn_and(then) + "});";
}

// A document that stays open keeps the page from being loaded, and so the browser, which frames are
// drawn for as for a reader; a budget of virtual time passes without them.
std::string between_frames(const std::string& then) {
  return real_frames +
         "const hold = document.createElement('iframe'); hold.hidden = true;"
         "document.body.append(hold); hold.contentDocument.open();"
         "addEventListener('DOMContentLoaded', async () => {"
         "const wait = (ms) => new Promise((done) => setTimeout(done, ms));"
         "const until = async (holds) => { for (let i = 0; i < 100 && !holds(); ++i) await "
         "wait(50); return holds(); };" +
         drawn_and(then) + "hold.contentDocument.close(); });";
}

Opened open_page(const std::filesystem::path& page, int width, int height,
                 const std::string& script, bool dark, const std::filesystem::path& picture) {
  static int counter = 0;
  const auto folder = fresh_folder("browser" + std::to_string(counter++));
  std::string html = file_text(page);
  if (!script.empty()) {
    const auto end = html.rfind("</body>");
    if (end == std::string::npos) throw std::runtime_error(page.string() + " has no </body>");
    html.insert(end, "<script>" + script + "</script>\n");
  }
  if (width < narrowest_window) html = framed(html, width, height);
  std::ofstream(folder / "page.html", std::ios::binary) << html;
  const auto requests_log = folder / "net.json";
  std::vector<std::string> argv = {
      browser_program(),
      "--headless",
      "--no-sandbox",
      "--disable-gpu",
      "--disable-dev-shm-usage",
      "--disable-background-networking",
      "--host-resolver-rules=MAP * ~NOTFOUND",
      "--disable-component-update",
      "--disable-sync",
      "--disable-extensions",
      "--disable-default-apps",
      "--no-first-run",
      "--hide-scrollbars",
      "--enable-logging=stderr",
      "--v=0",
      script.starts_with(real_frames) ? "--timeout=60000" : "--virtual-time-budget=2000",
      "--user-data-dir=" + (folder / "profile").string(),
      "--log-net-log=" + requests_log.string(),
      "--window-size=" + std::to_string(width) + "," + std::to_string(height)};
  if (dark) argv.push_back("--blink-settings=preferredColorScheme=0");
  if (picture.extension() == ".pdf") {
    argv.push_back("--print-to-pdf=" + picture.string());
  } else {
    argv.push_back(picture.empty() ? "--dump-dom" : "--screenshot=" + picture.string());
  }
  argv.push_back("file://" + (folder / "page.html").string());
  const Outcome outcome = run_program(argv);
  if (outcome.exit_code != 0) throw std::runtime_error("the browser failed: " + outcome.err);

  Opened opened;
  opened.dom = outcome.out;
  if (const auto body = opened.dom.find("\n<body"); body != std::string::npos)
    opened.said = opened.dom.substr(body + 1, opened.dom.find(">\n", body) - body);
  opened.log = outcome.err;
  // "[pid:tid:time:LEVEL:CONSOLE(line)] "text", source: ..."
  static const std::regex console("^\\[[^\\]]*CONSOLE[^\\]]*\\].*");
  std::istringstream lines(outcome.err);
  for (std::string line; std::getline(lines, line);)
    if (std::regex_match(line, console)) opened.console_errors.push_back(line);
  const std::string log = file_text(requests_log);
  if (log.empty()) throw std::runtime_error("the browser wrote no network log");
  // One event a line. What the browser asks for on its own account has no origin as initiator.
  static const std::regex address(
      "\"initiator\":\"([^\"]*)\".*\"url\":\"((https?|wss?|ftp)://[^\"]*)\"");
  std::istringstream events(log);
  std::smatch found;
  for (std::string line; std::getline(events, line);)
    if (std::regex_search(line, found, address) && found[1] != "not an origin")
      opened.requests.push_back(found[2].str());
  std::filesystem::remove_all(folder);
  return opened;
}

}  // namespace demarc::test
