// SPDX-License-Identifier: Apache-2.0
#include "common/cli/completion.h"

#include <algorithm>
#include <set>
#include <string_view>

#include "common/base/check.h"
#include "common/base/strings.h"
#include "common/cli/command_tree.h"
#include "common/cli/words.h"

namespace millrace {
namespace {

constexpr char kFiles[] = ":files\n";
constexpr char kHelpCommand[] = "help";

struct Script {
  const char* shell;
  const char* text;
};

constexpr Script kScripts[] = {
    {"bash", R"(# Completion for bash. In ~/.bashrc:
#   source <(millrace completion bash)
_millrace() {
  local line current=${COMP_WORDS[COMP_CWORD]}
  [[ $current != = ]] || current=
  COMPREPLY=()
  while IFS= read -r line; do
    if [[ $line == :files ]]; then
      compopt -o filenames 2>/dev/null || :
      mapfile -t COMPREPLY < <(compgen -f -- "$current")
    else
      COMPREPLY+=("${line%%$'\t'*}")
    fi
  done < <("${COMP_WORDS[0]}" __complete \
    "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)
}
complete -F _millrace millrace millrace-server millrace-train
)"},
    {"zsh", R"(#compdef millrace millrace-server millrace-train
# Completion for zsh. In ~/.zshrc, after compinit:
#   source <(millrace completion zsh)
_millrace() {
  local line
  local -a candidates
  for line in "${(@f)$("$words[1]" __complete "${(@)words[2,CURRENT]}" \
    2>/dev/null)}"; do
    if [[ $line == :files ]]; then
      _files
      return
    fi
    [[ -z $line ]] || candidates+=("${${line%%$'\t'*}//:/\\:}:${line#*$'\t'}")
  done
  _describe 'millrace' candidates
}
compdef _millrace millrace millrace-server millrace-train
# If the shell has loaded this file as the function itself, complete now.
[[ $funcstack[1] != _millrace ]] || _millrace "$@"
)"},
    {"fish", R"(# Completion for fish. In ~/.config/fish/config.fish:
#   millrace completion fish | source
function __millrace_complete
  set -l words (commandline -opc)
  set -l current (commandline -ct)
  for line in ($words[1] __complete $words[2..-1] "$current" 2>/dev/null)
    if test "$line" = :files
      __fish_complete_path "$current"
    else
      echo $line
    end
  end
end
for program in millrace millrace-server millrace-train
  complete -c $program -f -a '(__millrace_complete)'
end
)"}};

// One line of the answer, or nothing if `word` does not begin with `current`.
std::string Candidate(const std::string& word, const std::string& description,
                      std::string_view current) {
  if (!word.starts_with(current)) return "";
  const std::string first_line = description.substr(0, description.find('\n'));
  return StrCat(word, "\t", first_line, "\n");
}

bool TakesPath(std::string_view type) {
  for (const std::string_view name : {"FILE", "DIR", "STORE", "DATASET"}) {
    if (type.ends_with(name)) return true;
  }
  return false;
}

// The possible values of `option`, each prefixed with `before`.
std::string ValuesOf(const CLI::Option& option, std::string_view current,
                     const std::string& before = "") {
  std::string answer;
  for (const std::string& word : WordsOf(option)) {
    answer += Candidate(before + word, "", StrCat(before, current));
  }
  const bool path =
      TakesPath(option.get_positional() ? option.get_name(/*positional=*/true)
                                        : option.get_type_name());
  return path ? kFiles : answer;
}

// Follows the words of a command line, then completes the next one.
class Reader {
 public:
  explicit Reader(const CLI::App& app) : app_(app), command_(&app) {}

  void Read(const std::string& word);
  std::string Complete(const std::string& current) const;

 private:
  const CLI::Option* FindOption(const std::string& name) const;
  std::string Commands(std::string_view current) const;
  std::string Options(std::string_view current) const;
  std::string Positionals(std::string_view current) const;

  const CLI::App& app_;
  const CLI::App* command_;
  const CLI::Option* awaits_value_ = nullptr;
  const CLI::Option* last_ = nullptr;  // the last option that took a value
  size_t positionals_ = 0;             // number read so far
  bool help_ = false;                  // `help` names commands that are not run
};

const CLI::Option* Reader::FindOption(const std::string& name) const {
  const CLI::Option* option = command_->get_option_no_throw(name);
  return option != nullptr ? option : app_.get_option_no_throw(name);
}

void Reader::Read(const std::string& word) {
  if (word == "=") {  // part of --option=value or NAME=FILE
    awaits_value_ = last_;
    return;
  }
  if (awaits_value_ != nullptr) {
    awaits_value_ = nullptr;
  } else if (word.starts_with("-")) {
    const CLI::Option* option = FindOption(word);
    if (option != nullptr && option->get_expected_max() > 0) {
      awaits_value_ = last_ = option;
    }
  } else if (command_ == &app_ && word == kHelpCommand) {
    help_ = true;
  } else {
    const std::vector<const CLI::App*> subs = Subcommands(*command_);
    const auto named = std::find_if(
        subs.begin(), subs.end(),
        [&word](const CLI::App* sub) { return sub->get_name() == word; });
    if (named == subs.end()) {
      ++positionals_;
    } else {
      command_ = *named;
    }
  }
}

std::string Reader::Commands(std::string_view current) const {
  std::string answer;
  for (const CLI::App* sub : Subcommands(*command_)) {
    answer += Candidate(sub->get_name(), sub->get_description(), current);
  }
  return answer;
}

std::string Reader::Options(std::string_view current) const {
  std::vector<const CLI::Option*> options = OptionsOf(*command_);
  if (command_ != &app_) {
    const std::vector<const CLI::Option*> more = OptionsOf(app_);
    options.insert(options.end(), more.begin(), more.end());
  }
  std::string answer;
  std::set<std::string> offered;
  for (const CLI::Option* option : options) {
    for (const std::string& name : option->get_lnames()) {
      // e.g. --help, which both have
      if (!offered.insert(name).second) continue;
      answer += Candidate("--" + name, option->get_description(), current);
    }
  }
  return answer;
}

std::string Reader::Positionals(std::string_view current) const {
  size_t index = 0;
  for (const CLI::Option* option : command_->get_options()) {
    if (!option->get_positional()) continue;
    const bool many = option->get_expected_max() > 1;
    if (index++ == positionals_ || many) return ValuesOf(*option, current);
  }
  return "";
}

std::string Reader::Complete(const std::string& current) const {
  if (awaits_value_ != nullptr) {
    return ValuesOf(*awaits_value_, current);
  }
  if (help_) return Commands(current);
  const size_t equals = current.find('=');
  if (current.starts_with("--") && equals != std::string::npos) {
    const CLI::Option* option = FindOption(current.substr(0, equals));
    if (option == nullptr) return "";
    return ValuesOf(*option, std::string_view(current).substr(equals + 1),
                    current.substr(0, equals + 1));
  }
  if (current.starts_with("-")) return Options(current);
  return Subcommands(*command_).empty() ? Positionals(current)
                                        : Commands(current);
}

}  // namespace

bool IsCompletionRequest(int argc, char** argv) {
  return argc > 1 && argv[1] == std::string_view("__complete");
}

std::string Completions(const CLI::App& app,
                        const std::vector<std::string>& words) {
  if (words.empty()) return "";
  Reader reader(app);
  for (size_t i = 0; i + 1 < words.size(); ++i) reader.Read(words[i]);
  if (words.back() != "=") return reader.Complete(words.back());
  reader.Read("=");
  return reader.Complete("");
}

std::vector<std::string> CompletionShells() {
  std::vector<std::string> shells;
  for (const Script& script : kScripts) shells.emplace_back(script.shell);
  return shells;
}

std::string CompletionScript(const std::string& shell) {
  for (const Script& script : kScripts) {
    if (shell == script.shell) return script.text;
  }
  MILLRACE_CHECK(false);
  return "";
}

}  // namespace millrace
